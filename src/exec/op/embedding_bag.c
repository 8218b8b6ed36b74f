/* Sums, means and maxima of rows of a table, bag by bag. */
#include "exec/op/embedding.h"

#include <string.h>

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
    if (!b || !table_check(o, index, weight))
        return;
    const bool aten = !arg_raw(o, "max_norm");
    *b = (struct bags){.mode = bag_mode(o), .index = index};
    b->padding = table_padding(o, weight, aten);
    if (scale && (b->mode != BAG_SUM || !same_shape(scale, index) || !scale->f))
        op_fail(o, PLUMB_E_ARG,
                "embedding_bag: weights of samples are for mode 'sum' and have the "
                "shape of the index");
    if (o->failed || !find_bags(o, index, offsets, b))
        return;
    b->share = table_shares(o, index, weight->shape[0], b->padding);
    if (arg_given(o, "max_norm"))
        op_write(o, "weight", weight = table_renormed(o, weight, index));
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
    if (!table_check(o, index, to))
        return;
    if (mode == BAG_MAX) {
        add_to_largest(o, g, index, bag, padding, to);
        op_return(o, to);
        return;
    }
    const real *share = table_shares(o, index, rows, padding);
    for (int64_t k = 0; share && k < index->count; k++) {
        const int64_t size = mode == BAG_MEAN ? sizes->i[bag[k]] : 1;
        const real factor = share[k] * (scale ? scale->f[k] : 1) / (real)(size ? size : 1);
        for (int64_t j = 0; j < width; j++)
            to->f[index->i[k] * width + j] += g->f[bag[k] * width + j] * factor;
    }
    op_return(o, to);
}

static void run_weights_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad"), *weight = arg_tensor(o, "weight"),
               *index = arg_index(o, "indices");
    const int64_t padding = arg_int(o, "padding_idx");
    if (bag_mode(o) != BAG_SUM && !o->failed)
        op_fail(o, PLUMB_E_ARG, "%s: weights of samples are for mode 'sum'", o->call->name);
    if (!g || !table_check(o, index, weight))
        return;
    if (g->rank != 2 || !g->f || g->shape[1] != weight->shape[1]) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient does not fit the weight", o->call->name);
        return;
    }
    const int64_t *bag = bags_of(o, index, g->shape[0]), width = g->shape[1];
    struct val *out = bag ? val_new(o, g->dtype, 1, &index->count) : NULL;
    for (int64_t k = 0; out && k < index->count; k++)
        if (index->i[k] != padding)
            out->f[k] = real_dot(g->f + bag[k] * width, weight->f + index->i[k] * width, width);
    op_return(o, out);
}

#define BAGS                                                                                       \
    "Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, int num_weights, bool "           \
    "scale_grad_by_freq, int mode, "

const struct op_def op_embedding_bag[] = {
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
    {"_embedding_bag_per_sample_weights_backward",
     "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, "
     "Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1)",
     run_weights_backward, OP_NO_GRAD, NULL},
    {0},
};
