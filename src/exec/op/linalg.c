/* Determinants, inverses and linear systems of square matrices, by LU factorisation. */
#include "exec/op/linalg.h"

#include "exec/op/factor.h"
#include "exec/op/matmul.h"

#include <string.h>

struct val *matrices(struct op *o, struct val *x)
{
    if (!x)
        return NULL;
    if (x->rank < 2)
        return op_fail(o, PLUMB_E_ARG, "%s: matrices are needed, not %u dimensions", o->call->name,
                       x->rank);
    if (!x->f)
        return op_fail(o, PLUMB_E_ARG, "%s: the matrices must be of a floating-point type",
                       o->call->name);
    return x;
}

struct val *square_matrices(struct op *o, struct val *x)
{
    if (x && (x->rank < 2 || x->shape[x->rank - 1] != x->shape[x->rank - 2]))
        return op_fail(o, PLUMB_E_ARG, "%s: square matrices are needed", o->call->name);
    return matrices(o, x);
}

static int64_t size_of(const struct val *x)
{
    return x->shape[x->rank - 1];
}

static int64_t batches_of(const struct val *x)
{
    int64_t batches = 1;
    for (unsigned d = 0; d + 2 < x->rank; d++)
        batches *= x->shape[d];
    return batches;
}

struct val *v_identity_like(struct op *o, const struct val *x)
{
    struct val *y = x ? val_like(o, x, x->dtype) : NULL;
    if (!y)
        return NULL;
    const int64_t n = size_of(x), batches = batches_of(x);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t i = 0; i < n; i++)
            if (y->f)
                y->f[(b * n + i) * n + i] = 1;
            else
                y->i[(b * n + i) * n + i] = 1;
    return y;
}

struct val *v_matrix_transpose(struct op *o, struct val *x)
{
    return x ? v_transpose(o, x, x->rank - 2, x->rank - 1) : NULL;
}

/* ---- Factors of a batch ---------------------------------------------------------------------- */

struct factors {
    int64_t n, batches;
    real *lu;
    int64_t *row, *zero;
    int *sign;
};

static struct factors *factorise(struct op *o, const struct val *x)
{
    struct factors *s = op_alloc(o, 1, sizeof *s);
    if (!s || !x)
        return NULL;
    s->n = size_of(x);
    s->batches = batches_of(x);
    s->lu = op_alloc(o, x->count + 1, sizeof *s->lu);
    s->row = op_alloc(o, s->batches * s->n + 1, sizeof *s->row);
    s->zero = op_alloc(o, s->batches + 1, sizeof *s->zero);
    s->sign = op_alloc(o, s->batches + 1, sizeof *s->sign);
    if (!s->lu || !s->row || !s->zero || !s->sign)
        return NULL;
    if (x->count)
        memcpy(s->lu, x->f, (size_t)x->count * sizeof *s->lu);
    for (int64_t b = 0; b < s->batches; b++)
        s->sign[b] = factor_lu(s->n, s->lu + b * s->n * s->n, s->row + b * s->n, &s->zero[b]);
    return s;
}

/* ---- Linear systems -------------------------------------------------------------------------- */

/* With a x = b and g the gradient of x: db = a^-T g, da = -db x^T. */
static void solve_backward(struct op *o, struct val *out)
{
    const struct factors *s = out->saved;
    const int64_t n = s->n, k = size_of(out);
    real *da = val_grad(o, out->in[0]), *db = val_grad(o, out->in[1]);
    real *g = op_alloc(o, n * k + 1, sizeof *g);
    for (int64_t b = 0; g && b < s->batches; b++) {
        memcpy(g, out->grad + b * n * k, (size_t)(n * k) * sizeof *g);
        factor_lu_solve(n, k, s->lu + b * n * n, s->row + b * n, true, g);
        for (int64_t i = 0; db && i < n * k; i++)
            db[b * n * k + i] += g[i];
        if (da)
            gemm(false, true, n, n, k, -1, g, k, out->f + b * n * k, k, 1, da + b * n * n, n);
    }
}

/* a is [batch.., n, n], b [batch.., n, k] with the same batch dimensions. Singular matrices
 * fail, or are told through *singular where that is given. */
static struct val *solve(struct op *o, struct val *a, struct val *b, struct factors **factors)
{
    struct factors *s = a && b ? factorise(o, a) : NULL;
    struct val *x = s ? val_like(o, b, b->dtype) : NULL;
    if (!x)
        return NULL;
    const int64_t n = s->n, k = size_of(b);
    if (b->count)
        memcpy(x->f, b->f, (size_t)b->count * sizeof *x->f);
    for (int64_t i = 0; i < s->batches; i++) {
        if (s->zero[i] && !factors)
            return op_fail(o, PLUMB_E_ARG, "%s: matrix %lld of the batch is singular",
                           o->call->name, (long long)i);
        factor_lu_solve(n, k, s->lu + i * n * n, s->row + i * n, false, x->f + i * n * k);
    }
    if (factors)
        *factors = s;
    return val_node(o, x, solve_backward, a, b, NULL, s);
}

struct val *v_solve(struct op *o, struct val *a, struct val *b)
{
    return solve(o, a, b, NULL);
}

struct val *v_inverse(struct op *o, struct val *x)
{
    return solve(o, x, v_identity_like(o, x), NULL);
}

/* The 1-based place of the first zero pivot of each matrix, as LAPACK counts. */
static struct val *info_of(struct op *o, const struct val *a, const struct factors *s)
{
    struct val *info = s ? val_new(o, PLUMB_I32, a->rank - 2, a->shape) : NULL;
    for (int64_t b = 0; info && b < s->batches; b++)
        info->i[b] = s->zero[b];
    return info;
}

static void run_inverse(struct op *o)
{
    op_return(o, v_inverse(o, square_matrices(o, arg_tensor(o, "input"))));
}

static void run_inv_ex(struct op *o)
{
    struct val *x = square_matrices(o, arg_tensor(o, "input"));
    struct factors *s = NULL;
    struct val *y = solve(o, x, v_identity_like(o, x), arg_bool(o, "check_errors") ? NULL : &s);
    op_return(o, y);
    if (y)
        op_return(o, s ? info_of(o, x, s) : val_new(o, PLUMB_I32, x->rank - 2, x->shape));
}

/* Whether b is a batch of vectors; PyTorch's rule. */
static bool is_vectors(const struct val *a, const struct val *b)
{
    return b->rank == 1 ||
           (b->rank + 1 == a->rank && memcmp(a->shape, b->shape, b->rank * sizeof *b->shape) == 0);
}

/* Both with the batch dimensions of the two together. */
static bool align_batches(struct op *o, struct val **a, struct val **b)
{
    struct val heads[2];
    struct val *const xs[2] = {*a, *b};
    for (int i = 0; i < 2; i++) {
        heads[i] = (struct val){.rank = xs[i]->rank - 2};
        memcpy(heads[i].shape, xs[i]->shape, heads[i].rank * sizeof *heads[i].shape);
    }
    unsigned rank;
    int64_t shape[OP_RANK + 2];
    if (!broadcast_shape(o, &heads[0], &heads[1], &rank, shape))
        return false;
    if (rank + 2 > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "%s: too many dimensions", o->call->name) != NULL;
    for (int i = 0; i < 2; i++) {
        memcpy(shape + rank, xs[i]->shape + xs[i]->rank - 2, 2 * sizeof *shape);
        *(i ? b : a) = v_broadcast(o, xs[i], rank + 2, shape);
    }
    return *a && *b;
}

static void solve_system(struct op *o, bool ex)
{
    struct val *a = square_matrices(o, arg_tensor(o, "input")), *b = arg_tensor(o, "other");
    const bool left = arg_bool(o, "left");
    if (!a || !b)
        return;
    if (b->rank == 0) {
        op_fail(o, PLUMB_E_ARG, "%s: the right side must not be a scalar", o->call->name);
        return;
    }
    const bool vectors = is_vectors(a, b);
    b = matmul_operand(o, b, a->dtype);
    if (vectors)
        b = v_unsqueeze(o, b, b ? b->rank : 0);
    else if (!left)
        b = v_matrix_transpose(o, b);
    if (!left)
        a = v_matrix_transpose(o, a);
    if (!a || !b)
        return;
    if (b->shape[b->rank - 2] != size_of(a)) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld equations, but a right side of %lld", o->call->name,
                (long long)size_of(a), (long long)b->shape[b->rank - 2]);
        return;
    }
    if (!align_batches(o, &a, &b))
        return;
    struct factors *s = NULL;
    struct val *x = solve(o, a, b, ex && !arg_bool(o, "check_errors") ? &s : NULL);
    if (x && vectors)
        x = v_squeeze(o, x, x->rank - 1);
    else if (!left)
        x = v_matrix_transpose(o, x);
    op_return(o, x);
    if (ex && x)
        op_return(o, s ? info_of(o, a, s) : val_new(o, PLUMB_I32, a->rank - 2, a->shape));
}

static void run_solve(struct op *o)
{
    solve_system(o, false);
}

static void run_solve_ex(struct op *o)
{
    solve_system(o, true);
}

/* A of the sizes of b, then of x: one square matrix. */
static void run_tensorsolve(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    size_t n;
    const int64_t *dims = arg_ints(o, "dims", &n);
    if (!a || !b)
        return;
    unsigned order[OP_RANK], at = 0;
    uint64_t moved = 0;
    for (size_t k = 0; k < n; k++)
        moved |= UINT64_C(1) << val_dim(o, a, dims[k]);
    for (unsigned d = 0; d < a->rank; d++)
        if (!(moved >> d & 1))
            order[at++] = d;
    for (size_t k = 0; k < n && at < a->rank; k++)
        order[at++] = val_dim(o, a, dims[k]);
    if (n && !o->failed)
        a = v_permute(o, a, order);
    if (!a || !a->f || !b->f || b->rank > a->rank || b->count * b->count != a->count) {
        op_fail(o, PLUMB_E_ARG,
                "%s: the first sizes of A must be those of B, and as many elements "
                "behind them",
                o->call->name);
        return;
    }
    const int64_t square[2] = {b->count, b->count}, side[2] = {b->count, 1};
    struct val *x = solve(o, v_reshape(o, a, 2, square), v_reshape(o, b, 2, side), NULL);
    op_return(o, x ? v_reshape(o, x, a->rank - b->rank, a->shape + b->rank) : NULL);
}

/* ---- Determinants ---------------------------------------------------------------------------- */

/* The cofactors of a singular matrix, by its minors: they are what its determinant's gradient
 * is. */
static void add_cofactors(int64_t n, const real *a, real g, real *da, real *minor, int64_t *row)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            real *to = minor;
            for (int64_t r = 0; r < n; r++)
                for (int64_t c = 0; c < n; c++)
                    if (r != i && c != j)
                        *to++ = a[r * n + c];
            int64_t zero;
            real det = (real)factor_lu(n - 1, minor, row, &zero);
            for (int64_t k = 0; k < n - 1; k++)
                det *= minor[k * (n - 1) + k];
            da[i * n + j] += (i + j) % 2 ? -g * det : g * det;
        }
}

/* da += f * a^-T */
static void add_inverse_transposed(const struct factors *s, int64_t b, real f, real *da,
                                   real *scratch)
{
    const int64_t n = s->n;
    memset(scratch, 0, (size_t)(n * n) * sizeof *scratch);
    for (int64_t i = 0; i < n; i++)
        scratch[i * n + i] = 1;
    factor_lu_solve(n, n, s->lu + b * n * n, s->row + b * n, true, scratch);
    for (int64_t i = 0; i < n * n; i++)
        da[b * n * n + i] += f * scratch[i];
}

enum { MAX_MINORS = 32 };

static void det_backward(struct op *o, struct val *out)
{
    const struct factors *s = out->saved;
    real *da = val_grad(o, out->in[0]);
    const int64_t n = s->n;
    real *scratch = op_alloc(o, n * n + 1, sizeof *scratch);
    int64_t *row = op_alloc(o, n + 1, sizeof *row);
    for (int64_t b = 0; da && scratch && row && b < s->batches; b++) {
        if (!s->zero[b]) {
            add_inverse_transposed(s, b, out->grad[b] * out->f[b], da, scratch);
        } else if (n <= MAX_MINORS) {
            add_cofactors(n, out->in[0]->f + b * n * n, out->grad[b], da + b * n * n, scratch, row);
        } else {
            op_fail(o, PLUMB_E_UNSUPPORTED,
                    "det: the gradient at a singular matrix is computed up to %d x %d only",
                    MAX_MINORS, MAX_MINORS);
            return;
        }
    }
}

static struct val *determinant(struct op *o, struct val *x, const struct factors *s)
{
    struct val *y = s ? val_new(o, x->dtype, x->rank - 2, x->shape) : NULL;
    for (int64_t b = 0; y && b < s->batches; b++) {
        y->f[b] = (real)s->sign[b];
        for (int64_t i = 0; i < s->n; i++)
            y->f[b] *= s->lu[(b * s->n + i) * s->n + i];
    }
    return val_node(o, y, det_backward, x, NULL, NULL, s);
}

static void run_det(struct op *o)
{
    struct val *x = square_matrices(o, arg_tensor(o, "input"));
    op_return(o, x ? determinant(o, x, factorise(o, x)) : NULL);
}

static void logabsdet_backward(struct op *o, struct val *out)
{
    const struct factors *s = out->saved;
    real *da = val_grad(o, out->in[0]);
    real *scratch = op_alloc(o, s->n * s->n + 1, sizeof *scratch);
    for (int64_t b = 0; da && scratch && b < s->batches; b++)
        add_inverse_transposed(s, b, out->grad[b], da, scratch);
}

/* The logarithm of |det|, with the sign beside it. */
static struct val *logabsdet(struct op *o, struct val *x, struct val **sign)
{
    const struct factors *s = x ? factorise(o, x) : NULL;
    struct val *y = s ? val_new(o, x->dtype, x->rank - 2, x->shape) : NULL;
    *sign = y ? val_like(o, y, y->dtype) : NULL;
    if (!*sign)
        return NULL;
    for (int64_t b = 0; b < s->batches; b++) {
        real turn = (real)s->sign[b], sum = 0;
        for (int64_t i = 0; i < s->n; i++) {
            const real pivot = s->lu[(b * s->n + i) * s->n + i];
            turn = isnan(pivot) ? pivot : pivot < 0 ? -turn : pivot == 0 ? 0 : turn;
            sum += log(fabs(pivot));
        }
        (*sign)->f[b] = turn;
        y->f[b] = sum;
    }
    return val_node(o, y, logabsdet_backward, x, NULL, NULL, s);
}

static void run_slogdet(struct op *o)
{
    struct val *sign, *y = logabsdet(o, square_matrices(o, arg_tensor(o, "input")), &sign);
    if (!y)
        return;
    op_return(o, sign);
    op_return(o, y);
}

/* NaN where the determinant is negative. */
static void run_logdet(struct op *o)
{
    struct val *sign, *y = logabsdet(o, square_matrices(o, arg_tensor(o, "input")), &sign);
    for (int64_t b = 0; y && b < y->count; b++)
        if (sign->f[b] < 0)
            y->f[b] = R(NAN);
    op_return(o, y);
}

const struct op_def op_linalg[] = {
    {"inverse linalg.inv linalg_inv", "inverse(Tensor input|self|A)", run_inverse, 0, NULL},
    {"linalg.inv_ex linalg_inv_ex", "inv_ex(Tensor input|self|A, *, bool check_errors=False)",
     run_inv_ex, 0, NULL},
    {"linalg.solve linalg_solve", "solve(Tensor input|A, Tensor other|B, *, bool left=True)",
     run_solve, 0, NULL},
    {"linalg.solve_ex linalg_solve_ex",
     "solve_ex(Tensor input|A, Tensor other|B, *, bool left=True, bool check_errors=False)",
     run_solve_ex, 0, NULL},
    {"det linalg.det linalg_det", "det(Tensor input|self|A)", run_det, 0, NULL},
    {"slogdet linalg.slogdet linalg_slogdet", "slogdet(Tensor input|self|A)", run_slogdet, 0, NULL},
    {"_linalg_det", "_linalg_det(Tensor input|A)", run_det, 0, "det; LU and pivots are left out"},
    {"_linalg_slogdet", "_linalg_slogdet(Tensor input|A)", run_slogdet, 0,
     "slogdet; LU and pivots are left out"},
    {"_linalg_solve_ex",
     "_linalg_solve_ex(Tensor input|A, Tensor other|B, *, bool left=True, bool "
     "check_errors=False)",
     run_solve, 0, "solve; LU, pivots and info are left out"},
    {"logdet", "logdet(Tensor input|self)", run_logdet, 0, NULL},
    {"linalg.tensorsolve linalg_tensorsolve",
     "tensorsolve(Tensor input|self|A, Tensor other|B, int[]? dims=None)", run_tensorsolve, 0,
     "x with A x = B over all the dimensions of x"},
    {0},
};
