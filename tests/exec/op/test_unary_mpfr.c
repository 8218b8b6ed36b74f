/* Operators of one element against MPFR: every float16, every bfloat16, and random float32 values
 * in the reference's float64; random float64 values in its binary128, rounded to float64 and, for
 * some, as they are. */
#define OP_REAL 128
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/op/run.h"
#include "random.h"

#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANDOM = 20000, HALVES = 65536, EXACT_STEP = 5 /* of the random ones as they are */ };

/* ---- Truth ----------------------------------------------------------------------------------- */

/* y = f(x); t and u are room for steps. All have the same precision. */
typedef void truth(mpfr_t y, const mpfr_t x, mpfr_t t, mpfr_t u);

#define N MPFR_RNDN
#define TRUTH(name) static void name##_truth(mpfr_t y, const mpfr_t x, mpfr_t t, mpfr_t u)
#define DIRECT(name, function)                                                                     \
    TRUTH(name)                                                                                    \
    {                                                                                              \
        (void)t, (void)u;                                                                          \
        function(y, x, N);                                                                         \
    }

DIRECT(exp, mpfr_exp)
DIRECT(exp2, mpfr_exp2)
DIRECT(expm1, mpfr_expm1)
DIRECT(log, mpfr_log)
DIRECT(log2, mpfr_log2)
DIRECT(log10, mpfr_log10)
DIRECT(log1p, mpfr_log1p)
DIRECT(sqrt, mpfr_sqrt)
DIRECT(sin, mpfr_sin)
DIRECT(cos, mpfr_cos)
DIRECT(tan, mpfr_tan)
DIRECT(asin, mpfr_asin)
DIRECT(acos, mpfr_acos)
DIRECT(atan, mpfr_atan)
DIRECT(sinh, mpfr_sinh)
DIRECT(cosh, mpfr_cosh)
DIRECT(tanh, mpfr_tanh)
DIRECT(asinh, mpfr_asinh)
DIRECT(acosh, mpfr_acosh)
DIRECT(atanh, mpfr_atanh)
DIRECT(erf, mpfr_erf)
DIRECT(erfc, mpfr_erfc)
DIRECT(digamma, mpfr_digamma)
DIRECT(j0, mpfr_j0)
DIRECT(j1, mpfr_j1)
DIRECT(y0, mpfr_y0)
DIRECT(y1, mpfr_y1)
DIRECT(abs, mpfr_abs)
DIRECT(neg, mpfr_neg)
DIRECT(square, mpfr_sqr)
DIRECT(round, mpfr_rint)

TRUTH(lgamma)
{
    (void)t, (void)u;
    int sign;
    mpfr_lgamma(y, &sign, x, N);
}

TRUTH(rsqrt) /* 1 / sqrt(-0) is -infinity */
{
    (void)u;
    mpfr_sqrt(t, x, N);
    mpfr_ui_div(y, 1, t, N);
}

TRUTH(reciprocal)
{
    (void)t, (void)u;
    mpfr_ui_div(y, 1, x, N);
}

TRUTH(frac) /* of infinity: infinity - infinity */
{
    (void)t, (void)u;
    if (mpfr_inf_p(x))
        mpfr_set_nan(y);
    else
        mpfr_frac(y, x, N);
}

TRUTH(ceil)
{
    (void)t, (void)u;
    mpfr_ceil(y, x);
}

TRUTH(floor)
{
    (void)t, (void)u;
    mpfr_floor(y, x);
}

TRUTH(trunc)
{
    (void)t, (void)u;
    mpfr_trunc(y, x);
}

TRUTH(deg2rad)
{
    (void)u;
    mpfr_const_pi(t, N);
    mpfr_mul(y, x, t, N);
    mpfr_div_ui(y, y, 180, N);
}

TRUTH(rad2deg)
{
    (void)u;
    mpfr_const_pi(t, N);
    mpfr_mul_ui(y, x, 180, N);
    mpfr_div(y, y, t, N);
}

TRUTH(sigmoid)
{
    (void)u;
    mpfr_neg(t, x, N);
    mpfr_exp(t, t, N);
    mpfr_add_ui(t, t, 1, N);
    mpfr_ui_div(y, 1, t, N);
}

TRUTH(silu)
{
    sigmoid_truth(y, x, t, u);
    mpfr_mul(y, y, x, N);
}

TRUTH(softplus_exact)
{
    (void)u;
    if (mpfr_cmp_si(x, 0) > 0) {
        mpfr_neg(t, x, N);
        mpfr_exp(t, t, N);
        mpfr_log1p(t, t, N);
        mpfr_add(y, x, t, N);
    } else {
        mpfr_exp(t, x, N);
        mpfr_log1p(y, t, N);
    }
}

TRUTH(softplus) /* beyond its threshold it is x, by definition */
{
    if (mpfr_cmp_si(x, 20) > 0)
        mpfr_set(y, x, N);
    else
        softplus_exact_truth(y, x, t, u);
}

TRUTH(logsigmoid)
{
    mpfr_neg(u, x, N);
    softplus_exact_truth(y, u, t, t);
    mpfr_neg(y, y, N);
}

TRUTH(mish)
{
    softplus_exact_truth(y, x, t, u);
    mpfr_tanh(y, y, N);
    mpfr_mul(y, y, x, N);
}

/* erfc(-x / sqrt(2)) / 2 */
TRUTH(ndtr)
{
    (void)u;
    mpfr_sqrt_ui(t, 2, N);
    mpfr_div(t, x, t, N);
    mpfr_neg(t, t, N);
    mpfr_erfc(y, t, N);
    mpfr_div_ui(y, y, 2, N);
}

TRUTH(gelu)
{
    ndtr_truth(y, x, t, u);
    mpfr_mul(y, y, x, N);
}

TRUTH(log_ndtr)
{
    ndtr_truth(y, x, t, u);
    if (mpfr_cmp_d(y, 0.5) > 0) { /* log1p of minus the other side */
        mpfr_neg(u, x, N);
        ndtr_truth(y, u, t, u);
        mpfr_neg(y, y, N);
        mpfr_log1p(y, y, N);
    } else {
        mpfr_log(y, y, N);
    }
}

/* x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))), with the constant as everybody writes it. */
TRUTH(gelu_tanh)
{
    mpfr_sqr(t, x, N);
    mpfr_mul(t, t, x, N);
    mpfr_mul_ui(t, t, 44715, N);
    mpfr_div_ui(t, t, 1000000, N);
    mpfr_add(t, t, x, N);
    mpfr_const_pi(u, N);
    mpfr_ui_div(u, 8, u, N);
    mpfr_sqrt(u, u, N);
    mpfr_mul(u, u, t, N);
    sigmoid_truth(y, u, t, t);
    mpfr_mul(y, y, x, N);
}

TRUTH(tanhshrink) /* x^3 / 3 - ... */
{
    mpfr_abs(t, x, N);
    if (mpfr_cmp_d(t, 1e-22) < 0) {
        mpfr_sqr(t, x, N);
        mpfr_mul(y, t, x, N);
        mpfr_div_ui(y, y, 3, N);
        return;
    }
    mpfr_set_prec(u, 500);
    mpfr_tanh(u, x, N);
    mpfr_sub(y, x, u, N);
    mpfr_set_prec(u, mpfr_get_prec(y));
}

TRUTH(softsign)
{
    (void)u;
    mpfr_abs(t, x, N);
    mpfr_add_ui(t, t, 1, N);
    mpfr_div(y, x, t, N);
}

TRUTH(hardsigmoid)
{
    (void)t, (void)u;
    mpfr_add_ui(y, x, 3, N);
    if (mpfr_cmp_ui(y, 0) < 0)
        mpfr_set_ui(y, 0, N);
    if (mpfr_cmp_ui(y, 6) > 0)
        mpfr_set_ui(y, 6, N);
    mpfr_div_ui(y, y, 6, N);
}

TRUTH(hardswish)
{
    hardsigmoid_truth(y, x, t, u);
    mpfr_mul(y, y, x, N);
}

static void elu_general(mpfr_t y, const mpfr_t x, const char *alpha, const char *scale)
{
    if (mpfr_cmp_ui(x, 0) > 0) {
        mpfr_set(y, x, N);
    } else {
        mpfr_t a;
        mpfr_init2(a, mpfr_get_prec(y));
        mpfr_set_str(a, alpha, 10, N);
        mpfr_expm1(y, x, N);
        mpfr_mul(y, y, a, N);
        mpfr_clear(a);
    }
    mpfr_t s;
    mpfr_init2(s, mpfr_get_prec(y));
    mpfr_set_str(s, scale, 10, N);
    mpfr_mul(y, y, s, N);
    mpfr_clear(s);
}

TRUTH(elu)
{
    (void)t, (void)u;
    elu_general(y, x, "1", "1");
}

TRUTH(selu)
{
    (void)t, (void)u;
    elu_general(y, x, "1.6732632423543772848170429916717", "1.0507009873554804934193349852946");
}

TRUTH(celu) /* alpha 2 */
{
    (void)u;
    if (mpfr_cmp_ui(x, 0) > 0) {
        mpfr_set(y, x, N);
        return;
    }
    mpfr_div_ui(t, x, 2, N);
    mpfr_expm1(y, t, N);
    mpfr_mul_ui(y, y, 2, N);
}

TRUTH(relu)
{
    (void)t, (void)u;
    if (mpfr_cmp_ui(x, 0) < 0)
        mpfr_set_ui(y, 0, N);
    else
        mpfr_set(y, x, N);
}

TRUTH(relu6)
{
    relu_truth(y, x, t, u);
    if (mpfr_cmp_ui(y, 6) > 0)
        mpfr_set_ui(y, 6, N);
}

TRUTH(leaky_relu) /* the slope is the float64 nearest to 0.01 */
{
    (void)t, (void)u;
    mpfr_set(y, x, N);
    if (mpfr_cmp_ui(x, 0) < 0)
        mpfr_mul_d(y, x, 0.01, N);
}

TRUTH(softshrink)
{
    (void)u;
    mpfr_abs(t, x, N);
    if (mpfr_lessequal_p(t, (mpfr_set_d(y, 0.5, N), y))) {
        mpfr_set_ui(y, 0, N);
        return;
    }
    mpfr_sub_d(t, t, 0.5, N);
    mpfr_copysign(y, t, x, N);
}

TRUTH(sinc)
{
    if (mpfr_integer_p(x)) {
        mpfr_set_ui(y, mpfr_zero_p(x), N);
        return;
    }
    mpfr_remquo(t, &(long){0}, x, (mpfr_set_ui(u, 2, N), u), N);
    mpfr_const_pi(u, N);
    mpfr_mul(t, t, u, N);
    mpfr_sin(y, t, N);
    mpfr_mul(u, u, x, N);
    mpfr_div(y, y, u, N);
}

TRUTH(logit)
{
    (void)u;
    mpfr_ui_sub(t, 1, x, N);
    mpfr_div(t, x, t, N);
    mpfr_log(y, t, N);
}

TRUTH(entr)
{
    if (mpfr_zero_p(x)) {
        mpfr_set_ui(y, 0, N);
    } else if (mpfr_cmp_ui(x, 0) < 0) {
        mpfr_set_inf(y, -1);
    } else {
        mpfr_log(t, x, N);
        mpfr_mul(y, t, x, N);
        mpfr_neg(y, y, N);
    }
    (void)u;
}

TRUTH(erfcx)
{
    (void)u;
    if (mpfr_inf_p(x) && mpfr_sgn(x) > 0) {
        mpfr_set_ui(y, 0, N);
        return;
    }
    mpfr_sqr(t, x, N);
    mpfr_exp(t, t, N);
    mpfr_erfc(y, x, N);
    mpfr_mul(y, y, t, N);
}

/* Newton's method on MPFR's erf, from a formula that is good to three digits. */
TRUTH(erfinv)
{
    mpfr_abs(t, x, N);
    if (mpfr_nan_p(x) || mpfr_cmp_ui(t, 1) >= 0) {
        if (!mpfr_nan_p(x) && mpfr_cmp_ui(t, 1) == 0)
            mpfr_set_inf(y, mpfr_sgn(x));
        else
            mpfr_set_nan(y);
        return;
    }
    mpfr_sqr(u, x, N);
    mpfr_neg(u, u, N);
    mpfr_log1p(u, u, N);
    const double l = mpfr_get_d(u, N), b = 4.33074675079 + l / 2;
    double start = sqrt(sqrt(b * b - l / 0.147) - b);
    if (!(start > 0))
        start = mpfr_get_d(t, N) * 0.886226925452758;
    mpfr_set_d(y, start, N);
    mpfr_t slope, off;
    mpfr_inits2(mpfr_get_prec(y), slope, off, (mpfr_ptr)0);
    for (int k = 0; k < 12; k++) {
        mpfr_erf(off, y, N);
        mpfr_sub(off, off, t, N);
        mpfr_sqr(slope, y, N);
        mpfr_exp(slope, slope, N);
        mpfr_mul(off, off, slope, N);
        mpfr_const_pi(slope, N);
        mpfr_sqrt(slope, slope, N);
        mpfr_mul(off, off, slope, N);
        mpfr_div_ui(off, off, 2, N);
        mpfr_sub(y, y, off, N);
        if (mpfr_zero_p(off) || mpfr_get_exp(off) < mpfr_get_exp(y) - 100)
            break;
    }
    mpfr_copysign(y, y, x, N);
    mpfr_clears(slope, off, (mpfr_ptr)0);
}

/* The power series, whose terms have one sign. */
static void bessel_i(mpfr_t y, const mpfr_t x, mpfr_t t, mpfr_t u, unsigned long n)
{
    mpfr_sqr(u, x, N);
    mpfr_div_ui(u, u, 4, N);
    mpfr_set_ui(t, 1, N);
    mpfr_set_ui(y, 1, N);
    for (unsigned long k = 1; k < 4000; k++) {
        mpfr_mul(t, t, u, N);
        mpfr_div_ui(t, t, k * (k + n), N);
        mpfr_add(y, y, t, N);
        if (!mpfr_regular_p(t) || !mpfr_regular_p(y) || mpfr_get_exp(t) < mpfr_get_exp(y) - 160)
            break;
    }
    if (n) {
        mpfr_mul(y, y, x, N);
        mpfr_div_ui(y, y, 2, N);
    }
}

TRUTH(i0)
{
    bessel_i(y, x, t, u, 0);
}

TRUTH(i1e)
{
    bessel_i(y, x, t, u, 1);
    mpfr_abs(t, x, N);
    mpfr_neg(t, t, N);
    mpfr_exp(t, t, N);
    mpfr_mul(y, y, t, N);
}

/* ---- What is tested -------------------------------------------------------------------------- */

struct entry {
    const char *prefix, *name;
    truth *truth;
    double ulps;             /* allowed in float64 */
    double fine;             /* allowed for float64 tensors: binary128, rounded once */
    double exact;            /* allowed in binary128, in ulps of that */
    double lowest, highest;  /* not asked outside */
    double floor;            /* near roots: ulps of this instead of the value's */
    double number;           /* a second argument, or 0 */
    const char *approximate; /* a keyword, or NULL */
};

/* -700, -37: below, exp and erfc are subnormal and have fewer digits to give. */
#define ALL .lowest = -INFINITY, .highest = INFINITY
#define WITHIN(a, b) .lowest = (a), .highest = (b)

/* Measured in binary128: at most 8 ulps, most of them 3. tanh has 88, since it subtracts 1 from
 * exp, digamma 775 near its roots. */
static const struct entry entries[] = {
    {"Torch", "exp", exp_truth, 1, 0.501, 1, ALL},
    {"Torch", "exp2", exp2_truth, 1, 0.501, 1.5, ALL},
    {"Torch", "expm1", expm1_truth, 1.5, 0.501, 1.5, ALL},
    {"Torch", "log", log_truth, 1, 0.501, 1, ALL},
    {"Torch", "log2", log2_truth, 1.5, 0.501, 2, ALL},
    {"Torch", "log10", log10_truth, 2, 0.501, 1.5, ALL},
    {"Torch", "log1p", log1p_truth, 1, 0.501, 2, ALL},
    {"Torch", "sqrt", sqrt_truth, 0.5, 0.501, 0.5, ALL},
    {"Torch", "rsqrt", rsqrt_truth, 1.5, 0.501, 2, ALL},
    {"Torch", "reciprocal", reciprocal_truth, 0.5, 0.501, 0.5, ALL},
    {"Torch", "sin", sin_truth, 1, 0.501, 1.5, ALL},
    {"Torch", "cos", cos_truth, 1, 0.501, 1.5, ALL},
    {"Torch", "tan", tan_truth, 1, 0.501, 1, ALL},
    {"Torch", "asin", asin_truth, 1, 0.501, 1, ALL},
    {"Torch", "acos", acos_truth, 1, 0.501, 1.5, ALL},
    {"Torch", "atan", atan_truth, 1, 0.501, 1.5, ALL},
    {"Torch", "sinh", sinh_truth, 2, 0.501, 2.5, ALL},
    {"Torch", "cosh", cosh_truth, 2, 0.501, 1.5, ALL},
    {"Torch", "tanh", tanh_truth, 2.5, 0.501, 100, ALL},
    {"Torch", "asinh", asinh_truth, 2, 0.501, 3, ALL},
    {"Torch", "acosh", acosh_truth, 2.5, 0.501, 3, ALL},
    {"Torch", "atanh", atanh_truth, 2, 0.501, 3.5, ALL},
    {"Torch", "deg2rad", deg2rad_truth, 1, 0.501, 2, ALL},
    {"Torch", "rad2deg", rad2deg_truth, 1, 0.501, 1.5, ALL},
    {"Torch", "abs", abs_truth, 0, 0, 0, ALL},
    {"Torch", "neg", neg_truth, 0, 0, 0, ALL},
    {"Torch", "square", square_truth, 0.5, 0.501, 0, ALL},
    {"Torch", "ceil", ceil_truth, 0, 0, 0, ALL},
    {"Torch", "floor", floor_truth, 0, 0, 0, ALL},
    {"Torch", "trunc", trunc_truth, 0, 0, 0, ALL},
    {"Torch", "round", round_truth, 0, 0, 0, ALL},
    {"Torch", "frac", frac_truth, 0, 0, 0, ALL},
    {"Torch", "sigmoid", sigmoid_truth, 2.5, 0.501, 2.5, ALL},
    {"Functional", "logsigmoid", logsigmoid_truth, 2.5, 0.501, 3.5, ALL},
    {"Functional", "softplus", softplus_truth, 2.5, 0.501, 3.5, ALL},
    {"Functional", "silu", silu_truth, 3, 0.501, 2.5, WITHIN(-700, INFINITY)},
    {"Functional", "mish", mish_truth, 4, 0.501, 3, WITHIN(-700, INFINITY)},
    {"Functional", "gelu", gelu_truth, 6, 0.501, 3.5, WITHIN(-37, INFINITY)},
    /* exp multiplies the rounding error of its argument, here a polynomial, by that argument. */
    {"Functional", "gelu", gelu_tanh_truth, 25, 0.501, 7, WITHIN(-4, INFINITY),
     .approximate = "tanh"},
    {"Functional", "gelu", gelu_tanh_truth, 1000, 0.501, 7, WITHIN(-20, INFINITY),
     .approximate = "tanh"},
    {"Functional", "tanhshrink", tanhshrink_truth, 6, 0.501, 6, ALL},
    {"Functional", "softsign", softsign_truth, 1.5, 0.501, 1.5, ALL},
    {"Functional", "hardsigmoid", hardsigmoid_truth, 1.5, 0.501, 1.5, ALL},
    {"Functional", "hardswish", hardswish_truth, 2, 0.501, 2, ALL},
    {"Functional", "elu", elu_truth, 1.5, 0.501, 1, ALL},
    {"Functional", "selu", selu_truth, 3, 0.501, 2, ALL},
    {"Functional", "celu", celu_truth, 1.5, 0.501, 1.5, ALL, .number = 2},
    {"Functional", "relu", relu_truth, 0, 0, 0, ALL},
    {"Functional", "relu6", relu6_truth, 0, 0, 0, ALL},
    {"Functional", "leaky_relu", leaky_relu_truth, 0.5, 0.501, 0, ALL},
    {"Functional", "softshrink", softshrink_truth, 0.5, 0.501, 0.5, ALL},
    {"Torch", "sinc", sinc_truth, 3, 0.501, 2.5, ALL},
    {"Torch", "logit", logit_truth, 3, 0.501, 3.5, ALL},
    {"Torch", "erf", erf_truth, 1.5, 0.501, 1.5, ALL},
    {"Torch", "erfc", erfc_truth, 5, 0.501, 2.5, ALL},
    {"Torch", "erfinv", erfinv_truth, 4, 0.501, 3, ALL},
    {"Torch", "special.erfcx", erfcx_truth, 6, 0.501, 6, WITHIN(-1e4, 1e4)},
    {"Torch", "special.ndtr", ndtr_truth, 6, 0.501, 3, ALL},
    {"Torch", "special.log_ndtr", log_ndtr_truth, 6, 0.501, 4, WITHIN(-1e4, 1e4)},
    {"Torch", "special.entr", entr_truth, 1.5, 0.501, 2, ALL},
    {"Torch", "lgamma", lgamma_truth, 5, 0.501, 3, WITHIN(-30, 1000)},
    {"Torch", "digamma", digamma_truth, 1, 0.501, 1000, WITHIN(-30, 1000), .floor = 1e-2},
    {"Torch", "i0", i0_truth, 8, 0.501, 6.5, WITHIN(-720, 720)},
    {"Torch", "special.i1e", i1e_truth, 10, 0.501, 7.5, WITHIN(-720, 720)},
    {"Torch", "special.bessel_j0", j0_truth, 8, 0.501, 4.5, WITHIN(-100, 100), .floor = 0.1},
    {"Torch", "special.bessel_j1", j1_truth, 8, 0.501, 2, WITHIN(-100, 100), .floor = 0.1},
    {"Torch", "special.bessel_y0", y0_truth, 8, 0.501, 3, WITHIN(-1, 100), .floor = 0.1},
    {"Torch", "special.bessel_y1", y1_truth, 14, 0.501, 10, WITHIN(-1, 100), .floor = 0.1},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

/* ---- Running --------------------------------------------------------------------------------- */

struct room {
    mpfr_t x, y, t, u;
    long checked;
};

/* How far got is from y, in ulps of a float64 as large as y (or as floor). */
static double ulps_off(struct room *r, double got, double floor)
{
    const double rounded = mpfr_get_d(r->y, N);
    if (mpfr_nan_p(r->y) || isnan(got))
        return mpfr_nan_p(r->y) && isnan(got) ? 0 : INFINITY;
    if (got == rounded && (isinf(got) || mpfr_zero_p(r->y)))
        return 0;
    if (isinf(got)) /* as good as the largest number when that is near */
        return fabs(rounded) == 0x1.fffffffffffffp1023 ? 1 : INFINITY;
    const double size = fmax(fabs(isinf(rounded) ? 0x1.fffffffffffffp1023 : rounded), floor);
    int exponent;
    frexp(size, &exponent);
    const double ulp = ldexp(1, size == 0 || exponent < -1021 ? -1074 : exponent - 53);
    mpfr_sub_d(r->y, r->y, got, N);
    return fabs(mpfr_get_d(r->y, N)) / ulp;
}

struct asked {
    struct plumb_arg args[2];
    struct plumb_kwarg approximate;
    struct plumb_call call;
};

static void ask(struct asked *a, const struct entry *e, const struct plumb_tensor *in)
{
    a->args[0] = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = in};
    a->args[1] = (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = e->number};
    a->approximate =
        (struct plumb_kwarg){"approximate", {.kind = PLUMB_ARG_TEXT, .text = e->approximate}};
    a->call = (struct plumb_call){.prefix = e->prefix,
                                  .name = e->name,
                                  .args = a->args,
                                  .n_args = e->number != 0 ? 2 : 1,
                                  .kwargs = &a->approximate,
                                  .n_kwargs = e->approximate != NULL};
}

/* One operator on all values of a tensor. Returns the largest error. */
static double check(const struct entry *e, struct room *r, const struct plumb_tensor *in,
                    double allowed)
{
    struct asked a;
    ask(&a, e, in);
    struct plumb_result result;
    struct plumb_error err = {0};
    if (plumb_op_run(&a.call, PLUMB_RAISED, &result, &err))
        fail_msg("%s: %s", e->name, err.message);
    const struct plumb_tensor *out = result.outputs[0].tensor;
    assert_int_equal(out->dtype, PLUMB_F64);
    assert_true(out->count == in->count);
    double *x = malloc(in->count * sizeof *x);
    assert_non_null(x);
    plumb_tensor_to_f64(in, 0, in->count, x);
    const double *y = out->data;
    double worst = 0;
    for (uint64_t k = 0; k < in->count; k++) {
        if (x[k] < e->lowest || x[k] > e->highest)
            continue;
        mpfr_set_d(r->x, x[k], N);
        e->truth(r->y, r->x, r->t, r->u);
        const double off = ulps_off(r, y[k], e->floor);
        r->checked++;
        if (!(off <= allowed) && off > worst) {
            e->truth(r->y, r->x, r->t, r->u);
            print_error("%s(%a) as %s is %a, not %a: %.3g ulps, allowed are %g\n", e->name, x[k],
                        plumb_dtype_info(in->dtype)->name, y[k], mpfr_get_d(r->y, N), off, allowed);
        }
        worst = off > worst ? off : worst;
    }
    free(x);
    plumb_result_destroy(&result);
    return worst;
}

/* ---- Binary128 as it is ---------------------------------------------------------------------- */

static bool find(const struct entry *e, size_t *family, size_t *def)
{
    const struct plumb_op *op = plumb_op_find(e->prefix, e->name);
    const struct op_def *table;
    for (*family = 0; op && (table = op_family_f64(*family)); ++*family)
        for (*def = 0; table[*def].names; ++*def)
            if (strcmp(table[*def].names, op->names) == 0)
                return true;
    return false;
}

static void set_quad(mpfr_t to, quad x)
{
    int exponent;
    quad rest = quad_frexp(x, &exponent);
    mpfr_set_ui(to, 0, N);
    for (int k = 0; k < 3; k++) {
        mpfr_add_d(to, to, (double)rest, N);
        rest -= (quad)(double)rest;
    }
    mpfr_mul_2si(to, to, exponent, N);
}

/* How far got is from y, in ulps of a binary128 as large as y (or as floor). Infinities and what
 * is subnormal are left to float64. */
static double quad_ulps_off(struct room *r, quad got, double floor)
{
    if (!mpfr_regular_p(r->y) || !quad_isfinite(got) || mpfr_get_exp(r->y) < -16000)
        return 0;
    int exponent;
    frexp(floor, &exponent);
    if (floor == 0 || mpfr_get_exp(r->y) > exponent)
        exponent = (int)mpfr_get_exp(r->y);
    set_quad(r->t, got);
    mpfr_sub(r->y, r->y, r->t, N);
    mpfr_mul_2si(r->y, r->y, 113 - exponent, N);
    return fabs(mpfr_get_d(r->y, N));
}

static double check_exact(const struct entry *e, struct room *r, const struct plumb_tensor *in)
{
    const double *x = in->data;
    size_t family = 0, def = 0;
    assert_true(find(e, &family, &def));
    struct asked a;
    ask(&a, e, in);
    struct arena arena = {0};
    struct plumb_result result = {0};
    struct plumb_error err = {0};
    struct op o;
    op_begin(&o, &a.call, true, &arena, &result, &err);
    assert_true(op_execute(&o, family, def));
    double worst = 0;
    for (int64_t k = 0; k < o.outputs[0]->count; k += EXACT_STEP) {
        if (!(x[k] >= e->lowest && x[k] <= e->highest))
            continue;
        mpfr_set_d(r->x, x[k], N);
        e->truth(r->y, r->x, r->t, r->u);
        const double off = quad_ulps_off(r, o.outputs[0]->f[k], e->floor);
        r->checked++;
        if (off > e->exact && off > worst)
            print_error("%s(%a) in binary128 is off by %.3g ulps, allowed are %g\n", e->name, x[k],
                        off, e->exact);
        worst = off > worst ? off : worst;
    }
    arena_free(&arena);
    return worst;
}

struct tensors {
    uint16_t halves[HALVES];
    float singles[RANDOM];
    double doubles[RANDOM];
    struct plumb_tensor f16, bf16, f32, f64;
};

static void make(struct plumb_tensor *t, enum plumb_dtype dtype, int64_t count, const void *data)
{
    assert_int_equal(plumb_tensor_init(t, dtype, 1, &count, NULL), PLUMB_OK);
    t->data = data;
}

/* Half of the random values are of moderate size, half have any exponent. */
static struct tensors *make_tensors(void)
{
    struct tensors *t = malloc(sizeof *t);
    assert_non_null(t);
    uint64_t seed = 1;
    for (int k = 0; k < HALVES; k++)
        t->halves[k] = (uint16_t)k;
    for (int k = 0; k < RANDOM; k++) {
        const double moderate = random_unit(&seed) * (k % 4 ? 2 : 40);
        const uint32_t bits = (uint32_t)random_bits(&seed);
        memcpy(&t->singles[k], &bits, sizeof bits);
        t->doubles[k] = random_finite(&seed);
        if (k % 2) {
            t->singles[k] = (float)moderate;
            t->doubles[k] = moderate;
        }
    }
    make(&t->f16, PLUMB_F16, HALVES, t->halves);
    make(&t->bf16, PLUMB_BF16, HALVES, t->halves);
    make(&t->f32, PLUMB_F32, RANDOM, t->singles);
    make(&t->f64, PLUMB_F64, RANDOM, t->doubles);
    return t;
}

static void test_against_mpfr(void **state)
{
    (void)state;
    struct tensors *t = make_tensors();
    struct room r = {.checked = 0}, wide = {.checked = 0};
    mpfr_inits2(120, r.x, r.y, r.t, r.u, (mpfr_ptr)0);
    mpfr_inits2(240, wide.x, wide.y, wide.t, wide.u, (mpfr_ptr)0);
    int bad = 0;
    const char *only = getenv("PLUMB_TEST_OP");
    for (int k = 0; k < ENTRIES; k++) {
        const struct entry *e = &entries[k];
        if (only && !strstr(e->name, only))
            continue;
        const double worst =
            fmax(check(e, &r, &t->f16, e->ulps),
                 fmax(check(e, &r, &t->bf16, e->ulps), check(e, &r, &t->f32, e->ulps)));
        const double fine = check(e, &r, &t->f64, e->fine);
        const double exact = check_exact(e, &wide, &t->f64);
        printf("# %-18s %5.2f ulps in float64 (%g allowed), %5.3f from binary128 (%g allowed), "
               "%5.2f in it (%g allowed)\n",
               e->name, worst, e->ulps, fine, e->fine, exact, e->exact);
        bad += !(worst <= e->ulps) + !(fine <= e->fine) + !(exact <= e->exact);
    }
    printf("# %d operators, %ld values\n", ENTRIES, r.checked + wide.checked);
    mpfr_clears(r.x, r.y, r.t, r.u, wide.x, wide.y, wide.t, wide.u, (mpfr_ptr)0);
    mpfr_free_cache();
    free(t);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_mpfr)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
