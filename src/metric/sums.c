/* What kernels found in a block, added to a state. */
#include "metric/sums.h"

#include <math.h>

static double sum4(const double *lanes)
{
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

static double sum8(const double *lanes)
{
    return sum4(lanes) + sum4(lanes + 4);
}

void sums_add_error(struct error_sums *sums, const struct error_lanes *lanes)
{
    exact_add(&sums->tg, sum8(lanes->tg));
    exact_add(&sums->tt, sum8(lanes->tt));
    exact_add(&sums->gg, sum8(lanes->gg));
    exact_add(&sums->dd, sum8(lanes->dd));
}

double sums_lanes(const double lanes[LANES])
{
    return sum8(lanes);
}

double sums_of_squares(const struct error_lanes *lanes)
{
    return sum8(lanes->tt) + sum8(lanes->gg);
}

void sums_add_relative(struct plumb_metric_state *state, const struct relative_counts *counts)
{
    state->max_rel = counts->max;
    state->below_5e3 += counts->below_5e3;
    state->below_1e3 += counts->below_1e3;
}

void sums_add_ratio(struct plumb_metric_state *state, const struct ratio_lanes *lanes)
{
    exact_add(&state->rel_sum, sum8(lanes->sum));
    state->below_1e2 += lanes->below_1e2;
    state->below_1e4 += lanes->below_1e4;
}

void sums_add_close(struct plumb_metric_state *state, const struct close_counts *counts)
{
    state->close += counts->close;
    state->greater += counts->greater;
    state->above += counts->above;
    state->below += counts->below;
}

void sums_add_absolute(struct plumb_metric_state *state, const struct absolute_lanes *lanes)
{
    exact_add(&state->abs_sum, sum8(lanes->sum));
    state->min_abs = lanes->min;
    for (int k = 0; k < ABS_LIMITS; k++)
        state->abs_over[k] += lanes->over[k];
}

void sums_add_ulp(struct plumb_metric_state *state, const struct ulp_lanes *lanes)
{
    exact_add(&state->ulp_sum, sum8(lanes->sum));
    state->max_ulp = lanes->max;
    state->ulp_over += lanes->over;
}

void sums_add_small(struct plumb_metric_state *state, const struct small_counts *counts)
{
    state->small_count += counts->small;
    state->small_errors += counts->errors;
}

double sums_largest_value(const struct error_lanes *error)
{
    return sqrt(fmax(sum8(error->tt), sum8(error->gg)));
}

bool sums_is_largest(const struct plumb_metric_state *state, double max, uint64_t base)
{
    return state->max_index == UINT64_MAX || max > state->max_abs ||
           (max == state->max_abs && base < state->max_index);
}

void sums_note_max(struct plumb_metric_state *state, double max, const double *d, size_t n,
                   uint64_t base, const uint16_t *place)
{
    if (!n || !sums_is_largest(state, max, base))
        return;
    state->max_abs = max;
    for (size_t i = 0; i < n; i++)
        if (fabs(d[i]) == max) {
            state->max_index = base + (place ? place[i] : i);
            return;
        }
}
