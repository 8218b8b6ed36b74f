/* The rows of a check: one for each pair of tensors that was compared. */
#ifndef PASSCHECK_ROWS_H
#define PASSCHECK_ROWS_H

#include "base/arena.h"
#include "plumb/passcheck.h"
#include "plumb/verdict.h"

struct numeric_row {
    unsigned iteration;
    enum plumb_passcheck_kind kind;
    const char *name;
    const char *dtype, *shape;    /* "float32", or "float32 / float16" where the sides differ */
    enum plumb_severity severity; /* suspicious: NaN on both sides, which is equal here */
    const char *reason;
    double *values; /* one for each name of plumb_metric_names; NULL: nothing to measure */
};

struct plumb_passcheck_verdict {
    struct arena arena;
    struct numeric_row *rows;
    size_t n, room;
    struct plumb_standard *standard;
    struct plumb_metric_spec spec;
};

/* Adds a row; NULL stands for what a side does not have. False when out of memory. */
bool numeric_add(struct plumb_passcheck_verdict *numeric, unsigned iteration,
                 enum plumb_passcheck_kind kind, const char *name, const struct plumb_arg *before,
                 const struct plumb_arg *after);

/* "parameter", "node", "output", "gradient", "parameter after step". */
const char *numeric_kind_name(enum plumb_passcheck_kind kind);

#endif
