/* Rearranging elements. */
#include "exec/op/op.h"

#include <string.h>

/* ---- Maps ------------------------------------------------------------------------------------ */

static void map_backward(struct op *o, struct val *out)
{
    const int64_t *map = out->saved;
    real *to = val_grad(o, out->in[0]);
    if (to)
        op_terms_map(o, map, out->count, out->in[0]->count);
    for (int64_t k = 0; to && k < out->count; k++)
        if (map[k] >= 0) {
            to[map[k]] += out->grad[k];
            op_accumulated(o, &to[map[k]], 1);
        }
}

struct val *v_map(struct op *o, struct val *x, unsigned rank, const int64_t *shape,
                  const int64_t *map)
{
    struct val *y = x && map ? val_new(o, x->dtype, rank, shape) : NULL;
    if (!y)
        return NULL;
    y->weak = x->weak;
    for (int64_t k = 0; k < y->count; k++) {
        if (map[k] < 0)
            continue;
        if (y->f)
            y->f[k] = x->f[map[k]];
        else
            y->i[k] = x->i[map[k]];
    }
    return val_moved(o, y, map_backward, x, NULL, NULL, map);
}

/* ---- Strided views --------------------------------------------------------------------------- */

struct strides {
    unsigned rank;
    int64_t shape[OP_RANK], stride[OP_RANK], offset;
};

/* Drops dimensions of size 1 and joins those that run on into each other. */
static struct strides simplify(unsigned rank, const int64_t *shape, const int64_t *stride,
                               int64_t offset)
{
    struct strides s = {.offset = offset};
    for (unsigned d = 0; d < rank; d++) {
        if (shape[d] == 1)
            continue;
        if (s.rank && s.stride[s.rank - 1] == stride[d] * shape[d]) {
            s.shape[s.rank - 1] *= shape[d];
            s.stride[s.rank - 1] = stride[d];
        } else {
            s.shape[s.rank] = shape[d];
            s.stride[s.rank++] = stride[d];
        }
    }
    if (s.rank == 0) {
        s.rank = 1;
        s.shape[0] = 1;
        s.stride[0] = 1;
    }
    return s;
}

/* Moves to the next row of the view (all but the last dimension); false behind the last one. */
static bool next_row(const struct strides *s, int64_t *at, int64_t *place)
{
    for (unsigned d = s->rank - 1; d-- > 0;) {
        *place += s->stride[d];
        if (++at[d] < s->shape[d])
            return true;
        *place -= s->stride[d] * s->shape[d];
        at[d] = 0;
    }
    return false;
}

static void strided_backward(struct op *o, struct val *out)
{
    const struct strides *s = out->saved;
    real *to = val_grad(o, out->in[0]);
    if (!to || out->count == 0)
        return;
    if (out->in[0]->count)
        op_terms(out->count / out->in[0]->count);
    const int64_t n = s->shape[s->rank - 1], step = s->stride[s->rank - 1];
    int64_t at[OP_RANK] = {0}, place = s->offset;
    const real *from = out->grad;
    do {
        for (int64_t k = 0; k < n; k++)
            to[place + k * step] += from[k];
        from += n;
    } while (next_row(s, at, &place));
}

struct val *v_strided(struct op *o, struct val *x, unsigned rank, const int64_t *shape,
                      const int64_t *stride, int64_t offset)
{
    struct val *y = x ? val_room(o, x->dtype, rank, shape) : NULL;
    struct strides *s = y ? op_alloc(o, 1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    y->weak = x->weak;
    *s = simplify(rank, shape, stride, offset);
    if (y->count) {
        const int64_t n = s->shape[s->rank - 1], step = s->stride[s->rank - 1];
        int64_t at[OP_RANK] = {0}, place = offset, to = 0;
        do {
            if (y->f && step == 1)
                memcpy(y->f + to, x->f + place, (size_t)n * sizeof *y->f);
            else if (y->f)
                for (int64_t k = 0; k < n; k++)
                    y->f[to + k] = x->f[place + k * step];
            else
                for (int64_t k = 0; k < n; k++)
                    y->i[to + k] = x->i[place + k * step];
            to += n;
        } while (next_row(s, at, &place));
    }
    return val_moved(o, y, strided_backward, x, NULL, NULL, s);
}

static void dense_strides(const struct val *x, int64_t *stride)
{
    int64_t step = 1;
    for (unsigned d = x->rank; d-- > 0;) {
        stride[d] = step;
        step *= x->shape[d];
    }
}

/* ---- The usual ones -------------------------------------------------------------------------- */

bool broadcast_shape(struct op *o, const struct val *a, const struct val *b, unsigned *rank,
                     int64_t *shape)
{
    if (!a || !b)
        return false;
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (unsigned d = 0; d < *rank; d++) {
        const int64_t m = d + a->rank < *rank ? 1 : a->shape[d + a->rank - *rank];
        const int64_t n = d + b->rank < *rank ? 1 : b->shape[d + b->rank - *rank];
        if (m != n && m != 1 && n != 1) {
            op_fail(o, PLUMB_E_ARG, "%s: sizes %lld and %lld do not broadcast (dimension %u of %u)",
                    o->call->name, (long long)m, (long long)n, d, *rank);
            return false;
        }
        shape[d] = m == 1 ? n : m;
    }
    return true;
}

struct val *v_broadcast(struct op *o, struct val *x, unsigned rank, const int64_t *shape)
{
    if (!x)
        return NULL;
    int64_t own[OP_RANK], stride[OP_RANK];
    dense_strides(x, own);
    if (rank < x->rank || rank > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "%s: %u dimensions cannot be expanded to %u", o->call->name,
                       x->rank, rank);
    bool same = rank == x->rank;
    for (unsigned d = 0; d < rank; d++) {
        const bool fresh = d + x->rank < rank;
        const unsigned s = d + x->rank - rank;
        if (!fresh && x->shape[s] != shape[d] && x->shape[s] != 1)
            return op_fail(o, PLUMB_E_ARG, "%s: size %lld cannot be expanded to %lld",
                           o->call->name, (long long)x->shape[s], (long long)shape[d]);
        stride[d] = fresh || x->shape[s] == 1 ? 0 : own[s];
        same &= !fresh && x->shape[s] == shape[d];
    }
    return same ? x : v_strided(o, x, rank, shape, stride, 0);
}

static void same_order_backward(struct op *o, struct val *out)
{
    bool fresh;
    real *to = val_grad_room(o, out->in[0], &fresh);
    if (to && fresh && out->count)
        memcpy(to, out->grad, (size_t)out->count * sizeof *to);
    for (int64_t k = 0; to && !fresh && k < out->count; k++)
        to[k] += out->grad[k];
}

struct val *v_reshape(struct op *o, struct val *x, unsigned rank, const int64_t *shape)
{
    struct val *y = val_alias(o, x, rank, shape);
    if (y)
        y->weak = x->weak;
    return val_moved(o, y, same_order_backward, x, NULL, NULL, NULL);
}

struct val *v_permute(struct op *o, struct val *x, const unsigned *dims)
{
    if (!x)
        return NULL;
    int64_t own[OP_RANK], shape[OP_RANK], stride[OP_RANK];
    dense_strides(x, own);
    bool same = true;
    for (unsigned d = 0; d < x->rank; d++) {
        shape[d] = x->shape[dims[d]];
        stride[d] = own[dims[d]];
        same &= dims[d] == d;
    }
    return same ? x : v_strided(o, x, x->rank, shape, stride, 0);
}

struct val *v_transpose(struct op *o, struct val *x, unsigned a, unsigned b)
{
    if (!x || x->rank == 0)
        return x;
    unsigned dims[OP_RANK] = {0};
    for (unsigned d = 0; d < x->rank; d++)
        dims[d] = d == a ? b : d == b ? a : d;
    return v_permute(o, x, dims);
}

struct val *v_narrow(struct op *o, struct val *x, unsigned dim, int64_t start, int64_t length)
{
    if (!x)
        return NULL;
    if (dim >= x->rank || start < 0 || length < 0 || start > x->shape[dim] - length)
        return op_fail(o, PLUMB_E_ARG, "%s: dimension %u has no %lld elements from %lld on",
                       o->call->name, dim, (long long)length, (long long)start);
    int64_t shape[OP_RANK], stride[OP_RANK];
    dense_strides(x, stride);
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[dim] = length;
    return v_strided(o, x, x->rank, shape, stride, start * stride[dim]);
}

struct val *v_unsqueeze(struct op *o, struct val *x, unsigned dim)
{
    if (!x)
        return NULL;
    if (dim > x->rank || x->rank == OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "%s: dimension %u cannot be added to %u", o->call->name, dim,
                       x->rank);
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d <= x->rank; d++)
        shape[d] = d < dim ? x->shape[d] : d == dim ? 1 : x->shape[d - 1];
    return v_reshape(o, x, x->rank + 1, shape);
}

struct val *v_squeeze(struct op *o, struct val *x, unsigned dim)
{
    if (!x || dim >= x->rank || x->shape[dim] != 1)
        return x;
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d + 1 < x->rank; d++)
        shape[d] = x->shape[d + (d >= dim)];
    return v_reshape(o, x, x->rank - 1, shape);
}

/* ---- Concatenation --------------------------------------------------------------------------- */

/* A chain of nodes would cost a copy an input, so the backward knows all inputs at once. */
struct cat {
    size_t n;
    unsigned dim;
    struct val *const *in;
};

static void cat_backward(struct op *o, struct val *out)
{
    const struct cat *cat = out->saved;
    const struct span3 s = val_span(out, cat->dim);
    int64_t start = 0;
    for (size_t j = 0; j < cat->n; j++) {
        const int64_t length = cat->in[j]->shape[cat->dim];
        const int64_t row = length * s.inner;
        real *to = val_grad(o, cat->in[j]);
        for (int64_t p = 0; to && p < s.outer; p++) {
            const real *from = out->grad + (p * s.length + start) * s.inner;
            for (int64_t k = 0; k < row; k++)
                to[p * row + k] += from[k];
        }
        start += length;
    }
}

static bool fits_beside(const struct val *a, const struct val *b, unsigned dim)
{
    if (a->rank != b->rank)
        return false;
    for (unsigned d = 0; d < a->rank; d++)
        if (d != dim && a->shape[d] != b->shape[d])
            return false;
    return true;
}

struct val *v_cat(struct op *o, struct val *const *xs, size_t n, unsigned dim)
{
    if (o->failed || !xs || n == 0)
        return op_fail(o, PLUMB_E_ARG, "%s: nothing to join", o->call->name);
    struct val **in = op_alloc(o, (int64_t)n, sizeof *in);
    struct cat *cat = op_alloc(o, 1, sizeof *cat);
    if (!cat)
        return NULL;
    enum plumb_dtype dtype = xs[0] ? xs[0]->dtype : PLUMB_F32;
    struct val *grows = NULL; /* any input that needs a gradient */
    for (size_t j = 0; j < n; j++)
        if (xs[j])
            dtype = promote_dtypes(dtype, xs[j]->dtype);
    int64_t shape[OP_RANK] = {0};
    for (size_t j = 0; j < n; j++) {
        in[j] = v_cast(o, xs[j], dtype);
        if (!in[j])
            return NULL;
        if (in[j]->needs_grad)
            grows = in[j];
        if (dim >= in[j]->rank || !fits_beside(in[0], in[j], dim))
            return op_fail(o, PLUMB_E_ARG, "%s: tensor %zu does not fit beside the first",
                           o->call->name, j);
        if (__builtin_add_overflow(shape[dim], in[j]->shape[dim], &shape[dim]))
            return op_fail(o, PLUMB_E_ARG, "%s: the result is too long", o->call->name);
    }
    for (unsigned d = 0; d < in[0]->rank; d++)
        if (d != dim)
            shape[d] = in[0]->shape[d];
    *cat = (struct cat){n, dim, in};
    struct val *y = val_new(o, dtype, in[0]->rank, shape);
    if (!y)
        return NULL;
    const struct span3 s = val_span(y, dim);
    int64_t start = 0;
    for (size_t j = 0; j < n; j++) {
        const int64_t length = in[j]->shape[dim], row = length * s.inner;
        for (int64_t p = 0; p < s.outer && row; p++) {
            const int64_t to = (p * s.length + start) * s.inner;
            if (y->f)
                memcpy(y->f + to, in[j]->f + p * row, (size_t)row * sizeof *y->f);
            else
                memcpy(y->i + to, in[j]->i + p * row, (size_t)row * sizeof *y->i);
        }
        start += length;
    }
    return val_moved(o, y, cat_backward, grows, NULL, NULL, cat);
}
