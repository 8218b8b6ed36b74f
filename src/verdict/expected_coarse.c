/* Whether errors are the noise of a coarser arithmetic: of its size, everywhere, and with nothing
 * that goes together. */
#include "verdict/expected_search.h"

#include <math.h>

/* How many of some elements are not the correctly rounded ones, and how many should not be. */
struct share {
    double got, expected;
};

static void share_add(struct share *share, const struct sample *s, const double *sigma, uint64_t i)
{
    if (s->out[i])
        return;
    /* Nearly every float32 differs in its last bits: those count that err as such noise does. */
    const bool narrow = plumb_dtype_info(s->dtype)->bits < 32;
    share->got += narrow ? s->got[i] != plumb_round_to(s->dtype, s->y[i])
                         : fabs(s->got[i] - s->y[i]) > 0.1 * sigma[i];
    share->expected += narrow ? fmin(1, 0.8 * sigma[i] / s->ulp[i]) : 0.9;
}

/* Such noise is everywhere: not the whole, and few of the rows, have much less of it than they
 * should. A row whose scale happens to be a number of the type has less. */
static bool is_everywhere(const struct sample *s, const double *sigma)
{
    struct share all = {0};
    uint64_t bare = 0;
    for (uint64_t r = 0; r < s->rows; r++) {
        struct share row = {0};
        for (uint64_t i = r * s->row; i < (r + 1) * s->row; i++)
            share_add(&row, s, sigma, i);
        bare += row.expected >= 3 && row.got < 0.2 * row.expected;
        all.got += row.got;
        all.expected += row.expected;
    }
    return all.got >= 0.3 * all.expected && bare <= 1 + s->rows / 4;
}

/* Whether elements err each for itself: functions of single ones, products, and results that are
 * each made of many others. Rows that share a mean or a sum do not. */
static bool err_alone(const struct search *q)
{
    return q->product || q->s->terms == 1 || q->largest >= 4 * q->s->n;
}

/* Whether errors are missing in a stretch of elements that is longer than chance leaves; noise that
 * each element has for itself has no such gaps. */
static bool has_gap(const struct sample *s, const double *sigma)
{
    struct share all = {0}, gap = {0};
    double longest = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double before = all.got;
        share_add(&all, s, sigma, i);
        share_add(&gap, s, sigma, i);
        if (all.got > before)
            gap = (struct share){0};
        longest = fmax(longest, gap.expected);
    }
    const double rate = all.expected > 0 ? fmin(all.got / all.expected, 1) : 0;
    const bool narrow = plumb_dtype_info(s->dtype)->bits < 32;
    /* Errors come with a chance of about that share each, in wide types nearly always. */
    const double each = narrow ? rate * longest : -log1p(-0.9 * rate) * longest / 0.9;
    return each > 8 + log((double)s->counted);
}

/* Whether nearly all errors of a result with all its bits lead to one side, up or away from zero,
 * and those of the simulation do not. */
static bool leans(const struct sample *s, const double *simulated)
{
    double up = 0, away = 0, own_up = 0, own_away = 0, n = 0;
    if (plumb_dtype_info(s->dtype)->bits < 32)
        return false;
    for (uint64_t i = 0; i < s->n; i++) {
        const double e = s->got[i] - s->y[i], d = simulated ? simulated[i] - s->y[i] : 0;
        const double sign = s->y[i] < 0 ? -1 : 1;
        if (s->out[i] || !(fabs(e) > s->ulp[i]))
            continue;
        up += e > 0 ? 1 : -1;
        away += e * sign > 0 ? 1 : -1;
        own_up += (d > 0) - (d < 0);
        own_away += (d * sign > 0) - (d * sign < 0);
        n++;
    }
    const double enough = 4.2 * sqrt(n);
    return (fabs(up) > enough && own_up * up < up * up / 4) ||
           (fabs(away) > enough && own_away * away < away * away / 4);
}

/* Whether such arithmetic errs by itself in the same direction, and about as far: tails that it
 * cannot hold become zero. */
static bool errs_alike(const struct sample *s, const double *sigma, const double *simulated,
                       const struct system_part *found)
{
    struct sample other = *s;
    other.got = arena_array(s->arena, (size_t)s->n + 1, sizeof *other.got);
    for (uint64_t i = 0; other.got && i < s->n; i++)
        other.got[i] = plumb_round_to(s->dtype, simulated[i]);
    if (!other.got)
        return false;
    const struct system_part own = system_find(&other, s->y, sigma, true);
    return own.found && own.scale == found->scale && found->size / own.size > 0.5 &&
           found->size / own.size < 2;
}

/* How large the errors are beside that noise. */
struct fitting {
    double size, worst; /* root mean square, and largest */
    double share;       /* of the noise in what is expected, the rest is rounding to the type */
};

static struct fitting fit_noise(const struct sample *s, const double *sigma)
{
    struct fitting f = {0};
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        const double d = fabs(s->got[i] - s->y[i]);
        const double sd = sqrt(sigma[i] * sigma[i] + s->ulp[i] * s->ulp[i] / 12);
        const double t = sd > 0 ? d / sd : d > 0 ? INFINITY : 0;
        f.size += t * t;
        f.share += sd > 0 ? sigma[i] * sigma[i] / (sd * sd) : 0;
        f.worst = fmax(f.worst, t);
    }
    const double n = (double)(s->counted ? s->counted : 1);
    f.size = sqrt(f.size / n);
    f.share = sqrt(f.share / n);
    return f;
}

/* So few elements may be anything: one step of the type is all that can be believed. */
enum { FEW = 8 };

bool coarse_within_a_step(const struct sample *s)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (!s->out[i] && fabs(s->got[i] - s->y[i]) > 1.5 * s->ulp[i])
            return false;
    return true;
}

/* Outputs of functions of single elements: all their steps are simulated. */
bool coarse_is_function_result(const struct search *q)
{
    return q->s->order && q->part == PLUMB_PART_OUTPUT;
}

/* Noise explains errors of its own size, neither larger nor much smaller ones: beside rounding to
 * the type, a third of it has to be there in a function of single elements, whose steps are known,
 * and a seventh in others. Errors of rows go together: then there are no more of them than rows. */
static bool is_of_size(const struct search *q, const struct fitting *f)
{
    const struct sample *s = q->s;
    const bool alone = q->product || s->order;
    const double n = (double)(alone || s->rows < 2 ? s->counted : s->rows);
    const double least = coarse_is_function_result(q) ? 1.0 / 3 : 1.0 / 7;
    const double noise2 = f->share * f->share, there2 = f->size * f->size - (1 - noise2);
    return f->size < 1.3 * (1 + 2 / sqrt(n)) &&
           there2 + 1 / sqrt((double)s->counted) > least * least * noise2 &&
           f->worst < (q->product ? 3 : 5) * q->limit * f->size;
}

/* The correlation of the errors with those of the hypothesis. Whoever rounds the same number on the
 * way errs alike. */
double coarse_correlation(const struct search *q)
{
    const struct sample *s = q->s;
    double both = 0, got = 0, own = 0, mean = 0;
    for (uint64_t i = 0; i < s->n; i++)
        mean += s->out[i] ? 0 : s->y[i] * s->y[i] / (double)s->counted;
    for (uint64_t i = 0; i < s->n; i++) {
        const double weight = 1 / (s->y[i] * s->y[i] + mean);
        const double e = s->got[i] - s->y[i], d = q->y[i] - s->y[i];
        if (s->out[i] || !isfinite(weight * e * e) || !isfinite(weight * d * d))
            continue;
        both += weight * e * d;
        got += weight * e * e;
        own += weight * d * d;
    }
    return got > 0 && own > 0 ? both / sqrt(got * own) : 0;
}

/* A result with all its bits shows which numbers on the way lost theirs: without such a likeness,
 * it was something else. Few elements, or a narrow type, do not show it. */
static bool shows_likeness(const struct search *q)
{
    const bool narrow = plumb_dtype_info(q->s->dtype)->bits < 32;
    const double chance = 1.5 / sqrt((double)(q->s->counted ? q->s->counted : 1));
    return narrow || q->s->counted < FEW || q->alike > 0.25 + chance;
}

/* No more than in what such arithmetic gave plumb. */
static bool is_less_together(const struct search *q)
{
    const struct sample *s = q->s;
    const double more = 1 + 3 / sqrt((double)(s->rows ? s->rows : 1));
    return s->rows < 4 || s->row < 16 ||
           system_together(s, s->got) < 4 * more * more * fmax(q->together, 1);
}

/* Whether the errors are that noise: within its limit, everywhere, of about one size, and with
 * nothing that goes together, neither beside the reference nor beside what such arithmetic gave
 * plumb. */
static bool is_noise(struct search *q, const double *sigma, const double *simulated)
{
    const struct sample *s = q->s;
    const struct fitting f = fit_noise(s, sigma);
    if (s->counted < FEW && !coarse_within_a_step(s))
        return false;
    /* One run tells the noise of a row no better than its elements are many. */
    const double slack = simulated ? 1 + 1.5 / sqrt((double)(s->row ? s->row : 1)) : 1;
    const double limit = slack * q->limit;
    if (sample_excess(s, s->y, sigma, limit).worst > limit || !is_of_size(q, &f) ||
        !is_everywhere(s, sigma))
        return false;
    if (err_alone(q) && (has_gap(s, sigma) || leans(s, simulated)))
        return false;
    if (system_goes_with_results(s, sigma) || system_goes_with_inputs(s, sigma) ||
        !is_less_together(q) || !shows_likeness(q))
        return false;
    const struct system_part system = system_find(s, s->y, sigma, true);
    /* Few rows that err by themselves look a little like one scale. */
    const bool certain = s->counted >= SYSTEM_LEAST || q->product || s->order || fabs(system.z) > 6;
    if (system.found && certain && !(simulated && errs_alike(s, sigma, simulated, &system)))
        return false;
    if (!q->product) /* a row's mean that is off has rank one, and is the row's own */
        return true;
    return system_low_rank(s) < 2.5;
}

/* Which elements of a row have more of it depends on the order of steps that cancel: so it may
 * be as each of them has it, or even over the row, but not far from where perturbations of that
 * size lead each. */
bool coarse_is_such_noise(struct search *q, const struct narrow *narrow)
{
    const struct sample *s = q->s;
    const double *of_inputs = q->e->parts[q->part][q->k].noise;
    double *noise = arena_array(s->arena, (size_t)s->n + 1, sizeof *noise);
    const double most = 64 * ldexp((double)s->terms, -2 * (int)narrow->bits);
    for (int absolute = 0; noise && of_inputs && absolute < 2; absolute++) {
        sample_smooth(s, narrow->squares, narrow->weight, absolute, noise);
        for (uint64_t i = 0; i < s->n; i++) {
            double more = narrow->factor * noise[i];
            if (absolute)
                more = fmin(more, most * of_inputs[i]);
            q->sigma[i] = sqrt(s->sigma[i] * s->sigma[i] + more);
        }
        q->coarse = is_noise(q, q->sigma, narrow->simulated);
        if (q->coarse)
            return true;
    }
    return false;
}
