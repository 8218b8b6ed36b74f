/* The limits that msProbe has in its code, where some are other than in its documentation. */
#include "msprobe/profile.h"

const struct standard_set msprobe_standards = {
    .profile = &profile_msprobe,
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
            [TYPE_F8] = {0x1p-20, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-14, 1, 0, 0.001},
            [TYPE_F16] = {0x1p-10, 1e-16, 0x1p-16, 0x1p-10, 0x1p-11, 1, 0, 0.001},
            [TYPE_BF16] = {0x1p-10, 1e-16, 1e-16, 0x1p-8, 0x1p-8, 1, 0, 0.001},
            [TYPE_F32] = {0x1p-20, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-14, 32, 64, 0.05},
            [TYPE_F64] = {0x1p-20, 0x1p-30, 0x1p-30, 0x1p-20, 0x1p-14, 1, 0, 0.001},
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
