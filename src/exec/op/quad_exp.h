/* exp of binary128 in integers: a fifth of the time of libm's, which the softmax, the logistic
 * function and most activations wait for. Within 1 ulp.
 *
 * exp(x) = 2^k exp(r) with 0 <= r < 0.7. exp(r / 32) - 1 comes from Taylor's series and is squared
 * back five times, as 2 y + y^2. */
#ifndef OP_QUAD_EXP_H
#define OP_QUAD_EXP_H

#include "exec/op/quad.h"

/* A number below 4 as 2^-126 of it. */
__extension__ typedef unsigned __int128 fixed;

#define FIXED_ONE ((fixed)1 << 126)

static inline fixed fixed_multiply(fixed x, fixed y)
{
    const uint64_t x_high = (uint64_t)(x >> 64), x_low = (uint64_t)x;
    const uint64_t y_high = (uint64_t)(y >> 64), y_low = (uint64_t)y;
    const fixed first = (fixed)x_high * y_low, second = (fixed)x_low * y_high;
    const fixed carry = ((fixed)x_low * y_low >> 64) + (uint64_t)first + (uint64_t)second;
    const fixed high = (fixed)x_high * y_high + (first >> 64) + (second >> 64) + (carry >> 64);
    return high << 2 | ((uint64_t)carry >> 62);
}

/* exp(r) - 1 for r of 0 to 0.7. */
static inline fixed fixed_expm1(fixed r)
{
    static const fixed inverse[] = {
        /* of factorials, from that of 2 on */
        FIXED_ONE / 2,
        FIXED_ONE / 6,
        FIXED_ONE / 24,
        FIXED_ONE / 120,
        FIXED_ONE / 720,
        FIXED_ONE / 5040,
        FIXED_ONE / 40320,
        FIXED_ONE / 362880,
        FIXED_ONE / 3628800,
        FIXED_ONE / 39916800,
        FIXED_ONE / 479001600,
        FIXED_ONE / 6227020800,
        FIXED_ONE / 87178291200,
        FIXED_ONE / 1307674368000,
        FIXED_ONE / 20922789888000,
    };
    const int terms = sizeof inverse / sizeof *inverse;
    r >>= 5;
    fixed sum = 0;
    for (int k = terms - 1; k >= 0; k--)
        sum = fixed_multiply(sum + inverse[k], r);
    fixed y = r + fixed_multiply(sum, r);
    for (int k = 0; k < 5; k++)
        y = 2 * y + fixed_multiply(y, y);
    return y;
}

/* The fraction of |x| as 2^-128 of it, for |x| from 2^-120 to 2^14. */
static inline fixed quad_fraction(struct quad_bits q, int exponent)
{
    const uint64_t high = (q.high & 0xffffffffffffU) | 0x1000000000000U;
    const fixed digits = (fixed)high << 64 | q.low;
    const int up = exponent + 16;
    return up >= 0 ? digits << up : digits >> -up;
}

static inline quad quad_fast_exp(quad x)
{
    const struct quad_bits q = quad_to_bits(x);
    const int exponent = (int)((q.high & QUAD_INFINITE) >> 48) - 16383;
    const double rounded = (double)x, size = rounded < 0 ? -rounded : rounded;
    if (!(size < 11300))
        return quad_exp(x);
    if (exponent < -115)
        return 1 + x;

    /* k is taken a little too low, so that r is never negative. */
    const double about = size * 1.4426950408889634;
    const int64_t k = rounded < 0 ? (int64_t)(about + 0x1p-30) + 1
                                  : (about > 0x1p-30 ? (int64_t)(about - 0x1p-30) : 0);
    /* ln 2 has 192 digits here. Whole numbers drop out of both. */
    const fixed ln2 = (fixed)0xb17217f7d1cf79abU << 64 | 0xc9e3b39803f2f6afU;
    const fixed part = (fixed)(uint64_t)k * ln2 + ((fixed)(uint64_t)k * 0x40f343267298b62dU >> 64);
    const fixed fraction = quad_fraction(q, exponent);
    fixed y = FIXED_ONE + fixed_expm1((rounded < 0 ? part - fraction : fraction - part) >> 2);

    int64_t power = rounded < 0 ? -k : k;
    if (y >> 127) {
        y >>= 1;
        power++;
    }
    y = (y + ((fixed)1 << 13)) >> 14; /* 113 digits; a carry goes to the exponent */
    y += (fixed)(uint64_t)(power + 16382) << 112;
    return quad_from_bits((struct quad_bits){.low = (uint64_t)y, .high = (uint64_t)(y >> 64)});
}

/* Near 0 subtracting 1 would cost digits. */
static inline quad quad_fast_expm1(quad x)
{
    return quad_fabs(x) < QUAD_C(0x1p-8) ? quad_expm1(x) : quad_fast_exp(x) - 1;
}

#endif
