/* The operator families: one table op_<family> each, in the file of that name, and what the results
 * of most of its operators are (enum plumb_op_class); rows that are something else say so. */
#ifndef OP_FAMILIES_H
#define OP_FAMILIES_H

#define OP_FAMILIES(X)                                                                             \
    X(unary, ELEMENTWISE)                                                                          \
    X(special, ELEMENTWISE)                                                                        \
    X(activation, ELEMENTWISE)                                                                     \
    X(binary, ELEMENTWISE)                                                                         \
    X(compare, EXACT)                                                                              \
    X(divide, ELEMENTWISE)                                                                         \
    X(pairwise, ELEMENTWISE)                                                                       \
    X(predicate, EXACT)                                                                            \
    X(gamma, ELEMENTWISE)                                                                          \
    X(bessel, ELEMENTWISE)                                                                         \
    X(foreach, ELEMENTWISE)                                                                        \
    X(ternary, ELEMENTWISE)                                                                        \
    X(bits, EXACT)                                                                                 \
    X(extreme, DECISION)                                                                           \
    X(moments, COMPOSITE)                                                                          \
    X(vector_norm, COMPOSITE)                                                                      \
    X(distance, COMPOSITE)                                                                         \
    X(quantile, COMPOSITE)                                                                         \
    X(histogram, COMPOSITE)                                                                        \
    X(unique, DECISION)                                                                            \
    X(batch_norm, COMPOSITE)                                                                       \
    X(reduce, COMPOSITE)                                                                           \
    X(order, DECISION)                                                                             \
    X(cumulative, LINEAR)                                                                          \
    X(norm, COMPOSITE)                                                                             \
    X(softmax, COMPOSITE)                                                                          \
    X(linear, BILINEAR)                                                                            \
    X(product, BILINEAR)                                                                           \
    X(einsum, BILINEAR)                                                                            \
    X(linalg, COMPOSITE)                                                                           \
    X(triangular, COMPOSITE)                                                                       \
    X(matexp, COMPOSITE)                                                                           \
    X(lu, COMPOSITE)                                                                               \
    X(orthogonal, COMPOSITE)                                                                       \
    X(spectral, COMPOSITE)                                                                         \
    X(conv, BILINEAR)                                                                              \
    X(maxpool, DECISION)                                                                           \
    X(avgpool, LINEAR)                                                                             \
    X(spread, LINEAR)                                                                              \
    X(attention, COMPOSITE)                                                                        \
    X(multihead, COMPOSITE)                                                                        \
    X(recurrent, COMPOSITE)                                                                        \
    X(shape, EXACT)                                                                                \
    X(join, EXACT)                                                                                 \
    X(part, EXACT)                                                                                 \
    X(arrange, EXACT)                                                                              \
    X(gather, EXACT)                                                                               \
    X(scatter, COMPOSITE)                                                                          \
    X(embedding, COMPOSITE)                                                                        \
    X(signal, COMPOSITE)                                                                           \
    X(convert, EXACT)                                                                              \
    X(pad, EXACT)                                                                                  \
    X(sample, COMPOSITE)                                                                           \
    X(patch, EXACT)                                                                                \
    X(index, COMPOSITE)                                                                            \
    X(create, COMPOSITE)                                                                           \
    X(resample, LINEAR)                                                                            \
    X(loss, COMPOSITE)                                                                             \
    X(loss_class, COMPOSITE)                                                                       \
    X(loss_ctc, COMPOSITE)                                                                         \
    X(fused, COMPOSITE)                                                                            \
    X(fused_attention, COMPOSITE)                                                                  \
    X(fused_grad, COMPOSITE)                                                                       \
    X(fused_norm, COMPOSITE)                                                                       \
    X(fused_move, COMPOSITE)                                                                       \
    X(fused_quant, COMPOSITE)                                                                      \
    X(fused_moe, COMPOSITE)                                                                        \
    X(fused_misc, COMPOSITE)                                                                       \
    X(complex, EXACT)                                                                              \
    X(complex_math, ELEMENTWISE)                                                                   \
    X(fft, LINEAR)                                                                                 \
    X(stft, LINEAR)                                                                                \
    X(optim, COMPOSITE)                                                                            \
    X(dropout, COMPOSITE)                                                                          \
    X(random, RANDOM)

#endif
