/* Sums that keep their accuracy: what reduce.c, the norms and the softmaxes add up with. */
#ifndef OP_SUM_H
#define OP_SUM_H

#include "op/real.h"
#include "op/symbols.h"

#include <stdint.h>

/* A running sum with the rounding errors that it left behind. */
struct tally {
    real sum, lost;
};

static inline void tally_add(struct tally *t, real x)
{
    real s = t->sum + x;
    real part = s - t->sum;
    t->lost += (t->sum - (s - part)) + (x - part);
    t->sum = s;
}

/* Once a sum is infinite or NaN, what was "lost" means nothing. */
static inline real tally_value(real sum, real lost)
{
    return isfinite(sum) ? sum + lost : sum;
}

/* The sum of n elements, not yet rounded to one number. */
struct tally tally_of(const real *x, int64_t n, int64_t stride);

/* Adds up the columns of x, rows by columns with `stride` elements from row to row: out[c]. */
void sum_rows(const real *x, int64_t rows, int64_t columns, int64_t stride, real *out);

#endif
