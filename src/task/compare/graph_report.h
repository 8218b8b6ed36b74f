/* Tables and closing lines of TorchAir comparisons. */
#ifndef COMPARE_GRAPH_REPORT_H
#define COMPARE_GRAPH_REPORT_H

#include "task/compare/graph_measure.h"

struct report {
    const struct measurement *measurement;
    int64_t rank;
    const char *roots[2]; /* the folders that names are relative to: target, golden */
    const char *notes;    /* lines before the closing one, or "" */
};

/* Fills out: table, counts, closing; *alone: how many rows have no counterpart. On failure there is
 * nothing in it. */
enum plumb_code report_make(struct plumb_comparison *out, size_t *alone,
                            const struct report *report, struct plumb_error *err);

#endif
