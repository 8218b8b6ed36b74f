/* What other families need of linear algebra. */
#ifndef OP_LINALG_H
#define OP_LINALG_H

#include "exec/op/op.h"

#define matrices OP_SYM(matrices)
#define v_solve OP_SYM(v_solve)

/* x as a batch of matrices of floats; NULL (and failed) when it is none. */
struct val *matrices(struct op *o, struct val *x);

/* x as a batch of square matrices; NULL (and failed) when it is none. */
struct val *square_matrices(struct op *o, struct val *x);

/* The identity of n x n in every batch of x's shape. */
struct val *v_identity_like(struct op *o, const struct val *x);

/* The inverses of a batch of square matrices; a singular one fails. Differentiable. */
struct val *v_inverse(struct op *o, struct val *x);

/* x with a x = b, of the same batch dimensions; a singular matrix fails. Differentiable. */
struct val *v_solve(struct op *o, struct val *a, struct val *b);

/* x with its last two dimensions swapped. */
struct val *v_matrix_transpose(struct op *o, struct val *x);

#endif
