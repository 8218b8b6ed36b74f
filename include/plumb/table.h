/* The one table that all results are put into, and its writers. */
#ifndef PLUMB_TABLE_H
#define PLUMB_TABLE_H

#include "plumb/error.h"
#include "plumb/style.h"
#include "plumb/verdict.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_column {
    const char *title;
    enum plumb_style style;
    bool left;    /* aligned left; numbers and short words are aligned right */
    bool elastic; /* may be cut with "..." to fit a narrow terminal or the usual 57 characters */
};

enum plumb_cell_type { PLUMB_CELL_EMPTY, PLUMB_CELL_TEXT, PLUMB_CELL_INT, PLUMB_CELL_REAL };

struct plumb_cell {
    enum plumb_cell_type type;
    union {
        const char *text; /* belongs to the table */
        int64_t integer;
        double real;
    } as;
};

struct plumb_table;

/* Columns are copied, titles too. NULL when out of memory. */
struct plumb_table *plumb_table_new(const struct plumb_column *columns, size_t count);
void plumb_table_free(struct plumb_table *table);

/* Appends a row of empty cells and makes it the current one; false when out of memory. */
bool plumb_table_add_row(struct plumb_table *table, enum plumb_severity severity);

/* Set a cell of the current row. Text is copied. False when out of memory. */
bool plumb_table_text(struct plumb_table *table, size_t column, const char *text);
void plumb_table_int(struct plumb_table *table, size_t column, int64_t value);
void plumb_table_real(struct plumb_table *table, size_t column, double value);

size_t plumb_table_rows(const struct plumb_table *table);
size_t plumb_table_columns(const struct plumb_table *table);
const struct plumb_column *plumb_table_column(const struct plumb_table *table, size_t column);
const struct plumb_cell *plumb_table_cell(const struct plumb_table *table, size_t row,
                                          size_t column);
enum plumb_severity plumb_table_severity(const struct plumb_table *table, size_t row);
void plumb_table_set_severity(struct plumb_table *table, size_t row, enum plumb_severity severity);

/* Stable sort by a column title (case-insensitive), or its number from 1; a leading '-' sorts
 * descending. Numbers before texts before empty cells; NaN counts as larger than every number.
 * PLUMB_E_ARG names the columns there are when there is no such column. */
enum plumb_code plumb_table_sort(struct plumb_table *table, const char *column,
                                 struct plumb_error *err);

/* Drop rows: those below a severity; those after the first n. */
void plumb_table_keep_severity(struct plumb_table *table, enum plumb_severity at_least);
void plumb_table_limit(struct plumb_table *table, size_t rows);

/* A new table of these rows and columns, in this order. NULL when out of memory. */
struct plumb_table *plumb_table_pick(const struct plumb_table *table, const size_t *rows,
                                     size_t row_count, const size_t *columns, size_t column_count);

enum plumb_table_format {
    PLUMB_TABLE_BOX,
    PLUMB_TABLE_CSV,
    PLUMB_TABLE_JSON,
    PLUMB_TABLE_MARKDOWN,
    PLUMB_TABLE_XLSX
};

struct plumb_table_look {
    unsigned width; /* columns of the terminal; 0: as wide as it needs */
    bool wide;      /* never cut names */
    bool colour;    /* ANSI colours by severity */
};

/* Writes everything but xlsx to a stream. PLUMB_E_IO when the stream fails. */
enum plumb_code plumb_table_print(const struct plumb_table *table, enum plumb_table_format format,
                                  const struct plumb_table_look *look, FILE *out,
                                  struct plumb_error *err);

/* The format that a file name asks for: .csv .json .md .xlsx .txt; false for any other ending. */
bool plumb_table_format_of(const char *path, enum plumb_table_format *format);

/* Writes a file: complete under a temporary name in the same folder, then renamed over path. */
enum plumb_code plumb_table_save(const struct plumb_table *table, const char *path,
                                 enum plumb_table_format format,
                                 const struct plumb_table_look *look, struct plumb_error *err);

/* Reads a CSV file with a header. A column whose cells are numbers, N/A or empty is one of numbers.
 * All rows are of normal severity. */
enum plumb_code plumb_table_read(struct plumb_table **table, const char *path,
                                 struct plumb_error *err);

/* A table in a workbook of several, under a name that no other sheet there has. */
struct plumb_sheet {
    const char *name;
    const struct plumb_table *table;
};

/* Writes an .xlsx file with a sheet for each table; else the same as plumb_table_save. */
enum plumb_code plumb_workbook_save(const struct plumb_sheet *sheets, size_t count,
                                    const char *path, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
