/* Arithmetic of two operands: sums, products, quotients, powers, extremes. */
#include "exec/op/elem.h"

/* Formulas in columns. */
/* clang-format off */

/* Unsigned, so that integers wrap around. */
ELEM_INTEGERS(add, (int64_t)((uint64_t)a + (uint64_t)b))
ELEM_INTEGERS(sub, (int64_t)((uint64_t)a - (uint64_t)b))
ELEM_INTEGERS(mul, (int64_t)((uint64_t)a * (uint64_t)b))
ELEM_INTEGERS(maximum, a > b ? a : b)
ELEM_INTEGERS(minimum, a < b ? a : b)

ELEM_BINARY_INT(add, a + b, g,      g,      add_integers);
ELEM_BINARY_INT(sub, a - b, g,      -g,     sub_integers);
ELEM_BINARY_INT(mul, a * b, g * b,  g * a,  mul_integers);
ELEM_BINARY(div,     a / b, g / b,  -g * ((a / b) / b));
/* NaN wins; equal operands share the gradient. */
ELEM_BINARY_INT(maximum, a > b || isnan(a) ? a : b,
                a < b ? R(0) : a == b ? g / R(2) : g,
                b < a ? R(0) : a == b ? g / R(2) : g, maximum_integers);
ELEM_BINARY_INT(minimum, a < b || isnan(a) ? a : b,
                a > b ? R(0) : a == b ? g / R(2) : g,
                b > a ? R(0) : a == b ? g / R(2) : g, minimum_integers);

/* A negative power of an integer is 0, unless its base is 1 or -1. */
static int64_t int_pow(int64_t base, int64_t power)
{
    if (power < 0)
        return base == 1 ? 1 : base == -1 ? (power & 1 ? -1 : 1) : 0;
    uint64_t result = 1, factor = (uint64_t)base;
    for (; power; power >>= 1, factor *= factor)
        if (power & 1)
            result *= factor;
    return (int64_t)result;
}

/* The common powers need no logarithm. */
static inline real real_pow(real a, real b)
{
    return b == R(2) ? a * a
         : b == R(1) ? a
         : b == R(0.5) ? sqrt(a)
         : b == R(-1) ? R(1) / a
         : pow(a, b);
}

ELEM_INTEGERS(pow, int_pow(a, b))
/* The gradient of the base is 0 for power 0; of the power, for base 0 and power >= 0. */
ELEM_BINARY_INT(pow, real_pow(a, b),
                b == 0 ? R(0) : g * b * real_pow(a, b - R(1)),
                a == 0 && b >= 0 ? R(0) : g * y * log(a), pow_integers);

/* clang-format on */

/* ---- Building blocks ------------------------------------------------------------------------- */

struct val *v_add(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, promote(a, b), &add_fn, NULL, 0) : NULL;
}

struct val *v_sub(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, promote(a, b), &sub_fn, NULL, 0) : NULL;
}

struct val *v_mul(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, promote(a, b), &mul_fn, NULL, 0) : NULL;
}

struct val *v_div(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, float_dtype(promote(a, b)), &div_fn, NULL, 0) : NULL;
}

struct val *v_maximum(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, promote(a, b), &maximum_fn, NULL, 0) : NULL;
}

struct val *v_minimum(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, promote(a, b), &minimum_fn, NULL, 0) : NULL;
}

struct val *v_pow(struct op *o, struct val *a, struct val *b)
{
    return a && b ? elem_binary(o, a, b, promote(a, b), &pow_fn, NULL, 0) : NULL;
}

struct val *v_scale(struct op *o, struct val *x, double factor)
{
    return v_mul(o, x, v_number(o, factor));
}

struct val *v_offset(struct op *o, struct val *x, double offset)
{
    return v_add(o, x, v_number(o, offset));
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* other * alpha; alpha 1 leaves other as it is. */
static struct val *times_alpha(struct op *o, struct val *other)
{
    const struct plumb_arg *alpha = arg_raw(o, "alpha");
    if (!alpha || (alpha->kind == PLUMB_ARG_INT && alpha->integer == 1) ||
        (alpha->kind == PLUMB_ARG_FLOAT && alpha->number == 1))
        return other;
    return v_mul(o, other, arg_operand(o, "alpha"));
}

static struct val *refuse_bool(struct op *o, struct val *a, struct val *b)
{
    if (a && b && promote(a, b) == PLUMB_BOOL)
        return op_fail(o, PLUMB_E_ARG, "%s: bools cannot be subtracted; use logical_xor",
                       o->call->name);
    return a;
}

static void run_add(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, v_add(o, x, times_alpha(o, arg_operand(o, "other"))));
}

static void run_sub(struct op *o)
{
    struct val *x = arg_operand(o, "input"), *other = times_alpha(o, arg_operand(o, "other"));
    elem_return(o, x, v_sub(o, refuse_bool(o, x, other), other));
}

static void run_rsub(struct op *o)
{
    struct val *x = times_alpha(o, arg_operand(o, "input")), *other = arg_operand(o, "other");
    op_return(o, v_sub(o, refuse_bool(o, other, x), x));
}

static void run_mul(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, v_mul(o, x, arg_operand(o, "other")));
}

static void run_maximum(struct op *o)
{
    op_return(o, v_maximum(o, arg_operand(o, "input"), arg_operand(o, "other")));
}

static void run_minimum(struct op *o)
{
    op_return(o, v_minimum(o, arg_operand(o, "input"), arg_operand(o, "other")));
}

static struct val *power(struct op *o, struct val *base, struct val *exponent)
{
    if (base && exponent && base->i && exponent->i && exponent->weak && exponent->i[0] < 0)
        return op_fail(o, PLUMB_E_ARG,
                       "%s: an integer to the power %lld; make the base a float first",
                       o->call->name, (long long)exponent->i[0]);
    return v_pow(o, base, exponent);
}

static void run_pow(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, power(o, x, arg_operand(o, "exponent")));
}

/* PyTorch copies the base, which has no gradient then. */
static void run_rpow(struct op *o)
{
    op_return(o, power(o, v_detach(o, arg_operand(o, "other")), arg_operand(o, "input")));
}

static void run_float_power(struct op *o)
{
    struct val *x = v_cast(o, arg_operand(o, "input"), PLUMB_F64);
    struct val *exponent = v_cast(o, arg_operand(o, "exponent"), PLUMB_F64);
    op_return(o, v_pow(o, x, exponent));
}

#define PAIR "(Operand input|self, Operand other)"
#define ALPHA "(Operand input|self, Operand other, *, number alpha=1)"
#define POWER "(Operand input|self, Operand exponent|other)"

const struct op_def op_binary[] = {
    {"add add_ __add__ __iadd__ __radd__", "add" ALPHA, run_add, 0, "input + alpha * other"},
    {"sub sub_ subtract subtract_ __sub__ __isub__", "sub" ALPHA, run_sub, 0,
     "input - alpha * other"},
    {"rsub __rsub__", "rsub" ALPHA, run_rsub, 0, "other - alpha * input"},
    {"mul mul_ multiply multiply_ __mul__ __imul__ __rmul__", "mul" PAIR, run_mul, 0, NULL},
    {"maximum", "maximum" PAIR, run_maximum, OP_EXACT, "NaN where either is NaN"},
    {"minimum", "minimum" PAIR, run_minimum, OP_EXACT, "NaN where either is NaN"},
    {"pow pow_ __pow__ __ipow__", "pow" POWER, run_pow, 0, NULL},
    {"__rpow__", "__rpow__" PAIR, run_rpow, 0, "other to the power of input"},
    {"float_power float_power_", "float_power" POWER, run_float_power, 0, "pow in float64"},
    {0},
};
