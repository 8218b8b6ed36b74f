/* Rounding to integers by a scale, and back, as torch_npu has it. */
#include "exec/op/fused.h"
#include "exec/op/matmul.h"

#include <string.h>

/* Rounded to the nearest integer (ties to even) and cut to the type's range. */
static int64_t to_integer(enum plumb_dtype dtype, real v)
{
    const real low = dtype == PLUMB_U8 ? 0 : dtype == PLUMB_I8 ? R(-128) : R(INT32_MIN);
    const real high = dtype == PLUMB_U8 ? R(255) : dtype == PLUMB_I8 ? R(127) : R(INT32_MAX);
    v = rint(v);
    return isnan(v) ? 0 : (int64_t)(v < low ? low : v > high ? high : v);
}

static struct val *rounded(struct op *o, const struct val *x, enum plumb_dtype dtype)
{
    struct val *y = x ? val_like(o, x, dtype) : NULL;
    for (int64_t k = 0; y && k < x->count; k++)
        y->i[k] = to_integer(dtype, val_at(x, k));
    return y;
}

static bool is_integer(struct op *o, enum plumb_dtype dtype)
{
    if (dtype == PLUMB_I8 || dtype == PLUMB_U8 || dtype == PLUMB_I32)
        return true;
    op_fail(o, PLUMB_E_UNSUPPORTED, "%s: int8, uint8 and int32 are known as the type of the result",
            o->call->name);
    return false;
}

/* A vector as long as dimension `axis` of x, shaped to be combined with it; one number as it is. */
static struct val *along(struct op *o, struct val *v, const struct val *x, unsigned axis)
{
    int64_t shape[OP_RANK];
    if (!v || v->count == 1)
        return v ? v_reshape(o, v, 0, NULL) : NULL;
    if (v->count != x->shape[axis])
        return op_fail(o, PLUMB_E_ARG, "%s: %lld scales or offsets for a dimension of %lld",
                       o->call->name, (long long)v->count, (long long)x->shape[axis]);
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = d == axis ? v->count : 1;
    return v_reshape(o, v, x->rank, shape);
}

/* round(x / scale + zero), or round(x * scale + zero) without div_mode */
static void run_quantize(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *scales = arg_tensor(o, "scales"),
               *zeros = arg_tensor(o, "zero_points");
    const enum plumb_dtype dtype = arg_given(o, "dtype") ? arg_dtype(o, "dtype") : PLUMB_I8;
    if (!takes_floats(o, x) || !scales || !is_integer(o, dtype))
        return;
    const unsigned axis = val_dim(o, x, arg_int(o, "axis"));
    scales = o->failed ? NULL : along(o, scales, x, axis);
    struct val *y = arg_bool(o, "div_mode") ? v_div(o, x, scales) : v_mul(o, x, scales);
    if (zeros)
        y = v_add(o, y, along(o, zeros, x, axis));
    op_return(o, rounded(o, y, dtype));
}

/* Rows by their own largest value: scale = max |x| / 127, y = round(x / scale); or by both ends:
 * scale = (max - min) / 255, offset = 127 - max / scale, y = round(x / scale + offset). */
static void dynamic_quant(struct op *o, bool asymmetric)
{
    struct val *x = arg_tensor(o, "input"), *smooth = arg_tensor(o, "smooth_scales");
    if (!takes_floats(o, x))
        return;
    if (arg_given(o, "group_index") ||
        (arg_given(o, "dst_type") && arg_dtype(o, "dst_type") != PLUMB_I8)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: groups, and results other than int8, are not known",
                o->call->name);
        return;
    }
    if (x->rank < 1 || (smooth && smooth->rank != 1)) {
        op_fail(o, PLUMB_E_ARG, "%s: rows, and one smooth scale for each column, are needed",
                o->call->name);
        return;
    }
    if (smooth)
        x = v_mul(o, x, along(o, smooth, x, x->rank - 1));
    struct val *y = x ? val_like(o, x, PLUMB_I8) : NULL,
               *scale = x ? val_new(o, PLUMB_F32, x->rank - 1, x->shape) : NULL,
               *offset = x ? val_new(o, PLUMB_F32, x->rank - 1, x->shape) : NULL;
    if (!y || !scale || !offset)
        return;
    const int64_t n = x->shape[x->rank - 1];
    for (int64_t r = 0; n && r < scale->count; r++) {
        const real *row = x->f + r * n;
        real low = row[0], high = row[0];
        for (int64_t k = 1; k < n; k++) {
            low = fmin(low, row[k]);
            high = fmax(high, row[k]);
        }
        const real most = fmax(fabs(low), fabs(high));
        const real s = scale->f[r] = asymmetric ? (high - low) / 255 : most / 127;
        const real shift = offset->f[r] = asymmetric ? 127 - high / s : 0;
        for (int64_t k = 0; k < n; k++)
            y->i[r * n + k] = s == 0 ? 0 : to_integer(PLUMB_I8, row[k] / s + shift);
    }
    op_return(o, y);
    op_return(o, scale);
    if (asymmetric)
        op_return(o, offset);
}

static void run_dynamic_quant(struct op *o)
{
    dynamic_quant(o, false);
}

static void run_dynamic_quant_asymmetric(struct op *o)
{
    dynamic_quant(o, true);
}

/* (x + offset) * scale */
static void run_anti_quant(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *scale = arg_tensor(o, "scale"),
               *offset = arg_tensor(o, "offset");
    const enum plumb_dtype dtype =
        arg_given(o, "dst_dtype") ? arg_dtype(o, "dst_dtype") : PLUMB_F16;
    if (!x || !scale)
        return;
    if (x->dtype != PLUMB_I8 || x->rank < 1 || !scale->f || dtype == PLUMB_DTYPE_COUNT ||
        !dtype_is_float(dtype)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: int8 to a floating-point type is known",
                o->call->name);
        return;
    }
    struct val *y = v_cast(o, x, scale->dtype);
    if (offset)
        y = v_add(o, y, along(o, offset, x, x->rank - 1));
    op_return(o, v_cast(o, v_mul(o, y, along(o, scale, x, x->rank - 1)), dtype));
}

/* x times (weight + offset) * scale, plus bias */
static void run_weight_quant(struct op *o)
{
    struct val *x = arg_tensor(o, "x"), *w = arg_tensor(o, "weight"),
               *scale = arg_tensor(o, "antiquant_scale"),
               *offset = arg_tensor(o, "antiquant_offset"), *bias = arg_tensor(o, "bias");
    if (!takes_floats(o, x) || !w || !scale)
        return;
    if (w->dtype != PLUMB_I8 || w->rank != 2 || arg_int(o, "antiquant_group_size") != 0 ||
        arg_given(o, "quant_scale") || arg_given(o, "quant_offset")) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: an int8 matrix with scales for its columns is known, without groups and a "
                "result in floats",
                o->call->name);
        return;
    }
    struct val *full = v_cast(o, w, x->dtype);
    if (offset)
        full = v_add(o, full, along(o, offset, w, 1));
    struct val *y = v_matmul(o, x, v_mul(o, full, along(o, scale, w, 1)));
    op_return(o, y && bias ? v_add(o, y, v_cast(o, bias, y->dtype)) : y);
}

const struct op_def op_fused_quant[] = {
    {"npu_quantize",
     "npu_quantize(Tensor input|self, Tensor scales, Tensor? zero_points, dtype? dtype, int "
     "axis=1, bool div_mode=True)",
     run_quantize, OP_NO_GRAD | OP_DECISION | OP_COMPUTED,
     "round(x / scale + zero), or round(x scale + zero)"},
    {"npu_dynamic_quant",
     "npu_dynamic_quant(Tensor input|x, *, Tensor? smooth_scales=None, Tensor? group_index=None, "
     "dtype? dst_type=None)",
     run_dynamic_quant, OP_NO_GRAD, "round(x / scale) with scale = max |x| / 127 of each row"},
    {"npu_dynamic_quant_asymmetric",
     "npu_dynamic_quant_asymmetric(Tensor input|x, *, Tensor? smooth_scales=None, Tensor? "
     "group_index=None, dtype? dst_type=None)",
     run_dynamic_quant_asymmetric, OP_NO_GRAD,
     "round(x / scale + offset), scale = (max - min) / 255, offset = 127 - max / scale"},
    {"npu_anti_quant",
     "npu_anti_quant(Tensor input|x, Tensor scale, *, Tensor? offset=None, dtype? dst_dtype=None, "
     "any src_dtype=None)",
     run_anti_quant, OP_NO_GRAD, "(x + offset) scale"},
    {"npu_weight_quant_batchmatmul",
     "npu_weight_quant_batchmatmul(Tensor x, Tensor weight, Tensor antiquant_scale, Tensor? "
     "antiquant_offset=None, Tensor? quant_scale=None, Tensor? quant_offset=None, Tensor? "
     "bias=None, int antiquant_group_size=0, int inner_precise=0, any weight_dtype=None)",
     run_weight_quant, OP_NO_GRAD, "x ((weight + offset) scale) + bias"},
    {0},
};
