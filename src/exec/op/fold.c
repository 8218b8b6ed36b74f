/* Reduced dimensions. */
#include "exec/op/fold.h"

uint64_t fold_mask(const struct val *x, uint64_t dims)
{
    uint64_t all = x->rank < 64 ? ((uint64_t)1 << x->rank) - 1 : UINT64_MAX;
    return dims ? dims : all;
}

unsigned fold_shape(const struct val *x, uint64_t dims, bool keepdim, int64_t *shape)
{
    unsigned rank = 0;
    dims = fold_mask(x, dims);
    for (unsigned d = 0; d < x->rank; d++) {
        if (!(dims >> d & 1))
            shape[rank++] = x->shape[d];
        else if (keepdim)
            shape[rank++] = 1;
    }
    return rank;
}

bool fold_begin(struct op *o, struct val *x, uint64_t dims, bool keepdim, struct fold *fold)
{
    *fold = (struct fold){.x = x, .span = {1, 1, 1}};
    if (!x)
        return false;
    dims = fold_mask(x, dims);
    fold->rank = fold_shape(x, dims, keepdim, fold->shape);

    unsigned order[OP_RANK], n = 0;
    unsigned first = x->rank, last = 0;
    for (unsigned d = 0; d < x->rank; d++)
        if (dims >> d & 1 && x->shape[d] != 1) {
            first = d < first ? d : first;
            last = d;
        }
    bool apart = false;
    for (unsigned d = first; d < last; d++)
        apart = apart || (!(dims >> d & 1) && x->shape[d] != 1);
    for (unsigned d = 0; d < x->rank; d++) {
        bool reduced = dims >> d & 1;
        int64_t *part = reduced              ? &fold->span.length
                        : apart || d < first ? &fold->span.outer
                                             : &fold->span.inner;
        *part = size_times(*part, x->shape[d]);
    }
    if (!apart)
        return !o->failed;
    for (unsigned d = 0; d < x->rank; d++)
        if (!(dims >> d & 1))
            order[n++] = d;
    for (unsigned d = 0; d < x->rank; d++)
        if (dims >> d & 1)
            order[n++] = d;
    fold->x = v_permute(o, x, order);
    return fold->x && !o->failed;
}

struct val *fold_new(struct op *o, const struct fold *fold, enum plumb_dtype dtype)
{
    return val_new(o, dtype, fold->rank, fold->shape);
}

const struct span3 *span_keep(struct op *o, struct span3 span)
{
    struct span3 *kept = op_alloc(o, 1, sizeof *kept);
    if (kept)
        *kept = span;
    return kept;
}

uint64_t dims_mask(struct op *o, const struct val *x, const int64_t *dims, size_t n)
{
    uint64_t mask = 0;
    for (size_t k = 0; x && k < n; k++) {
        uint64_t bit = (uint64_t)1 << val_dim(o, x, dims[k]);
        if (!o->failed && mask & bit)
            op_fail(o, PLUMB_E_ARG, "dimension %lld is listed twice", (long long)dims[k]);
        mask |= bit;
    }
    return mask;
}

uint64_t arg_mask(struct op *o, const char *name, const struct val *x)
{
    size_t n = 0;
    const int64_t *dims = arg_ints(o, name, &n);
    return x ? dims_mask(o, x, dims, n) : 0;
}
