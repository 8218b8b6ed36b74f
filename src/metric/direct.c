/* Blocks of one type, straight from memory. */
#include "metric/direct.h"

#include "metric/edges.h"
#include "metric/sums.h"

#include <math.h>
#include <string.h>

#define LOOP_ENTRY(GROUP, LOOP) {GROUP, LOOP},
#define LOOP_GROUP(GROUP, LOOP) | (GROUP)

/* A block on its way through the direct path. */
struct direct {
    const void *t, *g;
    size_t n;
    uint64_t base;
    unsigned groups;
    struct size_counts *counts;
    struct all_sums sums;                    /* as far as groups need them */
    uint8_t classes[3 * PLUMB_METRIC_BLOCK]; /* likewise */
};

static void direct_relative(struct plumb_metric_state *state, struct direct *direct)
{
    sums_add_relative(state, &direct->sums.relative);
}

/* Ratios whose sum alone is infinite, once more as numbers. */
static void huge_ratios(struct plumb_metric_state *state, struct direct *direct)
{
    const struct kernels *k = &state->kernels;
    double t[PLUMB_METRIC_BLOCK], g[PLUMB_METRIC_BLOCK];
    k->load[state->direct](direct->t, direct->n, t);
    k->load[state->direct](direct->g, direct->n, g);
    k->difference(t, g, direct->n, t);
    k->relative(t, g, direct->n, t);
    edges_add_ratios(state, t, direct->n, &direct->sums.ratio);
}

static void direct_ratios(struct plumb_metric_state *state, struct direct *direct)
{
    if (isinf(sums_lanes(direct->sums.ratio.sum)) && isfinite(direct->sums.relative.max))
        huge_ratios(state, direct);
    sums_add_ratio(state, &direct->sums.ratio);
}

static void direct_close(struct plumb_metric_state *state, struct direct *direct)
{
    struct close_counts counts = {0};
    if (direct->groups & PLUMB_G_HISTOGRAM)
        counts = direct->sums.close;
    else
        state->kernels.pair_close[state->direct](direct->t, direct->g, direct->n,
                                                 &state->limits.close, &counts);
    sums_add_close(state, &counts);
}

static void direct_absolute(struct plumb_metric_state *state, struct direct *direct)
{
    sums_add_absolute(state, &direct->sums.absolute);
}

static void direct_ulp(struct plumb_metric_state *state, struct direct *direct)
{
    if (state->has_ulp)
        sums_add_ulp(state, &direct->sums.ulp);
}

static void direct_small(struct plumb_metric_state *state, struct direct *direct)
{
    sums_add_small(state, &direct->sums.small);
}

static void direct_kl(struct plumb_metric_state *state, struct direct *direct)
{
    const struct error_lanes *error = &direct->sums.error;
    kl_block(&state->kl, &state->kernels, (enum kernel_type)state->direct, direct->t, direct->g,
             direct->n, sums_largest_value(error), error->max <= KL_NEAR);
}

/* Deviations from 0 are the values, whose sums are there already. */
static struct centre_lanes centre_of(const struct plumb_metric_state *state,
                                     const struct direct *direct, int side, double middle)
{
    const void *data = side ? direct->g : direct->t;
    const struct error_lanes *error = &direct->sums.error;
    struct centre_lanes centre = {.sum = {0}};
    if (middle != 0) {
        state->kernels.centre[state->direct](data, direct->n, middle, &centre);
    } else {
        memcpy(centre.sum, direct->sums.range[side].sum, sizeof centre.sum);
        memcpy(centre.squares, side ? error->gg : error->tt, sizeof centre.squares);
    }
    return centre;
}

static void one_side(struct plumb_metric_state *state, const struct direct *direct, int side)
{
    const void *data = side ? direct->g : direct->t;
    const struct range_lanes *range = &direct->sums.range[side];
    struct stats_state *stats = &state->stats[side];
    double middle, x[PLUMB_METRIC_BLOCK];
    if (stats_middle(range, direct->n, &middle)) {
        const struct centre_lanes centre = centre_of(state, direct, side, middle);
        stats_add(stats, direct->n, range, middle, &centre);
    } else {
        state->kernels.load[state->direct](data, direct->n, x);
        stats_values(stats, &state->kernels, x, direct->n);
    }
}

static void direct_stats(struct plumb_metric_state *state, struct direct *direct)
{
    one_side(state, direct, 0);
    one_side(state, direct, 1);
}

/* Of which the limits are, too. */
static void direct_histogram(struct plumb_metric_state *state, struct direct *direct)
{
    const uint8_t *classes = direct->classes, top = top_class(state->limits.abs.limits);
    const uint8_t ratio_top = top_class(state->limits.ratio.limits);
    const size_t n = direct->n;
    struct size_counts *counts = direct->counts;
    state->kernels.count_bins(classes, n, top, counts->abs);
    state->kernels.count_bins(classes + PLUMB_METRIC_BLOCK, n, ratio_top, counts->ratio);
    if (state->has_ulp)
        state->kernels.count_bins(classes + 2 * PLUMB_METRIC_BLOCK, n, top_class(0),
                                  state->histogram[2].bin);
}

/* Where the largest error is needs the values as float64. */
static void direct_max(struct plumb_metric_state *state, struct direct *direct)
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
    void (*loop)(struct plumb_metric_state *, struct direct *);
} direct_loops[] = {TOGETHER_LOOPS(LOOP_ENTRY) DIRECT_LOOPS(LOOP_ENTRY)};
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
        k->pair_all[type](direct->t, direct->g, direct->n, &state->limits, sums, direct->classes);
    } else if (direct->groups & PLUMB_G_RELATIVE) {
        k->pair_relative[type](direct->t, direct->g, direct->n, &sums->error, &sums->relative);
    } else {
        k->pair_error[type](direct->t, direct->g, direct->n, &sums->error);
    }
}

bool direct_block(struct plumb_metric_state *state, const void *t, const void *g, size_t n,
                  uint64_t base, struct size_counts *counts)
{
    struct direct direct; /* not all of it is used */
    uint16_t wide[2][PLUMB_METRIC_BLOCK];
    if (!goes_direct(state))
        return false;
    if (state->words) {
        state->kernels.widen(state->words, t, n, wide[0]);
        state->kernels.widen(state->words, g, n, wide[1]);
    }
    direct.t = state->words ? wide[0] : t;
    direct.g = state->words ? wide[1] : g;
    direct.n = n;
    direct.base = base;
    direct.groups = state->spec.groups;
    direct.counts = counts;
    direct_sums(state, &direct);
    const struct error_lanes *error = &direct.sums.error;
    const double squares = sums_of_squares(error);
    if (!isfinite(squares) || (state->direct == KERNEL_F64 && !sums_are_all_ordinary(error)))
        return false;

    state->classes[PLUMB_FINITE][PLUMB_FINITE] += n;
    sums_add_error(&state->sums, error);
    direct_max(state, &direct);
    for (size_t i = 0; i < sizeof direct_loops / sizeof *direct_loops; i++)
        if (direct.groups & direct_loops[i].group)
            direct_loops[i].loop(state, &direct);
    return true;
}

void direct_finish(struct plumb_metric_state *state, const struct size_counts *counts)
{
    uint64_t over[CLASS_LIMITS] = {0}, reached[CLASS_LIMITS] = {0}, ratios = 0;
    if (!goes_direct(state) || !(state->spec.groups & PLUMB_G_HISTOGRAM))
        return;
    classes_unfold(&state->limits.abs, counts->abs, state->histogram[0].bin, over);
    classes_unfold(&state->limits.ratio, counts->ratio, state->histogram[1].bin, reached);
    for (int k = 0; k < ABS_LIMITS; k++)
        state->abs_over[k] += over[ABS_LIMITS - 1 - k];
    for (int class = 0; class < CLASSES; class ++)
        ratios += counts->ratio[class];
    state->below_1e4 += ratios - reached[0];
    state->below_1e3 += ratios - reached[1];
    state->below_5e3 += ratios - reached[2];
    state->below_1e2 += ratios - reached[3];
}
