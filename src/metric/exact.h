/* An exact sum of float64 values: a fixed-point number wide enough for all of them, and for all of
 * their squares.
 *
 * Adding is exact, so the order of additions and merges cannot change the result. This is what
 * makes the metrics independent of the number of threads and of how a tensor was cut. */
#ifndef METRIC_EXACT_H
#define METRIC_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* Values whose squares would leave the range of float64 are added up scaled by 2^(32*EXACT_STEP),
 * up or down, and merged with their sum shifted back. */
enum { EXACT_STEP = 19, EXACT_LIMBS = 146 };
#define EXACT_SCALE 0x1p608

struct exact {
    int64_t limb[EXACT_LIMBS];    /* 32 bits each, least first; carries are kept back */
    uint32_t pending;             /* additions since the carries were last settled */
    bool nan, positive, negative; /* what the infinities and NaNs among the values were */
};

/* All zero is the empty sum. */
void exact_add(struct exact *sum, double value);
void exact_add_product(struct exact *sum, double a, double b); /* a*b without rounding */
void exact_merge(struct exact *sum, const struct exact *other);
void exact_merge_shifted(struct exact *sum, const struct exact *other, int limbs);

/* The sum, rounded once to nearest even; the same times 2^(32*limbs). Shifts are those that a sum
 * of values or of squares needs: at most two steps. */
double exact_round(const struct exact *sum);
double exact_round_shifted(const struct exact *sum, int limbs);

#endif
