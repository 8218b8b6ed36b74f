/* Formulas that several operators share, written so that no accuracy is lost to cancellation. */
#ifndef OP_CURVE_H
#define OP_CURVE_H

#include "op/fast.h"

#define REAL_PI R(3.14159265358979323846264338L)
#define REAL_LN2 R(0.69314718055994530941723212L)

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
    return R(0.39894228040143267793994606L) * fast_exp(R(-0.5) * x * x);
}

static inline real real_normal_below(real x)
{
    const real t = -x * R(0.70710678118654752440084436L);
#if OP_REAL == 32
    return R(0.5) * fast_erfc(t);
#else
    /* In the lower tail erfc multiplies the rounding error of its argument by 2 t^2: add what that
     * error is worth. */
    if (!(t > R(0.5)) || t > R(150))
        return R(0.5) * erfc(t);
#if OP_REAL == 64
    const real rest = -4.8336466567264565e-17; /* 1/sqrt(2) that the constant above leaves out */
#else
    const real rest = 1.8950325588932570797e-20L;
#endif
    const real slip = fma(-x, R(0.70710678118654752440084436L), -t) - x * rest;
    return R(0.5) * erfc(t) - slip * R(0.56418958354775628694807945L) * exp(-t * t);
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
