/* Checked shapes and indices, elements picked by a map of places, and written by one. */
#include "exec/op/place.h"

#include <string.h>

int64_t shape_count(struct op *o, unsigned rank, const int64_t *shape)
{
    int64_t count = 1;
    bool empty = false;
    for (unsigned d = 0; d < rank; d++) {
        if (shape[d] < 0) {
            op_fail(o, PLUMB_E_ARG, "size %lld of dimension %u is negative", (long long)shape[d],
                    d);
            return -1;
        }
        empty |= shape[d] == 0;
        if (__builtin_mul_overflow(count, shape[d] ? shape[d] : 1, &count) ||
            count > INT64_MAX / 64) {
            op_fail(o, PLUMB_E_ARG, "a shape with size %lld in dimension %u has too many elements",
                    (long long)shape[d], d);
            return -1;
        }
    }
    return empty ? 0 : count;
}

void shape_strides(unsigned rank, const int64_t *shape, int64_t *stride)
{
    int64_t step = 1;
    for (unsigned d = rank; d-- > 0;) {
        stride[d] = step;
        step *= shape[d] ? shape[d] : 1;
    }
}

int64_t slice_length(int64_t size, int64_t *start, int64_t stop, int64_t step)
{
    int64_t first = *start < 0 ? *start + size : *start;
    int64_t last = stop < 0 ? stop + size : stop;
    first = first < 0 ? 0 : first > size ? size : first;
    last = last < first ? first : last > size ? size : last;
    *start = first;
    return last == first ? 0 : (last - first - 1) / step + 1;
}

int64_t index_wrap(struct op *o, int64_t index, int64_t size)
{
    if (index >= size || index < -size) {
        op_fail(o, PLUMB_E_ARG, "index %lld is outside a dimension of size %lld", (long long)index,
                (long long)size);
        return -1;
    }
    return index < 0 ? index + size : index;
}

struct val *arg_index(struct op *o, const char *name)
{
    struct val *x = arg_tensor(o, name);
    if (x && x->dtype != PLUMB_I64 && x->dtype != PLUMB_I32)
        return op_fail(o, PLUMB_E_ARG, "%s must be an int64 tensor, not %s", name,
                       plumb_dtype_info(x->dtype)->name);
    return x;
}

const int64_t *arg_many_ints(struct op *o, const char *name, size_t *n)
{
    *n = 0;
    const struct plumb_arg *arg = arg_raw(o, name);
    if (!arg || arg->kind == PLUMB_ARG_NONE)
        return NULL;
    if (arg->kind == PLUMB_ARG_TENSOR) {
        struct val *x = arg_value(o, arg);
        if (!x)
            return NULL;
        if (!x->i)
            return op_fail(o, PLUMB_E_ARG, "%s must hold integers, not %s", name,
                           plumb_dtype_info(x->dtype)->name);
        *n = (size_t)x->count;
        return x->i;
    }
    bool list = arg->kind == PLUMB_ARG_LIST;
    const struct plumb_arg *items = list ? arg->items : arg;
    size_t count = list ? arg->n_items : 1;
    int64_t *out = op_alloc(o, (int64_t)count + 1, sizeof *out);
    for (size_t k = 0; out && k < count; k++) {
        if (items[k].kind == PLUMB_ARG_TENSOR) {
            struct val *x = arg_value(o, &items[k]);
            if (!x)
                return NULL;
            if (!x->i || x->count != 1)
                return op_fail(o, PLUMB_E_ARG, "%s[%zu] is no integer", name, k);
            out[k] = x->i[0];
        } else if (items[k].kind == PLUMB_ARG_INT || items[k].kind == PLUMB_ARG_BOOL) {
            out[k] = items[k].integer;
        } else {
            return op_fail(o, PLUMB_E_ARG, "%s[%zu] is no integer", name, k);
        }
    }
    *n = out ? count : 0;
    return out;
}

const int64_t *pick_map(struct op *o, const struct val *x, int64_t *shape,
                        const int64_t *const *index)
{
    if (!x)
        return NULL;
    for (unsigned d = 0; d < x->rank; d++)
        if (!index[d])
            shape[d] = x->shape[d];
    int64_t count = shape_count(o, x->rank, shape);
    int64_t *map = count < 0 ? NULL : op_alloc(o, count + 1, sizeof *map);
    if (!map || count == 0)
        return map;
    /* Dimension by dimension, each place of the dimensions so far is spread to its row, from the
     * back, so that no place is overwritten before it was read. */
    int64_t n = 1;
    for (unsigned d = 0; d < x->rank; d++) {
        int64_t size = x->shape[d], length = shape[d];
        const int64_t *at = index[d];
        for (int64_t k = n; k-- > 0;) {
            int64_t place = map[k], *row = map + k * length;
            if (place < 0) {
                for (int64_t j = 0; j < length; j++)
                    row[j] = -1;
            } else if (!at) {
                for (int64_t j = 0; j < length; j++)
                    row[j] = place * size + j;
            } else {
                for (int64_t j = 0; j < length; j++)
                    row[j] = at[j] < 0 ? -1 : place * size + at[j];
            }
        }
        n *= length;
    }
    return map;
}

struct val *v_pick(struct op *o, struct val *x, int64_t *shape, const int64_t *const *index)
{
    const int64_t *map = pick_map(o, x, shape, index);
    return map ? v_map(o, x, x->rank, shape, map) : NULL;
}

struct val *v_pick_dim(struct op *o, struct val *x, unsigned dim, int64_t length,
                       const int64_t *index)
{
    if (!x || !index)
        return NULL;
    const int64_t *all[OP_RANK] = {0};
    int64_t shape[OP_RANK];
    all[dim] = index;
    shape[dim] = length;
    return v_pick(o, x, shape, all);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static struct val *copy_of(struct op *o, const struct val *x)
{
    struct val *out = val_like(o, x, x->dtype);
    if (out && x->count > 0) {
        if (x->f)
            memcpy(out->f, x->f, (size_t)x->count * sizeof *x->f);
        else
            memcpy(out->i, x->i, (size_t)x->count * sizeof *x->i);
    }
    return out;
}

static void source_grad(struct op *o, struct val *out)
{
    struct val *source = out->in[1];
    const int64_t *map = out->saved;
    real *g = val_grad(o, source);
    if (!g)
        return;
    for (int64_t k = 0; k < source->count; k++)
        if (map[k] >= 0)
            g[k] += out->grad[map[k]];
}

static void place_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    if (g) {
        const int64_t *map = out->saved;
        bool *hidden = op_alloc(o, out->count + 1, sizeof *hidden);
        if (!hidden)
            return;
        for (int64_t k = 0; k < out->in[1]->count; k++)
            if (map[k] >= 0)
                hidden[map[k]] = true;
        for (int64_t k = 0; k < out->count; k++)
            g[k] += hidden[k] ? 0 : out->grad[k];
    }
    source_grad(o, out);
}

static void place_add_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    for (int64_t k = 0; g && k < out->count; k++)
        g[k] += out->grad[k];
    source_grad(o, out);
}

struct val *v_place(struct op *o, struct val *x, struct val *source, const int64_t *map)
{
    struct val *out = x && source && map ? copy_of(o, x) : NULL;
    for (int64_t k = 0; out && k < source->count; k++) {
        if (map[k] < 0)
            continue;
        if (out->f)
            out->f[map[k]] = source->f[k];
        else
            out->i[map[k]] = source->i[k];
    }
    return out ? val_moved(o, out, place_backward, x, source, NULL, map) : NULL;
}

struct val *v_place_add(struct op *o, struct val *x, struct val *source, const int64_t *map)
{
    struct val *out = x && source && map ? copy_of(o, x) : NULL;
    if (out)
        op_terms_map(o, map, source->count, x->count);
    for (int64_t k = 0; out && k < source->count; k++) {
        if (map[k] < 0)
            continue;
        if (out->f) {
            out->f[map[k]] += source->f[k];
            op_accumulated(o, &out->f[map[k]], 1);
        } else {
            uint64_t sum = (uint64_t)out->i[map[k]] + (uint64_t)source->i[k];
            out->i[map[k]] = int_wrap(x->dtype, (int64_t)sum);
        }
    }
    return out ? val_node(o, out, place_add_backward, x, source, NULL, map) : NULL;
}
