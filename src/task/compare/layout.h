/* The columns of a comparison, and where each gets its cells from. */
#ifndef COMPARE_LAYOUT_H
#define COMPARE_LAYOUT_H

#include "base/arena.h"
#include "plumb/compare.h"

enum source {
    FROM_INDEX,
    FROM_STATUS,     /* "Fail" or nothing */
    FROM_RESULT,     /* PASS or FAIL */
    FROM_REACHED,    /* Yes or No */
    FROM_NAME,       /* the golden name; the target's when there is none */
    FROM_NAMES,      /* [target, golden] */
    FROM_STACK,      /* on the first row of a call, where one was recorded; else N/A */
    FROM_GRAD,       /* are the requires_grad flags equal? */
    FROM_REASON,     /* the rule, or what was wrong */
    FROM_METRIC,     /* a named metric */
    FROM_CRC,        /* of side `detail` */
    FROM_HISTOGRAM,  /* number `detail`: absolute, relative, ULP */
    FROM_DIFFERENCE, /* of statistic `detail` */
    FROM_RELATIVE,   /* the same, relative, in per cent */
    FROM_CHECKSUM,   /* of side `detail` */
    FROM_ESTIMATE,   /* by sketches; `detail` is of enum estimate */
    FROM_STEP,
    FROM_RANK,
    FROM_DTYPES,
    FROM_SHAPES,
    FROM_MATCH,
    FROM_MODULE, /* that the call was made in */
    FROM_PATH,   /* of side `detail` */
    FROM_WORD,   /* of the second opinion */
    FROM_WHY,    /* of it */
    FROM_JUDGE,  /* its version and options */
    FROM_TOKEN,  /* graph dumps: which execution */
    FROM_PLACE,  /* graph dumps: "input 0" or "output 1" */
};

enum estimate { ESTIMATE_DISTANCE, ESTIMATE_ERROR, ESTIMATE_SCALE, ESTIMATE_WHERE };

struct field {
    enum source source;
    unsigned detail; /* FROM_METRIC: its place among the row's values */
};

enum { MAX_FIELDS = 128 };

struct layout {
    struct plumb_column columns[MAX_FIELDS];
    struct field fields[MAX_FIELDS];
    size_t count;
    const struct plumb_metric_name *metrics[MAX_FIELDS]; /* what a row's values are */
    size_t metric_count;
    unsigned groups; /* what all of it needs */
    bool whole;      /* someone asked for more columns, and misses each that is not there */
};

/* What the columns between the names and the verdict are about. Sketches: with statistics. */
enum layout_kind { LAYOUT_TENSORS, LAYOUT_STATISTICS, LAYOUT_CHECKSUMS, LAYOUT_SKETCHES };

/* Puts Token and In/Out behind Data Name: what the rows of a graph dump are told apart by. */
void layout_add_places(struct layout *layout);

/* For each column how well the others make up for it where room is scarce, as in struct
 * plumb_comparison. malloc; NULL when out of memory. */
unsigned char *layout_spare(const struct layout *layout, enum plumb_deciding verdict);

/* Columns for the options; `columns` is not AUTO; ranks: the rows are of several; modules:
 * who called is known, and asked for. PLUMB_E_ARG names
 * an unknown metric and its nearest relatives. */
enum plumb_code layout_init(struct layout *layout, enum plumb_columns columns,
                            enum layout_kind kind, bool ranks, bool modules,
                            const struct plumb_compare_options *options, struct plumb_error *err);

#endif
