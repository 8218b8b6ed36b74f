#ifndef OP_GEMM_H
#define OP_GEMM_H

#include "exec/op/op.h"

/* The matrix product without a library: what gemm() means, and what it does where there is no
 * OpenBLAS or the sizes do not fit its integers. Arguments as gemm() of op.h. Not for binary128. */
void gemm_plain(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
                int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* c += alpha * op(a) * op(b), for binary128 only. */
void gemm_add(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
              int64_t lda, const real *b, int64_t ldb, real *c, int64_t ldc);

#endif
