/* c = alpha * op(a) * op(b) + beta * c. As in BLAS, beta = 0 means that c is not read: what was
 * there may be NaN. */
#include "exec/op/gemm.h"

#include "exec/op/blas.h"
#include "exec/op/noise.h"
#include "exec/op/sum.h"

#include <limits.h>

static void scale(int64_t m, int64_t n, real beta, real *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++) {
        real *row = c + i * ldc;
        for (int64_t j = 0; j < n; j++)
            row[j] = beta == 0 ? 0 : beta * row[j];
    }
}

#if OP_REAL == 128

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a, int64_t lda,
          const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    op_terms(k);
    if (beta != 1)
        scale(m, n, beta, c, ldc);
    if (m > 0 && alpha != 0)
        gemm_add(ta, tb, m, n, k, alpha, a, lda, b, ldb, c, ldc);
}

#else

enum { BLOCK_N = 64, BLOCK_K = 128, ROWS = 4 };

/* Copies op(b)[k0.., n0..] so that the innermost loop runs over adjacent elements either way. */
static void pack(bool tb, const real *b, int64_t ldb, int64_t k0, int64_t kn, int64_t n0,
                 int64_t nn, real block[BLOCK_K][BLOCK_N])
{
    for (int64_t p = 0; p < kn; p++) {
        for (int64_t j = 0; j < nn; j++)
            block[p][j] = tb ? b[(n0 + j) * ldb + k0 + p] : b[(k0 + p) * ldb + n0 + j];
        for (int64_t j = nn; j < BLOCK_N; j++)
            block[p][j] = 0;
    }
}

/* rows (up to ROWS) of op(a) from row i0 on, times the block, added to c. */
static void panel(bool ta, const real *a, int64_t lda, int64_t i0, int64_t rows, int64_t k0,
                  int64_t kn, real alpha, real block[BLOCK_K][BLOCK_N], real *c, int64_t ldc,
                  int64_t n0, int64_t nn)
{
    real sum[ROWS][BLOCK_N] = {0};
    for (int64_t p = 0; p < kn; p++)
        for (int64_t r = 0; r < rows; r++) {
            real x = ta ? a[(k0 + p) * lda + i0 + r] : a[(i0 + r) * lda + k0 + p];
            for (int64_t j = 0; j < BLOCK_N; j++)
                sum[r][j] += x * block[p][j];
        }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < nn; j++)
            c[(i0 + r) * ldc + n0 + j] += alpha * sum[r][j];
}

void gemm_plain(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
                int64_t lda, const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    real block[BLOCK_K][BLOCK_N];
    if (beta != 1)
        scale(m, n, beta, c, ldc);
    if (alpha == 0)
        return;
    for (int64_t n0 = 0; n0 < n; n0 += BLOCK_N) {
        int64_t nn = n - n0 < BLOCK_N ? n - n0 : BLOCK_N;
        for (int64_t k0 = 0; k0 < k; k0 += BLOCK_K) {
            int64_t kn = k - k0 < BLOCK_K ? k - k0 : BLOCK_K;
            pack(tb, b, ldb, k0, kn, n0, nn, block);
            for (int64_t i = 0; i < m; i += ROWS)
                panel(ta, a, lda, i, m - i < ROWS ? m - i : ROWS, k0, kn, alpha, block, c, ldc, n0,
                      nn);
        }
    }
}

#if OP_REAL == 32
#define MULTIPLY(blas) (blas)->sgemm
#define MULTIPLY_VECTOR(blas) (blas)->sgemv
#else
#define MULTIPLY(blas) (blas)->dgemm
#define MULTIPLY_VECTOR(blas) (blas)->dgemv
#endif

static int transposed(bool t)
{
    return t ? BLAS_TRANSPOSED : BLAS_PLAIN;
}

/* y = alpha * op(a) * x + beta * y with a stored as rows x columns. y is cleared here for beta = 0,
 * since versions differ in whether 0 * NaN stays. */
static void vector(const struct blas *blas, bool ta, int64_t rows, int64_t columns, real alpha,
                   const real *a, int64_t lda, const real *x, int64_t incx, real beta, real *y,
                   int64_t incy)
{
    if (beta == 0)
        for (int64_t i = 0; i < (ta ? columns : rows); i++)
            y[i * incy] = 0;
    MULTIPLY_VECTOR(blas)
    (BLAS_ROWS, transposed(ta), (int)rows, (int)columns, alpha, a, (int)lda, x, (int)incx, beta, y,
     (int)incy);
}

/* Sums of few bits, one term after the other. */
static void gemm_short(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a,
                       int64_t lda, const real *b, int64_t ldb, real *c, int64_t ldc)
{
    const double split = sum_split(noise_sum_bits());
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = (double)c[i * ldc + j];
            for (int64_t p = 0; p < k; p++) {
                const real x = ta ? a[p * lda + i] : a[i * lda + p];
                const real y = tb ? b[j * ldb + p] : b[p * ldb + j];
                sum = sum_short(sum, (double)(alpha * x * y), split);
            }
            c[i * ldc + j] = (real)sum;
        }
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a, int64_t lda,
          const real *b, int64_t ldb, real beta, real *c, int64_t ldc)
{
    op_terms(k);
    if (m <= 0 || n <= 0)
        return;
    if (k <= 0 || alpha == 0) {
        scale(m, n, beta, c, ldc);
        return;
    }
    if (noise_sum_bits()) {
        scale(m, n, beta, c, ldc);
        gemm_short(ta, tb, m, n, k, alpha, a, lda, b, ldb, c, ldc);
        return;
    }
    const struct blas *blas = blas_find();
    if (!blas || m > INT_MAX || n > INT_MAX || k > INT_MAX || lda > INT_MAX || ldb > INT_MAX ||
        ldc > INT_MAX)
        gemm_plain(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else if (n == 1)
        vector(blas, ta, ta ? k : m, ta ? m : k, alpha, a, lda, b, tb ? 1 : ldb, beta, c, ldc);
    else if (m == 1) /* c^T = op(b)^T op(a)^T */
        vector(blas, !tb, tb ? n : k, tb ? k : n, alpha, b, ldb, a, ta ? lda : 1, beta, c, 1);
    else
        MULTIPLY(blas)
    (BLAS_ROWS, transposed(ta), transposed(tb), (int)m, (int)n, (int)k, alpha, a, (int)lda, b,
     (int)ldb, beta, c, (int)ldc);
}

#endif
