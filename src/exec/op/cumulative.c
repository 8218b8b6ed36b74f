/* Running sums, products and extremes, differences, and integrals by trapezoids. */
#include "exec/op/fold.h"
#include "exec/op/rows.h"
#include "exec/op/sum.h"

/* ---- Sum and product ------------------------------------------------------------------------- */

static void cumsum_row(const struct row *row, void *context)
{
    (void)context;
    struct tally t = {0, 0};
    for (int64_t k = 0; k < row->n; k++) {
        tally_add(&t, row->in[0][k]);
        row->out[0][k] = tally_value(t.sum, t.lost);
    }
}

static void cumsum_back_row(const struct row *row, void *context)
{
    (void)context;
    struct tally t = {0, 0};
    for (int64_t k = row->n - 1; k >= 0; k--) {
        tally_add(&t, row->in[2][k]);
        row->out[0][k] += tally_value(t.sum, t.lost);
    }
}

static void cumsum_int_row(const struct row *row, void *context)
{
    (void)context;
    uint64_t sum = 0;
    for (int64_t k = 0; k < row->n; k++)
        row->int_out[k] = (int64_t)(sum += (uint64_t)row->int_in[k]);
}

static void cumprod_row(const struct row *row, void *context)
{
    (void)context;
    real product = 1;
    for (int64_t k = 0; k < row->n; k++)
        row->out[0][k] = product *= row->in[0][k];
}

/* gx_k = y_(k-1) s_k with s_k = g_k + x_(k+1) s_(k+1): no division, so zeros are no special
 * case. */
static void cumprod_back_row(const struct row *row, void *context)
{
    (void)context;
    const real *x = row->in[0], *y = row->in[1], *g = row->in[2];
    real s = 0;
    for (int64_t k = row->n - 1; k >= 0; k--) {
        s = g[k] + (k + 1 < row->n ? x[k + 1] * s : 0);
        row->out[0][k] += (k > 0 ? y[k - 1] : 1) * s;
    }
}

static void cumprod_int_row(const struct row *row, void *context)
{
    (void)context;
    uint64_t product = 1;
    for (int64_t k = 0; k < row->n; k++)
        row->int_out[k] = (int64_t)(product *= (uint64_t)row->int_in[k]);
}

/* ---- Log of the sum of exponentials ---------------------------------------------------------- */

static void logcumsumexp_row(const struct row *row, void *context)
{
    (void)context;
    real most = -R(INFINITY), sum = 0; /* of exp(x - most) */
    for (int64_t k = 0; k < row->n; k++) {
        const real x = row->in[0][k];
        if (isnan(x) || isnan(most)) {
            most = R(NAN);
        } else if (x > most) {
            sum = sum * exp(most - x) + 1;
            most = x;
        } else if (!isinf(most)) {
            sum += exp(x - most);
        }
        row->out[0][k] = isinf(most) ? most : most + log(sum);
    }
}

/* gx_k = exp(x_k - y_k) a_k with a_k = g_k + exp(y_k - y_(k+1)) a_(k+1); no exponent is
 * positive. */
static void logcumsumexp_back_row(const struct row *row, void *context)
{
    (void)context;
    const real *x = row->in[0], *y = row->in[1], *g = row->in[2];
    real a = 0;
    for (int64_t k = row->n - 1; k >= 0; k--) {
        a = g[k] + (k + 1 < row->n ? exp(y[k] - y[k + 1]) * a : 0);
        row->out[0][k] += exp(x[k] - y[k]) * a;
    }
}

/* ---- The same for all of them ---------------------------------------------------------------- */

struct running {
    row_fn *forward, *int_forward, *backward; /* backward: in = x, y, g */
};

struct running_saved {
    struct span3 span;
    row_fn *backward;
};

static void running_back(struct op *o, struct val *out)
{
    const struct running_saved *s = out->saved;
    struct row rows = {.in = {out->in[0]->f, out->f, out->grad}, .out = {val_grad(o, out->in[0])}};
    if (rows.out[0])
        each_row(o, s->span, &rows, s->backward, NULL);
}

static struct val *v_running(struct op *o, struct val *x, unsigned dim, const struct running *how)
{
    struct val *out = x ? val_like(o, x, x->f ? x->dtype : PLUMB_I64) : NULL;
    struct running_saved *saved = op_alloc(o, 1, sizeof *saved);
    if (!out || !saved)
        return NULL;
    *saved = (struct running_saved){val_span(x, dim), how->backward};
    op_terms(x->rank ? x->shape[dim] : 1);
    struct row rows = {
        .in = {x->f}, .out = {out->f}, .int_in = x->i, .int_out = out->i, .fresh = true};
    each_row(o, saved->span, &rows, x->f ? how->forward : how->int_forward, NULL);
    return val_node(o, out, running_back, x, NULL, NULL, saved);
}

static const struct running cumsum_fn = {cumsum_row, cumsum_int_row, cumsum_back_row};
static const struct running cumprod_fn = {cumprod_row, cumprod_int_row, cumprod_back_row};
static const struct running logcumsumexp_fn = {logcumsumexp_row, NULL, logcumsumexp_back_row};

static void run_running(struct op *o, const struct running *how)
{
    struct val *x = arg_tensor(o, "input");
    const enum plumb_dtype dtype = arg_dtype(o, "dtype");
    if (dtype != PLUMB_DTYPE_COUNT)
        x = v_cast(o, x, dtype);
    if (x && x->i && !how->int_forward)
        op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                plumb_dtype_info(x->dtype)->name);
    struct val *out = v_running(o, x, val_dim(o, x, arg_int(o, "dim")), how);
    op_return(o, dtype != PLUMB_DTYPE_COUNT ? v_cast(o, out, dtype) : out);
}

static void run_cumsum(struct op *o)
{
    run_running(o, &cumsum_fn);
}

static void run_cumprod(struct op *o)
{
    run_running(o, &cumprod_fn);
}

static void run_logcumsumexp(struct op *o)
{
    run_running(o, &logcumsumexp_fn);
}

/* ---- Running extremes: of equal values the last, and NaN stays ------------------------------- */

static void cummax_row(const struct row *row, void *context)
{
    const bool most = *(const bool *)context;
    int64_t best = 0;
    for (int64_t k = 0; k < row->n; k++) {
        if (row->int_in) {
            const int64_t v = row->int_in[k], b = row->int_in[best];
            best = (most ? v >= b : v <= b) ? k : best;
        } else {
            const real v = row->in[0][k], b = row->in[0][best];
            best = isnan(v) || (!isnan(b) && (most ? v >= b : v <= b)) ? k : best;
        }
        row->int_out[k] = best;
    }
}

static void run_cumextreme(struct op *o, bool most)
{
    struct val *x = arg_tensor(o, "input");
    if (!x)
        return;
    const struct span3 span = val_span(x, val_dim(o, x, arg_int(o, "dim")));
    struct val *index = val_like(o, x, PLUMB_I64);
    int64_t *map = op_alloc(o, x->count, sizeof *map);
    if (!index || !map)
        return;
    struct row rows = {.in = {x->f}, .int_in = x->i, .int_out = index->i, .fresh = true};
    each_row(o, span, &rows, cummax_row, &most);
    for (int64_t k = 0; k < x->count; k++) {
        const int64_t block = k / (span.length * span.inner) * span.length;
        map[k] = (block + index->i[k]) * span.inner + k % span.inner;
    }
    op_return(o, v_map(o, x, x->rank, x->shape, map));
    op_return(o, index);
}

static void run_cummax(struct op *o)
{
    run_cumextreme(o, true);
}

static void run_cummin(struct op *o)
{
    run_cumextreme(o, false);
}

/* ---- Differences ----------------------------------------------------------------------------- */

static struct val *with_ends(struct op *o, struct val *x, unsigned dim)
{
    struct val *prepend = arg_tensor(o, "prepend"), *append = arg_tensor(o, "append");
    struct val *parts[3];
    size_t n = 0;
    if (prepend)
        parts[n++] = prepend;
    parts[n++] = x;
    if (append)
        parts[n++] = append;
    return n == 1 ? x : v_cat(o, parts, n, dim);
}

static void run_diff(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t n = arg_int(o, "n");
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (x && (x->rank == 0 || n < 0))
        op_fail(o, PLUMB_E_ARG,
                "diff takes at least one dimension and an order that is not negative");
    if (!x || o->failed)
        return;
    if (n > 0)
        x = with_ends(o, x, dim);
    for (n = x && n > x->shape[dim] ? x->shape[dim] : n; x && n > 0; n--) {
        const int64_t left = x->shape[dim] > 0 ? x->shape[dim] - 1 : 0;
        struct val *a = v_narrow(o, x, dim, 0, left);
        struct val *b = v_narrow(o, x, dim, x->shape[dim] - left, left);
        x = x->dtype == PLUMB_BOOL ? v_compare(o, CMP_NE, b, a) : v_sub(o, b, a);
    }
    op_return(o, x);
}

/* ---- Trapezoids ------------------------------------------------------------------------------ */

/* The widths between the points of x, in a shape that goes with y's. */
static struct val *widths(struct op *o, struct val *x, const struct val *y, unsigned dim)
{
    int64_t shape[OP_RANK];
    if (!x)
        return NULL;
    if (x->rank == 1) {
        for (unsigned d = 0; d < y->rank; d++)
            shape[d] = d == dim ? x->count : 1;
        x = v_reshape(o, x, y->rank, shape);
    } else if (x->rank < y->rank) {
        const unsigned ahead = y->rank - x->rank;
        for (unsigned d = 0; d < y->rank; d++)
            shape[d] = d < ahead ? 1 : x->shape[d - ahead];
        x = v_reshape(o, x, y->rank, shape);
    }
    if (!x)
        return NULL;
    const int64_t n = x->rank > dim ? x->shape[dim] : 0;
    if (x->rank != y->rank || (n != y->shape[dim] && n != 1) || n == 0)
        return op_fail(o, PLUMB_E_ARG, "%s: x has %lld points along the dimension, y has %lld",
                       o->call->name, (long long)n, (long long)y->shape[dim]);
    if (n == 1)
        return v_sub(o, x, x);
    return v_sub(o, v_narrow(o, x, dim, 1, n - 1), v_narrow(o, x, dim, 0, n - 1));
}

static void trapezoids(struct op *o, bool running)
{
    struct val *y = v_float(o, arg_tensor(o, "input"));
    const unsigned dim = val_dim(o, y, arg_int(o, "dim"));
    if (y && y->rank == 0)
        op_fail(o, PLUMB_E_ARG, "%s takes at least one dimension", o->call->name);
    if (!y || o->failed)
        return;
    const int64_t n = y->shape[dim] > 0 ? y->shape[dim] - 1 : 0;
    struct val *sums =
        v_add(o, v_narrow(o, y, dim, 0, n), v_narrow(o, y, dim, y->shape[dim] - n, n));
    if (arg_given(o, "x"))
        sums = v_scale(o, v_mul(o, sums, widths(o, arg_tensor(o, "x"), y, dim)), 0.5);
    else
        sums = v_scale(o, sums, arg_number(o, "dx") / 2);
    op_return(o, running ? v_running(o, sums, dim, &cumsum_fn)
                         : v_sum(o, sums, (uint64_t)1 << dim, false));
}

static void run_trapezoid(struct op *o)
{
    trapezoids(o, false);
}

static void run_cumulative_trapezoid(struct op *o)
{
    trapezoids(o, true);
}

const struct op_def op_cumulative[] = {
    {"cumsum cumsum_", "cumsum(Tensor input|self, int dim|axis, *, dtype? dtype=None)", run_cumsum,
     0, NULL},
    {"cumprod cumprod_", "cumprod(Tensor input|self, int dim|axis, *, dtype? dtype=None)",
     run_cumprod, OP_COMPOSITE, NULL},
    {"logcumsumexp", "logcumsumexp(Tensor input|self, int dim|axis)", run_logcumsumexp,
     OP_COMPOSITE, "log(cumsum(exp(x)))"},
    {"cummax", "cummax(Tensor input|self, int dim|axis)", run_cummax, OP_DECISION,
     "(values, indices); the last index of equal values"},
    {"cummin", "cummin(Tensor input|self, int dim|axis)", run_cummin, OP_DECISION,
     "(values, indices); the last index of equal values"},
    {"diff",
     "diff(Tensor input|self, int n=1, int dim|axis=-1, Tensor? prepend=None, "
     "Tensor? append=None)",
     run_diff, 0, NULL},
    {"trapezoid trapz",
     "trapezoid(Tensor input|y, Tensor x, *, int dim|axis=-1)\n"
     "trapezoid(Tensor input|y, *, number dx=1, int dim|axis=-1)",
     run_trapezoid, OP_COMPOSITE, "sum((y_k + y_(k+1)) / 2 (x_(k+1) - x_k))"},
    {"cumulative_trapezoid",
     "cumulative_trapezoid(Tensor input|y, Tensor x, *, int dim|axis=-1)\n"
     "cumulative_trapezoid(Tensor input|y, *, number dx=1, int dim|axis=-1)",
     run_cumulative_trapezoid, OP_COMPOSITE, NULL},
    {0},
};
