/* Small operators of torch_npu: padding, one-hot, packed signs, scattering, products of permuted
 * operands. */
#include "exec/op/fused.h"
#include "exec/op/place.h"

#include <string.h>

/* Zeros before and after each dimension: before0, after0, before1, after1, ... */
static void run_pad(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *pads = arg_ints(o, "paddings", &n);
    if (!x || o->failed)
        return;
    const int64_t *index[OP_RANK] = {0};
    int64_t shape[OP_RANK];
    bool fits = n == 2 * (size_t)x->rank;
    for (unsigned d = 0; fits && d < x->rank; d++) {
        const int64_t before = pads[2 * d], after = pads[2 * d + 1];
        fits = before >= 0 && after >= 0 && before < INT64_C(1) << 40 && after < INT64_C(1) << 40;
        shape[d] = x->shape[d] + (fits ? before + after : 0);
        int64_t *at = fits ? op_alloc(o, shape[d] + 1, sizeof *at) : NULL;
        for (int64_t k = 0; at && k < shape[d]; k++)
            at[k] = k < before || k >= before + x->shape[d] ? -1 : k - before;
        index[d] = at;
    }
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: %zu paddings for %u dimensions, or a negative one",
                o->call->name, n, x->rank);
    op_return(o, o->failed ? NULL : v_pick(o, x, shape, index));
}

static void run_one_hot(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t depth = arg_int(o, "depth"), axis = arg_int(o, "axis");
    const double on = arg_number(o, "on_value"), off = arg_number(o, "off_value");
    if (!x)
        return;
    if (!x->i || depth < 1 || x->rank == OP_RANK || (axis != -1 && axis != (int64_t)x->rank)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: integers, a depth of at least 1 and the last axis",
                o->call->name);
        return;
    }
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank] = depth;
    struct val *y = val_new(o, PLUMB_F32, x->rank + 1, shape);
    for (int64_t k = 0; y && k < y->count; k++)
        y->f[k] = R(x->i[k / depth] == k % depth ? on : off);
    op_return(o, y);
}

static void run_ones(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, x ? v_full(o, x->dtype, x->rank, x->shape, 1) : NULL);
}

/* ---- Signs as bits --------------------------------------------------------------------------- */

/* Eight signs a byte, the first in the lowest bit; 1 for 0 and above, 0 behind the end. */
static void run_pack(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t size = arg_int(o, "size");
    if (!takes_floats(o, x))
        return;
    const int64_t bytes = (x->count + 7) / 8;
    if (x->rank != 1 || size < 1 || bytes % size) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld bytes do not divide into %lld rows", o->call->name,
                (long long)bytes, (long long)size);
        return;
    }
    struct val *y = val_new(o, PLUMB_U8, 2, (const int64_t[]){size, bytes / size});
    for (int64_t k = 0; y && k < x->count; k++)
        y->i[k / 8] |= (int64_t)(x->f[k] >= 0) << (k % 8);
    op_return(o, y);
}

static void run_unpack(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t size = arg_int(o, "size");
    const struct plumb_arg *given = arg_raw(o, "dtype");
    if (!x || !given)
        return;
    const enum plumb_dtype dtype = given->kind == PLUMB_ARG_DTYPE ? given->dtype
                                   : given->integer == 1          ? PLUMB_F16
                                                                  : PLUMB_F32;
    if (x->dtype != PLUMB_U8 || x->rank != 1 || size < 1 || x->count * 8 % size ||
        !dtype_is_float(dtype)) {
        op_fail(o, PLUMB_E_ARG, "%s: a row of bytes, for %lld rows of signs", o->call->name,
                (long long)size);
        return;
    }
    struct val *y = val_new(o, dtype, 2, (const int64_t[]){size, x->count * 8 / size});
    for (int64_t k = 0; y && k < y->count; k++)
        y->f[k] = x->i[k / 8] >> (k % 8) & 1 ? R(1) : R(-1);
    op_return(o, y);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* input[index] = update for each row of indices, which name the first dimensions. */
static void run_scatter_nd(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "indices"),
               *updates = arg_tensor(o, "updates");
    if (!x || !index || !updates)
        return;
    const int64_t named = index->rank ? index->shape[index->rank - 1] : 0;
    int64_t inner = 1;
    for (unsigned d = 0; d < x->rank; d++)
        inner *= (int64_t)d >= named ? x->shape[d] : 1;
    const int64_t rows = named ? index->count / named : 0;
    if (named < 1 || named > (int64_t)x->rank || updates->count != rows * inner) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld elements to be put at %lld places of %lld", o->call->name,
                (long long)updates->count, (long long)rows, (long long)inner);
        return;
    }
    int64_t *map = op_alloc(o, updates->count + 1, sizeof *map);
    for (int64_t r = 0; map && r < rows; r++) {
        int64_t at = 0;
        for (int64_t d = 0; d < named; d++) {
            const int64_t i = index_wrap(o, index->i[r * named + d], x->shape[d]);
            if (o->failed)
                return;
            at = at * x->shape[d] + i;
        }
        for (int64_t k = 0; k < inner; k++)
            map[r * inner + k] = at * inner + k;
    }
    op_return(o, map ? v_place(o, x, v_cast(o, updates, x->dtype), map) : NULL);
}

/* input[index] */
static void run_gather_rows(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "index");
    int64_t shape[OP_RANK];
    if (!x || !index)
        return;
    if (x->rank < 1 || x->rank + index->rank - 1 > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "%s: an input of %u dimensions", o->call->name, x->rank);
        return;
    }
    int64_t *rows = op_alloc(o, index->count + 1, sizeof *rows);
    for (int64_t k = 0; rows && k < index->count; k++)
        rows[k] = index_wrap(o, index->i[k], x->shape[0]);
    struct val *y = o->failed ? NULL : v_pick_dim(o, x, 0, index->count, rows);
    memcpy(shape, index->shape, index->rank * sizeof *shape);
    memcpy(shape + index->rank, x->shape + 1, (x->rank - 1) * sizeof *shape);
    op_return(o, y ? v_reshape(o, y, index->rank + x->rank - 1, shape) : NULL);
}

/* ---- Products -------------------------------------------------------------------------------- */

static struct val *permuted(struct op *o, struct val *x, const char *name)
{
    size_t n;
    const int64_t *perm = arg_ints(o, name, &n);
    unsigned dims[3];
    uint64_t seen = 0;
    if (!x || n == 0)
        return x;
    for (size_t k = 0; k < 3 && k < n; k++) {
        dims[k] = (unsigned)(perm[k] & 3);
        seen |= perm[k] >= 0 && perm[k] < 3 ? UINT64_C(1) << perm[k] : 0;
    }
    if (x->rank != 3 || n != 3 || seen != 7)
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' does not permute three dimensions", o->call->name,
                       name);
    return v_permute(o, x, dims);
}

static void run_transpose_batchmatmul(struct op *o)
{
    struct val *a = permuted(o, arg_tensor(o, "input"), "perm_x1"),
               *b = permuted(o, arg_tensor(o, "weight"), "perm_x2");
    if (arg_given(o, "scale") || arg_given(o, "bias") || arg_int(o, "batch_split_factor") != 1)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: bias, scale and batch_split_factor are not known",
                o->call->name);
    op_return(o, permuted(o, v_matmul(o, a, b), "perm_y"));
}

/* act(x w1 + b1) w2 + b2 */
static void run_ffn(struct op *o)
{
    static const char *const unknown[] = {"expert_tokens",    "expert_tokens_index", "scale",
                                          "offset",           "deq_scale1",          "deq_scale2",
                                          "antiquant_scale1", "antiquant_scale2",    NULL};
    const char *act = arg_text(o, "activation");
    struct val *b1 = arg_tensor(o, "bias1"), *b2 = arg_tensor(o, "bias2");
    for (size_t k = 0; unknown[k]; k++)
        if (arg_given(o, unknown[k]))
            op_fail(o, PLUMB_E_UNSUPPORTED, "%s: '%s' is not known", o->call->name, unknown[k]);
    struct val *y = v_matmul(o, arg_tensor(o, "x"), arg_tensor(o, "weight1"));
    if (b1)
        y = v_add(o, y, b1);
    if (act && strcmp(act, "relu") == 0)
        y = v_relu(o, y);
    else if (act && strcmp(act, "silu") == 0)
        y = v_silu(o, y);
    else if (act && strcmp(act, "fastgelu") == 0)
        y = v_mul(o, y, v_sigmoid(o, v_scale(o, y, 1.702)));
    else
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: of the activations relu, silu and fastgelu are known",
                o->call->name);
    y = v_matmul(o, y, arg_tensor(o, "weight2"));
    op_return(o, y && b2 ? v_add(o, y, b2) : y);
}

#define X "(Tensor input|self|x"

const struct op_def op_fused_misc[] = {
    {"npu_pad", "npu_pad" X ", int[] paddings)", run_pad, OP_EXACT, "zeros before and after"},
    {"npu_one_hot",
     "npu_one_hot" X ", int axis|num_classes|num_classses=-1, int depth=1, number on_value=1, "
     "number off_value=0)",
     run_one_hot, OP_NO_GRAD | OP_EXACT,
     "on_value at the place that the element names, else off_value"},
    {"one_", "one_" X ")", run_ones, OP_NO_GRAD | OP_EXACT, "1 everywhere"},
    {"npu_sign_bits_pack", "npu_sign_bits_pack" X ", int size)", run_pack, OP_NO_GRAD | OP_EXACT,
     "eight signs a byte, 1 for 0 and above"},
    {"npu_sign_bits_unpack", "npu_sign_bits_unpack" X ", any dtype, int size)", run_unpack,
     OP_NO_GRAD | OP_EXACT, "1 or -1 for each bit"},
    {"npu_scatter_nd_update npu_scatter_nd_update_",
     "npu_scatter_nd_update" X ", Tensor indices, Tensor updates)", run_scatter_nd, OP_EXACT,
     "input[index] = update for each row of indices"},
    {"npu_gather_sparse_index", "npu_gather_sparse_index" X ", Tensor index)", run_gather_rows,
     OP_EXACT, "input[index]"},
    {"npu_transpose_batchmatmul",
     "npu_transpose_batchmatmul" X ", Tensor weight, *, Tensor? bias=None, Tensor? scale=None, "
     "int[]? perm_x1=[0, 1, 2], int[]? perm_x2=[0, 1, 2], int[]? perm_y=[1, 0, 2], int "
     "batch_split_factor=1)",
     run_transpose_batchmatmul, OP_BILINEAR, "the product of permuted batches, permuted"},
    {"npu_ffn ffn.npu_ffn",
     "npu_ffn(Tensor x, Tensor weight1, Tensor weight2, str activation, *, any "
     "expert_tokens=None, any expert_tokens_index=None, Tensor? bias1=None, Tensor? bias2=None, "
     "any scale=None, any offset=None, any deq_scale1=None, any deq_scale2=None, any "
     "antiquant_scale1=None, any antiquant_scale2=None, any antiquant_offset1=None, any "
     "antiquant_offset2=None, any inner_precise=None, any output_dtype=None)",
     run_ffn, 0, "act(x w1 + b1) w2 + b2, without experts and scales"},
    {0},
};
