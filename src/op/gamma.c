/* The gamma function and its relatives.
 *
 * Their series are summed in long double whatever the type of the call: they are rare, and
 * recurrences lose a few bits that the reference should not. */
#define _DEFAULT_SOURCE /* lgamma_r: lgamma keeps the sign in a global variable */
#include "op/curve.h"
#include "op/elem.h"

#define PI_L 3.14159265358979323846264338327950288L

/* Bernoulli numbers B2, B4, ... */
static const long double bernoulli[] = {
    1.0L / 6,       -1.0L / 30, 1.0L / 42,      -1.0L / 30,     5.0L / 66,
    -691.0L / 2730, 7.0L / 6,   -3617.0L / 510, 43867.0L / 798, -174611.0L / 330,
};
enum { BERNOULLI = sizeof bernoulli / sizeof *bernoulli };

/* sin and cos of pi x, reduced before pi makes it inexact. */
static long double sinpi_l(long double x)
{
    const long double r = remainderl(x, 2);
    return r > 0.5L ? sinl(PI_L * (1 - r)) : r < -0.5L ? -sinl(PI_L * (1 + r)) : sinl(PI_L * r);
}

static long double cotpi_l(long double x)
{
    const long double r = remainderl(x, 1);
    return fabsl(r) == 0.5L ? 0 : 1 / tanl(PI_L * r);
}

/* ---- log |gamma| ----------------------------------------------------------------------------- */

static real real_lgamma(real x)
{
    int sign;
#if OP_REAL == 32
    return lgammaf_r(x, &sign);
#elif OP_REAL == 64
    return lgamma_r(x, &sign);
#else
    return lgammal_r(x, &sign);
#endif
}

/* ---- digamma --------------------------------------------------------------------------------- */

/* Up to 16 by psi(x) = psi(x + 1) - 1/x, then the asymptotic series. */
static long double digamma_l(long double x)
{
    if (x == 0)
        return copysignl(INFINITY, -x);
    if (x < 0)
        return x == floorl(x) ? (long double)NAN : digamma_l(1 - x) - PI_L * cotpi_l(x);
    if (isinf(x))
        return x;
    long double below = 0;
    while (x < 16) {
        below += 1 / x;
        x += 1;
    }
    const long double inverse = 1 / (x * x);
    long double power = inverse, series = 0;
    for (int k = 0; k < BERNOULLI; k++, power *= inverse)
        series += bernoulli[k] / (2 * k + 2) * power;
    return logl(x) - 0.5L / x - series - below;
}

/* ---- Hurwitz zeta and polygamma -------------------------------------------------------------- */

/* The sum of (q + k)^-s over k >= 0, for s > 1 and q > 0: the first terms, then Euler-Maclaurin. */
static long double hurwitz_positive(long double s, long double q)
{
    const long double start = s > 16 ? (s < 2000 ? s : 2000) : 16;
    long double sum = 0;
    while (q < start) {
        sum += powl(q, -s);
        q += 1;
    }
    const long double first = powl(q, -s);
    sum += first * q / (s - 1) + first / 2;
    long double term = first * s / q / 2; /* s (s+1) ... q^(-s-2k+1) / (2k)! */
    for (int k = 0; k < BERNOULLI; k++) {
        sum += bernoulli[k] * term;
        const long double n = 2.0L * k + 2;
        term *= (s + n - 1) / q * ((s + n) / q) / ((n + 1) * (n + 2));
    }
    return sum;
}

/* Below 0 the terms on that side are a zeta sum of their own, cut off at q. */
static long double hurwitz(long double s, long double q)
{
    if (isnan(s) || isnan(q) || s < 1)
        return NAN;
    if (s == 1)
        return INFINITY;
    if (q > 0)
        return hurwitz_positive(s, q);
    if (q == floorl(q))
        return INFINITY;
    if (s != floorl(s))
        return NAN;
    const long double terms = ceill(-q), f = q + terms;
    const long double side = hurwitz_positive(s, 1 - f) - hurwitz_positive(s, terms + 1 - f);
    return hurwitz_positive(s, f) + (fmodl(s, 2) == 0 ? side : -side);
}

/* The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x). */
static long double polygamma_l(long double n, long double x)
{
    if (n == 0)
        return digamma_l(x);
    if (n == 1 && x < 0 && x != floorl(x)) {
        const long double sine = sinpi_l(x);
        return PI_L * PI_L / (sine * sine) - polygamma_l(1, 1 - x);
    }
    int sign;
    const long double factorial = n < 1700 ? expl(lgammal_r(n + 1, &sign)) : (long double)INFINITY;
    const long double exact = n < 25 ? roundl(factorial) : factorial;
    return (fmodl(n, 2) == 0 ? -1 : 1) * exact * hurwitz(n + 1, x);
}

/* ---- Incomplete gamma ------------------------------------------------------------------------ */

/* m - log(1 + m), without cancellation near 0. */
static long double log_gap(long double m)
{
    if (fabsl(m) > 0.2L)
        return m - log1pl(m);
    long double power = m * m, sum = 0;
    for (int k = 2; k < 40; k++, power *= -m)
        sum += power / k;
    return sum;
}

/* x^a e^-x / gamma(a + 1) */
static long double gamma_term(long double a, long double x)
{
    int sign;
    if (a < 20)
        return expl(a * logl(x) - x - lgammal_r(a + 1, &sign));
    const long double inverse = 1 / a, square = inverse * inverse;
    const long double stirling =
        inverse * (1.0L / 12 - square * (1.0L / 360 - square * (1.0L / 1260 - square / 1680)));
    return expl(-a * log_gap((x - a) / a) - stirling) / sqrtl(2 * PI_L * a);
}

enum { GAMMA_STEPS = 200000 };

/* The lower share by its power series, for x < a + 1. */
static long double gamma_series(long double a, long double x)
{
    long double term = 1, sum = 1;
    for (int k = 1; k < GAMMA_STEPS && term > sum * LDBL_EPSILON / 4; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return gamma_term(a, x) * sum;
}

/* The upper share by its continued fraction (Lentz), for x >= a + 1. */
static long double gamma_fraction(long double a, long double x)
{
    const long double tiny = 1e-4000L;
    long double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int k = 1; k < GAMMA_STEPS; k++) {
        const long double an = -k * (k - a);
        b += 2;
        d = an * d + b;
        d = 1 / (d == 0 ? tiny : d);
        c = b + an / c;
        c = c == 0 ? tiny : c;
        h *= d * c;
        if (fabsl(d * c - 1) < LDBL_EPSILON)
            break;
    }
    return gamma_term(a, x) * a * h;
}

/* For large a the distribution is nearly normal (N. M. Temme's first two terms). */
static long double gamma_normal(long double a, long double x, bool upper)
{
    const long double m = (x - a) / a, gap = log_gap(m);
    const long double eta = copysignl(sqrtl(2 * gap), m);
    const long double c0 = fabsl(m) < 1e-4L ? -1.0L / 3 + m / 12 : 1 / m - 1 / eta;
    const long double rest = expl(-a * gap) / sqrtl(2 * PI_L * a) * c0;
    const long double root = eta * sqrtl(a / 2);
    return upper ? erfcl(root) / 2 + rest : erfcl(-root) / 2 - rest;
}

static long double gamma_share(long double a, long double x, bool upper)
{
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x)))
        return NAN;
    if (a == 0 || isinf(x))
        return upper ? 0 : 1;
    if (x == 0 || isinf(a))
        return upper ? 1 : 0;
    if (a > 1e8L)
        return gamma_normal(a, x, upper);
    if (x < a + 1) {
        const long double lower = gamma_series(a, x);
        return upper ? 1 - lower : lower;
    }
    const long double above = gamma_fraction(a, x);
    return upper ? above : 1 - above;
}

/* The density of the distribution at x. */
static long double gamma_density(long double a, long double x)
{
    return gamma_term(a, x) * a / x;
}

/* p: dimensions. */
static real real_mvlgamma(real x, const real *p)
{
    long double sum = (long double)p[0] * ((long double)p[0] - 1) / 4 * logl(PI_L);
    int sign;
    for (int64_t k = 0; k < (int64_t)p[0]; k++)
        sum += lgammal_r((long double)x - 0.5L * (long double)k, &sign);
    return (real)sum;
}

static real real_mvlgamma_slope(real x, const real *p)
{
    long double sum = 0;
    for (int64_t k = 0; k < (int64_t)p[0]; k++)
        sum += digamma_l((long double)x - 0.5L * (long double)k);
    return (real)sum;
}

/* Formulas in columns. */
/* clang-format off */

ELEM_UNARY(lgamma,    real_lgamma(x),              g * (real)digamma_l(x));
ELEM_UNARY(digamma,   (real)digamma_l(x),          g * (real)polygamma_l(1, x));
/* p: the order. */
ELEM_UNARY(polygamma, (real)polygamma_l(p[0], x),  g * (real)polygamma_l(p[0] + 1, x));
ELEM_UNARY(mvlgamma,  real_mvlgamma(x, p),         g * real_mvlgamma_slope(x, p));

ELEM_BINARY(igamma,   (real)gamma_share(a, b, false), R(0), g * (real)gamma_density(a, b));
ELEM_BINARY(igammac,  (real)gamma_share(a, b, true),  R(0), -g * (real)gamma_density(a, b));
ELEM_FLAT(zeta,       (real)hurwitz(a, b), NULL);

/* clang-format on */

/* ---- Operators ------------------------------------------------------------------------------- */

static void run_lgamma(struct op *o)
{
    op_return(o, elem_unary(o, arg_tensor(o, "input"), &lgamma_fn, NULL, 0));
}

static void run_digamma(struct op *o)
{
    op_return(o, elem_unary(o, arg_tensor(o, "input"), &digamma_fn, NULL, 0));
}

static void run_polygamma(struct op *o)
{
    const int64_t n = arg_int(o, "n");
    if (n < 0 || n > 1000)
        op_fail(o, PLUMB_E_ARG, "%s: the order is %lld; it must be 0 to 1000", o->call->name,
                (long long)n);
    else
        op_return(o, elem_unary(o, arg_tensor(o, "input"), &polygamma_fn, (const real[]){R(n)}, 1));
}

static void run_mvlgamma(struct op *o)
{
    struct val *x = v_float(o, arg_tensor(o, "input"));
    const int64_t p = arg_int(o, "p");
    if (!x)
        return;
    if (p < 1 || p > 100000) {
        op_fail(o, PLUMB_E_ARG, "%s: p is %lld; it must be 1 to 100000", o->call->name,
                (long long)p);
        return;
    }
    for (int64_t k = 0; k < x->count; k++)
        if (!(x->f[k] > R(p - 1) / R(2))) {
            op_fail(o, PLUMB_E_ARG, "%s: element %lld is %g; all must be above (p - 1) / 2 = %g",
                    o->call->name, (long long)k, (double)x->f[k], (double)(p - 1) / 2);
            return;
        }
    op_return(o, elem_unary(o, x, &mvlgamma_fn, (const real[]){R(p)}, 1));
}

#define RUN(name)                                                                                  \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        struct val *a = arg_operand(o, "input"), *b = arg_operand(o, "other");                     \
        if (a && b)                                                                                \
            op_return(o, elem_binary(o, a, b, float_dtype(promote(a, b)), &name##_fn, NULL, 0));   \
    }

RUN(igamma)
RUN(igammac)
RUN(zeta)

#define ONE "(Tensor input|self)"
#define PAIR "(Operand input|self, Operand other)"

const struct op_def op_gamma[] = {
    {"lgamma lgamma_ special_gammaln special.gammaln", "lgamma" ONE, run_lgamma, 0,
     "log |gamma(x)|"},
    {"digamma digamma_ special_digamma special.digamma special_psi special.psi", "digamma" ONE,
     run_digamma, 0, "the slope of lgamma"},
    {"polygamma polygamma_ special_polygamma special.polygamma",
     "polygamma(int n, Tensor input|self)\n"
     "polygamma(Tensor input|self, int n)",
     run_polygamma, 0, "the n-th derivative of digamma"},
    {"mvlgamma mvlgamma_ special_multigammaln special.multigammaln",
     "mvlgamma(Tensor input|self, int p)", run_mvlgamma, 0,
     "log of the gamma function of p dimensions"},
    {"igamma igamma_ special_gammainc special.gammainc", "igamma" PAIR, run_igamma, 0,
     "the share of the gamma distribution below other; no gradient for input"},
    {"igammac igammac_ special_gammaincc special.gammaincc", "igammac" PAIR, run_igammac, 0,
     "1 - igamma"},
    {"special_zeta special.zeta", "special_zeta" PAIR, run_zeta, OP_NO_GRAD,
     "the sum of (other + k)^-input over k >= 0"},
    {0},
};
