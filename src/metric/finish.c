/* From the sums of a state to metrics. */
#include "metric/state.h"

#include <float.h>
#include <math.h>

/* Pairs that are not both finite, sorted by what they mean. */
struct specials {
    uint64_t equal_inf, both_nan, mismatched;
    double error; /* what they make of an error metric: 0, infinity or NaN */
};

static struct specials count_specials(const struct plumb_metric_state *state)
{
    struct specials s = {0};
    for (int t = 0; t < PLUMB_CLASSES; t++)
        for (int g = 0; g < PLUMB_CLASSES; g++) {
            uint64_t n = state->classes[t][g];
            if (t == g) {
                s.equal_inf += t == PLUMB_POS_INF || t == PLUMB_NEG_INF ? n : 0;
                s.both_nan += t == PLUMB_NAN ? n : 0;
            } else if (n) {
                s.mismatched += n;
                if (t == PLUMB_NAN || g == PLUMB_NAN)
                    s.error = NAN;
                else if (!isnan(s.error))
                    s.error = INFINITY;
            }
        }
    /* The other rules know no equal infinities: there, inf - inf is NaN. */
    enum plumb_relative_rule rule = state->rule.which;
    if (rule == PLUMB_REL_PRECHECK && (s.equal_inf || s.both_nan))
        s.error = NAN;
    if ((rule == PLUMB_REL_TORCHAIR && (s.equal_inf || s.both_nan || s.mismatched)) ||
        (rule == PLUMB_REL_GENERAL && s.mismatched))
        s.error = NAN;
    return s;
}

/* value, unless a pair that is not finite spoils it. */
static double spoiled(const struct specials *s, double value)
{
    return s->error != 0 ? s->error : value;
}

static double quotient(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

/* A mean may be a number though its sum is more than float64 holds. */
static double mean(const struct exact *sum, double n)
{
    const double whole = exact_round(sum);
    if (!isinf(whole))
        return quotient(whole, n);
    return quotient(exact_round_shifted(sum, -EXACT_STEP), n) * EXACT_SCALE;
}

/* A sum of squares as float64 can hold it, and what its root has to be multiplied with. */
struct squares {
    double sum, scale;
};

struct sums {
    double tg, tt, gg, dd;                   /* of one scale */
    struct squares target, golden, distance; /* tt, gg and dd by themselves */
    double product;                          /* tg in the scales of target and golden */
};

/* How a sum of squares that float64 cannot hold, or not with all digits, is shifted. Only the plain
 * rule knows norms that small. */
static int shift_of(const struct plumb_metric_state *state, double size)
{
    const bool tiny = size < 0x1p-700 && state->rule.which == PLUMB_REL_PLAIN;
    return size > 0x1p900 ? -2 * EXACT_STEP : tiny ? 2 * EXACT_STEP : 0;
}

static struct squares shifted(const struct exact *sum, int limbs)
{
    return (struct squares){exact_round_shifted(sum, limbs), limbs < 0   ? EXACT_SCALE
                                                             : limbs > 0 ? 1 / EXACT_SCALE
                                                                         : 1};
}

static struct sums round_sums(const struct plumb_metric_state *state)
{
    const struct error_sums *e = &state->sums;
    const double tt = exact_round(&e->tt), gg = exact_round(&e->gg);
    const int limbs = shift_of(state, tt + gg), of_t = shift_of(state, tt),
              of_g = shift_of(state, gg);
    return (struct sums){exact_round_shifted(&e->tg, limbs),
                         exact_round_shifted(&e->tt, limbs),
                         exact_round_shifted(&e->gg, limbs),
                         exact_round_shifted(&e->dd, limbs),
                         shifted(&e->tt, of_t),
                         shifted(&e->gg, of_g),
                         shifted(&e->dd, shift_of(state, exact_round(&e->dd))),
                         exact_round_shifted(&e->tg, (of_t + of_g) / 2)};
}

/* 1 - cos = (|d|^2 - (|t| - |g|)^2) / (2 |t| |g|): no cancellation where the two are close, which
 * is where the digits are wanted. What rounding does to |t| - |g| is squared, and so cannot be
 * seen. Where d is long, as for vectors of very different lengths, the quotient of the sums is
 * better, each in its own scale: one may be tiny where the other is huge. */
static void finish_cosine(const struct plumb_metric_state *state, const struct sums *s,
                          struct plumb_metrics *out)
{
    double t = sqrt(s->tt), g = sqrt(s->gg);
    enum plumb_relative_rule rule = state->rule.which;
    double none = rule == PLUMB_REL_GENERAL ? 0x1p-52 : 0; /* a norm up to this is that of zeros */
    const double own_t = sqrt(s->target.sum), own_g = sqrt(s->golden.sum);
    const bool no_t = own_t * s->target.scale <= none, no_g = own_g * s->golden.scale <= none;
    if (no_t || no_g) {
        bool both = no_t && no_g;
        out->cosine = both ? 1 : rule == PLUMB_REL_GENERAL ? NAN : 0;
        out->one_minus_cosine = 1 - out->cosine;
        return;
    }
    if (rule == PLUMB_REL_TORCHAIR && (t < 1e-8 || g < 1e-8)) {
        out->cosine = s->tg / (fmax(t, 1e-8) * fmax(g, 1e-8));
        out->one_minus_cosine = 1 - out->cosine;
        return;
    }
    double direct = s->product / (own_t * own_g);
    double gap = (s->tt - s->gg) / (t + g);
    double away = (s->dd - gap * gap) / (2 * t * g);
    bool near = s->dd < 2 * t * g;
    if (away < 0)
        away = 0;
    if (direct < -1 || direct > 1)
        direct = copysign(1, direct);
    out->cosine = near ? 1 - away : direct;
    out->one_minus_cosine = near ? away : 1 - direct;
}

static double relative_euclidean(const struct plumb_metric_state *state, const struct sums *s)
{
    const struct squares *d = &s->distance, *g = &s->golden;
    if (state->rule.which != PLUMB_REL_TORCHAIR && !(g->sum > 0))
        return d->sum > 0 ? INFINITY : 0;
    const double square = d->sum / g->sum;
    const bool ordinary = square > 0x1p-900 && square < 0x1p900;
    if (state->rule.which != PLUMB_REL_TORCHAIR && d->scale == g->scale)
        return ordinary ? sqrt(square) : sqrt(d->sum) / sqrt(g->sum);
    if (state->rule.which != PLUMB_REL_TORCHAIR)
        return sqrt(d->sum) / sqrt(g->sum) * d->scale / g->scale;
    if (sqrt(s->gg) <= state->rule.eps)
        return 0;
    double dd = s->dd > FLT_MAX ? INFINITY : s->dd, gg = s->gg > FLT_MAX ? INFINITY : s->gg;
    return sqrt(dd / gg);
}

static void finish_histograms(const struct plumb_metric_state *state, const struct specials *s,
                              struct plumb_metrics *out)
{
    struct plumb_histogram *histograms[3] = {&out->abs_histogram, &out->rel_histogram,
                                             &out->ulp_histogram};
    for (int which = 0; which < (state->has_ulp ? 3 : 2); which++) {
        *histograms[which] = state->histogram[which];
        histograms[which]->bin[0] += s->equal_inf + s->both_nan;
        histograms[which]->bin[HISTOGRAM_BINS - 1] += s->mismatched;
    }
}

/* The pre-check's ULPs: a golden infinity has no exponent, which makes NaN of them; only an
 * infinite target against a number is counted. */
static void precheck_ulps(const struct plumb_metric_state *state, struct plumb_metrics *out)
{
    const uint64_t(*c)[PLUMB_CLASSES] = state->classes;
    uint64_t infinite = c[PLUMB_POS_INF][PLUMB_FINITE] + c[PLUMB_NEG_INF][PLUMB_FINITE];
    uint64_t other = out->count - c[PLUMB_FINITE][PLUMB_FINITE] - infinite;
    out->ulp_over = state->ulp_over + infinite;
    double sum = exact_round(&state->ulp_sum);
    if (other || isnan(sum))
        out->max_ulp = out->mean_ulp = NAN;
    else if (infinite)
        out->max_ulp = out->mean_ulp = INFINITY;
}

void plumb_metric_finish(const struct plumb_metric_state *state, struct plumb_metrics *out)
{
    unsigned groups = state->spec.groups;
    struct specials special = count_specials(state);
    const struct specials *s = &special;
    struct sums sums = round_sums(state);

    *out = (struct plumb_metrics){0};
    for (int t = 0; t < PLUMB_CLASSES; t++)
        for (int g = 0; g < PLUMB_CLASSES; g++) {
            out->classes[t][g] = state->classes[t][g];
            out->count += state->classes[t][g];
        }
    out->nonfinite_mismatch = s->mismatched;
    out->integers = state->integers;
    double n = (double)out->count;

    /* Pairs that are equal though not finite have no error; whether two NaNs are is an option. */
    uint64_t equal = s->equal_inf + (state->spec.equal_nan ? s->both_nan : 0);
    uint64_t different = s->mismatched + (state->spec.equal_nan ? 0 : s->both_nan);

    /* ... but for the pre-check, whose relative error of inf and inf is NaN. */
    uint64_t near = state->rule.which == PLUMB_REL_PRECHECK ? 0 : equal;

    finish_cosine(state, &sums, out);
    if (s->error != 0 || !out->count)
        out->cosine = out->one_minus_cosine = NAN;
    out->euclidean = spoiled(s, sqrt(sums.distance.sum) * sums.distance.scale);
    out->relative_euclidean = spoiled(s, relative_euclidean(state, &sums));
    out->rmse = spoiled(s, sqrt(quotient(sums.distance.sum, n)) * sums.distance.scale);
    out->max_abs = spoiled(s, out->count ? state->max_abs : NAN);
    if (state->rule.which == PLUMB_REL_GENERAL &&
        out->count == 1) /* there, in the data's own type */
        out->max_abs = rule_own_type(&state->rule, state->target, state->golden, out->max_abs);
    out->max_abs_index = state->max_index == UINT64_MAX ? out->count : state->max_index;

    out->mean_abs = out->min_abs = out->max_rel = out->mean_rel = NAN;
    out->max_ulp = out->mean_ulp = out->kl = NAN;
    if (groups & PLUMB_G_RELATIVE) {
        out->max_rel = spoiled(s, out->count ? state->max_rel : NAN);
        out->rel_below_5e3 = state->below_5e3 + near;
        out->rel_below_1e3 = state->below_1e3 + near;
    }
    if (groups & PLUMB_G_RATIOS) {
        out->mean_rel = spoiled(s, mean(&state->rel_sum, n));
        out->rel_below_1e2 = state->below_1e2 + near;
        out->rel_below_1e4 = state->below_1e4 + near;
    }
    if (groups & PLUMB_G_CLOSE) {
        uint64_t gap =
            state->above > state->below ? state->above - state->below : state->below - state->above;
        out->close = state->close + equal;
        out->greater = state->greater + different;
        out->above = state->above;
        out->below = state->below;
        out->unequal = state->above + state->below + different;
        out->error_balance = quotient((double)gap, n);
    }
    if (groups & PLUMB_G_ABSOLUTE) {
        out->mean_abs = spoiled(s, mean(&state->abs_sum, n));
        out->min_abs = isinf(state->min_abs) && !isinf(state->max_abs) ? 0 : state->min_abs;
        for (int k = 0; k < ABS_LIMITS; k++)
            out->abs_over[k] = state->abs_over[k] + different;
    }
    if (groups & PLUMB_G_ULP && state->has_ulp) {
        out->max_ulp = spoiled(s, out->count ? state->max_ulp : NAN);
        out->mean_ulp = spoiled(s, mean(&state->ulp_sum, n));
        out->ulp_over = state->ulp_over + different;
        if (state->rule.which == PLUMB_REL_PRECHECK)
            precheck_ulps(state, out);
    }
    if (groups & PLUMB_G_STATS) {
        stats_finish(&state->stats[0], &out->target);
        stats_finish(&state->stats[1], &out->golden);
    }
    if (groups & PLUMB_G_SMALL) {
        out->small = state->small_count;
        out->small_errors = state->small_errors;
    }
    if (groups & PLUMB_G_KL)
        out->kl = s->error != 0 ? NAN : kl_finish(&state->kl);
    if (groups & PLUMB_G_BITS)
        out->bits_differ = state->bits_differ;
    if (groups & PLUMB_G_CRC) {
        out->target_crc = state->crc[0];
        out->golden_crc = state->crc[1];
    }
    if (groups & PLUMB_G_HISTOGRAM)
        finish_histograms(state, s, out);
    if (groups & PLUMB_G_PRECHECK)
        precheck_finish(&state->precheck, out);
}

enum plumb_code plumb_metric_pair(const struct plumb_metric_spec *spec,
                                  const struct plumb_tensor *target,
                                  const struct plumb_tensor *golden, struct plumb_metrics *out,
                                  struct plumb_error *err)
{
    if (target->count != golden->count)
        return plumb_fail(err, PLUMB_E_ARG, "%llu elements against %llu",
                          (unsigned long long)target->count, (unsigned long long)golden->count);
    struct plumb_metric_state *state =
        plumb_metric_new(spec, target->dtype, golden->dtype, target->count);
    if (!state)
        return plumb_no_memory(err);
    plumb_metric_update(state, target, golden, 0, target->count);
    plumb_metric_finish(state, out);
    plumb_metric_free(state);
    return PLUMB_OK;
}
