/* CSV text, row by row. */
#include "base/csv.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16384, FIRST_COLUMNS = 32 };

void csv_open(struct csv *csv, const void *text, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf";
    *csv = (struct csv){.line = 1, .row_line = 1};
    if (!size)
        return;
    csv->end = (const char *)text + size;
    csv->at = csv->start = (const char *)text + (size >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0);
}

void csv_close(struct csv *csv)
{
    free(csv->cells);
    buf_free(&csv->quoted);
    *csv = (struct csv){0};
}

bool csv_is_kept(const struct csv *csv, struct csv_cell cell)
{
    return cell.text >= csv->start && cell.text <= csv->end;
}

static enum plumb_code make_room(struct csv *csv, struct plumb_error *err)
{
    if (csv->count < csv->capacity)
        return PLUMB_OK;
    if (csv->count == MAX_COLUMNS)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %llu: more than %d columns",
                          (unsigned long long)csv->row_line, MAX_COLUMNS);
    size_t capacity = csv->capacity ? csv->capacity * 2 : FIRST_COLUMNS;
    struct csv_cell *cells = realloc(csv->cells, capacity * sizeof *cells);
    if (!cells)
        return plumb_no_memory(err);
    csv->cells = cells;
    csv->capacity = capacity;
    return PLUMB_OK;
}

static struct csv_cell read_plain(struct csv *csv)
{
    const char *start = csv->at;
    while (csv->at < csv->end && *csv->at != ',' && *csv->at != '\n' && *csv->at != '\r')
        csv->at++;
    return (struct csv_cell){start, (size_t)(csv->at - start)};
}

/* A cell in quotes. Where it is in the input as it is meant it stays there; else it is put together
 * in `quoted`, which may still move: its text is then NULL until the row is over. */
static enum plumb_code read_quoted(struct csv *csv, struct csv_cell *cell, struct plumb_error *err)
{
    uint64_t line = csv->line;
    size_t begin = csv->quoted.size;
    const char *part = ++csv->at;
    for (;;) {
        const char *quote = memchr(csv->at, '"', (size_t)(csv->end - csv->at));
        if (!quote)
            return plumb_fail(err, PLUMB_E_FORMAT, "line %llu: a quote is not closed",
                              (unsigned long long)line);
        for (const char *c = csv->at; c < quote; c++)
            csv->line += *c == '\n';
        csv->at = quote + 1;
        if (csv->at == csv->end || *csv->at != '"') {
            struct csv_cell tail = read_plain(csv); /* "a"b is ab, as most programs read it */
            if (!tail.length && csv->quoted.size == begin) {
                *cell = (struct csv_cell){part, (size_t)(quote - part)};
                return PLUMB_OK;
            }
            buf_append(&csv->quoted, part, (size_t)(quote - part));
            buf_append(&csv->quoted, tail.text, tail.length);
            break;
        }
        csv->at++;
        buf_append(&csv->quoted, part, (size_t)(quote + 1 - part)); /* one of the two quotes */
        part = csv->at;
    }
    *cell = (struct csv_cell){NULL, csv->quoted.size - begin};
    return csv->quoted.failed ? plumb_no_memory(err) : PLUMB_OK;
}

static void end_line(struct csv *csv)
{
    if (csv->at < csv->end && *csv->at == '\r')
        csv->at++;
    if (csv->at < csv->end && *csv->at == '\n')
        csv->at++;
    csv->line++;
}

enum plumb_code csv_next(struct csv *csv, bool *more, struct plumb_error *err)
{
    csv->count = csv->quoted.size = 0;
    csv->row_line = csv->line;
    *more = csv->at < csv->end;
    if (!*more)
        return PLUMB_OK;
    for (;;) {
        enum plumb_code code = make_room(csv, err);
        if (!code && csv->at < csv->end && *csv->at == '"')
            code = read_quoted(csv, &csv->cells[csv->count], err);
        else if (!code)
            csv->cells[csv->count] = read_plain(csv);
        if (code)
            return code;
        csv->count++;
        if (csv->at == csv->end || *csv->at != ',')
            break;
        csv->at++;
    }
    end_line(csv);
    const char *quoted = csv->quoted.data;
    for (size_t i = 0; i < csv->count && csv->quoted.size; i++) {
        if (!csv->cells[i].text) {
            csv->cells[i].text = quoted;
            quoted += csv->cells[i].length;
        }
    }
    return PLUMB_OK;
}

bool csv_is_number(const char *text)
{
    text += *text == '+' || *text == '-';
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
        text += *text == '+' || *text == '-';
        digits = strspn(text, "0123456789");
        text += digits;
    }
    return digits && !*text;
}

bool csv_is_formula(const char *text)
{
    if (!*text || !strchr("=+-@\t\r", *text))
        return false;
    return text[1] && strcmp(text + 1, "inf") != 0 && strcmp(text + 1, "NaN") != 0 &&
           !csv_is_number(text);
}
