/* Constants and conversions. */
#include "exec/op/op.h"

#include <string.h>

struct val *v_constant(struct op *o, real value)
{
    struct val *x = val_new(o, PLUMB_F32, 0, NULL);
    if (x) {
        x->weak = true;
        x->f[0] = value;
    }
    return x;
}

struct val *v_number(struct op *o, double value)
{
    return v_constant(o, (real)value);
}

struct val *v_int(struct op *o, int64_t value)
{
    struct val *x = val_new(o, PLUMB_I64, 0, NULL);
    if (x) {
        x->weak = true;
        x->i[0] = value;
    }
    return x;
}

/* Truncation; what does not fit is the lowest int64, NaN among it, as x86 has it. */
static int64_t truncate(real value)
{
    return value >= R(0x1p63) || value < -R(0x1p63) || isnan(value) ? INT64_MIN : (int64_t)value;
}

struct val *v_full(struct op *o, enum plumb_dtype dtype, unsigned rank, const int64_t *shape,
                   double value)
{
    struct val *x = val_new(o, dtype, rank, shape);
    if (!x)
        return NULL;
    if (x->f) {
        const real filled = real_round(o, dtype, (real)value);
        for (int64_t k = 0; k < x->count; k++)
            x->f[k] = filled;
    } else {
        const int64_t filled =
            dtype == PLUMB_BOOL ? value != 0 : int_wrap(dtype, truncate((real)value));
        for (int64_t k = 0; k < x->count; k++)
            x->i[k] = filled;
    }
    return x;
}

static void cast_backward(struct op *o, struct val *out)
{
    real *to = val_grad(o, out->in[0]);
    for (int64_t k = 0; to && k < out->count; k++)
        to[k] += out->grad[k];
}

static bool rounds(const struct op *o, enum plumb_dtype from, enum plumb_dtype to)
{
    return !o->raised && plumb_dtype_info(to)->bits <= plumb_dtype_info(from)->bits;
}

struct val *v_cast(struct op *o, struct val *x, enum plumb_dtype dtype)
{
    if (!x || x->dtype == dtype)
        return x;
    if (x->f && dtype_is_float(dtype) && !rounds(o, x->dtype, dtype)) {
        struct val *same = val_alias(o, x, x->rank, x->shape);
        if (same)
            same->dtype = dtype;
        return val_moved(o, same, cast_backward, x, NULL, NULL, NULL);
    }
    struct val *y = val_like(o, x, dtype);
    if (!y)
        return NULL;
    for (int64_t k = 0; k < x->count; k++) {
        if (y->f)
            y->f[k] = real_round(o, dtype, val_at(x, k));
        else if (dtype == PLUMB_BOOL)
            y->i[k] = x->f ? x->f[k] != 0 : x->i[k] != 0;
        else
            y->i[k] = int_wrap(dtype, x->f ? truncate(x->f[k]) : x->i[k]);
    }
    return val_moved(o, y, cast_backward, x, NULL, NULL, NULL);
}

struct val *v_float(struct op *o, struct val *x)
{
    return x ? v_cast(o, x, float_dtype(x->dtype)) : NULL;
}

struct val *v_detach(struct op *o, struct val *x)
{
    return x ? val_alias(o, x, x->rank, x->shape) : NULL;
}
