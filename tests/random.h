/* Reproducible random numbers for tests: every run and every machine sees the same data. */
#ifndef RANDOM_H
#define RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* splitmix64; any seed is good. */
static inline uint64_t random_bits(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 .. limit-1 */
static inline uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    return random_bits(seed) % limit;
}

/* -1 .. 1 */
static inline double random_unit(uint64_t *seed)
{
    return (double)(int64_t)random_bits(seed) * 0x1p-63;
}

static inline double random_double_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Any finite float64: all exponents are equally likely. */
static inline double random_finite(uint64_t *seed)
{
    for (;;) {
        double x = random_double_from_bits(random_bits(seed));
        if (isfinite(x))
            return x;
    }
}

#endif
