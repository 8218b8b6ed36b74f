/* Adding pairs of values to a state, block by block, on two paths: straight from memory for few
 * groups of one type, and the general one for everything. */
#include "metric/state.h"

#include "metric/crc.h"
#include "metric/dense.h"

#include <libdeflate.h>
#include <math.h>
#include <string.h>

static double sum4(const double *lanes)
{
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

static double sum8(const double *lanes)
{
    return sum4(lanes) + sum4(lanes + 4);
}

static uint64_t count4(const uint64_t *lanes)
{
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

static uint64_t count8(const uint64_t *lanes)
{
    return count4(lanes) + count4(lanes + 4);
}

static double max4(const double *lanes)
{
    double low = lanes[0] > lanes[1] ? lanes[0] : lanes[1];
    double high = lanes[2] > lanes[3] ? lanes[2] : lanes[3];
    return low > high ? low : high;
}

static void add_error_sums(struct error_sums *sums, const struct error_lanes *lanes)
{
    exact_add(&sums->tg, sum4(lanes->tg));
    exact_add(&sums->tt, sum4(lanes->tt));
    exact_add(&sums->gg, sum4(lanes->gg));
    exact_add(&sums->dd, sum4(lanes->dd));
}

static bool finite_block(const struct error_lanes *lanes)
{
    return isfinite(sum4(lanes->tt) + sum4(lanes->gg));
}

/* Are the squares far enough from both ends of float64? Those of all other types are. */
static bool ordinary_block(const struct error_lanes *lanes)
{
    double size = sum4(lanes->tt) + sum4(lanes->gg);
    return size >= 0x1p-800 && size < 0x1p1000;
}

static void add_relative(struct plumb_metric_state *state, const struct relative_lanes *lanes)
{
    double max = max4(lanes->max);
    if (max > state->max_rel)
        state->max_rel = max;
    state->below_5e3 += count4(lanes->below_5e3);
    state->below_1e3 += count4(lanes->below_1e3);
}

static void add_close(struct plumb_metric_state *state, const struct close_lanes *lanes)
{
    state->close += count8(lanes->close);
    state->greater += count8(lanes->greater);
    state->above += count8(lanes->above);
    state->below += count8(lanes->below);
}

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

/* The squares of finite float64 values may overflow, or vanish; of scaled ones they do not. */
static void add_scaled(struct plumb_metric_state *state, const struct block *block, bool huge)
{
    double factor = huge ? 1 / EXACT_SCALE : EXACT_SCALE;
    double t[PLUMB_METRIC_BLOCK], g[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK];
    for (size_t i = 0; i < block->n; i++) {
        t[i] = block->t[i] * factor;
        g[i] = block->g[i] * factor;
        d[i] = t[i] - g[i];
    }
    struct error_lanes lanes = {0};
    struct error_sums scaled = {0};
    state->kernels.error(t, g, d, block->n, &lanes);
    if (sum4(lanes.tt) + sum4(lanes.gg) == 0)
        return;
    add_error_sums(&scaled, &lanes);
    error_sums_merge(&state->sums, &scaled, huge ? 2 * EXACT_STEP : -2 * EXACT_STEP);
}

/* Is max, of the block that begins at base, the largest so far? Of equals the first is wanted, and
 * parts come in any order. */
static bool is_largest(const struct plumb_metric_state *state, double max, uint64_t base)
{
    return state->max_index == UINT64_MAX || max > state->max_abs ||
           (max == state->max_abs && base < state->max_index);
}

static void note_max(struct plumb_metric_state *state, double max, const double *d, size_t n,
                     uint64_t base, const uint16_t *place)
{
    if (!n || !is_largest(state, max, base))
        return;
    state->max_abs = max;
    for (size_t i = 0; i < n; i++)
        if (fabs(d[i]) == max) {
            state->max_index = base + (place ? place[i] : i);
            return;
        }
}

static void add_absolute(struct plumb_metric_state *state, struct block *block)
{
    struct absolute_lanes lanes = {0};
    for (int l = 0; l < LANES; l++)
        lanes.min[l] = INFINITY;
    state->kernels.absolute(block->d, block->n, &lanes);
    exact_add(&state->abs_sum, sum8(lanes.sum));
    for (int l = 0; l < LANES; l++)
        if (lanes.min[l] < state->min_abs)
            state->min_abs = lanes.min[l];
    for (int k = 0; k < ABS_LIMITS; k++)
        state->abs_over[k] += count8(lanes.over[k]);
}

static void add_ulp(struct plumb_metric_state *state, struct block *block)
{
    if (!state->has_ulp)
        return;
    struct ulp_lanes lanes = {0};
    state->kernels.ulp_tally(block->u, block->n, state->ulp.threshold, &lanes);
    exact_add(&state->ulp_sum, sum8(lanes.sum));
    for (int l = 0; l < LANES; l++)
        if (lanes.max[l] > state->max_ulp)
            state->max_ulp = lanes.max[l];
    state->ulp_over += count8(lanes.over);
}

static void add_relative_errors(struct plumb_metric_state *state, struct block *block)
{
    struct relative_lanes lanes = {0};
    state->kernels.relative_tally(block->r, block->n, &lanes);
    add_relative(state, &lanes);
}

static void add_ratios(struct plumb_metric_state *state, struct block *block)
{
    struct ratio_lanes lanes = {0};
    state->kernels.ratio_tally(block->r, block->n, &lanes);
    exact_add(&state->rel_sum, sum8(lanes.sum));
    state->below_1e2 += count8(lanes.below_1e2);
    state->below_1e4 += count8(lanes.below_1e4);
}

static void add_closeness(struct plumb_metric_state *state, struct block *block)
{
    struct close_lanes lanes = {0};
    struct close_limits limits = {state->spec.rtol, state->spec.atol, state->spec.gt};
    state->kernels.close(block->d, block->g, block->n, &limits, &lanes);
    add_close(state, &lanes);
}

static void add_small(struct plumb_metric_state *state, struct block *block)
{
    struct small_lanes lanes = {0};
    state->kernels.small(block->d, block->g, block->n, state->small, state->small_atol, &lanes);
    state->small_count += count8(lanes.small);
    state->small_errors += count8(lanes.errors);
}

static void add_kl(struct plumb_metric_state *state, struct block *block)
{
    const struct error_lanes *error = &block->error;
    double largest = sqrt(fmax(sum4(error->tt), sum4(error->gg))); /* no value is larger */
    const double *near = block->plain && max4(error->max) <= KL_NEAR ? block->d : NULL;
    kl_block(&state->kl, &state->kernels, block->t, block->g, near, block->n, largest);
}

static void add_histogram(struct plumb_metric_state *state, struct block *block)
{
    const struct kernels *k = &state->kernels;
    k->histogram(block->d, block->n, state->histogram[0].bin);
    k->histogram(block->r, block->n, state->histogram[1].bin);
    if (state->has_ulp)
        k->histogram(block->u, block->n, state->histogram[2].bin);
}

/* The loops of the general path over finite pairs, one for each group. */
#define GENERAL_LOOPS(X)                                                                           \
    X(PLUMB_G_RELATIVE, add_relative_errors)                                                       \
    X(PLUMB_G_RATIOS, add_ratios)                                                                  \
    X(PLUMB_G_CLOSE, add_closeness)                                                                \
    X(PLUMB_G_ABSOLUTE, add_absolute)                                                              \
    X(PLUMB_G_SMALL, add_small)                                                                    \
    X(PLUMB_G_KL, add_kl)                                                                          \
    X(PLUMB_G_ULP, add_ulp)                                                                        \
    X(PLUMB_G_HISTOGRAM, add_histogram)

#define LOOP_ENTRY(GROUP, LOOP) {GROUP, LOOP},
#define LOOP_GROUP(GROUP, LOOP) | (GROUP)

static const struct {
    unsigned group;
    void (*loop)(struct plumb_metric_state *, struct block *);
} general_loops[] = {GENERAL_LOOPS(LOOP_ENTRY)};

enum {
    FINITE_GROUPS = 0 GENERAL_LOOPS(LOOP_GROUP),
    VALUE_GROUPS = PLUMB_G_ERROR | PLUMB_G_STATS | PLUMB_G_PRECHECK, /* by general_block itself */
    STORED_GROUPS = PLUMB_G_CRC | PLUMB_G_BITS, /* by plumb_metric_update, for both paths */
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
    if (!finite_block(&block->error)) {
        keep_finite(state, block);
        block->error = (struct error_lanes){0};
        k->error(block->t, block->g, block->d, block->n, &block->error);
    }
    state->classes[PLUMB_FINITE][PLUMB_FINITE] += block->n;
    if (!block->n)
        return false;
    if (ordinary_block(&block->error))
        add_error_sums(&state->sums, &block->error);
    else
        add_scaled(state, block, !(sum4(block->error.tt) + sum4(block->error.gg) < 1));
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
    if (!block->plain) { /* the rule may have masked errors */
        block->error = (struct error_lanes){0};
        k->error(block->t, block->g, block->d, n, &block->error);
    }
    note_max(state, max4(block->error.max), block->d, n, base, block->moved ? block->place : NULL);
    if (groups & (PLUMB_G_ULP | PLUMB_G_HISTOGRAM) && state->has_ulp) {
        k->ulps(block->d, block->g, n, &state->ulp, block->u);
        rule_ulps(&state->rule, block->d, block->g, n, block->u);
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

/* A block on its way through the direct path. */
struct direct {
    const void *t, *g;
    size_t n;
    uint64_t base;
    struct error_lanes error;
    struct relative_lanes relative; /* where its group is wanted */
};

static void direct_relative(struct plumb_metric_state *state, const struct direct *direct)
{
    add_relative(state, &direct->relative);
}

static void direct_close(struct plumb_metric_state *state, const struct direct *direct)
{
    struct close_lanes lanes = {0};
    struct close_limits limits = {state->spec.rtol, state->spec.atol, state->spec.gt};
    state->kernels.pair_close[state->direct](direct->t, direct->g, direct->n, &limits, &lanes);
    add_close(state, &lanes);
}

/* What needs the values as float64: where the largest error is, and the divergence. */
static void direct_wide(struct plumb_metric_state *state, const struct direct *direct)
{
    const struct kernels *k = &state->kernels;
    const struct error_lanes *error = &direct->error;
    const double max = max4(error->max);
    const size_t n = direct->n;
    double wide[3][PLUMB_METRIC_BLOCK];
    k->load[state->direct](direct->t, n, wide[0]);
    k->load[state->direct](direct->g, n, wide[1]);
    k->difference(wide[0], wide[1], n, wide[2]);
    note_max(state, max, wide[2], n, direct->base, NULL);
    if (state->spec.groups & PLUMB_G_KL) {
        double size = sqrt(fmax(sum4(error->tt), sum4(error->gg)));
        kl_block(&state->kl, k, wide[0], wide[1], max <= KL_NEAR ? wide[2] : NULL, n, size);
    }
}

/* The loops of the direct path. A group that has none here goes the general way. */
#define DIRECT_LOOPS(X)                                                                            \
    X(PLUMB_G_RELATIVE, direct_relative)                                                           \
    X(PLUMB_G_CLOSE, direct_close)                                                                 \
    X(PLUMB_G_KL, direct_wide)

static const struct {
    unsigned group;
    void (*loop)(struct plumb_metric_state *, const struct direct *);
} direct_loops[] = {DIRECT_LOOPS(LOOP_ENTRY)};
enum { DIRECT_GROUPS = PLUMB_G_ERROR | STORED_GROUPS DIRECT_LOOPS(LOOP_GROUP) };

/* Blocks of one type that need few groups go through the combined kernels, straight from memory. */
static bool direct_block(struct plumb_metric_state *state, const void *t, const void *g, size_t n,
                         uint64_t base)
{
    const struct kernels *k = &state->kernels;
    unsigned groups = state->spec.groups;
    int type = state->direct;
    if (type < 0 || state->rule.which != PLUMB_REL_PLAIN || groups & ~(unsigned)DIRECT_GROUPS)
        return false;

    struct direct direct = {.t = t, .g = g, .n = n, .base = base};
    if (groups & PLUMB_G_RELATIVE)
        k->pair_relative[type](t, g, n, &direct.error, &direct.relative);
    else
        k->pair_error[type](t, g, n, &direct.error);
    if (!finite_block(&direct.error) || (type == KERNEL_F64 && !ordinary_block(&direct.error)))
        return false;

    state->classes[PLUMB_FINITE][PLUMB_FINITE] += n;
    add_error_sums(&state->sums, &direct.error);
    if (!(groups & PLUMB_G_KL) && is_largest(state, max4(direct.error.max), base))
        direct_wide(state, &direct);
    for (size_t i = 0; i < sizeof direct_loops / sizeof *direct_loops; i++)
        if (groups & direct_loops[i].group)
            direct_loops[i].loop(state, &direct);
    return true;
}

#define COUNT_DIFFERING(type)                                                                      \
    for (size_t i = 0; i < n; i++) {                                                               \
        type x, y;                                                                                 \
        memcpy(&x, t + i * sizeof x, sizeof x);                                                    \
        memcpy(&y, g + i * sizeof y, sizeof y);                                                    \
        differ += x != y;                                                                          \
    }

static uint64_t differing_elements(const unsigned char *t, const unsigned char *g, size_t n,
                                   unsigned bits)
{
    uint64_t differ = 0;
    switch (bits) {
    case 4:
        for (size_t i = 0; i < n; i++) {
            unsigned x = t[i / 2] ^ g[i / 2];
            differ += (i % 2 ? x >> 4 : x & 15u) != 0;
        }
        break;
    case 8:
        COUNT_DIFFERING(uint8_t)
        break;
    case 16:
        COUNT_DIFFERING(uint16_t)
        break;
    case 32:
        COUNT_DIFFERING(uint32_t)
        break;
    case 64:
        COUNT_DIFFERING(uint64_t)
        break;
    default:
        for (size_t i = 0; i < n; i++)
            differ += memcmp(t + i * bits / 8, g + i * bits / 8, bits / 8) != 0;
    }
    return differ;
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
    struct room room[2];
    struct block block;

    for (uint64_t at = first; at < end;) {
        size_t n = PLUMB_METRIC_BLOCK / most;
        if (n > end - at)
            n = (size_t)(end - at);
        const void *t = dense_block(target, at, n, &room[0]);
        const void *g = dense_block(golden, at, n, &room[1]);

        if (groups & PLUMB_G_CRC) {
            crc[0] = libdeflate_crc32(crc[0], t, (n * bits[0] + 7) / 8);
            crc[1] = libdeflate_crc32(crc[1], g, (n * bits[1] + 7) / 8);
        }
        if (groups & PLUMB_G_BITS)
            state->bits_differ +=
                target->dtype == golden->dtype ? differing_elements(t, g, n, bits[0]) : n;
        if (!direct_block(state, t, g, n * most, at * most)) {
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
    if (groups & PLUMB_G_CRC) {
        state->crc[0] ^= crc_contribution(crc[0], state->bytes[0] - (end * bits[0] + 7) / 8);
        state->crc[1] ^= crc_contribution(crc[1], state->bytes[1] - (end * bits[1] + 7) / 8);
    }
}
