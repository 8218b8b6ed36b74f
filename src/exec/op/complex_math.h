/* Arithmetic of single complex numbers, and functions of complex values made with it. */
#ifndef OP_COMPLEX_MATH_H
#define OP_COMPLEX_MATH_H

#include "exec/op/parts.h"

struct cx {
    real re, im;
};

static inline struct cx cx(real re, real im)
{
    return (struct cx){re, im};
}

static inline struct cx cx_add(struct cx a, struct cx b)
{
    return cx(a.re + b.re, a.im + b.im);
}

static inline struct cx cx_sub(struct cx a, struct cx b)
{
    return cx(a.re - b.re, a.im - b.im);
}

static inline struct cx cx_mul(struct cx a, struct cx b)
{
    return cx(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

static inline struct cx cx_scale(struct cx a, real factor)
{
    return cx(a.re * factor, a.im * factor);
}

static inline struct cx cx_conj(struct cx a)
{
    return cx(a.re, -a.im);
}

/* i a */
static inline struct cx cx_turn(struct cx a)
{
    return cx(-a.im, a.re);
}

static inline real cx_size(struct cx a)
{
    return hypot(a.re, a.im);
}

/* By Smith's method: no square that overflows. */
static inline struct cx cx_div(struct cx a, struct cx b)
{
    if (fabs(b.re) >= fabs(b.im)) {
        if (b.re == 0 && b.im == 0)
            return cx(a.re / fabs(b.re), a.im / fabs(b.re));
        const real ratio = b.im / b.re, whole = b.re + b.im * ratio;
        return cx((a.re + a.im * ratio) / whole, (a.im - a.re * ratio) / whole);
    }
    const real ratio = b.re / b.im, whole = b.re * ratio + b.im;
    return cx((a.re * ratio + a.im) / whole, (a.im * ratio - a.re) / whole);
}

/* A function that has a complex derivative. */
struct holomorphic {
    struct cx (*value)(struct cx z);
    struct cx (*slope)(struct cx z, struct cx w); /* at z, where the value is w */
    real apart; /* how large the numbers are that the slope is a difference of; 0: none */
};

/* fn of every number of z, whose last dimension is that of parts. */
struct val *v_holomorphic(struct op *o, struct val *z, const struct holomorphic *fn);

/* A function of two. */
struct complex_pair {
    struct cx (*value)(struct cx a, struct cx b);
    void (*slopes)(struct cx a, struct cx b, struct cx y, struct cx *by_a, struct cx *by_b);
    real (*growth)(struct cx a, struct cx b); /* how many roundings its usual steps are worth;
                                                 NULL: one */
};

/* fn of a and b, broadcast; both with a last dimension of parts. */
struct val *v_complex_pair(struct op *o, struct val *a, struct val *b,
                           const struct complex_pair *fn);
struct val *v_complex_mul(struct op *o, struct val *a, struct val *b);

/* op_between_function() for complex results: each part errs by as much as the other, since their
 * formulas mix them. n numbers; sizes: of each, times which it may err; NULL: 1. */
void op_between_sizes(struct op *o, real *w, int64_t n, const real *sizes);

#endif
