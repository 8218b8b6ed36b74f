/* Beginning and merging metric states. */
#include "metric/state.h"

#include "metric/bytes.h"
#include "metric/classes.h"
#include "metric/dense.h"

#include <math.h>
#include <stdlib.h>

void plumb_metric_spec_init(struct plumb_metric_spec *spec)
{
    *spec = (struct plumb_metric_spec){
        .groups = PLUMB_G_ERROR, .rtol = 1e-3, .atol = 1e-5, .equal_nan = true};
}

static bool is_float(enum plumb_dtype dtype)
{
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    return kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX;
}

/* Everything that does not depend on the data. */
static void state_setup(struct plumb_metric_state *state, const struct plumb_metric_spec *spec,
                        enum plumb_dtype target, enum plumb_dtype golden, uint64_t count)
{
    state->spec = *spec;
    state->integers = !is_float(target) && !is_float(golden);
    if (state->integers) /* for them a small difference is no rounding, so it is always counted */
        state->spec.groups |= PLUMB_G_CLOSE;
    state->target = target;
    state->golden = golden;
    plumb_dtype_bytes(target, count, &state->bytes[0]);
    plumb_dtype_bytes(golden, count, &state->bytes[1]);
    state->kernels = kernels_current();
    state->direct = target == golden ? kernel_type_of(target) : -1;
    state->words = target == golden ? bytes_words(target) : NULL;
    if (state->words)
        state->direct = KERNEL_BF16;
    rule_init(&state->rule, spec->relative, target, golden);
    precheck_init(&state->precheck, spec, target, golden);
    state->limits.small = (struct small_limits){state->precheck.small, state->precheck.atol};
    state->limits.close = (struct close_limits){spec->rtol, spec->atol, spec->gt};
    state->limits.abs = abs_classes();
    state->limits.ratio = ratio_classes();
    state->max_index = UINT64_MAX;
    state->min_abs = INFINITY;

    /* ULPs of the target's type; of the golden one's when only that is a float. */
    enum plumb_dtype unit = is_float(target) ? target : golden;
    const struct plumb_dtype_info *info = plumb_dtype_info(unit);
    state->has_ulp = is_float(unit);
    state->limits.ulp =
        (struct ulp_scale){.precision = info->precision,
                           .emin = info->emin,
                           .threshold = spec->ulp_threshold > 0 ? spec->ulp_threshold
                                        : info->precision >= 23 ? 32
                                                                : 1};
}

struct plumb_metric_state *plumb_metric_new(const struct plumb_metric_spec *spec,
                                            enum plumb_dtype target, enum plumb_dtype golden,
                                            uint64_t count)
{
    struct plumb_metric_state *state = calloc(1, sizeof *state);
    if (state)
        state_setup(state, spec, target, golden, count);
    return state;
}

void plumb_metric_free(struct plumb_metric_state *state)
{
    free(state);
}

static void merge_errors(struct error_sums *sums, const struct error_sums *other)
{
    exact_merge(&sums->tg, &other->tg);
    exact_merge(&sums->tt, &other->tt);
    exact_merge(&sums->gg, &other->gg);
    exact_merge(&sums->dd, &other->dd);
}

static double larger(double a, double b)
{
    return b > a ? b : a;
}

void plumb_metric_merge(struct plumb_metric_state *state, const struct plumb_metric_state *other)
{
    for (int t = 0; t < PLUMB_CLASSES; t++)
        for (int g = 0; g < PLUMB_CLASSES; g++)
            state->classes[t][g] += other->classes[t][g];
    merge_errors(&state->sums, &other->sums);

    /* Of equal errors, the one that comes first. */
    if (other->max_index != UINT64_MAX &&
        (state->max_index == UINT64_MAX || other->max_abs > state->max_abs ||
         (other->max_abs == state->max_abs && other->max_index < state->max_index))) {
        state->max_abs = other->max_abs;
        state->max_index = other->max_index;
    }
    state->max_rel = larger(state->max_rel, other->max_rel);
    state->below_1e2 += other->below_1e2;
    state->below_5e3 += other->below_5e3;
    state->below_1e3 += other->below_1e3;
    state->below_1e4 += other->below_1e4;
    exact_merge(&state->rel_sum, &other->rel_sum);

    state->close += other->close;
    state->greater += other->greater;
    state->above += other->above;
    state->below += other->below;

    exact_merge(&state->abs_sum, &other->abs_sum);
    if (other->min_abs < state->min_abs)
        state->min_abs = other->min_abs;
    for (int k = 0; k < ABS_LIMITS; k++)
        state->abs_over[k] += other->abs_over[k];

    exact_merge(&state->ulp_sum, &other->ulp_sum);
    state->max_ulp = larger(state->max_ulp, other->max_ulp);
    state->ulp_over += other->ulp_over;
    state->small_count += other->small_count;
    state->small_errors += other->small_errors;

    for (int side = 0; side < 2; side++) {
        stats_merge(&state->stats[side], &other->stats[side]);
        state->crc[side] ^= other->crc[side];
    }
    kl_merge(&state->kl, &other->kl);
    state->bits_differ += other->bits_differ;
    for (int which = 0; which < 3; which++)
        for (int bin = 0; bin < HISTOGRAM_BINS; bin++)
            state->histogram[which].bin[bin] += other->histogram[which].bin[bin];
    precheck_merge(&state->precheck, &other->precheck);
}

void plumb_tensor_stats(const struct plumb_tensor *tensor, struct plumb_stats *out)
{
    struct stats_state stats = {0};
    struct kernels kernels = kernels_current();
    if (tensor->count)
        stats_tensor(&stats, &kernels, tensor, 0, tensor->count);
    stats_finish(&stats, out);
}
