/* One output of the device under test against the same output of the other device. */
#ifndef VERDICT_PRECISION_H
#define VERDICT_PRECISION_H

#include "base/buf.h"
#include "base/csv.h"
#include "verdict/ladder_limits.h"
#include "verdict/precision_columns.h"

enum verdict { VERDICT_NONE, VERDICT_SKIP, VERDICT_PASS, VERDICT_WARNING, VERDICT_ERROR };

const char *precision_verdict_text(enum verdict verdict); /* "" for VERDICT_NONE */

/* What a cell says. */
enum value_kind {
    VALUE_BLANK,   /* nothing there */
    VALUE_MISSING, /* what pandas takes for "not available"; counts as NaN */
    VALUE_NUMBER,
    VALUE_TEXT /* something else */
};

struct value {
    enum value_kind kind;
    double number; /* NaN unless VALUE_NUMBER */
    bool typed;    /* its column was read as one of numbers, so that it has no text any more */
    bool whole;    /* and as one of integers */
};

/* A pair of rows, as they were read. */
struct metrics {
    struct value a[COLUMN_COUNT], b[COLUMN_COUNT]; /* the device under test, the other device */
    const struct csv_cell *cells, *other_cells;    /* COLUMN_COUNT each */
    bool own_dialect; /* a's file has the titles of the profile that judges */
    bool no_dtype;    /* a's cell of that name counts as missing */
};

enum field_kind { FIELD_EMPTY, FIELD_NUMBER, FIELD_TEXT };

struct field {
    enum field_kind kind;
    double number;
    const char *text; /* not ended by a NUL */
    size_t length;
};

/* How an API is judged: looked up once for each (API, type). */
struct route {
    enum plumb_dtype dtype; /* PLUMB_DTYPE_COUNT: no tensor */
    enum check_standard standard;
    const struct standard_set *rules;
    const struct standard_level *level;
    const struct standard_limits *limits;
};

/* The route of an API; api and dtype end with a NUL. */
struct route precision_route(const struct standard_set *rules, const char *api, const char *dtype,
                             bool gradient);

struct judged {
    struct field fields[FIELD_COUNT]; /* name, result, standard and message are not among them */
    enum verdict verdict;
    int standard; /* enum check_standard, or -1: none was applied */
    bool failed;  /* the row could not be evaluated */
    struct buf *message;
};

/* Judges a row by the profile of its route. The caller clears judged and sets its message, which is
 * appended to. Texts of fields live as long as the cells. */
void precision_judge(const struct metrics *metrics, const struct route *route,
                     struct judged *judged);

bool precision_is_blank(struct csv_cell cell); /* absent, empty or white space */
bool precision_is_text(struct csv_cell cell, const char *text);

#endif
