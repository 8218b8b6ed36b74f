/* The values that operators compute with: made, put on the tape, and rounded to their types. */
#define _GNU_SOURCE
#include "exec/op/bind.h"

#include "base/memory.h"
#include "base/plain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *op_fail(struct op *o, enum plumb_code code, const char *format, ...)
{
    if (o->failed)
        return NULL;
    o->failed = true;
    char text[400];
    va_list list;
    va_start(list, format);
    plain_vprint(text, sizeof text, format, list);
    va_end(list);
    plumb_fail(o->err, code, "%s", text);
    return NULL;
}

static void *alloc(struct op *o, int64_t count, size_t size, bool zeroed)
{
    if (o->failed)
        return NULL;
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        __builtin_add_overflow(o->bytes, bytes, &o->bytes) || o->bytes > o->limit)
        return op_fail(o, PLUMB_E_NOMEM,
                       "%s would need more than the %zu MiB of memory that are left for it",
                       o->call->name, o->limit >> 20);
    void *memory = zeroed ? arena_alloc(o->arena, bytes) : arena_room(o->arena, bytes, 1);
    if (!memory)
        return op_fail(o, PLUMB_E_NOMEM, "out of memory in %s", o->call->name);
#ifdef __SANITIZE_ADDRESS__
    if (!zeroed)
        memset(memory, 0xFF, bytes); /* NaN: who forgets an element finds it in the result */
#endif
    return memory;
}

void *op_alloc(struct op *o, int64_t count, size_t size)
{
    return alloc(o, count, size, true);
}

void *op_room(struct op *o, int64_t count, size_t size)
{
    return alloc(o, count, size, false);
}

void op_begin(struct op *o, const struct plumb_call *call, bool raised, struct arena *arena,
              struct plumb_result *result, struct plumb_error *err)
{
    *o = (struct op){.call = call,
                     .raised = raised,
                     .arena = arena,
                     .result = result,
                     .err = err,
                     .limit = call->memory ? call->memory : (size_t)memory_default()};
}

/* Sizes behind an empty dimension must multiply to something sensible as well: strides are made of
 * them. */
static bool count_elements(unsigned rank, const int64_t *shape, int64_t *count)
{
    int64_t product = 1;
    bool empty = false;
    for (unsigned d = 0; d < rank; d++) {
        if (shape[d] < 0 || (shape[d] && __builtin_mul_overflow(product, shape[d], &product)))
            return false;
        empty |= shape[d] == 0;
    }
    *count = empty ? 0 : product;
    return true;
}

static struct val *val_header(struct op *o, enum plumb_dtype dtype, unsigned rank,
                              const int64_t *shape)
{
    if (o->failed)
        return NULL;
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    if (kind == PLUMB_KIND_COMPLEX)
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: complex numbers are not computed",
                       o->call->name);
    if (rank > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "%s: a tensor of %u dimensions (at most %d)", o->call->name,
                       rank, OP_RANK);
    int64_t count;
    if (!count_elements(rank, shape, &count))
        return op_fail(o, PLUMB_E_ARG, "%s: a size is negative or the shape is absurdly large",
                       o->call->name);
    struct val *x = op_alloc(o, 1, sizeof *x);
    if (!x)
        return NULL;
    x->dtype = dtype;
    x->rank = rank;
    x->count = count;
    if (rank)
        memcpy(x->shape, shape, rank * sizeof *shape);
    return x;
}

static struct val *val_alloc(struct op *o, enum plumb_dtype dtype, unsigned rank,
                             const int64_t *shape, bool zeroed)
{
    struct val *x = val_header(o, dtype, rank, shape);
    if (!x)
        return NULL;
    if (dtype_is_float(dtype))
        x->f = alloc(o, x->count, sizeof *x->f, zeroed);
    else
        x->i = alloc(o, x->count, sizeof *x->i, zeroed);
    return x->f || x->i ? x : NULL;
}

struct val *val_new(struct op *o, enum plumb_dtype dtype, unsigned rank, const int64_t *shape)
{
    return val_alloc(o, dtype, rank, shape, true);
}

struct val *val_room(struct op *o, enum plumb_dtype dtype, unsigned rank, const int64_t *shape)
{
    return val_alloc(o, dtype, rank, shape, false);
}

struct val *val_like(struct op *o, const struct val *x, enum plumb_dtype dtype)
{
    return x ? val_new(o, dtype, x->rank, x->shape) : NULL;
}

struct val *val_room_like(struct op *o, const struct val *x, enum plumb_dtype dtype)
{
    return x ? val_room(o, dtype, x->rank, x->shape) : NULL;
}

struct val *val_unread(struct op *o, const struct plumb_tensor *tensor)
{
    struct val *x = val_header(o, tensor->dtype, tensor->rank, tensor->shape);
    if (x)
        x->unread = tensor;
    return x;
}

struct val *val_alias(struct op *o, const struct val *x, unsigned rank, const int64_t *shape)
{
    struct val *y = x ? val_header(o, x->dtype, rank, shape) : NULL;
    if (!y)
        return NULL;
    if (y->count != x->count)
        return op_fail(o, PLUMB_E_ARG, "%s: a tensor of %lld elements cannot take a shape of %lld",
                       o->call->name, (long long)x->count, (long long)y->count);
    y->f = x->f;
    y->i = x->i;
    return y;
}

struct val *val_node(struct op *o, struct val *out, op_backward *backward, struct val *a,
                     struct val *b, struct val *c, const void *saved)
{
    if (out && out->f && o->call->noise && !o->failed) {
        op_between_nodes(o, out->f, out->count);
        out->disturbed = o->disturbances;
    }
    out = val_moved(o, out, backward, a, b, c, saved);
    if (out)
        out->moved = false;
    return out;
}

struct val *val_moved(struct op *o, struct val *out, op_backward *backward, struct val *a,
                      struct val *b, struct val *c, const void *saved)
{
    if (!out || o->failed)
        return NULL;
    out->moved = true;
    bool wanted = (a && a->needs_grad) || (b && b->needs_grad) || (c && c->needs_grad);
    if (!wanted || !out->f)
        return out;
    out->needs_grad = true;
    out->backward = backward;
    out->in[0] = a;
    out->in[1] = b;
    out->in[2] = c;
    out->saved = saved;
    out->earlier = o->tape;
    o->tape = out;
    return out;
}

real *val_grad(struct op *o, struct val *x)
{
    if (!x || !x->needs_grad)
        return NULL;
    if (!x->grad)
        x->grad = op_alloc(o, x->count, sizeof *x->grad);
    return x->grad;
}

real *val_grad_room(struct op *o, struct val *x, bool *fresh)
{
    *fresh = x && x->needs_grad && !x->grad;
    if (*fresh)
        x->grad = op_room(o, x->count, sizeof *x->grad);
    return x && x->needs_grad ? x->grad : NULL;
}

int64_t int_wrap(enum plumb_dtype dtype, int64_t v)
{
    switch (dtype) {
    case PLUMB_BOOL:
        return v != 0;
    case PLUMB_U8:
        return (uint8_t)v;
    case PLUMB_U16:
        return (uint16_t)v;
    case PLUMB_U32:
        return (uint32_t)v;
    case PLUMB_I8:
        return (int8_t)v;
    case PLUMB_I16:
        return (int16_t)v;
    case PLUMB_I32:
        return (int32_t)v;
    default:
        return v;
    }
}

real real_round(const struct op *o, enum plumb_dtype dtype, real v)
{
    if (o->raised || dtype == PLUMB_F64)
        return v;
    if (dtype == PLUMB_F32)
        return (real)(float)v;
    return (real)plumb_round_to(dtype, (double)v);
}

unsigned val_dim(struct op *o, const struct val *x, int64_t dim)
{
    if (!x)
        return 0;
    int64_t rank = x->rank ? x->rank : 1;
    if (dim < -rank || dim >= rank) {
        op_fail(o, PLUMB_E_ARG, "%s: dimension %lld of a tensor with %u", o->call->name,
                (long long)dim, x->rank);
        return 0;
    }
    return (unsigned)(dim < 0 ? dim + rank : dim);
}

struct span3 val_span(const struct val *x, unsigned dim)
{
    struct span3 s = {1, 1, 1};
    for (unsigned d = 0; d < x->rank; d++) {
        if (d < dim)
            s.outer *= x->shape[d];
        else if (d == dim)
            s.length = x->shape[d];
        else
            s.inner *= x->shape[d];
    }
    return s;
}

bool same_shape(const struct val *a, const struct val *b)
{
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}
