/* Operators that singular values and eigenvalues are behind of. The vectors that belong to them are
 * determined up to their sign only (or, for equal values, not at all), so that devices rightly
 * differ: operators return None for them. */
#include "exec/op/linalg.h"
#include "exec/op/matmul.h"
#include "exec/op/spectrum.h"
#include "exec/op/vector_norm.h"

#include <string.h>

/* None for results that are not determined; their gradients cannot be followed either. */
static void return_undetermined(struct op *o)
{
    const size_t k = o->result->n_outputs;
    if (k < o->call->n_grads && o->call->grads[k])
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: output %zu is determined up to signs only",
                o->call->name, k);
    op_return_none(o);
}

static void run_svdvals(struct op *o)
{
    op_return(o, v_singular_values(o, arg_tensor(o, "input")));
}

static void run_svd(struct op *o)
{
    struct val *s = v_singular_values(o, arg_tensor(o, "input"));
    return_undetermined(o);
    op_return(o, s);
    return_undetermined(o);
}

static bool reads_upper(struct op *o)
{
    if (arg_raw(o, "upper"))
        return arg_bool(o, "upper");
    const char *text = arg_text(o, "UPLO");
    return text && (text[0] == 'U' || text[0] == 'u');
}

static void run_eigvalsh(struct op *o)
{
    op_return(o, v_symmetric_values(o, arg_tensor(o, "input"), reads_upper(o)));
}

static void run_eigh(struct op *o)
{
    op_return(o, v_symmetric_values(o, arg_tensor(o, "input"), reads_upper(o)));
    return_undetermined(o);
}

static void run_nuclear_norm(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *dims = arg_ints(o, "dim", &n);
    const int64_t last[2] = {-2, -1};
    if (x && ((n && n != 2) || x->rank < 2 || (!n && x->rank != 2)))
        op_fail(o, PLUMB_E_ARG, "%s: the two dimensions of a matrix are needed", o->call->name);
    if (!x || o->failed)
        return;
    dims = n ? dims : last;
    op_return(o, v_matrix_norm(o, x, MATRIX_NUCLEAR, 0, val_dim(o, x, dims[0]),
                               val_dim(o, x, dims[1]), arg_bool(o, "keepdim")));
}

/* ---- Rank and condition ---------------------------------------------------------------------- */

/* The number of values above max(atol, rtol * the largest); rtol is max(m, n) times the resolution
 * of the type unless either is given. */
static struct val *rank_of(struct op *o, struct val *x, struct val *values, const char *absolute,
                           const char *relative)
{
    if (!x || !values)
        return NULL;
    const int64_t k = values->shape[values->rank - 1], m = x->shape[x->rank - 2],
                  n = x->shape[x->rank - 1];
    const double eps = ldexp(1.0, -plumb_dtype_info(x->dtype)->precision);
    const double atol =
        arg_raw(o, absolute) && arg_given(o, absolute) ? arg_number(o, absolute) : 0;
    const double rtol = arg_raw(o, relative) && arg_given(o, relative) ? arg_number(o, relative)
                        : atol > 0                                     ? 0
                                   : eps * (double)(m > n ? m : n);
    struct val *rank = val_new(o, PLUMB_I64, values->rank - 1, values->shape);
    for (int64_t b = 0; rank && b < rank->count; b++) {
        const real *s = values->f + b * k;
        real most = 0;
        for (int64_t i = 0; i < k; i++)
            most = fabs(s[i]) > most ? fabs(s[i]) : most;
        const real limit = fmax((real)atol, (real)rtol * most);
        for (int64_t i = 0; i < k; i++)
            rank->i[b] += fabs(s[i]) > limit;
    }
    return rank;
}

static void run_matrix_rank(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const bool hermitian = arg_bool(o, "hermitian");
    struct val *s = hermitian ? v_symmetric_values(o, x, false) : v_singular_values(o, x);
    op_return(o, rank_of(o, x, s, "atol", "rtol"));
}

/* ||A|| ||A^-1||; for order 2 the ratio of the extreme singular values. */
static void run_cond(struct op *o)
{
    struct val *x = matrices(o, arg_tensor(o, "input"));
    const struct plumb_arg *p = arg_raw(o, "p");
    const bool word = p && p->kind == PLUMB_ARG_TEXT;
    const double order = !p || p->kind == PLUMB_ARG_NONE || word ? 2 : arg_number(o, "p");
    if (!x)
        return;
    if (!word && fabs(order) == 2) {
        struct val *s = v_singular_values(o, x);
        if (!s || !s->shape[s->rank - 1]) {
            op_fail(o, PLUMB_E_ARG, "%s of an empty matrix", o->call->name);
            return;
        }
        const unsigned last = s->rank - 1;
        struct val *most = v_squeeze(o, v_narrow(o, s, last, 0, 1), last);
        struct val *least = v_squeeze(o, v_narrow(o, s, last, s->shape[last] - 1, 1), last);
        op_return(o, order > 0 ? v_div(o, most, least) : v_div(o, least, most));
        return;
    }
    const enum matrix_norm kind = !word                         ? MATRIX_ORDER
                                  : strcmp(p->text, "nuc") == 0 ? MATRIX_NUCLEAR
                                                                : MATRIX_FROBENIUS;
    if (!square_matrices(o, x))
        return;
    const unsigned r = x->rank - 2;
    op_return(o, v_mul(o, v_matrix_norm(o, x, kind, order, r, r + 1, false),
                       v_matrix_norm(o, v_inverse(o, x), kind, order, r, r + 1, false)));
}

/* ---- Pseudo-inverse and least squares -------------------------------------------------------- */

/* With P the inverse and g its gradient: -P^T g P^T + (I - A P) g^T P P^T + P^T P g^T (I - P A). */
static void pinv_backward(struct op *o, struct val *out)
{
    const struct val *a = out->in[0];
    const int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1];
    real *da = val_grad(o, out->in[0]);
    const int64_t most = m > n ? m : n, batches = m && n ? out->count / (m * n) : 0;
    real *x = op_alloc(o, most * most + 1, sizeof *x), *y = op_alloc(o, most * most + 1, sizeof *y),
         *z = op_alloc(o, most * most + 1, sizeof *z);
    if (!da || !x || !y || !z)
        return;
    for (int64_t b = 0; b < batches; b++) {
        const real *p = out->f + b * m * n, *g = out->grad + b * m * n, *at = a->f + b * m * n;
        real *to = da + b * m * n;
        gemm(true, false, m, m, n, 1, p, m, g, m, 0, x, m); /* P^T g: m x m */
        gemm(false, true, m, n, m, -1, x, m, p, m, 1, to, n);
        gemm(false, true, n, n, m, 1, p, m, p, m, 0, x, n);  /* P P^T: n x n */
        gemm(true, false, m, n, n, 1, g, m, x, n, 0, y, n);  /* g^T P P^T: m x n */
        gemm(false, false, n, n, m, 1, p, m, y, n, 0, x, n); /* P (g^T P P^T) */
        for (int64_t i = 0; i < m * n; i++)
            to[i] += y[i];
        gemm(false, false, m, n, n, -1, at, n, x, n, 1, to, n);
        gemm(true, false, m, m, n, 1, p, m, p, m, 0, x, m);  /* P^T P: m x m */
        gemm(false, true, m, n, m, 1, x, m, g, m, 0, y, n);  /* P^T P g^T: m x n */
        gemm(false, false, m, m, n, 1, y, n, p, m, 0, z, m); /* (..) P */
        for (int64_t i = 0; i < m * n; i++)
            to[i] += y[i];
        gemm(false, false, m, n, m, -1, z, m, at, n, 1, to, n);
    }
}

/* sum of v u^T / s over the values above the limit; *rank gets their number a matrix. */
static struct val *pinv(struct op *o, struct val *x, double rtol, double atol, struct val **rank)
{
    int64_t shape[OP_RANK];
    if (!matrices(o, x))
        return NULL;
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1], k = m < n ? m : n;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 2] = n;
    shape[x->rank - 1] = m;
    struct val *out = val_new(o, x->dtype, x->rank, shape);
    struct val *counts = val_new(o, PLUMB_I64, x->rank - 2, shape);
    real *s = op_alloc(o, k + 1, sizeof *s), *ut = op_alloc(o, k * m + 1, sizeof *ut),
         *vt = op_alloc(o, k * n + 1, sizeof *vt),
         *scratch = op_alloc(o, (m + n) * k + 1, sizeof *scratch);
    if (!out || !counts || !s || !ut || !vt || !scratch)
        return NULL;
    for (int64_t b = 0; b < counts->count; b++) {
        real *to = out->f + b * m * n;
        spectrum_svd(m, n, x->f + b * m * n, s, ut, vt, scratch);
        const real limit = k ? fmax((real)atol, (real)rtol * s[0]) : 0;
        for (int64_t i = 0; i < k && s[i] > limit; i++) {
            counts->i[b]++;
            for (int64_t r = 0; r < n; r++)
                for (int64_t c = 0; c < m; c++)
                    to[r * m + c] += vt[i * n + r] / s[i] * ut[i * m + c];
        }
    }
    if (rank)
        *rank = counts;
    return val_node(o, out, pinv_backward, x, NULL, NULL, NULL);
}

static double default_rtol(const struct val *x)
{
    const int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1];
    return ldexp(1.0, -plumb_dtype_info(x->dtype)->precision) * (double)(m > n ? m : n);
}

static void mirrored_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    for (int64_t k = 0; g && k < out->count; k++)
        g[k] += out->grad[k];
}

/* Symmetric matrices of which only the lower half is looked at. */
static struct val *mirrored(struct op *o, struct val *x)
{
    const int64_t n = x->shape[x->rank - 1];
    struct val *out = square_matrices(o, x) ? val_like(o, x, x->dtype) : NULL;
    for (int64_t k = 0; out && k < x->count; k++) {
        const int64_t r = k / n % n, c = k % n;
        out->f[k] = x->f[c > r ? k + (c - r) * n - (c - r) : k];
    }
    return out ? val_node(o, out, mirrored_backward, x, NULL, NULL, NULL) : NULL;
}

static void run_pinv(struct op *o)
{
    struct val *x = matrices(o, arg_tensor(o, "input"));
    if (x && arg_bool(o, "hermitian"))
        x = mirrored(o, x);
    if (!x)
        return;
    const double atol = arg_raw(o, "atol") && arg_given(o, "atol") ? arg_number(o, "atol") : 0;
    const double rtol = arg_given(o, "rtol") ? arg_number(o, "rtol")
                        : atol > 0           ? 0
                                             : default_rtol(x);
    op_return(o, pinv(o, x, rtol, atol, NULL));
}

static void run_pinverse(struct op *o)
{
    op_return(o, pinv(o, arg_tensor(o, "input"), arg_number(o, "rcond"), 0, NULL));
}

/* The sum of squares of A X - B for each column, where A is taller than wide and of full rank. */
static struct val *residuals(struct op *o, struct val *a, struct val *b, struct val *x,
                             const struct val *rank)
{
    const int64_t m = a->shape[a->rank - 2], n = a->shape[a->rank - 1], none = 0;
    bool full = m > n;
    for (int64_t i = 0; full && i < rank->count; i++)
        full = rank->i[i] == n;
    if (!full)
        return val_new(o, b->dtype, 1, &none);
    struct val *rest = v_sub(o, v_matmul(o, a, x), b);
    return rest ? v_sum(o, v_square(o, rest), UINT64_C(1) << (rest->rank - 2), false) : NULL;
}

/* Which of the results besides the solution there are depends on the driver, as in PyTorch; without
 * one it is gelsy, PyTorch's choice on a CPU. */
static void run_lstsq(struct op *o)
{
    struct val *a = matrices(o, arg_tensor(o, "input")), *b = arg_tensor(o, "b"), *rank = NULL;
    const char *driver = arg_text(o, "driver");
    if (!a || !b)
        return;
    if (!b->f || b->rank != a->rank || b->shape[b->rank - 2] != a->shape[a->rank - 2]) {
        op_fail(o, PLUMB_E_ARG, "%s: the right side does not have the rows of the matrix",
                o->call->name);
        return;
    }
    const bool gelsy = !driver || strcmp(driver, "gelsy") == 0,
               gels = driver && strcmp(driver, "gels") == 0;
    const double rtol = arg_given(o, "rcond") ? arg_number(o, "rcond") : default_rtol(a);
    struct val *inverse = pinv(o, a, rtol, 0, &rank);
    struct val *x = v_matmul(o, inverse, b);
    if (!x)
        return;
    struct val *empty = val_new(o, a->dtype, 1, (const int64_t[]){0});
    op_return(o, x);
    op_return(o, gelsy ? empty : residuals(o, a, b, x, rank));
    op_return(o, gels ? val_new(o, PLUMB_I64, 1, (const int64_t[]){0}) : rank);
    op_return(o, gels || gelsy ? empty : v_detach(o, v_singular_values(o, v_detach(o, a))));
}

#define A "(Tensor input|self|A"

const struct op_def op_spectral[] = {
    {"linalg.svdvals linalg_svdvals", "svdvals" A ", *, any driver=None)", run_svdvals, 0,
     "the singular values, largest first"},
    {"linalg.svd linalg_svd _linalg_svd",
     "svd" A ", bool full_matrices=True, bool? compute_uv=True, *, any driver=None)", run_svd, 0,
     "None, the singular values, None: U and V are determined up to signs only"},
    {"svd", "svd" A ", bool some=True, bool compute_uv=True)", run_svd, 0,
     "None, the singular values, None: U and V are determined up to signs only"},
    {"linalg.eigvalsh linalg_eigvalsh", "eigvalsh" A ", str UPLO='L')", run_eigvalsh, 0,
     "the eigenvalues of symmetric matrices, smallest first"},
    {"linalg.eigh linalg_eigh _linalg_eigh", "eigh" A ", str UPLO='L', bool compute_v=True)",
     run_eigh, 0, "the eigenvalues, None: vectors are determined up to signs only"},
    {"symeig", "symeig" A ", bool eigenvectors=False, bool upper=True)", run_eigh, 0,
     "the eigenvalues, None: vectors are determined up to signs only"},
    {"nuclear_norm",
     "nuclear_norm(Tensor input|self, bool keepdim=False)\n"
     "nuclear_norm(Tensor input|self, int[] dim, bool keepdim=False)",
     run_nuclear_norm, 0, "the sum of the singular values"},
    {"linalg.matrix_rank linalg_matrix_rank matrix_rank",
     "matrix_rank" A ", *, number? atol=None, number? rtol=None, bool hermitian=False)\n"
     "matrix_rank" A ", number? atol|tol=None, bool hermitian|symmetric=False)",
     run_matrix_rank, OP_NO_GRAD, "the number of singular values above a limit"},
    {"linalg.cond linalg_cond", "cond" A ", any p=None)", run_cond, 0,
     "the largest by the smallest singular value, or ||A|| ||A^-1||"},
    {"linalg.pinv linalg_pinv",
     "pinv" A ", *, number? atol=None, number? rtol=None, bool hermitian=False)\n"
     "pinv" A ", number? rtol|rcond=None, bool hermitian=False)",
     run_pinv, 0, "sum of v u^T / s over the singular values s above a limit"},
    {"pinverse", "pinverse" A ", number rcond=1e-15)", run_pinverse, 0,
     "sum of v u^T / s over the singular values s above a limit"},
    {"linalg.lstsq linalg_lstsq", "lstsq" A ", Tensor b|B, number? rcond=None, *, any driver=None)",
     run_lstsq, 0, "pinv(A) B; residuals, rank and singular values as the driver has them"},
    {0},
};
