/* Sums, means and their relatives over dimensions. */
#include "exec/op/exp_row.h"
#include "exec/op/fold.h"
#include "exec/op/rows.h"
#include "exec/op/sum.h"

/* ---- Sum and mean ---------------------------------------------------------------------------- */

struct sum_saved {
    struct span3 span;
    real divisor; /* 1, or how many the mean is of */
};

static void sum_back(struct op *o, struct val *out)
{
    const struct sum_saved *s = out->saved;
    bool fresh;
    real *g = val_grad_room(o, out->in[0], &fresh);
    if (!g || out->in[0]->count == 0)
        return;
    const int64_t inner = s->span.inner, count = s->span.length * inner;
    for (int64_t k = 0; k < s->span.outer; k++) {
        const real *from = out->grad + k * inner;
        real *to = g + k * count;
        for (int64_t l = 0; fresh && l < count; l++)
            to[l] = 0;
        if (inner == 1) {
            const real each = *from / s->divisor;
            for (int64_t l = 0; l < count; l++)
                to[l] += each;
            continue;
        }
        for (int64_t l = 0; l < count; l += inner)
            for (int64_t c = 0; c < inner; c++)
                to[l + c] += from[c] / s->divisor;
    }
}

static void sum_floats(struct op *o, const struct val *x, struct span3 span, real divisor,
                       real *out)
{
    for (int64_t k = 0; k < span.outer; k++) {
        const int64_t from = k * span.length * span.inner;
        real *to = out + k * span.inner;
        if (span.inner == 1)
            *to = sum_of_val(x, from, span.length);
        else
            sum_rows_of_val(x, from, span.length, span.inner, to);
        if (divisor != 1)
            op_between(o, to, span.inner);
        for (int64_t c = 0; c < span.inner; c++)
            to[c] /= divisor;
    }
}

/* Integers wrap at 64 bits. */
static void sum_ints(const int64_t *x, struct span3 span, int64_t *out)
{
    for (int64_t k = 0; k < span.outer; k++)
        for (int64_t l = 0; l < span.length; l++) {
            const int64_t *from = x + (k * span.length + l) * span.inner;
            int64_t *to = out + k * span.inner;
            for (int64_t c = 0; c < span.inner; c++)
                to[c] = (int64_t)((uint64_t)to[c] + (uint64_t)from[c]);
        }
}

static struct val *sum_span(struct op *o, struct val *x, struct span3 span, real divisor,
                            unsigned rank, const int64_t *shape)
{
    struct val *out = x ? val_new(o, x->i ? PLUMB_I64 : x->dtype, rank, shape) : NULL;
    if (!out || (OP_REAL == 128 && !val_read(o, x)))
        return NULL;
    if (out->count == 0)
        span.outer = 0; /* a dimension of 0 may stand beside absurdly large ones */
    if (x->i) {
        sum_ints(x->i, span, out->i);
        return out;
    }
    sum_floats(o, x, span, divisor, out->f);
    struct sum_saved *saved = op_alloc(o, 1, sizeof *saved);
    if (!saved)
        return NULL;
    *saved = (struct sum_saved){span, divisor};
    return val_node(o, out, sum_back, x, NULL, NULL, saved);
}

/* Reduces one run of neighbouring dimensions after the other, the last ones first, so that memory
 * is always read in order. */
static struct val *sum_runs(struct op *o, struct val *x, uint64_t dims, bool keepdim, bool mean)
{
    if (!x)
        return NULL;
    dims = fold_mask(x, dims);
    int64_t shape[OP_RANK], inner = 1, reduced = 1;
    unsigned rank = fold_shape(x, dims, keepdim, shape), n = 0;
    struct span3 runs[OP_RANK + 1];
    for (unsigned hi = x->rank; hi > 0;) {
        if (!(dims >> (hi - 1) & 1)) {
            inner = size_times(inner, x->shape[--hi]);
            continue;
        }
        struct span3 run = {1, 1, inner};
        while (hi > 0 && (dims >> (hi - 1) & 1 || x->shape[hi - 1] == 1))
            run.length = size_times(run.length, x->shape[--hi]);
        for (unsigned d = 0; d < hi; d++)
            run.outer = size_times(run.outer, x->shape[d]);
        reduced = size_times(reduced, run.length);
        runs[n++] = run;
    }
    op_terms(reduced);
    if (n == 0)
        runs[n++] = (struct span3){1, 1, x->count};
    for (unsigned k = 0; k < n && x; k++) {
        bool last = k + 1 == n;
        int64_t rest[2] = {runs[k].outer, runs[k].inner};
        x = sum_span(o, x, runs[k], mean && last ? (real)reduced : R(1), last ? rank : 2,
                     last ? shape : rest);
    }
    return x;
}

struct val *v_sum(struct op *o, struct val *x, uint64_t dims, bool keepdim)
{
    return sum_runs(o, x, dims, keepdim, false);
}

struct val *v_mean(struct op *o, struct val *x, uint64_t dims, bool keepdim)
{
    return sum_runs(o, v_float(o, x), dims, keepdim, true);
}
/* x as the dtype argument wants it, if it is given. */
/* The input for sums, which read it a piece at a time. */
static struct val *sum_input(struct op *o)
{
    return arg_given(o, "dtype") ? arg_tensor(o, "input") : arg_unread(o, "input");
}

static struct val *as_asked(struct op *o, struct val *x)
{
    enum plumb_dtype dtype = arg_dtype(o, "dtype");
    return dtype == PLUMB_DTYPE_COUNT ? x : v_cast(o, x, dtype);
}

static void run_sum(struct op *o)
{
    struct val *x = as_asked(o, sum_input(o));
    op_return(o, as_asked(o, v_sum(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"))));
}

static struct val *numbers_only(struct op *o, struct val *x)
{
    return v_compare(o, CMP_EQ, x, x);
}

static void run_nansum(struct op *o)
{
    struct val *x = as_asked(o, arg_tensor(o, "input"));
    if (x && x->f)
        x = v_where(o, numbers_only(o, x), x, v_number(o, 0));
    op_return(o, as_asked(o, v_sum(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"))));
}

/* The input of an operator that takes floats only, perhaps unread. */
static struct val *float_input(struct op *o)
{
    struct val *x = as_asked(o, sum_input(o));
    if (x && !val_is_float(x))
        return op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                       plumb_dtype_info(x->dtype)->name);
    return x;
}

static void run_mean(struct op *o)
{
    struct val *x = float_input(o);
    op_return(o, v_mean(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim")));
}

static void run_nanmean(struct op *o)
{
    struct val *x = float_input(o);
    if (!val_read(o, x))
        return;
    uint64_t dims = arg_mask(o, "dim", x);
    bool keepdim = arg_bool(o, "keepdim");
    struct val *is_number = numbers_only(o, x);
    struct val *sum = v_sum(o, v_where(o, is_number, x, v_number(o, 0)), dims, keepdim);
    op_return(o, v_div(o, sum, v_sum(o, is_number, dims, keepdim)));
}

static void run_sum_to_size(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *size = arg_ints(o, "size", &n);
    if (!x)
        return;
    uint64_t dims = 0;
    bool fits = n <= x->rank;
    for (size_t d = 0; fits && d < x->rank; d++) {
        int64_t wanted = d < x->rank - n ? 1 : size[d - (x->rank - n)];
        fits = wanted == x->shape[d] || wanted == 1;
        if (d < x->rank - n || (wanted == 1 && x->shape[d] != 1))
            dims |= (uint64_t)1 << d;
    }
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "sum_to_size: the size cannot be broadcast to the tensor's shape");
    op_return(o, v_reshape(o, dims ? v_sum(o, x, dims, true) : x, (unsigned)n, size));
}

static void run_trace(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank != 2)
        op_fail(o, PLUMB_E_ARG, "trace of a tensor with %u dimensions, not 2", x->rank);
    if (!x || o->failed)
        return;
    int64_t n = x->shape[0] < x->shape[1] ? x->shape[0] : x->shape[1], step = x->shape[1] + 1;
    op_return(o, v_sum(o, v_strided(o, x, 1, &n, &step, 0), 0, false));
}

/* ---- Product --------------------------------------------------------------------------------- */

static void prod_row(const struct row *row, void *out)
{
    real product = 1;
    for (int64_t k = 0; k < row->n; k++)
        product *= row->in[0][k];
    ((real *)out)[row->at] = product;
}

static void prod_int_row(const struct row *row, void *out)
{
    uint64_t product = 1;
    for (int64_t k = 0; k < row->n; k++)
        product *= (uint64_t)row->int_in[k];
    ((int64_t *)out)[row->at] = (int64_t)product;
}

/* Each element's gradient is the product of all others: those before times those after, which needs
 * no division and so no special case for zeros. */
struct prod_saved {
    struct span3 span;
    const real *grad;
    real *before; /* one row */
};

static void prod_back_row(const struct row *row, void *context)
{
    const struct prod_saved *s = context;
    real product = 1;
    for (int64_t k = 0; k < row->n; k++) {
        s->before[k] = product;
        product *= row->in[0][k];
    }
    product = s->grad[row->at];
    for (int64_t k = row->n - 1; k >= 0; k--) {
        row->out[0][k] += s->before[k] * product;
        product *= row->in[0][k];
    }
}

static void prod_back(struct op *o, struct val *out)
{
    const struct span3 *span = out->saved;
    struct prod_saved s = {*span, out->grad, op_alloc(o, span->length, sizeof(real))};
    struct row rows = {.in = {out->in[0]->f}, .out = {val_grad(o, out->in[0])}};
    if (s.before && rows.out[0])
        each_row(o, *span, &rows, prod_back_row, &s);
}

static void run_prod(struct op *o)
{
    struct val *x = as_asked(o, arg_tensor(o, "input"));
    struct fold fold;
    if (!fold_begin(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"), &fold))
        return;
    x = fold.x;
    struct val *out = fold_new(o, &fold, x->f ? x->dtype : PLUMB_I64);
    if (!out)
        return;
    if (x->f)
        each_row(o, fold.span, &(struct row){.in = {x->f}}, prod_row, out->f);
    else
        each_row(o, fold.span, &(struct row){.int_in = x->i}, prod_int_row, out->i);
    out = val_node(o, out, prod_back, x, NULL, NULL, span_keep(o, fold.span));
    op_return(o, as_asked(o, out));
}

/* ---- Truth ----------------------------------------------------------------------------------- */

/* How many elements of each row are not zero. NaN is not zero. */
static void count_row(const struct row *row, void *out)
{
    int64_t count = 0;
    for (int64_t k = 0; k < row->n; k++)
        count += row->in[0] ? row->in[0][k] != 0 : row->int_in[k] != 0;
    ((int64_t *)out)[row->at] = count;
}

static struct val *count_nonzero(struct op *o, struct val *x, uint64_t dims, bool keepdim,
                                 int64_t *of)
{
    struct fold fold;
    if (!fold_begin(o, x, dims, keepdim, &fold))
        return NULL;
    struct val *out = fold_new(o, &fold, PLUMB_I64);
    *of = fold.span.length;
    if (out)
        each_row(o, fold.span, &(struct row){.in = {fold.x->f}, .int_in = fold.x->i}, count_row,
                 out->i);
    return out;
}

static void run_count_nonzero(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t of;
    op_return(o, count_nonzero(o, x, arg_mask(o, "dim", x), false, &of));
}

static void truth(struct op *o, bool all)
{
    struct val *x = arg_tensor(o, "input");
    int64_t of = 0;
    struct val *count = count_nonzero(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"), &of);
    struct val *out =
        count ? val_like(o, count, x->dtype == PLUMB_U8 ? PLUMB_U8 : PLUMB_BOOL) : NULL;
    for (int64_t k = 0; out && k < out->count; k++)
        out->i[k] = all ? count->i[k] == of : count->i[k] > 0;
    op_return(o, out);
}

static void run_all(struct op *o)
{
    truth(o, true);
}

static void run_any(struct op *o)
{
    truth(o, false);
}

/* ---- Log-sum-exp ----------------------------------------------------------------------------- */

struct lse {
    struct op *o;
    real *out;
    real *terms; /* one row */
};

static void lse_row(const struct row *row, void *context)
{
    const struct lse *s = context;
    real most = row_max(row->in[0], row->n);
    if (isinf(most))
        most = 0;
    exp_row(row->in[0], row->n, most, s->terms);
    op_between(s->o, s->terms, row->n);
    const real sum = op_between_one(s->o, real_sum(s->terms, row->n, 1));
    s->out[row->at] = op_between_one(s->o, log(sum)) + most;
}

static void lse_back_row(const struct row *row, void *context)
{
    const struct val *out = context;
    const real y = out->f[row->at], g = out->grad[row->at];
    for (int64_t k = 0; k < row->n; k++)
        row->out[0][k] += g * exp(row->in[0][k] - y);
}

static void lse_back(struct op *o, struct val *out)
{
    struct row rows = {.in = {out->in[0]->f}, .out = {val_grad(o, out->in[0])}};
    if (rows.out[0])
        each_row(o, *(const struct span3 *)out->saved, &rows, lse_back_row, out);
}

static void run_logsumexp(struct op *o)
{
    struct val *x = v_float(o, arg_tensor(o, "input"));
    struct fold fold;
    if (!fold_begin(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"), &fold))
        return;
    struct val *out = fold_new(o, &fold, x->dtype);
    struct lse s = {o, out ? out->f : NULL, op_alloc(o, fold.span.length, sizeof(real))};
    if (!out || !s.terms)
        return;
    each_row(o, fold.span, &(struct row){.in = {fold.x->f}}, lse_row, &s);
    op_return(o, val_node(o, out, lse_back, fold.x, NULL, NULL, span_keep(o, fold.span)));
}

const struct op_def op_reduce[] = {
    {"sum",
     "sum(Tensor input|self|x, *, dtype? dtype=None)\n"
     "sum(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False, *, "
     "dtype? dtype=None)",
     run_sum, OP_LINEAR, NULL},
    {"nansum",
     "nansum(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False, *, "
     "dtype? dtype=None)",
     run_nansum, OP_LINEAR, "sum of the elements that are not NaN"},
    {"mean",
     "mean(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False, *, "
     "dtype? dtype=None)",
     run_mean, OP_LINEAR, NULL},
    {"nanmean",
     "nanmean(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False, *, "
     "dtype? dtype=None)",
     run_nanmean, 0, "mean of the elements that are not NaN"},
    {"sum_to_size", "sum_to_size(Tensor input|self, int[]... size)", run_sum_to_size, OP_LINEAR,
     "sums over what broadcasting the size would repeat"},
    {"trace", "trace(Tensor input|self)", run_trace, OP_LINEAR, NULL},
    {"prod",
     "prod(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False, *, "
     "dtype? dtype=None)",
     run_prod, 0, NULL},
    {"count_nonzero", "count_nonzero(Tensor input|self|x, int[]? dim|axis=None)", run_count_nonzero,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"all", "all(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False)", run_all,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"any", "any(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False)", run_any,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"logsumexp special.logsumexp special_logsumexp",
     "logsumexp(Tensor input|self|x, int[] dim|axis, bool keepdim|keepdims=False)", run_logsumexp,
     0, "log(sum(exp(x - max))) + max"},
    {0},
};
