/* Binary128 numbers as the sum of two doubles, for loops that multiply and add many of them: that
 * takes a fifth of the time of binary128 in software, and less where there are vectors.
 *
 * 106 of the 113 bits are kept. Products and sums of doubles come with their exact rounding errors,
 * so results do not depend on whether the processor fuses. */
#ifndef OP_PAIR_H
#define OP_PAIR_H

#include "exec/op/quad.h"

#include <math.h>
#include <stdbool.h>

#define PAIR_INLINE static inline __attribute__((always_inline))

/* Exponents of numbers that may be pairs. Those of factors leave room for products and their
 * rounding errors, those of terms for sums. */
enum {
    PAIR_FACTOR_LOW = -450,
    PAIR_FACTOR_HIGH = 480,
    PAIR_TERM_LOW = -900,
    PAIR_TERM_HIGH = 980,
};

/* 2^exponent, for exponents of normal doubles. */
PAIR_INLINE double pair_power(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* x = *value + *rest, the rest cut to 53 bits. False if x is neither 0 nor of an exponent within
 * low and high: then both are 0. */
PAIR_INLINE bool pair_split(quad x, int low, int high, double *value, double *rest)
{
    const struct quad_bits q = quad_to_bits(x);
    const uint64_t sign = q.high & QUAD_SIGN, size = q.high ^ sign;
    const int exponent = (int)(size >> 48) - 16383;
    *value = *rest = 0;
    if (exponent < low || exponent > high)
        return (size | q.low) == 0;
    const uint64_t top =
        sign | (uint64_t)(exponent + 1023) << 52 | (size << 16 >> 12) | q.low >> 60;
    const int64_t bottom = (int64_t)(q.low << 4 >> 4);
    memcpy(value, &top, sizeof top);
    *rest = (double)(sign ? -bottom : bottom) * pair_power(exponent - 112);
    return true;
}

/* *sum += x, with what rounding loses returned. */
PAIR_INLINE double pair_add(double *sum, double x)
{
    const double s = *sum + x, part = s - *sum;
    const double lost = (*sum - (s - part)) + (x - part);
    *sum = s;
    return lost;
}

/* The upper half of the digits of x. */
PAIR_INLINE double pair_upper(double x)
{
    const double far = x * 0x1.0000002p27;
    return far - (far - x);
}

/* What rounding loses of x * y, which is `product`: by a fused multiplication, or from halves whose
 * products are exact (T. J. Dekker). Both are exact, and so the same. */
PAIR_INLINE double pair_lost(bool fused, double x, double y, double product)
{
    if (fused)
        return fma(x, y, -product);
    const double x_up = pair_upper(x), y_up = pair_upper(y), x_low = x - x_up, y_low = y - y_up;
    return ((x_up * y_up - product) + x_up * y_low + x_low * y_up) + x_low * y_low;
}

#ifdef __FP_FAST_FMA
enum { PAIR_FUSED = true };
#else
enum { PAIR_FUSED = false };
#endif

#endif
