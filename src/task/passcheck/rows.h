/* The rows of a check: one for each pair of tensors that was compared. */
#ifndef PASSCHECK_ROWS_H
#define PASSCHECK_ROWS_H

#include "base/arena.h"
#include "plumb/passcheck.h"
#include "verdict/same.h"

struct passcheck_row {
    unsigned iteration;
    enum plumb_passcheck_kind kind;
    const char *name;
    const char *dtype, *shape;    /* "float32", or "float32 / float16" where the sides differ */
    enum plumb_severity severity; /* suspicious: NaN on both sides, which is equal here */
    const char *reason;
    double *values;  /* one for each name of plumb_metric_names; NULL: nothing to measure */
    const char *why; /* of the opinion; NULL: there is none */
    enum plumb_word word;
    bool allowed; /* cheaper arithmetic that is meant */
};

struct plumb_passcheck_rows {
    struct arena arena;
    struct passcheck_row *row;
    size_t n, room;
    struct same_rule rule;
    enum plumb_deciding verdict;
};

/* Adds a row; NULL stands for what a side does not have. False when out of memory. */
bool passcheck_add_row(struct plumb_passcheck_rows *rows, unsigned iteration,
                       enum plumb_passcheck_kind kind, const char *name,
                       const struct plumb_arg *before, const struct plumb_arg *after);

/* What a row means to those who decide. */
enum plumb_severity passcheck_row_severity(const struct plumb_passcheck_rows *rows,
                                           const struct passcheck_row *row);

/* Counts the rows and writes the closing lines; notes: more of them, or "". */
enum plumb_code passcheck_close(struct plumb_passcheck *check,
                                const struct plumb_passcheck_options *options, const char *notes,
                                struct plumb_error *err);

/* "parameter", "node", "output", "gradient", "parameter after step". */
const char *passcheck_kind_name(enum plumb_passcheck_kind kind);

#endif
