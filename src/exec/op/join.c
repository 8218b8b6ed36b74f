/* Tensors put together and taken apart: cat, stack, split, unbind, meshgrid, ... */
#include "exec/op/place.h"

/* ---- Together -------------------------------------------------------------------------------- */

/* The list argument, all of one type, None refused. */
static struct val **same_typed(struct op *o, size_t *n)
{
    struct val **xs = arg_tensors(o, "tensors", n);
    if (o->failed)
        return NULL;
    if (*n == 0)
        return op_fail(o, PLUMB_E_ARG, "%s of no tensors", o->call->name);
    for (size_t k = 0; k < *n; k++)
        if (!xs[k])
            return op_fail(o, PLUMB_E_ARG, "%s: tensor %zu is None", o->call->name, k);
    enum plumb_dtype dtype = xs[0]->dtype;
    for (size_t k = 1; k < *n; k++)
        dtype = promote_dtypes(dtype, xs[k]->dtype);
    for (size_t k = 0; k < *n; k++)
        xs[k] = v_cast(o, xs[k], dtype);
    return o->failed ? NULL : xs;
}

/* A tensor of shape [0] fits to anything. */
static bool is_nothing(const struct val *x)
{
    return x->rank == 1 && x->shape[0] == 0;
}

static struct val *joined(struct op *o, struct val **xs, size_t n, int64_t dim)
{
    if (o->failed)
        return NULL;
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        if (xs[k]->rank == 0)
            return op_fail(o, PLUMB_E_ARG, "%s: tensor %zu has no dimensions", o->call->name, k);
        if (is_nothing(xs[k]))
            continue;
        xs[kept++] = xs[k];
    }
    if (kept == 0)
        return xs[0];
    unsigned d = val_dim(o, xs[0], dim);
    return o->failed ? NULL : v_cat(o, xs, kept, d);
}

static void run_cat(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    op_return(o, joined(o, xs, n, arg_int(o, "dim")));
}

static void run_stack(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    int64_t dim = arg_int(o, "dim");
    if (o->failed)
        return;
    int64_t places = (int64_t)xs[0]->rank + 1;
    if (dim < -places || dim >= places || places > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "stack at dimension %lld of tensors with %u", (long long)dim,
                xs[0]->rank);
        return;
    }
    unsigned d = (unsigned)(dim < 0 ? dim + places : dim);
    for (size_t k = n; k-- > 0;) {
        if (!same_shape(xs[0], xs[k]))
            op_fail(o, PLUMB_E_ARG, "stack: tensor %zu has another shape than the first", k);
        xs[k] = v_unsqueeze(o, xs[k], d);
    }
    if (!o->failed)
        op_return(o, v_cat(o, xs, n, d));
}

static struct val *with_shape(struct op *o, struct val *x, int64_t a, int64_t b, int64_t c,
                              unsigned rank)
{
    int64_t shape[3] = {a, b, c};
    return v_reshape(o, x, rank, shape);
}

static void run_hstack(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    for (size_t k = 0; xs && k < n; k++)
        xs[k] = xs[k]->rank ? xs[k] : with_shape(o, xs[k], 1, 1, 1, 1);
    op_return(o, o->failed ? NULL : joined(o, xs, n, xs[0]->rank == 1 ? 0 : 1));
}

static void run_vstack(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    for (size_t k = 0; xs && k < n; k++)
        if (xs[k]->rank < 2)
            xs[k] = with_shape(o, xs[k], 1, xs[k]->count, 1, 2);
    op_return(o, joined(o, xs, n, 0));
}

static void run_dstack(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    for (size_t k = 0; xs && k < n; k++) {
        struct val *x = xs[k];
        if (x->rank < 2)
            xs[k] = with_shape(o, x, 1, x->count, 1, 3);
        else if (x->rank == 2)
            xs[k] = with_shape(o, x, x->shape[0], x->shape[1], 1, 3);
    }
    op_return(o, joined(o, xs, n, 2));
}

static void run_column_stack(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    for (size_t k = 0; xs && k < n; k++)
        if (xs[k]->rank < 2)
            xs[k] = with_shape(o, xs[k], xs[k]->count, 1, 1, 2);
    op_return(o, joined(o, xs, n, 1));
}

/* Each 1-d tensor along its own dimension of a common grid. */
static struct val **grids(struct op *o, struct val **xs, size_t n)
{
    int64_t shape[OP_RANK];
    if (o->failed)
        return NULL;
    if (n > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "%s of %zu tensors", o->call->name, n);
    for (size_t k = 0; k < n; k++) {
        if (!xs[k] || xs[k]->rank > 1)
            return op_fail(o, PLUMB_E_ARG, "%s: tensor %zu is not 1-d", o->call->name, k);
        shape[k] = xs[k]->count;
    }
    for (size_t k = 0; k < n; k++) {
        int64_t own[OP_RANK];
        for (size_t d = 0; d < n; d++)
            own[d] = d == k ? shape[k] : 1;
        xs[k] = v_broadcast(o, v_reshape(o, xs[k], (unsigned)n, own), (unsigned)n, shape);
    }
    return o->failed ? NULL : xs;
}

static void run_meshgrid(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "tensors", &n);
    const char *indexing = arg_text(o, "indexing");
    if (indexing && (indexing[0] != 'i' && indexing[0] != 'x')) {
        op_fail(o, PLUMB_E_ARG, "meshgrid: indexing '%s' is neither 'ij' nor 'xy'", indexing);
        return;
    }
    const bool swap = indexing && indexing[0] == 'x' && n >= 2;
    if (swap) {
        struct val *first = xs[0];
        xs[0] = xs[1];
        xs[1] = first;
    }
    xs = grids(o, xs, n);
    op_return_tuple(o);
    for (size_t k = 0; k < n && xs; k++)
        op_return(o, xs[swap && k < 2 ? 1 - k : k]);
}

static void run_cartesian_prod(struct op *o)
{
    size_t n;
    struct val **xs = same_typed(o, &n);
    if (xs && n == 1) {
        op_return(o, xs[0]);
        return;
    }
    xs = grids(o, xs, n);
    for (size_t k = 0; k < n && xs; k++)
        xs[k] = xs[k] ? with_shape(o, xs[k], xs[k]->count, 1, 1, 2) : NULL;
    op_return(o, o->failed ? NULL : v_cat(o, xs, n, 1));
}

/* The next choice of r places below n in lexicographic order. */
static bool next_choice(int64_t *choice, int64_t r, int64_t n, bool repeat)
{
    for (int64_t k = r; k-- > 0;) {
        int64_t last = repeat ? n - 1 : n - r + k;
        if (choice[k] >= last)
            continue;
        choice[k]++;
        for (int64_t j = k + 1; j < r; j++)
            choice[j] = repeat ? choice[k] : choice[j - 1] + 1;
        return true;
    }
    return false;
}

static void run_combinations(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t r = arg_int(o, "r");
    bool repeat = arg_bool(o, "with_replacement");
    if (!x)
        return;
    if (x->rank != 1 || r < 0) {
        op_fail(o, PLUMB_E_ARG, "combinations of %lld out of a tensor with %u dimensions",
                (long long)r, x->rank);
        return;
    }
    /* How many there are: the binomial coefficient of m over r, built factor by factor. */
    int64_t n = x->count, m = repeat ? n + r - 1 : n, rows = r > m || n == 0 ? 0 : 1;
    for (int64_t k = 1; k <= r && rows > 0; k++)
        if (__builtin_mul_overflow(rows, m - r + k, &rows) || (rows /= k) > INT64_C(1) << 40) {
            op_fail(o, PLUMB_E_ARG, "combinations: there are too many");
            return;
        }
    int64_t shape[2] = {rows, r}, count = r == 0 ? 0 : shape_count(o, 2, shape);
    if (r == 0)
        shape[0] = 0;
    int64_t *map = count < 0 ? NULL : op_alloc(o, count + 1, sizeof *map);
    int64_t *choice = map ? op_alloc(o, r + 1, sizeof *choice) : NULL;
    if (!choice)
        return;
    for (int64_t k = 0; k < r; k++)
        choice[k] = repeat ? 0 : k;
    for (int64_t row = 0; row < rows && r > 0; row++) {
        for (int64_t k = 0; k < r; k++)
            map[row * r + k] = choice[k];
        next_choice(choice, r, n, repeat);
    }
    op_return(o, v_map(o, x, r == 0 ? 1 : 2, shape, map));
}

/* ---- Apart ----------------------------------------------------------------------------------- */

static void return_parts(struct op *o, struct val *x, unsigned dim, const int64_t *sizes, size_t n)
{
    op_return_tuple(o);
    int64_t start = 0;
    for (size_t k = 0; k < n && !o->failed; k++) {
        op_return(o, v_narrow(o, x, dim, start, sizes[k]));
        start += sizes[k];
    }
}

/* Parts of `size`, the last one smaller. */
static void split_evenly(struct op *o, struct val *x, unsigned dim, int64_t size)
{
    int64_t length = x->shape[dim];
    if (size < 0 || (size == 0 && length > 0)) {
        op_fail(o, PLUMB_E_ARG, "%s: parts of size %lld", o->call->name, (long long)size);
        return;
    }
    int64_t n = length == 0 ? 1 : (length - 1) / size + 1;
    int64_t *sizes = op_alloc(o, n, sizeof *sizes);
    for (int64_t k = 0; sizes && k < n; k++)
        sizes[k] = k < n - 1 ? size : length - k * size;
    if (sizes)
        return_parts(o, x, dim, sizes, (size_t)n);
}

static bool splittable(struct op *o, const struct val *x, const char *dim_name, unsigned *dim)
{
    *dim = val_dim(o, x, dim_name ? arg_int(o, dim_name) : 0);
    if (o->failed || !x)
        return false;
    if (x->rank == 0)
        op_fail(o, PLUMB_E_ARG, "%s: a tensor without dimensions", o->call->name);
    return !o->failed;
}

static void run_split(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned dim;
    if (!splittable(o, x, "dim", &dim))
        return;
    const struct plumb_arg *raw = arg_raw(o, "sizes");
    size_t n;
    const int64_t *sizes = arg_many_ints(o, "sizes", &n);
    if (!sizes)
        op_fail(o, PLUMB_E_ARG, "%s: None is no size", o->call->name);
    if (o->failed)
        return;
    if (raw->kind != PLUMB_ARG_LIST && n == 1) {
        split_evenly(o, x, dim, sizes[0]);
        return;
    }
    int64_t sum = 0;
    for (size_t k = 0; k < n; k++)
        if (sizes[k] < 0 || __builtin_add_overflow(sum, sizes[k], &sum))
            sum = -1;
    if (sum != x->shape[dim])
        op_fail(o, PLUMB_E_ARG, "%s: the sizes do not add up to the %lld of dimension %u",
                o->call->name, (long long)x->shape[dim], dim);
    else
        return_parts(o, x, dim, sizes, n);
}

static void run_chunk(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t chunks = arg_int(o, "chunks");
    unsigned dim;
    if (!splittable(o, x, "dim", &dim))
        return;
    int64_t length = x->shape[dim];
    if (chunks <= 0)
        op_fail(o, PLUMB_E_ARG, "chunk into %lld parts", (long long)chunks);
    else if (length > 0)
        split_evenly(o, x, dim, (length - 1) / chunks + 1);
    else {
        int64_t *sizes = op_alloc(o, chunks, sizeof *sizes);
        if (sizes)
            return_parts(o, x, dim, sizes, (size_t)chunks);
    }
}

/* Into so many nearly equal parts (the first ones one larger), or before each of the indices. */
static void split_at(struct op *o, struct val *x, unsigned dim, bool equal)
{
    const struct plumb_arg *raw = arg_raw(o, "indices");
    size_t n;
    const int64_t *at = arg_many_ints(o, "indices", &n);
    if (!at)
        op_fail(o, PLUMB_E_ARG, "%s: None is no index", o->call->name);
    if (o->failed)
        return;
    int64_t length = x->shape[dim];
    bool lone =
        raw->kind == PLUMB_ARG_TENSOR ? raw->tensor->rank == 0 : raw->kind != PLUMB_ARG_LIST;
    if (lone) {
        int64_t parts = at[0];
        if (parts <= 0 || (equal && length % parts != 0)) {
            op_fail(o, PLUMB_E_ARG, "%s: %lld elements into %lld parts", o->call->name,
                    (long long)length, (long long)parts);
            return;
        }
        int64_t *sizes = op_alloc(o, parts, sizeof *sizes);
        for (int64_t k = 0; sizes && k < parts; k++)
            sizes[k] = length / parts + (k < length % parts);
        if (sizes)
            return_parts(o, x, dim, sizes, (size_t)parts);
        return;
    }
    op_return_tuple(o);
    int64_t from = 0;
    for (size_t k = 0; k <= n && !o->failed; k++) {
        int64_t to = k < n ? at[k] : length, start = from;
        int64_t size = slice_length(length, &start, to, 1);
        op_return(o, v_narrow(o, x, dim, start, size));
        from = to;
    }
}

static void run_tensor_split(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned dim;
    if (splittable(o, x, "dim", &dim))
        split_at(o, x, dim, false);
}

static void split_along(struct op *o, unsigned least, unsigned dim)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank < least)
        op_fail(o, PLUMB_E_ARG, "%s: a tensor of %u dimensions", o->call->name, x->rank);
    else if (x)
        split_at(o, x, dim, true);
}

static void run_hsplit(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    split_along(o, 1, x && x->rank == 1 ? 0 : 1);
}

static void run_vsplit(struct op *o)
{
    split_along(o, 2, 0);
}

static void run_dsplit(struct op *o)
{
    split_along(o, 3, 2);
}

static void run_unbind(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned dim;
    if (!splittable(o, x, "dim", &dim))
        return;
    op_return_tuple(o);
    for (int64_t k = 0; k < x->shape[dim] && !o->failed; k++)
        op_return(o, v_squeeze(o, v_narrow(o, x, dim, k, 1), dim));
}

/* x cut along dim into equal pieces, the last filled up with zeros: [.., chunks, all of a piece].
 */
static struct val *pieces(struct op *o, struct val *x, unsigned dim, int64_t chunks)
{
    const struct span3 span = val_span(x, dim);
    const int64_t each = span.length / chunks + (span.length % chunks != 0);
    const int64_t size = each * span.inner;
    int64_t shape[OP_RANK], count;
    if (__builtin_mul_overflow(span.outer * size, chunks, &count))
        return op_fail(o, PLUMB_E_ARG, "%s: %lld chunks", o->call->name, (long long)chunks);
    int64_t *map = op_alloc(o, count, sizeof *map);
    for (unsigned d = 0; d < dim; d++)
        shape[d] = x->shape[d];
    shape[dim] = chunks;
    shape[dim + 1] = size;
    for (int64_t k = 0; map && k < count; k++) {
        const int64_t at = k / size % chunks * size + k % size, row = span.length * span.inner;
        map[k] = at < row ? k / (chunks * size) * row + at : -1;
    }
    return map ? v_map(o, x, dim + 2, shape, map) : NULL;
}

static void run_chunk_cat(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "tensors", &n);
    const int64_t chunks = arg_int(o, "num_chunks"), dim = arg_int(o, "dim");
    if (!xs || n == 0 || chunks < 1 || dim < 0) {
        op_fail(o, PLUMB_E_ARG, "%s: tensors, a dimension and a number of chunks are needed",
                o->call->name);
        return;
    }
    for (size_t k = 0; k < n && !o->failed; k++) {
        if (dim >= (int64_t)xs[k]->rank || xs[k]->rank + 1 > OP_RANK)
            op_fail(o, PLUMB_E_ARG, "%s: dimension %lld of a tensor of %u", o->call->name,
                    (long long)dim, xs[k]->rank);
        else
            xs[k] = pieces(o, xs[k], (unsigned)dim, chunks);
    }
    if (!o->failed)
        op_return(o, v_cat(o, xs, n, (unsigned)dim + 1));
}

const struct op_def op_join[] = {
    {"_chunk_cat", "_chunk_cat(Tensor[] tensors, int dim, int num_chunks)", run_chunk_cat, 0,
     "tensors cut into chunks, filled up with zeros, side by side"},
    {"cat concat concatenate", "cat(Tensor[] tensors, int dim|axis=0)", run_cat, 0, NULL},
    {"stack", "stack(Tensor[] tensors, int dim=0)", run_stack, 0, NULL},
    {"hstack", "hstack(Tensor[] tensors)", run_hstack, 0, NULL},
    {"vstack row_stack", "vstack(Tensor[] tensors)", run_vstack, 0, NULL},
    {"dstack", "dstack(Tensor[] tensors)", run_dstack, 0, NULL},
    {"column_stack", "column_stack(Tensor[] tensors)", run_column_stack, 0, NULL},
    {"meshgrid", "meshgrid(Tensor[]... tensors, *, str? indexing=None)", run_meshgrid, 0, NULL},
    {"cartesian_prod", "cartesian_prod(Tensor[]... tensors)", run_cartesian_prod, 0, NULL},
    {"combinations", "combinations(Tensor input|self, int r=2, bool with_replacement=False)",
     run_combinations, 0, NULL},
    {"split unsafe_split split_copy split_with_sizes unsafe_split_with_sizes split_with_sizes_copy",
     "split(Tensor input|self|tensor, any sizes|split_size|split_sizes|split_size_or_sections, int "
     "dim=0)",
     run_split, 0, NULL},
    {"chunk unsafe_chunk", "chunk(Tensor input|self, int chunks, int dim=0)", run_chunk, 0, NULL},
    {"tensor_split",
     "tensor_split(Tensor input|self, any "
     "indices|sections|indices_or_sections|tensor_indices_or_sections, int dim=0)",
     run_tensor_split, 0, NULL},
    {"hsplit", "hsplit(Tensor input|self, any indices|sections|indices_or_sections)", run_hsplit, 0,
     NULL},
    {"vsplit", "vsplit(Tensor input|self, any indices|sections|indices_or_sections)", run_vsplit, 0,
     NULL},
    {"dsplit", "dsplit(Tensor input|self, any indices|sections|indices_or_sections)", run_dsplit, 0,
     NULL},
    {"unbind unbind_copy", "unbind(Tensor input|self, int dim=0)", run_unbind, 0, NULL},
    {0},
};
