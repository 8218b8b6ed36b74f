/* The error function and its relatives, and other special functions of one element. Gamma functions
 * are in gamma.c, Bessel functions in bessel.c. */
#include "exec/op/curve.h"
#include "exec/op/elem.h"

#define TWO_OVER_ROOT_PI REAL_C(1.128379167095512573896158903121545172)
#define ROOT_2 REAL_C(1.414213562373095048801688724209698079)

/* ---- Inverse error functions ----------------------------------------------------------------- */

/* y with erfc(y) = q, for 0 < q <= 1. A formula good to three digits (S. Winitzki), then Halley's
 * method on whichever of erf and erfc is small. */
static real erfc_inverse(real q)
{
    if (q == R(1))
        return 0;
    const real a = R(0.147), l = log(q) + log(R(2) - q); /* log(1 - erf^2) */
    const real b = R(2) / (REAL_PI * a) + l / R(2);
    real y = sqrt(sqrt(b * b - l / a) - b);
    for (int k = 0; k < 8; k++) {
        const real off = q > R(0.5) ? erf(y) - (R(1) - q) : q - erfc(y);
        const real step = off / (TWO_OVER_ROOT_PI * exp(-y * y));
        const real change = step / (R(1) + y * step);
        if (!isfinite(change))
            break;
        y -= change;
        if (fabs(change) < R(4) * REAL_EPS * y)
            break;
    }
    return y;
}

/* Up to where three terms of the series of erfinv are exact: the fourth is about x^6. */
#if OP_REAL == 128
#define ERFINV_SERIES R(1e-6)
#else
#define ERFINV_SERIES R(1e-4)
#endif

static real real_erfinv(real x)
{
    const real size = fabs(x);
    if (!(size < R(1)))
        return size == R(1) ? x * R(INFINITY) : R(NAN);
    if (size < ERFINV_SERIES) /* 1 - size would round */
        return x *
               (R(1) + x * x * (REAL_PI / R(12) + x * x * (R(7) / R(480)) * REAL_PI * REAL_PI)) /
               TWO_OVER_ROOT_PI;
    if (size < R(0.5)) {
        real y = erfc_inverse(R(1) - size);
        for (int k = 0; k < 2; k++) /* 1 - size was rounded: polish with size itself */
            y -= (erf(y) - size) / (TWO_OVER_ROOT_PI * exp(-y * y));
        return copysign(y, x);
    }
    return copysign(erfc_inverse(R(1) - size), x);
}

/* x with the share p of the normal distribution below it. */
static real real_ndtri(real p)
{
    if (!(p > 0 && p < R(1)))
        return p == 0 ? R(-INFINITY) : p == R(1) ? R(INFINITY) : R(NAN);
    if (fabs(p - R(0.5)) < R(0.25))
        return ROOT_2 * real_erfinv(R(2) * (p - R(0.5)));
    return p < R(0.5) ? -ROOT_2 * erfc_inverse(R(2) * p) : ROOT_2 * erfc_inverse(R(2) * (R(1) - p));
}

/* ---- exp(x^2) erfc(x) ------------------------------------------------------------------------ */

static real real_erfcx(real x)
{
    const real square = x * x, rest = isinf(square) ? R(0) : fma(x, x, -square);
    if (x < R(10))
        return exp(square) * (R(1) + rest) * erfc(x);
    real term = 1, sum = 1;
    for (int k = 1; k < 60 && fabs(term) > REAL_EPS * R(0.01); k++) {
        term *= R(1 - 2 * k) / (R(2) * square);
        sum += term;
    }
    return isnan(x) ? x : sum * R(0.5) * TWO_OVER_ROOT_PI / x;
}

static real real_log_ndtr(real x)
{
    return x < R(-1) ? log(real_erfcx(-x / ROOT_2) / R(2)) - x * x / R(2)
                     : log1p(-real_normal_below(-x));
}

/* ---- sin(pi x) / (pi x) ---------------------------------------------------------------------- */

static inline real real_sinc(real x)
{
    return x == 0 ? R(1) : real_sinpi(x) / (REAL_PI * x);
}

/* pi (t cos t - sin t) / t^2 with t = pi x; near 0 by its series. */
static real real_sinc_slope(real x)
{
    const real t = REAL_PI * x;
    if (!(fabs(t) < R(1)))
        return (real_cospi(x) - real_sinpi(x) / t) / x;
    real term = t / R(6), sum = 0;
    for (int k = 1; k < 18; k++) {
        sum -= R(2 * k) * term;
        term *= -t * t / R((2 * k + 2) * (2 * k + 3));
    }
    return REAL_PI * sum;
}

/* ---- log(x / (1 - x)) ------------------------------------------------------------------------ */

static inline real real_logit(real x)
{
    return x > R(0.25) && x < R(0.75) ? log1p((x - R(0.5)) * R(2) / (R(1) - x))
                                      : log(x / (R(1) - x));
}

static inline real limited(real x, real lo, real hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* -x log(x) */
static inline real real_entropy(real x)
{
    return x > 0 ? -x * log(x) : x == 0 ? R(0) : isnan(x) ? x : R(-INFINITY);
}

/* Formulas in columns. */
/* clang-format off */

ELEM_UNARY(erf,      erf(x),                g * TWO_OVER_ROOT_PI * exp(-x * x));
ELEM_UNARY(erfc,     erfc(x),               -g * TWO_OVER_ROOT_PI * exp(-x * x));
ELEM_UNARY(erfinv,   real_erfinv(x),        g / TWO_OVER_ROOT_PI * exp(y * y));
ELEM_UNARY(erfcx,    real_erfcx(x),         g * (R(2) * x * y - TWO_OVER_ROOT_PI));
ELEM_UNARY(ndtr,     real_normal_below(x),  g * real_normal_density(x));
ELEM_UNARY(ndtri,    real_ndtri(x),
           g * REAL_C(2.506628274631000502415765284811045253) * exp(y * y / R(2)));
ELEM_UNARY(log_ndtr, real_log_ndtr(x),
           g * (ROOT_2 * R(0.5) * TWO_OVER_ROOT_PI) / real_erfcx(-x / ROOT_2));
ELEM_UNARY(sinc,     real_sinc(x),          g * real_sinc_slope(x));
ELEM_UNARY(entr,     real_entropy(x),
           g * (x > 0 ? -log(x) - R(1) : x == 0 ? R(INFINITY) : R(NAN)));
ELEM_UNARY(logit,    real_logit(x),         x < 0 || x > R(1) ? R(NAN) : g / (x * (R(1) - x)));
/* p: the limits that x is brought into first. */
ELEM_UNARY(logit_in, real_logit(limited(x, p[0], p[1])),
                                            x < p[0] || x > p[1] ? R(0) : g / (x * (R(1) - x)));

/* clang-format on */

/* ---- Operators ------------------------------------------------------------------------------- */

#define RUN(name)                                                                                  \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        op_return(o, elem_unary(o, arg_tensor(o, "input"), &name##_fn, NULL, 0));                  \
    }

RUN(erf)
RUN(erfc)
RUN(erfinv)
RUN(erfcx)
RUN(ndtr)
RUN(ndtri)
RUN(log_ndtr)
RUN(sinc)
RUN(entr)

/* Devices divide, and take the logarithm: around 1/2 that is one of a number around 1. */
static void run_logit(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const bool limits = arg_given(o, "eps");
    const real eps = limits ? R(arg_number(o, "eps")) : R(0), p[] = {eps, R(1) - eps};
    if (!o->call->noise) {
        op_return(o, elem_unary(o, x, limits ? &logit_in_fn : &logit_fn, p, 2));
        return;
    }
    if (limits)
        x = v_clamp(o, x, (double)p[0], (double)p[1]);
    op_return(o, v_log(o, v_div(o, x, v_sub(o, v_int(o, 1), x))));
}

static void run_logit_backward(struct op *o)
{
    elem_pullback(o, run_logit, (const char *const[]){"input", NULL});
}

#define ONE "(Tensor input|self)"

const struct op_def op_special[] = {
    {"erf erf_ special_erf special.erf", "erf" ONE, run_erf, 0, NULL},
    {"erfc erfc_ special_erfc special.erfc", "erfc" ONE, run_erfc, 0, "1 - erf(x)"},
    {"erfinv erfinv_ special_erfinv special.erfinv", "erfinv" ONE, run_erfinv, 0, NULL},
    {"special_erfcx special.erfcx", "special_erfcx" ONE, run_erfcx, 0, "exp(x^2) erfc(x)"},
    {"special_ndtr special.ndtr", "special_ndtr" ONE, run_ndtr, 0,
     "the share of the normal distribution below x"},
    {"special_ndtri special.ndtri", "special_ndtri" ONE, run_ndtri, 0, "the inverse of ndtr"},
    {"special_log_ndtr special.log_ndtr", "special_log_ndtr" ONE, run_log_ndtr, 0, "log(ndtr(x))"},
    {"sinc sinc_ special_sinc special.sinc", "sinc" ONE, run_sinc, 0, "sin(pi x) / (pi x)"},
    {"special_entr special.entr", "special_entr" ONE, run_entr, 0, "-x log(x)"},
    {"logit logit_ special_logit special.logit", "logit(Tensor input|self, number? eps=None)",
     run_logit, 0, "log(x / (1 - x)), x limited to [eps, 1 - eps]"},
    {"logit_backward", "logit_backward(Tensor grad_output, Tensor input|self, number? eps=None)",
     run_logit_backward, OP_NO_GRAD, NULL},
    {0},
};
