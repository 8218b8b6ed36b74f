/* Tables in files, read row by row. */
#ifndef RANKS_ROWS_H
#define RANKS_ROWS_H

#include "base/arena.h"
#include "plumb/file.h"

struct row_cell {
    const char *text; /* NULL: empty. Valid until the row is over, unless kept */
    bool number;      /* the file says that it is one, or it looks like one */
    bool kept;        /* the text lives in the reader's arena */
};

struct row_reader {
    struct arena *arena; /* for texts that many cells share */
    /* Called for every row that is not empty; sheet counts from 0. A failure ends the reading. */
    enum plumb_code (*row)(void *context, size_t sheet, const struct row_cell *cells, size_t count,
                           struct plumb_error *err);
    void *context;
};

/* All worksheets of a workbook, in its order. Hostile files are refused: no document types (and so
 * no entities), every part unpacked within limits, no column beyond those that Excel has. */
enum plumb_code xlsx_read(const struct plumb_file *file, const struct row_reader *reader,
                          struct plumb_error *err);

/* RFC 4180, with or without a byte order mark, CR or LF or both. */
enum plumb_code csv_read(const struct plumb_file *file, const struct row_reader *reader,
                         struct plumb_error *err);

#endif
