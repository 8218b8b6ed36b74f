/* Kullback-Leibler divergence of softmax(golden) from softmax(target), in one pass.
 *
 * Needed are the sums of exp(g), exp(t) and exp(g)*(g-t), which overflow long before g and t do.
 * They are kept as multiples of 2^(512*bucket) for the two highest buckets that occur; what lies
 * lower cannot be seen in the result, unless t and g are 1e140 apart there. Which buckets those
 * are does not depend on the order of the values, so neither does the result. */
#ifndef METRIC_KL_H
#define METRIC_KL_H

#include "metric/exact.h"
#include "metric/kernel.h"

struct kl_sum {
    bool any;
    double bucket;
    struct exact total[2], weighted[2]; /* in the highest bucket, and in the one below */
};

struct kl_state {
    struct kl_sum target, golden;
};

/* Adds what kernels found in values up to KL_FAST. */
void kl_add(struct kl_state *kl, const struct kl_lanes *lanes);

/* Adds n pairs of stored values, at most PLUMB_METRIC_BLOCK, none of which is larger than
 * `bound`; the largest itself is looked for where that does not tell whether kernels can do it.
 * near: none of their differences is larger than KL_NEAR. */
void kl_block(struct kl_state *kl, const struct kernels *kernels, enum kernel_type type,
              const void *t, const void *g, size_t n, double bound, bool near);
void kl_merge(struct kl_state *kl, const struct kl_state *other);

/* 0 when nothing was added; never negative. */
double kl_finish(const struct kl_state *kl);

#endif
