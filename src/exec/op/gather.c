/* Elements taken by index: gather, take, index_select, masked_select, nonzero, one_hot. */
#include "exec/op/place.h"

/* The index has x's rank and, but along dim, is nowhere larger than `limit`. */
static bool index_fits(struct op *o, const struct val *x, const struct val *index, unsigned dim,
                       const char *what)
{
    bool fits = index->count == 0 || (x->rank ? x->rank : 1) == (index->rank ? index->rank : 1);
    for (unsigned d = 0; fits && index->count && d < x->rank && d < index->rank; d++)
        fits = d == dim || index->shape[d] <= x->shape[d];
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: the index does not fit into %s", o->call->name, what);
    return fits;
}

/* The place in x of each element of an index along dim. */
static const int64_t *places_along(struct op *o, const struct val *x, const struct val *index,
                                   unsigned dim)
{
    if (!x || !index || o->failed || !index_fits(o, x, index, dim, "the input"))
        return NULL;
    int64_t *map = op_alloc(o, index->count + 1, sizeof *map), stride[OP_RANK] = {1};
    int64_t size = x->rank ? x->shape[dim] : 1, at[OP_RANK] = {0};
    shape_strides(x->rank, x->shape, stride);
    for (int64_t k = 0; map && k < index->count; k++) {
        int64_t place = index->i[k];
        if (place < 0 || place >= size)
            return op_fail(o, PLUMB_E_ARG, "%s: index %lld is outside a dimension of size %lld",
                           o->call->name, (long long)place, (long long)size);
        int64_t offset = place * stride[dim];
        for (unsigned d = 0; d < x->rank; d++)
            offset += d == dim ? 0 : at[d] * stride[d];
        map[k] = offset;
        for (unsigned d = index->rank; d-- > 0;) {
            if (++at[d] < index->shape[d])
                break;
            at[d] = 0;
        }
    }
    return map;
}

static void run_gather(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "index");
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    const int64_t *map = places_along(o, x, index, dim);
    op_return(o, map ? v_map(o, x, index->rank, index->shape, map) : NULL);
}

/* Negative indices count from the end here. */
static struct val *taken(struct op *o, struct val *x, const struct val *index)
{
    int64_t *map = x && index ? op_alloc(o, index->count + 1, sizeof *map) : NULL;
    for (int64_t k = 0; map && k < index->count; k++) {
        map[k] = index_wrap(o, index->i[k], x->count);
        if (map[k] < 0)
            return NULL;
    }
    return map ? v_map(o, x, index->rank, index->shape, map) : NULL;
}

static void run_take(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "index");
    op_return(o, taken(o, x, index));
}

static void run_take_along_dim(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "indices");
    if (!x || !index)
        return;
    if (!arg_given(o, "dim")) {
        op_return(o, taken(o, x, v_reshape(o, index, 1, &index->count)));
        return;
    }
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (o->failed)
        return;
    if (x->rank != index->rank || x->rank == 0) {
        op_fail(o, PLUMB_E_ARG, "take_along_dim: %u and %u dimensions", x->rank, index->rank);
        return;
    }
    int64_t wide[OP_RANK], long_[OP_RANK];
    for (unsigned d = 0; d < x->rank; d++) {
        int64_t a = x->shape[d], b = index->shape[d], both = a == 1 ? b : a;
        if (d != dim && a != b && a != 1 && b != 1)
            op_fail(o, PLUMB_E_ARG, "take_along_dim: sizes %lld and %lld do not broadcast",
                    (long long)a, (long long)b);
        wide[d] = d == dim ? a : both;
        long_[d] = d == dim ? b : both;
    }
    if (o->failed)
        return;
    x = v_broadcast(o, x, x->rank, wide);
    index = v_broadcast(o, index, index->rank, long_);
    const int64_t *map = places_along(o, x, index, dim);
    op_return(o, map ? v_map(o, x, index->rank, index->shape, map) : NULL);
}

static void run_index_select(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "index");
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!x || !index || o->failed)
        return;
    int64_t size = x->rank ? x->shape[dim] : 1;
    if (index->rank > 1)
        op_fail(o, PLUMB_E_ARG, "index_select: an index of %u dimensions", index->rank);
    for (int64_t k = 0; k < index->count; k++)
        if (index->i[k] < 0 || index->i[k] >= size)
            op_fail(o, PLUMB_E_ARG, "index_select: index %lld is outside a dimension of size %lld",
                    (long long)index->i[k], (long long)size);
    if (o->failed)
        return;
    if (x->rank == 0 && index->count != 1)
        op_fail(o, PLUMB_E_ARG, "index_select: %lld indices for a tensor without dimensions",
                (long long)index->count);
    op_return(o, x->rank ? v_pick_dim(o, x, dim, index->count, index->i) : x);
}

/* ---- By truth -------------------------------------------------------------------------------- */

static void run_masked_select(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *mask = arg_tensor(o, "mask");
    unsigned rank;
    int64_t shape[OP_RANK];
    if (!broadcast_shape(o, x, mask, &rank, shape))
        return;
    if (mask->dtype != PLUMB_BOOL && mask->dtype != PLUMB_U8) {
        op_fail(o, PLUMB_E_ARG, "masked_select: a mask of %s", plumb_dtype_info(mask->dtype)->name);
        return;
    }
    x = v_broadcast(o, x, rank, shape);
    mask = v_broadcast(o, mask, rank, shape);
    if (!x || !mask)
        return;
    int64_t n = 0;
    for (int64_t k = 0; k < mask->count; k++)
        n += mask->i[k] != 0;
    int64_t *map = op_alloc(o, n + 1, sizeof *map), j = 0;
    for (int64_t k = 0; map && k < mask->count; k++)
        if (mask->i[k])
            map[j++] = k;
    op_return(o, v_map(o, x, 1, &n, map));
}

/* What a mask chose, in its order, and zeros behind: as many as the sizes say. */
static void run_masked_scatter_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_output"), *mask = arg_tensor(o, "mask");
    size_t n;
    const int64_t *sizes = arg_ints(o, "sizes", &n);
    if (!g || !mask)
        return;
    int64_t count = 1, j = 0;
    mask = v_broadcast(o, mask, g->rank, g->shape);
    for (size_t d = 0; d < n && count >= 0; d++)
        count = sizes[d] < 0 || (sizes[d] && count > (INT64_C(1) << 40) / sizes[d])
                    ? -1
                    : count * sizes[d];
    int64_t *map = mask && mask->i && count >= 0 ? op_alloc(o, count + 1, sizeof *map) : NULL;
    if (!map) {
        if (!o->failed)
            op_fail(o, PLUMB_E_ARG, "%s: a bool mask and sizes are needed", o->call->name);
        return;
    }
    for (int64_t k = 0; k < g->count && j < count; k++)
        if (mask->i[k])
            map[j++] = k;
    while (j < count)
        map[j++] = -1;
    op_return(o, v_map(o, g, (unsigned)n, sizes, map));
}

static bool is_true(const struct val *x, int64_t k)
{
    return x->f ? x->f[k] != 0 : x->i[k] != 0;
}

/* [places][coordinates] of what is not zero. */
static struct val *true_coordinates(struct op *o, const struct val *x)
{
    if (!x)
        return NULL;
    int64_t shape[2] = {0, x->rank}, row = 0;
    for (int64_t k = 0; k < x->count; k++)
        shape[0] += is_true(x, k);
    struct val *out = val_new(o, PLUMB_I64, 2, shape);
    for (int64_t k = 0; out && k < x->count; k++) {
        if (!is_true(x, k))
            continue;
        int64_t left = k;
        for (unsigned d = x->rank; d-- > 0;) {
            out->i[row * x->rank + d] = left % x->shape[d];
            left /= x->shape[d];
        }
        row++;
    }
    return out;
}

static void return_columns(struct op *o, struct val *x)
{
    struct val *places = true_coordinates(o, x);
    op_return_tuple(o);
    for (unsigned d = 0; places && d < x->rank; d++)
        op_return(o, v_squeeze(o, v_narrow(o, places, 1, d, 1), 1));
}

static void run_nonzero(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (!arg_bool(o, "as_tuple")) {
        op_return(o, true_coordinates(o, x));
        return;
    }
    return_columns(o, x && x->rank == 0 ? v_reshape(o, x, 1, &x->count) : x);
}

/* As many rows as asked for: cut, or filled up. */
static void run_nonzero_static(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *places = true_coordinates(o, x);
    int64_t shape[2] = {arg_int(o, "size"), x ? x->rank : 0};
    if (!places || shape_count(o, 2, shape) < 0)
        return;
    struct val *out = v_full(o, PLUMB_I64, 2, shape, 0);
    for (int64_t k = 0; out && k < out->count; k++)
        out->i[k] = k < places->count ? places->i[k] : arg_int(o, "fill_value");
    op_return(o, out);
}

static void run_one_hot(struct op *o)
{
    struct val *x = arg_index(o, "input");
    int64_t classes = arg_int(o, "num_classes");
    if (!x || o->failed)
        return;
    int64_t most = -1;
    for (int64_t k = 0; k < x->count; k++) {
        most = x->i[k] > most ? x->i[k] : most;
        if (x->i[k] < 0)
            op_fail(o, PLUMB_E_ARG, "one_hot: class %lld", (long long)x->i[k]);
    }
    if (classes == -1 && x->count)
        classes = most == INT64_MAX ? most : most + 1;
    if (classes <= most || classes <= 0 || x->rank == OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "one_hot: class %lld of %lld", (long long)most, (long long)classes);
        return;
    }
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = x->shape[d];
    shape[x->rank] = classes;
    struct val *out =
        shape_count(o, x->rank + 1, shape) < 0 ? NULL : val_new(o, PLUMB_I64, x->rank + 1, shape);
    for (int64_t k = 0; out && k < x->count; k++)
        out->i[k * classes + x->i[k]] = 1;
    op_return(o, out);
}

const struct op_def op_gather[] = {
    {"gather", "gather(Tensor input|self, int dim, Tensor index, *, bool sparse_grad=False)",
     run_gather, 0, "out[i][j] = input[index[i][j]][j] for dim 0"},
    {"take", "take(Tensor input|self, Tensor index)", run_take, 0, NULL},
    {"take_along_dim", "take_along_dim(Tensor input|self, Tensor indices, int? dim=None)",
     run_take_along_dim, 0, NULL},
    {"index_select", "index_select(Tensor input|self, int dim, Tensor index)", run_index_select, 0,
     NULL},
    {"masked_select", "masked_select(Tensor input|self, Tensor mask)", run_masked_select, 0, NULL},
    {"masked_scatter_backward",
     "masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes)",
     run_masked_scatter_backward, 0, "what the mask chooses, zeros behind"},
    {"nonzero", "nonzero(Tensor input|self, *, bool as_tuple=False)", run_nonzero,
     OP_NO_GRAD | OP_DECISION, NULL},
    {"nonzero_static", "nonzero_static(Tensor input|self, *, int size, int fill_value=-1)",
     run_nonzero_static, OP_NO_GRAD | OP_DECISION, NULL},
    {"argwhere", "argwhere(Tensor input|self, *, bool as_tuple=False)", run_nonzero,
     OP_NO_GRAD | OP_DECISION, NULL},
    {"one_hot", "one_hot(Tensor input|self|tensor, int num_classes=-1)", run_one_hot, OP_NO_GRAD,
     NULL},
    {0},
};
