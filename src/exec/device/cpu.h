/* The built-in device: plumb's own operators in the recorded types. */
#ifndef DEVICE_CPU_H
#define DEVICE_CPU_H

#include "plumb/device.h"

struct plumb_device *cpu_device_new(const char *name); /* NULL when out of memory */

#endif
