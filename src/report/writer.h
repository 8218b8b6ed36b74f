/* The writers of a table, one a format, and what they share. */
#ifndef REPORT_WRITER_H
#define REPORT_WRITER_H

#include "base/number.h"
#include "plumb/table.h"
#include "report/sink.h"

/* Writes the whole table; failures of the stream stay in the sink. NOMEM is the only error. */
enum plumb_code box_write(const struct plumb_table *table, const struct plumb_table_look *look,
                          struct sink *sink);

/* The writer of a format whose rows do not depend on each other: tables may come in parts. Failures
 * of the stream stay in the sink; false when out of memory. */
struct row_writer {
    bool (*begin)(const struct plumb_table *table, struct sink *sink);
    /* before: how many rows were written already. */
    bool (*rows)(const struct plumb_table *table, size_t before, struct sink *sink);
    const char *end;
};

extern const struct row_writer csv_rows, json_rows, markdown_rows;

/* One cell of a CSV file: quoted where needed, made harmless where a spreadsheet would run it. */
void csv_write_text(struct sink *sink, const char *text);

/* Writes a workbook to path; temporary files are made in PATH.parts. */
enum plumb_code xlsx_write(const struct plumb_sheet *sheets, size_t count, const char *path,
                           struct plumb_error *err);

/* A cell as people or programs see it: its own text, or a number put into scratch; "" when
 * empty. */
const char *cell_shown(const struct plumb_cell *cell, const struct plumb_column *column,
                       char scratch[NUMBER_BYTES]);
const char *cell_exact(const struct plumb_cell *cell, const struct plumb_column *column,
                       char scratch[NUMBER_BYTES]);

#endif
