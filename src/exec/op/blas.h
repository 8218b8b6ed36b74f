/* OpenBLAS, if this machine has it: found by name when first needed, never linked.
 *
 * One thread only: a product must have the same bytes however many threads plumb itself runs on,
 * and calls are already spread over threads. Thread-safe. */
#ifndef OP_BLAS_H
#define OP_BLAS_H

enum { BLAS_ROWS = 101, BLAS_PLAIN = 111, BLAS_TRANSPOSED = 112 };

struct blas {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                  int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                  int lda, const double *b, int ldb, double beta, double *c, int ldc);
    void (*sgemv)(int order, int ta, int m, int n, float alpha, const float *a, int lda,
                  const float *x, int incx, float beta, float *y, int incy);
    void (*dgemv)(int order, int ta, int m, int n, double alpha, const double *a, int lda,
                  const double *x, int incx, double beta, double *y, int incy);
};

/* NULL when there is none that can be used; gemm.c then multiplies itself. */
const struct blas *blas_find(void);

/* What multiplies: OpenBLAS' own description of itself, or "plain". */
const char *blas_name(void);

#endif
