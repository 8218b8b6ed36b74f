/* An exact sum of float64 values: a fixed-point number wide enough for all of them.
 *
 * Adding is exact, so the order of additions and merges cannot change the result. This is what
 * makes the metrics independent of the number of threads and of how a tensor was cut. */
#ifndef METRIC_EXACT_H
#define METRIC_EXACT_H

#include <stdbool.h>
#include <stdint.h>

enum { EXACT_LIMBS = 69 };

struct exact {
    int64_t limb[EXACT_LIMBS]; /* 32 bits each, least first, from 2^-1074; carries are kept back */
    uint32_t pending;          /* additions since the carries were last settled */
    bool nan, positive, negative; /* what the infinities and NaNs among the values were */
};

/* All zero is the empty sum. */
void exact_add(struct exact *sum, double value);
void exact_add_product(struct exact *sum, double a, double b); /* a*b without rounding */
void exact_merge(struct exact *sum, const struct exact *other);

/* The sum, rounded once to nearest even. */
double exact_round(const struct exact *sum);

#endif
