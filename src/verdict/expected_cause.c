/* What went wrong in a call, by computing it again in ways that people get it wrong. A way counts
 * when it gives what was got, element for element, within noise. */
#include "verdict/expected_cause.h"

#include "base/plain.h"
#include "verdict/spell.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Operations that all attempts may take together, and how many attempts may be made of a call that
 * takes more by itself. Handling a number counts as 16, four multiplications of a product as one.
 * Quadruple precision takes longer. */
static const double WORK = 0x1p31, WORK_WIDE = 0x1p27;
enum { LEAST_RUNS = 4, MOST_RUNS = 400 };

/* ---- One attempt ----------------------------------------------------------------------------- */

double cause_weight(const struct sample *s, uint64_t i)
{
    const double ulp = fmax(s->ulp[i], sample_ulp(s->dtype, s->got[i]));
    return 1 / (ulp * ulp / 12 + s->sigma[i] * s->sigma[i]);
}

/* The logarithm of the chance that a number from elsewhere, about as far away as the right one,
 * fits an element that is off. It must lie on the right side at least. */
static double chance_at(const struct cause *c, uint64_t i, double expected)
{
    const double far = fabs(c->f->s->got[i] - c->f->s->y[i]);
    return log(fmin(0.5, 2 * off_room(c->f, i, expected) / far));
}

/* Whether the errors no longer go together beside it, as they do beside the reference. */
static bool leans_no_more(const struct cause *c, const double *y)
{
    struct arena arena = {0};
    struct sample s = *c->f->s;
    if (!c->leans || c->cut)
        return false;
    s.arena = &arena;
    const bool found = system_find(&s, y, s.sigma, false).found;
    arena_free(&arena);
    return !found;
}

/* Holds what it gave against what was got. Rows of the attempt may be shorter. */
void cause_measure(struct cause *c, const double *y)
{
    const double certain = -20; /* a chance of 2e-9, for some hundred attempts */
    const struct sample *s = c->f->s;
    const uint64_t size = c->f->rank ? c->f->axis[c->f->rank - 1].size : 1;
    const uint64_t kept = size - (uint64_t)c->cut;
    double chance = 0;
    c->error = 0;
    c->fits = true;
    c->counted = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i] || i % size >= kept)
            continue;
        const double expected = y[i / size * kept + i % size], e = s->got[i] - expected;
        c->error += isfinite(e) ? e * e : INFINITY;
        c->fits = c->fits && off_fits(c->f, i, expected);
        c->counted++;
        if (c->fits && c->f->is[i])
            chance += chance_at(c, i, expected);
    }
    c->fits = c->fits && (chance < certain || leans_no_more(c, y));
}

/* Computes the changed call. False: it cannot be, or not any more. */
bool cause_attempt(struct cause *c, const struct plumb_call *call)
{
    struct plumb_result run = {0};
    struct plumb_error why;
    if (c->runs >= c->most) {
        c->left++;
        return false;
    }
    c->runs++;
    const enum plumb_code code = plumb_op_run(call, PLUMB_RAISED, &run, &why);
    const struct plumb_tensor *t = code ? NULL : expected_tensor_of(&run, c->part, c->k);
    const uint64_t size = c->f->rank ? c->f->axis[c->f->rank - 1].size : 1;
    const uint64_t n = c->f->s->n / size * (size - (uint64_t)c->cut);
    const bool same = t && t->count * plumb_dtype_parts(t->dtype) == n;
    if (same) {
        plumb_tensor_to_f64(t, 0, (size_t)t->count, c->y);
        cause_measure(c, c->y);
    }
    plumb_result_destroy(&run);
    return same;
}

bool cause_attempt_set(struct cause *c, const struct vary_parameter *p,
                       const struct plumb_arg *value)
{
    struct plumb_call call = c->call;
    const bool ran = vary_set(&c->arena, &call, p, value) && cause_attempt(c, &call);
    arena_free(&c->arena);
    return ran;
}

void cause_say(struct cause *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int used = plain_vprint(c->text, PATTERN_TEXT, format, args);
    va_end(args);
    if (used > 0 && used < PATTERN_TEXT)
        plain_print(c->text + used, PATTERN_TEXT - (size_t)used,
                    ": computed so, all %" PRIu64 " elements fit", c->counted);
}

double cause_number(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_INT || arg->kind == PLUMB_ARG_BOOL ? (double)arg->integer
           : arg->kind == PLUMB_ARG_FLOAT                            ? arg->number
                                                                     : NAN;
}

bool cause_is_epsilon(const struct vary_parameter *p)
{
    return p->length >= 3 && memcmp(p->name, "eps", 3) == 0;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* The size of a call: its numbers, and how many of its tensors are about as large as the result. */
struct size {
    double numbers, result;
    unsigned large;
};

static void see_size(void *context, const struct plumb_tensor *tensor)
{
    struct size *size = context;
    size->numbers += (double)tensor->count;
    size->large += (double)tensor->count * 4 >= size->result;
}

static uint64_t allowed_runs(const struct cause *c)
{
    struct size size = {.result = (double)c->f->s->n};
    call_tensors(&c->call, see_size, &size);
    const double handling = 16, terms = (double)c->e->terms[c->part];
    const enum plumb_op_class class = c->e->op->results;
    const bool product =
        class == PLUMB_OP_BILINEAR || (class == PLUMB_OP_COMPOSITE && size.large > 1);
    const double work = handling * (size.numbers + size.result) +
                        (product && terms > 1 ? terms * size.result / 4 : 0);
    const double runs = (c->e->wide ? WORK_WIDE : WORK) / (work > 1 ? work : 1);
    return runs < LEAST_RUNS ? LEAST_RUNS : runs > MOST_RUNS ? MOST_RUNS : (uint64_t)runs;
}

static bool try_all(struct cause *c, bool simple)
{
    for (size_t k = 0; k < c->list.n; k++)
        if (cause_argument(c, &c->list.parameter[k]))
            return true;
    if (cause_unbiased(c) || cause_inputs(c) || cause_rows(c))
        return true;
    return cause_constants(c, simple);
}

bool pattern_cause(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   const struct off *f, const struct system_part *system, bool simple, bool brief,
                   char *text, uint64_t *left)
{
    struct cause c = {.e = e,
                      .part = part,
                      .k = k,
                      .f = f,
                      .leans = system->found,
                      .call = e->call,
                      .text = text};
    c.y = arena_array(f->s->arena, (size_t)f->s->n + 1, sizeof *c.y);
    c.other = arena_array(f->s->arena, (size_t)f->s->n + 1, sizeof *c.other);
    if (!c.y || !c.other)
        return false;
    if (part != PLUMB_PART_GRADIENT)
        c.call.n_grads = 0;
    vary_read(e->op, &c.call, &c.list);
    c.most = allowed_runs(&c) / (brief ? 8 : 1);
    cause_measure(&c, f->s->y);
    c.before = c.error;
    const bool found = try_all(&c, simple);
    *left = c.left;
    return found;
}
