/* The built-in device: plumb's own operators in the recorded types. */
#ifndef DEVICE_CPU_H
#define DEVICE_CPU_H

#include "plumb/device.h"

/* name is what the device will be called; there are no options. */
enum plumb_code cpu_device_open(const char *name, const struct plumb_device_options *options,
                                struct plumb_device **out, struct plumb_error *err);

#endif
