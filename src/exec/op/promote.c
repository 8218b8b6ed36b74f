/* torch's type promotion. */
#include "exec/op/op.h"

/* bool < integers < floats */
static int category(enum plumb_dtype dtype)
{
    switch (plumb_dtype_info(dtype)->kind) {
    case PLUMB_KIND_BOOL:
        return 0;
    case PLUMB_KIND_UINT:
    case PLUMB_KIND_INT:
        return 1;
    default:
        return 2;
    }
}

static enum plumb_dtype promote_ints(enum plumb_dtype a, enum plumb_dtype b)
{
    const struct plumb_dtype_info *x = plumb_dtype_info(a), *y = plumb_dtype_info(b);
    if (x->kind == y->kind)
        return x->bits >= y->bits ? a : b;
    const enum plumb_dtype sign = x->kind == PLUMB_KIND_INT ? a : b;
    const unsigned unsigned_bits = x->kind == PLUMB_KIND_INT ? y->bits : x->bits;
    if (plumb_dtype_info(sign)->bits > unsigned_bits)
        return sign;
    return unsigned_bits == 8 ? PLUMB_I16 : unsigned_bits == 16 ? PLUMB_I32 : PLUMB_I64;
}

enum plumb_dtype promote_dtypes(enum plumb_dtype a, enum plumb_dtype b)
{
    if (a == b)
        return a;
    int x = category(a), y = category(b);
    if (x != y)
        return x > y ? a : b;
    if (x == 1)
        return promote_ints(a, b);
    const struct plumb_dtype_info *p = plumb_dtype_info(a), *q = plumb_dtype_info(b);
    if (p->bits == q->bits)
        return PLUMB_F32; /* float16 with bfloat16; two kinds of 8-bit floats */
    return p->bits > q->bits ? a : b;
}

enum plumb_dtype float_dtype(enum plumb_dtype dtype)
{
    return dtype_is_float(dtype) ? dtype : PLUMB_F32;
}

/* 2: a tensor with dimensions, 1: a 0-d tensor, 0: a number. */
static int weight(const struct val *x)
{
    return x->weak ? 0 : x->rank ? 2 : 1;
}

enum plumb_dtype promote(const struct val *a, const struct val *b)
{
    if (weight(a) == weight(b))
        return promote_dtypes(a->dtype, b->dtype);
    const struct val *strong = weight(a) > weight(b) ? a : b, *light = strong == a ? b : a;
    if (category(light->dtype) <= category(strong->dtype))
        return strong->dtype;
    /* A number or 0-d tensor of a higher kind decides the kind; a float number means the default
     * float type. */
    return light->weak ? float_dtype(light->dtype) == light->dtype ? PLUMB_F32 : light->dtype
                       : light->dtype;
}
