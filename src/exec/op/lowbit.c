/* Products of numbers of 8 and 4 bits with their scales. */
#include "exec/op/fused.h"
#include "exec/op/grouped.h"

#include <string.h>

/* ---- 8-bit floats ---------------------------------------------------------------------------- */

/* Elements that share a scale: dimensions divide evenly, or into blocks of 128 and a rest. */
static int64_t block_of(int64_t size, int64_t scales)
{
    enum { BLOCK = 128 };
    if (scales > 0 && size % scales == 0)
        return size / scales;
    return scales == (size + BLOCK - 1) / BLOCK ? BLOCK : 0;
}

/* One scale for each block of x's last two dimensions, in the shape of x. */
static struct val *spread(struct op *o, struct val *scale, const struct val *x)
{
    const int64_t rows = x->shape[0], columns = x->shape[1];
    const int64_t high = block_of(rows, scale->shape[0]), wide = block_of(columns, scale->shape[1]);
    int64_t *map = high && wide ? op_alloc(o, x->count, sizeof *map) : NULL;
    if (!map)
        return o->failed
                   ? NULL
                   : op_fail(o, PLUMB_E_ARG, "%s: scales [%lld, %lld] for a matrix [%lld, %lld]",
                             o->call->name, (long long)scale->shape[0], (long long)scale->shape[1],
                             (long long)rows, (long long)columns);
    for (int64_t k = 0; k < x->count; k++)
        map[k] = k / columns / high * scale->shape[1] + k % columns / wide;
    return v_map(o, scale, 2, x->shape, map);
}

/* x times its scales in float32: one, one for each row (or column), or one for each block. */
static struct val *scaled(struct op *o, struct val *x, struct val *scale, bool columns)
{
    if (!x || !scale)
        return NULL;
    if (scale->dtype != PLUMB_F32)
        return op_fail(o, PLUMB_E_UNSUPPORTED,
                       "%s: scales of %s, whose order depends on the kernel; float32 is known",
                       o->call->name, plumb_dtype_info(scale->dtype)->name);
    if (!x->f || x->rank < 2 || x->rank > 3)
        return op_fail(o, PLUMB_E_ARG, "%s: matrices of floating-point numbers are needed",
                       o->call->name);
    x = v_cast(o, x, PLUMB_F32);
    if (scale->count == 1)
        return v_mul(o, x, v_reshape(o, scale, 0, NULL));
    const unsigned along = x ? x->rank - (columns ? 1 : 2) : 0;
    if (x && x->rank == 2 && scale->rank == 2)
        return v_mul(o, x, spread(o, scale, x));
    /* One for each row of each matrix of a stack. */
    int64_t shape[3] = {1, 1, 1}, count = 1;
    for (unsigned d = 0; x && d < x->rank; d++)
        if (d == along || d + 2 < x->rank)
            count *= shape[d] = x->shape[d];
    if (scale->count != count)
        return op_fail(o, PLUMB_E_ARG, "%s: %lld scales for %lld rows or columns", o->call->name,
                       (long long)scale->count, (long long)count);
    return x ? v_mul(o, x, v_reshape(o, scale, x->rank, shape)) : NULL;
}

/* A scale, or the only one of a list; without swizzled order. */
static struct val *scale_of(struct op *o, const char *name, const char *order)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    size_t n = 0;
    const int64_t *orders = arg_raw(o, order) ? arg_ints(o, order, &n) : NULL;
    for (size_t k = 0; k < n; k++)
        if (orders[k])
            return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: swizzled scales are not known",
                           o->call->name);
    if (!arg || arg->kind != PLUMB_ARG_LIST)
        return arg_tensor(o, name);
    if (arg->n_items != 1)
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: %zu levels of scales; one is known",
                       o->call->name, arg->n_items);
    return arg_value(o, &arg->items[0]);
}

static bool no_result_scale(struct op *o)
{
    if (arg_given(o, "scale_result") && arg_number(o, "scale_result") != 1)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: scale_result is not known", o->call->name);
    return !o->failed;
}

static void return_scaled(struct op *o, struct val *y, enum plumb_dtype usual)
{
    struct val *bias = arg_tensor(o, "bias");
    if (bias)
        y = v_add(o, y, v_cast(o, bias, PLUMB_F32));
    const enum plumb_dtype dtype = arg_dtype(o, "out_dtype");
    op_return(o, v_cast(o, y, dtype == PLUMB_DTYPE_COUNT ? usual : dtype));
}

static void run_scaled_mm(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "mat2");
    struct val *scale_a = scale_of(o, "scale_a", "swizzle_a"),
               *scale_b = scale_of(o, "scale_b", "swizzle_b");
    if (!a || !b || !no_result_scale(o))
        return;
    if (a->rank != 2 || b->rank != 2) {
        op_fail(o, PLUMB_E_ARG, "%s: two matrices are needed", o->call->name);
        return;
    }
    struct val *y = v_matmul(o, scaled(o, a, scale_a, false), scaled(o, b, scale_b, true));
    return_scaled(o, y, a->dtype);
}

static void run_scaled_grouped_mm(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "mat2");
    struct val *scale_a = scale_of(o, "scale_a", "swizzle_a"),
               *scale_b = scale_of(o, "scale_b", "swizzle_b");
    if (!a || !b || !no_result_scale(o))
        return;
    if (a->rank == 2 && b->rank == 2) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: groups of two matrices are not known", o->call->name);
        return;
    }
    struct val *y = v_grouped(o, scaled(o, a, scale_a, false), scaled(o, b, scale_b, true),
                              arg_tensor(o, "offs"));
    return_scaled(o, y, PLUMB_BF16);
}

/* ---- Integer weights ------------------------------------------------------------------------- */

static bool has_columns(struct op *o, const struct val *x, int64_t n)
{
    if (x && (!x->f || x->rank < 1 || x->shape[x->rank - 1] != n))
        op_fail(o, PLUMB_E_ARG, "%s: the input must be floats, %lld in a row", o->call->name,
                (long long)n);
    return x && !o->failed;
}

/* x w^T in float32, or in float64 where x is that; in the type of x after `scale`, if there is
 * one. */
static struct val *product(struct op *o, struct val *x, struct val *w, struct val *scale)
{
    const enum plumb_dtype wide = x->dtype == PLUMB_F64 ? PLUMB_F64 : PLUMB_F32;
    w = w ? v_transpose(o, v_cast(o, w, wide), 0, 1) : NULL;
    struct val *y = v_matmul(o, v_cast(o, x, wide), w);
    if (scale)
        y = v_mul(o, y, v_reshape(o, scale, 1, &scale->count));
    return v_cast(o, y, x->dtype);
}

/* x weight^T, each column times its scale */
static void run_int8(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *w = arg_tensor(o, "mat2"),
               *scale = arg_tensor(o, "scales");
    if (!x || !w || !scale)
        return;
    if (w->dtype != PLUMB_I8 || w->rank != 2 || !scale->f || scale->count != w->shape[0]) {
        op_fail(o, PLUMB_E_ARG, "%s: the weight must be int8 [N, K] with N scales", o->call->name);
        return;
    }
    if (!has_columns(o, x, w->shape[1]))
        return;
    op_return(o, product(o, x, w, scale));
}

/* A kernel's own packing says nothing of what is in it: [N, K] numbers of 0 to 15 are needed. */
static bool are_codes(struct op *o, const struct val *w)
{
    if (!w->i || w->rank != 2) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the weight is packed", o->call->name);
        return false;
    }
    for (int64_t k = 0; k < w->count; k++)
        if (w->i[k] < 0 || w->i[k] > 15) {
            op_fail(o, PLUMB_E_UNSUPPORTED,
                    "%s: the weight is packed in an order that depends on the processor; give its "
                    "codes, [N, K] integers of 0 to 15, instead",
                    o->call->name);
            return false;
        }
    return true;
}

/* x w^T with w = (code - 8) scale + zero; scale and zero are of groups of a row: [K / group, N, 2]
 */
static void run_int4(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *w = arg_tensor(o, "mat2"),
               *of = arg_tensor(o, "scales");
    const int64_t group = arg_int(o, "group");
    if (!x || !w || !of || !are_codes(o, w) || !has_columns(o, x, w->shape[1]))
        return;
    const int64_t n = w->shape[0], k = w->shape[1];
    if (group < 1 || k % group || !of->f || of->rank != 3 || of->shape[0] != k / group ||
        of->shape[1] != n || of->shape[2] != 2) {
        op_fail(o, PLUMB_E_ARG, "%s: scales and zeros must be [K / group, N, 2]", o->call->name);
        return;
    }
    struct val *full = val_new(o, PLUMB_F32, 2, w->shape);
    for (int64_t i = 0; full && i < w->count; i++) {
        const real *pair = of->f + (i % k / group * n + i / k) * 2;
        full->f[i] = (real)(w->i[i] - 8) * pair[0] + pair[1];
    }
    op_return(o, product(o, x, full, NULL));
}

/* ---- Inputs rounded to 8 bits on the way ----------------------------------------------------- */

/* A row as it is after the round trip: scale (q - zero) with q of -128 to 127. */
static void quantize_row(const real *x, real *y, int64_t n)
{
    real low = 0, high = 0;
    for (int64_t k = 0; k < n; k++) {
        low = fmin(low, x[k]);
        high = fmax(high, x[k]);
    }
    const real scale = high > low ? (high - low) / R(255) : 1;
    const real zero = fmax(R(-128), fmin(R(127), rint(R(-128) - low / scale)));
    for (int64_t k = 0; k < n; k++) {
        const real q = fmax(R(-128), fmin(R(127), rint(x[k] / scale + zero)));
        y[k] = (q - zero) * scale;
    }
}

/* Nibbles (low one first, minus 8) times the scale of their block; behind the bytes and the scales
 * there may be a bias. All are float32, as PyTorch packs them where it has no kernel of its own. */
static void run_dynamic_int4(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *packed = arg_tensor(o, "packed_weights");
    const int64_t block = arg_int(o, "block_size"), k = arg_int(o, "in_features"),
                  n = arg_int(o, "out_features");
    if (!x || !packed)
        return;
    const bool sizes =
        block > 0 && k > 0 && n > 0 && k % 2 == 0 && k % block == 0 && k < 1 << 24 && n < 1 << 24;
    const int64_t bytes = sizes ? n * k / 2 : 0, scales = sizes ? n * (k / block) : 0;
    if (!sizes || !packed->f ||
        (packed->count != bytes + scales && packed->count != bytes + scales + n)) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: the weight is not packed as bytes, scales and bias in float32", o->call->name);
        return;
    }
    if (!has_columns(o, x, k))
        return;
    struct val *rounded = val_like(o, x, x->dtype),
               *w = val_new(o, PLUMB_F32, 2, (const int64_t[]){n, k});
    if (!rounded || !w)
        return;
    for (int64_t r = 0; r < x->count / k; r++)
        quantize_row(x->f + r * k, rounded->f + r * k, k);
    for (int64_t i = 0; i < w->count; i++) {
        const int64_t byte = (int64_t)rint(packed->f[i / 2]), code = i % 2 ? byte >> 4 : byte & 15;
        w->f[i] = (real)(code - 8) * packed->f[bytes + i / block];
    }
    struct val *y = product(o, rounded, w, NULL);
    if (packed->count > bytes + scales)
        y = v_add(o, y, v_narrow(o, v_cast(o, packed, x->dtype), 0, bytes + scales, n));
    op_return(o, y);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define MATS "(Tensor input|self|mat_a, Tensor mat2|mat_b, "
#define V2                                                                                         \
    "Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, int[] recipe_b, int[] "  \
    "swizzle_b, "
#define REST "dtype? out_dtype=None, "

const struct op_def op_lowbit[] = {
    {"_scaled_mm",
     "_scaled_mm" MATS "Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? "
     "scale_result=None, " REST "bool use_fast_accum=False)",
     run_scaled_mm, OP_NO_GRAD, "(scale_a input) @ (scale_b mat2) + bias"},
    {"_scaled_mm_v2",
     "_scaled_mm_v2" MATS V2 "Tensor? bias=None, " REST
     "int[] contraction_dim=[], bool use_fast_accum=False)",
     run_scaled_mm, OP_NO_GRAD, "(scale_a input) @ (scale_b mat2) + bias"},
    {"_scaled_grouped_mm",
     "_scaled_grouped_mm" MATS "Tensor scale_a, Tensor scale_b, Tensor? offs=None, Tensor? "
     "bias=None, Tensor? scale_result=None, " REST "bool use_fast_accum=False)",
     run_scaled_grouped_mm, OP_NO_GRAD, "_grouped_mm(scale_a input, scale_b mat2)"},
    {"_scaled_grouped_mm_v2",
     "_scaled_grouped_mm_v2" MATS V2 "Tensor? offs=None, Tensor? "
     "bias=None, " REST "int[] contraction_dim=[], bool use_fast_accum=False)",
     run_scaled_grouped_mm, OP_NO_GRAD, "_grouped_mm(scale_a input, scale_b mat2)"},
    {"_weight_int8pack_mm", "_weight_int8pack_mm(Tensor input|self, Tensor mat2, Tensor scales)",
     run_int8, 0, "input @ mat2^T, each column times its scale"},
    {"_weight_int4pack_mm _weight_int4pack_mm_for_cpu",
     "_weight_int4pack_mm(Tensor input|self, Tensor mat2, int group|qGroupSize, Tensor "
     "scales|qScaleAndZeros)",
     run_int4, 0, "input @ ((mat2 - 8) scale + zero)^T, of codes that are not packed"},
    {"_dyn_quant_matmul_4bit",
     "_dyn_quant_matmul_4bit(Tensor input|inp, Tensor packed_weights, int block_size, int "
     "in_features, int out_features)",
     run_dynamic_int4, OP_NO_GRAD, "rows of input rounded to 8 bits @ scaled weights of 4 bits"},
    {0},
};
