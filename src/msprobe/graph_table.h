/* The table that msProbe writes of two graph dumps. */
#ifndef MSPROBE_GRAPH_TABLE_H
#define MSPROBE_GRAPH_TABLE_H

#include "pair/graph_pair.h"
#include "plumb/table.h"

/* What it shows of one tensor. */
struct air_shown {
    const char *dtype; /* NULL: nothing is known of it */
    char *shape;       /* malloc */
    bool counted;      /* max, min and mean are there */
    double max, min, mean;
};

enum air_metric {
    AIR_COSINE,
    AIR_MAX_REL,
    AIR_MEAN_REL,
    AIR_MAX_ABS,
    AIR_MEAN_ABS,
    AIR_KL,
    AIR_REL_EUCLIDEAN,
    AIR_METRICS
};

/* One pair, measured and judged. */
struct graph_table_row {
    const struct air_row *row;
    const struct air_shown *shown; /* target, golden */
    const double *metric;          /* AIR_METRICS */
    const char *problem;           /* why it could not be measured, or NULL */
    const char *reason;            /* what decided */
    enum plumb_severity severity;
    bool dropped; /* it leaves this row out */
};

/* own_rules: the rows were paired and judged by its rules; its order and its reasons then. The
 * caller frees the table. */
enum plumb_code graph_table_make(struct plumb_table **table, const struct graph_table_row *rows,
                                 size_t count, bool own_rules, struct plumb_error *err);

#endif
