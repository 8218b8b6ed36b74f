/* The numbers and the verdict of each row. */
#ifndef COMPARE_GRAPH_MEASURE_H
#define COMPARE_GRAPH_MEASURE_H

#include "plumb/torchair.h"
#include "task/compare/compare.h"
#include "verdict/graph_profile.h"

struct air_result {
    bool compared; /* values were compared; else problem or the row says why not */
    bool alone;    /* values were compared, but need not agree, and do not */
    bool dropped;  /* the table leaves this row out */
    bool integers;
    struct plumb_verdict verdict;
    double distance, max_rel;
    uint32_t crc[2];
    char *histogram[3];          /* malloc, or NULL */
    char *problem;               /* malloc, or NULL */
    enum plumb_trouble obstacle; /* what kind of trouble that is */
    struct air_shown shown[2];   /* target, golden */
    double metric[AIR_METRICS];
    bool by_statistics;   /* a side was condensed */
    char checksum[2][12]; /* of such a row, or empty */
    struct recorded_difference differences[PLUMB_STATISTICS];
};

struct measurement {
    const struct air_row *rows;
    size_t count;
    const struct plumb_torchair_options *options;
    const struct graph_profile *profile; /* how it is done */
    const struct graph_columns *columns; /* another table; NULL: that of the layout */
    const struct compare_standards *standards;
    enum layout_kind kind; /* what most rows are compared by */
    struct layout layout;
    struct plumb_metric_spec spec;
    struct air_result *results;
    double *values; /* layout.metric_count a row */
};

/* Columns, standard and what they need computed. */
enum plumb_code measure_prepare(struct measurement *measurement, struct plumb_error *err);

/* Fills results and values, on several threads. Frees nothing. */
enum plumb_code measure_rows(struct measurement *measurement, struct plumb_error *err);

void measure_free(struct measurement *measurement);

/* Why a row is as it is: the rule that decided, or what was wrong. */
const char *measure_reason(const struct measurement *measurement, size_t row);

enum plumb_severity measure_severity(const struct measurement *measurement, size_t row);

/* Has the row no counterpart, which is neither PASS nor FAIL? */
bool measure_alone(const struct measurement *measurement, size_t row);

#endif
