/* Maxima and minima. NaN counts as more extreme than any number; of equal elements the first is
 * taken. */
#include "exec/op/fold.h"
#include "exec/op/rows.h"

/* sign is 1 for maxima, -1 for minima. */
static bool beats(real a, real b, real sign)
{
    return !isnan(b) && (isnan(a) || sign * a > sign * b);
}

/* The most extreme value of a row. The lanes look past NaN, which is noticed on the side, so that
 * the loop can be vectorised. */
static real extreme_value(const real *x, int64_t n, real sign)
{
    enum { LANES = 8 };
    real best[LANES], other[LANES] = {0};
    for (int l = 0; l < LANES; l++)
        best[l] = -R(INFINITY);
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) {
            real v = sign * x[k + l];
            best[l] = v > best[l] ? v : best[l];
            other[l] += x[k + l] - x[k + l]; /* NaN for NaN, and for infinity */
        }
    bool doubtful = false;
    for (int l = 0; l < LANES; l++) {
        best[0] = best[l] > best[0] ? best[l] : best[0];
        doubtful = doubtful || isnan(other[l]);
    }
    for (; k < n; k++) {
        if (isnan(x[k]))
            return x[k];
        best[0] = sign * x[k] > best[0] ? sign * x[k] : best[0];
    }
    for (k = 0; doubtful && k < n; k++)
        if (isnan(x[k]))
            return x[k];
    return sign * best[0];
}

static int64_t extreme_at(const real *x, int64_t n, real sign)
{
    real value = extreme_value(x, n, sign);
    int64_t k = 0;
    while (k + 1 < n && !(x[k] == value || (isnan(value) && isnan(x[k]))))
        k++;
    return k;
}

/* For each column the row that holds its extreme value. */
static void extreme_rows(const real *x, int64_t rows, int64_t columns, real sign, real *value,
                         int64_t *at)
{
    for (int64_t c = 0; c < columns; c++)
        value[c] = x[c];
    for (int64_t r = 1; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            if (beats(x[r * columns + c], value[c], sign)) {
                value[c] = x[r * columns + c];
                at[c] = r;
            }
}

static void extreme_ints(const int64_t *x, int64_t rows, int64_t columns, bool most, int64_t *value,
                         int64_t *at)
{
    for (int64_t c = 0; c < columns; c++)
        value[c] = x[c];
    for (int64_t r = 1; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t v = x[r * columns + c];
            if (most ? v > value[c] : v < value[c]) {
                value[c] = v;
                at[c] = r;
            }
        }
}

static bool not_empty(struct op *o, struct span3 span)
{
    if (span.length > 0 || span.outer == 0 || span.inner == 0)
        return true;
    op_fail(o, PLUMB_E_ARG, "%s over no elements at all has no value", o->call->name);
    return false;
}

struct place {
    struct span3 span;
    const int64_t *at; /* which row each result came from */
};

static void extreme_back(struct op *o, struct val *out)
{
    const struct place *p = out->saved;
    real *g = val_grad(o, out->in[0]);
    for (int64_t k = 0; g && k < p->span.outer; k++)
        for (int64_t c = 0; c < p->span.inner; c++) {
            int64_t to = k * p->span.inner + c;
            g[(k * p->span.length + p->at[to]) * p->span.inner + c] += out->grad[to];
        }
}

static struct val *extreme_dim(struct op *o, struct val *x, unsigned dim, bool keepdim, bool most,
                               struct val **index)
{
    struct fold fold;
    if (!fold_begin(o, x, (uint64_t)1 << dim, keepdim, &fold))
        return NULL;
    struct span3 span = fold.span;
    const real sign = most ? 1 : -1;
    if (!not_empty(o, span))
        return NULL;
    struct val *out = fold_new(o, &fold, x->dtype), *at = fold_new(o, &fold, PLUMB_I64);
    struct place *place = op_alloc(o, 1, sizeof *place);
    if (!out || !at || !place)
        return NULL;
    *place = (struct place){span, at->i};
    for (int64_t k = 0; k < span.outer && out->count > 0; k++) {
        int64_t from = k * span.length * span.inner, to = k * span.inner;
        if (x->i) {
            extreme_ints(x->i + from, span.length, span.inner, most, out->i + to, at->i + to);
        } else if (span.inner > 1) {
            extreme_rows(x->f + from, span.length, span.inner, sign, out->f + to, at->i + to);
        } else {
            at->i[to] = extreme_at(x->f + from, span.length, sign);
            out->f[to] = x->f[from + at->i[to]];
        }
    }
    if (index)
        *index = at;
    return val_moved(o, out, extreme_back, x, NULL, NULL, place);
}

struct val *v_max_dim(struct op *o, struct val *x, unsigned dim, bool keepdim, struct val **index)
{
    return extreme_dim(o, x, dim, keepdim, true, index);
}

struct val *v_min_dim(struct op *o, struct val *x, unsigned dim, bool keepdim, struct val **index)
{
    return extreme_dim(o, x, dim, keepdim, false, index);
}

/* ---- Values only: the gradient is shared evenly ---------------------------------------------- */

struct share {
    struct span3 span;
    bool nan_too;
    const struct val *out;
};

static void share_row(const struct row *row, void *context)
{
    const struct share *s = context;
    const real value = s->out->f[row->at], *x = row->in[0];
    const bool nan = s->nan_too && isnan(value);
    int64_t count = 0;
    for (int64_t k = 0; k < row->n; k++)
        count += nan ? isnan(x[k]) : x[k] == value;
    const real g = s->out->grad[row->at] / (real)count;
    for (int64_t k = 0; k < row->n; k++)
        row->out[0][k] += g * (real)(nan ? isnan(x[k]) : x[k] == value);
}

static void share_back(struct op *o, struct val *out)
{
    struct share s = *(const struct share *)out->saved;
    struct row rows = {.in = {out->in[0]->f}, .out = {val_grad(o, out->in[0])}};
    if (rows.out[0])
        each_row(o, s.span, &rows, share_row, &s);
}

struct val *v_share(struct op *o, struct val *out, struct val *x, struct span3 span, bool nan_too)
{
    struct share *s = op_alloc(o, 1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct share){span, nan_too, out};
    return val_moved(o, out, share_back, x, NULL, NULL, s);
}

struct values {
    struct val *out;
    real sign;
};

static void value_row(const struct row *row, void *context)
{
    const struct values *v = context;
    v->out->f[row->at] = extreme_value(row->in[0], row->n, v->sign);
}

static void value_int_row(const struct row *row, void *context)
{
    const struct values *v = context;
    int64_t best = row->n ? row->int_in[0] : 0;
    for (int64_t k = 1; k < row->n; k++)
        if (v->sign > 0 ? row->int_in[k] > best : row->int_in[k] < best)
            best = row->int_in[k];
    v->out->i[row->at] = best;
}

static struct val *extreme_of(struct op *o, struct val *x, uint64_t dims, bool keepdim, bool most,
                              bool nan_too)
{
    struct fold fold;
    if (!fold_begin(o, x, dims, keepdim, &fold) || !not_empty(o, fold.span))
        return NULL;
    struct values values = {fold_new(o, &fold, x->dtype), most ? 1 : -1};
    struct row rows = {.in = {fold.x->f}, .int_in = fold.x->i};
    if (!values.out || !each_row(o, fold.span, &rows, x->f ? value_row : value_int_row, &values))
        return NULL;
    return v_share(o, values.out, fold.x, fold.span, nan_too);
}

struct val *v_extreme(struct op *o, struct val *x, uint64_t dims, bool keepdim, bool most)
{
    return extreme_of(o, x, dims, keepdim, most, false);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static void run_extreme(struct op *o, bool most)
{
    struct val *x = arg_tensor(o, "input"), *index = NULL;
    if (arg_given(o, "other")) {
        struct val *other = arg_tensor(o, "other");
        op_return(o, most ? v_maximum(o, x, other) : v_minimum(o, x, other));
    } else if (arg_given(o, "dim")) {
        unsigned dim = val_dim(o, x, arg_int(o, "dim"));
        op_return(o, extreme_dim(o, x, dim, arg_bool(o, "keepdim"), most, &index));
        op_return(o, index);
    } else {
        op_return(o, extreme_of(o, x, 0, false, most, true));
    }
}

static void run_max(struct op *o)
{
    run_extreme(o, true);
}

static void run_min(struct op *o)
{
    run_extreme(o, false);
}

static void run_amax(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, extreme_of(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"), true, false));
}

static void run_amin(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, extreme_of(o, x, arg_mask(o, "dim", x), arg_bool(o, "keepdim"), false, false));
}

static void run_aminmax(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    uint64_t dims = arg_mask(o, "dim", x);
    bool keepdim = arg_bool(o, "keepdim");
    struct val *both[] = {extreme_of(o, x, dims, keepdim, false, false),
                          extreme_of(o, x, dims, keepdim, true, false)};
    const bool number = x && x->rank == 0 && keepdim && arg_given(o, "dim");
    for (size_t k = 0; k < 2; k++) /* of a number PyTorch keeps a dimension that it did not have */
        op_return(o, number ? v_unsqueeze(o, both[k], 0) : both[k]);
}

static void run_arg(struct op *o, bool most)
{
    struct val *x = arg_tensor(o, "input"), *index = NULL;
    bool keepdim = arg_bool(o, "keepdim");
    if (!x)
        return;
    if (arg_given(o, "dim")) {
        extreme_dim(o, x, val_dim(o, x, arg_int(o, "dim")), keepdim, most, &index);
    } else {
        int64_t ones[OP_RANK];
        for (unsigned d = 0; d < x->rank; d++)
            ones[d] = 1;
        extreme_dim(o, val_alias(o, x, 1, &x->count), 0, false, most, &index);
        index = val_alias(o, index, keepdim ? x->rank : 0, ones);
    }
    op_return(o, index);
}

static void run_argmax(struct op *o)
{
    run_arg(o, true);
}

static void run_argmin(struct op *o)
{
    run_arg(o, false);
}

const struct op_def op_extreme[] = {
    {"max",
     "max(Tensor input|self|x)\n"
     "max(Tensor input|self|x, Tensor other)\n"
     "max(Tensor input|self|x, int dim|axis, bool keepdim|keepdims=False)",
     run_max, 0, "with dim: (values, indices), the first index of equal values; NaN wins"},
    {"min",
     "min(Tensor input|self|x)\n"
     "min(Tensor input|self|x, Tensor other)\n"
     "min(Tensor input|self|x, int dim|axis, bool keepdim|keepdims=False)",
     run_min, 0, "with dim: (values, indices), the first index of equal values; NaN wins"},
    {"amax", "amax(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False)",
     run_amax, 0, "equal maxima share the gradient evenly"},
    {"amin", "amin(Tensor input|self|x, int[]? dim|axis=None, bool keepdim|keepdims=False)",
     run_amin, 0, "equal minima share the gradient evenly"},
    {"aminmax _aminmax",
     "aminmax(Tensor input|self|x, int? dim|axis=None, bool keepdim|keepdims=False)", run_aminmax,
     0, NULL},
    {"argmax", "argmax(Tensor input|self|x, int? dim|axis=None, bool keepdim|keepdims=False)",
     run_argmax, OP_NO_GRAD, "the first index of equal values; NaN wins"},
    {"argmin", "argmin(Tensor input|self|x, int? dim|axis=None, bool keepdim|keepdims=False)",
     run_argmin, OP_NO_GRAD, "the first index of equal values; NaN wins"},
    {0},
};
