/* A CSV result as rows for the merge. */
#include "base/csv.h"
#include "task/ranks/rows.h"

#include <stdlib.h>
#include <string.h>

/* The row as texts that end with a NUL, which the reader's rows are made of. */
struct row {
    struct buf text;
    struct row_cell *cells;
    size_t capacity;
};

static enum plumb_code hand_over(const struct csv *csv, struct row *row,
                                 const struct row_reader *reader, struct plumb_error *err)
{
    if (row->capacity < csv->capacity) {
        struct row_cell *cells = realloc(row->cells, csv->capacity * sizeof *cells);
        if (!cells)
            return plumb_no_memory(err);
        row->cells = cells;
        row->capacity = csv->capacity;
    }
    row->text.size = 0;
    for (size_t i = 0; i < csv->count; i++) {
        buf_append(&row->text, csv->cells[i].text, csv->cells[i].length);
        buf_append(&row->text, "", 1);
    }
    if (row->text.failed)
        return plumb_no_memory(err);
    bool empty = true;
    const char *text = row->text.data;
    for (size_t i = 0; i < csv->count; text += csv->cells[i++].length + 1) {
        const char *inner = text + strspn(text, " "); /* " inf" */
        row->cells[i] =
            (struct row_cell){.text = *inner ? inner : NULL, .number = csv_is_number(inner)};
        empty = empty && !*inner;
    }
    return empty ? PLUMB_OK : reader->row(reader->context, 0, row->cells, csv->count, err);
}

enum plumb_code csv_read(const struct plumb_file *file, const struct row_reader *reader,
                         struct plumb_error *err)
{
    struct csv csv;
    struct row row = {0};
    csv_open(&csv, file->data, (size_t)file->size);
    bool more = true;
    enum plumb_code code = PLUMB_OK;
    while (!code && !(code = csv_next(&csv, &more, err)) && more)
        code = hand_over(&csv, &row, reader, err);
    csv_close(&csv);
    buf_free(&row.text);
    free(row.cells);
    return code;
}
