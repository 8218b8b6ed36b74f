/* Blocks of one type, straight from memory. */
#include "metric/direct.h"

#include "metric/sums.h"

#include <math.h>

#define LOOP_ENTRY(GROUP, LOOP) {GROUP, LOOP},
#define LOOP_GROUP(GROUP, LOOP) | (GROUP)

/* A block on its way through the direct path. */
struct direct {
    const void *t, *g;
    size_t n;
    uint64_t base;
    unsigned groups;
    struct all_sums sums;                 /* as far as groups need them */
    uint8_t bins[3 * PLUMB_METRIC_BLOCK]; /* likewise */
};

static void direct_relative(struct plumb_metric_state *state, const struct direct *direct)
{
    sums_add_relative(state, &direct->sums.relative);
}

static void direct_ratios(struct plumb_metric_state *state, const struct direct *direct)
{
    sums_add_ratio(state, &direct->sums.ratio);
}

static void direct_close(struct plumb_metric_state *state, const struct direct *direct)
{
    struct close_counts counts = {0};
    if (direct->groups & PLUMB_G_HISTOGRAM)
        counts = direct->sums.close;
    else
        state->kernels.pair_close[state->direct](direct->t, direct->g, direct->n,
                                                 &state->limits.close, &counts);
    sums_add_close(state, &counts);
}

static void direct_absolute(struct plumb_metric_state *state, const struct direct *direct)
{
    sums_add_absolute(state, &direct->sums.absolute);
}

static void direct_ulp(struct plumb_metric_state *state, const struct direct *direct)
{
    if (state->has_ulp)
        sums_add_ulp(state, &direct->sums.ulp);
}

static void direct_small(struct plumb_metric_state *state, const struct direct *direct)
{
    sums_add_small(state, &direct->sums.small);
}

static void direct_kl(struct plumb_metric_state *state, const struct direct *direct)
{
    const struct error_lanes *error = &direct->sums.error;
    kl_block(&state->kl, &state->kernels, (enum kernel_type)state->direct, direct->t, direct->g,
             direct->n, sums_largest_value(error), error->max <= KL_NEAR);
}

static void direct_stats(struct plumb_metric_state *state, const struct direct *direct)
{
    const enum kernel_type type = (enum kernel_type)state->direct;
    const void *sides[] = {direct->t, direct->g};
    double x[PLUMB_METRIC_BLOCK];
    for (int side = 0; side < 2; side++)
        if (!stats_stored(&state->stats[side], &state->kernels, type, sides[side], direct->n,
                          &direct->sums.range[side])) {
            state->kernels.load[type](sides[side], direct->n, x);
            stats_values(&state->stats[side], &state->kernels, x, direct->n);
        }
}

static void direct_histogram(struct plumb_metric_state *state, const struct direct *direct)
{
    for (int i = 0; i < (state->has_ulp ? 3 : 2); i++)
        state->kernels.count_bins(direct->bins + i * PLUMB_METRIC_BLOCK, direct->n,
                                  state->histogram[i].bin);
}

/* Where the largest error is needs the values as float64. */
static void direct_max(struct plumb_metric_state *state, const struct direct *direct)
{
    const struct kernels *k = &state->kernels;
    double wide[3][PLUMB_METRIC_BLOCK];
    if (!sums_is_largest(state, direct->sums.error.max, direct->base))
        return;
    k->load[state->direct](direct->t, direct->n, wide[0]);
    k->load[state->direct](direct->g, direct->n, wide[1]);
    k->difference(wide[0], wide[1], direct->n, wide[2]);
    sums_note_max(state, direct->sums.error.max, wide[2], direct->n, direct->base, NULL);
}

/* The loops of the direct path. Some groups are added up only together, when histograms, which
 * take most of the time, are wanted too; without those they go the general way. */
#define DIRECT_LOOPS(X)                                                                            \
    X(PLUMB_G_RELATIVE, direct_relative)                                                           \
    X(PLUMB_G_CLOSE, direct_close)                                                                 \
    X(PLUMB_G_KL, direct_kl)

#define TOGETHER_LOOPS(X)                                                                          \
    X(PLUMB_G_RATIOS, direct_ratios)                                                               \
    X(PLUMB_G_ABSOLUTE, direct_absolute)                                                           \
    X(PLUMB_G_SMALL, direct_small)                                                                 \
    X(PLUMB_G_ULP, direct_ulp)                                                                     \
    X(PLUMB_G_STATS, direct_stats)                                                                 \
    X(PLUMB_G_HISTOGRAM, direct_histogram)

static const struct {
    unsigned group;
    void (*loop)(struct plumb_metric_state *, const struct direct *);
} direct_loops[] = {DIRECT_LOOPS(LOOP_ENTRY) TOGETHER_LOOPS(LOOP_ENTRY)};
enum {
    DIRECT_GROUPS = PLUMB_G_ERROR | STORED_GROUPS DIRECT_LOOPS(LOOP_GROUP),
    TOGETHER_GROUPS = DIRECT_GROUPS TOGETHER_LOOPS(LOOP_GROUP),
};

static bool goes_direct(const struct plumb_metric_state *state)
{
    const unsigned groups = state->spec.groups;
    const unsigned most = groups & PLUMB_G_HISTOGRAM ? TOGETHER_GROUPS : DIRECT_GROUPS;
    return state->direct >= 0 && state->rule.which == PLUMB_REL_PLAIN && !(groups & ~most);
}

static void direct_sums(const struct plumb_metric_state *state, struct direct *direct)
{
    const struct kernels *k = &state->kernels;
    const int type = state->direct;
    struct all_sums *sums = &direct->sums;
    if (direct->groups & PLUMB_G_HISTOGRAM)
        *sums = (struct all_sums){.absolute.min = state->min_abs, .ulp.max = state->max_ulp};
    else
        sums->error = (struct error_lanes){0};
    sums->relative = (struct relative_counts){.max = state->max_rel};
    if (direct->groups & PLUMB_G_HISTOGRAM) {
        sums->range[0] = sums->range[1] = range_of_nothing();
        k->pair_all[type](direct->t, direct->g, direct->n, &state->limits, sums, direct->bins);
    } else if (direct->groups & PLUMB_G_RELATIVE) {
        k->pair_relative[type](direct->t, direct->g, direct->n, &sums->error, &sums->relative);
    } else {
        k->pair_error[type](direct->t, direct->g, direct->n, &sums->error);
    }
}

bool direct_block(struct plumb_metric_state *state, const void *t, const void *g, size_t n,
                  uint64_t base)
{
    struct direct direct; /* not all of it is used */
    direct.t = t;
    direct.g = g;
    direct.n = n;
    direct.base = base;
    direct.groups = state->spec.groups;
    if (!goes_direct(state))
        return false;
    direct_sums(state, &direct);
    const struct error_lanes *error = &direct.sums.error;
    const double squares = sums_of_squares(error);
    if (!isfinite(squares) || (state->direct == KERNEL_F64 && !sums_are_ordinary(squares)))
        return false;

    state->classes[PLUMB_FINITE][PLUMB_FINITE] += n;
    sums_add_error(&state->sums, error);
    direct_max(state, &direct);
    for (size_t i = 0; i < sizeof direct_loops / sizeof *direct_loops; i++)
        if (direct.groups & direct_loops[i].group)
            direct_loops[i].loop(state, &direct);
    return true;
}
