/* The documented limits and lists, and how a set is asked. */
#include "verdict/ladder_limits.h"
#include "verdict/profile.h"

#include <string.h>

const char *const standard_absolute_apis[] = {
    "mul",      "mul_",     "__mul__",    "__imul__",    "__rmul__", "add",        "add_",
    "__add__",  "__iadd__", "__radd__",   "div",         "div_",     "__div__",    "__idiv__",
    "divide",   "divide_",  "leaky_relu", "leaky_relu_", "prelu",    "reciprocal", "reciprocal_",
    "rsqrt",    "rsqrt_",   "square",     "square_",     "sub",      "sub_",       "rsub",
    "__isub__", "__sub__",  NULL};

const char *const standard_binary_apis[] = {
    "abs",           "abs_",           "absolute",    "absolute_",   "argmin",       "bitwise_and",
    "bitwise_and_",  "broadcast_to",   "ceil",        "ceil_",       "equal",        "fill_",
    "flatten",       "floor",          "floor_",      "gather",      "greater",      "greater_",
    "greater_equal", "greater_equal_", "histc",       "isfinite",    "isnan",        "less",
    "less_",         "less_equal",     "less_equal_", "logical_and", "logical_and_", "logical_not",
    "logical_not_",  "logical_or",     "logical_or_", "masked_fill", "masked_fill_", "max_pool3d",
    "maximum",       "minimum",        "neg",         "neg_",        "nonzero",      "not_equal",
    "not_equal_",    "one_hot",        "pad",         "relu",        "reshape",      "round",
    "round_",        "select",         "sign",        "sign_",       "sort",         "tile",
    "topk",          "transpose",      "transpose_",  "tril",        "tril_",        "triu",
    "triu_",         "type_as",        NULL};

const char *const standard_ulp_apis[] = {
    "__matmul__", "addbmm",   "addbmm_", "addmm",        "addmm_",   "baddbmm",
    "baddbmm_",   "bilinear", "bmm",     "chain_matmul", "hspmm",    "linear",
    "matmul",     "mm",       "mv",      "smm",          "sspaddmm", NULL};

const char *const standard_thousandth_apis[] = {"conv1d", "conv2d", NULL};

const char *const standard_accumulative_apis[] = {"test_api", NULL};

const char *const standard_quantized[] = {"npu_rms_norm_dynamic_quant", "npu_dynamic_quant",
                                          "npu_quant_lightning_indexer", NULL};

const char *const standard_no_apis[] = {NULL};

const char *const standard_level1_apis[] = {
    "embedding", "npu_fusion_attention_grad", "npu_fusion_attention", "scatter_", "scatter_add_",
    NULL};

const char *const standard_level2_apis[] = {"addmm",
                                            "npu_cross_entropy_loss",
                                            "npu_cross_entropy_loss_backward",
                                            "GELU",
                                            "layer_norm",
                                            "matmul",
                                            "mm",
                                            "index",
                                            "one_hot",
                                            "sum",
                                            "npu_rms_norm",
                                            "npu_rms_norm_backward",
                                            "nonzero",
                                            NULL};

const struct standard_set standards_documented = {
    .profile = &profile_documented,
    .cosine = 0.99,
    .max_abs = 0.001,
    .dual = {0.99, 0.999, 0.9999},
    .thousandth = 0.999,
    .ulp_ratio = 1,
    .quantized = 1,
    .dropout_gap = 0.1,
    .dropout_count = 100,
    .limits =
        {
            [TYPE_F8] = {0x1p-14, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-14, 1, 0, 0.001},
            [TYPE_F16] = {0x1p-11, 0x1p-16, 0x1p-16, 0x1p-10, 0x1p-11, 1, 0, 0.001},
            [TYPE_BF16] = {0x1p-8, 0x1p-16, 0x1p-16, 0x1p-8, 0x1p-8, 1, 0, 0.001},
            [TYPE_F32] = {0x1p-14, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-14, 32, 64, 0.05},
            [TYPE_F64] = {0x1p-14, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-14, 32, 64, 0.05},
        },
    .levels = {{"L0", 10, 2, 2, 2, 2}, {"L1", 5, 1.5, 1.5, 2, 2}, {"L2", 2, 1.2, 1.2, 2, 2}},
    .apis =
        {
            [STANDARD_BENCHMARK] = standard_no_apis,
            [STANDARD_BINARY] = standard_binary_apis,
            [STANDARD_ABSOLUTE] = standard_absolute_apis,
            [STANDARD_ULP] = standard_ulp_apis,
            [STANDARD_THOUSANDTH] = standard_thousandth_apis,
            [STANDARD_ACCUMULATIVE] = standard_accumulative_apis,
        },
    .level_apis = {standard_no_apis, standard_level1_apis, standard_level2_apis},
};

const char *const standard_names[STANDARD_COUNT] = {
    [STANDARD_BENCHMARK] = "benchmark comparison", [STANDARD_BINARY] = "binary consistency",
    [STANDARD_ABSOLUTE] = "absolute threshold",    [STANDARD_ULP] = "ULP error comparison",
    [STANDARD_THOUSANDTH] = "dual-1000",           [STANDARD_ACCUMULATIVE] = "accumulative error",
};

const char *standard_name(enum check_standard standard)
{
    return standard_names[standard];
}

static bool on_list(const char *const *list, const char *api)
{
    for (; *list; list++)
        if (strcmp(*list, api) == 0)
            return true;
    return false;
}

enum check_standard standard_of_api(const struct standard_set *set, const char *api)
{
    for (int i = 0; i < STANDARD_COUNT; i++)
        if (on_list(set->apis[i], api))
            return (enum check_standard)i;
    return STANDARD_BENCHMARK;
}

bool standard_adds_gradients(const char *api)
{
    static const char *const apis[] = {"broadcast_to", "fill_",      "gather",  "masked_fill",
                                       "masked_fill_", "max_pool3d", "maximum", "minimum",
                                       "pad",          "tile",       NULL};
    return on_list(apis, api);
}

bool standard_chooses(const char *api)
{
    static const char *const apis[] = {"max_pool3d", "sort", "topk", NULL};
    return on_list(apis, api);
}

bool standard_rounds_complex(const char *api)
{
    static const char *const apis[] = {"abs", "abs_", "absolute", "absolute_", NULL};
    return on_list(apis, api);
}

bool standard_is_fp8(enum plumb_dtype dtype)
{
    if (dtype >= PLUMB_DTYPE_COUNT)
        return false;
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    return info->kind == PLUMB_KIND_FLOAT && info->bits == 8;
}

enum check_standard standard_route(const struct standard_set *set, const char *api,
                                   enum plumb_dtype dtype, bool fp8_input)
{
    if (standard_is_fp8(dtype))
        return STANDARD_ULP;
    if (fp8_input)
        return STANDARD_ABSOLUTE;
    if (dtype >= PLUMB_DTYPE_COUNT)
        return STANDARD_BINARY;
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX)
        return STANDARD_BINARY;
    if (set->profile->judge->floats_by_benchmark && kind == PLUMB_KIND_FLOAT)
        return STANDARD_BENCHMARK;
    return standard_of_api(set, api);
}

const struct standard_level *standard_level_of(const struct standard_set *set, const char *api)
{
    for (int i = 1; i < STANDARD_LEVELS; i++)
        for (const char *const *name = set->level_apis[i]; *name; name++)
            if (set->profile->judge->compare_level(*name, api) == 0)
                return &set->levels[i];
    return &set->levels[0];
}

static enum standard_type type_of(enum plumb_dtype dtype)
{
    switch (dtype) {
    case PLUMB_F16:
        return TYPE_F16;
    case PLUMB_BF16:
        return TYPE_BF16;
    case PLUMB_F64:
    case PLUMB_C128:
        return TYPE_F64;
    default:
        break;
    }
    bool narrow = dtype < PLUMB_DTYPE_COUNT && dtype != PLUMB_F32 &&
                  plumb_dtype_info(dtype)->kind == PLUMB_KIND_FLOAT;
    return narrow ? TYPE_F8 : TYPE_F32;
}

const struct standard_limits *standard_limits(const struct standard_set *set,
                                              enum plumb_dtype device)
{
    return &set->limits[type_of(device)];
}
