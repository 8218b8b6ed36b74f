/* Statistics of one side, mergeable: mean, deviation and norm from exact sums. */
#ifndef METRIC_STATS_H
#define METRIC_STATS_H

#include "metric/ends.h"
#include "metric/exact.h"
#include "metric/kernel.h"
#include "plumb/metric.h"

struct stats_state {
    uint64_t finite, nan, pos_inf, neg_inf;
    double min, max; /* of the finite values; meaningless while there are none */
    struct exact sum, squares;
    struct ends ends; /* of 64-bit integers; stats_values() does not know the type */
};

/* Adds n values, at most PLUMB_METRIC_BLOCK. */
void stats_values(struct stats_state *stats, const struct kernels *kernels, const double *x,
                  size_t n);

/* Of n > 0 finite values whose range is known: what their deviations are taken from. False when
 * they are too large or too small for their squares, and are left to stats_values. */
bool stats_middle(const struct range_lanes *range, size_t n, double *middle);

/* Adds such values, whose deviations from the middle are known. */
void stats_add(struct stats_state *stats, size_t n, const struct range_lanes *range, double middle,
               const struct centre_lanes *centre);

/* Adds STATS_BLOCKS stored numbers, and returns where they are as float64: in `wide`, or in their
 * own place. NULL when they take more than two looks: nothing is added then. */
enum { STATS_BLOCKS = SIDE_BY_SIDE * PLUMB_METRIC_BLOCK };
const double *stats_blocks(struct stats_state *stats, const struct kernels *kernels,
                           enum kernel_type type, const void *data, double *wide);

/* Adds elements [first, first+count) of a tensor; first is a multiple of PLUMB_METRIC_BLOCK and
 * below the tensor's count, count may exceed what is left. */
void stats_tensor(struct stats_state *stats, const struct kernels *kernels,
                  const struct plumb_tensor *tensor, uint64_t first, uint64_t count);

void stats_merge(struct stats_state *stats, const struct stats_state *other);
void stats_finish(const struct stats_state *stats, struct plumb_stats *out);

/* The same as if the finite values were all there are. */
void stats_finish_finite(const struct stats_state *stats, struct plumb_stats *out);

#endif
