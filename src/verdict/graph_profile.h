/* How graph dumps are compared, where that can be done in more than one way: the measuring and the
 * judging of pairs, and tables other than plumb's own. All members are data or pure functions. */
#ifndef VERDICT_GRAPH_PROFILE_H
#define VERDICT_GRAPH_PROFILE_H

#include "pair/graph_pair.h"
#include "plumb/metric.h"
#include "plumb/verdict.h"

struct plumb_table;

/* What is shown of one tensor. */
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

/* One pair, measured and judged, for a table. */
struct graph_table_row {
    const struct air_row *row;
    const struct air_shown *shown; /* target, golden */
    const double *metric;          /* AIR_METRICS */
    const char *problem;           /* why it could not be measured, or NULL */
    const char *reason;            /* what decided */
    enum plumb_severity severity;
    bool dropped; /* it is left out */
};

/* A table of its own. */
struct graph_columns {
    unsigned groups;  /* of metrics that it shows */
    const char *stem; /* of the names of its files */
    bool utc;         /* so is the time in them */
    /* own_rules: the rows were paired and judged by the rules of the same profile. The caller frees
     * the table. */
    enum plumb_code (*make)(struct plumb_table **table, const struct graph_table_row *rows,
                            size_t count, bool own_rules, struct plumb_error *err);
};

struct graph_profile {
    struct air_rules rules;
    enum plumb_relative_rule relative; /* PLUMB_REL_PLAIN: as the standard says */
    bool real_parts;                   /* are all that is compared of complex numbers */
    /* Drops metrics (NaN) that a pair has not, or the pair itself: true. shown has the statistics
     * of both sides; same_count says whether they have as many elements, count is the target's.
     * NULL: shapes and kinds of both sides have to fit. */
    bool (*settle)(double metric[AIR_METRICS], const struct air_shown shown[2], bool same_count,
                   uint64_t count);
};

#endif
