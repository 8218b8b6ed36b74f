/* softmax(scale * q k^T + mask) v, without keeping the matrix of all scores. */
#ifndef OP_ATTENTION_H
#define OP_ATTENTION_H

#include "exec/op/op.h"

/* q is [B, N, S, D], k [B, M, T, D], v [B, M, T, E] with N a multiple of M (each head of k and v
 * serves N / M of q); the result is [B, N, S, E]. mask (or NULL) broadcasts to [B, N, S, T]: bool,
 * true where a query sees a key, or float, added to the scores. causal: query i sees keys 0..i. A
 * query that sees no key gets zeros. Differentiable in all but a bool mask. */
struct val *v_attention(struct op *o, struct val *q, struct val *k, struct val *v, struct val *mask,
                        double scale, bool causal);

/* The same as plain matrices, with the weights [B, N, S, T] (N = M): for operators that return
 * them. */
struct val *v_attention_weights(struct op *o, struct val *q, struct val *k, struct val *mask,
                                double scale, bool causal);

#endif
