/* The documented dialect of the files of the pre-check: UTF-8 with LF and English titles. */
#include "verdict/profile.h"

static const char *const details[] = {
    "API name",
    "Bench Dtype",
    "DEVICE Dtype",
    "Shape",
    "Cosine similarity",
    "Maximum absolute error",
    "Dual-100 metric",
    "Dual-1000 metric",
    "Dual-10000 metric",
    "Binary consistency error rate",
    "Error balance",
    "Root-mean-square error (RMSE)",
    "Error ratio in small value range",
    "Maximum relative error",
    "Mean relative error",
    "inf/nan error rate",
    "Relative error rate",
    "Absolute error rate",
    "Maximum ULP error",
    "Mean ULP error",
    "Proportion of ULP errors greater than the threshold",
    "Status",
    "Message",
};
_Static_assert(sizeof details / sizeof *details == CELL_COUNT + 6, "a title for each");

static const char *const columns[] = {
    [COLUMN_NAME] = "API name",
    [COLUMN_DTYPE] = "DEVICE Dtype",
    [COLUMN_SMALL] = "Error ratio in small value range",
    [COLUMN_RMSE] = "Root-mean-square error (RMSE)",
    [COLUMN_MAX_REL] = "Maximum relative error",
    [COLUMN_MEAN_REL] = "Mean relative error",
    [COLUMN_BALANCE] = "Error balance",
    [COLUMN_BINARY] = "Binary consistency error rate",
    [COLUMN_INF_NAN] = "inf/nan error rate",
    [COLUMN_REL_RATE] = "Relative error rate",
    [COLUMN_ABS_RATE] = "Absolute error rate",
    [COLUMN_ULP_MEAN] = "Mean ULP error",
    [COLUMN_ULP_RATE] = "Proportion of ULP errors greater than the threshold",
    [COLUMN_DUAL_1000] = "Dual-1000 metric",
    [COLUMN_STATUS] = "Status",
    [COLUMN_SHAPE] = "Shape",
    [COLUMN_MESSAGE] = "Message",
};
_Static_assert(sizeof columns / sizeof *columns == COLUMN_COUNT, "a title for each");

static const char *const fields[] = {
    [FIELD_NAME] = "API name",
    [FIELD_SMALL] = "Error ratio in small value range",
    [FIELD_SMALL_VERDICT] = "Error determination result in small value range",
    [FIELD_RMSE] = "RMSE ratio",
    [FIELD_RMSE_VERDICT] = "RMSE determination result",
    [FIELD_MAX_REL] = "Maximum relative error ratio",
    [FIELD_MAX_REL_VERDICT] = "Maximum relative error determination result",
    [FIELD_MEAN_REL] = "Mean relative error ratio",
    [FIELD_MEAN_REL_VERDICT] = "Mean relative error determination result",
    [FIELD_BALANCE] = "Error balance ratio",
    [FIELD_BALANCE_VERDICT] = "Error balance determination result",
    [FIELD_INF_NAN] = "INF/NaN error rate",
    [FIELD_INF_NAN_VERDICT] = "INF/NaN determination result",
    [FIELD_REL_RATE] = "Relative error rate",
    [FIELD_REL_RATE_VERDICT] = "Relative error determination result",
    [FIELD_ABS_RATE] = "Absolute error rate",
    [FIELD_ABS_RATE_VERDICT] = "Absolute error determination result",
    [FIELD_BINARY] = "Binary consistency error rate",
    [FIELD_BINARY_VERDICT] = "Binary consistency error rate determination result",
    [FIELD_ULP_MEAN] = "Mean ULP error",
    [FIELD_ULP_RATE] = "Proportion of ULP errors greater than the threshold",
    [FIELD_ULP_RATIO] = "Ratio of ULP error greater than the threshold",
    [FIELD_ULP_VERDICT] = "ULP error determination result",
    [FIELD_DUAL_1000] = "Dual-1000 metric",
    [FIELD_DUAL_1000_VERDICT] = "Dual-1000 metric determination result",
    [FIELD_RESULT] = "Comparison result",
    [FIELD_STANDARD] = "Comparison algorithm",
    [FIELD_MESSAGE] = "Message",
};
_Static_assert(sizeof fields / sizeof *fields == FIELD_COUNT, "a title for each");

static const char *const results[] = {"API name", "Forward Test Success", "Backward Test Success",
                                      "Message"};

const struct precheck_dialect dialect_documented = {
    .mark = "",
    .end = "\n",
    .blank = "",
    .guards_formulas = true,
    .details = details,
    .columns = columns,
    .fields = fields,
    .results = results,
    .standards = standard_names,
};

const char *precision_column_title(enum precision_column column)
{
    return columns[column];
}
