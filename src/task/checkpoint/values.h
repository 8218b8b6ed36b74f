/* The values of two weights, side by side. */
#ifndef CHECKPOINT_VALUES_H
#define CHECKPOINT_VALUES_H

#include "plumb/metric.h"
#include "task/checkpoint/checkpoint.h"

/* Compares the values of two weights of the same number of elements.
 * Parts are read where they lie; what is held in memory is a small piece of each side. */
enum plumb_code values_compare(const struct checkpoint_weight *a, const struct checkpoint_weight *b,
                               const struct plumb_metric_spec *spec,
                               const struct checkpoint_profile *rules, struct plumb_metrics *out,
                               struct plumb_error *err);

/* Whether all values are zero. */
enum plumb_code values_are_zero(const struct checkpoint_weight *weight,
                                const struct checkpoint_profile *rules, bool *zero,
                                struct plumb_error *err);

#endif
