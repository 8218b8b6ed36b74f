/* Blocks of a tensor as they would lie in memory: dense, in native byte order. */
#ifndef METRIC_DENSE_H
#define METRIC_DENSE_H

#include "metric/kernel.h"
#include "plumb/metric.h"

enum { ELEMENT_MAX = 16 };

struct room {
    _Alignas(32) unsigned char bytes[PLUMB_METRIC_BLOCK * ELEMENT_MAX];
};

/* Elements [first, first+n), n at most PLUMB_METRIC_BLOCK: the tensor's own bytes, or a copy in
 * room. first is even for packed 4-bit types. */
const void *dense_block(const struct plumb_tensor *tensor, uint64_t first, size_t n,
                        struct room *room);

/* The kernels' name for a type they read as it is, or -1. */
int kernel_type_of(enum plumb_dtype dtype);

/* Such a block as float64; a complex element gives two numbers. */
void dense_load(const struct kernels *kernels, enum plumb_dtype dtype, const void *data,
                size_t numbers, double *out);

#endif
