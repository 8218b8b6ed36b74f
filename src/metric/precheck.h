/* The masked metrics of the operator pre-check: errors judged apart for small, ordinary and
 * non-finite values, with limits that depend on the device's type. */
#ifndef METRIC_PRECHECK_H
#define METRIC_PRECHECK_H

#include "metric/exact.h"
#include "metric/rule.h"

/* Errors over a bound, counted apart for the three kinds of elements. */
struct threshold_counts {
    uint64_t normal, normal_errors, small, small_errors, bad, bad_errors;
};

struct precheck_state {
    enum plumb_dtype device;
    bool single;
    double eps, small, atol; /* of the benchmark standard */
    double atol_absolute, rtol, bound;

    uint64_t count, small_count, small_errors, masked;
    uint64_t above, below;
    struct exact squares, rel_sum;
    double max_rel;
    struct threshold_counts absolute, accumulative;
};

void precheck_init(struct precheck_state *state, const struct plumb_metric_spec *spec,
                   enum plumb_dtype device, enum plumb_dtype bench);
void precheck_block(struct precheck_state *state, const double *device, const double *bench,
                    size_t n);
void precheck_merge(struct precheck_state *state, const struct precheck_state *other);
void precheck_finish(const struct precheck_state *state, struct plumb_metrics *out);

#endif
