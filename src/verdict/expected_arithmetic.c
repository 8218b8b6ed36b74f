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
    unsigned widest;   /* significant bits of the widest floating input */
    bool product;      /* sums of products of two inputs */
    bool rounded;      /* numbers among the arguments that the type does not hold */
    const char *found;
};

static void see_bits(void *context, const struct plumb_tensor *tensor)
{
    unsigned *bits = context;
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    if (info->kind == PLUMB_KIND_FLOAT && (unsigned)info->precision + 1 > *bits)
        *bits = (unsigned)info->precision + 1;
}

/* ---- Results themselves ---------------------------------------------------------------------- */

/* Every error leads toward zero, and none is a whole unit but for noise. */
static bool is_truncated(struct search *q)
{
    const struct sample *s = q->s;
    if (s->dtype == PLUMB_F64) /* the reference is rounded itself */
        return false;
    uint64_t wrong = 0, short_by = 0, inexact = 0;
    double units = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i] || s->y[i] == 0)
            continue;
        const double unit = s->ulp[i], e = (s->got[i] - s->y[i]) * (s->y[i] < 0 ? -1 : 1) / unit;
        /* Noise of a unit leads to both sides: many that keep to one did not come by noise. */
        const double noise = 3 * s->sigma[i] / unit, slack = noise > 0.25 ? 1e-3 : noise;
        if (e > slack || e < -1 - slack)
            wrong++;
        inexact += e != 0;
        short_by += e < -0.5;
        units += e;
    }
    /* Right results would have none short by more than half a unit. */
    return s->counted >= 32 && wrong == 0 && short_by * 8 > inexact && inexact >= 8 &&
           -units > 0.3 * (double)inexact && -units < 0.7 * (double)inexact;
}

/* Where noise exceeds a unit: half a unit toward zero on average, and no scale that does the same.
 * e = a unit sign(y) + b y: numbers within a binade tell the two apart. */
static bool is_truncated_on_average(struct search *q)
{
    const struct sample *s = q->s;
    double aa = 0, ab = 0, bb = 0, ae = 0, be = 0, ee = 0;
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i] || s->y[i] == 0)
            continue;
        const double weight = 1 / (s->ulp[i] * s->ulp[i] / 12 + s->sigma[i] * s->sigma[i]);
        const double x = s->y[i] < 0 ? -s->ulp[i] : s->ulp[i], y = s->y[i], e = s->got[i] - y;
        aa += weight * x * x;
        ab += weight * x * y;
        bb += weight * y * y;
        ae += weight * x * e;
        be += weight * y * e;
        ee += weight * e * e;
        n++;
    }
    const double determinant = aa * bb - ab * ab;
    if (n < SYSTEM_LEAST || !(determinant > 1e-6 * aa * bb))
        return false;
    const double a = (ae * bb - be * ab) / determinant;
    const double b = (be * aa - ae * ab) / determinant;
    const double rest = fmax(ee - a * ae - b * be, 0) / (double)(n - 2);
    const double error = sqrt(rest * bb / determinant);
    return a < -0.25 && a > -0.75 && error > 0 && -a / error > 8;
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
        if (!code && ran && sample_excess(q->s, q->y, q->s->sigma, q->limit).worst <= q->limit &&
            !system_find(q->s, q->y, q->s->sigma, false).found)
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

/* The share of the squares of d, as a matrix of rows, that its largest singular value has, beside
 * what noise would have there. Missing terms of a sum are a matrix of low rank. */
static double low_rank(const struct sample *s, const double *y, double *left, double *right)
{
    if (s->rows < 16 || s->row < 16)
        return 0;
    double all = 0, top = 0;
    for (uint64_t c = 0; c < s->row; c++)
        right[c] = c % 3 ? 1 : -0.5;
    for (int pass = 0; pass < 4; pass++) {
        double norm = 0;
        for (uint64_t c = 0; c < s->row; c++)
            norm += right[c] * right[c];
        norm = norm > 0 ? 1 / sqrt(norm) : 0;
        all = top = 0;
        for (uint64_t r = 0; r < s->rows; r++) {
            left[r] = 0;
            for (uint64_t c = 0; c < s->row; c++) {
                const uint64_t i = r * s->row + c;
                const double d = s->out[i] ? 0 : s->got[i] - y[i];
                left[r] += d * right[c] * norm;
                all += d * d;
            }
            top += left[r] * left[r];
        }
        for (uint64_t c = 0; c < s->row; c++)
            right[c] = 0;
        for (uint64_t r = 0; r < s->rows; r++)
            for (uint64_t c = 0; c < s->row; c++) {
                const uint64_t i = r * s->row + c;
                right[c] += s->out[i] ? 0 : (s->got[i] - y[i]) * left[r];
            }
    }
    const double noise = 1 / sqrt((double)s->rows) + 1 / sqrt((double)s->row);
    return all > 0 ? top / all / (noise * noise) : 0;
}

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

/* Whether the errors go with the results: one scale, or one offset, is nearly all there is to
 * them, or they undo what the results differ by, as numbers from elsewhere do. Chance does not
 * do that. */
static bool goes_with_results(const struct sample *s, const double *sigma)
{
    double ee = 0, ye = 0, yy = 0, e1 = 0, y1 = 0, w1 = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        const double weight = 1 / (s->ulp[i] * s->ulp[i] + sigma[i] * sigma[i]);
        const double e = s->got[i] - s->y[i];
        ee += weight * e * e;
        ye += weight * e * s->y[i];
        yy += weight * s->y[i] * s->y[i];
        e1 += weight * e;
        y1 += weight * s->y[i];
        w1 += weight;
    }
    const double by_scale = yy > 0 && ee > 0 ? ye * ye / yy / ee : 0;
    const double by_offset = w1 > 0 && ee > 0 ? e1 * e1 / w1 / ee : 0;
    const double rest = fmax(1 - fmax(by_scale, by_offset), 0);
    if (s->counted > 3 && rest < 0.5 && pow(rest, ((double)s->counted - 1) / 2) < 1e-6)
        return true;
    const double cov = ye - e1 * y1 / w1, var_y = yy - y1 * y1 / w1, var_e = ee - e1 * e1 / w1;
    const double r2 = var_y > 0 && var_e > 0 ? cov * cov / var_y / var_e : 0;
    return s->counted >= 32 && cov < 0 && -cov / var_y > 0.25 &&
           r2 * ((double)s->counted - 2) > 30 * (1 - r2);
}

/* Whether elements with nearly the same input err alike, as those of another formula do. Results
 * of a narrow type have inputs too far apart. */
static bool goes_with_inputs(const struct sample *s, const double *sigma)
{
    double products = 0, squares = 0, before = NAN;
    uint64_t n = 0;
    if (!s->order || plumb_dtype_info(s->dtype)->bits < 32)
        return false;
    for (uint64_t at = 0; at < s->n; at++) {
        const uint64_t i = s->order[at];
        if (s->out[i] || !(sigma[i] > 0) || (at && s->key[i] == s->key[s->order[at - 1]]))
            continue;
        const double e = (s->got[i] - s->y[i]) / sigma[i];
        if (!isnan(before)) {
            products += e * before;
            squares += e * e;
            n++;
        }
        before = e;
    }
    return n >= 16 && products > 0.6 * squares;
}

/* Whether the errors are that noise: within its limit, everywhere, of about one size, and with
 * nothing that goes together, neither beside the reference nor beside what such arithmetic gave
 * plumb. */
static bool is_noise(struct search *q, const double *sigma, const double *simulated)
{
    const struct sample *s = q->s;
    double squares = 0, worst = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        const double d = fabs(s->got[i] - s->y[i]);
        const double sd = sqrt(sigma[i] * sigma[i] + s->ulp[i] * s->ulp[i] / 12);
        const double t = sd > 0 ? d / sd : d > 0 ? INFINITY : 0;
        squares += t * t;
        worst = fmax(worst, t);
    }
    const double size = sqrt(squares / (double)(s->counted ? s->counted : 1));
    if (sample_excess(s, s->y, sigma, q->limit).worst > q->limit ||
        worst > (q->product ? 3 : 5) * q->limit * size || !is_everywhere(s, sigma))
        return false;
    if (goes_with_results(s, sigma) || goes_with_inputs(s, sigma))
        return false;
    const struct system_part system = system_find(s, s->y, sigma, true);
    if (system.found && !(simulated && errs_alike(s, sigma, simulated, &system)))
        return false;
    if (!q->product) /* a row's mean that is off has rank one, and is the row's own */
        return true;
    double *left = arena_array(s->arena, (size_t)s->rows + 1, sizeof *left);
    double *right = arena_array(s->arena, (size_t)s->row + 1, sizeof *right);
    return left && right && low_rank(s, s->y, left, right) < 2.5;
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
        if (is_noise(q, q->sigma, narrow->simulated))
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

/* Results on the way rounded to a type. First exactly as plumb would do it, which leaves no more
 * than right arithmetic's noise; then as noise of that size, since others round at other steps. */
static enum plumb_code try_stored(struct search *q, enum plumb_dtype dtype, const char *word,
                                  struct plumb_error *err)
{
    static const enum plumb_stored kinds[] = {PLUMB_STORED_SINGLE, PLUMB_STORED_ARRAYS,
                                              PLUMB_STORED_ALL};
    bool ran = false;
    for (size_t k = 0; !q->found && k < sizeof kinds / sizeof *kinds; k++) {
        const struct plumb_noise noise = {.store = dtype, .stored = kinds[k]};
        const enum plumb_code code = run_hypothesis(q, &noise, &ran, err);
        if (code || !ran)
            return code;
        if (sample_excess(q->s, q->y, q->s->sigma, q->limit).worst <= q->limit &&
            !system_find(q->s, q->y, q->s->sigma, false).found)
            q->found = word;
    }
    return PLUMB_OK;
}

static enum plumb_code try_store(struct search *q, enum plumb_dtype dtype, const char *word,
                                 struct plumb_error *err)
{
    if (q->found)
        return PLUMB_OK;
    const enum plumb_code code = try_stored(q, dtype, word, err);
    double *squares = arena_array(q->s->arena, (size_t)q->s->n + 1, sizeof *squares);
    if (code || q->found || !squares)
        return code;
    for (uint64_t i = 0; i < q->s->n; i++) {
        const double d = q->y[i] - q->s->y[i];
        squares[i] = isfinite(d) ? d * d : 0;
    }
    const unsigned bits = (unsigned)plumb_dtype_info(dtype)->precision + 1;
    const struct narrow narrow = {
        .squares = squares, .weight = 1, .factor = 1, .bits = bits, .simulated = q->y};
    if (is_such_noise(q, &narrow))
        q->found = word;
    else if (q->s->dtype == dtype)
        try_bits(q, bits, false, word);
    return PLUMB_OK;
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
    if (!code)
        code = try_inputs(q, 8, "bf16-input", err);
    if (code)
        return code;
    if (fits_type(q, PLUMB_F16))
        code = try_store(q, PLUMB_F16, "f16-store", err);
    if (fits_type(q, PLUMB_F16) && is_all(q->s, PLUMB_F16))
        try_bits(q, 11, true, "f16-accumulator");
    if (!code && fits_type(q, PLUMB_BF16))
        code = try_store(q, PLUMB_BF16, "bf16-store", err);
    if (fits_type(q, PLUMB_BF16) && is_all(q->s, PLUMB_BF16))
        try_bits(q, 8, true, "bf16-accumulator");
    return code;
}

enum plumb_code arithmetic_find(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                                const struct sample *s, bool even, bool *found,
                                struct plumb_opinion *opinion, struct plumb_error *err)
{
    struct search q = {.e = e,
                       .part = part,
                       .k = k,
                       .s = s,
                       .limit = opinion->limit,
                       .product = e->op->results == PLUMB_OP_BILINEAR,
                       .y = arena_array(s->arena, (size_t)s->n + 1, sizeof(double)),
                       .sigma = arena_array(s->arena, (size_t)s->n + 1, sizeof(double))};
    if (!q.y || !q.sigma)
        return plumb_no_memory(err);
    call_tensors(&e->call, see_bits, &q.widest);
    enum plumb_code code = PLUMB_OK;
    if (even) {
        if (is_truncated(&q) || is_truncated_on_average(&q))
            q.found = "truncation";
    } else {
        try_results(&q);
        if (!q.found)
            code = try_all(&q, err);
    }
    *found = q.found != NULL;
    snprintf(opinion->arithmetic, sizeof opinion->arithmetic, "%s",
             q.found ? text_of(q.found) : "");
    return code;
}
