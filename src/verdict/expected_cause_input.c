/* Tensors that went in: the last terms of a sum missing, one place off, exchanged, transposed,
 * conjugated. */
#include "verdict/expected_cause.h"

#include "base/plain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int name_length(const struct vary_parameter *p)
{
    return (int)p->length;
}

/* One of the tensors that go in: an argument, or a gradient of an output. */
struct input {
    const struct vary_parameter *p; /* NULL: gradient number `grad` */
    size_t grad;
    const struct plumb_tensor *tensor;
    char name[40];
};

static bool attempt_tensor(struct cause *c, const struct input *in, const struct plumb_tensor *t)
{
    if (!t) {
        arena_free(&c->arena);
        return false;
    }
    struct plumb_call call = c->call;
    if (in->p) {
        struct plumb_arg value = in->p->now;
        value.tensor = t;
        return cause_attempt_set(c, in->p, &value);
    }
    const struct plumb_tensor **grads = arena_array(&c->arena, call.n_grads, sizeof *grads);
    if (grads) {
        memcpy(grads, call.grads, call.n_grads * sizeof *grads);
        grads[in->grad] = t;
        call.grads = grads;
    }
    const bool ran = grads && cause_attempt(c, &call);
    arena_free(&c->arena);
    return ran;
}

static bool drop_last(struct cause *c, const struct input *in, unsigned axis, int64_t n)
{
    const int64_t size = in->tensor->shape[axis];
    return attempt_tensor(c, in, vary_zeroed(&c->arena, in->tensor, axis, size - n, n));
}

/* The last terms of a sum are missing. What is left of the error shrinks as more are taken away,
 * until it grows again. */
static bool try_dropped(struct cause *c, const struct input *in, unsigned axis)
{
    const int64_t size = in->tensor->shape[axis];
    int64_t best = 0, low, high;
    double least = c->before;
    for (int64_t n = 1; n < size; n *= 2) {
        if (!drop_last(c, in, axis, n) || (n == 1 && !(c->error < least)))
            return false;
        if (!(c->error < least) && !c->fits)
            break;
        least = c->error;
        best = n;
        if (c->fits)
            break;
    }
    for (low = best / 2, high = best * 2 < size ? best * 2 : size - 1;
         !c->fits && low + 2 < high;) {
        const int64_t a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (!drop_last(c, in, axis, a))
            return false;
        const double error = c->error;
        best = a;
        if (c->fits || !drop_last(c, in, axis, b))
            break;
        best = b;
        low = error > c->error ? a : low;
        high = error > c->error ? high : b;
    }
    for (int64_t n = low; !c->fits && n <= high; n++)
        if (n > 0 && drop_last(c, in, axis, n))
            best = n;
    if (!c->fits || best < 1)
        return false;
    cause_say(c, "as without the last %" PRId64 " of %" PRId64 " terms (axis %u of %s)", best, size,
              axis, in->name);
    return true;
}

static bool try_rolled(struct cause *c, const struct input *in, unsigned axis)
{
    for (int64_t by = -1; by <= 1; by += 2)
        if (attempt_tensor(c, in, vary_rolled(&c->arena, in->tensor, axis, by)) && c->fits) {
            cause_say(c, "off by one: as if %s were rolled by %" PRId64 " along axis %u", in->name,
                      by, axis);
            return true;
        }
    return false;
}

static bool try_first(struct cause *c, const struct input *in, unsigned axis)
{
    if (!attempt_tensor(c, in, vary_zeroed(&c->arena, in->tensor, axis, 0, 1)) || !c->fits)
        return false;
    cause_say(c, "as without the first of %" PRId64 " terms (axis %u of %s)",
              in->tensor->shape[axis], axis, in->name);
    return true;
}

static bool try_transposed(struct cause *c, const struct input *in)
{
    const struct plumb_tensor *t = in->tensor;
    if (t->rank < 2 || t->shape[t->rank - 1] != t->shape[t->rank - 2] || t->shape[t->rank - 1] < 2)
        return false;
    if (!attempt_tensor(c, in, vary_transposed(&c->arena, t)) || !c->fits)
        return false;
    cause_say(c, "as if %s were transposed", in->name);
    return true;
}

static bool try_conjugate(struct cause *c, const struct input *in)
{
    if (plumb_dtype_parts(in->tensor->dtype) != 2 ||
        !attempt_tensor(c, in, vary_conjugate(&c->arena, in->tensor)) || !c->fits)
        return false;
    cause_say(c, "as if %s were conjugated", in->name);
    return true;
}

/* Positions and masks. */
static bool try_whole(struct cause *c, const struct input *in)
{
    if (in->tensor->dtype == PLUMB_BOOL) {
        if (!attempt_tensor(c, in, vary_mapped(&c->arena, in->tensor, -1, 1)) || !c->fits)
            return false;
        cause_say(c, "as if %s were inverted", in->name);
        return true;
    }
    for (int by = -1; by <= 1; by += 2)
        if (attempt_tensor(c, in, vary_mapped(&c->arena, in->tensor, 1, by)) && c->fits) {
            cause_say(c, "off by one: as if %s were %s by 1", in->name,
                      by > 0 ? "larger" : "smaller");
            return true;
        }
    return false;
}

static bool try_input(struct cause *c, const struct input *in)
{
    const enum plumb_kind kind = plumb_dtype_info(in->tensor->dtype)->kind;
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX)
        return try_whole(c, in);
    if (try_conjugate(c, in))
        return true;
    const bool sums = c->e->terms[c->part] > 1;
    for (unsigned axis = in->tensor->rank; axis-- > 0;)
        if (sums && in->tensor->shape[axis] > 1 &&
            (try_dropped(c, in, axis) || try_first(c, in, axis)))
            return true;
    for (unsigned axis = in->tensor->rank; axis-- > 0;)
        if (in->tensor->shape[axis] > 1 && try_rolled(c, in, axis))
            return true;
    return try_transposed(c, in);
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && a->dtype == b->dtype &&
           memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Two tensors of one shape that changed places. */
static bool try_exchanged(struct cause *c, const struct vary_parameter *a)
{
    for (const struct vary_parameter *b = a + 1; b < c->list.parameter + c->list.n; b++) {
        struct plumb_call call = c->call;
        if (a->now.kind != PLUMB_ARG_TENSOR || b->now.kind != PLUMB_ARG_TENSOR ||
            !same_shape(a->now.tensor, b->now.tensor))
            continue;
        const bool ran = vary_set(&c->arena, &call, a, &b->now) &&
                         vary_set(&c->arena, &call, b, &a->now) && cause_attempt(c, &call);
        arena_free(&c->arena);
        if (ran && c->fits) {
            cause_say(c, "as if %.*s and %.*s were exchanged", name_length(a), a->name,
                      name_length(b), b->name);
            return true;
        }
    }
    return false;
}

bool cause_inputs(struct cause *c)
{
    for (size_t k = 0; k < c->call.n_grads; k++) {
        struct input in = {.grad = k, .tensor = c->call.grads[k]};
        plain_print(in.name, sizeof in.name, "the gradient of output %zu", k);
        if (in.tensor && try_input(c, &in))
            return true;
    }
    for (size_t k = 0; k < c->list.n; k++) {
        const struct vary_parameter *p = &c->list.parameter[k];
        struct input in = {.p = p, .tensor = p->now.tensor};
        plain_print(in.name, sizeof in.name, "%.*s", name_length(p), p->name);
        if (p->now.kind == PLUMB_ARG_TENSOR && (try_input(c, &in) || try_exchanged(c, p)))
            return true;
    }
    return false;
}
