/* Where the rows of a table go that comes in parts: a file, stdout, or nowhere. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "cli/cli.h"
#include "report/parts.h"

struct rows {
    struct table_parts parts;
    bool quiet; /* only their number counts */
};

/* Whether rows can go there one by one. path NULL: stdout. What is sorted or cut needs all of them,
 * and so do boxes and workbooks. */
bool rows_begin(struct rows *rows, const char *path, bool quiet, const struct cli_view *view);

/* Adds those of a table; its columns are the same every time. */
enum plumb_code rows_add(struct rows *rows, const struct plumb_table *table,
                         struct plumb_error *err);

/* keep: they are there now, on stdout as well; else they were never there. */
enum plumb_code rows_end(struct rows *rows, bool keep, struct plumb_error *err);

#endif
