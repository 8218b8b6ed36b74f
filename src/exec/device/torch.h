/* Devices that the user's PyTorch has: worker processes behind struct plumb_device. */
#ifndef DEVICE_TORCH_H
#define DEVICE_TORCH_H

#include "plumb/device.h"

/* name is "torch:" and what PyTorch calls the device: "torch:cuda:0". */
enum plumb_code torch_device_open(const char *name, const struct plumb_device_options *options,
                                  struct plumb_device **out, struct plumb_error *err);

#endif
