/* Norms of vectors and matrices, and scaling by them. */
#include "exec/op/vector_norm.h"

#include "exec/op/fold.h"
#include "exec/op/rows.h"
#include "exec/op/spectrum.h"

#include <string.h>

real p_norm(const real *x, int64_t n, double p, real *scratch)
{
    if (isinf(p)) {
        const bool most = p > 0;
        real best = most || n == 0 ? 0 : R(INFINITY);
        for (int64_t k = 0; k < n; k++) {
            const real v = fabs(x[k]);
            if (isnan(v))
                return v;
            if (most ? v > best : v < best)
                best = v;
        }
        return best;
    }
    if (p == 2)
        return sqrt(real_dot(x, x, n));
    if (p == 0)
        for (int64_t k = 0; k < n; k++)
            scratch[k] = x[k] != 0;
    else if (p == 1)
        for (int64_t k = 0; k < n; k++)
            scratch[k] = fabs(x[k]);
    else
        for (int64_t k = 0; k < n; k++)
            scratch[k] = pow(fabs(x[k]), (real)p);
    const real sum = real_sum(scratch, n, 1);
    return p == 0 || p == 1 ? sum : pow(sum, 1 / (real)p);
}

static real sign_of(real x)
{
    return (real)(x > 0) - (real)(x < 0);
}

static void extreme_gradient(const real *x, int64_t n, real y, real g, bool share, real *out)
{
    int64_t count = 0;
    for (int64_t k = 0; k < n; k++)
        count += fabs(x[k]) == y || (isnan(y) && isnan(x[k]));
    if (share)
        g /= (real)count;
    for (int64_t k = 0; k < n; k++)
        if (fabs(x[k]) == y || (isnan(y) && isnan(x[k])))
            out[k] += g * (isnan(x[k]) ? x[k] : sign_of(x[k]));
}

void p_norm_add_gradient(const real *x, int64_t n, double p, real y, real g, bool share, real *out)
{
    if (p == 0)
        return;
    if (isinf(p)) {
        extreme_gradient(x, n, y, g, share, out);
    } else if (p == 1) {
        for (int64_t k = 0; k < n; k++)
            out[k] += g * sign_of(x[k]);
    } else if (y == 0) {
        return;
    } else if (p == 2) {
        for (int64_t k = 0; k < n; k++)
            out[k] += g * (x[k] / y);
    } else {
        for (int64_t k = 0; k < n; k++)
            if (x[k] != 0)
                out[k] += g * sign_of(x[k]) * pow(fabs(x[k]) / y, (real)p - 1);
    }
}

struct norm_saved {
    struct span3 span;
    double p;
    const struct val *out;
    real *scratch;
};

static void norm_row(const struct row *row, void *context)
{
    const struct norm_saved *s = context;
    s->out->f[row->at] = p_norm(row->in[0], row->n, s->p, s->scratch);
}

static void norm_back_row(const struct row *row, void *context)
{
    const struct norm_saved *s = context;
    p_norm_add_gradient(row->in[0], row->n, s->p, s->out->f[row->at], s->out->grad[row->at], true,
                        row->out[0]);
}

static void norm_back(struct op *o, struct val *out)
{
    struct norm_saved s = *(const struct norm_saved *)out->saved;
    struct row rows = {.in = {out->in[0]->f}, .out = {val_grad(o, out->in[0])}};
    if (rows.out[0])
        each_row(o, s.span, &rows, norm_back_row, &s);
}

struct val *v_vector_norm(struct op *o, struct val *x, double p, uint64_t dims, bool keepdim)
{
    struct fold fold;
    if (x && !x->f)
        return op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                       plumb_dtype_info(x->dtype)->name);
    if (!fold_begin(o, x, dims, keepdim, &fold))
        return NULL;
    struct val *out = fold_new(o, &fold, x->dtype);
    struct norm_saved *s = op_alloc(o, 1, sizeof *s);
    if (!out || !s)
        return NULL;
    *s = (struct norm_saved){fold.span, p, out, op_alloc(o, fold.span.length, sizeof(real))};
    if (!each_row(o, fold.span, &(struct row){.in = {fold.x->f}}, norm_row, s))
        return NULL;
    return val_node(o, out, norm_back, fold.x, NULL, NULL, s);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static struct val *norm_input(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    enum plumb_dtype dtype = arg_dtype(o, "dtype");
    return dtype == PLUMB_DTYPE_COUNT ? x : v_cast(o, x, dtype);
}

/* The order of a norm: a number, None (2) or a word, for which *word is set. */
static double norm_order(struct op *o, const char *name, const char **word)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    *word = NULL;
    if (!arg || arg->kind == PLUMB_ARG_NONE)
        return 2;
    if (arg->kind == PLUMB_ARG_TEXT) {
        *word = arg->text;
        if (strcmp(arg->text, "fro") != 0 && strcmp(arg->text, "nuc") != 0)
            op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the norm '%s' is not computed here", o->call->name,
                    arg->text);
        return 2;
    }
    return arg_number(o, name);
}

static enum matrix_norm norm_kind(const char *word)
{
    return !word ? MATRIX_ORDER : word[0] == 'n' ? MATRIX_NUCLEAR : MATRIX_FROBENIUS;
}

static void run_norm(struct op *o)
{
    struct val *x = norm_input(o);
    const char *word;
    double p = norm_order(o, "p", &word);
    if (word && norm_kind(word) == MATRIX_NUCLEAR) {
        size_t n;
        const int64_t *dims = arg_ints(o, "dim", &n), last[2] = {-2, -1};
        if (!x || (n ? n != 2 : x->rank != 2)) {
            op_fail(o, PLUMB_E_ARG, "%s: 'nuc' is a norm of matrices", o->call->name);
            return;
        }
        dims = n ? dims : last;
        op_return(o, v_matrix_norm(o, x, MATRIX_NUCLEAR, 0, val_dim(o, x, dims[0]),
                                   val_dim(o, x, dims[1]), arg_bool(o, "keepdim")));
        return;
    }
    op_return(o, v_vector_norm(o, x, p, arg_mask(o, "dim", x), arg_bool(o, "keepdim")));
}

static void run_vector_norm(struct op *o)
{
    struct val *x = norm_input(o);
    double p = arg_number(o, "ord");
    op_return(o, v_vector_norm(o, x, p, arg_mask(o, "dim", x), arg_bool(o, "keepdim")));
}

static void run_frobenius_norm(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, v_vector_norm(o, x, 2, arg_mask(o, "dim", x), arg_bool(o, "keepdim")));
}

/* The singular values of the matrices in two dimensions: their sum, or one end of them. */
static struct val *by_values(struct op *o, struct val *x, enum matrix_norm kind, double p,
                             unsigned row_dim, unsigned column_dim)
{
    unsigned order[OP_RANK], n = 0;
    for (unsigned d = 0; d < x->rank; d++)
        if (d != row_dim && d != column_dim)
            order[n++] = d;
    order[n++] = row_dim;
    order[n] = column_dim;
    struct val *s = v_singular_values(o, v_permute(o, x, order));
    if (!s)
        return NULL;
    const uint64_t last = UINT64_C(1) << (s->rank - 1);
    return kind == MATRIX_NUCLEAR ? v_sum(o, s, last, false) : v_extreme(o, s, last, false, p > 0);
}

/* Else the largest (smallest) sum of |x| of a column or row. */
struct val *v_matrix_norm(struct op *o, struct val *x, enum matrix_norm kind, double p,
                          unsigned row_dim, unsigned column_dim, bool keepdim)
{
    if (!x || o->failed)
        return NULL;
    const uint64_t rows = (uint64_t)1 << row_dim, columns = (uint64_t)1 << column_dim;
    const unsigned low = row_dim < column_dim ? row_dim : column_dim,
                   high = row_dim < column_dim ? column_dim : row_dim;
    if (row_dim == column_dim)
        return op_fail(o, PLUMB_E_ARG, "%s: a matrix lies in two dimensions, not twice in %u",
                       o->call->name, row_dim);
    if (kind == MATRIX_FROBENIUS)
        return v_vector_norm(o, x, 2, rows | columns, keepdim);
    if (kind == MATRIX_NUCLEAR || fabs(p) == 2) {
        struct val *norm = by_values(o, x, kind, p, row_dim, column_dim);
        return keepdim ? v_unsqueeze(o, v_unsqueeze(o, norm, low), high) : norm;
    }
    if (fabs(p) != 1 && !isinf(p))
        return op_fail(o, PLUMB_E_ARG, "%s: %g is no order of a matrix norm", o->call->name, p);
    const bool by_rows = isinf(p);
    struct val *sums = v_vector_norm(o, x, 1, by_rows ? columns : rows, true);
    struct val *norm = v_extreme(o, sums, by_rows ? rows : columns, true, p > 0);
    if (keepdim || !norm)
        return norm;
    return v_squeeze(o, v_squeeze(o, norm, high), low);
}

static void run_matrix_norm(struct op *o)
{
    struct val *x = norm_input(o);
    const char *word;
    double p = norm_order(o, "ord", &word);
    size_t n;
    const int64_t *dims = arg_ints(o, "dim", &n);
    if (x && (x->rank < 2 || n != 2))
        op_fail(o, PLUMB_E_ARG, "%s takes the two dimensions of a matrix", o->call->name);
    if (!x || o->failed)
        return;
    op_return(o, v_matrix_norm(o, x, arg_given(o, "ord") ? norm_kind(word) : MATRIX_FROBENIUS, p,
                               val_dim(o, x, dims[0]), val_dim(o, x, dims[1]),
                               arg_bool(o, "keepdim")));
}

static void run_linalg_norm(struct op *o)
{
    struct val *x = norm_input(o);
    const char *word;
    double p = norm_order(o, "ord", &word);
    size_t n;
    const int64_t *dims = arg_ints(o, "dim", &n);
    const bool given = arg_given(o, "ord"), keepdim = arg_bool(o, "keepdim");
    if (!x || o->failed)
        return;
    const int64_t last[2] = {-2, -1};
    if (given && n == 0 && x->rank == 2) {
        dims = last;
        n = 2;
    }
    if (given && n == 0 && x->rank > 2)
        op_fail(o, PLUMB_E_ARG, "%s: an order without dim wants 1 or 2 dimensions, not %u",
                o->call->name, x->rank);
    if (word && n != 2)
        op_fail(o, PLUMB_E_ARG, "%s: '%s' is a norm of matrices", o->call->name, word);
    if (given && n == 2)
        op_return(o, v_matrix_norm(o, x, norm_kind(word), p, val_dim(o, x, dims[0]),
                                   val_dim(o, x, dims[1]), keepdim));
    else
        op_return(o, v_vector_norm(o, x, p, dims_mask(o, x, dims, n), keepdim));
}

static void run_norm_except_dim(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t dim = arg_int(o, "dim");
    if (!x)
        return;
    uint64_t dims = 0;
    if (dim != -1)
        dims = fold_mask(x, 0) & ~((uint64_t)1 << val_dim(o, x, dim));
    if (dim != -1 && dims == 0)
        op_return(o, v_abs(o, x));
    else
        op_return(o, v_vector_norm(o, x, (double)arg_int(o, "pow"), dims, dim != -1));
}

static void run_foreach_norm(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    const double p = arg_number(o, "ord");
    op_return_tuple(o);
    const enum plumb_dtype dtype = arg_dtype(o, "dtype");
    for (size_t k = 0; k < n; k++) {
        struct val *x = dtype == PLUMB_DTYPE_COUNT ? xs[k] : v_cast(o, xs[k], dtype);
        op_return(o, v_vector_norm(o, x, p, 0, false));
    }
}

static void run_normalize(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *norm = v_vector_norm(o, x, arg_number(o, "p"), arg_mask(o, "dim", x), true);
    op_return(o, v_div(o, x, v_clamp(o, norm, arg_number(o, "eps"), (double)INFINITY)));
}

/* Slices along dim that are longer than maxnorm are scaled down to it. */
static void run_renorm(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const double most = arg_number(o, "maxnorm");
    if (x && x->rank < 2)
        op_fail(o, PLUMB_E_ARG, "renorm takes 2 or more dimensions, not %u", x->rank);
    if (!x || o->failed)
        return;
    uint64_t others = fold_mask(x, 0) & ~((uint64_t)1 << val_dim(o, x, arg_int(o, "dim")));
    struct val *norm = v_vector_norm(o, x, arg_number(o, "p"), others, true);
    struct val *down = v_div(o, v_number(o, most), v_offset(o, norm, 1e-7));
    struct val *too_long = v_compare(o, CMP_GT, norm, v_number(o, most));
    op_return(o, v_mul(o, x, v_where(o, too_long, down, v_number(o, 1))));
}

const struct op_def op_vector_norm[] = {
    {"norm native_norm",
     "norm(Tensor input|self, any p='fro', int[]? dim|axis=None, bool keepdim|keepdims=False, "
     "dtype? dtype=None)",
     run_norm, 0, "(sum |x|^p)^(1/p)"},
    {"linalg.vector_norm linalg_vector_norm",
     "linalg.vector_norm(Tensor input|self|x, number ord=2, int[]? dim|axis=None, "
     "bool keepdim|keepdims=False, *, dtype? dtype=None)",
     run_vector_norm, 0, "(sum |x|^ord)^(1/ord)"},
    {"linalg.matrix_norm linalg_matrix_norm",
     "linalg.matrix_norm(Tensor input|self|A, any ord='fro', int[] dim|axis=[-2, -1], "
     "bool keepdim|keepdims=False, *, dtype? dtype=None)",
     run_matrix_norm, 0, "orders 'fro', 'nuc', 1, -1, 2, -2, inf, -inf"},
    {"linalg.norm linalg_norm",
     "linalg.norm(Tensor input|self|A, any ord=None, int[]? dim|axis=None, "
     "bool keepdim|keepdims=False, *, dtype? dtype=None)",
     run_linalg_norm, 0, "vector_norm, or matrix_norm for an order and two dimensions"},
    {"frobenius_norm",
     "frobenius_norm(Tensor input|self, int[]? dim=None, bool keepdim|keepdims=False)",
     run_frobenius_norm, 0, "sqrt(sum x^2)"},
    {"norm_except_dim", "norm_except_dim(Tensor input|v, int pow=2, int dim=0)",
     run_norm_except_dim, 0, NULL},
    {"_foreach_norm", "_foreach_norm(Tensor[] input|self, number ord=2, dtype? dtype=None)",
     run_foreach_norm, 0, NULL},
    {"normalize",
     "normalize(Tensor input, float p=2.0, int[] dim|axis=1, float eps=1e-12, any out=None)",
     run_normalize, 0, "x / max(norm(x), eps)"},
    {"renorm renorm_", "renorm(Tensor input|self, number p, int dim, number maxnorm)", run_renorm,
     0, "x * min(1, maxnorm / (norm + 1e-7)) for each slice"},
    {0},
};
