/* Which cheaper arithmetic explains a result that right arithmetic does not: hypotheses from the
 * most to the least precise, each with its own reference or its own noise. */
#include "verdict/expected_parts.h"

#include "verdict/change.h"
#include "verdict/spell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------- */

static const struct {
    const char *word; /* as users allow it */
    const char *text; /* as a verdict says it */
} names[] = {
    {"truncation", "results are truncated"},
    {"flush", "numbers below the smallest normal one are flushed to zero"},
    {"function", "a function of a few units in the last place"},
    {"number", "numbers among the arguments were rounded to the type"},
    {"f32-result", "the result was rounded to float32"},
    {"f16-result", "the result was rounded to float16"},
    {"bf16-result", "the result was rounded to bfloat16"},
    {"f32-input", "inputs of 24 bits (float32)"},
    {"tf32", "inputs of 11 bits (TF32 or float16)"},
    {"bf16-input", "inputs of 8 bits (bfloat16)"},
    {"f16-accumulator", "a sum kept in 11 bits (float16)"},
    {"bf16-accumulator", "a sum kept in 8 bits (bfloat16)"},
    {"f16-store", "results on the way rounded to float16"},
    {"bf16-store", "results on the way rounded to bfloat16"},
};
enum { NAMES = sizeof names / sizeof *names };

static const char *text_of(const char *word)
{
    for (size_t k = 0; k < NAMES; k++)
        if (strcmp(names[k].word, word) == 0)
            return names[k].text;
    return word;
}

bool arithmetic_allowed(const char *list, const char *found)
{
    for (size_t k = 0; list && k < NAMES; k++) {
        if (strcmp(names[k].text, found) != 0)
            continue;
        const size_t length = strlen(names[k].word);
        for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
            if (strcspn(at, ",") == length && strncmp(at, names[k].word, length) == 0)
                return true;
    }
    return false;
}

const char *plumb_arithmetic_word(const char *found)
{
    for (size_t k = 0; k < NAMES; k++)
        if (strcmp(names[k].text, found) == 0)
            return names[k].word;
    return "";
}

enum plumb_code plumb_arithmetic_check(const char *list, struct plumb_error *err)
{
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t length = strcspn(at, ",");
        bool known = false;
        for (size_t k = 0; k < NAMES; k++)
            known |= strlen(names[k].word) == length && strncmp(at, names[k].word, length) == 0;
        if (!known)
            return plumb_fail(
                err, PLUMB_E_ARG,
                "'%.*s' is no arithmetic that plumb knows; there are truncation, "
                "flush, function, number, f32-result, f16-result, bf16-result, f32-input, "
                "tf32, bf16-input, f16-accumulator, bf16-accumulator, f16-store "
                "and bf16-store",
                (int)length, at);
    }
    return PLUMB_OK;
}

/* ---- The search ------------------------------------------------------------------------------ */

struct search {
    struct plumb_expected *e;
    enum plumb_expected_part part;
    size_t k;
    const struct sample *s;
    double limit;
    double *y, *sigma; /* of the hypothesis */
    double together;   /* how much errors of rows go together in it, at most */
    double alike;      /* how its errors go with those that were got, at most: a correlation */
    unsigned widest;   /* significant bits of the widest floating input */
    uint64_t largest;  /* elements of the largest one */
    bool product;      /* sums of products of two inputs */
    bool rounded;      /* numbers among the arguments that the type does not hold */
    struct plumb_call rounded_call; /* with these rounded to it */
    const char *found;
    bool changes; /* rounding on the way gives other results at all */
    bool coarse;  /* as noise, which nothing computed confirms */
};

static void see_input(void *context, const struct plumb_tensor *tensor)
{
    struct search *q = context;
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    if (info->kind != PLUMB_KIND_FLOAT)
        return;
    if ((unsigned)info->precision + 1 > q->widest)
        q->widest = (unsigned)info->precision + 1;
    if (tensor->count > q->largest)
        q->largest = tensor->count;
}

/* ---- Results themselves ---------------------------------------------------------------------- */

/* Every error leads toward zero, and none is a whole unit but for noise. */
static bool is_truncated(struct search *q)
{
    const struct sample *s = q->s;
    if (s->dtype == PLUMB_F64) /* the reference is rounded itself */
        return false;
    uint64_t short_by = 0, inexact = 0;
    double units = 0, before = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i] || s->y[i] == 0 || s->y[i] == before) /* equal ones are rounded alike */
            continue;
        before = s->y[i];
        const double unit = s->ulp[i], e = (s->got[i] - s->y[i]) * (s->y[i] < 0 ? -1 : 1) / unit;
        /* Noise of a unit leads to both sides: many that keep to one did not come by noise. */
        const double noise = 3 * s->sigma[i] / unit, slack = noise > 0.25 ? 1e-3 : noise;
        if (e > slack || e < -1 - slack)
            return false;
        inexact += e != 0;
        short_by += e < -0.5;
        units += e;
    }
    /* Right results would have none short by more than half a unit. */
    return s->counted >= 32 && short_by * 8 > inexact && inexact >= 8 &&
           -units > 0.3 * (double)inexact && -units < 0.7 * (double)inexact;
}

/* Only numbers that are not normal are wrong, and they are zero. */
static bool is_flushed(struct search *q)
{
    const struct sample *s = q->s;
    const enum plumb_dtype narrow = s->dtype == PLUMB_BF16 ? PLUMB_F32 : s->dtype;
    const double least = ldexp(1, plumb_dtype_info(narrow)->emin);
    uint64_t flushed = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        if (s->got[i] != 0 && fabs(s->got[i]) < least)
            return false; /* this one survived */
        const double over = fabs(s->got[i] - s->y[i]) - s->ulp[i] / 2;
        if (!(over > q->limit * s->sigma[i]))
            continue;
        if (s->got[i] != 0 || fabs(s->y[i]) >= least)
            return false;
        flushed++;
    }
    return flushed > 0;
}

/* All results are numbers of the narrower type, and as close as that allows. */
static bool is_rounded_to(struct search *q, enum plumb_dtype narrow)
{
    const struct sample *s = q->s;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        if (plumb_round_to(narrow, s->got[i]) != s->got[i])
            return false;
        const double over = fabs(s->got[i] - s->y[i]) - sample_ulp(narrow, s->y[i]) / 2;
        if (over > q->limit * s->sigma[i])
            return false;
    }
    return s->counted > 1;
}

/* One function of each number, computed less well: off by a few units everywhere. */
static bool is_function(struct search *q)
{
    const double units = 16;
    const struct sample *s = q->s;
    if (s->terms > 1 || s->u * 4 < ldexp(1, -plumb_dtype_info(s->dtype)->precision) ||
        plumb_dtype_info(s->dtype)->bits < 32)
        return false;
    for (uint64_t i = 0; i < s->n; i++)
        if (!s->out[i] && fabs(s->got[i] - s->y[i]) > units * fmax(s->ulp[i], s->sigma[i]))
            return false;
    return !system_find(s, s->y, s->sigma, true).found;
}

/* ---- With a reference of their own ----------------------------------------------------------- */

static enum plumb_code run_hypothesis(struct search *q, const struct plumb_noise *noise, bool *ran,
                                      struct plumb_error *err)
{
    struct plumb_result run = {0};
    const enum plumb_code code = expected_run(q->e, noise, &run, err);
    const struct plumb_tensor *t = code ? NULL : expected_tensor_of(&run, q->part, q->k);
    *ran = t && t->count * plumb_dtype_parts(t->dtype) == q->s->n;
    if (*ran)
        plumb_tensor_to_f64(t, 0, (size_t)t->count, q->y);
    plumb_result_destroy(&run);
    return code == PLUMB_E_NOMEM ? code : PLUMB_OK;
}

/* Whether the result is the simulated one, but for right arithmetic's noise. That may carry a
 * number on the way to the next one of its type, and some results with it: a few may be off by a
 * step or two if nearly all that was wrong is explained. */
static bool is_simulated(const struct search *q)
{
    const struct sample *s = q->s;
    const uint64_t wrong = sample_excess(s, s->y, s->sigma, q->limit).beyond;
    const struct excess rest = sample_excess(s, q->y, s->sigma, q->limit);
    if (rest.beyond * 5 > wrong || rest.beyond > 1 + s->counted / 50)
        return false;
    for (uint64_t i = 0; rest.beyond && i < s->n; i++)
        if (!s->out[i] && fabs(s->got[i] - q->y[i]) > 2.5 * s->ulp[i] + q->limit * s->sigma[i])
            return false;
    return !system_find(s, q->y, s->sigma, false).found;
}

/* Whether right arithmetic on inputs of so many bits shows this. */
static enum plumb_code try_inputs(struct search *q, unsigned bits, const char *word,
                                  struct plumb_error *err)
{
    if (q->found || q->widest <= bits)
        return PLUMB_OK;
    enum plumb_code code = PLUMB_OK;
    for (int cut = 0; cut < 2 && !q->found && !code; cut++) {
        const struct plumb_noise noise = {
            .store = PLUMB_DTYPE_COUNT, .input_bits = bits, .input_cut = cut};
        bool ran;
        code = run_hypothesis(q, &noise, &ran, err);
        if (!code && ran && is_simulated(q))
            q->found = word;
    }
    return code;
}

/* Numbers among the arguments (an exponent, a slope, an epsilon), rounded to the type. */
static bool round_number(void *context, const char *name, const struct plumb_arg *from,
                         struct plumb_arg *to)
{
    (void)name;
    struct search *q = context;
    *to = *from;
    if (from->kind == PLUMB_ARG_FLOAT) {
        to->number = plumb_round_to(q->s->dtype, from->number);
        q->rounded |= to->number != from->number && isfinite(to->number);
    }
    return true;
}

static enum plumb_code try_numbers(struct search *q, struct plumb_error *err)
{
    struct plumb_call call = q->e->call;
    struct plumb_result run = {0};
    struct plumb_error why;
    if (!change_call(q->s->arena, round_number, q, &call))
        return plumb_no_memory(err);
    q->rounded_call = call;
    if (!q->rounded || plumb_op_run(&call, PLUMB_RAISED, &run, &why))
        return PLUMB_OK;
    const struct plumb_tensor *t = expected_tensor_of(&run, q->part, q->k);
    if (t && t->count * plumb_dtype_parts(t->dtype) == q->s->n) {
        plumb_tensor_to_f64(t, 0, (size_t)t->count, q->y);
        if (sample_excess(q->s, q->y, q->s->sigma, q->limit).worst <= q->limit)
            q->found = "number";
    }
    plumb_result_destroy(&run);
    return PLUMB_OK;
}

/* ---- With a noise of their own --------------------------------------------------------------- */

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

static bool within_a_step(const struct sample *s)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (!s->out[i] && fabs(s->got[i] - s->y[i]) > 1.5 * s->ulp[i])
            return false;
    return true;
}

/* Outputs of functions of single elements: all their steps are simulated. */
static bool is_function_result(const struct search *q)
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
    const double least = is_function_result(q) ? 1.0 / 3 : 1.0 / 7;
    const double noise2 = f->share * f->share, there2 = f->size * f->size - (1 - noise2);
    return f->size < 1.3 * (1 + 2 / sqrt(n)) &&
           there2 + 1 / sqrt((double)s->counted) > least * least * noise2 &&
           f->worst < (q->product ? 3 : 5) * q->limit * f->size;
}

/* The correlation of the errors with those of the hypothesis. Whoever rounds the same number on the
 * way errs alike. */
static double correlation(const struct search *q)
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
    if (s->counted < FEW && !within_a_step(s))
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

/* A sum that was kept in a narrow type is a number of it, whatever it is stored in. */
static bool is_all(const struct sample *s, enum plumb_dtype narrow)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (!s->out[i] && plumb_round_to(narrow, s->got[i]) != s->got[i])
            return false;
    return true;
}

/* Noise beside right arithmetic's own, as so many bits make it. */
struct narrow {
    const double *squares; /* measured so often */
    unsigned weight;
    double factor; /* from squares to that noise */
    unsigned bits;
    const double *simulated; /* what such arithmetic gave plumb, or NULL */
};

/* Which elements of a row have more of it depends on the order of steps that cancel: so it may
 * be as each of them has it, or even over the row, but not far from where perturbations of that
 * size lead each. */
static bool is_such_noise(struct search *q, const struct narrow *narrow)
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

/* Perturbations of 2^-bits in inputs and results on the way, or in each of the terms. */
static void try_bits(struct search *q, unsigned bits, bool accumulator, const char *word)
{
    const struct expected_tensor *t = &q->e->parts[q->part][q->k];
    if (q->found || !t->noise || (accumulator && q->s->terms < 8))
        return;
    const double size = ldexp(1, -2 * (int)bits), terms = (double)q->s->terms;
    const struct narrow narrow = {.squares = t->noise,
                                  .weight = q->e->runs,
                                  .factor = accumulator ? terms * size : size,
                                  .bits = bits};
    if (is_such_noise(q, &narrow))
        q->found = word;
}

/* As noise of the size of what such arithmetic gave plumb. */
static bool is_as_simulated(struct search *q, unsigned bits)
{
    double *squares = arena_array(q->s->arena, (size_t)q->s->n + 1, sizeof *squares);
    for (uint64_t i = 0; squares && i < q->s->n; i++) {
        const double d = q->y[i] - q->s->y[i];
        squares[i] = isfinite(d) ? d * d : 0;
    }
    const struct narrow narrow = {
        .squares = squares, .weight = 1, .factor = 1, .bits = bits, .simulated = q->y};
    return squares && is_such_noise(q, &narrow);
}

/* A sum kept in so many bits: as plumb adds up in them, one term after the other, or as noise of
 * that size. Where that would take too long, as noise that follows from the number of terms. */
static enum plumb_code try_sum(struct search *q, unsigned bits, const char *word,
                               struct plumb_error *err)
{
    const double most = 0x1p28;
    const struct plumb_noise noise = {.store = PLUMB_DTYPE_COUNT, .sum_bits = bits};
    const bool of_sums =
        q->product || q->e->op->results == PLUMB_OP_LINEAR || q->part == PLUMB_PART_GRADIENT;
    bool ran;
    if (q->found || q->s->terms < 8)
        return PLUMB_OK;
    if ((double)q->s->n * (double)q->s->terms > most) {
        try_bits(q, bits, true, word);
        return PLUMB_OK;
    }
    const enum plumb_code code = run_hypothesis(q, &noise, &ran, err);
    if (!code && ran) {
        q->together = system_together(q->s, q->y);
        q->alike = 1; /* the few bits of all results show it: another order errs otherwise */
    }
    if (!code && ran && (is_simulated(q) || (of_sums && is_as_simulated(q, bits))))
        q->found = word;
    return code;
}

/* Whether the simulation gives other results than right arithmetic. */
static bool changes_results(const struct search *q)
{
    const struct sample *s = q->s;
    for (uint64_t i = 0; i < s->n; i++)
        if (!s->out[i] && plumb_round_to(s->dtype, q->y[i]) != plumb_round_to(s->dtype, s->y[i]))
            return true;
    return false;
}

/* Results on the way rounded to a type, exactly as plumb would do it: no more than right
 * arithmetic's noise is left then. Leaves the last of the runs in q->y. */
static enum plumb_code try_stored(struct search *q, enum plumb_dtype dtype, const char *word,
                                  struct plumb_error *err)
{
    static const enum plumb_stored kinds[] = {PLUMB_STORED_NODES,  PLUMB_STORED_SINGLE,
                                              PLUMB_STORED_BACK,   PLUMB_STORED_BOTH,
                                              PLUMB_STORED_ARRAYS, PLUMB_STORED_ALL};
    bool ran = false;
    for (size_t k = 0; !q->found && k < sizeof kinds / sizeof *kinds; k++) {
        const struct plumb_noise noise = {.store = dtype, .stored = kinds[k]};
        const enum plumb_code code = run_hypothesis(q, &noise, &ran, err);
        if (code || !ran)
            return code;
        if (is_simulated(q))
            q->found = word;
        q->changes |= changes_results(q);
        q->together = fmax(q->together, system_together(q->s, q->y));
        q->alike = fmax(q->alike, correlation(q));
    }
    return PLUMB_OK;
}

/* The same, then as noise of that size, since others round at other steps. */
static enum plumb_code try_stores(struct search *q, enum plumb_dtype dtype, const char *word,
                                  struct plumb_error *err)
{
    const enum plumb_code code = try_stored(q, dtype, word, err);
    const unsigned bits = (unsigned)plumb_dtype_info(dtype)->precision + 1;
    if (code || q->found)
        return code;
    if (is_as_simulated(q, bits))
        q->found = word;
    else if (q->s->dtype == dtype && (q->changes || !is_function_result(q) || within_a_step(q->s)))
        try_bits(q, bits, false, word);
    return PLUMB_OK;
}

/* Numbers among the arguments may have been rounded to the type as well. */
static enum plumb_code try_store(struct search *q, enum plumb_dtype dtype, const char *word,
                                 struct plumb_error *err)
{
    if (q->found)
        return PLUMB_OK;
    q->together = q->alike = 0;
    q->changes = false;
    enum plumb_code code = try_stores(q, dtype, word, err);
    if (code || q->found || !q->rounded || q->s->dtype != dtype)
        return code;
    const struct plumb_call call = q->e->call;
    q->e->call = q->rounded_call;
    code = try_stored(q, dtype, word, err);
    q->e->call = call;
    return code;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void try_results(struct search *q)
{
    const enum plumb_dtype dtype = q->s->dtype;
    if (is_truncated(q))
        q->found = "truncation";
    else if (is_flushed(q))
        q->found = "flush";
    else if (dtype == PLUMB_F64 && is_rounded_to(q, PLUMB_F32))
        q->found = "f32-result";
    else if ((dtype == PLUMB_F64 || dtype == PLUMB_F32) && is_rounded_to(q, PLUMB_F16))
        q->found = "f16-result";
    else if ((dtype == PLUMB_F64 || dtype == PLUMB_F32) && is_rounded_to(q, PLUMB_BF16))
        q->found = "bf16-result";
    else if (is_function(q))
        q->found = "function";
}

/* Nobody computes results of one 16-bit type in the other. */
static bool fits_type(const struct search *q, enum plumb_dtype narrow)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(q->s->dtype);
    return info->bits > 16 || q->s->dtype == narrow;
}

static enum plumb_code try_all(struct search *q, struct plumb_error *err)
{
    enum plumb_code code = try_numbers(q, err);
    if (!code && q->s->u == 0x1p-53)
        code = try_inputs(q, 24, "f32-input", err);
    if (!code)
        code = try_inputs(q, 11, "tf32", err);
    if (!code && fits_type(q, PLUMB_BF16))
        code = try_inputs(q, 8, "bf16-input", err);
    if (code)
        return code;
    if (fits_type(q, PLUMB_F16))
        code = try_store(q, PLUMB_F16, "f16-store", err);
    if (!code && fits_type(q, PLUMB_F16) && is_all(q->s, PLUMB_F16))
        code = try_sum(q, 11, "f16-accumulator", err);
    if (!code && fits_type(q, PLUMB_BF16))
        code = try_store(q, PLUMB_BF16, "bf16-store", err);
    if (!code && fits_type(q, PLUMB_BF16) && is_all(q->s, PLUMB_BF16))
        code = try_sum(q, 8, "bf16-accumulator", err);
    return code;
}

static enum plumb_code make_room(struct search *q, struct plumb_error *err)
{
    q->y = arena_array(q->s->arena, (size_t)q->s->n + 1, sizeof *q->y);
    q->sigma = arena_array(q->s->arena, (size_t)q->s->n + 1, sizeof *q->sigma);
    return q->y && q->sigma ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code arithmetic_find(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                                const struct sample *s, bool even, bool *found, bool *coarse,
                                struct plumb_opinion *opinion, struct plumb_error *err)
{
    struct search q = {.e = e,
                       .part = part,
                       .k = k,
                       .s = s,
                       .limit = opinion->limit,
                       .product = e->op->results == PLUMB_OP_BILINEAR};
    call_tensors(&e->call, see_input, &q);
    enum plumb_code code = PLUMB_OK;
    if (even) {
        if (is_truncated(&q) || system_toward_zero(s, q.product || s->order || s->rows < 2))
            q.found = "truncation";
    } else {
        try_results(&q);
        if (!q.found)
            code = make_room(&q, err);
        if (!q.found && !code)
            code = try_all(&q, err);
    }
    *found = q.found != NULL;
    *coarse = q.coarse;
    snprintf(opinion->arithmetic, sizeof opinion->arithmetic, "%s",
             q.found ? text_of(q.found) : "");
    return code;
}
