/* Which cheaper arithmetic explains a result that right arithmetic does not: hypotheses from the
 * most to the least precise, each with its own reference or its own noise. */
#include "verdict/expected_search.h"

#include "verdict/change.h"
#include "verdict/spell.h"

#include <math.h>
#include <stdio.h>

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

/* Whether the errors are mostly gone beside the simulation: more than half of what they are beyond
 * right arithmetic's own. */
static bool is_nearer(const struct search *q)
{
    const struct sample *s = q->s;
    double before = 0, after = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double own = s->sigma[i] * s->sigma[i] + s->ulp[i] * s->ulp[i] / 12;
        const double e = s->got[i] - s->y[i], rest = s->got[i] - q->y[i];
        if (s->out[i] || !(own > 0))
            continue;
        before += e * e / own;
        after += rest * rest / own;
    }
    return !(after > (before + (double)s->counted) / 2);
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
    return is_nearer(q) && !system_find(s, q->y, s->sigma, false).found;
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

/* A sum that was kept in a narrow type is a number of it, whatever it is stored in. */
static bool is_all(const struct sample *s, enum plumb_dtype narrow)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (!s->out[i] && plumb_round_to(narrow, s->got[i]) != s->got[i])
            return false;
    return true;
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
    if (coarse_is_such_noise(q, &narrow))
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
    return squares && coarse_is_such_noise(q, &narrow);
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
        q->alike = fmax(q->alike, coarse_correlation(q));
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
    else if (q->s->dtype == dtype &&
             (q->changes || !coarse_is_function_result(q) || coarse_within_a_step(q->s)))
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
             q.found ? arithmetic_text(q.found) : "");
    return code;
}
