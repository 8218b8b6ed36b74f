#include "check/standards.h"

#include <string.h>
#include <strings.h>

static const char *const absolute_apis[] = {
    "mul",      "mul_",     "__mul__",    "__imul__",    "__rmul__", "add",        "add_",
    "__add__",  "__iadd__", "__radd__",   "div",         "div_",     "__div__",    "__idiv__",
    "divide",   "divide_",  "leaky_relu", "leaky_relu_", "prelu",    "reciprocal", "reciprocal_",
    "rsqrt",    "rsqrt_",   "square",     "square_",     "sub",      "sub_",       "rsub",
    "__isub__", "__sub__",  NULL};

static const char *const binary_apis[] = {
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

static const char *const ulp_apis[] = {
    "__matmul__", "addbmm",   "addbmm_", "addmm",        "addmm_",   "baddbmm",
    "baddbmm_",   "bilinear", "bmm",     "chain_matmul", "hspmm",    "linear",
    "matmul",     "mm",       "mv",      "smm",          "sspaddmm", NULL};

static const char *const thousandth_apis[] = {"conv1d", "conv2d", NULL};

static const char *const accumulative_apis[] = {"test_api", NULL};

const char *const standard_quantized[] = {"npu_rms_norm_dynamic_quant", "npu_dynamic_quant",
                                          "npu_quant_lightning_indexer", NULL};

static const struct {
    const char *name;
    const char *const *apis; /* NULL: all that are on no other list */
} standards[] = {
    [STANDARD_BENCHMARK] = {"benchmark comparison", NULL},
    [STANDARD_BINARY] = {"binary consistency", binary_apis},
    [STANDARD_ABSOLUTE] = {"absolute threshold", absolute_apis},
    [STANDARD_ULP] = {"ULP error comparison", ulp_apis},
    [STANDARD_THOUSANDTH] = {"dual-1000", thousandth_apis},
    [STANDARD_ACCUMULATIVE] = {"accumulative error", accumulative_apis},
};
_Static_assert(sizeof standards / sizeof *standards == STANDARD_COUNT, "a row for each standard");

static const char *const level1_apis[] = {
    "embedding", "npu_fusion_attention_grad", "npu_fusion_attention", "scatter_", "scatter_add_",
    NULL};

static const char *const level2_apis[] = {"addmm",
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

static const struct standard_level levels[] = {
    {"L0", 10, 2, 2, 2, 2},
    {"L1", 5, 1.5, 1.5, 2, 2},
    {"L2", 2, 1.2, 1.2, 2, 2},
};

enum { HALF, BRAIN, SINGLE, OTHER, LIMIT_TYPES };

/* The last six columns are the same in both sets; what differs is what counts as small. */
static const struct standard_limits limits[][LIMIT_TYPES] =
    {
        [RULES_DOCUMENTED] =
            {
                [HALF] = {0x1p-11, 0x1p-16, 0x1p-16, 0x1p-10, 0x1p-8, 0x1p-20, 0x1p-11, 1, 0,
                          0.001},
                [BRAIN] = {0x1p-8, 0x1p-16, 0x1p-16, 0x1p-8, 0x1p-7, 0x1p-7, 0x1p-8, 1, 0, 0.001},
                [SINGLE] = {0x1p-14, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-11, 0x1p-14, 0x1p-14,
                            32, 64, 0.05},
                [OTHER] = {0x1p-14, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-11, 0x1p-14, 0x1p-14, 1,
                           0, 0.001},
            },
        [RULES_MSPROBE] =
            {
                [HALF] = {0x1p-10, 1e-16, 0x1p-16, 0x1p-10, 0x1p-8, 0x1p-20, 0x1p-11, 1, 0, 0.001},
                [BRAIN] = {0x1p-10, 1e-16, 1e-16, 0x1p-8, 0x1p-7, 0x1p-7, 0x1p-8, 1, 0, 0.001},
                [SINGLE] = {0x1p-20, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-11, 0x1p-14, 0x1p-14,
                            32, 64, 0.05},
                [OTHER] = {0x1p-20, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-11, 0x1p-14, 0x1p-14, 1, 0,
                           0.001},
            },
};

static bool on_list(const char *const *list, const char *api,
                    int (*compare)(const char *, const char *))
{
    for (; *list; list++)
        if (compare(*list, api) == 0)
            return true;
    return false;
}

const char *standard_name(enum check_standard standard)
{
    return standards[standard].name;
}

enum check_standard standard_of_api(const char *api)
{
    for (int i = 0; i < STANDARD_COUNT; i++)
        if (standards[i].apis && on_list(standards[i].apis, api, strcmp))
            return (enum check_standard)i;
    return STANDARD_BENCHMARK;
}

bool standard_adds_gradients(const char *api)
{
    static const char *const apis[] = {"broadcast_to", "fill_",      "gather",  "masked_fill",
                                       "masked_fill_", "max_pool3d", "maximum", "minimum",
                                       "pad",          "tile",       NULL};
    return on_list(apis, api, strcmp);
}

bool standard_is_fp8(enum plumb_dtype dtype)
{
    if (dtype >= PLUMB_DTYPE_COUNT)
        return false;
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    return info->kind == PLUMB_KIND_FLOAT && info->bits == 8;
}

enum check_standard standard_route(enum check_rules rules, const char *api, enum plumb_dtype dtype,
                                   bool fp8_input)
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
    if (rules == RULES_MSPROBE && kind == PLUMB_KIND_FLOAT)
        return STANDARD_BENCHMARK;
    return standard_of_api(api);
}

const struct standard_level *standard_level_of(enum check_rules rules, const char *api)
{
    int (*compare)(const char *, const char *) = rules == RULES_DOCUMENTED ? strcasecmp : strcmp;
    if (on_list(level2_apis, api, compare))
        return &levels[2];
    return on_list(level1_apis, api, compare) ? &levels[1] : &levels[0];
}

const struct standard_limits *standard_limits(enum check_rules rules, enum plumb_dtype device)
{
    bool wide = device == PLUMB_F64 || device == PLUMB_C64 || device == PLUMB_C128;
    int row = device == PLUMB_F16                 ? HALF
              : device == PLUMB_BF16              ? BRAIN
              : device == PLUMB_F32               ? SINGLE
              : wide && rules == RULES_DOCUMENTED ? SINGLE
                                                  : OTHER;
    return &limits[rules][row];
}
