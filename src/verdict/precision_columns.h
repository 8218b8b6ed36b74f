/* The columns of the files that api_precision_compare reads and writes. */
#ifndef VERDICT_PRECISION_COLUMNS_H
#define VERDICT_PRECISION_COLUMNS_H

/* What is read from an accuracy_checking_details file. */
enum precision_column {
    COLUMN_NAME,
    COLUMN_DTYPE,
    COLUMN_SMALL,
    COLUMN_RMSE,
    COLUMN_MAX_REL,
    COLUMN_MEAN_REL,
    COLUMN_BALANCE,
    COLUMN_BINARY,
    COLUMN_INF_NAN,
    COLUMN_REL_RATE,
    COLUMN_ABS_RATE,
    COLUMN_ULP_MEAN,
    COLUMN_ULP_RATE,
    COLUMN_DUAL_1000,
    COLUMN_STATUS,
    COLUMN_SHAPE,
    COLUMN_MESSAGE,
    COLUMN_COUNT,
    FIRST_METRIC = COLUMN_SMALL,
    LAST_METRIC = COLUMN_DUAL_1000
};

/* The title as documented ("Mean relative error"). */
const char *precision_column_title(enum precision_column column);

/* What is written into an api_precision_compare_details file, in file order. */
enum precision_field {
    FIELD_NAME,
    FIELD_SMALL, /* a ratio, and behind each of these its verdict */
    FIELD_SMALL_VERDICT,
    FIELD_RMSE,
    FIELD_RMSE_VERDICT,
    FIELD_MAX_REL,
    FIELD_MAX_REL_VERDICT,
    FIELD_MEAN_REL,
    FIELD_MEAN_REL_VERDICT,
    FIELD_BALANCE,
    FIELD_BALANCE_VERDICT,
    FIELD_INF_NAN,
    FIELD_INF_NAN_VERDICT,
    FIELD_REL_RATE,
    FIELD_REL_RATE_VERDICT,
    FIELD_ABS_RATE,
    FIELD_ABS_RATE_VERDICT,
    FIELD_BINARY,
    FIELD_BINARY_VERDICT,
    FIELD_ULP_MEAN,
    FIELD_ULP_RATE,
    FIELD_ULP_RATIO,
    FIELD_ULP_VERDICT,
    FIELD_DUAL_1000,
    FIELD_DUAL_1000_VERDICT,
    FIELD_RESULT,
    FIELD_STANDARD,
    FIELD_MESSAGE,
    FIELD_COUNT
};

#endif
