/* The device that ran already. */
#ifndef DEVICE_RECORDED_H
#define DEVICE_RECORDED_H

#include "plumb/device.h"

enum plumb_code recorded_device_open(const char *name, const struct plumb_device_options *options,
                                     struct plumb_device **out, struct plumb_error *err);

#endif
