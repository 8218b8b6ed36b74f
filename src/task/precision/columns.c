#include "task/precision/columns.h"

#include <string.h>
#include <strings.h>

enum { NEVER, ALWAYS, DOCUMENTED }; /* which rules need a column */

static const struct {
    const char *title, *origin;
    int needed;
} columns[] = {
    [COLUMN_NAME] = {"API name", "API Name", ALWAYS},
    [COLUMN_DTYPE] = {"DEVICE Dtype", "DEVICE Dtype", ALWAYS},
    [COLUMN_SMALL] = {"Error ratio in small value range", "小值域错误占比", ALWAYS},
    [COLUMN_RMSE] = {"Root-mean-square error (RMSE)", "均方根误差", ALWAYS},
    [COLUMN_MAX_REL] = {"Maximum relative error", "相对误差最大值", ALWAYS},
    [COLUMN_MEAN_REL] = {"Mean relative error", "相对误差平均值", ALWAYS},
    [COLUMN_BALANCE] = {"Error balance", "误差均衡性", ALWAYS},
    [COLUMN_BINARY] = {"Binary consistency error rate", "二进制一致错误率", ALWAYS},
    [COLUMN_INF_NAN] = {"inf/nan error rate", "inf/nan错误率", ALWAYS},
    [COLUMN_REL_RATE] = {"Relative error rate", "相对误差错误率", ALWAYS},
    [COLUMN_ABS_RATE] = {"Absolute error rate", "绝对误差错误率", ALWAYS},
    [COLUMN_ULP_MEAN] = {"Mean ULP error", "ULP误差平均值", ALWAYS},
    [COLUMN_ULP_RATE] = {"Proportion of ULP errors greater than the threshold",
                         "ULP误差大于阈值占比", ALWAYS},
    [COLUMN_DUAL_1000] = {"Dual-1000 metric", "双千指标", ALWAYS},
    [COLUMN_STATUS] = {"Status", "Status", DOCUMENTED},
    [COLUMN_SHAPE] = {"Shape", "Shape", NEVER},
    [COLUMN_MESSAGE] = {"Message", "Message", NEVER},
};
_Static_assert(sizeof columns / sizeof *columns == COLUMN_COUNT, "a row for each column");

static const struct {
    const char *title, *origin;
} fields[] = {
    [FIELD_NAME] = {"API name", "API Name"},
    [FIELD_SMALL] = {"Error ratio in small value range", "小值域错误比值"},
    [FIELD_SMALL_VERDICT] = {"Error determination result in small value range", "小值域判定结果"},
    [FIELD_RMSE] = {"RMSE ratio", "均方根误差比值"},
    [FIELD_RMSE_VERDICT] = {"RMSE determination result", "均方根误差判定结果"},
    [FIELD_MAX_REL] = {"Maximum relative error ratio", "相对误差最大值比值"},
    [FIELD_MAX_REL_VERDICT] = {"Maximum relative error determination result",
                               "相对误差最大值判定结果"},
    [FIELD_MEAN_REL] = {"Mean relative error ratio", "相对误差平均值比值"},
    [FIELD_MEAN_REL_VERDICT] = {"Mean relative error determination result",
                                "相对误差平均值判定结果"},
    [FIELD_BALANCE] = {"Error balance ratio", "误差均衡性比值"},
    [FIELD_BALANCE_VERDICT] = {"Error balance determination result", "误差均衡性判定结果"},
    [FIELD_INF_NAN] = {"INF/NaN error rate", "inf/nan错误率"},
    [FIELD_INF_NAN_VERDICT] = {"INF/NaN determination result", "inf/nan判定结果"},
    [FIELD_REL_RATE] = {"Relative error rate", "相对误差错误率"},
    [FIELD_REL_RATE_VERDICT] = {"Relative error determination result", "相对误差判定结果"},
    [FIELD_ABS_RATE] = {"Absolute error rate", "绝对误差错误率"},
    [FIELD_ABS_RATE_VERDICT] = {"Absolute error determination result", "绝对误差判定结果"},
    [FIELD_BINARY] = {"Binary consistency error rate", "二进制一致错误率"},
    [FIELD_BINARY_VERDICT] = {"Binary consistency error rate determination result",
                              "二进制一致错误率判定结果"},
    [FIELD_ULP_MEAN] = {"Mean ULP error", "ULP误差平均值"},
    [FIELD_ULP_RATE] = {"Proportion of ULP errors greater than the threshold",
                        "ULP误差大于阈值占比"},
    [FIELD_ULP_RATIO] = {"Ratio of ULP error greater than the threshold",
                         "ULP误差大于阈值占比比值"},
    [FIELD_ULP_VERDICT] = {"ULP error determination result", "ULP误差判定结果"},
    [FIELD_DUAL_1000] = {"Dual-1000 metric", "双千指标"},
    [FIELD_DUAL_1000_VERDICT] = {"Dual-1000 metric determination result", "双千指标判定结果"},
    [FIELD_RESULT] = {"Comparison result", "比对结果"},
    [FIELD_STANDARD] = {"Comparison algorithm", "比对算法"},
    [FIELD_MESSAGE] = {"Message", "Message"},
};
_Static_assert(sizeof fields / sizeof *fields == FIELD_COUNT, "a row for each field");

static const char *const origin_standards[] = {
    [STANDARD_BENCHMARK] = "标杆比对法",  [STANDARD_BINARY] = "二进制一致法",
    [STANDARD_ABSOLUTE] = "绝对阈值法",   [STANDARD_ULP] = "ULP误差比对法",
    [STANDARD_THOUSANDTH] = "双千指标法", [STANDARD_ACCUMULATIVE] = "累积误差比对法",
};
_Static_assert(sizeof origin_standards / sizeof *origin_standards == STANDARD_COUNT,
               "a name for each standard");

const char *precision_column_title(enum precision_column column)
{
    return columns[column].title;
}

static bool is_title(struct csv_cell cell, const char *title)
{
    return strlen(title) == cell.length && strncasecmp(title, cell.text, cell.length) == 0;
}

void precision_columns_find(const struct csv_cell *cells, size_t count, enum check_rules rules,
                            int place[COLUMN_COUNT], bool *origin, struct buf *missing)
{
    *origin = false;
    for (int column = 0; column < COLUMN_COUNT; column++) {
        place[column] = -1;
        for (size_t i = 0; i < count && place[column] < 0; i++) {
            bool theirs = is_title(cells[i], columns[column].origin);
            if (theirs || is_title(cells[i], columns[column].title))
                place[column] = (int)i;
            *origin |= theirs && column >= FIRST_METRIC && column <= LAST_METRIC;
        }
        bool needed = columns[column].needed == ALWAYS ||
                      (columns[column].needed == DOCUMENTED && rules == RULES_DOCUMENTED);
        if (place[column] < 0 && needed)
            buf_printf(missing, "%s%s", missing->size ? ", " : "", columns[column].title);
    }
}

const char *precision_field_title(enum check_rules rules, enum precision_field field)
{
    return rules == RULES_MSPROBE ? fields[field].origin : fields[field].title;
}

const char *precision_result_title(enum check_rules rules, size_t column)
{
    static const char *const titles[] = {"API name", "Forward Test Success",
                                         "Backward Test Success", "Message"};
    return column == 0 && rules == RULES_MSPROBE ? "API Name" : titles[column];
}

const char *precision_standard_name(enum check_rules rules, enum check_standard standard)
{
    return rules == RULES_MSPROBE ? origin_standards[standard] : standard_name(standard);
}
