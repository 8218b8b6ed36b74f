/* softmax(x)_k = exp(x_k - max) / sum_j exp(x_j - max), and its logarithm: a row at a time,
 * while it is in the cache. */
#include "exec/op/attention.h"
#include "exec/op/exp_row.h"
#include "exec/op/fast.h"
#include "exec/op/fold.h"
#include "exec/op/rows.h"

#include <string.h>

/* y = exp(x - *most), the largest of a row that is not empty; returns its sum. NaN anywhere makes
 * the sum, and so the whole row, NaN; the maximum need not look for it. */
static real shifted_row(struct op *o, const struct row *row, real *most)
{
    const real *x = row->in[0];
    real *y = row->out[0];
    *most = row_max(x, row->n);
    exp_row(x, row->n, *most, y);
    op_between(o, y, row->n);
    return op_between_one(o, real_sum(y, row->n, 1));
}

static void softmax_row(const struct row *row, void *context)
{
    real most, *y = row->out[0];
    const real sum = row->n ? shifted_row(context, row, &most) : 1;
    for (int64_t k = 0; k < row->n; k++)
        y[k] /= sum;
}

static void safe_softmax_row(const struct row *row, void *context)
{
    bool seen = false; /* NaN counts: it is not lost */
    for (int64_t k = 0; k < row->n && !seen; k++)
        seen = row->in[0][k] != -R(INFINITY);
    if (seen)
        softmax_row(row, context);
    else
        memset(row->out[0], 0, (size_t)row->n * sizeof(real));
}

static void log_softmax_row(const struct row *row, void *context)
{
    struct op *o = context;
    const real *x = row->in[0];
    real most = 0, *y = row->out[0];
    const real shift = row->n ? op_between_one(o, log(shifted_row(o, row, &most))) : 0;
    for (int64_t k = 0; k < row->n; k++)
        y[k] = x[k] - most;
    op_between(o, y, row->n);
    for (int64_t k = 0; k < row->n; k++)
        y[k] -= shift;
}

/* gx = y (g - sum(g y)). As the sum of y is 1, all of g may be shifted; by that of the largest
 * y, the terms that would cancel in a row with a clear winner vanish. */
struct softmax_back {
    struct op *o;
    real *shifted; /* a row */
};

/* What is added to: zeros where nothing was before. */
static real *to_add_to(const struct row *row)
{
    if (row->fresh)
        memset(row->out[0], 0, (size_t)row->n * sizeof(real));
    return row->out[0];
}

static void softmax_back_row(const struct row *row, void *context)
{
    const struct softmax_back *b = context;
    const real *y = row->in[0], *g = row->in[1];
    real *shifted = b->shifted, *to = to_add_to(row);
    int64_t most = 0;
    for (int64_t k = 1; k < row->n; k++)
        most = y[k] > y[most] ? k : most;
    if (b->o->call->noise) { /* a device has no reason to shift, and rounds what cancels */
        const real whole = op_between_one(b->o, real_dot(g, y, row->n));
        for (int64_t k = 0; k < row->n; k++)
            shifted[k] = g[k] - whole;
        op_between(b->o, shifted, row->n);
        for (int64_t k = 0; k < row->n; k++)
            to[k] += y[k] * shifted[k];
        return;
    }
    for (int64_t k = 0; k < row->n; k++)
        shifted[k] = g[k] - g[most];
    const real sum = real_dot(shifted, y, row->n);
    for (int64_t k = 0; k < row->n; k++)
        to[k] += y[k] * (shifted[k] - sum);
}

/* gx = g - exp(y) sum(g) */
static void log_softmax_back_row(const struct row *row, void *context)
{
    const struct softmax_back *b = context;
    const real *g = row->in[1];
    real *part = b->shifted, *to = to_add_to(row);
    const real sum = op_between_one(b->o, real_sum(g, row->n, 1));
    exp_row(row->in[0], row->n, 0, part);
    for (int64_t k = 0; k < row->n; k++)
        part[k] *= sum;
    for (int64_t k = 0; b->o->call->noise && k < row->n; k++)
        op_between(b->o, &part[k], 1);
    for (int64_t k = 0; k < row->n; k++)
        to[k] += g[k] - part[k];
}

static void back_by_rows(struct op *o, struct val *out, row_fn *backward)
{
    struct row rows = {.in = {out->f, out->grad}};
    rows.out[0] = val_grad_room(o, out->in[0], &rows.fresh);
    const struct span3 *span = out->saved;
    struct softmax_back b = {o, op_room(o, span->length, sizeof *b.shifted)};
    if (rows.out[0] && b.shifted)
        each_row(o, *span, &rows, backward, &b);
}

static void softmax_back(struct op *o, struct val *out)
{
    back_by_rows(o, out, softmax_back_row);
}

static void log_softmax_back(struct op *o, struct val *out)
{
    back_by_rows(o, out, log_softmax_back_row);
}

static struct val *by_rows(struct op *o, struct val *x, unsigned dim, row_fn *forward,
                           op_backward *backward)
{
    x = v_float(o, x);
    struct val *out = x ? val_room_like(o, x, x->dtype) : NULL;
    const struct span3 *span = out ? span_keep(o, val_span(x, dim)) : NULL;
    if (!span ||
        !each_row(o, *span, &(struct row){.x = x, .out = {out->f}, .fresh = true}, forward, o))
        return NULL;
    return val_node(o, out, backward, x, NULL, NULL, span);
}

struct val *v_softmax(struct op *o, struct val *x, unsigned dim)
{
    return by_rows(o, x, dim, softmax_row, softmax_back);
}

struct val *v_safe_softmax(struct op *o, struct val *x, unsigned dim)
{
    return by_rows(o, x, dim, safe_softmax_row, softmax_back);
}

struct val *v_log_softmax(struct op *o, struct val *x, unsigned dim)
{
    return by_rows(o, x, dim, log_softmax_row, log_softmax_back);
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* Without a dimension torch's functions take the first or the second, by rank. */
static unsigned softmax_dim(struct op *o, const struct val *x)
{
    if (!x)
        return 0;
    if (arg_given(o, "dim"))
        return val_dim(o, x, arg_int(o, "dim"));
    return x->rank == 0 || x->rank == 1 || x->rank == 3 ? 0 : 1;
}

static struct val *softmax_input(struct op *o)
{
    const enum plumb_dtype dtype = arg_dtype(o, "dtype");
    const bool cast = dtype != PLUMB_DTYPE_COUNT || arg_bool(o, "half_to_float");
    struct val *x = cast ? arg_tensor(o, "input") : arg_unread(o, "input");
    if (cast)
        x = v_cast(o, x, dtype != PLUMB_DTYPE_COUNT ? dtype : PLUMB_F32);
    if (x && !val_is_float(x))
        return op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                       plumb_dtype_info(x->dtype)->name);
    return x;
}

static void run_softmax(struct op *o)
{
    struct val *x = softmax_input(o);
    op_return(o, v_softmax(o, x, softmax_dim(o, x)));
}

static void run_safe_softmax(struct op *o)
{
    struct val *x = softmax_input(o);
    op_return(o, v_safe_softmax(o, x, softmax_dim(o, x)));
}

static void run_log_softmax(struct op *o)
{
    struct val *x = softmax_input(o);
    op_return(o, v_log_softmax(o, x, softmax_dim(o, x)));
}

static void run_softmin(struct op *o)
{
    struct val *x = softmax_input(o);
    if (val_read(o, x))
        op_return(o, v_softmax(o, v_neg(o, x), softmax_dim(o, x)));
}

/* The gradient in the input's type, which is named or shown by a tensor. */
static void return_as_input(struct op *o, struct val *grad)
{
    const struct plumb_arg *like = arg_raw(o, "input_dtype");
    if (like && like->kind == PLUMB_ARG_DTYPE)
        grad = v_cast(o, grad, like->dtype);
    else if (like && like->kind == PLUMB_ARG_TENSOR)
        grad = v_cast(o, grad, like->tensor->dtype);
    op_return(o, grad);
}

static void run_softmax_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_output"), *y = arg_tensor(o, "output");
    if (!g || !y)
        return;
    uint64_t dim = (uint64_t)1 << val_dim(o, y, arg_int(o, "dim"));
    struct val *sum = v_sum(o, v_mul(o, g, y), dim, true);
    return_as_input(o, v_mul(o, y, v_sub(o, g, sum)));
}

static void run_log_softmax_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_output"), *y = arg_tensor(o, "output");
    if (!g || !y)
        return;
    uint64_t dim = (uint64_t)1 << val_dim(o, y, arg_int(o, "dim"));
    struct val *sum = v_sum(o, g, dim, true);
    return_as_input(o, v_sub(o, g, v_mul(o, v_exp(o, y), sum)));
}

const struct op_def op_softmax[] = {
    {"softmax special.softmax special_softmax",
     "softmax(Tensor input|self, int? dim|axis=None, dtype? dtype=None)\n"
     "softmax(Tensor input|self, int? dim|axis=None, int _stacklevel=3, dtype? dtype=None)",
     run_softmax, 0, "exp(x - max) / sum(exp(x - max))"},
    {"log_softmax special.log_softmax special_log_softmax",
     "log_softmax(Tensor input|self, int? dim|axis=None, dtype? dtype=None)\n"
     "log_softmax(Tensor input|self, int? dim|axis=None, int _stacklevel=3, dtype? dtype=None)",
     run_log_softmax, 0, "x - max - log(sum(exp(x - max)))"},
    {"softmin",
     "softmin(Tensor input|self, int? dim|axis=None, dtype? dtype=None)\n"
     "softmin(Tensor input|self, int? dim|axis=None, int _stacklevel=3, dtype? dtype=None)",
     run_softmin, 0, "softmax(-x)"},
    {"_softmax", "_softmax(Tensor input|self, int dim, bool half_to_float)", run_softmax, 0, NULL},
    {"_log_softmax", "_log_softmax(Tensor input|self, int dim, bool half_to_float)",
     run_log_softmax, 0, NULL},
    {"_safe_softmax", "_safe_softmax(Tensor input|self, int dim, dtype? dtype=None)",
     run_safe_softmax, 0, "softmax(x), zeros for rows of nothing but -inf"},
    {"_softmax_backward_data",
     "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, any input_dtype|self)",
     run_softmax_backward, 0, "y (g - sum(g y))"},
    {"_log_softmax_backward_data",
     "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, any input_dtype|self)",
     run_log_softmax_backward, 0, "g - exp(y) sum(g)"},
    {0},
};
