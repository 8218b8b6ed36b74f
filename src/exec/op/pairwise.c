/* Mathematical functions of two operands. */
#include "exec/op/curve.h"
#include "exec/op/elem.h"

/* max(a, b) + log(1 + exp(-|a - b|)); equal infinities have no difference. */
static inline real real_logaddexp(real a, real b)
{
    return a == b ? a + REAL_LN2 : fmax(a, b) + log1p(exp(-fabs(a - b)));
}

static inline real real_logaddexp2(real a, real b)
{
    return a == b ? a + R(1) : fmax(a, b) + log1p(exp2(-fabs(a - b))) / REAL_LN2;
}

/* a * log_b, but 0 for a = 0 whatever the logarithm, unless it is of NaN. */
static inline real real_xlog(real a, real b, real log_b)
{
    return isnan(b) ? b : a == 0 ? R(0) : a * log_b;
}

/* The larger (smaller) one; the other where one is NaN. */
#define FIRST_IS_LARGER (a >= b || isnan(b))
#define FIRST_IS_SMALLER (a <= b || isnan(b))
#define SQUARES (a * a + b * b)

/* Formulas in columns. */
/* clang-format off */

ELEM_BINARY(atan2,      atan2(a, b),           g * (b / SQUARES),
                                               -g * (a / SQUARES));
ELEM_BINARY(hypot,      hypot(a, b),           g * (a / y),
                                               g * (b / y));
ELEM_BINARY(logaddexp,  real_logaddexp(a, b),  g / (R(1) + exp(b - a)),
                                               g / (R(1) + exp(a - b)));
ELEM_BINARY(logaddexp2, real_logaddexp2(a, b), g / (R(1) + exp2(b - a)),
                                               g / (R(1) + exp2(a - b)));
ELEM_BINARY(copysign,   copysign(a, b),        a == 0 ? R(0) : g * (y / a),
                                               R(0));
ELEM_BINARY(xlogy,      real_xlog(a, b, log(b)),   a == 0 && b <= 0 ? R(0) : g * log(b),
                                                   g * (a / b));
ELEM_BINARY(xlog1py,    real_xlog(a, b, log1p(b)), a == 0 && b <= -1 ? R(0) : g * log1p(b),
                                                   g * (a / (b + R(1))));

ELEM_INTEGERS(fmax, a > b ? a : b)
ELEM_INTEGERS(fmin, a < b ? a : b)
ELEM_BINARY_INT(fmax, FIRST_IS_LARGER ? a : b,  FIRST_IS_LARGER ? g : R(0),
                                                FIRST_IS_LARGER ? R(0) : g, fmax_integers);
ELEM_BINARY_INT(fmin, FIRST_IS_SMALLER ? a : b, FIRST_IS_SMALLER ? g : R(0),
                                                FIRST_IS_SMALLER ? R(0) : g, fmin_integers);

ELEM_INTEGERS(heaviside, a == 0 ? b : a > 0)
ELEM_FLAT(heaviside, a == 0 ? b : (real)(a > 0), heaviside_integers);

/* clang-format on */

/* The neighbour of a towards b among the numbers with p[0] mantissa bits and a smallest exponent of
 * p[1]; beyond p[2] is infinity. */
static real neighbour(real a, real b, const real *p)
{
    if (isnan(a) || isnan(b))
        return a + b;
    if (a == b)
        return b;
    const real tiny = ldexp(R(1), (int)(p[1] - p[0]));
    if (a == 0)
        return b > 0 ? tiny : -tiny;
    const bool away = (b > a) == (a > 0);
    if (isinf(a))
        return a > 0 ? p[2] : -p[2];
    int exponent;
    const real mantissa = frexp(fabs(a), &exponent);
    exponent -= 1;
    /* Just below a power of two numbers are twice as dense. */
    if (!away && mantissa == R(0.5) && exponent > (int)p[1])
        exponent -= 1;
    const int lowest = (int)p[1];
    const real step = ldexp(R(1), (exponent > lowest ? exponent : lowest) - (int)p[0]);
    const real size = away ? fabs(a) + step : fabs(a) - step;
    return copysign(size > p[2] ? R(INFINITY) : size, a);
}

ELEM_FLAT(nextafter, neighbour(a, b, p), NULL);

/* ---- Integers -------------------------------------------------------------------------------- */

static uint64_t size_of(int64_t a)
{
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

static int64_t int_gcd(int64_t a, int64_t b)
{
    uint64_t x = size_of(a), y = size_of(b);
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}

static int64_t int_lcm(int64_t a, int64_t b)
{
    const uint64_t common = (uint64_t)int_gcd(a, b);
    return common ? (int64_t)(size_of(a) / common * size_of(b)) : 0;
}

ELEM_INTEGERS(gcd, int_gcd(a, b))
ELEM_INTEGERS(lcm, int_lcm(a, b))
static const struct elem_binary gcd_fn = {NULL, NULL, gcd_integers};
static const struct elem_binary lcm_fn = {NULL, NULL, lcm_integers};

/* ---- Operators ------------------------------------------------------------------------------- */

#define RUN_FLOAT(name)                                                                            \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        struct val *a = arg_operand(o, "input"), *b = arg_operand(o, "other");                     \
        if (a && b)                                                                                \
            elem_return(o, a,                                                                      \
                        elem_binary(o, a, b, float_dtype(promote(a, b)), &name##_fn, NULL, 0));    \
    }

RUN_FLOAT(atan2)
RUN_FLOAT(hypot)
RUN_FLOAT(logaddexp)
RUN_FLOAT(logaddexp2)
RUN_FLOAT(copysign)
RUN_FLOAT(xlogy)
RUN_FLOAT(xlog1py)

#define RUN_ANY(name)                                                                              \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        struct val *a = arg_operand(o, "input"), *b = arg_operand(o, "other");                     \
        if (a && b)                                                                                \
            elem_return(o, a, elem_binary(o, a, b, promote(a, b), &name##_fn, NULL, 0));           \
    }

RUN_ANY(fmax)
RUN_ANY(fmin)
RUN_ANY(heaviside)

static void run_nextafter(struct op *o)
{
    struct val *a = arg_operand(o, "input"), *b = arg_operand(o, "other");
    if (!a || !b)
        return;
    const enum plumb_dtype dtype = promote(a, b);
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    if (!dtype_is_float(dtype)) {
        op_fail(o, PLUMB_E_ARG, "%s: needs floating-point numbers", o->call->name);
        return;
    }
    const real p[] = {info->precision, info->emin, R(info->max_finite)};
    elem_return(o, a, elem_binary(o, a, b, dtype, &nextafter_fn, p, 3));
}

static void run_whole(struct op *o, const struct elem_binary *fn)
{
    struct val *a = arg_operand(o, "input"), *b = arg_operand(o, "other");
    if (!a || !b)
        return;
    if (a->f || b->f) {
        op_fail(o, PLUMB_E_ARG, "%s: needs integers", o->call->name);
        return;
    }
    elem_return(o, a, elem_binary(o, a, b, promote(a, b), fn, NULL, 0));
}

static void run_gcd(struct op *o)
{
    run_whole(o, &gcd_fn);
}

static void run_lcm(struct op *o)
{
    run_whole(o, &lcm_fn);
}

static void run_ldexp(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    struct val *power = v_pow(o, v_number(o, 2), arg_operand(o, "other"));
    elem_return(o, x, v_mul(o, x, power));
}

#define PAIR "(Operand input|self, Operand other)"

const struct op_def op_pairwise[] = {
    {"atan2 atan2_ arctan2 arctan2_", "atan2" PAIR, run_atan2, 0, NULL},
    {"hypot hypot_", "hypot" PAIR, run_hypot, 0, "sqrt(input^2 + other^2)"},
    {"logaddexp", "logaddexp" PAIR, run_logaddexp, 0, "log(exp(input) + exp(other))"},
    {"logaddexp2", "logaddexp2" PAIR, run_logaddexp2, 0, "log2(2^input + 2^other)"},
    {"copysign copysign_", "copysign" PAIR, run_copysign, OP_EXACT,
     "|input| with the sign of other"},
    {"xlogy xlogy_ special_xlogy special.xlogy", "xlogy" PAIR, run_xlogy, 0, "input * log(other)"},
    {"special_xlog1py special.xlog1py", "special_xlog1py" PAIR, run_xlog1py, 0,
     "input * log(1 + other)"},
    {"fmax", "fmax" PAIR, run_fmax, OP_EXACT, "the other where one is NaN"},
    {"fmin", "fmin" PAIR, run_fmin, OP_EXACT, "the other where one is NaN"},
    {"heaviside heaviside_", "heaviside(Operand input|self, Operand other|values)", run_heaviside,
     OP_NO_GRAD | OP_EXACT, "0 below 0, values at 0, 1 above"},
    {"nextafter nextafter_", "nextafter" PAIR, run_nextafter, OP_NO_GRAD, NULL},
    {"gcd gcd_", "gcd" PAIR, run_gcd, OP_NO_GRAD, NULL},
    {"lcm lcm_", "lcm" PAIR, run_lcm, OP_NO_GRAD, NULL},
    {"ldexp ldexp_", "ldexp" PAIR, run_ldexp, 0, "input * 2^other"},
    {0},
};
