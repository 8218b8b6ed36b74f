/* QR factors by Householder's reflections, with LAPACK's signs: R has on its diagonal what makes
 * each reflection lose no digits. */
#include "exec/op/factor.h"
#include "exec/op/linalg.h"

#include <string.h>

/* a (m x n) becomes R above the diagonal and the reflections' vectors below it, whose first element
 * is 1 and not stored. */
static void reflect_all(int64_t m, int64_t n, real *a, real *tau)
{
    const int64_t k = m < n ? m : n;
    op_terms(m);
    for (int64_t j = 0; j < k; j++) {
        real below = 0;
        for (int64_t i = j + 1; i < m; i++)
            below = hypot(below, a[i * n + j]);
        tau[j] = 0;
        if (below == 0)
            continue;
        const real alpha = a[j * n + j], beta = -copysign(hypot(alpha, below), alpha);
        tau[j] = (beta - alpha) / beta;
        for (int64_t i = j + 1; i < m; i++)
            a[i * n + j] /= alpha - beta;
        a[j * n + j] = beta;
        for (int64_t c = j + 1; c < n; c++) {
            real dot = a[j * n + c];
            for (int64_t i = j + 1; i < m; i++)
                dot += a[i * n + j] * a[i * n + c];
            a[j * n + c] -= tau[j] * dot;
            for (int64_t i = j + 1; i < m; i++)
                a[i * n + c] -= tau[j] * dot * a[i * n + j];
        }
    }
}

/* The first `columns` columns of H1 H2 ... Hk; a holds the vectors (m x n). */
static void multiply_out(int64_t m, int64_t n, const real *a, const real *tau, int64_t columns,
                         real *q)
{
    op_terms(m);
    memset(q, 0, (size_t)(m * columns) * sizeof *q);
    for (int64_t i = 0; i < m && i < columns; i++)
        q[i * columns + i] = 1;
    for (int64_t j = (m < n ? m : n) - 1; j >= 0; j--)
        for (int64_t c = 0; c < columns; c++) {
            real dot = q[j * columns + c];
            for (int64_t i = j + 1; i < m; i++)
                dot += a[i * n + j] * q[i * columns + c];
            q[j * columns + c] -= tau[j] * dot;
            for (int64_t i = j + 1; i < m; i++)
                q[i * columns + c] -= tau[j] * dot * a[i * n + j];
        }
}

/* ---- QR -------------------------------------------------------------------------------------- */

struct qr {
    int64_t batches, m, n, k; /* k: columns of Q and rows of R */
    real *q, *r;
};

/* With M = R gR^T, or M = -gQ^T Q: ((gQ or 0) + Q (lower triangle of M, mirrored)) R^-T. */
static void add_gradient(struct op *o, const struct qr *s, const struct val *out, bool of_q,
                         real *da)
{
    const int64_t m = s->m, n = s->n;
    real *mirror = op_alloc(o, n * n + 1, sizeof *mirror), *x = op_alloc(o, n * m + 1, sizeof *x);
    if (!da || !mirror || !x)
        return;
    if (s->k != n) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: the gradient is known where R is square, not %lld x %lld", o->call->name,
                (long long)s->k, (long long)n);
        return;
    }
    for (int64_t b = 0; b < s->batches; b++) {
        const real *q = s->q + b * m * n, *r = s->r + b * n * n;
        const real *g = out->grad + b * (of_q ? m : n) * n;
        if (of_q)
            gemm(true, false, n, n, m, -1, g, n, q, n, 0, mirror, n);
        else
            gemm(false, true, n, n, n, 1, r, n, g, n, 0, mirror, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++)
                mirror[j * n + i] = mirror[i * n + j];
        for (int64_t i = 0; i < n; i++) /* transposed, as R Y^T = X^T is solved */
            for (int64_t j = 0; j < m; j++)
                x[i * m + j] = of_q ? g[j * n + i] : 0;
        gemm(false, true, n, m, n, 1, mirror, n, q, n, 1, x, m);
        factor_triangle_solve(n, m, r, true, false, false, x);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < m; j++)
                da[(b * m + j) * n + i] += x[i * m + j];
    }
}

static void q_backward(struct op *o, struct val *out)
{
    add_gradient(o, out->saved, out, true, val_grad(o, out->in[0]));
}

static void r_backward(struct op *o, struct val *out)
{
    add_gradient(o, out->saved, out, false, val_grad(o, out->in[0]));
}

static struct val *matrices_like(struct op *o, const struct val *x, int64_t m, int64_t n)
{
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 2] = m;
    shape[x->rank - 1] = n;
    return val_new(o, x->dtype, x->rank, shape);
}

static int64_t batches_of(const struct val *x)
{
    int64_t batches = 1;
    for (unsigned d = 0; d + 2 < x->rank; d++)
        batches *= x->shape[d];
    return batches;
}

/* Q is empty where it is not wanted. */
static void return_qr(struct op *o, bool complete, bool with_q)
{
    struct val *x = matrices(o, arg_tensor(o, "input"));
    struct qr *s = op_alloc(o, 1, sizeof *s);
    if (!x || !s)
        return;
    s->m = x->shape[x->rank - 2];
    s->n = x->shape[x->rank - 1];
    s->k = complete || s->m < s->n ? s->m : s->n;
    s->batches = batches_of(x);
    struct val *q = matrices_like(o, x, s->m, s->k), *r = matrices_like(o, x, s->k, s->n);
    real *a = op_alloc(o, s->m * s->n + 1, sizeof *a), *tau = op_alloc(o, s->m + 1, sizeof *tau);
    if (!q || !r || !a || !tau)
        return;
    s->q = q->f;
    s->r = r->f;
    for (int64_t b = 0; b < s->batches; b++) {
        memcpy(a, x->f + b * s->m * s->n, (size_t)(s->m * s->n) * sizeof *a);
        reflect_all(s->m, s->n, a, tau);
        multiply_out(s->m, s->n, a, tau, s->k, q->f + b * s->m * s->k);
        for (int64_t i = 0; i < s->k; i++)
            for (int64_t j = i; j < s->n; j++)
                r->f[(b * s->k + i) * s->n + j] = a[i * s->n + j];
    }
    if (with_q)
        op_return(o, val_node(o, q, q_backward, x, NULL, NULL, s));
    else
        op_return(o, val_new(o, x->dtype, 1, (const int64_t[]){0}));
    op_return(o, val_node(o, r, r_backward, x, NULL, NULL, s));
}

static void run_qr(struct op *o)
{
    return_qr(o, !arg_bool(o, "some"), true);
}

static void run_linalg_qr(struct op *o)
{
    const char *mode = arg_text(o, "mode");
    if (!mode ||
        (strcmp(mode, "reduced") != 0 && strcmp(mode, "complete") != 0 && strcmp(mode, "r") != 0))
        op_fail(o, PLUMB_E_ARG, "%s: the mode is reduced, complete or r", o->call->name);
    else
        return_qr(o, mode[0] == 'c', strcmp(mode, "r") != 0);
}

static void run_geqrf(struct op *o)
{
    struct val *x = matrices(o, arg_tensor(o, "input"));
    if (!x)
        return;
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1], k = m < n ? m : n;
    struct val *a = val_like(o, x, x->dtype), *tau = matrices_like(o, x, k, 1);
    if (!a || !tau)
        return;
    if (x->count)
        memcpy(a->f, x->f, (size_t)x->count * sizeof *a->f);
    for (int64_t b = 0; b < batches_of(x); b++)
        reflect_all(m, n, a->f + b * m * n, tau->f + b * k);
    op_return(o, a);
    op_return(o, v_squeeze(o, tau, x->rank - 1));
}

/* ---- Reflections given ----------------------------------------------------------------------- */

/* The vector of reflection j as a column: 0, .., 0, 1, a[j+1][j], .., a[m-1][j]. */
static struct val *column(struct op *o, struct val *a, int64_t j)
{
    const int64_t m = a->shape[a->rank - 2], shape[2] = {m, 1};
    struct val *below = val_new(o, a->dtype, 2, shape), *one = val_new(o, a->dtype, 2, shape);
    if (!below || !one)
        return NULL;
    for (int64_t i = j + 1; i < m; i++)
        below->f[i] = 1;
    one->f[j] = 1;
    return v_add(o, v_mul(o, v_narrow(o, a, a->rank - 1, j, 1), below), one);
}

/* c becomes H1 (H2 (... c)), or the other way round. */
static struct val *apply(struct op *o, struct val *a, struct val *tau, struct val *c, bool reversed)
{
    const int64_t k = tau->shape[tau->rank - 1];
    for (int64_t step = 0; c && step < k; step++) {
        const int64_t j = reversed ? step : k - 1 - step;
        struct val *v = column(o, a, j);
        struct val *t = v_unsqueeze(o, v_narrow(o, tau, tau->rank - 1, j, 1), tau->rank);
        c = v_sub(o, c, v_mul(o, t, v_matmul(o, v, v_matmul(o, v_matrix_transpose(o, v), c))));
    }
    return c;
}

static bool reflections(struct op *o, struct val *a, struct val *tau)
{
    if (!matrices(o, a) || !tau)
        return false;
    bool fits = tau->f && tau->rank + 1 == a->rank &&
                tau->shape[tau->rank - 1] <= a->shape[a->rank - 1] &&
                tau->shape[tau->rank - 1] <= a->shape[a->rank - 2];
    for (unsigned d = 0; fits && d + 2 < a->rank; d++)
        fits = a->shape[d] == tau->shape[d];
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: the factors do not fit the matrix of vectors", o->call->name);
    return fits;
}

static void run_householder_product(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *tau = arg_tensor(o, "tau");
    if (!reflections(o, a, tau))
        return;
    const int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1];
    if (m < n) {
        op_fail(o, PLUMB_E_ARG, "%s: the matrix is wider than tall", o->call->name);
        return;
    }
    struct val *one = val_like(o, a, a->dtype);
    for (int64_t b = 0; one && b < batches_of(a); b++)
        for (int64_t i = 0; i < n; i++)
            one->f[(b * m + i) * n + i] = 1;
    op_return(o, apply(o, a, tau, one, false));
}

static void run_ormqr(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *tau = arg_tensor(o, "tau"),
               *c = matrices(o, arg_tensor(o, "other"));
    const bool left = arg_bool(o, "left"), transposed = arg_bool(o, "transpose");
    if (!c || !reflections(o, a, tau))
        return;
    if (!left)
        c = v_matrix_transpose(o, c);
    if (!c || c->shape[c->rank - 2] != a->shape[a->rank - 2]) {
        op_fail(o, PLUMB_E_ARG, "%s: the matrices do not fit each other", o->call->name);
        return;
    }
    struct val *y = apply(o, a, tau, c, left == transposed);
    op_return(o, left ? y : v_matrix_transpose(o, y));
}

const struct op_def op_orthogonal[] = {
    {"qr", "qr(Tensor input|self|A, bool some=True)", run_qr, 0, "Q and R, with LAPACK's signs"},
    {"linalg.qr linalg_qr", "qr(Tensor input|self|A, str mode='reduced')", run_linalg_qr, 0,
     "Q and R, with LAPACK's signs"},
    {"geqrf", "geqrf(Tensor input|self)", run_geqrf, OP_NO_GRAD,
     "R and the vectors of the reflections in one, and their factors"},
    {"linalg.householder_product linalg_householder_product orgqr",
     "householder_product(Tensor input|self|A, Tensor tau|input2)", run_householder_product, 0,
     "the first columns of the product of reflections"},
    {"ormqr",
     "ormqr(Tensor input|self, Tensor tau|input2, Tensor other|input3, bool left=True, bool "
     "transpose=False)",
     run_ormqr, 0, "Q or its transpose times a matrix, Q as reflections"},
    {0},
};
