/* Lanes of sums: what sum.c and sum_unread.c add up with. */
#ifndef OP_LANES_H
#define OP_LANES_H

#include "exec/op/sum.h"

#include <string.h>

enum { LANES = 16 };

#if OP_REAL != 128

/* Lane k of element k. Vectors are spelled out: left to itself, the compiler keeps arrays of sums
 * in memory, and a sum waits there for the one before it. */
typedef real vec __attribute__((vector_size(32)));
typedef real loose_vec __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));
enum { WIDTH = sizeof(vec) / sizeof(real), VECS = LANES / WIDTH };

struct lanes {
    vec sum[VECS], lost[VECS];
};

/* Vectors are read as loose ones, not by memcpy: that is done by halves, which the vector has to
 * wait for. Functions get them by address, since a processor without AVX has no registers for
 * them. */
static inline void vec_add(vec *sum, vec *lost, const vec *x)
{
    const vec s = *sum + *x, part = s - *sum;
    *lost += (*sum - (s - part)) + (*x - part);
    *sum = s;
}

/* n is a multiple of LANES. */
static inline void lanes_add(struct lanes *lanes, const real *x, int64_t n)
{
    struct lanes l = *lanes; /* in registers */
    for (int64_t at = 0; at < n; at += LANES)
        for (int k = 0; k < VECS; k++) {
            const vec term = *(const loose_vec *)(x + at + k * WIDTH);
            vec_add(&l.sum[k], &l.lost[k], &term);
        }
    *lanes = l;
}

/* The sum of all lanes, each with one of `n` terms more. */
static inline struct tally lanes_total(const struct lanes *lanes, const real *x, int64_t n,
                                       int64_t stride)
{
    real sum[LANES], lost[LANES], small = 0;
    struct tally t = {0, 0};
    memcpy(sum, lanes->sum, sizeof sum);
    memcpy(lost, lanes->lost, sizeof lost);
    for (int64_t k = 0; k < n; k++)
        sum_add(&sum[k], &lost[k], x[k * stride]);
    for (int k = 0; k < LANES; k++) {
        tally_add(&t, sum[k]);
        small += lost[k];
    }
    t.lost += small;
    return t;
}

#endif

#endif
