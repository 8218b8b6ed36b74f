/* Rows of a table by index: embedding, embedding_bag. */
#include "exec/op/place.h"

#include <string.h>

static bool check_rows(struct op *o, const struct val *index, const struct val *weight)
{
    if (!index || !weight || o->failed)
        return false;
    if (!weight->f || weight->rank != 2) {
        op_fail(o, PLUMB_E_ARG, "%s: the weight must be a matrix of floats", o->call->name);
        return false;
    }
    for (int64_t k = 0; k < index->count; k++)
        if (index->i[k] < 0 || index->i[k] >= weight->shape[0]) {
            op_fail(o, PLUMB_E_ARG, "%s: index %lld into a table of %lld rows", o->call->name,
                    (long long)index->i[k], (long long)weight->shape[0]);
            return false;
        }
    return true;
}

/* padding_idx counted from the end when negative; -1 for none. aten writes -1 for none. */
static int64_t padding_row(struct op *o, const struct val *weight, bool aten)
{
    if (!arg_given(o, "padding_idx"))
        return -1;
    int64_t row = arg_int(o, "padding_idx");
    return aten && row == -1 ? -1 : index_wrap(o, row, weight->shape[0]);
}

/* How much of the gradient of index k its row gets: 0 for padding; by frequency, a share. */
static real *row_shares(struct op *o, const struct val *index, int64_t rows, int64_t padding)
{
    real *share = op_alloc(o, index->count + 1, sizeof *share);
    const bool by_frequency = arg_bool(o, "scale_grad_by_freq");
    int64_t *times = by_frequency ? op_alloc(o, rows + 1, sizeof *times) : NULL;
    if (!share || o->failed)
        return NULL;
    for (int64_t k = 0; times && k < index->count; k++)
        times[index->i[k]]++;
    for (int64_t k = 0; k < index->count; k++)
        share[k] = index->i[k] == padding ? 0 : times ? 1 / (real)times[index->i[k]] : 1;
    return share;
}

/* ---- Renormalised tables --------------------------------------------------------------------- */

static void same_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    for (int64_t k = 0; g && k < out->count; k++)
        g[k] += out->grad[k];
}

static real row_norm(const real *row, int64_t n, real p)
{
    real sum = 0, most = 0;
    for (int64_t k = 0; k < n; k++)
        most = fabs(row[k]) > most ? fabs(row[k]) : most;
    if (isinf(p) || most == 0)
        return most;
    for (int64_t k = 0; k < n; k++)
        sum += p == 2 ? row[k] / most * (row[k] / most) : pow(fabs(row[k]) / most, p);
    return most * (p == 2 ? sqrt(sum) : pow(sum, 1 / p));
}

/* The table with the rows of the index cut to a norm of at most max_norm; the gradient does not see
 * it. */
static struct val *renormed(struct op *o, struct val *weight, const struct val *index)
{
    real limit = (real)arg_number(o, "max_norm"), p = (real)arg_number(o, "norm_type");
    struct val *out = val_like(o, weight, weight->dtype);
    if (!out)
        return NULL;
    if (weight->count)
        memcpy(out->f, weight->f, (size_t)weight->count * sizeof *out->f);
    int64_t width = weight->shape[1];
    for (int64_t k = 0; k < index->count; k++) {
        real *row = out->f + index->i[k] * width;
        /* From the original, so that a row that comes twice is not cut twice. */
        real norm = row_norm(weight->f + index->i[k] * width, width, p);
        if (!(norm > limit))
            continue;
        for (int64_t j = 0; j < width; j++)
            row[j] = weight->f[index->i[k] * width + j] * (limit / (norm + REAL_C(1e-7)));
    }
    return val_moved(o, out, same_backward, weight, NULL, NULL, NULL);
}

static void run_renorm(struct op *o)
{
    struct val *weight = arg_tensor(o, "weight"), *index = arg_index(o, "input");
    if (check_rows(o, index, weight))
        op_return(o, renormed(o, weight, index));
}

/* ---- embedding ------------------------------------------------------------------------------- */

struct rows {
    const struct val *index;
    const real *share;
};

static void embedding_backward(struct op *o, struct val *out)
{
    const struct rows *r = out->saved;
    real *g = val_grad(o, out->in[0]);
    int64_t width = out->in[0]->shape[1];
    if (g)
        op_terms_map(o, r->index->i, r->index->count, out->in[0]->shape[0]);
    for (int64_t k = 0; g && k < r->index->count; k++) {
        if (r->share[k] == 0)
            continue;
        real *row = g + r->index->i[k] * width;
        for (int64_t j = 0; j < width; j++)
            row[j] += out->grad[k * width + j] * r->share[k];
        op_accumulated(o, row, width);
    }
}

static void run_embedding(struct op *o)
{
    struct val *weight = arg_tensor(o, "weight"), *index = arg_index(o, "input");
    if (!check_rows(o, index, weight))
        return;
    int64_t padding = padding_row(o, weight, !arg_raw(o, "max_norm"));
    struct rows *r = op_alloc(o, 1, sizeof *r);
    if (!r || o->failed)
        return;
    *r = (struct rows){index, row_shares(o, index, weight->shape[0], padding)};
    if (arg_given(o, "max_norm"))
        op_write(o, "weight", weight = renormed(o, weight, index));
    if (index->rank == OP_RANK)
        op_fail(o, PLUMB_E_ARG, "embedding: an index of %u dimensions", index->rank);
    if (o->failed)
        return;
    int64_t shape[OP_RANK], width = weight->shape[1];
    memcpy(shape, index->shape, index->rank * sizeof *shape);
    shape[index->rank] = width;
    struct val *out = val_new(o, weight->dtype, index->rank + 1, shape);
    for (int64_t k = 0; out && k < index->count && width; k++)
        memcpy(out->f + k * width, weight->f + index->i[k] * width, (size_t)width * sizeof *out->f);
    op_return(o, val_moved(o, out, embedding_backward, weight, NULL, NULL, r));
}

static void run_embedding_dense_backward(struct op *o)
{
    struct val *grad = arg_tensor(o, "grad"), *index = arg_index(o, "input");
    int64_t rows = arg_int(o, "num_weights"), padding = arg_int(o, "padding_idx");
    if (!grad || !index || o->failed)
        return;
    int64_t width = grad->rank ? grad->shape[grad->rank - 1] : 0, shape[2] = {rows, width}, n;
    if (!grad->f || __builtin_mul_overflow(index->count, width, &n) || n != grad->count) {
        op_fail(o, PLUMB_E_ARG, "embedding_dense_backward: the gradient does not fit the index");
        return;
    }
    struct val *zeros = shape_count(o, 2, shape) < 0 ? NULL : v_full(o, grad->dtype, 2, shape, 0);
    if (!check_rows(o, index, zeros))
        return;
    const real *share = row_shares(o, index, rows, padding);
    for (int64_t k = 0; share && k < index->count; k++) {
        real *row = zeros->f + index->i[k] * width;
        for (int64_t j = 0; j < width; j++)
            row[j] += grad->f[k * width + j] * share[k];
        op_accumulated(o, row, width);
    }
    op_return(o, zeros);
}

/* ---- embedding_bag --------------------------------------------------------------------------- */

enum bag_mode { BAG_SUM, BAG_MEAN, BAG_MAX };

struct bags {
    enum bag_mode mode;
    const struct val *index;
    int64_t n;            /* bags */
    const int64_t *bag;   /* of each index */
    const int64_t *sizes; /* of each bag, without padding */
    const real *share;    /* of each index: 0 for padding */
    int64_t padding;
    const int64_t
        *largest; /* max: for each element of the result the index it came from; -1: none */
};

static void bag_backward(struct op *o, struct val *out)
{
    const struct bags *b = out->saved;
    struct val *weight = out->in[0], *scale = out->in[1];
    real *gw = val_grad(o, weight), *gs = val_grad(o, scale);
    int64_t width = weight->shape[1];
    if (b->mode == BAG_MAX) {
        for (int64_t k = 0; gw && k < out->count; k++)
            if (b->largest[k] >= 0)
                gw[b->index->i[b->largest[k]] * width + k % width] +=
                    out->grad[k] * b->share[b->largest[k]];
        return;
    }
    for (int64_t k = 0; k < b->index->count; k++) {
        if (b->index->i[k] == b->padding)
            continue;
        const real *g = out->grad + b->bag[k] * width, *row = weight->f + b->index->i[k] * width;
        real factor = b->mode == BAG_MEAN ? 1 / (real)b->sizes[b->bag[k]] : 1;
        for (int64_t j = 0; gw && j < width; j++)
            gw[b->index->i[k] * width + j] +=
                g[j] * factor * (scale ? scale->f[k] : 1) * b->share[k];
        if (gs)
            gs[k] += real_dot(g, row, width);
    }
}

/* Fills in which bag each index belongs to. A 2-d index has a bag a row. */
static bool find_bags(struct op *o, const struct val *index, const struct val *offsets,
                      struct bags *b)
{
    int64_t *bag = op_alloc(o, index->count + 1, sizeof *bag);
    if (!bag)
        return false;
    b->bag = bag;
    if (index->rank == 2 && !offsets) {
        b->n = index->shape[0];
        for (int64_t k = 0; k < index->count; k++)
            bag[k] = k / index->shape[1];
        return true;
    }
    if (index->rank != 1 || !offsets || offsets->rank != 1) {
        op_fail(o, PLUMB_E_ARG, "embedding_bag takes a 2-d index, or a 1-d index with offsets");
        return false;
    }
    const bool last = arg_bool(o, "include_last_offset");
    b->n = offsets->count - last;
    bool fits = b->n >= 0 && (offsets->count == 0 || offsets->i[0] == 0);
    for (int64_t k = 0; fits && k < offsets->count; k++) {
        int64_t end = k + 1 < offsets->count ? offsets->i[k + 1] : index->count;
        fits = offsets->i[k] <= end && offsets->i[k] <= index->count && end >= 0;
        for (int64_t j = offsets->i[k]; fits && k < b->n && j < end && j < index->count; j++)
            bag[j] = k;
    }
    if (!fits || (b->n == 0 && index->count > 0))
        op_fail(o, PLUMB_E_ARG,
                "embedding_bag: the offsets do not start at 0 or do not ascend "
                "within the index");
    return !o->failed;
}

/* The numbers that go into the bags; NULL after a failure. */
static struct val *fill_bags(struct op *o, struct val *weight, struct val *scale, struct bags *b)
{
    int64_t width = weight->shape[1], shape[2] = {b->n, width};
    struct val *out = val_new(o, weight->dtype, 2, shape);
    int64_t *sizes = op_alloc(o, b->n + 1, sizeof *sizes);
    int64_t *largest = op_alloc(o, b->n * width + 1, sizeof *largest);
    if (!out || !sizes || !largest)
        return NULL;
    memset(largest, -1, (size_t)(b->n * width) * sizeof *largest);
    for (int64_t k = 0; k < b->index->count; k++) {
        if (b->index->i[k] == b->padding)
            continue;
        real *to = out->f + b->bag[k] * width;
        const real *row = weight->f + b->index->i[k] * width, s = scale ? scale->f[k] : 1;
        int64_t *from = largest + b->bag[k] * width;
        op_terms(++sizes[b->bag[k]]);
        for (int64_t j = 0; j < width; j++) {
            if (b->mode != BAG_MAX) {
                to[j] += row[j] * s;
            } else if (from[j] < 0 || row[j] > to[j]) {
                to[j] = row[j];
                from[j] = k;
            }
        }
    }
    for (int64_t k = 0; b->mode == BAG_MEAN && k < out->count; k++)
        out->f[k] /= (real)(sizes[k / width] ? sizes[k / width] : 1);
    b->sizes = sizes;
    b->largest = largest;
    return val_node(o, out, bag_backward, weight, scale, NULL, b);
}

static enum bag_mode bag_mode(struct op *o)
{
    const char *text = arg_text(o, "mode");
    int64_t number = text ? -1 : arg_int(o, "mode");
    if (number == 0 || (text && strcmp(text, "sum") == 0))
        return BAG_SUM;
    if (number == 1 || (text && strcmp(text, "mean") == 0))
        return BAG_MEAN;
    if (number != 2 && !(text && strcmp(text, "max") == 0))
        op_fail(o, PLUMB_E_ARG, "embedding_bag: the mode is sum, mean or max");
    return BAG_MAX;
}

static void run_embedding_bag(struct op *o)
{
    struct val *weight = arg_tensor(o, "weight"), *index = arg_index(o, "input");
    struct val *scale = arg_tensor(o, "per_sample_weights");
    struct val *offsets = arg_given(o, "offsets") ? arg_index(o, "offsets") : NULL;
    struct bags *b = op_alloc(o, 1, sizeof *b);
    if (!b || !check_rows(o, index, weight))
        return;
    const bool aten = !arg_raw(o, "max_norm");
    *b = (struct bags){.mode = bag_mode(o), .index = index};
    b->padding = padding_row(o, weight, aten);
    if (scale && (b->mode != BAG_SUM || !same_shape(scale, index) || !scale->f))
        op_fail(o, PLUMB_E_ARG,
                "embedding_bag: weights of samples are for mode 'sum' and have the "
                "shape of the index");
    if (o->failed || !find_bags(o, index, offsets, b))
        return;
    b->share = row_shares(o, index, weight->shape[0], b->padding);
    if (arg_given(o, "max_norm"))
        op_write(o, "weight", weight = renormed(o, weight, index));
    if (o->failed)
        return;
    struct val *out = fill_bags(o, weight, scale, b);
    op_return(o, out);
    if (!aten || !out)
        return;
    struct val *of = val_new(o, index->dtype, 1, &index->count);
    struct val *sizes = val_new(o, index->dtype, 1, &b->n);
    struct val *largest = b->mode == BAG_MAX ? val_new(o, index->dtype, 2, out->shape)
                                             : val_new(o, index->dtype, 1, &b->n);
    if (!of || !sizes || !largest)
        return;
    for (int64_t k = 0; k < of->count; k++)
        of->i[k] = b->bag[k];
    /* PyTorch leaves the sizes out where its gradient does not need them. */
    for (int64_t k = 0; k < b->n && b->mode != BAG_SUM; k++)
        sizes->i[k] = b->sizes[k];
    for (int64_t k = 0; k < largest->count; k++)
        largest->i[k] = b->mode != BAG_MAX  ? sizes->i[k]
                        : b->largest[k] < 0 ? 0
                                            : index->i[b->largest[k]];
    op_return(o, of);
    op_return(o, sizes);
    op_return(o, largest);
}

/* The bag of each index: what the forward said, or, where it left that out, by the offsets. */
static const int64_t *bags_of(struct op *o, const struct val *index, int64_t n)
{
    const struct val *given = arg_index(o, "offset2bag"),
                     *offsets = arg_raw(o, "offsets") ? arg_index(o, "offsets") : NULL;
    int64_t *bag = op_alloc(o, index->count + 1, sizeof *bag);
    if (!given || !bag)
        return NULL;
    if (given->count != index->count && !(offsets && offsets->count && given->count == 0))
        return op_fail(o, PLUMB_E_ARG, "%s: bags of %lld indices, but there are %lld",
                       o->call->name, (long long)given->count, (long long)index->count);
    for (int64_t k = 0, at = 0; k < index->count; k++) {
        while (!given->count && at + 1 < offsets->count && offsets->i[at + 1] <= k)
            at++;
        bag[k] = given->count ? given->i[k] : at;
        if (bag[k] < 0 || bag[k] >= n)
            return op_fail(o, PLUMB_E_ARG, "%s: bag %lld of %lld", o->call->name, (long long)bag[k],
                           (long long)n);
    }
    return bag;
}

/* Each element of a bag's gradient goes to the row that it was the maximum of. */
static void add_to_largest(struct op *o, const struct val *g, const struct val *index,
                           const int64_t *bag, int64_t padding, struct val *to)
{
    const struct val *most = arg_index(o, "maximum_indices");
    const int64_t width = g->shape[1];
    bool *filled = op_alloc(o, g->shape[0] + 1, sizeof *filled);
    if (!most || !filled)
        return;
    for (int64_t k = 0; k < index->count; k++)
        filled[bag[k]] |= index->i[k] != padding;
    for (int64_t k = 0; k < g->count; k++) {
        if (k >= most->count || most->i[k] < 0 || most->i[k] >= to->shape[0]) {
            op_fail(o, PLUMB_E_ARG, "%s: element %lld has no row that it was the maximum of",
                    o->call->name, (long long)k);
            return;
        }
        if (filled[k / width])
            to->f[most->i[k] * width + k % width] += g->f[k];
    }
}

/* The rows that bags were made of get what the bags got. */
static void run_bag_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad"), *index = arg_index(o, "indices"),
               *sizes = arg_index(o, "bag_size"), *scale = arg_tensor(o, "per_sample_weights");
    const int64_t rows = arg_int(o, "num_weights"), padding = arg_int(o, "padding_idx");
    const enum bag_mode mode = bag_mode(o);
    if (!g || !index || !sizes || o->failed)
        return;
    if (g->rank != 2 || !g->f || (mode == BAG_MEAN && sizes->count != g->shape[0]) ||
        (scale && (scale->count != index->count || !scale->f))) {
        op_fail(o, PLUMB_E_ARG, "%s: gradient, index and bags do not fit each other",
                o->call->name);
        return;
    }
    const int64_t width = g->shape[1], shape[2] = {rows, width};
    const int64_t *bag = bags_of(o, index, g->shape[0]);
    struct val *to = bag ? v_full(o, g->dtype, 2, shape, 0) : NULL;
    if (!check_rows(o, index, to))
        return;
    if (mode == BAG_MAX) {
        add_to_largest(o, g, index, bag, padding, to);
        op_return(o, to);
        return;
    }
    const real *share = row_shares(o, index, rows, padding);
    for (int64_t k = 0; share && k < index->count; k++) {
        const int64_t size = mode == BAG_MEAN ? sizes->i[bag[k]] : 1;
        const real factor = share[k] * (scale ? scale->f[k] : 1) / (real)(size ? size : 1);
        for (int64_t j = 0; j < width; j++)
            to->f[index->i[k] * width + j] += g->f[bag[k] * width + j] * factor;
    }
    op_return(o, to);
}

#define BAGS                                                                                       \
    "Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, int num_weights, bool "           \
    "scale_grad_by_freq, int mode, "

const struct op_def op_embedding[] = {
    {"embedding",
     "Functional.embedding(Tensor input, Tensor weight, int? padding_idx=None, float? "
     "max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False)\n"
     "embedding(Tensor weight, Tensor input|indices, int padding_idx=-1, bool "
     "scale_grad_by_freq=False, bool sparse=False)",
     run_embedding, OP_EXACT, "weight[input]; the row padding_idx gets no gradient"},
    {"embedding_renorm_",
     "embedding_renorm_(Tensor weight|self, Tensor input|indices, float max_norm, float norm_type)",
     run_renorm, 0, NULL},
    {"embedding_dense_backward",
     "embedding_dense_backward(Tensor grad|grad_output, Tensor input|indices, int num_weights, int "
     "padding_idx, bool scale_grad_by_freq)",
     run_embedding_dense_backward, OP_NO_GRAD | OP_LINEAR, NULL},
    {"embedding_bag _embedding_bag _embedding_bag_forward_only",
     "Functional.embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? "
     "max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', bool "
     "sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? "
     "padding_idx=None)\n"
     "embedding_bag(Tensor weight, Tensor input|indices, Tensor offsets, bool "
     "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
     "bool include_last_offset=False, int? padding_idx=None)",
     run_embedding_bag, 0, "sum, mean or max of the rows of each bag"},
    {"_embedding_bag_dense_backward",
     "_embedding_bag_dense_backward(Tensor grad, Tensor indices, " BAGS
     "Tensor? per_sample_weights, int padding_idx=-1)",
     run_bag_backward, OP_NO_GRAD, NULL},
    {"_embedding_bag_backward",
     "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, " BAGS
     "bool sparse, Tensor? per_sample_weights, int padding_idx=-1)",
     run_bag_backward, OP_NO_GRAD, NULL},
    {0},
};
