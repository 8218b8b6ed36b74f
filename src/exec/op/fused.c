/* Operators of torch_npu that fuse several of PyTorch's: activations, rotary embedding, products
 * and softmax. The others are in fused_attention.c, fused_norm.c and fused_move.c. */
#include "exec/op/fused.h"
#include "exec/op/matmul.h"

#include <string.h>

bool fused_halves(struct op *o, struct val *x, int64_t dim, struct val **a, struct val **b)
{
    if (!x)
        return false;
    const unsigned d = val_dim(o, x, dim);
    if (o->failed)
        return false;
    if (x->rank == 0 || x->shape[d] % 2) {
        op_fail(o, PLUMB_E_ARG, "%s: a dimension of %lld has no halves", o->call->name,
                (long long)(x->rank ? x->shape[d] : 1));
        return false;
    }
    *a = v_narrow(o, x, d, 0, x->shape[d] / 2);
    *b = v_narrow(o, x, d, x->shape[d] / 2, x->shape[d] / 2);
    return *a && *b;
}

/* ---- Activations ----------------------------------------------------------------------------- */

/* x exp(0.851 (x - |x|)) / (1 + exp(-1.702 |x|)) is x sigmoid(1.702 x) */
static void run_fast_gelu(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, v_mul(o, x, v_sigmoid(o, v_scale(o, x, 1.702))));
}

static void run_mish(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, v_mul(o, x, v_tanh(o, v_softplus(o, x))));
}

static void run_silu(struct op *o)
{
    op_return(o, v_silu(o, arg_tensor(o, "input")));
}

/* x sigmoid(2 u) = x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3) */
struct val *fused_gelu(struct op *o, struct val *x, bool tanh_form)
{
    if (!tanh_form)
        return v_gelu(o, x);
    struct val *third = v_constant(o, REAL_C(0.044715)),
               *twice = v_constant(o, REAL_C(1.595769121605730711759784239737527474));
    struct val *cubic = v_offset(o, v_mul(o, v_square(o, x), third), 1);
    struct val *twice_u = v_mul(o, v_mul(o, x, cubic), twice);
    return v_mul(o, x, v_sigmoid(o, twice_u));
}

static bool is_tanh_form(struct op *o)
{
    const char *how = arg_text(o, "approximate");
    if (how && strcmp(how, "tanh") == 0)
        return true;
    if (!how || strcmp(how, "none") != 0)
        op_fail(o, PLUMB_E_ARG, "%s: approximate is one of none and tanh", o->call->name);
    return false;
}

static void run_gelu(struct op *o)
{
    const bool tanh_form = is_tanh_form(o);
    op_return(o, fused_gelu(o, arg_tensor(o, "input"), tanh_form));
}

static void run_swiglu(struct op *o)
{
    struct val *a, *b;
    if (fused_halves(o, arg_tensor(o, "input"), arg_int(o, "dim"), &a, &b))
        op_return(o, v_mul(o, v_silu(o, a), b));
}

static void run_geglu(struct op *o)
{
    struct val *a, *b;
    if (!fused_halves(o, arg_tensor(o, "input"), arg_int(o, "dim"), &a, &b))
        return;
    const bool left = arg_bool(o, "activate_left");
    struct val *active = fused_gelu(o, left ? a : b, arg_int(o, "approximate") != 0);
    op_return(o, v_mul(o, active, left ? b : a));
    op_return(o, active);
}

static void run_gelu_mul(struct op *o)
{
    struct val *a, *b;
    const bool tanh_form = is_tanh_form(o);
    if (fused_halves(o, arg_tensor(o, "input"), -1, &a, &b))
        op_return(o, v_mul(o, fused_gelu(o, a, tanh_form), b));
}

/* ---- Rotary embedding ------------------------------------------------------------------------ */

/* half: (x1, x2) to (-x2, x1) in halves; interleave: the same in neighbours. */
static struct val *turned(struct op *o, struct val *x, bool interleave)
{
    if (!x)
        return NULL;
    const int64_t n = x->rank ? x->shape[x->rank - 1] : 1, half = n / 2;
    if (n % 2)
        return op_fail(o, PLUMB_E_ARG, "%s: a last dimension of %lld has no halves", o->call->name,
                       (long long)n);
    int64_t *map = op_alloc(o, x->count, sizeof *map);
    struct val *sign = val_new(o, x->dtype, 1, &n);
    if (!map || !sign)
        return NULL;
    for (int64_t j = 0; j < n; j++)
        sign->f[j] = (interleave ? j % 2 == 0 : j < half) ? -1 : 1;
    for (int64_t k = 0; k < x->count; k++) {
        const int64_t j = k % n;
        map[k] = interleave ? k + (j % 2 ? -1 : 1) : k + (j < half ? half : -half);
    }
    return v_mul(o, v_map(o, x, x->rank, x->shape, map), sign);
}

struct val *fused_rotate(struct op *o, struct val *x, struct val *cosine, struct val *sine,
                         bool interleave)
{
    return v_add(o, v_mul(o, cosine, x), v_mul(o, sine, turned(o, x, interleave)));
}

static bool is_interleaved(struct op *o)
{
    const char *mode = arg_text(o, "rotary_mode");
    const int64_t number = mode ? -1 : arg_int(o, "rotary_mode");
    if (number == 1 || (mode && strcmp(mode, "interleave") == 0))
        return true;
    if (number != 0 && !(mode && strcmp(mode, "half") == 0))
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: rotary mode '%s'; half and interleave are known",
                o->call->name, mode ? mode : "");
    return false;
}

static void run_rotary_mul(struct op *o)
{
    const bool interleave = is_interleaved(o);
    struct val *x = arg_tensor(o, "input");
    if (takes_floats(o, x))
        op_return(o, fused_rotate(o, x, arg_tensor(o, "r1"), arg_tensor(o, "r2"), interleave));
}

static void run_apply_rotary(struct op *o)
{
    const bool interleave = is_interleaved(o);
    struct val *q = arg_tensor(o, "query"), *k = arg_tensor(o, "key");
    struct val *cosine = arg_tensor(o, "cos"), *sine = arg_tensor(o, "sin");
    if (!takes_floats(o, q) || !takes_floats(o, k))
        return;
    op_return(o, fused_rotate(o, q, cosine, sine, interleave));
    op_return(o, fused_rotate(o, k, cosine, sine, interleave));
}

/* ---- Products and softmax -------------------------------------------------------------------- */

static void run_linear(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight"),
               *bias = arg_tensor(o, "bias");
    if (weight && weight->rank != 2) {
        op_fail(o, PLUMB_E_ARG, "%s: the weight must be a matrix", o->call->name);
        return;
    }
    struct val *y = v_matmul_t(o, x, weight);
    op_return(o, y && bias ? v_add(o, y, matmul_operand(o, bias, y->dtype)) : y);
}

static void run_bmm(struct op *o)
{
    size_t n;
    const int64_t *shape = arg_ints(o, "output_sizes", &n);
    struct val *y = v_matmul(o, arg_tensor(o, "input"), arg_tensor(o, "mat2"));
    op_return(o, y && n ? v_reshape(o, y, (unsigned)n, shape) : y);
}

/* 1 above the diagonal of the last two dimensions. */
static struct val *upper_mask(struct op *o, const struct val *x)
{
    if (x->rank < 2)
        return op_fail(o, PLUMB_E_ARG, "%s: the triangle needs two dimensions", o->call->name);
    const int64_t shape[2] = {x->shape[x->rank - 2], x->shape[x->rank - 1]};
    struct val *mask = val_new(o, PLUMB_BOOL, 2, shape);
    for (int64_t i = 0; mask && i < shape[0]; i++)
        for (int64_t j = i + 1; j < shape[1]; j++)
            mask->i[i * shape[1] + j] = 1;
    return mask;
}

/* What is masked counts as -10000, not as minus infinity: a row of nothing else is even. */
static void run_scaled_masked_softmax(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *mask = arg_tensor(o, "mask");
    if (!takes_floats(o, x))
        return;
    if (arg_bool(o, "fixed_triu_mask"))
        mask = upper_mask(o, x);
    struct val *z = v_scale(o, x, arg_number(o, "scale"));
    if (mask && mask->f)
        mask = v_compare(o, CMP_NE, mask, v_number(o, 0));
    if (mask)
        z = v_where(o, mask, v_number(o, -10000), z);
    op_return(o, z && z->rank ? v_softmax(o, z, z->rank - 1) : z);
}

/* -sum over classes of labels log softmax(features) */
static void run_softmax_cross_entropy(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *labels = arg_tensor(o, "labels");
    if (!takes_floats(o, x))
        return;
    if (x->rank == 0) {
        op_fail(o, PLUMB_E_ARG, "%s: the input has no dimension of classes", o->call->name);
        return;
    }
    struct val *terms = v_mul(o, labels, v_log_softmax(o, x, x->rank - 1));
    op_return(o, v_neg(o, v_sum(o, terms, UINT64_C(1) << (x->rank - 1), false)));
}

/* ---- The table ------------------------------------------------------------------------------- */

#define X "(Tensor input|self|x"

const struct op_def op_fused[] = {
    {"npu_fast_gelu fast_gelu", "npu_fast_gelu" X ")", run_fast_gelu, OP_ELEMENTWISE,
     "x sigmoid(1.702 x)"},
    {"npu_mish", "npu_mish" X ")", run_mish, OP_ELEMENTWISE, "x tanh(log(1 + exp(x)))"},
    {"npu_silu npu_silu_", "npu_silu" X ")", run_silu, OP_ELEMENTWISE, "x sigmoid(x)"},
    {"npu_gelu", "npu_gelu" X ", str approximate='none')", run_gelu, OP_ELEMENTWISE, NULL},
    {"npu_swiglu", "npu_swiglu" X ", int dim=-1)", run_swiglu, 0,
     "silu(a) b of the halves a and b"},
    {"npu_geglu", "npu_geglu" X ", int dim=-1, int approximate=1, bool activate_left=False)",
     run_geglu, 0, "a gelu(b) of the halves a and b, and gelu(b)"},
    {"npu_gelu_mul", "npu_gelu_mul" X ", *, str approximate='none')", run_gelu_mul, 0,
     "gelu(a) b of the halves a and b"},
    {"npu_rotary_mul", "npu_rotary_mul" X ", Tensor r1, Tensor r2, str rotary_mode='half')",
     run_rotary_mul, 0, "r1 x + r2 (-x2, x1) of the halves x1 and x2"},
    {"npu_rotary_position_embedding.npu_rotary_position_embedding npu_rotary_position_embedding",
     "npu_rotary_position_embedding" X ", Tensor r1|cos, Tensor r2|sin, int rotary_mode|mode=0)",
     run_rotary_mul, 0, "cos x + sin (-x2, x1) of the halves (mode 0) or neighbours (mode 1)"},
    {"npu_apply_rotary_pos_emb",
     "npu_apply_rotary_pos_emb(Tensor query, Tensor key, Tensor cos, Tensor sin, any layout='BSH', "
     "str rotary_mode='half')",
     run_apply_rotary, 0, "cos x + sin (-x2, x1) of query and of key"},
    {"npu_linear", "npu_linear" X ", Tensor weight, Tensor? bias=None)", run_linear, OP_BILINEAR,
     "x weight^T + bias"},
    {"npu_bmmV2", "npu_bmmV2" X ", Tensor mat2, int[] output_sizes)", run_bmm, OP_BILINEAR, NULL},
    {"npu_scaled_masked_softmax",
     "npu_scaled_masked_softmax" X ", Tensor? mask, number scale=1, bool fixed_triu_mask=False)",
     run_scaled_masked_softmax, 0, "softmax(scale x), -10000 where masked"},
    {"npu_softmax_cross_entropy_with_logits",
     "npu_softmax_cross_entropy_with_logits(Tensor input|self|features, Tensor labels)",
     run_softmax_cross_entropy, 0, "-sum of labels log softmax(features)"},
    {0},
};
