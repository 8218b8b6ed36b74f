/* exp and what follows from it, without branches, calls or tables, so that a loop over an array
 * becomes vectors. exp is within 0.97 ulp of the true value for double, 1.1 for float, tanh within
 * 3; binary128 has its own in quad_exp.h.
 *
 * exp(x) = 2^k exp(r) with k the integer nearest x / ln 2, so that |r| <= 0.347, where a polynomial
 * of exp(r) - 1 is as good as exact. */
#ifndef OP_FAST_H
#define OP_FAST_H

#include "exec/op/real.h"

#include <stdint.h>
#include <string.h>

#if OP_REAL == 128

static inline real fast_exp(real x)
{
    return exp(x);
}

static inline real fast_expm1(real x)
{
    return quad_fast_expm1(x);
}

#else

#if OP_REAL == 64
typedef uint64_t real_bits;
enum { REAL_MANTISSA = 52, REAL_BIAS = 1023 };
#define FAST_MAGIC 0x1.8p52 /* added, it leaves the nearest integer in the low bits */
#define FAST_LN2_HIGH 0x1.62e42fefa0000p-1
#define FAST_LN2_LOW 0x1.cf79abc9e3b39p-40
#define FAST_LOWEST (-750.0)
#define FAST_HIGHEST 710.0
#define FAST_PLAIN 708.0 /* to here 2^k is a normal number */
#else
typedef uint32_t real_bits;
enum { REAL_MANTISSA = 23, REAL_BIAS = 127 };
#define FAST_MAGIC 0x1.8p23F
#define FAST_LN2_HIGH 0x1.62e400p-1F
#define FAST_LN2_LOW 0x1.7f7d1cp-20F
#define FAST_LOWEST (-110.0F)
#define FAST_HIGHEST 89.0F
#define FAST_PLAIN 87.0F
#endif

#define FAST_LOG2_E REAL_C(1.44269504088896340735992468100189214)

/* 2^k for the k that FAST_MAGIC + k shows in its low bits; k is a normal exponent. */
static inline real fast_power(real magic)
{
    real_bits bits;
    memcpy(&bits, &magic, sizeof bits);
    bits = (bits + REAL_BIAS) << REAL_MANTISSA;
    real power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* exp(r) - 1 for |r| <= 0.35. Terms are added up as a tree: one after the other, each would wait
 * for the one before. */
static inline real fast_near(real r)
{
    const real r2 = r * r;
#if OP_REAL == 64
    const real r4 = r2 * r2, r8 = r4 * r4;
    const real low = (R(0.5) + R(1.0 / 6) * r) + (R(1.0 / 24) + R(1.0 / 120) * r) * r2;
    const real middle =
        (R(1.0 / 720) + R(1.0 / 5040) * r) + (R(1.0 / 40320) + R(1.0 / 362880) * r) * r2;
    const real high = (R(1.0 / 3628800) + R(1.0 / 39916800) * r) +
                      (R(1.0 / 479001600) + R(1.0 / 6227020800) * r) * r2;
    return r + r2 * ((low + middle * r4) + high * r8);
#else
    real p = R(1.0 / 5040);
    p = p * r + R(1.0 / 720);
    p = p * r + R(1.0 / 120);
    p = p * r + R(1.0 / 24);
    p = p * r + R(1.0 / 6);
    p = p * r + R(0.5);
    return r + r2 * p;
#endif
}

/* The same without r itself, for exp, which adds 1: what is within 2^-57 of it is near enough, and
 * takes two terms less. The factors make the largest error over all r least. */
#if OP_REAL == 64
static inline real fast_tail(real r)
{
    const real r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    const real low = (R(0.5) + R(0x1.555555555555cp-3) * r) +
                     (R(0x1.555555555316dp-5) + R(0x1.111111110e6f8p-7) * r) * r2;
    const real middle = (R(0x1.6c16c17cf3c86p-10) + R(0x1.a01a01b5f168bp-13) * r) +
                        (R(0x1.a019aa947ae07p-16) + R(0x1.71dde99e26e6ep-19) * r) * r2;
    const real high = R(0x1.28a022dd14f11p-22) + R(0x1.af777b0fc52fap-26) * r;
    return r2 * ((low + middle * r4) + high * r8);
}
#endif

struct fast_parts {
    real k;       /* the integer */
    real r, rest; /* what is left of x, and what rounding took from that */
};

/* magic: x / ln 2 + FAST_MAGIC */
static inline struct fast_parts fast_reduce(real x, real magic)
{
    struct fast_parts s = {.k = magic - FAST_MAGIC};
    const real most = x - s.k * FAST_LN2_HIGH, least = s.k * FAST_LN2_LOW;
    s.r = most - least;
    s.rest = (most - s.r) - least;
    return s;
}

static inline struct fast_parts fast_split(real x)
{
    real clamped = x < FAST_LOWEST ? FAST_LOWEST : x;
    clamped = clamped > FAST_HIGHEST ? FAST_HIGHEST : clamped;
    return fast_reduce(clamped, clamped * FAST_LOG2_E + FAST_MAGIC);
}

/* exp(r + rest) */
static inline real fast_whole(struct fast_parts s)
{
#if OP_REAL == 64
    return 1 + (s.r + (fast_tail(s.r) + s.rest));
#else
    return 1 + fast_near(s.r);
#endif
}

static inline real fast_exp(real x)
{
    const struct fast_parts s = fast_split(x);
    /* In two steps, for results that are subnormal or near the largest. */
    const real half = s.k * R(0.5) + FAST_MAGIC - FAST_MAGIC;
    return fast_whole(s) * fast_power(half + FAST_MAGIC) * fast_power(s.k - half + FAST_MAGIC);
}

/* The same number for less, if x is not beyond FAST_PLAIN. */
static inline real fast_exp_plain(real x)
{
    const real magic = x * FAST_LOG2_E + FAST_MAGIC;
    return fast_whole(fast_reduce(x, magic)) * fast_power(magic);
}

static inline real fast_expm1(real x)
{
    const struct fast_parts s = fast_split(x < -50 ? R(-50) : x);
    const real half = s.k * R(0.5) + FAST_MAGIC - FAST_MAGIC;
    const real first = fast_power(half + FAST_MAGIC), second = fast_power(s.k - half + FAST_MAGIC);
    const real power = first * second; /* infinite a little before the result is */
    const real near = fast_near(s.r), y = power * near + (power - 1);
    return s.k == 0 ? near : power > REAL_MAX ? (1 + near) * first * second : y;
}

#endif

/* 1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) where x is negative */
static inline real fast_sigmoid(real x)
{
    const real e = fast_exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

#if OP_REAL == 32
/* erfc(x) = t exp(-x^2 + P(t)) with t = 1 / (1 + x/2) for x >= 0; P is a fit over all t of 0 to
 * 1 that leaves 2e-7 of relative error. */
static inline real fast_erfc(real x)
{
    const real z = fabs(x), t = 1 / (1 + R(0.5) * z);
    real p = R(0.170872778);
    p = p * t + R(-0.822152234);
    p = p * t + R(1.48851589);
    p = p * t + R(-1.135204);
    p = p * t + R(0.278868084);
    p = p * t + R(-0.186288062);
    p = p * t + R(0.0967841895);
    p = p * t + R(0.37409196);
    p = p * t + R(1.00002368);
    p = p * t + R(-1.26551223);
    const real y = t * fast_exp(p - z * z);
    return x < 0 ? 2 - y : y;
}
#endif

/* (exp(2|x|) - 1) / (exp(2|x|) + 1) with x's sign; 1 is reached before exp overflows. */
static inline real fast_tanh(real x)
{
    const real most = OP_REAL == 128 ? R(40) : R(22);
    const real size = fabs(x), twice = size > most ? 2 * most : 2 * size;
    const real t = fast_expm1(twice);
    return copysign(t / (t + 2), x);
}

#endif
