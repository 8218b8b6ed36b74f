/* Jacobi's rotations: singular values, symmetric eigenvalues, and their gradients. */
#include "exec/op/spectrum.h"

#include "exec/op/linalg.h"

#include <string.h>

enum { SWEEPS = 80 };

/* (x, y) becomes (c x - s y, s x + c y). */
static void rotate(int64_t n, real c, real s, real *restrict x, real *restrict y)
{
    for (int64_t k = 0; k < n; k++) {
        const real a = x[k], b = y[k];
        x[k] = c * a - s * b;
        y[k] = s * a + c * b;
    }
}

/* The rotation that makes the off-diagonal element g of [[a, g], [g, b]] vanish. */
static void jacobi_angle(real a, real b, real g, real *c, real *s)
{
    const real zeta = (b - a) / (2 * g);
    const real t = (zeta >= 0 ? R(1) : R(-1)) / (fabs(zeta) + hypot(R(1), zeta));
    *c = 1 / hypot(R(1), t);
    *s = *c * t;
}

/* Row `from` of each matrix goes to row `to`, ordered by value. */
static void sort_rows(int64_t k, real *value, bool descending, int64_t m, real *a, int64_t n,
                      real *b)
{
    for (int64_t i = 0; i < k; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < k; j++)
            if (descending ? value[j] > value[best] : value[j] < value[best])
                best = j;
        if (best == i)
            continue;
        const real t = value[i];
        value[i] = value[best];
        value[best] = t;
        rotate(m, 0, 1, a + i * m, a + best * m); /* swaps them, and turns one round */
        if (b)
            rotate(n, 0, 1, b + i * n, b + best * n);
    }
}

/* Rows of w (k x m) are made orthogonal by rotations, which v (k x k) collects. */
static void orthogonalise(int64_t k, int64_t m, real *w, real *v)
{
    bool turned = true;
    for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = p + 1; q < k; q++) {
                real *x = w + p * m, *y = w + q * m;
                const real a = real_dot(x, x, m), b = real_dot(y, y, m), g = real_dot(x, y, m);
                if (!(fabs(g) > REAL_SUM_EPS * sqrt(a) * sqrt(b)))
                    continue;
                real c, s;
                jacobi_angle(a, b, g, &c, &s);
                rotate(m, c, s, x, y);
                rotate(k, c, s, v + p * k, v + q * k);
                turned = true;
            }
    }
}

/* One-sided: the rows of the wider form's transpose, k of length `longer`. */
void spectrum_svd(int64_t m, int64_t n, const real *a, real *s, real *ut, real *vt, real *scratch)
{
    const bool tall = m >= n;
    const int64_t k = tall ? n : m, longer = tall ? m : n;
    real *w = scratch, *v = scratch + k * longer, most = 0;
    for (int64_t i = 0; i < m * n; i++)
        most = fabs(a[i]) > most ? fabs(a[i]) : most;
    if (!(most > 0))
        most = 1;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < longer; j++) /* scaled, so that squares stay in range */
            w[i * longer + j] = (tall ? a[j * n + i] : a[i * n + j]) / most;
    memset(v, 0, (size_t)(k * k) * sizeof *v);
    for (int64_t i = 0; i < k; i++)
        v[i * k + i] = 1;
    orthogonalise(k, longer, w, v);
    for (int64_t i = 0; i < k; i++)
        s[i] = sqrt(real_dot(w + i * longer, w + i * longer, longer));
    sort_rows(k, s, true, longer, w, k, v);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < longer; j++)
            w[i * longer + j] = s[i] > 0 ? w[i * longer + j] / s[i] : 0;
    for (int64_t i = 0; i < k; i++)
        s[i] *= most;
    memcpy(tall ? ut : vt, w, (size_t)(k * longer) * sizeof *w);
    memcpy(tall ? vt : ut, v, (size_t)(k * k) * sizeof *v);
}

/* Rotates rows and columns p and q of the symmetric a. */
static void turn_pair(int64_t n, real *a, int64_t p, int64_t q, real c, real s)
{
    rotate(n, c, s, a + p * n, a + q * n);
    for (int64_t i = 0; i < n; i++) {
        const real x = a[i * n + p], y = a[i * n + q];
        a[i * n + p] = c * x - s * y;
        a[i * n + q] = s * x + c * y;
    }
}

void spectrum_eigh(int64_t n, real *a, real *w, real *vt)
{
    memset(vt, 0, (size_t)(n * n) * sizeof *vt);
    for (int64_t i = 0; i < n; i++)
        vt[i * n + i] = 1;
    const real size = sqrt(real_dot(a, a, n * n));
    bool turned = true;
    for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                const real g = a[p * n + q];
                if (!(fabs(g) > REAL_EPS * R(1e-3) * size))
                    continue;
                real c, s;
                jacobi_angle(a[p * n + p], a[q * n + q], g, &c, &s);
                turn_pair(n, a, p, q, c, s);
                rotate(n, c, s, vt + p * n, vt + q * n);
                turned = true;
            }
    }
    for (int64_t i = 0; i < n; i++)
        w[i] = a[i * n + i];
    sort_rows(n, w, false, n, vt, 0, NULL);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The vectors that the gradients of values are made of: dA += sum of g[i] left[i] right[i]^T. */
struct vectors {
    int64_t batches, m, n, k;
    real *left, *right; /* [batches][k][m] and [batches][k][n] */
};

static void values_backward(struct op *o, struct val *out)
{
    const struct vectors *s = out->saved;
    real *da = val_grad(o, out->in[0]);
    for (int64_t b = 0; da && b < s->batches; b++)
        for (int64_t i = 0; i < s->k; i++) {
            const real *u = s->left + (b * s->k + i) * s->m, *v = s->right + (b * s->k + i) * s->n;
            for (int64_t r = 0; r < s->m; r++)
                for (int64_t c = 0; c < s->n; c++)
                    da[(b * s->m + r) * s->n + c] += out->grad[b * s->k + i] * u[r] * v[c];
        }
}

static struct vectors *vectors_new(struct op *o, const struct val *x)
{
    struct vectors *s = op_alloc(o, 1, sizeof *s);
    if (!s)
        return NULL;
    s->m = x->shape[x->rank - 2];
    s->n = x->shape[x->rank - 1];
    s->k = s->m < s->n ? s->m : s->n;
    s->batches = 1;
    for (unsigned d = 0; d + 2 < x->rank; d++)
        s->batches *= x->shape[d];
    s->left = op_alloc(o, s->batches * s->k * s->m + 1, sizeof *s->left);
    s->right = op_alloc(o, s->batches * s->k * s->n + 1, sizeof *s->right);
    return s->left && s->right ? s : NULL;
}

static struct val *values_like(struct op *o, const struct val *x, int64_t k)
{
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 2] = k;
    return val_new(o, x->dtype, x->rank - 1, shape);
}

struct val *v_singular_values(struct op *o, struct val *x)
{
    if (!matrices(o, x))
        return NULL;
    struct vectors *s = vectors_new(o, x);
    struct val *values = s ? values_like(o, x, s->k) : NULL;
    real *scratch = s ? op_alloc(o, (s->m + s->n) * s->k + 1, sizeof *scratch) : NULL;
    if (!values || !scratch)
        return NULL;
    for (int64_t b = 0; b < s->batches; b++)
        spectrum_svd(s->m, s->n, x->f + b * s->m * s->n, values->f + b * s->k,
                     s->left + b * s->k * s->m, s->right + b * s->k * s->n, scratch);
    return val_node(o, values, values_backward, x, NULL, NULL, s);
}

struct val *v_symmetric_values(struct op *o, struct val *x, bool upper)
{
    if (!square_matrices(o, x))
        return NULL;
    struct vectors *s = vectors_new(o, x);
    struct val *values = s ? values_like(o, x, s->k) : NULL;
    const int64_t n = s ? s->n : 0;
    real *a = op_alloc(o, n * n + 1, sizeof *a);
    if (!values || !a)
        return NULL;
    for (int64_t b = 0; b < s->batches; b++) {
        const real *from = x->f + b * n * n;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                a[i * n + j] = a[j * n + i] = upper ? from[j * n + i] : from[i * n + j];
        spectrum_eigh(n, a, values->f + b * n, s->left + b * n * n);
    }
    if (x->count)
        memcpy(s->right, s->left, (size_t)x->count * sizeof *s->left);
    return val_node(o, values, values_backward, x, NULL, NULL, s);
}
