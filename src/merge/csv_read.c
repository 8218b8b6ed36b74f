#include "base/buf.h"
#include "merge/rows.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16384 };

struct csv {
    const char *at, *end;
    uint64_t line;
    struct row_cell *cells;
    size_t *starts;
    size_t count;
    struct buf text; /* of the row's cells, each ended by a NUL */
};

bool rows_is_number(const char *text)
{
    text += *text == '-' || *text == '+';
    size_t digits = strspn(text, "0123456789");
    text += digits;
    if (*text == '.') {
        size_t decimals = strspn(text + 1, "0123456789");
        text += 1 + decimals;
        digits += decimals;
    }
    if (!digits)
        return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        digits = strspn(text, "0123456789");
        text += digits;
    }
    return digits && !*text;
}

/* A cell in quotes, up to behind the quote that ends it. False when there is none. */
static bool read_quoted(struct csv *csv)
{
    csv->at++;
    while (csv->at < csv->end) {
        const char *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));
        if (!quote)
            return false;
        for (const char *c = csv->at; c < quote; c++)
            csv->line += *c == '\n';
        buf_append(&csv->text, csv->at, (size_t)(quote - csv->at));
        csv->at = quote + 1;
        if (csv->at == csv->end || *csv->at != '"')
            return true;
        buf_append(&csv->text, "\"", 1);
        csv->at++;
    }
    return false;
}

static void read_plain(struct csv *csv)
{
    const char *start = csv->at;
    while (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n' && *csv->at != '\r')
        csv->at++;
    buf_append(&csv->text, start, (size_t)(csv->at - start));
}

static enum plumb_code read_cell(struct csv *csv, struct plumb_error *err)
{
    if (csv->count == MAX_COLUMNS)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %llu: more than %d columns",
                          (unsigned long long)csv->line, MAX_COLUMNS);
    unsigned long long line = csv->line;
    csv->starts[csv->count++] = csv->text.size;
    if (csv->at < csv->end && *csv->at == '"' && !read_quoted(csv))
        return plumb_fail(err, PLUMB_E_FORMAT, "line %llu: a quote is not closed", line);
    read_plain(csv); /* what is left of it, quoted or not */
    buf_append(&csv->text, "", 1);
    if (csv->text.failed)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    return PLUMB_OK;
}

static void end_line(struct csv *csv)
{
    if (csv->at < csv->end && *csv->at == '\r')
        csv->at++;
    if (csv->at < csv->end && *csv->at == '\n')
        csv->at++;
    csv->line++;
}

static enum plumb_code read_row(struct csv *csv, const struct row_reader *reader,
                                struct plumb_error *err)
{
    enum plumb_code code;
    csv->count = csv->text.size = 0;
    while (!(code = read_cell(csv, err)) && csv->at < csv->end && *csv->at == ',')
        csv->at++;
    if (code)
        return code;
    end_line(csv);
    bool empty = true;
    for (size_t i = 0; i < csv->count; i++) {
        const char *text = csv->text.data + csv->starts[i];
        text += strspn(text, " "); /* " inf" */
        csv->cells[i] =
            (struct row_cell){.text = *text ? text : NULL, .number = rows_is_number(text)};
        empty = empty && !*text;
    }
    return empty ? PLUMB_OK : reader->row(reader->context, 0, csv->cells, csv->count, err);
}

enum plumb_code csv_read(const struct plumb_file *file, const struct row_reader *reader,
                         struct plumb_error *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    struct csv csv = {.line = 1};
    if (!file->size)
        return PLUMB_OK;
    csv.at = (const char *)file->data;
    csv.end = csv.at + file->size;
    if (file->size >= 3 && memcmp(csv.at, mark, 3) == 0)
        csv.at += 3;
    csv.cells = calloc(MAX_COLUMNS, sizeof *csv.cells);
    csv.starts = calloc(MAX_COLUMNS, sizeof *csv.starts);
    enum plumb_code code = PLUMB_OK;
    if (!csv.cells || !csv.starts) {
        code = plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
        goto out;
    }
    while (!code && csv.at < csv.end)
        code = read_row(&csv, reader, err);
out:
    buf_free(&csv.text);
    free(csv.cells);
    free(csv.starts);
    return code;
}
