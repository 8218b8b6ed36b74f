/* softmax(scale * q k^T + mask) v, without keeping the matrix of all scores. */
#ifndef OP_ATTENTION_H
#define OP_ATTENTION_H

#include "exec/op/op.h"

#define attention_no_dropout OP_SYM(attention_no_dropout)
#define attention_scale OP_SYM(attention_scale)
#define v_attention OP_SYM(v_attention)
#define v_attention_given OP_SYM(v_attention_given)
#define v_attention_weights OP_SYM(v_attention_weights)
#define v_safe_softmax OP_SYM(v_safe_softmax)

/* What becomes of the scores. Zeros: nothing but the softmax. */
struct attention {
    double scale;
    double softcap;           /* a score s becomes softcap tanh(s / softcap); 0: it stays */
    const struct val *slopes; /* [N] or [B, N], or NULL: slope |i - j| is subtracted */
    bool causal;              /* query i sees keys 0..i */
    bool window;              /* query i sees keys i - left..i + right; negative: no end */
    int64_t left, right;
    bool from_end;     /* i counts so that the last query stands at the last key */
    double unseen_lse; /* that of a query that sees no key */
};

/* q is [B, N, S, D], k [B, M, T, D], v [B, M, T, E] with N a multiple of M (each head of k and v
 * serves N / M of q); the result is [B, N, S, E]. mask (or NULL) broadcasts to [B, N, S, T]: bool,
 * true where a query sees a key, or float, added to the scores behind the softcap. A query that
 * sees no key gets zeros. Differentiable in all but a bool mask and slopes. lse (or NULL) receives
 * log(sum(exp(scores))), [B, N, S], float32 or float64, which has no gradient. */
struct val *v_attention(struct op *o, struct val *q, struct val *k, struct val *v, struct val *mask,
                        const struct attention *how, struct val **lse);

/* The gradients of q, k, v and mask, in that order, as results, from what the forward returned: its
 * output y, and lse, of which those of the S queries of a head are the first. want: a bit for each;
 * NULL where it is not set. */
bool v_attention_given(struct op *o, struct val *const *in, const struct attention *how,
                       const struct val *y, const struct val *lse, const struct val *grad,
                       unsigned want, struct val **to);

/* Plain matrices instead, for operators that return the weights [B, N, S, T] (N = M). safe: a query
 * that sees no key has zeros, not NaN. */
struct val *v_attention_weights(struct op *o, struct val *q, struct val *k, struct val *mask,
                                double scale, bool causal, bool safe);

/* softmax (softmax.c), but zeros for a row of nothing but -inf. */
struct val *v_safe_softmax(struct op *o, struct val *x, unsigned dim);

/* False (and failed) when p is not 0. */
bool attention_no_dropout(struct op *o, double p);

/* The argument `scale`, or 1 / sqrt(d). */
double attention_scale(struct op *o, int64_t d);

#endif
