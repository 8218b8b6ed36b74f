/* Indexing as Python writes it: x[1, ::2, None, ..., mask, index], read and written. */
#include "exec/op/place.h"

#include <string.h>

/* A strided view of x and the index tensors of some of its dimensions. */
struct selection {
    unsigned rank;
    int64_t shape[OP_RANK], stride[OP_RANK];
    struct val *at[OP_RANK]; /* int64 indices, or NULL: all of the dimension */
    int64_t offset;
};

/* What a selection comes to: the place in x of every element of the result. */
struct places {
    unsigned rank;
    int64_t shape[OP_RANK];
    const int64_t *map;
};

/* ---- Index tensors --------------------------------------------------------------------------- */

static bool is_mask(const struct val *x)
{
    return x->dtype == PLUMB_BOOL || x->dtype == PLUMB_U8;
}

/* The coordinates along dimension `dim` of the mask's true elements. */
static struct val *true_places(struct op *o, const struct val *mask, unsigned dim)
{
    int64_t n = 0, k = 0;
    for (int64_t j = 0; j < mask->count; j++)
        n += mask->i[j] != 0;
    struct val *out = val_new(o, PLUMB_I64, 1, &n);
    const struct span3 s = val_span(mask, dim);
    for (int64_t j = 0; out && j < mask->count; j++)
        if (mask->i[j])
            out->i[k++] = j / s.inner % s.length;
    return out;
}

/* Puts an index tensor at dimension *dim of the selection; a mask takes as many as it has. */
static void add_tensor(struct op *o, struct selection *s, unsigned *dim, struct val *index)
{
    if (!index || o->failed)
        return;
    unsigned needs = is_mask(index) ? index->rank : 1;
    if (!index->i || *dim + needs > s->rank) {
        op_fail(o, PLUMB_E_ARG,
                index->i ? "too many indices for a tensor of %u dimensions"
                         : "an index tensor of floats (of %u dimensions)",
                s->rank);
        return;
    }
    if (!is_mask(index)) {
        s->at[(*dim)++] = index;
        return;
    }
    for (unsigned d = 0; d < needs; d++) {
        if (index->shape[d] != s->shape[*dim]) {
            op_fail(o, PLUMB_E_ARG, "a mask of size %lld over a dimension of size %lld",
                    (long long)index->shape[d], (long long)s->shape[*dim]);
            return;
        }
        s->at[(*dim)++] = true_places(o, index, d);
    }
}

/* Places of a strided box, appended to nothing: the sum of all strides times coordinates. */
static int64_t *box(struct op *o, unsigned rank, const int64_t *shape, const int64_t *stride,
                    int64_t *count)
{
    *count = shape_count(o, rank, shape);
    int64_t *out = *count < 0 ? NULL : op_alloc(o, *count + 1, sizeof *out), n = 1;
    for (unsigned d = 0; out && d < rank && *count; d++) {
        for (int64_t k = n; k-- > 0;) {
            int64_t base = out[k];
            for (int64_t j = shape[d]; j-- > 0;)
                out[k * shape[d] + j] = base + j * stride[d];
        }
        n *= shape[d];
    }
    return out;
}

/* The indices broadcast against each other; for each element the place that they lead to. */
static int64_t *indexed(struct op *o, const struct selection *s, unsigned *rank, int64_t *shape,
                        int64_t *count)
{
    struct val joint = {0};
    for (unsigned d = 0; d < s->rank; d++) {
        const struct val before = joint;
        if (s->at[d] && !broadcast_shape(o, &before, s->at[d], &joint.rank, joint.shape))
            return NULL;
    }
    *rank = joint.rank;
    memcpy(shape, joint.shape, sizeof joint.shape);
    *count = shape_count(o, joint.rank, joint.shape);
    int64_t *out = *count < 0 ? NULL : op_alloc(o, *count + 1, sizeof *out);
    for (unsigned d = 0; out && d < s->rank; d++) {
        struct val *at = s->at[d] ? v_broadcast(o, s->at[d], joint.rank, joint.shape) : NULL;
        if (!at)
            continue;
        for (int64_t k = 0; k < *count; k++) {
            int64_t place = index_wrap(o, at->i[k], s->shape[d]);
            if (place < 0)
                return NULL;
            out[k] += place * s->stride[d];
        }
    }
    return o->failed ? NULL : out;
}

/* The indexed dimensions come out where they were if they are neighbours, else first. */
static bool find_places(struct op *o, const struct selection *s, struct places *out)
{
    unsigned first = s->rank, last = 0, n = 0;
    for (unsigned d = 0; d < s->rank; d++)
        if (s->at[d]) {
            first = n++ ? first : d;
            last = d;
        }
    if (n == 0)
        first = last = 0;
    bool together = n > 0 && last - first + 1 == n;
    unsigned lead = together ? first : 0, before = 0, after = 0, middle = 0;
    int64_t shape[2][OP_RANK], stride[2][OP_RANK], joint[OP_RANK], count[3];
    for (unsigned d = 0; d < s->rank; d++) {
        if (s->at[d])
            continue;
        unsigned part = d < lead ? 0 : 1, at = part ? after++ : before++;
        shape[part][at] = s->shape[d];
        stride[part][at] = s->stride[d];
    }
    const int64_t *a = box(o, before, shape[0], stride[0], &count[0]);
    const int64_t *b = indexed(o, s, &middle, joint, &count[1]);
    const int64_t *c = box(o, after, shape[1], stride[1], &count[2]);
    if (!a || !b || !c)
        return false;
    out->rank = before + middle + after;
    if (out->rank > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "an index leads to %u dimensions", out->rank);
        return false;
    }
    memcpy(out->shape, shape[0], before * sizeof *joint);
    memcpy(out->shape + before, joint, middle * sizeof *joint);
    memcpy(out->shape + before + middle, shape[1], after * sizeof *joint);
    int64_t total = shape_count(o, out->rank, out->shape);
    int64_t *map = total < 0 ? NULL : op_alloc(o, total + 1, sizeof *map), k = 0;
    for (int64_t i = 0; map && i < count[0]; i++)
        for (int64_t j = 0; j < count[1]; j++)
            for (int64_t l = 0; l < count[2]; l++)
                map[k++] = s->offset + a[i] + b[j] + c[l];
    out->map = map;
    return map != NULL;
}

static void select_all(const struct val *x, struct selection *s)
{
    *s = (struct selection){.rank = x->rank};
    memcpy(s->shape, x->shape, x->rank * sizeof *s->shape);
    shape_strides(x->rank, x->shape, s->stride);
}

/* ---- Python's index -------------------------------------------------------------------------- */

static void remove_dim(struct selection *s, unsigned dim)
{
    s->rank--;
    memmove(s->shape + dim, s->shape + dim + 1, (s->rank - dim) * sizeof *s->shape);
    memmove(s->stride + dim, s->stride + dim + 1, (s->rank - dim) * sizeof *s->stride);
}

static void insert_dim(struct op *o, struct selection *s, unsigned dim)
{
    if (s->rank == OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "an index leads to more than %d dimensions", OP_RANK);
        return;
    }
    memmove(s->shape + dim + 1, s->shape + dim, (s->rank - dim) * sizeof *s->shape);
    memmove(s->stride + dim + 1, s->stride + dim, (s->rank - dim) * sizeof *s->stride);
    s->shape[dim] = 1;
    s->stride[dim] = 0;
    s->rank++;
}

static bool has_dim(struct op *o, const struct selection *s, unsigned dim)
{
    if (dim < s->rank)
        return true;
    op_fail(o, PLUMB_E_ARG, "too many indices for a tensor (dimension %u of %u)", dim, s->rank);
    return false;
}

static void take_one(struct op *o, struct selection *s, unsigned dim, int64_t index)
{
    if (!has_dim(o, s, dim))
        return;
    int64_t at = index_wrap(o, index, s->shape[dim]);
    if (at < 0)
        return;
    s->offset += at * s->stride[dim];
    remove_dim(s, dim);
}

static bool slice_part(struct op *o, const struct plumb_arg *part, int64_t otherwise, int64_t *out)
{
    *out = part->kind == PLUMB_ARG_NONE ? otherwise : part->integer;
    if (part->kind == PLUMB_ARG_NONE || part->kind == PLUMB_ARG_INT)
        return true;
    op_fail(o, PLUMB_E_ARG, "a slice that is not made of integers");
    return false;
}

static void take_slice(struct op *o, struct selection *s, unsigned *dim,
                       const struct plumb_arg *arg)
{
    int64_t start, stop, step;
    if (!has_dim(o, s, *dim))
        return;
    if (arg->n_items != 3) {
        op_fail(o, PLUMB_E_ARG, "a slice of %zu parts", arg->n_items);
        return;
    }
    if (!slice_part(o, &arg->items[0], 0, &start) ||
        !slice_part(o, &arg->items[1], INT64_MAX, &stop) ||
        !slice_part(o, &arg->items[2], 1, &step))
        return;
    if (step <= 0) {
        op_fail(o, PLUMB_E_ARG, "a slice with step %lld", (long long)step);
        return;
    }
    s->shape[*dim] = slice_length(s->shape[*dim], &start, stop, step);
    s->offset += s->shape[*dim] ? start * s->stride[*dim] : 0;
    s->stride[*dim] *= s->shape[*dim] > 1 ? step : 1;
    ++*dim;
}

/* True or False as an index: a new dimension of size 1 or 0. */
static void take_truth(struct op *o, struct selection *s, unsigned *dim, bool truth)
{
    int64_t n = truth;
    insert_dim(o, s, *dim);
    struct val *at = val_new(o, PLUMB_I64, 1, &n);
    if (!o->failed)
        s->at[(*dim)++] = at;
}

/* Numbers in nested lists, appended to out; the shape is that of the first items. */
static void flatten_list(struct op *o, const struct plumb_arg *arg, unsigned depth, struct val *out)
{
    bool list = arg->kind == PLUMB_ARG_LIST;
    if (list != (depth < out->rank) || (list && (int64_t)arg->n_items != out->shape[depth])) {
        op_fail(o, PLUMB_E_ARG, "an index list that is not rectangular");
        return;
    }
    if (!list && arg->kind != PLUMB_ARG_INT && arg->kind != PLUMB_ARG_BOOL) {
        op_fail(o, PLUMB_E_ARG, "an index list of something else than integers");
        return;
    }
    if (!list)
        out->i[out->count++] = arg->integer;
    for (size_t k = 0; list && k < arg->n_items && !o->failed; k++)
        flatten_list(o, &arg->items[k], depth + 1, out);
}

static struct val *list_index(struct op *o, const struct plumb_arg *arg)
{
    unsigned rank = 0;
    int64_t shape[OP_RANK];
    const struct plumb_arg *inner = arg;
    while (inner->kind == PLUMB_ARG_LIST) {
        if (rank == OP_RANK)
            return op_fail(o, PLUMB_E_ARG, "an index list nested too deeply");
        shape[rank++] = (int64_t)inner->n_items;
        if (inner->n_items == 0)
            break;
        inner = inner->items;
    }
    struct val *out =
        val_new(o, inner->kind == PLUMB_ARG_BOOL ? PLUMB_BOOL : PLUMB_I64, rank, shape);
    if (!out)
        return NULL;
    out->count = 0; /* counts up again */
    flatten_list(o, arg, 0, out);
    return out;
}

/* How many dimensions an index item takes of the tensor. */
static unsigned dims_taken(const struct plumb_arg *arg)
{
    switch (arg->kind) {
    case PLUMB_ARG_NONE:
    case PLUMB_ARG_ELLIPSIS:
    case PLUMB_ARG_BOOL:
        return 0;
    case PLUMB_ARG_TENSOR:
        return arg->tensor->dtype == PLUMB_BOOL || arg->tensor->dtype == PLUMB_U8
                   ? arg->tensor->rank
                   : 1;
    default:
        return 1;
    }
}

static void take_item(struct op *o, struct selection *s, unsigned *dim, const struct plumb_arg *arg)
{
    struct val *index;
    switch (arg->kind) {
    case PLUMB_ARG_INT:
        take_one(o, s, *dim, arg->integer);
        return;
    case PLUMB_ARG_BOOL:
        take_truth(o, s, dim, arg->integer != 0);
        return;
    case PLUMB_ARG_NONE:
        insert_dim(o, s, (*dim)++);
        return;
    case PLUMB_ARG_SLICE:
        take_slice(o, s, dim, arg);
        return;
    case PLUMB_ARG_LIST:
        add_tensor(o, s, dim, list_index(o, arg));
        return;
    case PLUMB_ARG_TENSOR:
        index = arg_value(o, arg);
        if (index && index->rank == 0 && index->i && is_mask(index))
            take_truth(o, s, dim, index->i[0] != 0);
        else if (index && index->rank == 0 && index->i)
            take_one(o, s, *dim, index->i[0]);
        else
            add_tensor(o, s, dim, index);
        return;
    default:
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "an index that is neither number, slice, tensor, list, "
                "None nor Ellipsis");
    }
}

/* A list is a tuple of indices, unless only an index tensor in list form makes sense. */
static bool is_index_list(const struct plumb_arg *arg, const struct val *x)
{
    if (arg->kind != PLUMB_ARG_LIST || arg->n_items <= x->rank)
        return false;
    for (size_t k = 0; k < arg->n_items; k++)
        if (arg->items[k].kind != PLUMB_ARG_INT)
            return false;
    return true;
}

static bool python_places(struct op *o, const struct val *x, const struct plumb_arg *arg,
                          struct places *out)
{
    if (!x || !arg || o->failed)
        return false;
    struct selection s;
    select_all(x, &s);
    bool tuple = arg->kind == PLUMB_ARG_LIST && !is_index_list(arg, x);
    const struct plumb_arg *items = tuple ? arg->items : arg;
    size_t n = tuple ? arg->n_items : 1;
    unsigned dim = 0, taken = 0, gaps = 0;
    for (size_t k = 0; k < n; k++) {
        if (n > 2 * OP_RANK) {
            op_fail(o, PLUMB_E_ARG, "an index of %zu items", n);
            return false;
        }
        taken += dims_taken(&items[k]);
        gaps += items[k].kind == PLUMB_ARG_ELLIPSIS;
    }
    if (taken > x->rank || gaps > 1) {
        op_fail(o, PLUMB_E_ARG,
                gaps > 1 ? "an index with several ellipses"
                         : "an index of %u dimensions for a tensor of %u",
                taken, x->rank);
        return false;
    }
    for (size_t k = 0; k < n && !o->failed; k++) {
        if (items[k].kind == PLUMB_ARG_ELLIPSIS)
            dim += x->rank - taken;
        else
            take_item(o, &s, &dim, &items[k]);
    }
    return !o->failed && find_places(o, &s, out);
}

static void run_getitem(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct places p;
    if (python_places(o, x, arg_raw(o, "index"), &p))
        op_return(o, v_map(o, x, p.rank, p.shape, p.map));
}

/* source in x's type, broadcast to the places; torch drops leading dimensions of size 1 first. */
static struct val *fitted(struct op *o, struct val *x, struct val *source, const struct places *p)
{
    if (!x || !source)
        return NULL;
    unsigned extra = 0;
    while (source->rank - extra > p->rank && source->shape[extra] == 1)
        extra++;
    if (extra)
        source = v_reshape(o, source, source->rank - extra, source->shape + extra);
    return v_broadcast(o, v_cast(o, source, x->dtype), p->rank, p->shape);
}

static void run_setitem(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "value");
    struct places p;
    if (python_places(o, x, arg_raw(o, "index"), &p))
        op_return(o, v_place(o, x, fitted(o, x, value, &p), p.map));
}

/* ---- aten's index: a list of index tensors, None for a whole dimension ----------------------- */

/* Places that a mask hides may lie anywhere. */
static struct val *inside(struct op *o, struct val *index, const struct selection *s, unsigned dim)
{
    struct val *out = index->i && !is_mask(index) && has_dim(o, s, dim)
                          ? val_like(o, index, index->dtype)
                          : index;
    const int64_t size = out && out != index ? s->shape[dim] : 0;
    for (int64_t k = 0; size > 0 && k < index->count; k++)
        out->i[k] = index->i[k] < -size ? -size : index->i[k] >= size ? size - 1 : index->i[k];
    return out;
}

static bool tensor_places(struct op *o, const struct val *x, bool masked, struct places *out)
{
    size_t n;
    struct val **at = arg_tensors(o, "indices", &n);
    if (!x || o->failed)
        return false;
    struct selection s;
    select_all(x, &s);
    unsigned dim = 0;
    for (size_t k = 0; k < n && !o->failed; k++) {
        if (at[k])
            add_tensor(o, &s, &dim, masked ? inside(o, at[k], &s, dim) : at[k]);
        else if (has_dim(o, &s, dim))
            dim++;
    }
    return !o->failed && find_places(o, &s, out);
}

static void run_index(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct places p;
    if (tensor_places(o, x, false, &p))
        op_return(o, v_map(o, x, p.rank, p.shape, p.map));
}

static void run_index_put(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *values = arg_operand(o, "values");
    struct places p;
    if (!tensor_places(o, x, false, &p))
        return;
    values = fitted(o, x, values, &p);
    op_return(o, arg_bool(o, "accumulate") ? v_place_add(o, x, values, p.map)
                                           : v_place(o, x, values, p.map));
}

static void run_masked_index(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *mask = arg_tensor(o, "mask");
    struct places p;
    if (!tensor_places(o, x, true, &p))
        return;
    struct val *found = v_map(o, x, p.rank, p.shape, p.map);
    op_return(o, x ? v_cast(o, v_where(o, mask, found, arg_operand(o, "fill")), x->dtype) : NULL);
}

static void run_masked_put(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *mask = arg_tensor(o, "mask"),
               *values = arg_tensor(o, "values");
    struct places p;
    if (!tensor_places(o, x, true, &p))
        return;
    values = v_where(o, mask, values, v_int(o, 0));
    op_return(o, v_place_add(o, x, fitted(o, x, values, &p), p.map));
}

const struct op_def op_index[] = {
    {"__getitem__", "__getitem__(Tensor input|self, any index|key)", run_getitem, OP_EXACT,
     "x[index]: numbers, slices, None, ..., masks, index tensors and lists"},
    {"__setitem__", "__setitem__(Tensor input|self, any index|key, Operand value)", run_setitem,
     OP_EXACT, "x after x[index] = value"},
    {"index _unsafe_index", "index(Tensor input|self, Tensor?[] indices)", run_index, OP_EXACT,
     NULL},
    {"index_put index_put_ _unsafe_index_put _index_put_impl_",
     "index_put(Tensor input|self, Tensor?[] indices, Operand values, bool accumulate=False, bool "
     "unsafe=False)",
     run_index_put, 0, NULL},
    {"_unsafe_masked_index",
     "_unsafe_masked_index(Tensor input|self, Tensor mask, Tensor?[] indices, Operand fill)",
     run_masked_index, OP_EXACT, "input[indices] where mask is true, else fill"},
    {"_unsafe_masked_index_put_accumulate",
     "_unsafe_masked_index_put_accumulate(Tensor input|self, Tensor mask, Tensor?[] indices, "
     "Tensor values)",
     run_masked_put, 0, NULL},
    {0},
};
