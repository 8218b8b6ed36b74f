/* Distances between points, and angles. */
#include "exec/op/fold.h"
#include "exec/op/rows.h"
#include "exec/op/vector_norm.h"

/* ---- Between all points of two sets, or of one ----------------------------------------------- */

/* Pairs of rows of a [batch][rows_a][n] and b [batch][rows_b][n]. In one set (b is a) each pair
 * counts once. */
struct pairs {
    int64_t batch, rows_a, rows_b, n;
    bool one_set;
    double p;
    real *away, *scratch; /* a row each */
};

/* Calls for every pair, in the order of the results. */
typedef void pair_fn(const struct pairs *s, int64_t a, int64_t b, int64_t at, void *context);

static void each_pair(const struct pairs *s, pair_fn *fn, void *context)
{
    int64_t at = 0;
    for (int64_t k = 0; k < s->batch; k++)
        for (int64_t i = 0; i < s->rows_a; i++)
            for (int64_t j = s->one_set ? i + 1 : 0; j < s->rows_b; j++)
                fn(s, (k * s->rows_a + i) * s->n, (k * s->rows_b + j) * s->n, at++, context);
}

struct pair_arrays {
    const real *a, *b, *y, *g;
    real *out, *grad_a, *grad_b;
};

static void pair_away(const struct pairs *s, const real *a, const real *b)
{
    for (int64_t k = 0; k < s->n; k++)
        s->away[k] = a[k] - b[k];
}

static void pair_distance(const struct pairs *s, int64_t a, int64_t b, int64_t at, void *context)
{
    const struct pair_arrays *p = context;
    pair_away(s, p->a + a, p->b + b);
    p->out[at] = p_norm(s->away, s->n, s->p, s->scratch);
}

static void pair_gradient(const struct pairs *s, int64_t a, int64_t b, int64_t at, void *context)
{
    const struct pair_arrays *p = context;
    pair_away(s, p->a + a, p->b + b);
    /* A distance that was given is rounded, and equals none of the differences. */
    const real y = isinf(s->p) ? p_norm(s->away, s->n, s->p, s->scratch) : p->y[at];
    for (int64_t k = 0; k < s->n; k++)
        s->scratch[k] = 0;
    p_norm_add_gradient(s->away, s->n, s->p, y, p->g[at], false, s->scratch);
    for (int64_t k = 0; p->grad_a && k < s->n; k++)
        p->grad_a[a + k] += s->scratch[k];
    for (int64_t k = 0; p->grad_b && k < s->n; k++)
        p->grad_b[b + k] -= s->scratch[k];
}

static void pairs_back(struct op *o, struct val *out)
{
    struct val *a = out->in[0], *b = out->in[1] ? out->in[1] : a;
    struct pair_arrays arrays = {.a = a->f,
                                 .b = b->f,
                                 .y = out->f,
                                 .g = out->grad,
                                 .grad_a = val_grad(o, a),
                                 .grad_b = val_grad(o, b)};
    const struct pairs *s = out->saved;
    if (!o->failed && s->n && a->count)
        op_terms(out->count * s->n / a->count);
    if (!o->failed && s->n && b->count)
        op_terms(out->count * s->n / b->count * (a == b ? 2 : 1));
    if (!o->failed)
        each_pair(out->saved, pair_gradient, &arrays);
}

static struct pairs *pairs_new(struct op *o, const struct val *a, const struct val *b, double p)
{
    struct pairs *s = op_alloc(o, 1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct pairs){.batch = 1,
                        .rows_a = a->shape[a->rank - 2],
                        .rows_b = b->shape[b->rank - 2],
                        .n = a->shape[a->rank - 1],
                        .one_set = a == b,
                        .p = p};
    for (unsigned d = 0; d + 2 < a->rank; d++)
        s->batch = size_times(s->batch, a->shape[d]);
    s->away = op_alloc(o, s->n, sizeof(real));
    s->scratch = op_alloc(o, s->n, sizeof(real));
    if (!(p >= 0))
        return op_fail(o, PLUMB_E_ARG, "%s: p is %g, it cannot be negative", o->call->name, p);
    return o->failed ? NULL : s;
}

/* Both with the batch dimensions that they have together. */
static bool share_batch(struct op *o, struct val **a, struct val **b)
{
    struct val *x = *a, *y = *b;
    if (!x || !y)
        return false;
    if (x->rank < 2 || y->rank < 2 || x->shape[x->rank - 1] != y->shape[y->rank - 1] || !x->f ||
        !y->f) {
        op_fail(o, PLUMB_E_ARG,
                "%s takes floating-point points of the same size in the last of 2 or "
                "more dimensions",
                o->call->name);
        return false;
    }
    struct val *heads[2] = {x, y};
    int64_t shape[2][OP_RANK];
    unsigned rank;
    struct val *batch_x = val_new(o, PLUMB_BOOL, x->rank - 2, x->shape);
    struct val *batch_y = val_new(o, PLUMB_BOOL, y->rank - 2, y->shape);
    if (!batch_x || !batch_y || !broadcast_shape(o, batch_x, batch_y, &rank, shape[0]) ||
        rank + 2 > OP_RANK)
        return false;
    for (unsigned d = 0; d < rank; d++)
        shape[1][d] = shape[0][d];
    for (unsigned k = 0; k < 2; k++) {
        const struct val *head = heads[k];
        shape[k][rank] = head->shape[head->rank - 2];
        shape[k][rank + 1] = head->shape[head->rank - 1];
    }
    *a = v_broadcast(o, x, rank + 2, shape[0]);
    *b = v_broadcast(o, y, rank + 2, shape[1]);
    return *a && *b;
}

static void cdist(struct op *o, double p)
{
    struct val *a = arg_tensor(o, "x1"), *b = arg_tensor(o, "x2");
    if (!share_batch(o, &a, &b))
        return;
    struct pairs *s = pairs_new(o, a, b, p);
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d < a->rank; d++)
        shape[d] = a->shape[d];
    shape[a->rank - 1] = b->shape[b->rank - 2];
    struct val *out = val_new(o, promote(a, b), a->rank, shape);
    if (!s || !out)
        return;
    s->one_set = false;
    if (out->count > 0)
        each_pair(s, pair_distance, &(struct pair_arrays){.a = a->f, .b = b->f, .out = out->f});
    else
        s->batch = 0;
    op_return(o, val_node(o, out, pairs_back, a, b, NULL, s));
}

static void run_cdist(struct op *o)
{
    cdist(o, arg_number(o, "p"));
}

static void run_euclidean(struct op *o)
{
    cdist(o, 2);
}

static bool check_points(struct op *o, const struct val *x)
{
    if (x && (x->rank != 2 || !x->f || x->shape[0] > INT32_MAX))
        op_fail(o, PLUMB_E_ARG, "%s takes the floating-point rows of a matrix", o->call->name);
    return x && !o->failed;
}

static void run_pdist(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (!check_points(o, x))
        return;
    struct pairs *s = pairs_new(o, x, x, arg_number(o, "p"));
    const int64_t rows = x->shape[0], count = rows * (rows - 1) / 2;
    struct val *out = val_new(o, x->dtype, 1, &count);
    if (!s || !out)
        return;
    each_pair(s, pair_distance, &(struct pair_arrays){.a = x->f, .b = x->f, .out = out->f});
    op_return(o, val_node(o, out, pairs_back, x, NULL, NULL, s));
}

/* The gradient of the distances y between the rows of a and b (NULL: of a), for the rows of a. */
static void return_pairs_gradient(struct op *o, struct val *a, struct val *b, const struct val *y)
{
    struct val *g = arg_tensor(o, "grad");
    struct pairs *s = g ? pairs_new(o, a, b ? b : a, arg_number(o, "p")) : NULL;
    struct val *out = s ? val_like(o, a, a->dtype) : NULL;
    if (!out)
        return;
    const int64_t pairs = b ? s->rows_a * s->rows_b * s->batch : s->rows_a * (s->rows_a - 1) / 2;
    if (g->count != pairs || !y || y->count != pairs || !g->f || !y->f) {
        op_fail(o, PLUMB_E_ARG, "%s: there are %lld pairs, but not as many gradients or distances",
                o->call->name, (long long)pairs);
        return;
    }
    s->one_set = !b;
    struct pair_arrays arrays = {.a = a->f,
                                 .b = b ? b->f : a->f,
                                 .y = y->f,
                                 .g = g->f,
                                 .grad_a = out->f,
                                 .grad_b = b ? NULL : out->f};
    if (pairs > 0)
        each_pair(s, pair_gradient, &arrays);
    op_return(o, out);
}

static void run_cdist_backward(struct op *o)
{
    struct val *x1 = arg_tensor(o, "x1"), *x2 = arg_tensor(o, "x2");
    struct val *a = x1, *b = x2, *y = arg_tensor(o, "cdist");
    if (!share_batch(o, &a, &b))
        return;
    if (y && y->count == 0) /* as torch has it: not in the shape that both share */
        op_return(o, val_like(o, x1, x1->dtype));
    else
        return_pairs_gradient(o, a, b, y);
}

static void run_pdist_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (check_points(o, x))
        return_pairs_gradient(o, x, NULL, arg_tensor(o, "pdist"));
}

/* ---- Between corresponding points ------------------------------------------------------------ */

static void run_dist(struct op *o)
{
    struct val *away = v_sub(o, arg_tensor(o, "input"), arg_tensor(o, "other"));
    op_return(o, v_vector_norm(o, away, arg_number(o, "p"), 0, false));
}

static void run_pairwise_distance(struct op *o)
{
    struct val *away = v_sub(o, arg_tensor(o, "x1"), arg_tensor(o, "x2"));
    away = v_offset(o, away, arg_number(o, "eps"));
    if (!away)
        return;
    const uint64_t last = away->rank ? (uint64_t)1 << (away->rank - 1) : 0;
    op_return(o, v_vector_norm(o, away, arg_number(o, "p"), last, arg_bool(o, "keepdim")));
}

/* ---- Cosine similarity ----------------------------------------------------------------------- */

struct cosine {
    struct span3 span;
    real eps;
    real *out;
    const real *grad;
    real *norm_a, *norm_b; /* of each row, at least eps */
};

static void cosine_row(const struct row *row, void *context)
{
    const struct cosine *s = context;
    const real a = sqrt(real_dot(row->in[0], row->in[0], row->n));
    const real b = sqrt(real_dot(row->in[1], row->in[1], row->n));
    s->norm_a[row->at] = a < s->eps ? s->eps : a;
    s->norm_b[row->at] = b < s->eps ? s->eps : b;
    s->out[row->at] =
        real_dot(row->in[0], row->in[1], row->n) / s->norm_a[row->at] / s->norm_b[row->at];
}

/* By a: g (b / (|a| |b|) - a y / |a|^2); torch differentiates the norms as if they were not
 * limited. */
static void cosine_back_row(const struct row *row, void *context)
{
    const struct cosine *s = context;
    const real na = s->norm_a[row->at], nb = s->norm_b[row->at];
    const real y = s->out[row->at], g = s->grad[row->at];
    const real *a = row->in[0], *b = row->in[1];
    for (int64_t k = 0; row->out[0] && k < row->n; k++)
        row->out[0][k] += g * (b[k] / nb - a[k] / na * y) / na;
    for (int64_t k = 0; row->out[1] && k < row->n; k++)
        row->out[1][k] += g * (a[k] / na - b[k] / nb * y) / nb;
}

static void cosine_back(struct op *o, struct val *out)
{
    struct cosine s = *(const struct cosine *)out->saved;
    struct row rows = {.in = {out->in[0]->f, out->in[1]->f},
                       .out = {val_grad(o, out->in[0]), val_grad(o, out->in[1])}};
    s.grad = out->grad;
    each_row(o, s.span, &rows, cosine_back_row, &s);
}

static void run_cosine_similarity(struct op *o)
{
    struct val *a = arg_tensor(o, "x1"), *b = arg_tensor(o, "x2");
    int64_t shape[OP_RANK];
    unsigned rank;
    if (!a || !b || !broadcast_shape(o, a, b, &rank, shape))
        return;
    const enum plumb_dtype dtype = float_dtype(promote(a, b));
    a = v_broadcast(o, v_cast(o, a, dtype), rank, shape);
    b = v_broadcast(o, v_cast(o, b, dtype), rank, shape);
    struct fold fold;
    const unsigned dim = a ? val_dim(o, a, arg_int(o, "dim")) : 0;
    if (!b || !fold_begin(o, a, (uint64_t)1 << dim, false, &fold))
        return;
    struct val *out = fold_new(o, &fold, dtype);
    struct cosine *s = op_alloc(o, 1, sizeof *s);
    if (!out || !s)
        return;
    *s = (struct cosine){.span = fold.span,
                         .eps = (real)arg_number(o, "eps"),
                         .out = out->f,
                         .norm_a = op_alloc(o, out->count, sizeof(real)),
                         .norm_b = op_alloc(o, out->count, sizeof(real))};
    each_row(o, fold.span, &(struct row){.in = {a->f, b->f}}, cosine_row, s);
    op_return(o, val_node(o, out, cosine_back, a, b, NULL, s));
}

const struct op_def op_distance[] = {
    {"cdist _cdist_forward", "cdist(Tensor x1, Tensor x2, float p=2.0, any compute_mode='')",
     run_cdist, 0, "p-norms of the differences between all rows of x1 and of x2"},
    {"_euclidean_dist", "_euclidean_dist(Tensor x1, Tensor x2)", run_euclidean, 0, NULL},
    {"pdist _pdist_forward", "pdist(Tensor input|self, float p=2.0)", run_pdist, 0,
     "p-norms of the differences between all pairs of rows"},
    {"_cdist_backward", "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist)",
     run_cdist_backward, OP_NO_GRAD, NULL},
    {"_pdist_backward", "_pdist_backward(Tensor grad, Tensor input|self, float p, Tensor pdist)",
     run_pdist_backward, OP_NO_GRAD, NULL},
    {"dist", "dist(Tensor input|self, Tensor other, number p=2)", run_dist, 0,
     "norm(input - other)"},
    {"pairwise_distance",
     "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-6, bool keepdim=False)",
     run_pairwise_distance, 0, "norm(x1 - x2 + eps) over the last dimension"},
    {"cosine_similarity", "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-8)",
     run_cosine_similarity, 0, "x1 . x2 / (max(|x1|, eps) max(|x2|, eps))"},
    {0},
};
