/* LU factors as results, and solving with them. */
#include "exec/op/factor.h"
#include "exec/op/linalg.h"

#include <string.h>

/* ---- Factors --------------------------------------------------------------------------------- */

struct lu {
    int64_t batches, m, n, k;
    int64_t *row; /* [batches][k]: the row that was swapped with each */
    int64_t *zero;
};

/* As factor_lu, of any shape, and without looking for pivots where they are not wanted. */
static void factor(int64_t m, int64_t n, real *a, bool pivot, int64_t *row, int64_t *zero)
{
    op_terms(m < n ? m : n);
    for (int64_t i = 0; i < (m < n ? m : n); i++) {
        int64_t best = i;
        for (int64_t r = i + 1; pivot && r < m; r++)
            if (fabs(a[r * n + i]) > fabs(a[best * n + i]))
                best = r;
        row[i] = best;
        for (int64_t j = 0; best != i && j < n; j++) {
            const real t = a[i * n + j];
            a[i * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        if (a[i * n + i] == 0) {
            *zero = *zero ? *zero : i + 1;
            continue;
        }
        for (int64_t r = i + 1; r < m; r++) {
            const real f = a[r * n + i] /= a[i * n + i];
            for (int64_t j = i + 1; j < n; j++)
                a[r * n + j] -= f * a[i * n + j];
        }
    }
}

/* dA = P L^-T (strictly lower L^T gL + upper gU U^T) U^-T */
static void lu_backward(struct op *o, struct val *out)
{
    const struct lu *s = out->saved;
    const int64_t n = s->n;
    real *da = val_grad(o, out->in[0]), *l = op_alloc(o, n * n + 1, sizeof *l),
         *u = op_alloc(o, n * n + 1, sizeof *u), *x = op_alloc(o, n * n + 1, sizeof *x),
         *y = op_alloc(o, n * n + 1, sizeof *y);
    if (!da || !l || !u || !x || !y)
        return;
    if (s->m != n) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the gradient is known for square matrices only",
                o->call->name);
        return;
    }
    for (int64_t b = 0; b < s->batches; b++) {
        const real *lu = out->f + b * n * n, *g = out->grad + b * n * n;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                l[i * n + j] = i > j ? lu[i * n + j] : i == j;
                u[i * n + j] = i > j ? 0 : lu[i * n + j];
                x[i * n + j] = i > j ? g[i * n + j] : 0;
                y[i * n + j] = i > j ? 0 : g[i * n + j];
            }
        real *sum = da + b * n * n, *lower = op_alloc(o, n * n + 1, sizeof *lower),
             *upper = op_alloc(o, n * n + 1, sizeof *upper);
        if (!lower || !upper)
            return;
        gemm(true, false, n, n, n, 1, l, n, x, n, 0, lower, n);
        gemm(false, true, n, n, n, 1, y, n, u, n, 0, upper, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                x[i * n + j] = i > j ? lower[i * n + j] : upper[i * n + j];
        factor_triangle_solve(n, n, lu, false, true, true, x);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                y[j * n + i] = x[i * n + j];
        factor_triangle_solve(n, n, lu, true, false, false, y);
        int64_t *from = op_alloc(o, n + 1, sizeof *from); /* row i of P^T A is row from[i] of A */
        for (int64_t i = 0; from && i < n; i++)
            from[i] = i;
        for (int64_t i = 0; from && i < n; i++) {
            const int64_t t = from[i], other = s->row[b * n + i];
            from[i] = from[other];
            from[other] = t;
        }
        for (int64_t i = 0; from && i < n; i++)
            for (int64_t j = 0; j < n; j++)
                sum[from[i] * n + j] += y[j * n + i];
    }
}

static struct val *factorise(struct op *o, struct val *x, bool pivot, struct lu **out)
{
    struct lu *s = op_alloc(o, 1, sizeof *s);
    struct val *y = matrices(o, x) ? val_like(o, x, x->dtype) : NULL;
    if (!s || !y)
        return NULL;
    *s = (struct lu){.batches = 1, .m = x->shape[x->rank - 2], .n = x->shape[x->rank - 1]};
    s->k = s->m < s->n ? s->m : s->n;
    for (unsigned d = 0; d + 2 < x->rank; d++)
        s->batches *= x->shape[d];
    s->row = op_alloc(o, s->batches * s->k + 1, sizeof *s->row);
    s->zero = op_alloc(o, s->batches + 1, sizeof *s->zero);
    if (!s->row || !s->zero)
        return NULL;
    if (x->count)
        memcpy(y->f, x->f, (size_t)x->count * sizeof *y->f);
    for (int64_t b = 0; b < s->batches; b++)
        factor(s->m, s->n, y->f + b * s->m * s->n, pivot, s->row + b * s->k, &s->zero[b]);
    *out = s;
    return val_node(o, y, lu_backward, x, NULL, NULL, s);
}

/* As LAPACK counts: from 1. */
static struct val *pivots_of(struct op *o, const struct val *x, const struct lu *s)
{
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 2] = s->k;
    struct val *p = val_new(o, PLUMB_I32, x->rank - 1, shape);
    for (int64_t k = 0; p && k < p->count; k++)
        p->i[k] = s->row[k] + 1;
    return p;
}

static void return_factors(struct op *o, bool info)
{
    struct val *x = arg_tensor(o, "input");
    struct lu *s = NULL;
    struct val *lu = factorise(o, x, arg_bool(o, "pivot"), &s);
    if (!lu)
        return;
    op_return(o, lu);
    op_return(o, pivots_of(o, x, s));
    struct val *zero = info ? val_new(o, PLUMB_I32, x->rank - 2, x->shape) : NULL;
    for (int64_t b = 0; zero && b < s->batches; b++)
        zero->i[b] = s->zero[b];
    if (info)
        op_return(o, zero);
}

static void run_lu_factor(struct op *o)
{
    return_factors(o, false);
}

static void run_lu_factor_ex(struct op *o)
{
    return_factors(o, true);
}

static void run_tensor_lu(struct op *o)
{
    return_factors(o, arg_bool(o, "get_infos"));
}

/* ---- Unpacked -------------------------------------------------------------------------------- */

/* x where row > column + above (or not), the rest 0. */
static struct val *triangle(struct op *o, struct val *x, bool lower)
{
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1], shape[2] = {m, n};
    struct val *mask = val_new(o, x->dtype, 2, shape);
    for (int64_t i = 0; mask && i < m; i++)
        for (int64_t j = 0; j < n; j++)
            mask->f[i * n + j] = lower == (i > j);
    return v_mul(o, x, mask);
}

static struct val *unit_lower(struct op *o, struct val *lu)
{
    const int64_t m = lu->shape[lu->rank - 2], n = lu->shape[lu->rank - 1], k = m < n ? m : n;
    const int64_t shape[2] = {m, k};
    struct val *one = val_new(o, lu->dtype, 2, shape);
    for (int64_t i = 0; one && i < k; i++)
        one->f[i * k + i] = 1;
    struct val *part = triangle(o, lu, true);
    return v_add(o, part ? v_narrow(o, part, lu->rank - 1, 0, k) : NULL, one);
}

static struct val *upper(struct op *o, struct val *lu)
{
    const int64_t m = lu->shape[lu->rank - 2], n = lu->shape[lu->rank - 1];
    struct val *part = triangle(o, lu, false);
    return part ? v_narrow(o, part, lu->rank - 2, 0, m < n ? m : n) : NULL;
}

/* P with A = P L U: column i has its 1 in the row that A's row i of P^T A came from. */
static struct val *permutation(struct op *o, const struct val *lu, const struct val *pivots)
{
    int64_t shape[OP_RANK];
    const int64_t m = lu->shape[lu->rank - 2], n = lu->shape[lu->rank - 1], k = m < n ? m : n;
    if (!pivots || !pivots->i || !lu->f || pivots->rank + 1 != lu->rank ||
        pivots->shape[pivots->rank - 1] != k ||
        memcmp(pivots->shape, lu->shape, (lu->rank - 2) * sizeof *shape) != 0)
        return op_fail(o, PLUMB_E_ARG, "%s: the pivots do not fit the factors", o->call->name);
    memcpy(shape, lu->shape, lu->rank * sizeof *shape);
    shape[lu->rank - 1] = m;
    struct val *p = val_new(o, lu->dtype, lu->rank, shape);
    int64_t *from = op_alloc(o, m + 1, sizeof *from);
    if (!p || !from)
        return NULL;
    for (int64_t b = 0; k && b < pivots->count / k; b++) {
        for (int64_t i = 0; i < m; i++)
            from[i] = i;
        for (int64_t i = 0; i < k; i++) {
            const int64_t other = pivots->i[b * k + i] - 1, t = from[i];
            if (other < 0 || other >= m)
                return op_fail(o, PLUMB_E_ARG, "%s: a pivot of %lld for %lld rows", o->call->name,
                               (long long)other + 1, (long long)m);
            from[i] = from[other];
            from[other] = t;
        }
        for (int64_t i = 0; i < m; i++)
            p->f[(b * m + from[i]) * m + i] = 1;
    }
    return p;
}

static void run_lu(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct lu *s = NULL;
    const bool pivot = arg_bool(o, "pivot");
    struct val *lu = factorise(o, x, pivot, &s);
    if (!lu)
        return;
    op_return(o, pivot ? permutation(o, lu, pivots_of(o, x, s))
                       : val_new(o, x->dtype, 1, (const int64_t[]){0}));
    op_return(o, unit_lower(o, lu));
    op_return(o, upper(o, lu));
}

static void run_lu_unpack(struct op *o)
{
    struct val *lu = matrices(o, arg_tensor(o, "input")), *pivots = arg_tensor(o, "pivots");
    const bool data = arg_bool(o, "unpack_data");
    if (!lu)
        return;
    struct val *none = val_new(o, lu->dtype, 1, (const int64_t[]){0});
    op_return(o, arg_bool(o, "unpack_pivots") ? permutation(o, lu, pivots) : none);
    op_return(o, data ? unit_lower(o, lu) : none);
    op_return(o, data ? upper(o, lu) : none);
}

/* ---- Solving --------------------------------------------------------------------------------- */

/* The matrix that the factors are of. */
static struct val *put_together(struct op *o, struct val *lu, struct val *pivots)
{
    if (!square_matrices(o, lu))
        return NULL;
    return v_matmul(o, permutation(o, lu, pivots), v_matmul(o, unit_lower(o, lu), upper(o, lu)));
}

static void run_lu_solve(struct op *o)
{
    struct val *b = matrices(o, arg_tensor(o, "input")), *lu = arg_tensor(o, "lu");
    struct val *a = put_together(o, lu, arg_tensor(o, "pivots"));
    const bool left = !arg_raw(o, "left") || arg_bool(o, "left");
    if (arg_raw(o, "adjoint") && arg_bool(o, "adjoint"))
        a = v_matrix_transpose(o, a);
    if (!left) {
        a = v_matrix_transpose(o, a);
        b = v_matrix_transpose(o, b);
    }
    if (!a || !b)
        return;
    bool fits = a->rank == b->rank && b->shape[b->rank - 2] == a->shape[a->rank - 1];
    for (unsigned d = 0; fits && d + 2 < a->rank; d++)
        fits = a->shape[d] == b->shape[d];
    if (!fits) {
        op_fail(o, PLUMB_E_ARG, "%s: the right side does not fit the factors", o->call->name);
        return;
    }
    struct val *x = v_solve(o, a, b);
    op_return(o, left ? x : v_matrix_transpose(o, x));
}

/* The solution and the factors, in the old order of arguments. */
static void run_old_solve(struct op *o)
{
    struct val *b = matrices(o, arg_tensor(o, "input")),
               *a = square_matrices(o, arg_tensor(o, "A"));
    struct lu *s = NULL;
    if (!a || !b)
        return;
    if (a->rank != 2 || b->rank != 2 || a->shape[0] != b->shape[0]) {
        op_fail(o, PLUMB_E_ARG, "%s: a square matrix and a right side of as many rows are needed",
                o->call->name);
        return;
    }
    op_return(o, v_solve(o, a, b));
    op_return(o, factorise(o, a, true, &s));
}

const struct op_def op_lu[] = {
    {"linalg.lu_factor linalg_lu_factor", "lu_factor(Tensor input|self|A, *, bool pivot=True)",
     run_lu_factor, 0, "L below and U on and above the diagonal, and the rows swapped"},
    {"linalg.lu_factor_ex linalg_lu_factor_ex",
     "lu_factor_ex(Tensor input|self|A, *, bool pivot=True, bool check_errors=False)",
     run_lu_factor_ex, 0, "lu_factor, and the place of the first pivot that is 0"},
    {"lu", "lu(Tensor input|self|A, bool pivot=True, bool get_infos=False)", run_tensor_lu, 0,
     "L below and U on and above the diagonal, and the rows swapped"},
    {"linalg.lu linalg_lu", "lu(Tensor input|self|A, *, bool pivot=True)", run_lu, 0,
     "P, L and U with A = P L U"},
    {"lu_unpack",
     "lu_unpack(Tensor input|LU_data, Tensor pivots|LU_pivots, bool unpack_data=True, bool "
     "unpack_pivots=True)",
     run_lu_unpack, 0, "P, L and U of factors and swapped rows"},
    {"lu_solve", "lu_solve(Tensor input|self|b, Tensor lu|LU_data, Tensor pivots|LU_pivots)",
     run_lu_solve, 0, "x with A x = b, A as factors"},
    {"linalg.lu_solve linalg_lu_solve",
     "lu_solve(Tensor lu|LU, Tensor pivots, Tensor input|B, *, bool left=True, bool "
     "adjoint=False)",
     run_lu_solve, 0, "x with A x = B, A as factors"},
    {"solve", "solve(Tensor input|self, Tensor A)", run_old_solve, 0,
     "x with A x = input, and the factors of A"},
    {0},
};
