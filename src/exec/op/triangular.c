/* Cholesky factors, and linear systems with triangular matrices. */
#include "exec/op/factor.h"
#include "exec/op/linalg.h"
#include "exec/op/matmul.h"

#include <string.h>

static int64_t size_of(const struct val *x)
{
    return x->shape[x->rank - 1];
}

/* How a system is given: op(a) x = b with a triangular. */
struct system {
    int64_t n, k, batches;
    bool upper, transposed, unit;
};

/* da is -db x^T (or its transpose), in the triangle that a was read from. */
static void solve_backward(struct op *o, struct val *out)
{
    const struct system *s = out->saved;
    const int64_t n = s->n, k = s->k;
    const struct val *a = out->in[0];
    real *da = val_grad(o, out->in[0]), *db = val_grad(o, out->in[1]);
    real *g = op_alloc(o, n * k + 1, sizeof *g), *full = op_alloc(o, n * n + 1, sizeof *full);
    for (int64_t b = 0; g && full && b < s->batches; b++) {
        memcpy(g, out->grad + b * n * k, (size_t)(n * k) * sizeof *g);
        factor_triangle_solve(n, k, a->f + b * n * n, s->upper, !s->transposed, s->unit, g);
        for (int64_t i = 0; db && i < n * k; i++)
            db[b * n * k + i] += g[i];
        if (!da)
            continue;
        const real *x = out->f + b * n * k;
        gemm(false, true, n, n, k, -1, s->transposed ? x : g, k, s->transposed ? g : x, k, 0, full,
             n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                if ((s->upper ? j > i : j < i) || (i == j && !s->unit))
                    da[(b * n + i) * n + j] += full[i * n + j];
    }
}

/* a is [batch.., n, n] and b [batch.., n, k] with the same batch dimensions. */
static struct system *system_of(struct op *o, const struct val *a, const struct val *b, bool upper)
{
    struct system *s = op_alloc(o, 1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct system){.n = size_of(a), .k = size_of(b), .batches = 1, .upper = upper};
    for (unsigned d = 0; d + 2 < a->rank; d++)
        s->batches *= a->shape[d];
    return s;
}

static struct val *solve(struct op *o, struct val *a, struct val *b, bool upper, bool transposed,
                         bool unit)
{
    struct val *x = a && b ? val_like(o, b, b->dtype) : NULL;
    struct system *s = x ? system_of(o, a, b, upper) : NULL;
    if (!s)
        return NULL;
    s->transposed = transposed;
    s->unit = unit;
    if (b->count)
        memcpy(x->f, b->f, (size_t)b->count * sizeof *x->f);
    for (int64_t i = 0; i < s->batches; i++)
        factor_triangle_solve(s->n, s->k, a->f + i * s->n * s->n, upper, transposed, unit,
                              x->f + i * s->n * s->k);
    return val_node(o, x, solve_backward, a, b, NULL, s);
}

/* Matrices of the same batch dimensions, fit for a system. */
static bool prepare(struct op *o, struct val **a, struct val **b)
{
    struct val *m = square_matrices(o, *a), *r = *b;
    if (!m || !r)
        return false;
    r = matmul_operand(o, r, m->dtype);
    if (!r)
        return false;
    if (r->rank < 2 || r->shape[r->rank - 2] != size_of(m))
        return op_fail(o, PLUMB_E_ARG, "%s: the right side does not fit matrices of %lld rows",
                       o->call->name, (long long)size_of(m)) != NULL;
    unsigned rank = m->rank > r->rank ? m->rank : r->rank;
    int64_t m_shape[OP_RANK], r_shape[OP_RANK];
    for (unsigned d = 0; d < rank; d++) {
        int64_t p = d + m->rank < rank ? 1 : m->shape[d + m->rank - rank];
        int64_t q = d + r->rank < rank ? 1 : r->shape[d + r->rank - rank];
        if (d + 2 >= rank) {
            m_shape[d] = p;
            r_shape[d] = q;
        } else if (p == q || p == 1 || q == 1) {
            m_shape[d] = r_shape[d] = p == 1 ? q : p;
        } else {
            return op_fail(o, PLUMB_E_ARG, "%s: batches of %lld and %lld", o->call->name,
                           (long long)p, (long long)q) != NULL;
        }
    }
    *a = v_broadcast(o, m, rank, m_shape);
    *b = v_broadcast(o, r, rank, r_shape);
    return *a && *b;
}

static void run_triangular_solve(struct op *o)
{
    struct val *b = arg_tensor(o, "input"), *a = arg_tensor(o, "A");
    if (!prepare(o, &a, &b))
        return;
    op_return(o, solve(o, a, b, arg_bool(o, "upper"), arg_bool(o, "transpose"),
                       arg_bool(o, "unitriangular")));
    op_return(o, a);
}

/* x a = b is a^T x^T = b^T. */
static void run_solve_triangular(struct op *o)
{
    struct val *a = arg_tensor(o, "A"), *b = arg_tensor(o, "B");
    const bool left = arg_bool(o, "left");
    if (!left && b && b->rank >= 2)
        b = v_matrix_transpose(o, b);
    if (!prepare(o, &a, &b))
        return;
    struct val *x = solve(o, a, b, arg_bool(o, "upper"), !left, arg_bool(o, "unitriangular"));
    op_return(o, left ? x : v_matrix_transpose(o, x));
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* With P = the lower half of L^T g (diagonal halved): da is the symmetric part of L^-T P L^-1. */
static void cholesky_backward(struct op *o, struct val *out)
{
    const int64_t n = size_of(out), size = n * n;
    real *da = val_grad(o, out->in[0]);
    real *p = op_alloc(o, size + 1, sizeof *p), *q = op_alloc(o, size + 1, sizeof *q);
    if (!da || !p || !q || size == 0)
        return;
    for (int64_t b = 0; b < out->count / size; b++) {
        const real *l = out->f + b * size;
        gemm(true, false, n, n, n, 1, l, n, out->grad + b * size, n, 0, p, n);
        for (int64_t i = 0; i < n; i++) {
            p[i * n + i] /= 2;
            for (int64_t j = i + 1; j < n; j++)
                p[i * n + j] = 0;
        }
        factor_triangle_solve(n, n, l, false, true, false, p); /* L^-T P */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                q[i * n + j] = p[j * n + i];
        factor_triangle_solve(n, n, l, false, true, false, q); /* (L^-T P L^-1)^T */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                da[b * size + i * n + j] += (q[i * n + j] + q[j * n + i]) / 2;
    }
}

/* The lower factors. Where a matrix is not positive definite this fails, or says so in info. */
static struct val *cholesky(struct op *o, struct val *x, struct val *info)
{
    struct val *y = x ? val_like(o, x, x->dtype) : NULL;
    if (!y)
        return NULL;
    const int64_t n = size_of(x), size = n * n;
    if (x->count)
        memcpy(y->f, x->f, (size_t)x->count * sizeof *y->f);
    for (int64_t b = 0; size && b < x->count / size; b++) {
        const int64_t at = factor_cholesky(n, y->f + b * size);
        if (at && !info)
            return op_fail(o, PLUMB_E_ARG, "%s: matrix %lld of the batch is not positive definite",
                           o->call->name, (long long)b);
        if (at)
            info->i[b] = at;
    }
    return val_node(o, y, cholesky_backward, x, NULL, NULL, NULL);
}

static struct val *factor_of_input(struct op *o, struct val *x, struct val *info)
{
    struct val *y = cholesky(o, x, info);
    return arg_bool(o, "upper") ? v_matrix_transpose(o, y) : y;
}

static void run_cholesky(struct op *o)
{
    op_return(o, factor_of_input(o, square_matrices(o, arg_tensor(o, "input")), NULL));
}

static void run_cholesky_ex(struct op *o)
{
    struct val *x = square_matrices(o, arg_tensor(o, "input"));
    struct val *info = x ? val_new(o, PLUMB_I32, x->rank - 2, x->shape) : NULL;
    struct val *y = factor_of_input(o, x, arg_bool(o, "check_errors") ? NULL : info);
    op_return(o, y);
    op_return(o, info);
}

/* With x = (L L^T)^-1 b and g its gradient: db = (L L^T)^-1 g, dL = -(db x^T + x db^T) L. As in
 * PyTorch that fills both triangles, though just one is read. */
static void factor_backward(struct op *o, struct val *out)
{
    const struct system *s = out->saved;
    const int64_t n = s->n, k = s->k;
    const real *factor = out->in[0]->f;
    real *dl = val_grad(o, out->in[0]), *db = val_grad(o, out->in[1]);
    real *g = op_alloc(o, n * k + 1, sizeof *g), *sum = op_alloc(o, n * n + 1, sizeof *sum);
    for (int64_t b = 0; g && sum && b < s->batches; b++) {
        const real *l = factor + b * n * n, *x = out->f + b * n * k;
        memcpy(g, out->grad + b * n * k, (size_t)(n * k) * sizeof *g);
        factor_triangle_solve(n, k, l, s->upper, s->upper, false, g);
        factor_triangle_solve(n, k, l, s->upper, !s->upper, false, g);
        for (int64_t i = 0; db && i < n * k; i++)
            db[b * n * k + i] += g[i];
        if (!dl)
            continue;
        gemm(false, true, n, n, k, -1, g, k, x, k, 0, sum, n);
        gemm(false, true, n, n, k, -1, x, k, g, k, 1, sum, n);
        if (s->upper)
            gemm(false, false, n, n, n, 1, l, n, sum, n, 1, dl + b * n * n, n);
        else
            gemm(false, false, n, n, n, 1, sum, n, l, n, 1, dl + b * n * n, n);
    }
}

/* x with (L L^T) x = b; the factor is given as L or as L^T. */
static struct val *solve_with_factor(struct op *o, struct val *factor, struct val *b, bool upper)
{
    struct val *x = factor && b ? val_like(o, b, b->dtype) : NULL;
    struct system *s = x ? system_of(o, factor, b, upper) : NULL;
    if (!s)
        return NULL;
    if (b->count)
        memcpy(x->f, b->f, (size_t)b->count * sizeof *x->f);
    for (int64_t i = 0; i < s->batches; i++) {
        const real *l = factor->f + i * s->n * s->n;
        factor_triangle_solve(s->n, s->k, l, upper, upper, false, x->f + i * s->n * s->k);
        factor_triangle_solve(s->n, s->k, l, upper, !upper, false, x->f + i * s->n * s->k);
    }
    return val_node(o, x, factor_backward, factor, b, NULL, s);
}

static void run_cholesky_solve(struct op *o)
{
    struct val *b = arg_tensor(o, "input"), *factor = arg_tensor(o, "input2");
    if (prepare(o, &factor, &b))
        op_return(o, solve_with_factor(o, factor, b, arg_bool(o, "upper")));
}

static void run_cholesky_inverse(struct op *o)
{
    struct val *factor = square_matrices(o, arg_tensor(o, "input"));
    struct val *one = v_identity_like(o, factor);
    op_return(o, solve_with_factor(o, factor, one, arg_bool(o, "upper")));
}

const struct op_def op_triangular[] = {
    {"triangular_solve",
     "triangular_solve(Tensor input|self|b, Tensor A, bool upper=True, bool transpose=False, bool "
     "unitriangular=False)",
     run_triangular_solve, 0, "x with A x = input; returns x and A"},
    {"linalg.solve_triangular linalg_solve_triangular",
     "solve_triangular(Tensor A|input|self, Tensor B, *, bool upper, bool left=True, bool "
     "unitriangular=False)",
     run_solve_triangular, 0, NULL},
    {"cholesky", "cholesky(Tensor input|self, bool upper=False)", run_cholesky, 0, NULL},
    {"linalg.cholesky linalg_cholesky", "cholesky(Tensor input|self|A, *, bool upper=False)",
     run_cholesky, 0, NULL},
    {"linalg.cholesky_ex linalg_cholesky_ex",
     "cholesky_ex(Tensor input|self|A, *, bool upper=False, bool check_errors=False)",
     run_cholesky_ex, 0, NULL},
    {"cholesky_solve", "cholesky_solve(Tensor input|self|B, Tensor input2|L, bool upper=False)",
     run_cholesky_solve, 0, NULL},
    {"cholesky_inverse", "cholesky_inverse(Tensor input|self|L, bool upper=False)",
     run_cholesky_inverse, 0, NULL},
    {0},
};
