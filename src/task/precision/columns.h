/* The columns of pre-check results in both header languages. */
#ifndef PRECISION_COLUMNS_H
#define PRECISION_COLUMNS_H

#include "base/buf.h"
#include "base/csv.h"
#include "verdict/ladder_limits.h"

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

/* Finds the columns of a header in either language: place[c] is the column's position, or -1.
 * *origin tells whether the metrics have the titles of the origin. Titles that the rules need and
 * that are not there are listed in missing, separated by commas. */
void precision_columns_find(const struct csv_cell *cells, size_t count, enum check_rules rules,
                            int place[COLUMN_COUNT], bool *origin, struct buf *missing);

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

/* Titles of the files that are written, and the name of a standard there. */
const char *precision_field_title(enum check_rules rules, enum precision_field field);
const char *precision_result_title(enum check_rules rules, size_t column); /* 0 to 3 */
const char *precision_standard_name(enum check_rules rules, enum check_standard standard);

#endif
