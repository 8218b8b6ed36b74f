/* The gamma function and its relatives.
 *
 * Their series are summed in binary128 whatever the type of the call: they are rare, and
 * recurrences lose a few bits that the reference should not. */
#define _DEFAULT_SOURCE /* lgamma_r: lgamma keeps the sign in a global variable */
#include "exec/op/curve.h"
#include "exec/op/elem.h"
#include "exec/op/quad.h"

#define QUAD_PI QUAD_C(3.14159265358979323846264338327950288420)

/* Bernoulli numbers B2, B4, ... as quotients, with their index. */
#define BERNOULLI_NUMBERS(F)                                                                       \
    F(1.0, 6, 2)                                                                                   \
    F(-1.0, 30, 4)                                                                                 \
    F(1.0, 42, 6)                                                                                  \
    F(-1.0, 30, 8)                                                                                 \
    F(5.0, 66, 10)                                                                                 \
    F(-691.0, 2730, 12)                                                                            \
    F(7.0, 6, 14)                                                                                  \
    F(-3617.0, 510, 16)                                                                            \
    F(43867.0, 798, 18)                                                                            \
    F(-174611.0, 330, 20)                                                                          \
    F(854513.0, 138, 22)                                                                           \
    F(-236364091.0, 2730, 24)                                                                      \
    F(8553103.0, 6, 26)                                                                            \
    F(-23749461029.0, 870, 28)                                                                     \
    F(8615841276005.0, 14322, 30)                                                                  \
    F(-7709321041217.0, 510, 32)                                                                   \
    F(2577687858367.0, 6, 34)                                                                      \
    F(-26315271553053477373.0, 1919190, 36)                                                        \
    F(2929993913841559.0, 6, 38)                                                                   \
    F(-261082718496449122051.0, 13530, 40)

#define NUMBER(n, d, k) QUAD_C(n) / (d),
#define OVER_INDEX(n, d, k) QUAD_C(n) / ((quad)(d) * (k)),
static const quad bernoulli[] = {BERNOULLI_NUMBERS(NUMBER)};
static const quad bernoulli_over_index[] = {BERNOULLI_NUMBERS(OVER_INDEX)};
#undef NUMBER
#undef OVER_INDEX

enum { BERNOULLI = sizeof bernoulli / sizeof *bernoulli };

/* sin and cos of pi x, reduced before pi makes it inexact. */
static quad sinpi(quad x)
{
    const quad r = quad_remainder(x, 2);
    return r > QUAD_C(0.5)    ? quad_sin(QUAD_PI * (1 - r))
           : r < -QUAD_C(0.5) ? -quad_sin(QUAD_PI * (1 + r))
                              : quad_sin(QUAD_PI * r);
}

static quad cotpi(quad x)
{
    const quad r = quad_remainder(x, 1);
    return quad_fabs(r) == QUAD_C(0.5) ? 0 : 1 / quad_tan(QUAD_PI * r);
}

/* ---- log |gamma| ----------------------------------------------------------------------------- */

static real real_lgamma(real x)
{
#if OP_REAL == 128
    return quad_lgamma(x);
#else
    int sign;
#if OP_REAL == 64
    return lgamma_r(x, &sign);
#else
    return lgammaf_r(x, &sign);
#endif
#endif
}

/* ---- digamma --------------------------------------------------------------------------------- */

/* Up to 16 by psi(x) = psi(x + 1) - 1/x, then the asymptotic series. */
static quad digamma_of(quad x)
{
    if (x == 0)
        return quad_copysign(INFINITY, -x);
    if (x < 0)
        return x == quad_floor(x) ? (quad)NAN : digamma_of(1 - x) - QUAD_PI * cotpi(x);
    if (quad_isinf(x))
        return x;
    quad below = 0;
    while (x < 16) {
        below += 1 / x;
        x += 1;
    }
    const quad inverse = 1 / (x * x);
    quad series = 0;
    for (int k = BERNOULLI - 1; k >= 0; k--)
        series = (series + bernoulli_over_index[k]) * inverse;
    return quad_log(x) - QUAD_C(0.5) / x - series - below;
}

/* ---- Hurwitz zeta and polygamma -------------------------------------------------------------- */

/* The sum of (q + k)^-s over k >= 0, for s > 1 and q > 0: the first terms, then Euler-Maclaurin. */
static quad hurwitz_positive(quad s, quad q)
{
    const quad start = QUAD_C(1.25) * (s + 2 * BERNOULLI);
    quad sum = 0;
    while (q < start) {
        const quad term = quad_pow(q, -s);
        sum += term;
        q += 1;
        /* About what all further ones come to; below what a number can be, they are nothing. */
        if (term == 0 || term * q < sum * (s - 1) * QUAD_EPS / 8)
            return sum;
    }
    const quad first = quad_pow(q, -s);
    sum += first * q / (s - 1) + first / 2;
    quad term = first * s / q / 2; /* s (s+1) ... q^(-s-2k+1) / (2k)! */
    for (int k = 0; k < BERNOULLI; k++) {
        sum += bernoulli[k] * term;
        const quad n = QUAD_C(2.0) * k + 2;
        term *= (s + n - 1) / q * ((s + n) / q) / ((n + 1) * (n + 2));
    }
    return sum;
}

/* Below 0 the terms on that side are a zeta sum of their own, cut off at q. */
static quad hurwitz(quad s, quad q)
{
    if (quad_isnan(s) || quad_isnan(q) || s < 1)
        return NAN;
    if (s == 1)
        return INFINITY;
    if (q > 0)
        return hurwitz_positive(s, q);
    if (q == quad_floor(q))
        return INFINITY;
    if (s != quad_floor(s))
        return NAN;
    const quad terms = quad_ceil(-q), f = q + terms;
    const quad side = hurwitz_positive(s, 1 - f) - hurwitz_positive(s, terms + 1 - f);
    return hurwitz_positive(s, f) + (quad_fmod(s, 2) == 0 ? side : -side);
}

/* The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x). */
static quad polygamma_of(quad n, quad x)
{
    if (n == 0)
        return digamma_of(x);
    if (n == 1 && x < 0 && x != quad_floor(x)) {
        const quad sine = sinpi(x);
        return QUAD_PI * QUAD_PI / (sine * sine) - polygamma_of(1, 1 - x);
    }
    quad factorial = 1;
    if (n > 30)
        factorial = n < 1700 ? quad_exp(quad_lgamma(n + 1)) : (quad)INFINITY;
    for (int k = 2; n <= 30 && k <= (int)n; k++)
        factorial *= k;
    return (quad_fmod(n, 2) == 0 ? -1 : 1) * factorial * hurwitz(n + 1, x);
}

/* ---- Incomplete gamma ------------------------------------------------------------------------ */

/* m - log(1 + m), without cancellation near 0. */
static quad log_gap(quad m)
{
    if (quad_fabs(m) > QUAD_C(0.1))
        return m - quad_log1p(m);
    quad power = m * m, sum = 0;
    for (int k = 2; k < 40; k++, power *= -m)
        sum += power / k;
    return sum;
}

/* x^a e^-x / gamma(a + 1) */
static quad gamma_term(quad a, quad x)
{
    if (a < 20)
        return quad_exp(a * quad_log(x) - x - quad_lgamma(a + 1));
    const quad inverse = 1 / a, square = inverse * inverse;
    quad power = inverse, stirling = 0;
    for (int k = 0; k < BERNOULLI; k++, power *= square)
        stirling += bernoulli_over_index[k] / (2 * k + 1) * power;
    return quad_exp(-a * log_gap((x - a) / a) - stirling) / quad_sqrt(2 * QUAD_PI * a);
}

enum { GAMMA_STEPS = 200000 };

/* The lower share by its power series, for x < a + 1. */
static quad gamma_series(quad a, quad x)
{
    quad term = 1, sum = 1;
    for (int k = 1; k < GAMMA_STEPS && term > sum * QUAD_EPS / 4; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return gamma_term(a, x) * sum;
}

/* The upper share by its continued fraction (Lentz), for x >= a + 1. */
static quad gamma_fraction(quad a, quad x)
{
    const quad tiny = QUAD_C(1e-4000);
    quad b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int k = 1; k < GAMMA_STEPS; k++) {
        const quad an = -k * (k - a);
        b += 2;
        d = an * d + b;
        d = 1 / (d == 0 ? tiny : d);
        c = b + an / c;
        c = c == 0 ? tiny : c;
        h *= d * c;
        if (quad_fabs(d * c - 1) < QUAD_EPS)
            break;
    }
    return gamma_term(a, x) * a * h;
}

/* For large a the distribution is nearly normal (N. M. Temme's first two terms). */
static quad gamma_normal(quad a, quad x, bool upper)
{
    const quad m = (x - a) / a, gap = log_gap(m);
    const quad eta = quad_copysign(quad_sqrt(2 * gap), m);
    const quad c0 = quad_fabs(m) < QUAD_C(1e-4) ? -QUAD_C(1.0) / 3 + m / 12 : 1 / m - 1 / eta;
    const quad rest = quad_exp(-a * gap) / quad_sqrt(2 * QUAD_PI * a) * c0;
    const quad root = eta * quad_sqrt(a / 2);
    return upper ? quad_erfc(root) / 2 + rest : quad_erfc(-root) / 2 - rest;
}

static quad gamma_share(quad a, quad x, bool upper)
{
    if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (quad_isinf(a) && quad_isinf(x)))
        return NAN;
    if (a == 0 || quad_isinf(x))
        return upper ? 0 : 1;
    if (x == 0 || quad_isinf(a))
        return upper ? 1 : 0;
    if (a > QUAD_C(1e8))
        return gamma_normal(a, x, upper);
    if (x < a + 1) {
        const quad lower = gamma_series(a, x);
        return upper ? 1 - lower : lower;
    }
    const quad above = gamma_fraction(a, x);
    return upper ? above : 1 - above;
}

/* The density of the distribution at x. */
static quad gamma_density(quad a, quad x)
{
    return gamma_term(a, x) * a / x;
}

/* p: dimensions. */
static real real_mvlgamma(real x, const real *p)
{
    quad sum = (quad)p[0] * ((quad)p[0] - 1) / 4 * quad_log(QUAD_PI);
    for (int64_t k = 0; k < (int64_t)p[0]; k++)
        sum += quad_lgamma((quad)x - QUAD_C(0.5) * (quad)k);
    return (real)sum;
}

static real real_mvlgamma_slope(real x, const real *p)
{
    quad sum = 0;
    for (int64_t k = 0; k < (int64_t)p[0]; k++)
        sum += digamma_of((quad)x - QUAD_C(0.5) * (quad)k);
    return (real)sum;
}

/* Formulas in columns. */
/* clang-format off */

ELEM_UNARY(lgamma,    real_lgamma(x),              g * (real)digamma_of(x));
ELEM_UNARY(digamma,   (real)digamma_of(x),          g * (real)polygamma_of(1, x));
/* p: the order. */
ELEM_UNARY(polygamma, (real)polygamma_of(p[0], x),  g * (real)polygamma_of(p[0] + 1, x));
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
