/* Rows of a table by index: embedding. */
#include "exec/op/embedding.h"

#include <string.h>

bool table_check(struct op *o, const struct val *index, const struct val *weight)
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

int64_t table_padding(struct op *o, const struct val *weight, bool aten)
{
    if (!arg_given(o, "padding_idx"))
        return -1;
    int64_t row = arg_int(o, "padding_idx");
    return aten && row == -1 ? -1 : index_wrap(o, row, weight->shape[0]);
}

real *table_shares(struct op *o, const struct val *index, int64_t rows, int64_t padding)
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

struct val *table_renormed(struct op *o, struct val *weight, const struct val *index)
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
    if (table_check(o, index, weight))
        op_return(o, table_renormed(o, weight, index));
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
    if (!table_check(o, index, weight))
        return;
    int64_t padding = table_padding(o, weight, !arg_raw(o, "max_norm"));
    struct rows *r = op_alloc(o, 1, sizeof *r);
    if (!r || o->failed)
        return;
    *r = (struct rows){index, table_shares(o, index, weight->shape[0], padding)};
    if (arg_given(o, "max_norm"))
        op_write(o, "weight", weight = table_renormed(o, weight, index));
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
    if (!table_check(o, index, zeros))
        return;
    const real *share = table_shares(o, index, rows, padding);
    for (int64_t k = 0; share && k < index->count; k++) {
        real *row = zeros->f + index->i[k] * width;
        for (int64_t j = 0; j < width; j++)
            row[j] += grad->f[k * width + j] * share[k];
        op_accumulated(o, row, width);
    }
    op_return(o, zeros);
}

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
    {0},
};
