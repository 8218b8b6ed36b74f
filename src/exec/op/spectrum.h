/* Singular values and eigenvalues of matrices, by Jacobi's rotations. */
#ifndef OP_SPECTRUM_H
#define OP_SPECTRUM_H

#include "exec/op/op.h"

#define spectrum_svd OP_SYM(spectrum_svd)
#define spectrum_eigh OP_SYM(spectrum_eigh)
#define v_singular_values OP_SYM(v_singular_values)
#define v_symmetric_values OP_SYM(v_symmetric_values)

/* a (m x n, row by row) = U diag(s) V^T with k = min(m, n) values, the largest first. ut is k x m
 * and vt k x n: a row for each value, zeros in ut or vt where the value is 0. scratch has room for
 * (m + n) k numbers. */
void spectrum_svd(int64_t m, int64_t n, const real *a, real *s, real *ut, real *vt, real *scratch);

/* The symmetric matrix a (n x n) = V diag(w) V^T, the smallest value first; a is overwritten. A row
 * of vt for each value. */
void spectrum_eigh(int64_t n, real *a, real *w, real *vt);

/* The singular values of a batch of matrices, [.., min(m, n)]. Differentiable. */
struct val *v_singular_values(struct op *o, struct val *x);

/* The eigenvalues of a batch of symmetric matrices, of which one triangle is read. Differentiable:
 * the gradient is symmetric, as PyTorch's. */
struct val *v_symmetric_values(struct op *o, struct val *x, bool upper);

#endif
