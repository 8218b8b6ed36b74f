/* Factorisations of single square matrices, row by row in memory, and solving with them. */
#ifndef OP_FACTOR_H
#define OP_FACTOR_H

#include "exec/op/op.h"

/* a = P L U in place, L with a unit diagonal; row[i] is the row that was swapped with row i.
 * Returns the sign of the permutation; *zero is the 1-based place of the first pivot that is 0,
 * or 0. */
int factor_lu(int64_t n, real *a, int64_t *row, int64_t *zero);

/* x (n x k) becomes the solution of a y = x, or of a^T y = x. */
void factor_lu_solve(int64_t n, int64_t k, const real *lu, const int64_t *row, bool transposed,
                     real *x);

/* x (n x k) becomes the solution of a y = x with a triangular; the other triangle is not read. */
void factor_triangle_solve(int64_t n, int64_t k, const real *a, bool upper, bool transposed,
                           bool unit, real *x);

/* The lower triangle of a becomes L with a = L L^T; the upper one is cleared. Returns the 1-based
 * place where a turned out not to be positive definite, or 0. */
int64_t factor_cholesky(int64_t n, real *a);

#endif
