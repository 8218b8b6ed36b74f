/* Another constant in the formula: a variance by n - 1, and numbers that are moved until the result
 * fits. */
#include "verdict/expected_cause.h"

#include <math.h>
#include <string.h>

static int name_length(const struct vary_parameter *p)
{
    return (int)p->length;
}

/* Variances of norms divided by n - 1. What the bias adds is not scaled by it, nor is epsilon. */
bool cause_unbiased(struct cause *c)
{
    static const struct plumb_arg none = {.kind = PLUMB_ARG_NONE};
    const struct vary_parameter *eps = NULL, *bias = NULL;
    const struct sample *s = c->f->s;
    for (size_t k = 0; k < c->list.n; k++) {
        eps = cause_is_epsilon(&c->list.parameter[k]) ? &c->list.parameter[k] : eps;
        bias = vary_has_name(&c->list.parameter[k], "bias") ? &c->list.parameter[k] : bias;
    }
    double *added = c->other;
    if (!eps || !bias || c->e->terms[c->part] < 2)
        return false;
    memset(added, 0, (size_t)s->n * sizeof *added);
    if (bias->now.kind == PLUMB_ARG_TENSOR) {
        if (!cause_attempt_set(c, bias, &none))
            return false;
        for (uint64_t i = 0; i < s->n; i++)
            added[i] = s->y[i] - c->y[i];
    }
    const double n = (double)c->e->terms[c->part], now = cause_number(&eps->now);
    const struct plumb_arg less = {.kind = PLUMB_ARG_FLOAT, .number = now * (n - 1) / n};
    struct plumb_call call = c->call;
    const bool ran =
        vary_set(&c->arena, &call, eps, &less) &&
        (bias->now.kind != PLUMB_ARG_TENSOR || vary_set(&c->arena, &call, bias, &none)) &&
        cause_attempt(c, &call);
    arena_free(&c->arena);
    for (uint64_t i = 0; ran && i < s->n; i++)
        c->y[i] = c->y[i] * sqrt((n - 1) / n) + added[i];
    if (ran)
        cause_measure(c, c->y);
    if (!ran || !c->fits)
        return false;
    cause_say(c, "as with an unbiased variance (n - 1 = %.0f)", n - 1);
    return true;
}

/* Moves one number until the result fits: a number of the arguments, or the scale of an input. */
struct knob {
    const struct vary_parameter *p;
    bool scale; /* of a tensor, in a call of float32 */
    struct plumb_call call;
};

static bool attempt_knob(struct cause *c, const struct knob *knob, double x)
{
    struct plumb_call call = knob->call;
    struct plumb_arg value = {.kind = PLUMB_ARG_FLOAT, .number = x};
    if (knob->scale) {
        value = knob->p->now;
        value.tensor = vary_mapped(&c->arena, knob->p->now.tensor, x, 0);
        if (!value.tensor)
            return false;
    }
    const bool ran = vary_set(&c->arena, &call, knob->p, &value) && cause_attempt(c, &call);
    arena_free(&c->arena);
    return ran;
}

/* How far to go from x, by what a small step changes; *z: how sure the error goes with it. */
static bool next_step(struct cause *c, const struct knob *knob, double x, double *by, double *z)
{
    const struct sample *s = c->f->s;
    const double step = x == 0 ? 1e-6 : x * 0x1p-10;
    double *here = c->other;
    if (!attempt_knob(c, knob, x))
        return false;
    memcpy(here, c->y, (size_t)s->n * sizeof *here);
    if (!attempt_knob(c, knob, x + step))
        return false;
    double ej = 0, jj = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        const double e = s->got[i] - here[i], j = (c->y[i] - here[i]) / step,
                     w = cause_weight(s, i);
        ej += w * e * j;
        jj += w * j * j;
    }
    *by = jj > 0 ? ej / jj : 0;
    *z = jj > 0 ? fabs(ej) / sqrt(jj) : 0;
    return isfinite(*by) && jj > 0;
}

static bool try_knob(struct cause *c, const struct knob *knob, double x, double *found)
{
    enum { STEPS = 6 };
    const double sure = 8;
    double before = c->before;
    for (int step = 0; step < STEPS; step++) {
        double by, z;
        if (!next_step(c, knob, x, &by, &z) || z < sure)
            return false;
        x += by;
        if (!attempt_knob(c, knob, x) || !(c->error < before))
            return false;
        if (c->fits) {
            *found = x;
            return true;
        }
        before = c->error;
    }
    return false;
}

static bool try_constants(struct cause *c)
{
    double x;
    for (size_t k = 0; k < c->list.n; k++) {
        const struct vary_parameter *p = &c->list.parameter[k];
        const bool number = strncmp(p->type, "float", 5) == 0 || strncmp(p->type, "number", 6) == 0;
        const struct knob knob = {.p = p, .call = c->call};
        if (!number || isnan(cause_number(&p->now)) ||
            !try_knob(c, &knob, cause_number(&p->now), &x))
            continue;
        cause_say(c, "as if %.*s were %.4g (it is %.6g)", name_length(p), p->name, x,
                  cause_number(&p->now));
        return true;
    }
    return false;
}

static bool try_scales(struct cause *c)
{
    struct arena arena = {0};
    struct knob knob = {.scale = true, .call = c->call};
    struct vary_list list;
    bool found = false;
    if (vary_widen(&arena, &knob.call)) {
        vary_read(c->e->op, &knob.call, &list);
        for (size_t k = 0; !found && k < list.n; k++) {
            double x;
            knob.p = &list.parameter[k];
            if (knob.p->now.kind != PLUMB_ARG_TENSOR ||
                plumb_dtype_info(knob.p->now.tensor->dtype)->kind != PLUMB_KIND_FLOAT ||
                !try_knob(c, &knob, 1, &x))
                continue;
            cause_say(c, "as if %.*s were scaled by %.6g", name_length(knob.p), knob.p->name, x);
            found = true;
        }
    }
    arena_free(&arena);
    return found;
}

bool cause_constants(struct cause *c, bool simple)
{
    return try_constants(c) || (!simple && try_scales(c));
}
