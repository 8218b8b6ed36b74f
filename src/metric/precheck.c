/* The masked metrics of the operator pre-check. */
#include "metric/precheck.h"

#include <math.h>

void precheck_init(struct precheck_state *state, const struct plumb_metric_spec *spec,
                   enum plumb_dtype device, enum plumb_dtype bench)
{
    struct rule rule;
    rule_init(&rule, PLUMB_REL_PRECHECK, device, bench);
    bool half = device == PLUMB_F16, brain = device == PLUMB_BF16;
    *state = (struct precheck_state){
        .device = device,
        .single = rule.single,
        .eps = rule.eps,
        .small = half || brain ? 0x1p-10 : 0x1p-20,
        .atol = half || brain ? 1e-16 : 0x1p-30,
        .atol_absolute = half    ? 0x1p-16
                         : brain ? 1e-16
                                 : 0x1p-30,
        .rtol = half    ? 0x1p-10
                : brain ? 0x1p-8
                        : 0x1p-20,
        .bound = half    ? 0x1p-8
                 : brain ? 0x1p-7
                         : 0x1p-11,
    };
    if (spec->small > 0)
        state->small = spec->small;
    if (spec->small_atol > 0)
        state->atol = state->atol_absolute = spec->small_atol;
    if (spec->small_rtol > 0)
        state->rtol = spec->small_rtol;
}

/* Not finite on either side: is there an error after clipping both to the type's range? The
 * difference is taken in the device's type, where that of the two extremes is infinite. */
static bool bad_is_error(enum plumb_dtype device, enum plumb_dtype held, double d, double b,
                         double den, double tolerance)
{
    if (isnan(d) && isnan(b))
        return false;
    double limit = plumb_dtype_info(device)->max_finite;
    double clipped_d = d > limit ? limit : d < -limit ? -limit : d;
    double clipped_b = b > limit ? limit : b < -limit ? -limit : b;
    return !(plumb_round_to(held, fabs(clipped_d - clipped_b)) / den <= tolerance);
}

static void threshold(struct threshold_counts *counts, bool finite, bool small, bool bad_error,
                      bool rel_error, bool abs_error)
{
    if (!finite) {
        counts->bad++;
        counts->bad_errors += bad_error;
    } else if (small) {
        counts->small++;
        counts->small_errors += abs_error;
    } else {
        counts->normal++;
        counts->normal_errors += rel_error;
    }
}

static double single(const struct precheck_state *state, double x)
{
    return state->single ? (double)(float)x : x;
}

void precheck_block(struct precheck_state *state, const double *device, const double *bench,
                    size_t n)
{
    /* bfloat16 is compared as float32. */
    enum plumb_dtype held = state->device == PLUMB_BF16 ? PLUMB_F32 : state->device;
    bool is_float = plumb_dtype_info(held)->kind == PLUMB_KIND_FLOAT;

    for (size_t i = 0; i < n; i++) {
        double d = device[i], b = bench[i];
        double b_held = is_float ? plumb_round_to(held, b) : b;
        double error = single(state, fabs(d - b));
        double den = single(state, fabs(b) + state->eps);
        double rel = single(state, error / den);
        bool finite = isfinite(d) && isfinite(b_held);
        bool small = finite && fabs(b) <= state->small;

        state->count++;
        state->above += d - b_held > 0;
        state->below += d - b_held < 0;
        state->small_count += small;
        state->small_errors += small && error > state->atol;
        if (!finite || small) {
            state->masked++;
        } else {
            exact_add(&state->squares, single(state, error * error));
            exact_add(&state->rel_sum, rel);
            if (rel > state->max_rel)
                state->max_rel = rel;
        }

        bool bad_error = !finite && bad_is_error(state->device, held, d, b_held, den, state->rtol);
        threshold(&state->absolute, finite, small, bad_error, rel > state->rtol,
                  error > state->atol_absolute);
        bad_error = !finite && bad_is_error(state->device, held, d, b_held, den, state->bound);
        threshold(&state->accumulative, finite, fabs(b) <= 1, bad_error, rel > state->bound,
                  error > state->bound);
    }
}

static void merge_threshold(struct threshold_counts *a, const struct threshold_counts *b)
{
    a->normal += b->normal;
    a->normal_errors += b->normal_errors;
    a->small += b->small;
    a->small_errors += b->small_errors;
    a->bad += b->bad;
    a->bad_errors += b->bad_errors;
}

void precheck_merge(struct precheck_state *state, const struct precheck_state *other)
{
    state->count += other->count;
    state->small_count += other->small_count;
    state->small_errors += other->small_errors;
    state->masked += other->masked;
    state->above += other->above;
    state->below += other->below;
    exact_merge(&state->squares, &other->squares);
    exact_merge(&state->rel_sum, &other->rel_sum);
    if (other->max_rel > state->max_rel)
        state->max_rel = other->max_rel;
    merge_threshold(&state->absolute, &other->absolute);
    merge_threshold(&state->accumulative, &other->accumulative);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

void precheck_finish(const struct precheck_state *state, struct plumb_metrics *out)
{
    double n = (double)state->count, kept = (double)(state->count - state->masked);
    uint64_t balance =
        state->above > state->below ? state->above - state->below : state->below - state->above;
    double mean_square = n > 0 ? exact_round(&state->squares) / n : 0;

    out->precheck_balance = share(balance, state->count);
    /* The mean is taken over all elements, then corrected for those that were masked. */
    out->precheck_rmse = sqrt(mean_square * (n / (kept + 0.0001) + 0.0001));
    out->small_error_rate = share(state->small_errors, state->small_count);
    out->precheck_max_rel = state->max_rel;
    out->precheck_mean_rel = kept > 0 ? exact_round(&state->rel_sum) / kept : 0;

    out->inf_nan_error_rate = share(state->absolute.bad_errors, state->absolute.bad);
    out->rel_error_rate = share(state->absolute.normal_errors, state->absolute.normal);
    out->abs_error_rate = share(state->absolute.small_errors, state->absolute.small);
    out->acc_inf_nan_error_rate = share(state->accumulative.bad_errors, state->accumulative.bad);
    out->acc_rel_error_rate = share(state->accumulative.normal_errors, state->accumulative.normal);
    out->acc_abs_error_rate = share(state->accumulative.small_errors, state->accumulative.small);
}
