/* Sums over rows that stop short of the end, and keys of attention that are left out. */
#include "verdict/expected_cause.h"

#include <inttypes.h>

/* The call without the last n of the rows' elements, in all that has them: statistics of rows that
 * stop short. Results may have shorter rows then, and the elements that are there must fit. */
static bool cut_rows(struct cause *c, int64_t size, int64_t n, struct plumb_call *call)
{
    bool fine = true;
    for (size_t k = 0; fine && k < c->list.n; k++) {
        const struct vary_parameter *p = &c->list.parameter[k];
        const struct plumb_tensor *t = p->now.kind == PLUMB_ARG_TENSOR ? p->now.tensor : NULL;
        struct plumb_arg value = p->now, item = {.kind = PLUMB_ARG_INT, .integer = size - n};
        if (t && t->rank && t->shape[t->rank - 1] == size) {
            value.tensor = vary_cut(&c->arena, t, t->rank - 1, size - n);
            fine = value.tensor && vary_set(&c->arena, call, p, &value);
        } else if (vary_has_name(p, "normalized_shape") && value.n_items == 1) {
            struct plumb_arg *items = arena_array(&c->arena, 1, sizeof *items);
            if (!items)
                return false;
            items[0] = item;
            value.items = items;
            fine = vary_set(&c->arena, call, p, &value);
        }
    }
    return fine;
}

static bool try_short_rows(struct cause *c)
{
    const struct plumb_arg *input = &c->list.parameter[0].now;
    if (input->kind != PLUMB_ARG_TENSOR || !input->tensor->rank || c->part != PLUMB_PART_OUTPUT)
        return false;
    const int64_t size = input->tensor->shape[input->tensor->rank - 1];
    const bool rows = c->f->rank && c->f->axis[c->f->rank - 1].size == (uint64_t)size;
    for (int64_t n = 1; n <= 64 && n * 2 < size; n += n < 4 ? 1 : n) {
        struct plumb_call call = c->call;
        c->cut = rows ? n : 0;
        const bool ran = cut_rows(c, size, n, &call) && cause_attempt(c, &call);
        arena_free(&c->arena);
        c->cut = 0;
        if (ran && c->fits) {
            cause_say(c, "as if the sums left out the last %" PRId64 " of %" PRId64, n, size);
            return true;
        }
    }
    return false;
}

/* Zeros in place of the last of the rows' elements, in what is not at these places. */
static bool try_zero_rows(struct cause *c)
{
    const struct vary_parameter *p = &c->list.parameter[0];
    if (p->now.kind != PLUMB_ARG_TENSOR || !p->now.tensor->rank || !c->f->rank)
        return false;
    const struct plumb_tensor *t = p->now.tensor;
    const int64_t size = t->shape[t->rank - 1];
    if (c->f->axis[c->f->rank - 1].size != (uint64_t)size || t->count != c->f->got->count)
        return false;
    for (int64_t n = 1; n <= 64 && n * 2 < size; n += n < 4 ? 1 : n) {
        struct plumb_arg value = p->now;
        value.tensor = vary_zeroed(&c->arena, t, t->rank - 1, size - n, n);
        if (!value.tensor || !cause_attempt_set(c, p, &value))
            continue;
        for (uint64_t i = 0, to = 0; i < c->f->s->n; i++)
            if (i % (uint64_t)size < (uint64_t)(size - n))
                c->y[to++] = c->y[i];
        c->cut = n;
        cause_measure(c, c->y);
        c->cut = 0;
        if (c->fits) {
            cause_say(c, "as without the last %" PRId64 " of %" PRId64 " terms of each row", n,
                      size);
            return true;
        }
    }
    return false;
}

/* The last keys of attention. */
static bool try_last_keys(struct cause *c)
{
    const struct vary_parameter *key = NULL, *value = NULL;
    for (size_t k = 0; k < c->list.n; k++) {
        const struct vary_parameter *p = &c->list.parameter[k];
        if (p->now.kind == PLUMB_ARG_TENSOR && p->now.tensor->rank >= 2) {
            key = vary_has_name(p, "key") ? p : key;
            value = vary_has_name(p, "value") ? p : value;
        }
    }
    if (!key || !value || c->part != PLUMB_PART_OUTPUT)
        return false;
    const unsigned axis = key->now.tensor->rank - 2;
    const int64_t size = key->now.tensor->shape[axis];
    for (int64_t n = 1; n <= 64 && n * 2 < size; n += n < 4 ? 1 : n) {
        struct plumb_call call = c->call;
        struct plumb_arg k = key->now, v = value->now;
        k.tensor = vary_cut(&c->arena, k.tensor, axis, size - n);
        v.tensor = vary_cut(&c->arena, v.tensor, value->now.tensor->rank - 2, size - n);
        const bool ran = k.tensor && v.tensor && vary_set(&c->arena, &call, key, &k) &&
                         vary_set(&c->arena, &call, value, &v) && cause_attempt(c, &call);
        arena_free(&c->arena);
        if (ran && c->fits) {
            cause_say(c, "as without the last %" PRId64 " of %" PRId64 " keys", n, size);
            return true;
        }
    }
    return false;
}

bool cause_rows(struct cause *c)
{
    if (!c->list.n || c->e->terms[c->part] < 2)
        return false;
    return try_short_rows(c) || try_zero_rows(c) || try_last_keys(c);
}
