/* Bits of integers and bools. */
#include "exec/op/elem.h"

#include <string.h>

/* A shift by a negative or too large count leaves only what the sign fills in. */
static inline int64_t shift_left(int64_t a, int64_t b)
{
    return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
}

static inline int64_t shift_right(int64_t a, int64_t b)
{
    return a >> (b < 0 || b > 63 ? 63 : b);
}

#define BITS(name, formula)                                                                        \
    ELEM_INTEGERS(name, formula)                                                                   \
    static const struct elem_binary name##_fn = {NULL, NULL, name##_integers};

BITS(and, a &b)
BITS(or, a | b)
BITS(xor, a ^ b)
BITS(left, shift_left(a, b))
BITS(right, shift_right(a, b))

static struct val *combine(struct op *o, struct val *a, struct val *b, const struct elem_binary *fn)
{
    if (!a || !b)
        return NULL;
    const enum plumb_dtype dtype = promote(a, b);
    if (dtype_is_float(dtype))
        return op_fail(o, PLUMB_E_ARG, "%s: needs integers or bools", o->call->name);
    return elem_binary(o, a, b, dtype, fn, NULL, 0);
}

/* Shifts of floats multiply by powers of two, as torch's __lshift__ once did. */
static struct val *shift(struct op *o, struct val *a, struct val *b, const struct elem_binary *fn)
{
    if (!a || !b || (!a->f && !b->f))
        return combine(o, a, b, fn);
    struct val *power = v_pow(o, v_number(o, 2), v_cast(o, b, float_dtype(promote(a, b))));
    return fn == &left_fn ? v_mul(o, a, power) : v_div(o, a, power);
}

#define RUN(name, how)                                                                             \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        struct val *a = arg_operand(o, "input");                                                   \
        elem_return(o, a, how(o, a, arg_operand(o, "other"), &name##_fn));                         \
    }

RUN(and, combine)
RUN(or, combine)
RUN(xor, combine)
RUN(left, shift)
RUN(right, shift)

static void run_rleft(struct op *o)
{
    op_return(o, shift(o, arg_operand(o, "other"), arg_operand(o, "input"), &left_fn));
}

static void run_rright(struct op *o)
{
    op_return(o, shift(o, arg_operand(o, "other"), arg_operand(o, "input"), &right_fn));
}

static void run_not(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *out = x ? val_like(o, x, x->dtype) : NULL;
    if (out && out->f) {
        op_fail(o, PLUMB_E_ARG, "%s: needs integers or bools", o->call->name);
        return;
    }
    for (int64_t k = 0; out && k < out->count; k++)
        out->i[k] = x->dtype == PLUMB_BOOL ? !x->i[k] : int_wrap(x->dtype, ~x->i[k]);
    op_return(o, out);
}

#define PAIR "(Operand input|self, Operand other)"

const struct op_def op_bits[] = {
    {"bitwise_and bitwise_and_ __and__ __iand__ __rand__", "bitwise_and" PAIR, run_and, OP_NO_GRAD,
     NULL},
    {"bitwise_or bitwise_or_ __or__ __ior__ __ror__", "bitwise_or" PAIR, run_or, OP_NO_GRAD, NULL},
    {"bitwise_xor bitwise_xor_ __xor__ __ixor__ __rxor__", "bitwise_xor" PAIR, run_xor, OP_NO_GRAD,
     NULL},
    {"bitwise_left_shift bitwise_left_shift_ __lshift__ __ilshift__", "bitwise_left_shift" PAIR,
     run_left, OP_NO_GRAD, "input * 2^other"},
    {"bitwise_right_shift bitwise_right_shift_ __rshift__ __irshift__", "bitwise_right_shift" PAIR,
     run_right, OP_NO_GRAD, "the sign is kept"},
    {"__rlshift__", "__rlshift__" PAIR, run_rleft, OP_NO_GRAD, NULL},
    {"__rrshift__", "__rrshift__" PAIR, run_rright, OP_NO_GRAD, NULL},
    {"bitwise_not bitwise_not_ __invert__", "bitwise_not(Tensor input|self)", run_not, OP_NO_GRAD,
     NULL},
    {0},
};
