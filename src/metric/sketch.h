/* A CountSketch: 256 sums of a tensor's numbers with signs, which tell how far apart two tensors
 * are when their values are gone. docs/FORMATS.md defines it. */
#ifndef METRIC_SKETCH_H
#define METRIC_SKETCH_H

#include "metric/exact.h"
#include "plumb/sketch.h"

#include <stddef.h>

struct sketch_sum {
    double high, low;
};

/* The sums are high + low + rest, without any rounding. */
struct sketch_state {
    struct sketch_sum sum[PLUMB_SKETCH_SUMS];
    struct exact rest[PLUMB_SKETCH_SUMS];
    size_t pending; /* numbers added since sum was last moved to rest */
};

/* All zero is the sketch of nothing. NULL when out of memory; free() it. */
struct sketch_state *sketch_new(void);

/* Adds numbers [first, first+n); a complex element is two. What is not finite counts as 0. */
void sketch_add(struct sketch_state *sketch, uint64_t first, const double *x, size_t n);
void sketch_merge(struct sketch_state *sketch, const struct sketch_state *other);
void sketch_finish(const struct sketch_state *sketch, struct plumb_sketch *out);

/* By how much an estimated distance, or norm, may exceed the true one: three standard deviations
 * of its square, which are 3 * sqrt(2 / 256) of it at most. */
#define SKETCH_EXCESS 1.125
/* The same for the estimate of a distance over the estimate of a norm. */
#define SKETCH_EXCESS_OF_RATIO 1.312

/* The Euclidean distance of target and golden over the norm of golden, from their sketches; norm is
 * that norm, or NaN when it has to be estimated too. 0/0 is 0. */
double sketch_distance(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                       double norm);

#endif
