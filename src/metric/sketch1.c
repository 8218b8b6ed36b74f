/* Sketches of version 1. */
#include "metric/sketch1.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH = 1 << 14 };

/* Sums of numbers below this cannot overflow before they are flushed. */
#define LARGE 0x1p1000

/* Number j of the SplitMix64 sequence from seed 0: four numbers of the tensor share it. */
static uint64_t word_of(uint64_t j)
{
    uint64_t z = (j + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

struct sketch1_state *sketch1_new(void)
{
    return calloc(1, sizeof(struct sketch1_state));
}

static void flush(struct sketch1_state *sketch)
{
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        exact_add(&sketch->rest[i], sketch->sum[i].high);
        exact_add(&sketch->rest[i], sketch->sum[i].low);
        sketch->sum[i] = (struct sketch1_sum){0};
    }
    sketch->pending = 0;
}

/* a + b without rounding: the sum, and what float64 lost of it. */
static double add(double a, double b, double *lost)
{
    double sum = a + b, part = sum - a;
    *lost = (a - (sum - part)) + (b - part);
    return sum;
}

/* Two float64 hold nearly every sum; what even they lose is rare enough to be slow. */
static void add_one(struct sketch1_state *sketch, unsigned field, double x)
{
    unsigned bin = field & 255;
    struct sketch1_sum *sum = &sketch->sum[bin];
    double sign = 1 - (double)(field >> 7 & 2), lost;
    if (fabs(x) < LARGE) {
        sum->high = add(sum->high, sign * x, &lost);
        sum->low = add(sum->low, lost, &lost);
        if (lost != 0)
            exact_add(&sketch->rest[bin], lost);
    } else if (isfinite(x)) {
        exact_add(&sketch->rest[bin], sign * x);
    }
}

void sketch1_add(struct sketch1_state *sketch, uint64_t first, const double *x, size_t n)
{
    uint64_t word = word_of(first / 4);
    for (size_t i = 0; i < n; i++) {
        uint64_t index = first + i;
        if (index % 4 == 0)
            word = word_of(index / 4);
        add_one(sketch, (unsigned)(word >> 16 * (index % 4)) & 511, x[i]);
    }
    sketch->pending += n;
    if (sketch->pending >= FLUSH)
        flush(sketch);
}

static struct exact total(const struct sketch1_state *sketch, int i)
{
    struct exact sum = sketch->rest[i];
    exact_add(&sum, sketch->sum[i].high);
    exact_add(&sum, sketch->sum[i].low);
    return sum;
}

void sketch1_merge(struct sketch1_state *sketch, const struct sketch1_state *other)
{
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        struct exact sum = total(other, i);
        exact_merge(&sketch->rest[i], &sum);
    }
}

/* All sums, times 2^(32*limbs); returns the largest size. */
static double round_sums(const struct sketch1_state *sketch, int limbs, double *sums)
{
    double largest = 0;
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        struct exact sum = total(sketch, i);
        sums[i] = exact_round_shifted(&sum, limbs);
        largest = fabs(sums[i]) > largest ? fabs(sums[i]) : largest;
    }
    return largest;
}

void sketch1_finish(const struct sketch1_state *sketch, struct plumb_sketch *out)
{
    double sums[PLUMB_SKETCH_SUMS];
    int exponent = 0, shift = 0;
    double largest = round_sums(sketch, 0, sums);
    if (largest >= LARGE) { /* their sum may have left float64 */
        largest = round_sums(sketch, -EXACT_STEP, sums);
        shift = 32 * EXACT_STEP;
    }
    frexp(largest, &exponent);
    *out = (struct plumb_sketch){.version = 1, .exponent = exponent + shift};
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++)
        out->sum[i] = (float)ldexp(sums[i], -exponent);
}
