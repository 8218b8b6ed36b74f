/* Rows of a table that comes in parts. */
#include "cli/rows.h"

bool rows_begin(struct rows *rows, const char *path, bool quiet, const struct cli_view *view)
{
    *rows = (struct rows){.parts = {.path = path}, .quiet = quiet && !path};
    if (view->sort || view->limit != ARGS_UNSET)
        return false;
    if (rows->quiet)
        return true;
    if (!path && view->format == CLI_JUNIT)
        return false;
    rows->parts.format = (enum plumb_table_format)view->format;
    return (!path || plumb_table_format_of(path, &rows->parts.format)) &&
           table_parts_suit(&rows->parts);
}

enum plumb_code rows_add(struct rows *rows, const struct plumb_table *table,
                         struct plumb_error *err)
{
    if (!rows->quiet)
        return table_parts_add(&rows->parts, table, err);
    rows->parts.rows += plumb_table_rows(table);
    return PLUMB_OK;
}

enum plumb_code rows_end(struct rows *rows, bool keep, struct plumb_error *err)
{
    bool lost = false;
    const enum plumb_code code = table_parts_end(&rows->parts, keep, stdout, &lost, err);
    return code && lost && cli_reader_has_gone() ? PLUMB_OK : code;
}
