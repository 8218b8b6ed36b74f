/* The parts of a comparison, between its files. */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include "compare/layout.h"

/* What became of one pair. */
struct row {
    bool compared;
    bool integers; /* both sides: they have no ULPs */
    struct plumb_verdict verdict;
    double distance; /* relative Euclidean: which row is worst */
    double max_rel;  /* for jumps */
    uint32_t crc[2];
    char *histogram[3]; /* malloc, or NULL */
    char *problem;      /* malloc: why it was not compared, or NULL */
};

struct comparison {
    const struct plumb_run *run[2]; /* target, golden */
    const struct plumb_compare_options *options;
    struct plumb_matching matching;
    struct plumb_standard *standard;
    struct plumb_metric_spec spec;
    struct layout layout;
    struct row *rows; /* one a pair */
    double *values;   /* layout.metric_count a pair */
};

/* Marks rows whose operator made errors grow by more than the standard allows. */
enum plumb_code compare_jumps(struct comparison *comparison, struct plumb_error *err);

/* The table, from finished rows. */
enum plumb_code compare_table(struct plumb_table **table, const struct comparison *comparison,
                              struct plumb_error *err);

/* Counts and the closing line, from finished rows. */
enum plumb_code compare_closing(struct plumb_comparison *out, const struct comparison *comparison,
                                struct plumb_error *err);

/* The record of a side of a pair, or NULL. */
const struct plumb_record *compare_record(const struct comparison *comparison, size_t pair,
                                          int side);

/* The name to show for a pair. */
const char *compare_name(const struct comparison *comparison, size_t pair);

/* What decided a pair: the rule, or why there was nothing to judge. Uses text where it has to. */
const char *compare_reason(const struct comparison *comparison, size_t pair, char *text,
                           size_t size);

#endif
