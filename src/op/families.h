/* The operator families: one table op_<family> each, in the file of that name. */
#ifndef OP_FAMILIES_H
#define OP_FAMILIES_H

#define OP_FAMILIES(X)                                                                             \
    X(unary)                                                                                       \
    X(special)                                                                                     \
    X(activation)                                                                                  \
    X(binary)                                                                                      \
    X(compare)                                                                                     \
    X(divide)                                                                                      \
    X(pairwise)                                                                                    \
    X(predicate)                                                                                   \
    X(gamma)                                                                                       \
    X(bessel)                                                                                      \
    X(foreach)                                                                                     \
    X(ternary)                                                                                     \
    X(bits)                                                                                        \
    X(extreme)                                                                                     \
    X(moments)                                                                                     \
    X(vector_norm)                                                                                 \
    X(distance)                                                                                    \
    X(quantile)                                                                                    \
    X(histogram)                                                                                   \
    X(unique)                                                                                      \
    X(batch_norm)                                                                                  \
    X(reduce)                                                                                      \
    X(order)                                                                                       \
    X(cumulative)                                                                                  \
    X(norm)                                                                                        \
    X(softmax)                                                                                     \
    X(linear)                                                                                      \
    X(product)                                                                                     \
    X(einsum)                                                                                      \
    X(linalg)                                                                                      \
    X(triangular)                                                                                  \
    X(matexp)                                                                                      \
    X(conv)                                                                                        \
    X(pool)                                                                                        \
    X(spread)                                                                                      \
    X(attention)                                                                                   \
    X(multihead)                                                                                   \
    X(shape)                                                                                       \
    X(join)                                                                                        \
    X(part)                                                                                        \
    X(arrange)                                                                                     \
    X(gather)                                                                                      \
    X(scatter)                                                                                     \
    X(embedding)                                                                                   \
    X(signal)                                                                                      \
    X(convert)                                                                                     \
    X(pad)                                                                                         \
    X(sample)                                                                                      \
    X(patch)                                                                                       \
    X(index)                                                                                       \
    X(create)                                                                                      \
    X(resample)                                                                                    \
    X(loss)                                                                                        \
    X(loss_class)                                                                                  \
    X(loss_ctc)                                                                                    \
    X(fused)                                                                                       \
    X(fused_attention)                                                                             \
    X(fused_norm)                                                                                  \
    X(fused_move)                                                                                  \
    X(optim)                                                                                       \
    X(dropout)

#endif
