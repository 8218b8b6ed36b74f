/* p-norms: (sum |x|^p)^(1/p), the number of nonzeros for 0, the extreme |x| for plus and minus
 * infinity. */
#ifndef OP_VECTOR_NORM_H
#define OP_VECTOR_NORM_H

#include "exec/op/op.h"

#define v_matrix_norm OP_SYM(v_matrix_norm)

/* The norm of n numbers. scratch has room for n. */
real p_norm(const real *x, int64_t n, double p, real *scratch);

/* Adds g times the gradient of the norm y of x to out, as torch takes it: 0 where it has none.
 * Equal extremes share it when `share`, else each gets all of it. */
void p_norm_add_gradient(const real *x, int64_t n, double p, real y, real g, bool share, real *out);

/* Over dims (0: all), as a value. */
struct val *v_vector_norm(struct op *o, struct val *x, double p, uint64_t dims, bool keepdim);

enum matrix_norm { MATRIX_FROBENIUS, MATRIX_NUCLEAR, MATRIX_ORDER };

/* Of the matrices in two dimensions. For MATRIX_ORDER, p is 1, -1, 2, -2 or an infinity. */
struct val *v_matrix_norm(struct op *o, struct val *x, enum matrix_norm kind, double p,
                          unsigned row_dim, unsigned column_dim, bool keepdim);

#endif
