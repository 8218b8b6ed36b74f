/* Blocks of float64 values at the ends of its range: squares that overflow or vanish, sums and
 * differences that overflow though what is made of them does not. */
#ifndef METRIC_EDGES_H
#define METRIC_EDGES_H

#include "metric/state.h"

/* Adds n pairs to the sums of products, where `error` says that they are not ordinary. */
void edges_add_error(struct plumb_metric_state *state, const double *t, const double *g,
                     const double *d, size_t n, const struct error_lanes *error);

/* Add |t - g|, or r, to what is averaged, and take the sum that overflowed out of `lanes`. */
void edges_add_absolute(struct plumb_metric_state *state, const double *t, const double *g,
                        size_t n, struct absolute_lanes *lanes);
void edges_add_ratios(struct plumb_metric_state *state, const double *r, size_t n,
                      struct ratio_lanes *lanes);

/* Compute once more what was made of infinite differences of finite values. */
void edges_relative(const struct kernels *kernels, const double *t, const double *g,
                    const double *d, size_t n, double *r);
void edges_ulps(const struct kernels *kernels, const double *t, const double *g, const double *d,
                size_t n, const struct ulp_scale *scale, double *u);

#endif
