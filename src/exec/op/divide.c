/* Division: true, floored, truncated, and what is left over. */
#include "exec/op/elem.h"

#include <string.h>

/* ---- Integers: callers have refused b == 0 --------------------------------------------------- */

/* -1 apart, because the smallest integer has no negative. */
static inline int64_t int_trunc(int64_t a, int64_t b)
{
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static inline int64_t int_fmod(int64_t a, int64_t b)
{
    return b == -1 ? 0 : a % b;
}

static inline int64_t int_remainder(int64_t a, int64_t b)
{
    const int64_t r = int_fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline int64_t int_floor(int64_t a, int64_t b)
{
    const int64_t r = int_fmod(a, b);
    return int_trunc(a, b) - (r != 0 && (r < 0) != (b < 0));
}

ELEM_INTEGERS(trunc, int_trunc(a, b))
ELEM_INTEGERS(floor, int_floor(a, b))
ELEM_INTEGERS(fmod, int_fmod(a, b))
ELEM_INTEGERS(remainder, int_remainder(a, b))

/* ---- Floats ---------------------------------------------------------------------------------- */

/* The sign of b, as Python's %. */
static inline real real_remainder(real a, real b)
{
    const real r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* floor(a / b), right even where the quotient itself would be rounded up to an integer. */
static inline real real_floor_divide(real a, real b)
{
    if (b == 0)
        return a / b;
    const real r = fmod(a, b);
    real quotient = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0))
        quotient -= R(1);
    if (quotient == 0)
        return copysign(R(0), a / b);
    const real whole = floor(quotient);
    return quotient - whole > R(0.5) ? whole + R(1) : whole;
}

ELEM_BINARY_INT(trunc, trunc(a / b), R(0), R(0), trunc_integers);
ELEM_BINARY_INT(floor, real_floor_divide(a, b), R(0), R(0), floor_integers);
ELEM_FLAT(floor_flat, real_floor_divide(a, b), floor_integers);
ELEM_BINARY_INT(fmod, fmod(a, b), g, -g *trunc(a / b), fmod_integers);
ELEM_BINARY_INT(remainder, real_remainder(a, b), g, -g *real_floor_divide(a, b),
                remainder_integers);

/* ---- Operators ------------------------------------------------------------------------------- */

/* Integers cannot be divided by zero. bool divides as if it were an integer. */
static struct val *divided(struct op *o, struct val *a, struct val *b, const struct elem_binary *fn)
{
    if (!a || !b)
        return NULL;
    const enum plumb_dtype dtype = promote(a, b);
    for (int64_t k = 0; !dtype_is_float(dtype) && k < b->count; k++)
        if (int_wrap(dtype, b->i[k]) == 0)
            return op_fail(o, PLUMB_E_ARG, "%s: an integer is divided by zero (element %lld)",
                           o->call->name, (long long)k);
    return elem_binary(o, a, b, dtype, fn, NULL, 0);
}

static void run_div(struct op *o)
{
    struct val *a = arg_operand(o, "input"), *b = arg_operand(o, "other");
    const char *mode = arg_text(o, "rounding_mode");
    if (!mode)
        elem_return(o, a, v_div(o, a, b));
    else if (strcmp(mode, "trunc") == 0)
        elem_return(o, a, divided(o, a, b, &trunc_fn));
    else if (strcmp(mode, "floor") == 0)
        elem_return(o, a, divided(o, a, b, &floor_fn));
    else
        op_fail(o, PLUMB_E_ARG, "%s: rounding_mode is '%s', not None, 'trunc' or 'floor'",
                o->call->name, mode);
}

static void run_rdiv(struct op *o)
{
    op_return(o, v_div(o, arg_operand(o, "other"), arg_operand(o, "input")));
}

static void run_floor_divide(struct op *o)
{
    struct val *a = arg_operand(o, "input");
    elem_return(o, a, divided(o, a, arg_operand(o, "other"), &floor_flat_fn));
}

static void run_rfloor_divide(struct op *o)
{
    op_return(o, divided(o, arg_operand(o, "other"), arg_operand(o, "input"), &floor_flat_fn));
}

static void run_fmod(struct op *o)
{
    struct val *a = arg_operand(o, "input");
    elem_return(o, a, divided(o, a, arg_operand(o, "other"), &fmod_fn));
}

static void run_remainder(struct op *o)
{
    struct val *a = arg_operand(o, "input");
    elem_return(o, a, divided(o, a, arg_operand(o, "other"), &remainder_fn));
}

static void run_rremainder(struct op *o)
{
    op_return(o, divided(o, arg_operand(o, "other"), arg_operand(o, "input"), &remainder_fn));
}

#define PAIR "(Operand input|self, Operand other)"

const struct op_def op_divide[] = {
    {"div div_ divide divide_ true_divide true_divide_ __div__ __truediv__ __idiv__ __itruediv__",
     "div(Operand input|self, Operand other, *, str? rounding_mode=None)", run_div, 0, NULL},
    {"__rdiv__ __rtruediv__", "__rdiv__" PAIR, run_rdiv, 0, "other / input"},
    {"floor_divide floor_divide_ __floordiv__ __ifloordiv__", "floor_divide" PAIR, run_floor_divide,
     OP_NO_GRAD | OP_DECISION | OP_COMPUTED, "floor(input / other)"},
    {"__rfloordiv__", "__rfloordiv__" PAIR, run_rfloor_divide,
     OP_NO_GRAD | OP_DECISION | OP_COMPUTED, "floor(other / input)"},
    {"fmod fmod_", "fmod" PAIR, run_fmod, 0, "the sign of input"},
    {"remainder remainder_ __mod__ __imod__", "remainder" PAIR, run_remainder, 0,
     "the sign of other"},
    {"__rmod__", "__rmod__" PAIR, run_rremainder, 0, "other modulo input"},
    {0},
};
