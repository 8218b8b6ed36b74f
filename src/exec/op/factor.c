/* LU and Cholesky factors of one matrix, and solving by substitution. */
#include "exec/op/factor.h"

static void swap_rows(int64_t n, real *a, real *b)
{
    for (int64_t j = 0; j < n; j++) {
        real t = a[j];
        a[j] = b[j];
        b[j] = t;
    }
}

/* y -= f * x */
static void subtract(int64_t n, real f, const real *restrict x, real *restrict y)
{
    for (int64_t j = 0; j < n; j++)
        y[j] -= f * x[j];
}

static void divide(int64_t n, real *x, real by)
{
    for (int64_t j = 0; j < n; j++)
        x[j] /= by;
}

int factor_lu(int64_t n, real *a, int64_t *row, int64_t *zero)
{
    int sign = 1;
    *zero = 0;
    op_terms(n);
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        for (int64_t r = i + 1; r < n; r++)
            if (fabs(a[r * n + i]) > fabs(a[best * n + i]))
                best = r;
        row[i] = best;
        if (best != i) {
            swap_rows(n, a + i * n, a + best * n);
            sign = -sign;
        }
        const real pivot = a[i * n + i];
        if (pivot == 0) {
            if (!*zero)
                *zero = i + 1;
            continue;
        }
        for (int64_t r = i + 1; r < n; r++) {
            const real f = a[r * n + i] /= pivot;
            subtract(n - i - 1, f, a + i * n + i + 1, a + r * n + i + 1);
        }
    }
    return sign;
}

/* Rows of x in the order in which they can be solved: first those that depend on no other. */
void factor_triangle_solve(int64_t n, int64_t k, const real *a, bool upper, bool transposed,
                           bool unit, real *x)
{
    const bool forward = upper == transposed;
    op_terms(n);
    const int64_t down = transposed ? 1 : n, across = transposed ? n : 1;
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = forward ? step : n - 1 - step;
        const int64_t from = forward ? 0 : i + 1, to = forward ? i : n;
        for (int64_t j = from; j < to; j++)
            subtract(k, a[i * down + j * across], x + j * k, x + i * k);
        if (!unit)
            divide(k, x + i * k, a[i * n + i]);
    }
}

void factor_lu_solve(int64_t n, int64_t k, const real *lu, const int64_t *row, bool transposed,
                     real *x)
{
    if (transposed) {
        factor_triangle_solve(n, k, lu, true, true, false, x);
        factor_triangle_solve(n, k, lu, false, true, true, x);
        for (int64_t i = n; i-- > 0;)
            if (row[i] != i)
                swap_rows(k, x + i * k, x + row[i] * k);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (row[i] != i)
            swap_rows(k, x + i * k, x + row[i] * k);
    factor_triangle_solve(n, k, lu, false, false, true, x);
    factor_triangle_solve(n, k, lu, true, false, false, x);
}

int64_t factor_cholesky(int64_t n, real *a)
{
    op_terms(n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            const real left = a[i * n + j] - real_dot(a + i * n, a + j * n, j);
            if (j < i) {
                a[i * n + j] = left / a[j * n + j];
                continue;
            }
            if (!(left > 0))
                return i + 1;
            a[i * n + i] = sqrt(left);
        }
        for (int64_t j = i + 1; j < n; j++)
            a[i * n + j] = 0;
    }
    return 0;
}
