/* Sketches of version 1, which condensed files of form 2 have: to compare values with those. */
#ifndef METRIC_SKETCH1_H
#define METRIC_SKETCH1_H

#include "metric/exact.h"
#include "plumb/sketch.h"

#include <stddef.h>

struct sketch1_sum {
    double high, low;
};

/* The sums are high + low + rest, without any rounding. */
struct sketch1_state {
    struct sketch1_sum sum[PLUMB_SKETCH_SUMS];
    struct exact rest[PLUMB_SKETCH_SUMS];
    size_t pending; /* numbers added since sum was last moved to rest */
};

/* All zero is the sketch of nothing. NULL when out of memory; free() it. */
struct sketch1_state *sketch1_new(void);

/* Adds numbers [first, first+n); a complex element is two. What is not finite counts as 0. */
void sketch1_add(struct sketch1_state *sketch, uint64_t first, const double *x, size_t n);
void sketch1_merge(struct sketch1_state *sketch, const struct sketch1_state *other);
void sketch1_finish(const struct sketch1_state *sketch, struct plumb_sketch *out);

#endif
