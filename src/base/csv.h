/* CSV text, row by row: RFC 4180, with or without a byte order mark, CR or LF or both. */
#ifndef BASE_CSV_H
#define BASE_CSV_H

#include "base/buf.h"
#include "plumb/error.h"

struct csv_cell {
    const char *text; /* not ended by a NUL; in the input itself, or gone with the next row */
    size_t length;
};

struct csv {
    const char *start, *at, *end; /* start: the input without its byte order mark */
    uint64_t line;                /* of what comes next, from 1 */
    uint64_t row_line;            /* where the current row begins */
    struct csv_cell *cells;       /* of the current row */
    size_t count, capacity;
    struct buf quoted; /* cells that are not in the input as they are meant */
};

/* Text is borrowed. Nothing is allocated yet. */
void csv_open(struct csv *csv, const void *text, size_t size);
void csv_close(struct csv *csv);

/* Reads a row into cells; *more is false at the end of the text. An empty line is a row of one
 * empty cell. PLUMB_E_FORMAT, naming the line, for a quote that is not closed or for more columns
 * than any spreadsheet has. */
enum plumb_code csv_next(struct csv *csv, bool *more, struct plumb_error *err);

/* Whether a text is a finite number as Python or C would print one. */
bool csv_is_number(const char *text);

/* Spreadsheets run such a cell as a formula; a single quote before it makes it text. Names in dumps
 * are not ours. */
bool csv_is_formula(const char *text);

/* True for a cell that lies in the input and so outlives its row. */
bool csv_is_kept(const struct csv *csv, struct csv_cell cell);

#endif
