/* The type of a product, and its operands in that type. */
#ifndef OP_MATMUL_H
#define OP_MATMUL_H

#include "exec/op/op.h"

/* The type in which products of a and b are given. Equal types stay. PyTorch refuses to multiply
 * different ones, but dumps made under autocast hold such calls: of two float types it is the
 * one of lower precision, to which autocast would have cast; otherwise what promotion says. */
enum plumb_dtype matmul_dtype(const struct val *a, const struct val *b);

/* x as an operand of a product of that type. */
struct val *matmul_operand(struct op *o, struct val *x, enum plumb_dtype dtype);

/* a times the transpose of b (of its last two dimensions; b has at least two). Differentiable. */
struct val *v_matmul_t(struct op *o, struct val *a, struct val *b);

#endif
