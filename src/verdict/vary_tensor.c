/* Tensors made of others: a part of them zero, cut off, moved, or each number mapped. */
#include "verdict/vary.h"

#include <stdlib.h>
#include <string.h>

/* A dense copy; the bytes are in *data. */
static struct plumb_tensor *copy_of(struct arena *arena, const struct plumb_tensor *from,
                                    unsigned char **data)
{
    const size_t size = plumb_dtype_info(from->dtype)->bits / 8;
    struct plumb_tensor *to = arena_alloc(arena, sizeof *to);
    *data = size ? arena_array(arena, (size_t)from->count + 1, size) : NULL;
    if (!to || !*data || plumb_tensor_init(to, from->dtype, from->rank, from->shape, NULL))
        return NULL;
    plumb_tensor_gather(from, 0, (size_t)from->count, *data);
    to->swap = from->swap;
    to->data = *data;
    return to;
}

/* The tensor as outer x size x inner bytes around an axis. */
struct around {
    size_t outer, size, inner;
};

static struct around around_axis(const struct plumb_tensor *t, unsigned axis)
{
    struct around a = {
        .outer = 1, .size = (size_t)t->shape[axis], .inner = plumb_dtype_info(t->dtype)->bits / 8};
    for (unsigned d = 0; d < t->rank; d++)
        if (d < axis)
            a.outer *= (size_t)t->shape[d];
        else if (d > axis)
            a.inner *= (size_t)t->shape[d];
    return a;
}

const struct plumb_tensor *vary_zeroed(struct arena *arena, const struct plumb_tensor *from,
                                       unsigned axis, int64_t first, int64_t n)
{
    unsigned char *data;
    struct plumb_tensor *to = copy_of(arena, from, &data);
    const struct around a = around_axis(from, axis);
    for (size_t k = 0; to && k < a.outer; k++)
        memset(data + (k * a.size + (size_t)first) * a.inner, 0, (size_t)n * a.inner);
    return to;
}

const struct plumb_tensor *vary_cut(struct arena *arena, const struct plumb_tensor *from,
                                    unsigned axis, int64_t n)
{
    unsigned char *data;
    struct plumb_tensor *to = copy_of(arena, from, &data);
    const struct around a = around_axis(from, axis);
    int64_t shape[PLUMB_MAX_RANK];
    memcpy(shape, from->shape, sizeof shape);
    shape[axis] = n;
    if (!to || plumb_tensor_init(to, from->dtype, from->rank, shape, NULL))
        return NULL;
    for (size_t k = 0; k < a.outer; k++)
        memmove(data + k * (size_t)n * a.inner, data + k * a.size * a.inner, (size_t)n * a.inner);
    to->swap = from->swap;
    to->data = data;
    return to;
}

const struct plumb_tensor *vary_rolled(struct arena *arena, const struct plumb_tensor *from,
                                       unsigned axis, int64_t by)
{
    unsigned char *data, *source;
    struct plumb_tensor *to = copy_of(arena, from, &data);
    const struct around a = around_axis(from, axis);
    if (!to || !copy_of(arena, from, &source))
        return NULL;
    const size_t shift = (size_t)(((by % (int64_t)a.size) + (int64_t)a.size) % (int64_t)a.size);
    for (size_t k = 0; k < a.outer; k++) {
        unsigned char *row = data + k * a.size * a.inner;
        const unsigned char *old = source + k * a.size * a.inner;
        memcpy(row + shift * a.inner, old, (a.size - shift) * a.inner);
        memcpy(row, old + (a.size - shift) * a.inner, shift * a.inner);
    }
    return to;
}

const struct plumb_tensor *vary_transposed(struct arena *arena, const struct plumb_tensor *from)
{
    struct plumb_tensor *to = arena_alloc(arena, sizeof *to);
    if (!to || from->rank < 2)
        return NULL;
    const unsigned a = from->rank - 2, b = from->rank - 1;
    *to = *from;
    if (from->dense && plumb_tensor_init(to, from->dtype, from->rank, from->shape, NULL))
        return NULL;
    to->swap = from->swap;
    to->data = from->data;
    const int64_t shape = to->shape[a], stride = to->stride[a];
    to->shape[a] = to->shape[b];
    to->stride[a] = to->stride[b];
    to->shape[b] = shape;
    to->stride[b] = stride;
    to->dense = false;
    return to;
}

const struct plumb_tensor *vary_mapped(struct arena *arena, const struct plumb_tensor *from,
                                       double factor, double offset)
{
    unsigned char *data;
    const enum plumb_kind kind = plumb_dtype_info(from->dtype)->kind;
    struct plumb_tensor *to = kind == PLUMB_KIND_COMPLEX ? NULL : copy_of(arena, from, &data);
    const size_t size = plumb_dtype_info(from->dtype)->bits / 8;
    for (uint64_t k = 0; to && k < from->count; k++) {
        double x;
        plumb_tensor_to_f64(from, k, 1, &x);
        x = x * factor + offset;
        plumb_from_f64(from->dtype, &x, 1, data + k * size);
    }
    if (to)
        to->swap = false;
    return to;
}

const struct plumb_tensor *vary_conjugate(struct arena *arena, const struct plumb_tensor *from)
{
    unsigned char *data;
    const enum plumb_kind kind = plumb_dtype_info(from->dtype)->kind;
    struct plumb_tensor *to = kind == PLUMB_KIND_COMPLEX ? copy_of(arena, from, &data) : NULL;
    const size_t size = plumb_dtype_info(from->dtype)->bits / 8;
    const enum plumb_dtype part = from->dtype == PLUMB_C64 ? PLUMB_F32 : PLUMB_F64;
    for (uint64_t k = 0; to && k < from->count; k++) {
        double parts[2];
        plumb_tensor_to_f64(from, k, 1, parts);
        parts[1] = -parts[1];
        plumb_from_f64(part, parts, 2, data + k * size);
    }
    if (to)
        to->swap = false;
    return to;
}
