/* Medians, modes, quantiles: an element at a certain place in the order. */
#include "exec/op/fold.h"
#include "exec/op/order.h"

#include <string.h>

/* The order starts with the k-th place. */
static void choose_kth(const struct row *row, const struct chooser *self)
{
    sort_row(row, false, self->order, self->scratch);
    self->order[0] = self->order[self->k];
}

static int64_t count_numbers(const struct row *row)
{
    int64_t count = 0;
    for (int64_t k = 0; k < row->n; k++)
        count += !row->in[0] || !isnan(row->in[0][k]);
    return count;
}

/* The lower median; NaN, the first one, if there is any. */
static void choose_median(const struct row *row, const struct chooser *self)
{
    const int64_t numbers = count_numbers(row);
    sort_row(row, false, self->order, self->scratch);
    self->order[0] = self->order[numbers < row->n ? numbers : (row->n - 1) / 2];
}

/* The lower median of the numbers; NaN when there is none. */
static void choose_nanmedian(const struct row *row, const struct chooser *self)
{
    const int64_t numbers = count_numbers(row);
    sort_row(row, false, self->order, self->scratch);
    self->order[0] = self->order[numbers > 0 ? (numbers - 1) / 2 : 0];
}

/* The smallest of the most frequent values, at its last place. */
static void choose_mode(const struct row *row, const struct chooser *self)
{
    const int64_t *order = self->order;
    int64_t best = 0, most = 0;
    sort_row(row, false, self->order, self->scratch);
    for (int64_t k = 0, run = 0; k < row->n; k++) {
        const bool same = k > 0 && (row->int_in ? row->int_in[order[k]] == row->int_in[order[k - 1]]
                                                : row->in[0][order[k]] == row->in[0][order[k - 1]]);
        run = same ? run + 1 : 1;
        if (run > most) {
            most = run;
            best = k;
        }
    }
    self->order[0] = order[best];
}

static bool check_length(struct op *o, const struct val *x, unsigned dim)
{
    if (x && x->rank && x->shape[dim] == 0)
        op_fail(o, PLUMB_E_ARG, "%s over a dimension of 0", o->call->name);
    return x && !o->failed;
}

static void choose_one(struct op *o, struct val *x, struct chooser chooser)
{
    struct val *index = NULL;
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    chooser.take = 1;
    if (!check_length(o, x, dim))
        return;
    op_return(o, v_choose(o, x, dim, chooser, !arg_bool(o, "keepdim"), &index));
    op_return(o, index);
}

static void run_kthvalue(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t k = arg_int(o, "k");
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!check_length(o, x, dim))
        return;
    const int64_t n = x->rank ? x->shape[dim] : 1;
    if (k < 1 || k > n)
        op_fail(o, PLUMB_E_ARG, "kthvalue: k is %lld, the dimension has %lld elements",
                (long long)k, (long long)n);
    else
        choose_one(o, x, (struct chooser){.fn = choose_kth, .k = k - 1});
}

/* Of all elements: those that equal the median share its gradient. */
static void return_whole_median(struct op *o, struct val *x, struct chooser chooser)
{
    struct val *out = val_new(o, x->dtype, 0, NULL);
    struct row row = {.in = {x->f}, .int_in = x->i, .n = x->count};
    chooser.order = op_alloc(o, x->count + 1, sizeof(int64_t));
    chooser.scratch = op_alloc(o, x->count + 1, sizeof(int64_t));
    if (!out || o->failed)
        return;
    if (x->count == 0) {
        if (out->f)
            out->f[0] = R(NAN);
    } else {
        chooser.fn(&row, &chooser);
        if (out->f)
            out->f[0] = x->f[chooser.order[0]];
        else
            out->i[0] = x->i[chooser.order[0]];
    }
    op_return(o, v_share(o, out, x, (struct span3){1, x->count, 1}, true));
}

static void median(struct op *o, struct chooser chooser)
{
    struct val *x = arg_tensor(o, "input");
    if (arg_given(o, "dim"))
        choose_one(o, x, chooser);
    else if (x)
        return_whole_median(o, x, chooser);
}

static void run_median(struct op *o)
{
    median(o, (struct chooser){.fn = choose_median});
}

static void run_nanmedian(struct op *o)
{
    median(o, (struct chooser){.fn = choose_nanmedian});
}

static void run_mode(struct op *o)
{
    choose_one(o, arg_tensor(o, "input"), (struct chooser){.fn = choose_mode});
}

/* ---- Quantiles ------------------------------------------------------------------------------- */

enum interpolation { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST };

static bool read_interpolation(struct op *o, enum interpolation *how)
{
    static const char *const words[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    const char *text = arg_text(o, "interpolation");
    for (size_t k = 0; text && k < sizeof words / sizeof *words; k++)
        if (strcmp(text, words[k]) == 0) {
            *how = (enum interpolation)k;
            return true;
        }
    op_fail(o, PLUMB_E_ARG, "%s: there is no interpolation '%s'", o->call->name, text ? text : "");
    return false;
}

struct quantiles {
    struct span3 span;
    const struct val *q;
    enum interpolation how;
    bool skip_nan;
    int64_t *order, *scratch;
    int64_t *below, *above; /* [q][row]: where the neighbours are */
    real *weight;           /* of the one above */
    real *slope;            /* of that weight in q */
};

static real exact_rank(const struct quantiles *s, real q, int64_t numbers, int64_t n)
{
    if (!s->skip_nan)
        return numbers < n ? (real)(n - 1) : q * (real)(n - 1);
    const real rank = q * (real)(numbers - 1);
    real whole = s->how == LOWER     ? floor(rank)
                 : s->how == HIGHER  ? ceil(rank)
                 : s->how == NEAREST ? rint(rank)
                                     : rank;
    return whole < 0 ? 0 : whole;
}

static void quantile_row(const struct row *row, void *context)
{
    const struct quantiles *s = context;
    const int64_t rows = s->span.outer * s->span.inner;
    const int64_t inner = s->span.inner, base = row->at / inner * row->n * inner + row->at % inner;
    const int64_t numbers = count_numbers(row);
    sort_row(row, false, s->order, s->scratch);
    for (int64_t k = 0; k < s->q->count; k++) {
        real rank = exact_rank(s, s->q->f[k], numbers, row->n);
        if (s->how == NEAREST)
            rank = rint(rank);
        const real low = floor(rank), high = ceil(rank);
        const real below = s->how == HIGHER ? high : low;
        s->below[k * rows + row->at] = base + s->order[(int64_t)below] * inner;
        s->above[k * rows + row->at] = base + s->order[(int64_t)high] * inner;
        s->weight[k * rows + row->at] = s->how == MIDPOINT ? R(0.5) : rank - low;
        if (numbers == row->n || (s->skip_nan && numbers > 0))
            s->slope[k * rows + row->at] = (real)(numbers - 1);
    }
}

/* The q's, checked: a number is a list of one. */
static struct val *quantile_points(struct op *o, const struct val *x)
{
    struct val *q = arg_tensor(o, "q");
    if (!q)
        q = v_number(o, arg_number(o, "q"));
    q = q ? v_cast(o, q, x->dtype) : NULL;
    if (q && q->rank > 1)
        return op_fail(o, PLUMB_E_ARG, "%s: q is a number or a list of numbers", o->call->name);
    for (int64_t k = 0; q && k < q->count; k++)
        if (!(q->f[k] >= 0 && q->f[k] <= 1))
            return op_fail(o, PLUMB_E_ARG, "%s: a quantile of %g, it must be between 0 and 1",
                           o->call->name, (double)q->f[k]);
    return q;
}

static void weight_backward(struct op *o, struct val *out)
{
    struct val *q = out->in[0];
    const real *slope = out->saved;
    real *g = val_grad(o, q);
    const int64_t rows = q->count ? out->count / q->count : 0;
    for (int64_t k = 0; g && k < out->count; k++)
        g[k / rows] += out->grad[k] * slope[k];
}

static void quantile(struct op *o, bool skip_nan)
{
    struct val *x = arg_tensor(o, "input");
    struct quantiles s = {.skip_nan = skip_nan};
    if (x && (!x->f || x->count == 0))
        op_fail(o, PLUMB_E_ARG, "%s takes floating-point numbers, at least one", o->call->name);
    if (!x || o->failed || !read_interpolation(o, &s.how))
        return;
    uint64_t dims = 0;
    if (arg_given(o, "dim"))
        dims = (uint64_t)1 << val_dim(o, x, arg_int(o, "dim"));
    struct val *q = quantile_points(o, x);
    struct fold fold;
    if (!q || !fold_begin(o, x, dims, arg_bool(o, "keepdim"), &fold))
        return;
    s.span = fold.span;
    s.q = q;
    int64_t shape[OP_RANK];
    unsigned rank = 0;
    if (q->rank == 1)
        shape[rank++] = q->count;
    for (unsigned d = 0; d < fold.rank && rank < OP_RANK; d++)
        shape[rank++] = fold.shape[d];
    struct val *weight = val_new(o, x->dtype, rank, shape);
    const int64_t count = weight ? weight->count : 0;
    s.weight = weight ? weight->f : NULL;
    s.below = op_alloc(o, count, sizeof(int64_t));
    s.above = op_alloc(o, count, sizeof(int64_t));
    s.slope = op_alloc(o, count, sizeof(real));
    s.order = op_alloc(o, fold.span.length, sizeof(int64_t));
    s.scratch = op_alloc(o, fold.span.length, sizeof(int64_t));
    if (!each_row(o, fold.span, &(struct row){.in = {fold.x->f}}, quantile_row, &s))
        return;
    struct val *below = v_map(o, fold.x, rank, shape, s.below);
    if (s.how == LOWER || s.how == HIGHER || s.how == NEAREST) {
        op_return(o, below);
        return;
    }
    struct val *above = v_map(o, fold.x, rank, shape, s.above);
    if (s.how == LINEAR)
        weight = val_node(o, weight, weight_backward, q, NULL, NULL, s.slope);
    op_return(o, v_add(o, below, v_mul(o, weight, v_sub(o, above, below))));
}

static void run_quantile(struct op *o)
{
    quantile(o, false);
}

static void run_nanquantile(struct op *o)
{
    quantile(o, true);
}

const struct op_def op_quantile[] = {
    {"kthvalue", "kthvalue(Tensor input|self, int k, int dim|axis=-1, bool keepdim|keepdims=False)",
     run_kthvalue, OP_DECISION, "the k-th smallest (values, indices)"},
    {"median",
     "median(Tensor input|self)\n"
     "median(Tensor input|self, int dim|axis, bool keepdim|keepdims=False)",
     run_median, OP_DECISION, "the lower median; NaN if there is any"},
    {"nanmedian",
     "nanmedian(Tensor input|self)\n"
     "nanmedian(Tensor input|self, int dim|axis, bool keepdim|keepdims=False)",
     run_nanmedian, OP_DECISION, "the lower median of those that are not NaN"},
    {"mode", "mode(Tensor input|self, int dim|axis=-1, bool keepdim|keepdims=False)", run_mode,
     OP_DECISION, "the smallest of the most frequent values, and its last index"},
    {"quantile",
     "quantile(Tensor input|self, Operand q, int? dim|axis=None, bool keepdim|keepdims=False, *, "
     "str interpolation='linear')",
     run_quantile, 0, "between the elements at floor and ceil of q (n - 1)"},
    {"nanquantile",
     "nanquantile(Tensor input|self, Operand q, int? dim|axis=None, bool keepdim|keepdims=False, "
     "*, str interpolation='linear')",
     run_nanquantile, 0, "quantile of those that are not NaN"},
    {0},
};
