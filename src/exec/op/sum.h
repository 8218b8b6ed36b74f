/* Sums that keep their accuracy: what reduce.c, the norms and the softmaxes add up with. */
#ifndef OP_SUM_H
#define OP_SUM_H

#include "exec/op/real.h"
#include "exec/op/symbols.h"

#include <stdint.h>

struct val;

/* A running sum with the rounding errors that it left behind. */
struct tally {
    real sum, lost;
};

/* *sum += x, with what rounding loses added to *lost. Nobody would see what a sum in binary128
 * loses, and it would cost seven times as much. */
static inline void sum_add(real *restrict sum, real *restrict lost, real x)
{
#if OP_REAL == 128
    (void)lost;
    *sum += x;
#else
    real s = *sum + x;
    real part = s - *sum;
    *lost += (*sum - (s - part)) + (x - part);
    *sum = s;
#endif
}

static inline void tally_add(struct tally *t, real x)
{
    sum_add(&t->sum, &t->lost, x);
}

/* Once a sum is infinite or NaN, what was "lost" means nothing. */
static inline real tally_value(real sum, real lost)
{
    return isfinite(sum) ? sum + lost : sum;
}

/* x with so many significant bits, for a split of 2^(53 - bits) + 1. */
static inline double sum_shorten(double x, double split)
{
    const double c = x * split, rounded = c - (c - x);
    return isfinite(rounded) ? rounded : x;
}

/* sum + x, where both steps to it and the sum itself keep so many bits. */
static inline double sum_short(double sum, double x, double split)
{
    return sum_shorten(sum + sum_shorten(x, split), split);
}

static inline double sum_split(unsigned bits)
{
    return (double)(UINT64_C(1) << (53 - bits)) + 1;
}

/* The sum of n elements, not yet rounded to one number. */
struct tally tally_of(const real *x, int64_t n, int64_t stride);

/* The same of elements first to first + n of a value, which may be unread. */
real sum_of_val(const struct val *x, int64_t first, int64_t n);

/* Adds up the columns of x, rows by columns with `stride` elements from row to row: out[c]. */
void sum_rows(const real *x, int64_t rows, int64_t columns, int64_t stride, real *out);

/* The same of rows that follow each other in a value, which may be unread, from an element on. */
void sum_rows_of_val(const struct val *x, int64_t first, int64_t rows, int64_t columns, real *out);

#endif
