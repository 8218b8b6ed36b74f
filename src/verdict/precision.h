/* One output of the device under test against the same output of the other device. */
#ifndef VERDICT_PRECISION_H
#define VERDICT_PRECISION_H

#include "task/precision/read.h"

enum verdict { VERDICT_NONE, VERDICT_SKIP, VERDICT_PASS, VERDICT_WARNING, VERDICT_ERROR };

const char *precision_verdict_text(enum verdict verdict); /* "" for VERDICT_NONE */

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
    bool failed;  /* msProbe: the row could not be evaluated */
    struct buf *message;
};

/* Judges a row. The caller clears judged and sets its message, which is appended to. Texts of
 * fields live as long as the rows. Under the documented rules a cell that is no number is an error
 * of the file, as PLUMB_E_FORMAT. */
enum plumb_code precision_judge(const struct details_file *npu, const struct details_cells *a,
                                const struct details_file *gpu, const struct details_cells *b,
                                const struct route *route, struct judged *judged,
                                struct plumb_error *err);

/* msProbe: types that it does not compare. */
bool precision_is_unsupported(struct csv_cell dtype);

#endif
