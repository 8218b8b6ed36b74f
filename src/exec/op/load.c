/* Tensors of the call into values, and values into tensors of the result. */
#include "exec/op/bind.h"
#include "exec/op/noise.h"
#include "exec/op/parts.h"
#include "exec/op/run.h"
#include "exec/op/squares.h"

#include <stdint.h>
#include <string.h>

enum { PIECE = 1024 }; /* elements converted at a time, through a buffer that stays in cache */

/* ---- Loading --------------------------------------------------------------------------------- */

/* 64-bit integers do not pass through float64 unharmed. */
static void load_ints(const struct plumb_tensor *t, int64_t *out)
{
    const unsigned size = plumb_dtype_info(t->dtype)->bits / 8;
    const bool sign = plumb_dtype_info(t->dtype)->kind == PLUMB_KIND_INT;
    unsigned char raw[PIECE * 8];
    for (uint64_t first = 0; first < t->count; first += PIECE) {
        const size_t n = t->count - first < PIECE ? (size_t)(t->count - first) : PIECE;
        plumb_tensor_gather(t, first, n, raw);
        for (size_t k = 0; k < n; k++) {
            unsigned char bytes[8] = {0};
            for (unsigned b = 0; b < size; b++)
                bytes[t->swap ? size - 1 - b : b] = raw[k * size + b];
            if (sign && bytes[size - 1] & 0x80)
                memset(bytes + size, 0xFF, 8 - size);
            memcpy(&out[first + k], bytes, 8);
            if (t->dtype == PLUMB_BOOL)
                out[first + k] = out[first + k] != 0;
        }
    }
}

/* Elements [first, end) of t. */
static void load_floats(const struct plumb_tensor *t, uint64_t first, uint64_t end, real *out)
{
    if (t->dtype == PLUMB_F32 && t->dense && !t->swap &&
        (uintptr_t)t->data % _Alignof(float) == 0) { /* the hot one */
        const float *from = (const float *)t->data + first;
        for (uint64_t k = 0; k < end - first; k++)
            out[k] = from[k];
        return;
    }
    double piece[2 * PIECE];
    const unsigned parts = plumb_dtype_parts(t->dtype);
    for (size_t n; first < end; first += n) {
        n = end - first < PIECE ? (size_t)(end - first) : PIECE;
        plumb_tensor_to_f64(t, first, n, piece);
        for (size_t k = 0; k < n * parts; k++)
            *out++ = (real)piece[k];
    }
}

/* True when the stored bytes are an array of real already. */
static bool is_real_array(const struct plumb_tensor *t)
{
    return t->dense && !t->swap && (uintptr_t)t->data % _Alignof(real) == 0 &&
           ((sizeof(real) == sizeof(float) && part_dtype(t->dtype) == PLUMB_F32) ||
            (sizeof(real) == sizeof(double) && part_dtype(t->dtype) == PLUMB_F64));
}

/* What is empty may still say that it has 2^40 rows of nothing, and who goes through them is
 * busy for days. */
static bool is_vast_nothing(const struct plumb_tensor *t)
{
    uint64_t rows = 1; /* fits: plumb_tensor_init has seen to it */
    for (unsigned d = 0; d < t->rank; d++)
        rows *= t->shape[d] ? (uint64_t)t->shape[d] : 1;
    return !t->count && rows > UINT64_C(1) << 30;
}

static struct val *load_tensor(struct op *o, const struct plumb_tensor *t)
{
    if (is_vast_nothing(t))
        return op_fail(o, PLUMB_E_UNSUPPORTED,
                       "%s: a tensor without elements, with more than 2^30 in its other dimensions",
                       o->call->name);
    if (plumb_dtype_info(t->dtype)->bits < 8)
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: plumb does not compute with %s", o->call->name,
                       plumb_dtype_info(t->dtype)->name);
    const bool is_complex = plumb_dtype_parts(t->dtype) == 2;
    const enum plumb_dtype dtype = part_dtype(t->dtype);
    int64_t shape[OP_RANK + 1];
    memcpy(shape, t->shape, t->rank * sizeof *shape);
    shape[t->rank] = 2;
    const unsigned rank = t->rank + is_complex;
    struct val *x;
    if (is_real_array(t) && t->count && !o->call->noise) {
        struct val view = {.dtype = dtype, .count = (int64_t)t->count * (is_complex ? 2 : 1)};
        memcpy(&view.f, &t->data, sizeof view.f); /* values are never written to */
        x = val_alias(o, &view, rank, shape);
    } else {
        x = val_room(o, dtype, rank, shape);
        if (x && x->f)
            load_floats(t, 0, t->count, x->f);
        else if (x)
            load_ints(t, x->i);
    }
    if (x)
        x->is_complex = is_complex;
    return x;
}

static void find_leaves(const struct plumb_arg *arg, struct op_leaf *leaves, size_t *n)
{
    if (arg->kind == PLUMB_ARG_TENSOR) {
        if (leaves)
            leaves[*n].arg = arg;
        ++*n;
    }
    if (arg->kind == PLUMB_ARG_LIST)
        for (size_t k = 0; k < arg->n_items; k++)
            find_leaves(&arg->items[k], leaves, n);
}

static size_t find_all(const struct plumb_call *call, struct op_leaf *leaves, size_t *of_args)
{
    size_t n = 0;
    for (size_t k = 0; k < call->n_args; k++)
        find_leaves(&call->args[k], leaves, &n);
    *of_args = n;
    for (size_t k = 0; k < call->n_kwargs; k++)
        find_leaves(&call->kwargs[k].value, leaves, &n);
    return n;
}

bool op_find_leaves(struct op *o)
{
    o->n_leaves = find_all(o->call, NULL, &o->n_arg_leaves);
    o->leaves = op_alloc(o, (int64_t)o->n_leaves + 1, sizeof *o->leaves);
    if (o->leaves)
        find_all(o->call, o->leaves, &o->n_arg_leaves);
    return o->leaves != NULL;
}

static struct op_leaf *find_leaf(struct op *o, const struct plumb_arg *tensor)
{
    for (size_t k = 0; k < o->n_leaves; k++)
        if (o->leaves[k].arg == tensor)
            return &o->leaves[k];
    return op_fail(o, PLUMB_E_ARG, "%s: a tensor that is not among the arguments", o->call->name);
}

static bool wants_grad(const struct op *o, const struct op_leaf *leaf)
{
    return o->call->n_grads && leaf->arg->requires_grad && val_is_float(leaf->val);
}

struct val *op_load(struct op *o, const struct plumb_arg *tensor)
{
    struct op_leaf *leaf = find_leaf(o, tensor);
    if (!leaf)
        return NULL;
    if (leaf->val && !val_read(o, leaf->val))
        return NULL;
    if (!leaf->val) {
        leaf->val = load_tensor(o, tensor->tensor);
        if (leaf->val && leaf->val->f && o->call->noise && !o->call->noise->grads_only)
            noise_input(o, leaf->val->f, leaf->val->count);
        if (o->call->noise && o->call->noise->squares)
            squares_input(o, (size_t)(leaf - o->leaves));
        if (leaf->val)
            leaf->val->needs_grad = wants_grad(o, leaf);
    }
    return leaf->part == PART_WHOLE ? leaf->val : leaf_part(o, leaf);
}

/* Where the elements of an argument are good enough to be read from as they are needed. */
static bool may_stay(const struct op *o, const struct op_leaf *leaf)
{
    const struct plumb_tensor *t = leaf->arg->tensor;
    return !leaf->val && leaf->part == PART_WHOLE && !o->call->noise && t->count &&
           dtype_is_float(t->dtype) && plumb_dtype_info(t->dtype)->bits >= 8 && !is_real_array(t);
}

struct val *op_load_unread(struct op *o, const struct plumb_arg *tensor)
{
    struct op_leaf *leaf = find_leaf(o, tensor);
    if (!leaf)
        return NULL;
    if (may_stay(o, leaf)) {
        leaf->val = val_unread(o, tensor->tensor);
        if (leaf->val)
            leaf->val->needs_grad = wants_grad(o, leaf);
    }
    return leaf->val && leaf->val->unread ? leaf->val : op_load(o, tensor);
}

bool val_read(struct op *o, struct val *x)
{
    if (x && x->unread && !x->f) {
        x->f = op_room(o, x->count, sizeof *x->f);
        if (x->f)
            load_floats(x->unread, 0, (uint64_t)x->count, x->f);
    }
    return x && !o->failed;
}

const real *val_piece(const struct val *x, int64_t first, int64_t n, real *room)
{
    if (x->f)
        return x->f + first;
    load_floats(x->unread, (uint64_t)first, (uint64_t)(first + n), room);
    return room;
}

struct val *op_load_plain(struct op *o, const struct plumb_tensor *tensor)
{
    return load_tensor(o, tensor);
}

/* ---- Storing --------------------------------------------------------------------------------- */

static void store_floats(enum plumb_dtype dtype, const real *in, int64_t count, unsigned char *out)
{
    double piece[PIECE];
    const size_t size = plumb_dtype_info(dtype)->bits / 8;
    for (int64_t first = 0; first < count; first += PIECE) {
        const size_t n = count - first < PIECE ? (size_t)(count - first) : PIECE;
        for (size_t k = 0; k < n; k++)
            piece[k] = (double)in[(size_t)first + k];
        plumb_from_f64(dtype, piece, n, out + (size_t)first * size);
    }
}

/* The hot one: float32 to bfloat16, ties to even, as integer arithmetic that vectorises. */
static void store_bf16(const real *in, int64_t count, uint16_t *out)
{
    for (int64_t k = 0; k < count; k++) {
        const float value = (float)in[k];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        out[k] = (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? bits >> 16 | 0x40 : rounded);
    }
}

struct plumb_tensor *op_store(struct op *o, const struct val *shape_of, const real *f)
{
    enum plumb_dtype dtype = shape_of->dtype;
    if (f && o->raised)
        dtype = PLUMB_F64;
    const bool is_complex = shape_of->is_complex;
    if (is_complex) /* there is none of narrow parts, whatever they were computed from */
        dtype = part_dtype(complex_dtype(dtype));
    struct plumb_tensor *t = op_alloc(o, 1, sizeof *t);
    if (!t || plumb_tensor_init(t, is_complex ? complex_dtype(dtype) : dtype,
                                shape_of->rank - is_complex, shape_of->shape, o->err)) {
        o->failed = true;
        return NULL;
    }
    const size_t size = plumb_dtype_info(dtype)->bits / 8;
    if (f &&
        ((sizeof(real) == 4 && dtype == PLUMB_F32) || (sizeof(real) == 8 && dtype == PLUMB_F64))) {
        t->data = f;
        return t;
    }
    unsigned char *out = op_alloc(o, shape_of->count + 1, size);
    if (!out)
        return NULL;
    t->data = out;
    if (f && dtype == PLUMB_BF16 && sizeof(real) == 4) {
        store_bf16(f, shape_of->count, (uint16_t *)(void *)out);
    } else if (f) {
        store_floats(dtype, f, shape_of->count, out);
    } else {
        for (int64_t k = 0; k < shape_of->count; k++) {
            const int64_t v = int_wrap(dtype, shape_of->i[k]);
            memcpy(out + (size_t)k * size, &v, size);
        }
    }
    return t;
}
