/* Parts of a tensor: read, written, and their gradients put back: select, slice, diagonal,
 * unfold. */
#include "exec/op/place.h"

#include <string.h>

/* ---- Views: what the arguments of the call choose of x --------------------------------------- */

typedef struct val *view_fn(struct op *o, struct val *x);

static struct val *narrow_of(struct op *o, struct val *x)
{
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    int64_t start = arg_int(o, "start"), length = arg_int(o, "length");
    if (!x || o->failed)
        return NULL;
    int64_t size = x->rank ? x->shape[dim] : 0;
    if (x->rank == 0 || start < -size || start > size || length < 0)
        return op_fail(o, PLUMB_E_ARG, "narrow: %lld from %lld of a dimension of size %lld",
                       (long long)length, (long long)start, (long long)size);
    return v_narrow(o, x, dim, start < 0 ? start + size : start, length);
}

static struct val *select_of(struct op *o, struct val *x)
{
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!x || o->failed)
        return NULL;
    if (x->rank == 0)
        return op_fail(o, PLUMB_E_ARG, "select from a tensor without dimensions");
    int64_t at = index_wrap(o, arg_int(o, "index"), x->shape[dim]);
    return at < 0 ? NULL : v_squeeze(o, v_narrow(o, x, dim, at, 1), dim);
}

static struct val *slice_of(struct op *o, struct val *x)
{
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    int64_t start = arg_given(o, "start") ? arg_int(o, "start") : 0;
    int64_t end = arg_given(o, "end") ? arg_int(o, "end") : INT64_MAX;
    int64_t step = arg_int(o, "step");
    if (!x || o->failed)
        return NULL;
    if (x->rank == 0 || step <= 0)
        return op_fail(o, PLUMB_E_ARG, "slice with step %lld of a tensor with %u dimensions",
                       (long long)step, x->rank);
    int64_t n = slice_length(x->shape[dim], &start, end, step);
    int64_t *at = op_alloc(o, n + 1, sizeof *at);
    for (int64_t j = 0; at && j < n; j++)
        at[j] = start + j * step;
    return v_pick_dim(o, x, dim, n, at);
}

static struct val *windows_of(struct op *o, struct val *x)
{
    unsigned dim = val_dim(o, x, arg_int(o, "dimension"));
    int64_t size = arg_int(o, "size"), step = arg_int(o, "step");
    if (!x || o->failed)
        return NULL;
    int64_t length = x->rank ? x->shape[dim] : 1;
    if (size < 0 || size > length || step <= 0 || x->rank == OP_RANK)
        return op_fail(o, PLUMB_E_ARG,
                       "unfold: windows of %lld, %lld apart, in a dimension of size %lld",
                       (long long)size, (long long)step, (long long)length);
    int64_t shape[OP_RANK], stride[OP_RANK];
    shape_strides(x->rank, x->shape, stride);
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank] = size;
    stride[x->rank] = x->rank ? stride[dim] : 1;
    if (x->rank) {
        shape[dim] = (length - size) / step + 1;
        stride[dim] = shape[dim] > 1 ? stride[dim] * step : 0;
    }
    return v_strided(o, x, x->rank + 1, shape, stride, 0);
}

/* Elements of a diagonal of a rows x columns matrix. offset counts to the upper right. */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset)
{
    int64_t down = offset < 0 ? (offset < -rows ? rows : -offset) : 0;
    int64_t right = offset > 0 ? (offset > columns ? columns : offset) : 0;
    return rows - down < columns - right ? rows - down : columns - right;
}

static struct val *diagonal_at(struct op *o, struct val *x, int64_t offset, int64_t dim1,
                               int64_t dim2)
{
    unsigned a = val_dim(o, x, dim1), b = val_dim(o, x, dim2);
    if (!x || o->failed)
        return NULL;
    if (x->rank < 2 || a == b)
        return op_fail(o, PLUMB_E_ARG, "diagonal of dimensions %u and %u of a tensor with %u", a, b,
                       x->rank);
    int64_t stride[OP_RANK], shape[OP_RANK], step[OP_RANK];
    shape_strides(x->rank, x->shape, stride);
    unsigned rank = 0;
    for (unsigned d = 0; d < x->rank; d++)
        if (d != a && d != b) {
            shape[rank] = x->shape[d];
            step[rank++] = stride[d];
        }
    shape[rank] = diagonal_length(x->shape[a], x->shape[b], offset);
    step[rank++] = stride[a] + stride[b];
    int64_t start = 0;
    if (shape[rank - 1] > 0)
        start = offset < 0 ? -offset * stride[a] : offset * stride[b];
    return v_strided(o, x, rank, shape, step, start);
}

static struct val *diagonal_of(struct op *o, struct val *x)
{
    return diagonal_at(o, x, arg_int(o, "offset"), arg_int(o, "dim1"), arg_int(o, "dim2"));
}

static struct val *strided_of(struct op *o, struct val *x)
{
    size_t n, m;
    const int64_t *size = arg_ints(o, "size", &n), *stride = arg_ints(o, "stride", &m);
    int64_t offset = arg_given(o, "storage_offset") ? arg_int(o, "storage_offset") : 0;
    int64_t count = x && !o->failed ? shape_count(o, (unsigned)n, size) : -1, last = offset;
    if (count < 0)
        return NULL;
    bool inside = n == m && offset >= 0;
    for (size_t d = 0; d < n && inside && count > 0; d++) {
        int64_t reach;
        inside = stride[d] >= 0 && !__builtin_mul_overflow(size[d] - 1, stride[d], &reach) &&
                 !__builtin_add_overflow(last, reach, &last);
    }
    if (!inside || (count > 0 && last >= x->count))
        return op_fail(o, PLUMB_E_ARG, "as_strided: the view leaves a tensor of %lld elements",
                       (long long)x->count);
    return v_strided(o, x, (unsigned)n, size, stride, offset);
}

/* ---- Reading, writing, and putting a gradient back ------------------------------------------- */

static void run_narrow(struct op *o)
{
    op_return(o, narrow_of(o, arg_tensor(o, "input")));
}

static void run_select(struct op *o)
{
    op_return(o, select_of(o, arg_tensor(o, "input")));
}

static void run_slice(struct op *o)
{
    op_return(o, slice_of(o, arg_tensor(o, "input")));
}

static void run_unfold(struct op *o)
{
    op_return(o, windows_of(o, arg_tensor(o, "input")));
}

static void run_diagonal(struct op *o)
{
    op_return(o, diagonal_of(o, arg_tensor(o, "input")));
}

static void run_as_strided(struct op *o)
{
    op_return(o, strided_of(o, arg_tensor(o, "input")));
}

/* Where in x the elements of its view lie: the view of a tensor that holds its own places. */
static struct val *places_of(struct op *o, view_fn *view, const struct val *x)
{
    struct val *places = x ? val_like(o, x, PLUMB_I64) : NULL;
    for (int64_t k = 0; places && k < x->count; k++)
        places->i[k] = k;
    return view(o, places);
}

static void write_view(struct op *o, view_fn *view)
{
    struct val *x = arg_tensor(o, "input"), *source = arg_tensor(o, "src");
    struct val *places = places_of(o, view, x);
    if (!places || !source)
        return;
    if (!same_shape(places, source))
        op_fail(o, PLUMB_E_ARG, "%s: the source does not have the shape of the part",
                o->call->name);
    op_return(o, v_place(o, x, v_cast(o, source, x->dtype), places->i));
}

static void run_select_scatter(struct op *o)
{
    write_view(o, select_of);
}

static void run_slice_scatter(struct op *o)
{
    write_view(o, slice_of);
}

static void run_diagonal_scatter(struct op *o)
{
    write_view(o, diagonal_of);
}

static void run_as_strided_scatter(struct op *o)
{
    write_view(o, strided_of);
}

/* Zeros with the view's gradient added where the view was. */
static void view_backward(struct op *o, view_fn *view)
{
    struct val *grad = arg_tensor(o, "grad");
    size_t n;
    const int64_t *sizes = arg_ints(o, "sizes", &n);
    if (!grad || o->failed || shape_count(o, (unsigned)n, sizes) < 0)
        return;
    struct val *zeros = v_full(o, grad->dtype, (unsigned)n, sizes, 0);
    struct val *places = places_of(o, view, zeros);
    if (places && !same_shape(places, grad))
        op_fail(o, PLUMB_E_ARG, "%s: the gradient does not have the shape of the part",
                o->call->name);
    op_return(o, places ? v_place_add(o, zeros, grad, places->i) : NULL);
}

static void run_select_backward(struct op *o)
{
    view_backward(o, select_of);
}

static void run_slice_backward(struct op *o)
{
    view_backward(o, slice_of);
}

static void run_diagonal_backward(struct op *o)
{
    view_backward(o, diagonal_of);
}

static void run_unfold_backward(struct op *o)
{
    view_backward(o, windows_of);
}

/* ---- New diagonals and triangles ------------------------------------------------------------- */

/* The last dimension of x on the diagonal of a new square one made of dimensions a and b of the
 * result. */
static struct val *embedded(struct op *o, struct val *x, int64_t offset, int64_t dim1, int64_t dim2)
{
    if (!x)
        return NULL;
    int64_t n = x->shape[x->rank - 1], size, rank = (int64_t)x->rank + 1;
    int64_t apart = offset < 0 ? -(offset + 1) : offset; /* no overflow for the lowest */
    if (__builtin_add_overflow(n + (offset < 0), apart, &size) || rank > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "a diagonal %lld off the main one", (long long)offset);
    if (dim1 < -rank || dim1 >= rank || dim2 < -rank || dim2 >= rank)
        return op_fail(o, PLUMB_E_ARG, "diag_embed: dimensions %lld and %lld of %lld",
                       (long long)dim1, (long long)dim2, (long long)rank);
    unsigned a = (unsigned)(dim1 < 0 ? dim1 + rank : dim1);
    unsigned b = (unsigned)(dim2 < 0 ? dim2 + rank : dim2);
    if (a == b)
        return op_fail(o, PLUMB_E_ARG, "diag_embed: dimension %u is named twice", a);
    int64_t shape[OP_RANK];
    unsigned order[OP_RANK];
    for (unsigned d = 0, next = 0; d < (unsigned)rank; d++) {
        order[d] = d == a ? x->rank - 1 : d == b ? x->rank : next++;
        shape[d] = d == a || d == b ? size : x->shape[order[d]];
    }
    /* As [...][size][size] first, then the two dimensions to their places. */
    int64_t count = shape_count(o, (unsigned)rank, shape), outer = n ? x->count / n : 0;
    int64_t *map = count < 0 ? NULL : op_alloc(o, count + 1, sizeof *map);
    if (!map)
        return NULL;
    memset(map, -1, (size_t)count * sizeof *map);
    for (int64_t p = 0; p < outer; p++)
        for (int64_t k = 0; k < n; k++) {
            int64_t row = k + (offset < 0 ? -offset : 0), column = k + (offset > 0 ? offset : 0);
            map[(p * size + row) * size + column] = p * n + k;
        }
    int64_t square[OP_RANK];
    memcpy(square, x->shape, (x->rank - 1) * sizeof *square);
    square[x->rank - 1] = square[x->rank] = size;
    return v_permute(o, v_map(o, x, (unsigned)rank, square, map), order);
}

static void run_diag_embed(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank == 0)
        x = v_reshape(o, x, 1, &x->count);
    op_return(o, embedded(o, x, arg_int(o, "offset"), arg_int(o, "dim1"), arg_int(o, "dim2")));
}

static void run_diag(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t offset = arg_int(o, "diagonal");
    if (!x)
        return;
    if (x->rank != 1 && x->rank != 2)
        op_fail(o, PLUMB_E_ARG, "diag of a tensor with %u dimensions", x->rank);
    op_return(o, o->failed      ? NULL
                 : x->rank == 1 ? embedded(o, x, offset, 0, 1)
                                : diagonal_at(o, x, offset, 0, 1));
}

static void run_diagflat(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x)
        op_return(o, embedded(o, v_reshape(o, x, 1, &x->count), arg_int(o, "offset"), 0, 1));
}

static void triangle(struct op *o, bool upper)
{
    struct val *x = arg_tensor(o, "input");
    int64_t diagonal = arg_int(o, "diagonal");
    if (!x)
        return;
    if (x->rank < 2) {
        op_fail(o, PLUMB_E_ARG, "%s of a tensor with %u dimensions", o->call->name, x->rank);
        return;
    }
    int64_t rows = x->shape[x->rank - 2], columns = x->shape[x->rank - 1];
    diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    int64_t *map = op_alloc(o, x->count + 1, sizeof *map);
    for (int64_t k = 0; map && k < x->count; k++) {
        int64_t above = k % columns - k / columns % rows;
        map[k] = (upper ? above >= diagonal : above <= diagonal) ? k : -1;
    }
    op_return(o, v_map(o, x, x->rank, x->shape, map));
}

static void run_tril(struct op *o)
{
    triangle(o, false);
}

static void run_triu(struct op *o)
{
    triangle(o, true);
}

const struct op_def op_part[] = {
    {"narrow narrow_copy", "narrow(Tensor input|self, int dim, int start, int length)", run_narrow,
     0, NULL},
    {"select select_copy", "select(Tensor input|self, int dim, int index)", run_select, 0, NULL},
    {"slice slice_copy",
     "slice(Tensor input|self, int dim=0, int? start=None, int? end=None, int step=1)", run_slice,
     0, NULL},
    {"Tensor.unfold Aten.unfold unfold_copy",
     "unfold(Tensor input|self, int dimension, int size, int step)", run_unfold, 0,
     "windows of a dimension, their elements in a new last one"},
    {"diagonal diagonal_copy", "diagonal(Tensor input|self, int offset=0, int dim1=0, int dim2=1)",
     run_diagonal, 0, NULL},
    {"linalg.diagonal linalg_diagonal",
     "diagonal(Tensor input|A, *, int offset=0, int dim1=-2, int dim2=-1)", run_diagonal, 0, NULL},
    {"as_strided as_strided_ as_strided_copy",
     "as_strided(Tensor input|self, int[] size, int[] stride, int? storage_offset=None)",
     run_as_strided, 0, "of the dense tensor"},
    {"select_scatter", "select_scatter(Tensor input|self, Tensor src, int dim, int index)",
     run_select_scatter, 0, NULL},
    {"slice_scatter",
     "slice_scatter(Tensor input|self, Tensor src, int dim=0, int? start=None, int? end=None, int "
     "step=1)",
     run_slice_scatter, 0, NULL},
    {"diagonal_scatter",
     "diagonal_scatter(Tensor input|self, Tensor src, int offset=0, int dim1=0, int dim2=1)",
     run_diagonal_scatter, 0, NULL},
    {"as_strided_scatter",
     "as_strided_scatter(Tensor input|self, Tensor src, int[] size, int[] stride, int? "
     "storage_offset=None)",
     run_as_strided_scatter, 0, NULL},
    {"select_backward",
     "select_backward(Tensor grad|grad_output, int[] sizes|input_sizes, int dim, int index)",
     run_select_backward, 0, NULL},
    {"slice_backward",
     "slice_backward(Tensor grad|grad_output, int[] sizes|input_sizes, int dim, int? start, int? "
     "end, int step)",
     run_slice_backward, 0, NULL},
    {"diagonal_backward",
     "diagonal_backward(Tensor grad|grad_output, int[] sizes|input_sizes, int offset, int dim1, "
     "int "
     "dim2)",
     run_diagonal_backward, 0, NULL},
    {"unfold_backward",
     "unfold_backward(Tensor grad|grad_in, int[] sizes|input_sizes, int dimension|dim, int size, "
     "int step)",
     run_unfold_backward, OP_LINEAR, NULL},
    {"diag", "diag(Tensor input|self, int diagonal=0)", run_diag, 0, NULL},
    {"diag_embed", "diag_embed(Tensor input|self, int offset=0, int dim1=-2, int dim2=-1)",
     run_diag_embed, 0, NULL},
    {"diagflat", "diagflat(Tensor input|self, int offset=0)", run_diagflat, 0, NULL},
    {"tril tril_", "tril(Tensor input|self, int diagonal=0)", run_tril, 0, NULL},
    {"triu triu_", "triu(Tensor input|self, int diagonal=0)", run_triu, 0, NULL},
    {0},
};
