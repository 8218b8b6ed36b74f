/* A table that comes in parts: a file, whole under its name in the end or not there; or a stream
 * that gets all of it in the end or nothing. */
#ifndef REPORT_PARTS_H
#define REPORT_PARTS_H

#include "base/output.h"
#include "plumb/table.h"

#include <stdio.h>

/* All zero, but for where it goes: nothing was added. */
struct table_parts {
    const char *path; /* of the file; NULL: the parts wait in a temporary one, in $TMPDIR or /tmp */
    enum plumb_table_format format;
    struct output out;
    char *final;
    FILE *stream;
    bool open;
    size_t rows; /* that were added */
};

/* Whether it can be written so: CSV, JSON and Markdown, into no device, no pipe and no folder. The
 * others need all rows at once. */
bool table_parts_suit(const struct table_parts *parts);

/* Adds the rows of a table, which has the same columns every time. */
enum plumb_code table_parts_add(struct table_parts *parts, const struct plumb_table *table,
                                struct plumb_error *err);

/* keep: the file gets its name, or what has no path goes to `out`, which is flushed; else it was
 * never there. Releases it in any case. PLUMB_E_IO with *lost set when `out` takes no more. */
enum plumb_code table_parts_end(struct table_parts *parts, bool keep, FILE *out, bool *lost,
                                struct plumb_error *err);

#endif
