/* The files of msProbe: a byte order mark, CRLF and Chinese titles. */
#include "msprobe/profile.h"

static const char *const details[] = {
    "API Name",
    "Bench Dtype",
    "DEVICE Dtype",
    "Shape",
    "余弦相似度",
    "最大绝对误差",
    "双百指标",
    "双千指标",
    "双万指标",
    "二进制一致错误率",
    "误差均衡性",
    "均方根误差",
    "小值域错误占比",
    "相对误差最大值",
    "相对误差平均值",
    "inf/nan错误率",
    "相对误差错误率",
    "绝对误差错误率",
    "ULP误差最大值",
    "ULP误差平均值",
    "ULP误差大于阈值占比",
    "Status",
    "Message",
};
_Static_assert(sizeof details / sizeof *details == CELL_COUNT + 6, "a title for each");

static const char *const columns[] = {
    [COLUMN_NAME] = "API Name",
    [COLUMN_DTYPE] = "DEVICE Dtype",
    [COLUMN_SMALL] = "小值域错误占比",
    [COLUMN_RMSE] = "均方根误差",
    [COLUMN_MAX_REL] = "相对误差最大值",
    [COLUMN_MEAN_REL] = "相对误差平均值",
    [COLUMN_BALANCE] = "误差均衡性",
    [COLUMN_BINARY] = "二进制一致错误率",
    [COLUMN_INF_NAN] = "inf/nan错误率",
    [COLUMN_REL_RATE] = "相对误差错误率",
    [COLUMN_ABS_RATE] = "绝对误差错误率",
    [COLUMN_ULP_MEAN] = "ULP误差平均值",
    [COLUMN_ULP_RATE] = "ULP误差大于阈值占比",
    [COLUMN_DUAL_1000] = "双千指标",
    [COLUMN_STATUS] = "Status",
    [COLUMN_SHAPE] = "Shape",
    [COLUMN_MESSAGE] = "Message",
};
_Static_assert(sizeof columns / sizeof *columns == COLUMN_COUNT, "a title for each");

static const char *const fields[] = {
    [FIELD_NAME] = "API Name",
    [FIELD_SMALL] = "小值域错误比值",
    [FIELD_SMALL_VERDICT] = "小值域判定结果",
    [FIELD_RMSE] = "均方根误差比值",
    [FIELD_RMSE_VERDICT] = "均方根误差判定结果",
    [FIELD_MAX_REL] = "相对误差最大值比值",
    [FIELD_MAX_REL_VERDICT] = "相对误差最大值判定结果",
    [FIELD_MEAN_REL] = "相对误差平均值比值",
    [FIELD_MEAN_REL_VERDICT] = "相对误差平均值判定结果",
    [FIELD_BALANCE] = "误差均衡性比值",
    [FIELD_BALANCE_VERDICT] = "误差均衡性判定结果",
    [FIELD_INF_NAN] = "inf/nan错误率",
    [FIELD_INF_NAN_VERDICT] = "inf/nan判定结果",
    [FIELD_REL_RATE] = "相对误差错误率",
    [FIELD_REL_RATE_VERDICT] = "相对误差判定结果",
    [FIELD_ABS_RATE] = "绝对误差错误率",
    [FIELD_ABS_RATE_VERDICT] = "绝对误差判定结果",
    [FIELD_BINARY] = "二进制一致错误率",
    [FIELD_BINARY_VERDICT] = "二进制一致错误率判定结果",
    [FIELD_ULP_MEAN] = "ULP误差平均值",
    [FIELD_ULP_RATE] = "ULP误差大于阈值占比",
    [FIELD_ULP_RATIO] = "ULP误差大于阈值占比比值",
    [FIELD_ULP_VERDICT] = "ULP误差判定结果",
    [FIELD_DUAL_1000] = "双千指标",
    [FIELD_DUAL_1000_VERDICT] = "双千指标判定结果",
    [FIELD_RESULT] = "比对结果",
    [FIELD_STANDARD] = "比对算法",
    [FIELD_MESSAGE] = "Message",
};
_Static_assert(sizeof fields / sizeof *fields == FIELD_COUNT, "a title for each");

static const char *const results[] = {"API Name", "Forward Test Success", "Backward Test Success",
                                      "Message"};

static const char *const standards[] = {
    [STANDARD_BENCHMARK] = "标杆比对法",  [STANDARD_BINARY] = "二进制一致法",
    [STANDARD_ABSOLUTE] = "绝对阈值法",   [STANDARD_ULP] = "ULP误差比对法",
    [STANDARD_THOUSANDTH] = "双千指标法", [STANDARD_ACCUMULATIVE] = "累积误差比对法",
};
_Static_assert(sizeof standards / sizeof *standards == STANDARD_COUNT, "a name for each standard");

const struct precheck_dialect msprobe_dialect = {
    .mark = "\xef\xbb\xbf",
    .end = "\r\n",
    .blank = " ",
    .message_if_skipped = true,
    .details = details,
    .columns = columns,
    .fields = fields,
    .results = results,
    .standards = standards,
};
