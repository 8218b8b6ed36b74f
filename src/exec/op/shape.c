/* Other shapes over the same elements: view, permute, expand, squeeze, ... */
#include "exec/op/place.h"

#include <string.h>

/* sizes with at most one -1, which is chosen so that there are count elements. */
static const int64_t *complete_shape(struct op *o, int64_t count, size_t n, const int64_t *sizes)
{
    int64_t *shape = op_alloc(o, (int64_t)n + 1, sizeof *shape);
    if (!shape)
        return NULL;
    size_t open = n;
    for (size_t d = 0; d < n; d++) {
        shape[d] = sizes[d];
        if (sizes[d] != -1)
            continue;
        if (open < n)
            return op_fail(o, PLUMB_E_ARG, "only one size can be -1");
        open = d;
        shape[d] = 1;
    }
    int64_t known = shape_count(o, (unsigned)n, shape);
    if (known < 0)
        return NULL;
    if (open < n && known > 0)
        shape[open] = count / known;
    if (open < n && known == 0)
        return op_fail(o, PLUMB_E_ARG, "-1 has no meaning where another size is 0");
    if (open < n ? known * shape[open] != count : known != count)
        return op_fail(o, PLUMB_E_ARG, "%lld elements cannot take a shape of %lld%s",
                       (long long)count, (long long)known, open < n ? " or a multiple of it" : "");
    return shape;
}

static struct val *reshaped(struct op *o, struct val *x, size_t n, const int64_t *sizes)
{
    const int64_t *shape = x && n <= OP_RANK ? complete_shape(o, x->count, n, sizes) : NULL;
    return shape ? v_reshape(o, x, (unsigned)n, shape) : NULL;
}

static void run_reshape(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (arg_given(o, "dtype")) {
        if (x && arg_dtype(o, "dtype") != x->dtype)
            op_fail(o, PLUMB_E_UNSUPPORTED, "view as another dtype: bits are not reinterpreted");
        op_return(o, x);
        return;
    }
    size_t n;
    const int64_t *sizes = arg_ints(o, "shape", &n);
    op_return(o, reshaped(o, x, n, sizes));
}

static void run_reshape_as(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *other = arg_tensor(o, "other");
    op_return(o, other ? reshaped(o, x, other->rank, other->shape) : NULL);
}

/* Fewer elements than before; the first ones stay. */
static struct val *resized(struct op *o, struct val *x, size_t n, const int64_t *sizes)
{
    int64_t count = x ? shape_count(o, (unsigned)n, sizes) : -1;
    if (count < 0)
        return NULL;
    if (count > x->count)
        return op_fail(o, PLUMB_E_UNSUPPORTED,
                       "resizing %lld elements to %lld leaves some of them undefined",
                       (long long)x->count, (long long)count);
    int64_t all[1] = {x->count};
    return v_reshape(o, v_narrow(o, v_reshape(o, x, 1, all), 0, 0, count), (unsigned)n, sizes);
}

static void run_resize(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *sizes = arg_ints(o, "size", &n);
    op_return(o, resized(o, x, n, sizes));
}

static void run_resize_as(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *other = arg_tensor(o, "other");
    op_return(o, other ? resized(o, x, other->rank, other->shape) : NULL);
}

static void run_flatten(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned first = arg_given(o, "start_dim") ? val_dim(o, x, arg_int(o, "start_dim")) : 0;
    unsigned last = arg_given(o, "end_dim") ? val_dim(o, x, arg_int(o, "end_dim")) : 0;
    if (!x || o->failed)
        return;
    if (!arg_given(o, "end_dim") && x->rank)
        last = x->rank - 1;
    if (first > last) {
        op_fail(o, PLUMB_E_ARG, "flatten from dimension %u to %u", first, last);
        return;
    }
    int64_t shape[OP_RANK] = {1};
    unsigned rank = 0;
    for (unsigned d = 0; d < x->rank; d++) {
        if (d > first && d <= last)
            shape[rank - 1] *= x->shape[d];
        else
            shape[rank++] = x->shape[d];
    }
    op_return(o, v_reshape(o, x, rank ? rank : 1, shape));
}

static void run_unflatten(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    size_t n;
    const int64_t *sizes = arg_ints(o, "sizes", &n);
    if (!x || o->failed)
        return;
    if (n == 0 || x->rank == 0 || x->rank - 1 + n > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "unflatten of a tensor with %u dimensions into %zu sizes", x->rank,
                n);
        return;
    }
    const int64_t *inner = complete_shape(o, x->shape[dim], n, sizes);
    if (!inner)
        return;
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, dim * sizeof *shape);
    memcpy(shape + dim, inner, n * sizeof *shape);
    memcpy(shape + dim + n, x->shape + dim + 1, (x->rank - dim - 1) * sizeof *shape);
    op_return(o, v_reshape(o, x, x->rank - 1 + (unsigned)n, shape));
}

static void run_squeeze(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *dims = arg_ints(o, "dim", &n);
    uint64_t drop = arg_given(o, "dim") ? 0 : UINT64_MAX;
    for (size_t k = 0; k < n; k++)
        drop |= UINT64_C(1) << val_dim(o, x, dims[k]);
    if (!x || o->failed)
        return;
    int64_t shape[OP_RANK];
    unsigned rank = 0;
    for (unsigned d = 0; d < x->rank; d++)
        if (x->shape[d] != 1 || !(drop >> d & 1))
            shape[rank++] = x->shape[d];
    op_return(o, v_reshape(o, x, rank, shape));
}

static void run_unsqueeze(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t dim = arg_int(o, "dim");
    if (!x)
        return;
    int64_t places = (int64_t)x->rank + 1;
    if (dim < -places || dim >= places || places > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "a new dimension at %lld of a tensor with %u", (long long)dim,
                x->rank);
        return;
    }
    op_return(o, v_unsqueeze(o, x, (unsigned)(dim < 0 ? dim + places : dim)));
}

static void run_transpose(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned a = val_dim(o, x, arg_int(o, "dim0")), b = val_dim(o, x, arg_int(o, "dim1"));
    if (!o->failed)
        op_return(o, x->rank ? v_transpose(o, x, a, b) : x);
}

static void run_t(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank > 2)
        op_fail(o, PLUMB_E_ARG, "t: a tensor of %u dimensions (at most 2)", x->rank);
    else
        op_return(o, x && x->rank == 2 ? v_transpose(o, x, 0, 1) : x);
}

static void run_reverse_dims(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned dims[OP_RANK];
    for (unsigned d = 0; x && d < x->rank; d++)
        dims[d] = x->rank - 1 - d;
    op_return(o, v_permute(o, x, dims));
}

static void run_matrix_transpose(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank < 2)
        op_fail(o, PLUMB_E_ARG, "a tensor of %u dimensions is no matrix", x->rank);
    else
        op_return(o, x ? v_transpose(o, x, x->rank - 2, x->rank - 1) : NULL);
}

static void run_permute(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *dims = arg_ints(o, "dims", &n);
    if (!x || o->failed)
        return;
    unsigned order[OP_RANK];
    uint64_t seen = 0;
    for (size_t d = 0; d < n && n == x->rank; d++) {
        order[d] = val_dim(o, x, dims[d]);
        seen |= UINT64_C(1) << order[d];
    }
    if (n != x->rank || (n && seen != UINT64_MAX >> (64 - n))) {
        op_fail(o, PLUMB_E_ARG, "permute: the dims do not name each of %u dimensions once",
                x->rank);
        return;
    }
    op_return(o, v_permute(o, x, order));
}

static void run_movedim(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n, m;
    const int64_t *from = arg_ints(o, "source", &n), *to = arg_ints(o, "destination", &m);
    if (!x || o->failed)
        return;
    unsigned order[OP_RANK];
    uint64_t moved = 0, taken = 0;
    for (size_t k = 0; k < n && n == m; k++) {
        uint64_t source = UINT64_C(1) << val_dim(o, x, from[k]);
        unsigned place = val_dim(o, x, to[k]);
        if (source & moved || taken >> place & 1)
            op_fail(o, PLUMB_E_ARG, "movedim: a dimension is named twice");
        moved |= source;
        taken |= UINT64_C(1) << place;
        order[place] = val_dim(o, x, from[k]);
    }
    if (n != m)
        op_fail(o, PLUMB_E_ARG, "movedim: %zu dimensions to %zu places", n, m);
    if (o->failed)
        return;
    for (unsigned d = 0, next = 0; d < x->rank; d++) {
        if (taken >> d & 1)
            continue;
        while (moved >> next & 1)
            next++;
        order[d] = next++;
    }
    op_return(o, x->rank ? v_permute(o, x, order) : x);
}

static void run_expand(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *sizes = arg_ints(o, "size", &n);
    if (!x || o->failed)
        return;
    if (n < x->rank) {
        op_fail(o, PLUMB_E_ARG, "expand of %u dimensions to %zu", x->rank, n);
        return;
    }
    int64_t shape[OP_RANK];
    for (size_t d = 0; d < n; d++) {
        bool own = d >= n - x->rank;
        shape[d] = sizes[d] == -1 && own ? x->shape[d - (n - x->rank)] : sizes[d];
    }
    if (shape_count(o, (unsigned)n, shape) >= 0)
        op_return(o, v_broadcast(o, x, (unsigned)n, shape));
}

static void run_expand_as(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *other = arg_tensor(o, "other");
    op_return(o, other ? v_broadcast(o, x, other->rank, other->shape) : NULL);
}

static void run_broadcast_tensors(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "tensors", &n);
    struct val joint = {0};
    for (size_t k = 0; k < n && !o->failed; k++) {
        const struct val before = joint;
        if (!xs[k])
            op_fail(o, PLUMB_E_ARG, "broadcast_tensors: tensor %zu is None", k);
        broadcast_shape(o, &before, xs[k], &joint.rank, joint.shape);
    }
    op_return_tuple(o);
    for (size_t k = 0; k < n && !o->failed; k++)
        op_return(o, v_broadcast(o, xs[k], joint.rank, joint.shape));
}

static void run_same(struct op *o)
{
    op_return(o, arg_tensor(o, "input"));
}

static void run_detach(struct op *o)
{
    op_return(o, v_detach(o, arg_tensor(o, "input")));
}

/* At least `least` dimensions, as numpy's functions of these names have them. */
static struct val *at_least(struct op *o, struct val *x, unsigned least)
{
    if (!x || x->rank >= least)
        return x;
    int64_t n = x->rank ? x->shape[0] : 1;
    int64_t shape[3] = {n, 1, 1};
    if (least > 1 && x->rank < 2) {
        shape[0] = 1;
        shape[1] = n;
    } else if (x->rank == 2) {
        shape[1] = x->shape[1];
    }
    return v_reshape(o, x, least, shape);
}

static void atleast(struct op *o, unsigned least)
{
    if (arg_given(o, "input")) {
        op_return(o, at_least(o, arg_tensor(o, "input"), least));
        return;
    }
    size_t n;
    struct val **xs = arg_tensors(o, "tensors", &n);
    op_return_tuple(o);
    for (size_t k = 0; k < n; k++)
        op_return(o, at_least(o, xs[k], least));
}

static void run_atleast_1d(struct op *o)
{
    atleast(o, 1);
}

static void run_atleast_2d(struct op *o)
{
    atleast(o, 2);
}

static void run_atleast_3d(struct op *o)
{
    atleast(o, 3);
}

const struct op_def op_shape[] = {
    {"reshape view _unsafe_view view_copy _reshape_alias",
     "reshape(Tensor input|self, int[]... shape|size)\n"
     "_reshape_alias(Tensor input|self, int[] shape|size, int[] stride)\n"
     "view(Tensor input|self, dtype dtype)",
     run_reshape, 0, NULL},
    {"reshape_as view_as", "reshape_as(Tensor input|self, Tensor other)", run_reshape_as, 0, NULL},
    {"resize_ resize _resize_output _resize_output_",
     "resize_(Tensor input|self, int[]... size)\n"
     "_resize_output(Tensor input|self, int[] size, any device)",
     run_resize, 0, "to the same number of elements or fewer"},
    {"resize_as_ resize_as", "resize_as_(Tensor input|self, Tensor other|the_template)",
     run_resize_as, 0, "to the same number of elements or fewer"},
    {"flatten", "flatten(Tensor input|self, int start_dim=0, int end_dim=-1)", run_flatten, 0,
     NULL},
    {"ravel", "ravel(Tensor input|self)", run_flatten, 0, NULL},
    {"unflatten", "unflatten(Tensor input|self, int dim, int[]... sizes)", run_unflatten, 0, NULL},
    {"squeeze squeeze_ squeeze_copy", "squeeze(Tensor input|self, int[]? dim=None)", run_squeeze, 0,
     NULL},
    {"unsqueeze unsqueeze_ unsqueeze_copy", "unsqueeze(Tensor input|self, int dim)", run_unsqueeze,
     0, NULL},
    {"transpose transpose_ transpose_copy swapaxes swapaxes_ swapdims swapdims_",
     "transpose(Tensor input|self, int dim0|axis0, int dim1|axis1)", run_transpose, 0, NULL},
    {"t t_ t_copy H", "t(Tensor input|self)", run_t, 0, NULL},
    {"T", "T(Tensor input|self)", run_reverse_dims, 0, "all dimensions in reverse order"},
    {"adjoint mT mH", "adjoint(Tensor input|self)", run_matrix_transpose, 0,
     "the last two dimensions swapped"},
    {"permute permute_copy", "permute(Tensor input|self, int[]... dims)", run_permute, 0, NULL},
    {"movedim moveaxis", "movedim(Tensor input|self, int[] source, int[] destination)", run_movedim,
     0, NULL},
    {"expand broadcast_to expand_copy",
     "expand(Tensor input|self, int[]... size|shape, *, bool implicit=False)", run_expand, 0, NULL},
    {"expand_as", "expand_as(Tensor input|self, Tensor other)", run_expand_as, 0, NULL},
    {"broadcast_tensors", "broadcast_tensors(Tensor[]... tensors)", run_broadcast_tensors, 0, NULL},
    {"clone contiguous alias alias_copy lift lift_fresh lift_fresh_copy "
     "pin_memory _pin_memory cpu cuda npu",
     "clone(Tensor input|self, any device=None, bool non_blocking=False)", run_same, 0, NULL},
    {"detach detach_ detach_copy", "detach(Tensor input|self)", run_detach, OP_NO_GRAD, NULL},
    {"atleast_1d", "atleast_1d(Tensor input|self)\natleast_1d(Tensor[]... tensors)", run_atleast_1d,
     0, NULL},
    {"atleast_2d", "atleast_2d(Tensor input|self)\natleast_2d(Tensor[]... tensors)", run_atleast_2d,
     0, NULL},
    {"atleast_3d", "atleast_3d(Tensor input|self)\natleast_3d(Tensor[]... tensors)", run_atleast_3d,
     0, NULL},
    {0},
};
