/* The exponential of square matrices: Taylor's series of a scaled matrix, then squared back. */
#include "exec/op/linalg.h"

#include <string.h>

/* After scaling the norm is at most 1/4; 1 / 24! / 4^24 is far below the last digit of
 * binary128. */
enum { TERMS = 24, MAX_SQUARINGS = 20000 };

static int scaling(int64_t n, const real *a)
{
    real norm = 0;
    for (int64_t i = 0; i < n; i++) {
        real sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += fabs(a[i * n + j]);
        if (!isfinite(sum))
            return 0;
        if (sum > norm)
            norm = sum;
    }
    int s = 0;
    for (; norm > R(0.25) && s < MAX_SQUARINGS; s++)
        norm /= 2;
    return s;
}

/* out = exp(a); two matrices of scratch. Horner: 1 + a (1 + a/2 (1 + a/3 (...))). */
static void matrix_exp(int64_t n, const real *a, real *out, real *scratch)
{
    real *scaled = scratch, *next = scratch + n * n;
    const int s = scaling(n, a);
    const real factor = ldexp(R(1), -s);
    for (int64_t i = 0; i < n * n; i++) {
        scaled[i] = a[i] * factor;
        out[i] = 0;
    }
    for (int64_t i = 0; i < n; i++)
        out[i * n + i] = 1;
    for (int k = TERMS; k >= 1; k--) {
        gemm(false, false, n, n, n, R(1) / (real)k, scaled, n, out, n, 0, next, n);
        memcpy(out, next, (size_t)(n * n) * sizeof *out);
        for (int64_t i = 0; i < n; i++)
            out[i * n + i] += 1;
    }
    for (int k = 0; k < s; k++) {
        gemm(false, false, n, n, n, 1, out, n, out, n, 0, next, n);
        memcpy(out, next, (size_t)(n * n) * sizeof *out);
    }
}

/* The upper right block of exp([[a^T, g], [0, a^T]]). */
static void backward(struct op *o, struct val *out)
{
    const struct val *x = out->in[0];
    const int64_t n = x->shape[x->rank - 1], size = n * n, wide = 2 * n;
    real *da = val_grad(o, out->in[0]);
    real *block = op_alloc(o, 16 * size + 1, sizeof *block);
    if (!da || !block || size == 0)
        return;
    real *result = block + 4 * size, *scratch = block + 8 * size;
    for (int64_t b = 0; b < x->count / size; b++) {
        memset(block, 0, (size_t)(4 * size) * sizeof *block);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const real a = x->f[b * size + j * n + i];
                block[i * wide + j] = block[(n + i) * wide + n + j] = a;
                block[i * wide + n + j] = out->grad[b * size + i * n + j];
            }
        matrix_exp(wide, block, result, scratch);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                da[b * size + i * n + j] += result[i * wide + n + j];
    }
}

static void run_matrix_exp(struct op *o)
{
    struct val *x = square_matrices(o, arg_tensor(o, "input"));
    struct val *y = x ? val_like(o, x, x->dtype) : NULL;
    if (!y)
        return;
    const int64_t n = x->shape[x->rank - 1], size = n * n;
    real *scratch = op_alloc(o, 2 * size + 1, sizeof *scratch);
    for (int64_t b = 0; scratch && size && b < x->count / size; b++)
        matrix_exp(n, x->f + b * size, y->f + b * size, scratch);
    op_return(o, val_node(o, y, backward, x, NULL, NULL, NULL));
}

const struct op_def op_matexp[] = {
    {"matrix_exp linalg.matrix_exp linalg_matrix_exp", "matrix_exp(Tensor input|self|A)",
     run_matrix_exp, 0, "1 + x + x^2/2! + x^3/3! + ..."},
    {0},
};
