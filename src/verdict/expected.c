/* The error that right arithmetic leaves in the results of a call: measured by computing it again
 * with errors made on purpose, and in the arithmetic of the type. */
#include "verdict/expected_parts.h"

#include "verdict/spell.h"
#include "verdict/vary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The object ------------------------------------------------------------------------------ */

const struct plumb_tensor *expected_tensor_of(const struct plumb_result *result,
                                              enum plumb_expected_part part, size_t k)
{
    const struct plumb_arg *list = part == PLUMB_PART_OUTPUT     ? result->outputs
                                   : part == PLUMB_PART_GRADIENT ? result->grads
                                                                 : result->written;
    const size_t n = part == PLUMB_PART_OUTPUT ? result->n_outputs : result->n_grads;
    return list && k < n && list[k].kind == PLUMB_ARG_TENSOR ? list[k].tensor : NULL;
}

bool expected_make_parts(struct plumb_expected *e)
{
    const struct plumb_result *r = e->reference;
    e->n_parts[PLUMB_PART_OUTPUT] = r->n_outputs;
    e->n_parts[PLUMB_PART_GRADIENT] = r->n_grads;
    e->n_parts[PLUMB_PART_WRITTEN] = r->written ? r->n_grads : 0;
    for (unsigned p = 0; p < EXPECTED_PARTS; p++) {
        e->parts[p] = arena_array(&e->arena, e->n_parts[p] + 1, sizeof **e->parts);
        if (!e->parts[p])
            return false;
        for (size_t k = 0; k < e->n_parts[p]; k++)
            e->parts[p][k].reference = e->parts[p][k].computed =
                expected_tensor_of(r, (enum plumb_expected_part)p, k);
    }
    return true;
}

static void see_wide(void *context, const struct plumb_tensor *tensor)
{
    bool *wide = context;
    *wide |= tensor->dtype == PLUMB_F64 || tensor->dtype == PLUMB_C128;
}

enum plumb_code plumb_expected_new(const struct plumb_call *call,
                                   const struct plumb_result *reference,
                                   const struct plumb_expected_options *options,
                                   struct plumb_expected **out, struct plumb_error *err)
{
    *out = NULL;
    struct plumb_expected *e = calloc(1, sizeof *e);
    if (!e)
        return plumb_no_memory(err);
    e->call = *call;
    if (options)
        e->options = *options;
    if (e->options.memory)
        e->call.memory = e->options.memory;
    e->reference = reference;
    e->op = plumb_op_of(call);
    enum plumb_code code = PLUMB_OK;
    if (!e->op)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "plumb has no operator '%s'", call->name);
    if (!reference || (e->op && e->op->random)) /* what was drawn for that one is not known */
        e->reference = &e->own_reference;
    if (!code && !reference && !e->op->random)
        code = plumb_op_run(&e->call, PLUMB_RAISED, &e->own_reference, err);
    if (!code)
        code = dropout_begin(e, err);
    call_tensors(call, see_wide, &e->wide);
    if (!code && !expected_make_parts(e))
        code = plumb_no_memory(err);
    if (code)
        plumb_expected_free(e);
    else
        *out = e;
    return code;
}

void plumb_expected_free(struct plumb_expected *expected)
{
    if (!expected)
        return;
    dropout_end(expected);
    plumb_result_destroy(&expected->own_reference);
    arena_free(&expected->arena);
    free(expected);
}

static struct plumb_arg *copied(struct arena *arena, const struct plumb_arg *list, size_t n)
{
    struct plumb_arg *copy = arena_array(arena, n + 1, sizeof *copy);
    if (copy && n)
        memcpy(copy, list, n * sizeof *copy);
    return copy;
}

enum plumb_code plumb_expected_given(struct plumb_expected *e, const struct plumb_arg *outputs,
                                     size_t n_outputs, const struct plumb_arg *grads,
                                     size_t n_grads, struct plumb_error *err)
{
    const struct plumb_result got = {.outputs = copied(&e->arena, outputs, n_outputs),
                                     .n_outputs = n_outputs,
                                     .grads = copied(&e->arena, grads, n_grads),
                                     .n_grads = n_grads};
    if (!got.outputs || !got.grads)
        return plumb_no_memory(err);
    e->given = true;
    if (e->dropout)
        return dropout_settle(e, &got, err);
    return e->op->random ? PLUMB_OK : decision_settle(e, &got, err);
}

const struct plumb_result *plumb_expected_reference(const struct plumb_expected *expected)
{
    return expected->reference;
}

bool expected_is_exact(const struct plumb_expected *e, enum plumb_expected_part part)
{
    /* Decisions about computed numbers are settled by noise before (expected_decision.c). */
    const bool exact = e->op->exact || e->op->results == PLUMB_OP_DECISION;
    return e->still || (exact && part != PLUMB_PART_GRADIENT);
}

bool expected_is_random(const struct plumb_expected *e)
{
    return e->op->random && !e->still && !e->dropout;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

enum plumb_code expected_run(const struct plumb_expected *e, const struct plumb_noise *noise,
                             struct plumb_result *out, struct plumb_error *err)
{
    struct plumb_call call = e->call;
    call.noise = noise;
    dropout_rewind(e);
    return plumb_op_run(&call, PLUMB_RAISED, out, err);
}

/* Adds the squared differences of a run from the reference to sums[], times factor. */
static void add_squares(const struct plumb_tensor *y, const struct plumb_tensor *run, double factor,
                        double *sums)
{
    enum { PIECE = 512 };
    double a[2 * PIECE], b[2 * PIECE];
    const unsigned parts = plumb_dtype_parts(y->dtype);
    for (uint64_t first = 0; first < y->count; first += PIECE) {
        const size_t n = y->count - first < PIECE ? (size_t)(y->count - first) : PIECE;
        plumb_tensor_to_f64(y, first, n, a);
        plumb_tensor_to_f64(run, first, n, b);
        for (size_t k = 0; k < n * parts; k++) {
            const double change = a[k] - b[k];
            if (isfinite(change))
                sums[first * parts + k] += change * change * factor;
        }
    }
}

static bool is_real(const struct plumb_tensor *t)
{
    const enum plumb_kind kind = t ? plumb_dtype_info(t->dtype)->kind : PLUMB_KIND_BOOL;
    return kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX;
}

/* The same for all tensors of the result; own: into the other array. */
static enum plumb_code add_run(struct plumb_expected *e, const struct plumb_result *run,
                               double factor, bool own, struct plumb_error *err)
{
    for (unsigned p = 0; p < EXPECTED_PARTS; p++)
        for (size_t k = 0; k < e->n_parts[p]; k++) {
            struct expected_tensor *t = &e->parts[p][k];
            const struct plumb_tensor *y = t->computed,
                                      *b = expected_tensor_of(run, (enum plumb_expected_part)p, k);
            if (!is_real(y) || !is_real(b) || y->count != b->count ||
                plumb_dtype_parts(y->dtype) != plumb_dtype_parts(b->dtype))
                continue;
            double **sums = own ? &t->own : &t->noise;
            if (!*sums)
                *sums = arena_array(&e->arena, (size_t)y->count * plumb_dtype_parts(y->dtype) + 1,
                                    sizeof **sums);
            if (!*sums)
                return plumb_no_memory(err);
            add_squares(y, b, factor, *sums);
        }
    return PLUMB_OK;
}

bool expected_is_same(const struct plumb_tensor *reference, const struct plumb_tensor *got)
{
    enum { PIECE = 512 };
    double a[2 * PIECE], b[2 * PIECE];
    const enum plumb_dtype dtype = got->dtype == PLUMB_C64    ? PLUMB_F32
                                   : got->dtype == PLUMB_C128 ? PLUMB_F64
                                                              : got->dtype;
    const unsigned parts = plumb_dtype_parts(got->dtype);
    bool finite = false;
    for (uint64_t first = 0; first < got->count; first += PIECE) {
        const size_t n = got->count - first < PIECE ? (size_t)(got->count - first) : PIECE;
        plumb_tensor_to_f64(reference, first, n, a);
        plumb_tensor_to_f64(got, first, n, b);
        for (size_t k = 0; k < n * parts; k++) {
            /* A float32 that is the reference's number already needs no rounding. */
            const bool same =
                a[k] == b[k] || plumb_round_to(dtype, a[k]) == b[k] || (isnan(a[k]) && isnan(b[k]));
            if (!same)
                return false;
            finite |= isfinite(a[k]) && isfinite(b[k]);
        }
    }
    return finite;
}

/* ---- plumb's own run in the arithmetic of the type ------------------------------------------- */

/* 16-bit and 8-bit numbers as float32: no right implementation computes in less. */
static enum plumb_code own_run(struct plumb_expected *e, struct plumb_error *err)
{
    struct arena arena = {0};
    struct plumb_call call = e->call;
    struct plumb_result run = {0};
    struct plumb_error why;
    enum plumb_code code = vary_widen(&arena, &call) ? PLUMB_OK : plumb_no_memory(err);
    /* An operator may refuse this form of the call: then there is less to go by, and no error. */
    dropout_rewind(e);
    if (!code && !plumb_op_run(&call, PLUMB_OWN, &run, &why))
        code = add_run(e, &run, 1, true, err);
    plumb_result_destroy(&run);
    arena_free(&arena);
    return code;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static uint64_t numbers(const struct plumb_result *r)
{
    uint64_t n = 0;
    for (unsigned p = 0; p < EXPECTED_PARTS; p++)
        for (size_t k = 0; k < r->n_outputs + r->n_grads; k++) {
            const struct plumb_tensor *t = expected_tensor_of(r, (enum plumb_expected_part)p, k);
            n += t ? t->count : 0;
        }
    return n;
}

/* So few cost nothing, and say little about each other. */
enum { FEW_NUMBERS = 256 };

static unsigned runs_for(const struct plumb_expected *e)
{
    if (e->options.runs)
        return e->options.runs < 2 ? 2 : e->options.runs;
    const uint64_t n = numbers(e->reference);
    return n <= 4096 ? 8 : n <= 65536 ? 4 : 2;
}

/* The mean of more runs, as far as there is one already. */
static void weaken(struct plumb_expected *e, double factor)
{
    for (unsigned p = 0; p < EXPECTED_PARTS; p++)
        for (size_t k = 0; k < e->n_parts[p]; k++) {
            const struct expected_tensor *t = &e->parts[p][k];
            const size_t n =
                t->noise ? (size_t)t->reference->count * plumb_dtype_parts(t->reference->dtype) : 0;
            for (size_t i = 0; i < n; i++)
                t->noise[i] *= factor;
        }
}

static void take_terms(struct plumb_expected *e, const struct plumb_result *run)
{
    e->terms[PLUMB_PART_OUTPUT] = e->terms[PLUMB_PART_WRITTEN] = run->terms;
    e->terms[PLUMB_PART_GRADIENT] = run->grad_terms > run->terms ? run->grad_terms : run->terms;
}

static enum plumb_code perturb(struct plumb_expected *e, unsigned runs, struct plumb_error *err)
{
    /* Errors of float64 would drown in its own rounding: larger ones show the same. */
    const double relative = e->wide ? 0x1p-26 : 0x1p-24;
    enum plumb_code code = PLUMB_OK;
    weaken(e, (double)e->runs / runs);
    for (unsigned r = e->runs; r < runs && !code; r++) {
        const struct plumb_noise noise = {.relative = relative,
                                          .seed = e->options.seed + r + 1,
                                          .store = PLUMB_DTYPE_COUNT,
                                          .grads_only = e->op->exact};
        struct plumb_result run = {0};
        code = expected_run(e, &noise, &run, err);
        if (!code)
            code = add_run(e, &run, 1 / (relative * relative * runs), false, err);
        take_terms(e, &run);
        plumb_result_destroy(&run);
    }
    e->runs = runs;
    return code;
}

/* ---- In closed form -------------------------------------------------------------------------- */

/* As good as the mean of so many runs: nothing is left to smooth. */
enum { RUNS_OF_FORM = 32 };

/* Root mean square changes of all tensors. False: not what the reference is like. */
static bool fits(const struct plumb_expected *e, const struct plumb_result *run)
{
    for (unsigned p = 0; p < PLUMB_PART_WRITTEN; p++)
        for (size_t k = 0; k < e->n_parts[p]; k++) {
            const struct plumb_tensor *y = e->parts[p][k].reference,
                                      *b = expected_tensor_of(run, (enum plumb_expected_part)p, k);
            if (is_real(y) && (!is_real(b) || b->count != y->count))
                return false;
        }
    return true;
}

static enum plumb_code take_form(struct plumb_expected *e, const struct plumb_result *run,
                                 struct plumb_error *err)
{
    for (unsigned p = 0; p < PLUMB_PART_WRITTEN; p++)
        for (size_t k = 0; k < e->n_parts[p]; k++) {
            struct expected_tensor *t = &e->parts[p][k];
            if (!is_real(t->reference))
                continue;
            const size_t n = (size_t)t->reference->count;
            t->noise = arena_array(&e->arena, n + 1, sizeof *t->noise);
            if (!t->noise)
                return plumb_no_memory(err);
            plumb_tensor_to_f64(expected_tensor_of(run, (enum plumb_expected_part)p, k), 0, n,
                                t->noise);
            for (size_t i = 0; i < n; i++)
                t->noise[i] *= t->noise[i];
        }
    return PLUMB_OK;
}

/* One run on squared inputs, where the operator allows that. *done: it did. */
static enum plumb_code measure_form(struct plumb_expected *e, bool *done, struct plumb_error *err)
{
    const struct plumb_noise noise = {.squares = true, .store = PLUMB_DTYPE_COUNT};
    struct plumb_result run = {0};
    struct plumb_error why = {0};
    enum plumb_code code =
        e->n_parts[PLUMB_PART_WRITTEN] ? PLUMB_E_UNSUPPORTED : expected_run(e, &noise, &run, &why);
    *done = !code && fits(e, &run);
    if (*done) {
        take_terms(e, &run);
        e->runs = RUNS_OF_FORM;
        code = take_form(e, &run, err);
    }
    plumb_result_destroy(&run);
    if (code == PLUMB_E_NOMEM)
        return plumb_no_memory(err);
    return PLUMB_OK;
}

enum plumb_code expected_measure(struct plumb_expected *e, bool whole, struct plumb_error *err)
{
    const unsigned most = runs_for(e), few = numbers(e->reference) <= FEW_NUMBERS ? most : 2;
    enum plumb_code code = PLUMB_OK;
    for (unsigned p = 0; p < EXPECTED_PARTS && !e->runs; p++)
        e->terms[p] = 1;
    bool done = false;
    if (!e->runs && e->op->closed)
        code = measure_form(e, &done, err);
    if (!code && e->runs < (whole ? most : few))
        code = perturb(e, whole ? most : few, err);
    if (code || !whole || e->whole)
        return code;
    e->whole = true;
    return own_run(e, err);
}
