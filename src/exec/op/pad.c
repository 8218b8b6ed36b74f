/* Padding: constant, reflect, replicate, circular. */
#include "exec/op/place.h"

#include <string.h>

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR };

static enum pad_mode pad_mode(struct op *o, const char *text)
{
    static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
    for (unsigned k = 0; text && k < sizeof names / sizeof *names; k++)
        if (strcmp(text, names[k]) == 0)
            return (enum pad_mode)k;
    op_fail(o, PLUMB_E_ARG, "pad: there is no mode '%s'", text ? text : "None");
    return PAD_CONSTANT;
}

/* The element of a dimension of size n that stands at place `at`, which may lie outside. */
static int64_t source_of(enum pad_mode mode, int64_t at, int64_t n)
{
    if (at >= 0 && at < n)
        return at;
    switch (mode) {
    case PAD_REFLECT:
        return at < 0 ? -at : 2 * (n - 1) - at;
    case PAD_REPLICATE:
        return at < 0 ? 0 : n - 1;
    case PAD_CIRCULAR:
        return at < 0 ? at + n : at - n;
    default:
        return -1;
    }
}

/* Whether so much padding on a side of a dimension of size n can come from the dimension. */
static bool within(enum pad_mode mode, int64_t pad, int64_t n)
{
    switch (mode) {
    case PAD_REFLECT:
        return pad < n;
    case PAD_REPLICATE:
        return pad <= 0 || n > 0;
    case PAD_CIRCULAR:
        return pad <= n;
    default:
        return true;
    }
}

/* The padded shape and where its elements come from. pads: before and after, last dimension
 * first. */
static const int64_t *pad_map(struct op *o, const struct val *x, enum pad_mode mode,
                              const int64_t *pads, size_t n, int64_t *shape)
{
    if (!x || o->failed)
        return NULL;
    if (n % 2 || n / 2 > x->rank)
        return op_fail(o, PLUMB_E_ARG, "%s: %zu numbers for a tensor of %u dimensions",
                       o->call->name, n, x->rank);
    const int64_t *index[OP_RANK] = {0};
    for (size_t k = 0; k < n / 2; k++) {
        unsigned d = x->rank - 1 - (unsigned)k;
        int64_t before = pads[2 * k], after = pads[2 * k + 1], size = x->shape[d];
        if (__builtin_add_overflow(size, before, &shape[d]) ||
            __builtin_add_overflow(shape[d], after, &shape[d]) || shape[d] < 0 ||
            shape[d] > INT64_MAX / 64 || !within(mode, before, size) ||
            !within(mode, after, size) || before < -size || after < -size)
            return op_fail(o, PLUMB_E_ARG, "%s: dimension %u of size %lld padded by %lld and %lld",
                           o->call->name, d, (long long)size, (long long)before, (long long)after);
        int64_t *at = op_alloc(o, shape[d] + 1, sizeof *at);
        if (!at)
            return NULL;
        /* A negative padding cuts first; what goes around then is the rest. */
        const int64_t cut = before < 0 && mode == PAD_CIRCULAR ? -before : 0;
        const int64_t rest = size - cut + (after < 0 && mode == PAD_CIRCULAR ? after : 0);
        for (int64_t j = 0; j < shape[d]; j++)
            at[j] = mode == PAD_CIRCULAR ? cut + source_of(mode, j - before - cut, rest)
                                         : source_of(mode, j - before, size);
        index[d] = at;
    }
    return pick_map(o, x, shape, index);
}

static struct val *padded(struct op *o, struct val *x, enum pad_mode mode, const int64_t *pads,
                          size_t n, struct val *value)
{
    int64_t shape[OP_RANK];
    const int64_t *map = pad_map(o, x, mode, pads, n, shape);
    struct val *out = map ? v_map(o, x, x->rank, shape, map) : NULL;
    if (!out || mode != PAD_CONSTANT || !value || val_at(value, 0) == 0)
        return out;
    struct val *outside = val_like(o, out, PLUMB_BOOL);
    for (int64_t k = 0; outside && k < out->count; k++)
        outside->i[k] = map[k] < 0;
    return v_where(o, outside, v_cast(o, value, x->dtype), out);
}

static void run_pad(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *value = arg_given(o, "value") ? arg_operand(o, "value") : NULL;
    size_t n;
    const int64_t *pads = arg_ints(o, "pad", &n);
    const char *text = arg_raw(o, "mode") ? arg_text(o, "mode") : "constant";
    op_return(o, padded(o, x, pad_mode(o, text), pads, n, value));
}

static enum pad_mode mode_of_name(const struct op *o)
{
    return strncmp(o->call->name, "refl", 4) == 0 ? PAD_REFLECT : PAD_REPLICATE;
}

static void run_pad_nd(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *pads = arg_ints(o, "padding", &n);
    op_return(o, padded(o, x, mode_of_name(o), pads, n, NULL));
}

static void run_pad_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *grad = arg_tensor(o, "grad");
    size_t n;
    const int64_t *pads = arg_ints(o, "padding", &n);
    int64_t shape[OP_RANK];
    const int64_t *map = pad_map(o, x, mode_of_name(o), pads, n, shape);
    if (!map || !grad)
        return;
    if (grad->rank != x->rank || memcmp(grad->shape, shape, x->rank * sizeof *shape) != 0)
        op_fail(o, PLUMB_E_ARG, "%s: the gradient does not have the padded shape", o->call->name);
    op_return(o, v_place_add(o, v_full(o, grad->dtype, x->rank, x->shape, 0), grad, map));
}

const struct op_def op_pad[] = {
    {"pad", "pad(Tensor input|self, int[] pad, str mode='constant', number? value=None)", run_pad,
     0, NULL},
    {"constant_pad_nd", "constant_pad_nd(Tensor input|self, int[] pad, number value=0)", run_pad, 0,
     NULL},
    {"reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d "
     "replication_pad3d",
     "reflection_pad1d(Tensor input|self, int[] padding)", run_pad_nd, 0, NULL},
    {"reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward "
     "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
     "reflection_pad1d_backward(Tensor grad|grad_output, Tensor input|self, int[] padding)",
     run_pad_backward, OP_LINEAR, NULL},
    {0},
};
