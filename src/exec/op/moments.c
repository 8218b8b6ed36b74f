/* Variances and what is made of them. Two passes: the mean, then the squared deviations from it,
 * corrected for what the mean was off by. */
#include "exec/op/fold.h"
#include "exec/op/rows.h"

struct moments {
    struct op *o;
    struct span3 span;
    real freedom; /* degrees of it: what the squares are divided by */
    bool root;    /* the standard deviation */
    real *value;  /* a result each row */
    real *mean;   /* of each row */
    real *scratch;
    const real *grad;
};

static void moment_row(const struct row *row, void *context)
{
    const struct moments *m = context;
    const int64_t n = row->n;
    const real mean = op_between_one(m->o, real_sum(row->in[0], n, 1) / (real)n);
    for (int64_t k = 0; k < n; k++)
        m->scratch[k] = row->in[0][k] - mean;
    op_between(m->o, m->scratch, n);
    const real off = m->o->call->noise ? 0 : real_sum(m->scratch, n, 1);
    const real squares = real_dot(m->scratch, m->scratch, n) - (n ? off * (off / (real)n) : 0);
    const real variance = (squares > 0 || isnan(squares) ? squares : 0) / m->freedom;
    m->mean[row->at] = mean;
    m->value[row->at] = m->root ? sqrt(variance) : variance;
}

/* gx = 2 g (x - mean) / freedom; for the root g is g / (2 y), and 0 where y is 0. */
static void moment_back_row(const struct row *row, void *context)
{
    const struct moments *m = context;
    const real mean = m->mean[row->at], y = m->value[row->at];
    real g = m->grad[row->at];
    if (m->root)
        g = y == 0 ? 0 : g / (2 * y);
    const real factor = op_between_one(m->o, op_between_one(m->o, 2 / m->freedom) * g);
    for (int64_t k = 0; k < row->n; k++)
        m->scratch[k] = row->in[0][k] - mean;
    op_between(m->o, m->scratch, row->n);
    for (int64_t k = 0; k < row->n; k++)
        row->out[0][k] += factor * m->scratch[k];
}

static void moment_back(struct op *o, struct val *out)
{
    struct moments m = *(const struct moments *)out->saved;
    struct row rows = {.in = {out->in[0]->f}, .out = {val_grad(o, out->in[0])}};
    m.grad = out->grad;
    if (rows.out[0])
        each_row(o, m.span, &rows, moment_back_row, &m);
}

static struct val *moment(struct op *o, struct val *x, uint64_t dims, bool keepdim,
                          double correction, bool root)
{
    struct fold fold;
    if (!fold_begin(o, x, dims, keepdim, &fold))
        return NULL;
    struct val *out = fold_new(o, &fold, x->dtype);
    struct moments *m = op_alloc(o, 1, sizeof *m);
    if (!out || !m)
        return NULL;
    double freedom = (double)fold.span.length - correction;
    *m = (struct moments){.o = o,
                          .span = fold.span,
                          .freedom = freedom > 0 ? (real)freedom : 0,
                          .root = root,
                          .value = out->f,
                          .mean = op_alloc(o, out->count, sizeof(real)),
                          .scratch = op_alloc(o, fold.span.length, sizeof(real))};
    if (!each_row(o, fold.span, &(struct row){.in = {fold.x->f}}, moment_row, m))
        return NULL;
    return val_node(o, out, moment_back, fold.x, NULL, NULL, m);
}

/* The second argument is a dimension, several, or (a bool) whether to correct. */
static void run_moment(struct op *o, bool root, bool with_mean)
{
    struct val *x = arg_tensor(o, "input");
    const struct plumb_arg *dim = arg_raw(o, "dim");
    if (!x || !dim)
        return;
    if (!x->f) {
        op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                plumb_dtype_info(x->dtype)->name);
        return;
    }
    double correction = arg_bool(o, "unbiased") ? 1 : 0;
    uint64_t dims = 0;
    if (dim->kind == PLUMB_ARG_BOOL)
        correction = dim->integer ? 1 : 0;
    else if (dim->kind == PLUMB_ARG_INT || dim->kind == PLUMB_ARG_LIST)
        dims = arg_mask(o, "dim", x);
    else if (dim->kind != PLUMB_ARG_NONE)
        op_fail(o, PLUMB_E_ARG, "%s: 'dim' is neither a dimension nor a list", o->call->name);
    if (arg_given(o, "correction"))
        correction = arg_number(o, "correction");
    bool keepdim = arg_bool(o, "keepdim");
    op_return(o, moment(o, x, dims, keepdim, correction, root));
    if (with_mean)
        op_return(o, v_mean(o, x, dims, keepdim));
}

static void run_var(struct op *o)
{
    run_moment(o, false, false);
}

static void run_std(struct op *o)
{
    run_moment(o, true, false);
}

static void run_var_mean(struct op *o)
{
    run_moment(o, false, true);
}

static void run_std_mean(struct op *o)
{
    run_moment(o, true, true);
}

/* ---- Covariance ------------------------------------------------------------------------------ */

/* What the sum of weighted products is divided by. */
static struct val *cov_divisor(struct op *o, struct val *weight, struct val *aweights, int64_t n,
                               double correction)
{
    if (!weight)
        return v_number(o, (double)n > correction ? (double)n - correction : 0);
    struct val *sum = v_sum(o, weight, 0, false), *lost = v_number(o, correction);
    if (aweights)
        lost =
            v_div(o, v_scale(o, v_sum(o, v_mul(o, weight, aweights), 0, false), correction), sum);
    return v_maximum(o, v_sub(o, v_float(o, sum), lost), v_number(o, 0));
}

static struct val *cov_weight(struct op *o, const char *name, int64_t n)
{
    struct val *w = arg_tensor(o, name);
    if (w && (w->rank > 1 || w->count != n))
        return op_fail(o, PLUMB_E_ARG,
                       "%s: '%s' must hold one weight for each of %lld observations", o->call->name,
                       name, (long long)n);
    return w;
}

/* x is [variables][observations]. */
static struct val *covariance(struct op *o, struct val *x, double correction)
{
    if (x && x->rank > 2)
        return op_fail(o, PLUMB_E_ARG, "%s takes at most 2 dimensions, not %u", o->call->name,
                       x->rank);
    if (!x)
        return NULL;
    int64_t matrix[2] = {x->rank == 2 ? x->shape[0] : 1, x->rank == 2 ? x->shape[1] : x->count};
    x = v_float(o, v_reshape(o, x, 2, matrix));
    struct val *fweights = cov_weight(o, "fweights", matrix[1]);
    struct val *aweights = cov_weight(o, "aweights", matrix[1]);
    struct val *weight = fweights && aweights ? v_mul(o, fweights, aweights)
                         : fweights           ? fweights
                                              : aweights;
    struct val *mean =
        weight ? v_div(o, v_sum(o, v_mul(o, x, weight), 2, true), v_sum(o, weight, 0, false))
               : v_mean(o, x, 2, true);
    struct val *away = v_sub(o, x, mean);
    struct val *other = v_transpose(o, weight ? v_mul(o, away, weight) : away, 0, 1);
    struct val *c =
        v_div(o, v_matmul(o, away, other), cov_divisor(o, weight, aweights, matrix[1], correction));
    return matrix[0] == 1 ? v_reshape(o, c, 0, NULL) : c;
}

static void run_cov(struct op *o)
{
    op_return(o, covariance(o, arg_tensor(o, "input"), (double)arg_int(o, "correction")));
}

static void run_corrcoef(struct op *o)
{
    struct val *c = covariance(o, arg_tensor(o, "input"), 1);
    if (c && c->rank == 0) {
        op_return(o, v_div(o, c, c));
        return;
    }
    if (!c)
        return;
    int64_t n = c->shape[0], step = n + 1;
    struct val *deviation = v_sqrt(o, v_strided(o, c, 1, &n, &step, 0));
    c = v_div(o, v_div(o, c, v_unsqueeze(o, deviation, 1)), deviation);
    op_return(o, v_clamp(o, c, -1, 1));
}

const struct op_def op_moments[] = {
    {"var",
     "var(Tensor input|self|x, any dim|axis=None, bool unbiased=True, bool keepdim|keepdims=False, "
     "*, number? correction=None)",
     run_var, 0, "sum((x - mean)^2) / (n - correction)"},
    {"std",
     "std(Tensor input|self|x, any dim|axis=None, bool unbiased=True, bool keepdim|keepdims=False, "
     "*, number? correction=None)",
     run_std, 0, "sqrt(sum((x - mean)^2) / (n - correction))"},
    {"var_mean",
     "var_mean(Tensor input|self|x, any dim|axis=None, bool unbiased=True, "
     "bool keepdim|keepdims=False, *, number? correction=None)",
     run_var_mean, 0, NULL},
    {"std_mean",
     "std_mean(Tensor input|self|x, any dim|axis=None, bool unbiased=True, "
     "bool keepdim|keepdims=False, *, number? correction=None)",
     run_std_mean, 0, NULL},
    {"cov",
     "cov(Tensor input|self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)",
     run_cov, 0, "(x - mean) w (x - mean)^T / (sum(w) - correction)"},
    {"corrcoef", "corrcoef(Tensor input|self)", run_corrcoef, 0,
     "cov(i, j) / sqrt(cov(i, i) cov(j, j))"},
    {0},
};
