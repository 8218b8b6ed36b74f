/* Calls in other types: raised for a benchmark, as under autocast, without dropout. */
#include "verdict/convert.h"

#include "verdict/ladder_limits.h"

#include <string.h>

/* Which type takes the place of which. */
struct plan {
    enum plumb_dtype to[PLUMB_DTYPE_COUNT];
};

static struct plan keep_all(void)
{
    struct plan plan;
    for (unsigned k = 0; k < PLUMB_DTYPE_COUNT; k++)
        plan.to[k] = (enum plumb_dtype)k;
    return plan;
}

static enum plumb_code convert_tensor(const struct plumb_tensor *from, const struct plan *plan,
                                      struct arena *arena, const struct plumb_tensor **out,
                                      struct plumb_error *err)
{
    const enum plumb_dtype to = plan->to[from->dtype];
    *out = from;
    if (to == from->dtype)
        return PLUMB_OK;
    struct plumb_tensor *copy = arena_alloc(arena, sizeof *copy);
    if (!copy)
        return plumb_no_memory(err);
    enum plumb_code code = plumb_tensor_init(copy, to, from->rank, from->shape, err);
    if (code)
        return code;
    const size_t size = plumb_dtype_info(to)->bits / 8;
    unsigned char *bytes = arena_array(arena, copy->count, size);
    if (!bytes)
        return plumb_no_memory(err);
    double piece[1024];
    for (uint64_t first = 0; first < from->count; first += 1024) {
        const size_t n = from->count - first < 1024 ? (size_t)(from->count - first) : 1024;
        plumb_tensor_to_f64(from, first, n, piece);
        plumb_from_f64(to, piece, n, bytes + first * size);
    }
    copy->data = bytes;
    *out = copy;
    return PLUMB_OK;
}

static enum plumb_code convert_arg(struct plumb_arg *arg, const struct plan *plan,
                                   struct arena *arena, struct plumb_error *err)
{
    if (arg->kind == PLUMB_ARG_TENSOR)
        return convert_tensor(arg->tensor, plan, arena, &arg->tensor, err);
    if (arg->kind != PLUMB_ARG_LIST || arg->n_items == 0)
        return PLUMB_OK;
    struct plumb_arg *items = arena_array(arena, arg->n_items, sizeof *items);
    if (!items)
        return plumb_no_memory(err);
    memcpy(items, arg->items, arg->n_items * sizeof *items);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < arg->n_items && !code; k++)
        code = convert_arg(&items[k], plan, arena, err);
    arg->items = items;
    return code;
}

static enum plumb_code convert_call(const struct plumb_call *from, const struct plan *plan,
                                    struct arena *arena, struct plumb_call *out,
                                    struct plumb_error *err)
{
    struct plumb_arg *args = arena_array(arena, from->n_args, sizeof *args);
    struct plumb_kwarg *kwargs = arena_array(arena, from->n_kwargs, sizeof *kwargs);
    if (!args || !kwargs)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < from->n_args && !code; k++) {
        args[k] = from->args[k];
        code = convert_arg(&args[k], plan, arena, err);
    }
    for (size_t k = 0; k < from->n_kwargs && !code; k++) {
        kwargs[k] = from->kwargs[k];
        code = convert_arg(&kwargs[k].value, plan, arena, err);
    }
    *out = *from;
    out->args = args;
    out->kwargs = kwargs;
    return code;
}

/* ---- Raising --------------------------------------------------------------------------------- */

static void see_types(const struct plumb_arg *arg, bool seen[PLUMB_DTYPE_COUNT])
{
    if (arg->kind == PLUMB_ARG_TENSOR)
        seen[arg->tensor->dtype] = true;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        see_types(&arg->items[k], seen);
}

static void see_call(const struct plumb_call *call, bool seen[PLUMB_DTYPE_COUNT])
{
    memset(seen, 0, PLUMB_DTYPE_COUNT * sizeof *seen);
    for (size_t k = 0; k < call->n_args; k++)
        see_types(&call->args[k], seen);
    for (size_t k = 0; k < call->n_kwargs; k++)
        see_types(&call->kwargs[k].value, seen);
}

static struct plan raising(void)
{
    struct plan plan = keep_all();
    for (unsigned k = 0; k < PLUMB_DTYPE_COUNT; k++)
        if (standard_is_fp8((enum plumb_dtype)k))
            plan.to[k] = PLUMB_F32;
    plan.to[PLUMB_F16] = plan.to[PLUMB_BF16] = PLUMB_F32;
    plan.to[PLUMB_F32] = PLUMB_F64;
    return plan;
}

enum plumb_code convert_raise(const struct plumb_call *from, struct arena *arena,
                              struct plumb_call *out, struct plumb_error *err)
{
    bool seen[PLUMB_DTYPE_COUNT];
    see_call(from, seen);
    struct plan plan = raising();
    const bool conv = strcmp(from->name, "conv1d") == 0 || strcmp(from->name, "conv2d") == 0;
    if (conv || seen[PLUMB_F16] + seen[PLUMB_BF16] + seen[PLUMB_F32] > 1)
        plan.to[PLUMB_F32] = PLUMB_F32;
    if (strcmp(from->name, "type_as") == 0)
        plan = keep_all();
    return convert_call(from, &plan, arena, out, err);
}

enum plumb_code convert_raise_tensor(const struct plumb_tensor *from, struct arena *arena,
                                     const struct plumb_tensor **out, struct plumb_error *err)
{
    const struct plan plan = raising();
    return convert_tensor(from, &plan, arena, out, err);
}

/* ---- Autocast -------------------------------------------------------------------------------- */

/* The operators that autocast runs in the lower precision. */
static const char *const lowered[] = {
    "__imatmul__",
    "__matmul__",
    "__rmatmul__",
    "_convolution",
    "_scaled_dot_product_attention",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
    "einsum",
    "gru",
    "gru_cell",
    "linalg.multi_dot",
    "linear",
    "lstm",
    "lstm_cell",
    "matmul",
    "mm",
    "multi_head_attention_forward",
    "mv",
    "prelu",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "scaled_dot_product_attention",
    NULL,
};

/* Those that it runs in float32, and those that it gives the widest type of their operands. */
static const char *const widened[] = {
    "__pow__",
    "__rdiv__",
    "__rpow__",
    "__rtruediv__",
    "acos",
    "addcdiv",
    "addcmul",
    "asin",
    "atan2",
    "bilinear",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross",
    "cross_entropy",
    "cumprod",
    "cumsum",
    "dist",
    "dot",
    "erfinv",
    "exp",
    "expm1",
    "gaussian_nll_loss",
    "grid_sample",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "index_put",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "nll_loss",
    "norm",
    "normalize",
    "pdist",
    "poisson_nll_loss",
    "pow",
    "prod",
    "reciprocal",
    "renorm",
    "rsqrt",
    "scatter_add",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "sum",
    "tan",
    "tensordot",
    "triplet_margin_loss",
    NULL,
};

static bool is_on(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* A type that the caller asked for has nothing to do with autocast. */
static bool names_a_type(const struct plumb_call *call)
{
    for (size_t k = 0; k < call->n_args; k++)
        if (call->args[k].kind == PLUMB_ARG_DTYPE)
            return true;
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (call->kwargs[k].value.kind == PLUMB_ARG_DTYPE)
            return true;
    return false;
}

enum plumb_code convert_autocast(struct plumb_call *call, const char *recorded_output, bool mixed,
                                 struct arena *arena, struct plumb_error *err)
{
    const enum plumb_dtype dtype =
        recorded_output ? plumb_dtype_from_name(recorded_output) : PLUMB_DTYPE_COUNT;
    bool seen[PLUMB_DTYPE_COUNT];
    see_call(call, seen);
    const bool halves = seen[PLUMB_F16] || seen[PLUMB_BF16];
    struct plan plan = keep_all();
    if ((dtype == PLUMB_F16 || dtype == PLUMB_BF16) && seen[PLUMB_F32] && (mixed || !halves) &&
        is_on(lowered, call->name))
        plan.to[PLUMB_F32] = dtype;
    else if (dtype == PLUMB_F32 && halves && mixed && is_on(widened, call->name) &&
             !names_a_type(call))
        plan.to[PLUMB_F16] = plan.to[PLUMB_BF16] = PLUMB_F32;
    else
        return PLUMB_OK;
    const struct plumb_call from = *call;
    return convert_call(&from, &plan, arena, call, err);
}

/* ---- Dropout inside -------------------------------------------------------------------------- */

/* Where the probability stands. */
static const struct {
    const char *name, *keyword;
    size_t position;
    double off;
} inside[] = {
    {"scaled_dot_product_attention", "dropout_p", 4, 0},
    {"_scaled_dot_product_attention", "dropout_p", 4, 0},
    {"_scaled_dot_product_attention_math", "dropout_p", 4, 0},
    {"_scaled_dot_product_flash_attention", "dropout_p", 3, 0},
    {"_scaled_dot_product_flash_attention_for_cpu", "dropout_p", 3, 0},
    {"_scaled_dot_product_efficient_attention", "dropout_p", 5, 0},
    {"_scaled_dot_product_cudnn_attention", "dropout_p", 5, 0},
    {"_scaled_dot_product_fused_attention_overrideable", "dropout_p", 4, 0},
    {"multi_head_attention_forward", "dropout_p", 10, 0},
    {"npu_fusion_attention", "keep_prob", 9, 1},
    {"npu_fusion_attention_v2", "keep_prob", 9, 1},
    {"gru", "dropout", 5, 0},
    {"lstm", "dropout", 5, 0},
    {"rnn_relu", "dropout", 5, 0},
    {"rnn_tanh", "dropout", 5, 0},
};

/* Packed sequences have their sizes, a tensor, before the states. */
static size_t place_of(const struct plumb_call *call, size_t k)
{
    const bool layers = strcmp(inside[k].keyword, "dropout") == 0;
    const bool packed = layers && call->n_args > 3 && call->args[3].kind == PLUMB_ARG_LIST;
    return inside[k].position + packed;
}

static bool is_on_number(const struct plumb_arg *arg, double off)
{
    return (arg->kind == PLUMB_ARG_FLOAT && arg->number != off) ||
           (arg->kind == PLUMB_ARG_INT && (double)arg->integer != off);
}

enum plumb_code convert_still(struct plumb_call *call, bool *changed, struct arena *arena,
                              struct plumb_error *err)
{
    const size_t length = strcspn(call->name, "."); /* without the overload */
    size_t k = 0;
    *changed = false;
    while (k < sizeof inside / sizeof *inside &&
           (strlen(inside[k].name) != length || memcmp(inside[k].name, call->name, length) != 0))
        k++;
    if (k == sizeof inside / sizeof *inside)
        return PLUMB_OK;
    const struct plan plan = keep_all();
    const struct plumb_call from = *call;
    const struct plumb_arg off = {.kind = PLUMB_ARG_FLOAT, .number = inside[k].off};
    enum plumb_code code = convert_call(&from, &plan, arena, call, err); /* a copy */
    if (code)
        return code;
    const size_t place = place_of(call, k);
    if (place < call->n_args && is_on_number(&call->args[place], inside[k].off)) {
        ((struct plumb_arg *)call->args)[place] = off;
        *changed = true;
    }
    for (size_t i = 0; i < call->n_kwargs; i++)
        if (strcmp(call->kwargs[i].name, inside[k].keyword) == 0 &&
            is_on_number(&call->kwargs[i].value, inside[k].off)) {
            ((struct plumb_kwarg *)call->kwargs)[i].value = off;
            *changed = true;
        }
    return PLUMB_OK;
}
