/* Names of types in dumps. */
#ifndef RUN_DTYPE_H
#define RUN_DTYPE_H

#include "plumb/dtype.h"

/* The type that a capture calls torch.float32, Float32 or float32; PLUMB_DTYPE_COUNT for none. */
enum plumb_dtype run_dtype(const char *text);

#endif
