/* Adding pairs of values to a state, block by block, on two paths: straight from memory for pairs
 * of one type (direct.c), and the general one for everything. */
#include "metric/state.h"

#include "metric/crc.h"
#include "metric/dense.h"
#include "metric/direct.h"
#include "metric/edges.h"
#include "metric/sums.h"

#include <math.h>
#include <string.h>

static enum plumb_class class_of(double x)
{
    return isfinite(x) ? PLUMB_FINITE
           : isnan(x)  ? PLUMB_NAN
           : x > 0     ? PLUMB_POS_INF
                       : PLUMB_NEG_INF;
}

/* A block on its way through the general path. */
struct block {
    double t[PLUMB_METRIC_BLOCK], g[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK];
    double r[PLUMB_METRIC_BLOCK], u[PLUMB_METRIC_BLOCK];
    uint16_t place[PLUMB_METRIC_BLOCK]; /* where a kept pair stood, once others were taken out */
    bool moved;                         /* place is in use */
    bool wide;                          /* d is more exact than t - g */
    bool plain;                         /* no rule changes errors */
    struct error_lanes error;
    size_t n;
};

/* Takes out the pairs that are not finite, counting what they were. */
static void keep_finite(struct plumb_metric_state *state, struct block *block)
{
    size_t kept = 0;
    for (size_t i = 0; i < block->n; i++) {
        enum plumb_class t = class_of(block->t[i]), g = class_of(block->g[i]);
        if (t == PLUMB_FINITE && g == PLUMB_FINITE) {
            block->t[kept] = block->t[i];
            block->g[kept] = block->g[i];
            block->d[kept] = block->d[i];
            block->place[kept++] = (uint16_t)i;
        } else if (rule_takes_as_zero(&state->rule, t, g)) {
            block->t[kept] = block->g[kept] = block->d[kept] = 0;
            block->place[kept++] = (uint16_t)i;
        } else {
            state->classes[t][g]++;
        }
    }
    block->moved = true;
    block->n = kept;
}

static void block_absolute(struct plumb_metric_state *state, struct block *block)
{
    struct absolute_lanes lanes = {.min = state->min_abs};
    state->kernels.absolute(block->d, block->n, &lanes);
    if (!isfinite(sums_lanes(lanes.sum)))
        edges_add_absolute(state, block->t, block->g, block->n, &lanes);
    sums_add_absolute(state, &lanes);
}

static void block_ulp(struct plumb_metric_state *state, struct block *block)
{
    struct ulp_lanes lanes = {.max = state->max_ulp};
    if (!state->has_ulp)
        return;
    state->kernels.ulp_tally(block->u, block->n, state->limits.ulp.threshold, &lanes);
    sums_add_ulp(state, &lanes);
}

static void block_relative(struct plumb_metric_state *state, struct block *block)
{
    struct relative_counts counts = {.max = state->max_rel};
    state->kernels.relative_tally(block->r, block->n, &counts);
    sums_add_relative(state, &counts);
}

static void block_ratios(struct plumb_metric_state *state, struct block *block)
{
    struct ratio_lanes lanes = {0};
    state->kernels.ratio_tally(block->r, block->n, &lanes);
    if (!isfinite(sums_lanes(lanes.sum)))
        edges_add_ratios(state, block->r, block->n, &lanes);
    sums_add_ratio(state, &lanes);
}

static void block_close(struct plumb_metric_state *state, struct block *block)
{
    struct close_counts counts = {0};
    state->kernels.close(block->d, block->g, block->n, &state->limits.close, &counts);
    sums_add_close(state, &counts);
}

static void block_small(struct plumb_metric_state *state, struct block *block)
{
    struct small_counts counts = {0};
    state->kernels.small(block->d, block->g, block->n, &state->limits.small, &counts);
    sums_add_small(state, &counts);
}

static void block_kl(struct plumb_metric_state *state, struct block *block)
{
    const bool near = block->plain && block->error.max <= KL_NEAR;
    kl_block(&state->kl, &state->kernels, KERNEL_F64, block->t, block->g, block->n,
             sums_largest_value(&block->error), near);
}

static void block_histogram(struct plumb_metric_state *state, struct block *block)
{
    const struct kernels *k = &state->kernels;
    const double *sizes[] = {block->d, block->r, state->has_ulp ? block->u : NULL};
    uint8_t bins[PLUMB_METRIC_BLOCK];
    for (int i = 0; i < 3 && sizes[i]; i++) {
        k->find_bins(sizes[i], block->n, bins);
        k->count_bins(bins, block->n, top_class(0), state->histogram[i].bin);
    }
}

/* The loops of the general path over finite pairs, one for each group. */
#define GENERAL_LOOPS(X)                                                                           \
    X(PLUMB_G_RELATIVE, block_relative)                                                            \
    X(PLUMB_G_RATIOS, block_ratios)                                                                \
    X(PLUMB_G_CLOSE, block_close)                                                                  \
    X(PLUMB_G_ABSOLUTE, block_absolute)                                                            \
    X(PLUMB_G_SMALL, block_small)                                                                  \
    X(PLUMB_G_KL, block_kl)                                                                        \
    X(PLUMB_G_ULP, block_ulp)                                                                      \
    X(PLUMB_G_HISTOGRAM, block_histogram)

#define LOOP_ENTRY(GROUP, LOOP) {GROUP, LOOP},
#define LOOP_GROUP(GROUP, LOOP) | (GROUP)

static const struct {
    unsigned group;
    void (*loop)(struct plumb_metric_state *, struct block *);
} general_loops[] = {GENERAL_LOOPS(LOOP_ENTRY)};

enum {
    FINITE_GROUPS = 0 GENERAL_LOOPS(LOOP_GROUP),
    VALUE_GROUPS = PLUMB_G_ERROR | PLUMB_G_STATS | PLUMB_G_PRECHECK, /* by general_block itself */
};
_Static_assert((FINITE_GROUPS | VALUE_GROUPS | STORED_GROUPS) == (PLUMB_G_ALL | PLUMB_G_PRECHECK),
               "every group needs a loop in the general path");

/* The sums that all groups build on. False when no pair is left. */
static bool general_errors(struct plumb_metric_state *state, struct block *block)
{
    const struct kernels *k = &state->kernels;
    block->error = (struct error_lanes){0};
    k->error(block->t, block->g, block->d, block->n, &block->error);
    if (state->spec.groups & PLUMB_G_STATS) {
        stats_values(&state->stats[0], k, block->t, block->n);
        stats_values(&state->stats[1], k, block->g, block->n);
    }
    if (!isfinite(sums_of_squares(&block->error))) {
        keep_finite(state, block);
        block->error = (struct error_lanes){0};
        k->error(block->t, block->g, block->d, block->n, &block->error);
    }
    state->classes[PLUMB_FINITE][PLUMB_FINITE] += block->n;
    if (!block->n)
        return false;
    if (sums_are_all_ordinary(&block->error))
        sums_add_error(&state->sums, &block->error);
    else
        edges_add_error(state, block->t, block->g, block->d, block->n, &block->error);
    return true;
}

/* All groups, for a block of values in block->t and block->g (and block->d when wide). */
static void general_block(struct plumb_metric_state *state, struct block *block, uint64_t base)
{
    const struct kernels *k = &state->kernels;
    unsigned groups = state->spec.groups;

    rule_values(&state->rule, block->t, block->g, block->n);
    if (groups & PLUMB_G_PRECHECK)
        precheck_block(&state->precheck, block->t, block->g, block->n);
    if (!block->wide)
        k->difference(block->t, block->g, block->n, block->d);
    if (!general_errors(state, block))
        return;

    size_t n = block->n;
    block->plain = state->rule.which == PLUMB_REL_PLAIN;
    bool needs_r = groups & (PLUMB_G_RELATIVE | PLUMB_G_RATIOS | PLUMB_G_HISTOGRAM);
    if (!block->plain)
        rule_relative(&state->rule, block->t, block->g, n, block->d, block->r);
    else if (needs_r)
        k->relative(block->d, block->g, n, block->r);
    const bool infinite = block->plain && isinf(block->error.max);
    if (infinite && needs_r)
        edges_relative(k, block->t, block->g, block->d, n, block->r);
    if (!block->plain) { /* the rule may have masked errors */
        block->error = (struct error_lanes){0};
        k->error(block->t, block->g, block->d, n, &block->error);
    }
    sums_note_max(state, block->error.max, block->d, n, base, block->moved ? block->place : NULL);
    if (groups & (PLUMB_G_ULP | PLUMB_G_HISTOGRAM) && state->has_ulp) {
        k->ulps(block->d, block->g, n, &state->limits.ulp, block->u);
        rule_ulps(&state->rule, block->d, block->g, n, block->u);
        if (infinite)
            edges_ulps(k, block->t, block->g, block->d, n, &state->limits.ulp, block->u);
    }
    for (size_t i = 0; i < sizeof general_loops / sizeof *general_loops; i++)
        if (groups & general_loops[i].group)
            general_loops[i].loop(state, block);
}

static bool is_int64(enum plumb_dtype dtype)
{
    return dtype == PLUMB_I64 || dtype == PLUMB_U64;
}

/* 64-bit integers beyond 2^53 lose digits in float64, so they are taken as the sum of two. */
struct parts {
    double high, low;
};

static struct parts exact_value(enum plumb_dtype dtype, const void *data, double rounded, size_t i)
{
    uint64_t bits;
    if (!is_int64(dtype))
        return (struct parts){rounded, 0};
    memcpy(&bits, (const char *)data + i * sizeof bits, sizeof bits);
    const uint64_t low = bits & 0x7ff, high = bits - low; /* 53 bits are left */
    return (struct parts){dtype == PLUMB_U64 ? (double)high : (double)(int64_t)high, (double)low};
}

/* x - y, rounded once where both are integers. */
static double exact_difference(struct parts x, struct parts y)
{
    const double d = x.high - y.high, part = d - x.high;
    const double lost = (x.high - (d - part)) - (y.high + part);
    return isfinite(d) ? d + (lost + (x.low - y.low)) : d;
}

static void exact_differences(const struct plumb_metric_state *state, const void *t, const void *g,
                              struct block *block)
{
    for (size_t i = 0; i < block->n; i++)
        block->d[i] = exact_difference(exact_value(state->target, t, block->t[i], i),
                                       exact_value(state->golden, g, block->g[i], i));
    block->wide = true;
}

/* Real values beside complex ones: as complex numbers without an imaginary part. */
static void pad_imaginary(double *x, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        x[2 * i] = x[i];
        x[2 * i + 1] = 0;
    }
}

void plumb_metric_update(struct plumb_metric_state *state, const struct plumb_tensor *target,
                         const struct plumb_tensor *golden, uint64_t first, uint64_t count)
{
    if (first >= target->count)
        return;
    uint64_t end = count < target->count - first ? first + count : target->count;
    unsigned groups = state->spec.groups;
    unsigned parts[2] = {plumb_dtype_parts(target->dtype), plumb_dtype_parts(golden->dtype)};
    unsigned most = parts[0] > parts[1] ? parts[0] : parts[1];
    unsigned bits[2] = {plumb_dtype_info(target->dtype)->bits,
                        plumb_dtype_info(golden->dtype)->bits};
    uint32_t crc[2] = {0, 0};
    struct size_counts counts = {0};
    struct room room[2];
    struct block block;

    for (uint64_t at = first; at < end;) {
        size_t n = PLUMB_METRIC_BLOCK / most;
        if (n > end - at)
            n = (size_t)(end - at);
        const void *t = dense_block(target, at, n, &room[0]);
        const void *g = dense_block(golden, at, n, &room[1]);

        if (groups & PLUMB_G_CRC) {
            crc[0] = state->kernels.crc32(crc[0], t, (n * bits[0] + 7) / 8);
            crc[1] = state->kernels.crc32(crc[1], g, (n * bits[1] + 7) / 8);
        }
        if (groups & PLUMB_G_BITS)
            state->bits_differ +=
                target->dtype == golden->dtype ? state->kernels.differing(t, g, n, bits[0]) : n;
        if (!direct_block(state, t, g, n * most, at * most, &counts)) {
            block.n = n * most;
            block.moved = block.wide = false;
            dense_load(&state->kernels, target->dtype, t, n * parts[0], block.t);
            dense_load(&state->kernels, golden->dtype, g, n * parts[1], block.g);
            if (parts[0] != parts[1])
                pad_imaginary(parts[0] < parts[1] ? block.t : block.g, n);
            if ((is_int64(target->dtype) || is_int64(golden->dtype)) && most == 1 &&
                state->rule.which != PLUMB_REL_TORCHAIR)
                exact_differences(state, t, g, &block);
            general_block(state, &block, at * most);
        }
        at += n;
    }
    direct_finish(state, &counts);
    if (groups & PLUMB_G_CRC) {
        state->crc[0] ^= crc_contribution(crc[0], state->bytes[0] - (end * bits[0] + 7) / 8);
        state->crc[1] ^= crc_contribution(crc[1], state->bytes[1] - (end * bits[1] + 7) / 8);
    }
}
