/* Arguments that are no tensors: left out, with another value, another axis. */
#include "verdict/expected_cause.h"

#include "base/plain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int name_length(const struct vary_parameter *p)
{
    return (int)p->length;
}

static void say_value(const struct plumb_arg *value, char *text, size_t size)
{
    if (value->kind == PLUMB_ARG_BOOL)
        plain_print(text, size, "%s", value->integer ? "True" : "False");
    else if (value->kind == PLUMB_ARG_INT)
        plain_print(text, size, "%" PRId64, value->integer);
    else if (value->kind == PLUMB_ARG_FLOAT)
        plain_print(text, size, "%.6g", value->number);
    else if (value->kind == PLUMB_ARG_TEXT)
        plain_print(text, size, "'%.20s'", value->text);
    else if (value->kind == PLUMB_ARG_LIST && value->n_items == 1)
        say_value(&value->items[0], text, size);
    else
        plain_print(text, size, "not given");
}

static bool try_value(struct cause *c, const struct vary_parameter *p,
                      const struct plumb_arg *value)
{
    char now[40], was[40];
    if (!cause_attempt_set(c, p, value) || !c->fits)
        return false;
    say_value(value, now, sizeof now);
    say_value(&p->now, was, sizeof was);
    if (p->now.kind == PLUMB_ARG_NONE)
        cause_say(c, "as if %.*s were %s", name_length(p), p->name, now);
    else
        cause_say(c, "as if %.*s were %s (it is %s)", name_length(p), p->name, now, was);
    return true;
}

/* The usual values; of several that fit, as small ones may, the one that leaves least. */
static bool try_number(struct cause *c, const struct vary_parameter *p)
{
    static const double epsilons[] = {1e-5, 1e-6, 1e-8, 1e-12, 0,    1e-7,    1e-10,
                                      1e-9, 1e-4, 1e-3, 1e-2,  1e-1, 0x1p-23, 0x1p-52},
                        others[] = {0, 1, -1, 0.5, 2};
    const bool epsilon = cause_is_epsilon(p);
    const double *list = epsilon ? epsilons : others;
    const size_t n = epsilon ? sizeof epsilons / sizeof *epsilons : sizeof others / sizeof *others;
    struct plumb_arg value = {.kind = PLUMB_ARG_FLOAT}, best = value;
    double least = INFINITY;
    for (size_t k = 0; k < n; k++) {
        value.number = list[k];
        if (list[k] == cause_number(&p->now) || !cause_attempt_set(c, p, &value) || !c->fits ||
            c->error >= least)
            continue;
        least = c->error;
        best = value;
    }
    return isfinite(least) && try_value(c, p, &best);
}

static bool is_axis(const struct vary_parameter *p)
{
    return vary_has_name(p, "dim") || vary_has_name(p, "axis") || vary_has_name(p, "dims");
}

/* Another axis, as the kind of argument that it was. */
static bool try_axis(struct cause *c, const struct vary_parameter *p)
{
    const struct plumb_arg *first = p->now.kind == PLUMB_ARG_LIST ? p->now.items : &p->now;
    const struct plumb_arg *input = &c->list.parameter[0].now;
    if (input->kind != PLUMB_ARG_TENSOR || (p->now.kind == PLUMB_ARG_LIST && p->now.n_items != 1))
        return false;
    const int64_t rank = input->tensor->rank;
    const bool given = first->kind == PLUMB_ARG_INT;
    const int64_t now = given ? (first->integer % rank + rank) % rank : -1;
    for (int64_t axis = 0; axis < rank && rank > 1; axis++) {
        const struct plumb_arg item = {.kind = PLUMB_ARG_INT, .integer = axis};
        const struct plumb_arg list = {.kind = PLUMB_ARG_LIST, .items = &item, .n_items = 1};
        if (axis != now && cause_attempt_set(c, p, p->now.kind == PLUMB_ARG_LIST ? &list : &item) &&
            c->fits) {
            cause_say(c, "over the wrong axis, %" PRId64 " instead of %" PRId64, axis, now);
            return true;
        }
    }
    return false;
}

static bool try_integer(struct cause *c, const struct vary_parameter *p)
{
    if (is_axis(p))
        return try_axis(c, p);
    if (p->now.kind != PLUMB_ARG_INT)
        return false;
    const int64_t n = p->now.integer, values[] = {n + 1, n - 1, n * 2, n / 2};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
        const struct plumb_arg value = {.kind = PLUMB_ARG_INT, .integer = values[k]};
        if (values[k] != n && try_value(c, p, &value))
            return true;
    }
    return false;
}

static bool try_text(struct cause *c, const struct vary_parameter *p)
{
    static const struct {
        const char *name, *word;
    } known[] = {{"approximate", "tanh"},   {"approximate", "none"},    {"reduction", "sum"},
                 {"reduction", "mean"},     {"rounding_mode", "trunc"}, {"rounding_mode", "floor"},
                 {"padding_mode", "zeros"}, {"padding_mode", "border"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const struct plumb_arg value = {.kind = PLUMB_ARG_TEXT, .text = known[k].word};
        const bool same = p->now.kind == PLUMB_ARG_TEXT && strcmp(p->now.text, value.text) == 0;
        if (vary_has_name(p, known[k].name) && !same && try_value(c, p, &value))
            return true;
    }
    return false;
}

static bool try_bool(struct cause *c, const struct vary_parameter *p)
{
    const struct plumb_arg value = {.kind = PLUMB_ARG_BOOL, .integer = !p->now.integer};
    return !vary_has_name(p, "inplace") && !vary_has_name(p, "keepdim") && try_value(c, p, &value);
}

/* One argument by its kind. */
bool cause_argument(struct cause *c, const struct vary_parameter *p)
{
    static const struct plumb_arg none = {.kind = PLUMB_ARG_NONE};
    if (p->now.kind == PLUMB_ARG_TENSOR && vary_has_type(p, "Tensor?") &&
        cause_attempt_set(c, p, &none) && c->fits) {
        cause_say(c, "as without %.*s", name_length(p), p->name);
        return true;
    }
    if (p->now.kind == PLUMB_ARG_TENSOR)
        return false;
    if (vary_has_type(p, "bool") || vary_has_type(p, "bool?"))
        return try_bool(c, p);
    if (vary_has_type(p, "str") || vary_has_type(p, "str?"))
        return try_text(c, p);
    if (strncmp(p->type, "float", 5) == 0 || strncmp(p->type, "number", 6) == 0)
        return try_number(c, p);
    if (strncmp(p->type, "int", 3) == 0 || is_axis(p))
        return try_integer(c, p);
    return false;
}
