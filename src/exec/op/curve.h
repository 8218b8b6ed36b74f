/* Formulas that several operators share, written so that no accuracy is lost to cancellation. */
#ifndef OP_CURVE_H
#define OP_CURVE_H

#include "exec/op/fast.h"

#define REAL_PI REAL_C(3.14159265358979323846264338327950288420)
#define REAL_LN2 REAL_C(0.693147180559945309417232121458176568)

/* The derivative of the logistic function, from x: sigmoid(x) * sigmoid(-x). */
static inline real real_sigmoid_slope(real x)
{
    const real e = fast_exp(-fabs(x));
    return e / ((R(1) + e) * (R(1) + e));
}

/* log(1 + exp(x)) */
static inline real real_softplus(real x)
{
    return (x > 0 ? x : x < 0 ? R(0) : x) + log1p(fast_exp(-fabs(x)));
}

/* 1 - tanh(x)^2 */
static inline real real_sech2(real x)
{
    const real e = fast_exp(R(-2) * fabs(x));
    return R(4) * e / ((R(1) + e) * (R(1) + e));
}

/* The normal distribution: density, and the share below x. */
static inline real real_normal_density(real x)
{
    return REAL_C(0.398942280401432677939946059934381868) * fast_exp(R(-0.5) * x * x);
}

#define ROOT_HALF REAL_C(0.707106781186547524400844362104849039)

static inline real real_normal_below(real x)
{
    const real t = -x * ROOT_HALF;
#if OP_REAL == 32
    return R(0.5) * fast_erfc(t);
#else
    /* In the lower tail erfc multiplies the rounding error of its argument by 2 t^2: add what that
     * error is worth. */
    if (!(t > R(0.5)) || t > R(150))
        return R(0.5) * erfc(t);
#if OP_REAL == 64
    const real rest = -4.8336466567264565e-17; /* what ROOT_HALF leaves out */
#else
    const real rest = REAL_C(4.71112127431091603284605836819705289e-35);
#endif
    const real slip = fma(-x, ROOT_HALF, -t) - x * rest;
    return R(0.5) * erfc(t) - slip * REAL_C(0.564189583547756286948079451560772586) * exp(-t * t);
#endif
}

/* sin(pi x), with x reduced before pi makes it inexact. */
static inline real real_sinpi(real x)
{
    const real r = remainder(x, R(2));
    return r > R(0.5)    ? sin(REAL_PI * (R(1) - r))
           : r < R(-0.5) ? -sin(REAL_PI * (R(1) + r))
                         : sin(REAL_PI * r);
}

/* cos(pi x) */
static inline real real_cospi(real x)
{
    const real r = fabs(remainder(x, R(2)));
    return r < R(0.25)   ? cos(REAL_PI * r)
           : r < R(0.75) ? sin(REAL_PI * (R(0.5) - r))
                         : -cos(REAL_PI * (R(1) - r));
}

static inline real real_sign(real x)
{
    return (real)((x > 0) - (x < 0));
}

#endif
