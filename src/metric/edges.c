/* Blocks of float64 values at the ends of its range. */
#include "metric/edges.h"

#include "metric/sums.h"

#include <math.h>
#include <string.h>

/* How values are scaled before they are squared, in steps: 1 down, -1 up. */
static int steps_of(double squares)
{
    return sums_are_ordinary(squares) ? 0 : squares < 1 ? -1 : 1;
}

static void scale(const double *x, size_t n, int steps, double *out)
{
    const double by = steps > 0 ? 1 / EXACT_SCALE : steps < 0 ? EXACT_SCALE : 1;
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * by;
}

/* Adds products of values that were scaled by `steps` together. */
static void add_shifted(const struct kernels *kernels, const double *a, const double *b, size_t n,
                        int steps, struct exact *sum)
{
    static const double none[PLUMB_METRIC_BLOCK];
    struct error_lanes lanes = {0};
    struct exact scaled = {0};
    kernels->error(a, b, none, n, &lanes);
    exact_add(&scaled, sums_lanes(lanes.tg));
    exact_merge_shifted(sum, &scaled, steps * EXACT_STEP);
}

static void add_distance(struct plumb_metric_state *state, const double *t, const double *g,
                         const double *d, size_t n, double dd)
{
    const struct kernels *k = &state->kernels;
    const int steps = steps_of(dd);
    double x[PLUMB_METRIC_BLOCK], y[PLUMB_METRIC_BLOCK];
    if (steps == 0) {
        exact_add(&state->sums.dd, dd);
        return;
    }
    if (steps < 0) {
        scale(d, n, steps, x);
    } else { /* the differences themselves may be infinite */
        scale(t, n, steps, x);
        scale(g, n, steps, y);
        k->difference(x, y, n, x);
    }
    add_shifted(k, x, x, n, 2 * steps, &state->sums.dd);
}

/* Each side is scaled by its own size. */
void edges_add_error(struct plumb_metric_state *state, const double *t, const double *g,
                     const double *d, size_t n, const struct error_lanes *error)
{
    const struct kernels *k = &state->kernels;
    const double tt = sums_lanes(error->tt), gg = sums_lanes(error->gg);
    const int of_t = steps_of(tt), of_g = steps_of(gg);
    double x[PLUMB_METRIC_BLOCK], y[PLUMB_METRIC_BLOCK];
    scale(t, n, of_t, x);
    scale(g, n, of_g, y);
    add_shifted(k, x, y, n, of_t + of_g, &state->sums.tg);
    add_shifted(k, x, x, n, 2 * of_t, &state->sums.tt);
    add_shifted(k, y, y, n, 2 * of_g, &state->sums.gg);
    add_distance(state, t, g, d, n, sums_lanes(error->dd));
}

/* Adds the sum of a block that was scaled down. */
static void add_large(double total, struct exact *sum)
{
    struct exact scaled = {0};
    exact_add(&scaled, total);
    exact_merge_shifted(sum, &scaled, EXACT_STEP);
}

void edges_add_absolute(struct plumb_metric_state *state, const double *t, const double *g,
                        size_t n, struct absolute_lanes *lanes)
{
    const struct kernels *k = &state->kernels;
    struct absolute_lanes scaled = {.min = INFINITY};
    double x[PLUMB_METRIC_BLOCK], y[PLUMB_METRIC_BLOCK];
    scale(t, n, 1, x);
    scale(g, n, 1, y);
    k->difference(x, y, n, x);
    k->absolute(x, n, &scaled);
    add_large(sums_lanes(scaled.sum), &state->abs_sum);
    memset(lanes->sum, 0, sizeof lanes->sum);
}

void edges_add_ratios(struct plumb_metric_state *state, const double *r, size_t n,
                      struct ratio_lanes *lanes)
{
    struct ratio_lanes scaled = {0};
    double x[PLUMB_METRIC_BLOCK];
    scale(r, n, 1, x);
    state->kernels.ratio_tally(x, n, &scaled);
    add_large(sums_lanes(scaled.sum), &state->rel_sum);
    memset(lanes->sum, 0, sizeof lanes->sum);
}

/* Halves differ by half as much, which is a number; of values that large they are exact. */
void edges_relative(const struct kernels *kernels, const double *t, const double *g,
                    const double *d, size_t n, double *r)
{
    for (size_t i = 0; i < n; i++)
        if (isinf(d[i])) {
            const double half = g[i] / 2, away = t[i] / 2 - half;
            kernels->relative(&away, &half, 1, &r[i]);
        }
}

void edges_ulps(const struct kernels *kernels, const double *t, const double *g, const double *d,
                size_t n, const struct ulp_scale *scale_of_type, double *u)
{
    for (size_t i = 0; i < n; i++)
        if (isinf(d[i])) {
            const double half = g[i] / 2, away = t[i] / 2 - half;
            kernels->ulps(&away, &half, 1, scale_of_type, &u[i]);
        }
}
