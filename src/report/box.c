/* The table as boxed text for a terminal. */
#include "report/utf8.h"
#include "report/writer.h"

#include <stdlib.h>
#include <strings.h>

enum { USUAL_CUT = 57, NARROWEST_CUT = 20, ELLIPSIS = 3 };

static const char *const red_bold = "\x1b[1;31m";
static const char *const yellow = "\x1b[33m";
static const char *const green = "\x1b[32m";
static const char *const plain = "\x1b[0m";

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t measure(const struct plumb_table *table, size_t column)
{
    const struct plumb_column *about = plumb_table_column(table, column);
    size_t rows = plumb_table_rows(table);
    size_t width = utf8_text_width(about->title);
    for (size_t row = 0; row < rows; row++) {
        char number[NUMBER_BYTES];
        const char *text = cell_shown(plumb_table_cell(table, row, column), about, number);
        width = larger(width, utf8_text_width(text));
    }
    return width;
}

/* Narrows the widest of the elastic columns, one step at a time, until the table fits or nothing
 * more can give. */
static void squeeze(const struct plumb_table *table, size_t *widths, size_t target)
{
    size_t columns = plumb_table_columns(table), total = 1;
    for (size_t i = 0; i < columns; i++)
        total += widths[i] + 3;
    while (total > target) {
        size_t widest = columns;
        for (size_t i = 0; i < columns; i++) {
            const struct plumb_column *about = plumb_table_column(table, i);
            size_t least = larger(NARROWEST_CUT, utf8_text_width(about->title));
            if (about->elastic && widths[i] > least &&
                (widest == columns || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == columns)
            return;
        widths[widest]--;
        total--;
    }
}

static void write_rule(struct sink *sink, const size_t *widths, size_t columns)
{
    for (size_t i = 0; i < columns; i++) {
        sink_char(sink, '+');
        sink_repeat(sink, '-', widths[i] + 2);
    }
    sink_text(sink, "+\n");
}

/* How much of text fits into width columns: its bytes, and the columns they take. */
static size_t fit(const char *text, size_t width, size_t *taken)
{
    size_t bytes = 0;
    *taken = 0;
    while (text[bytes]) {
        struct utf8_char c = utf8_next(text + bytes);
        int columns = utf8_width(c);
        size_t need = columns < 0 ? 1 : (size_t)columns;
        if (*taken + need > width)
            break;
        *taken += need;
        bytes += c.size;
    }
    return bytes;
}

/* What a terminal might act on, instead of showing it, becomes '?'. */
static void write_safely(struct sink *sink, const char *text, size_t bytes)
{
    for (const char *end = text + bytes; text < end;) {
        struct utf8_char c = utf8_next(text);
        if (utf8_width(c) < 0)
            sink_char(sink, '?');
        else
            sink_write(sink, text, c.size);
        text += c.size;
    }
}

static void write_cell(struct sink *sink, const char *text, size_t width, bool left,
                       const char *colour)
{
    size_t taken;
    size_t bytes = fit(text, width, &taken);
    bool cut = text[bytes] != '\0';
    if (cut) {
        bytes = fit(text, width - ELLIPSIS, &taken);
        for (; bytes && text[bytes - 1] == '.'; bytes--) /* three dots, not four */
            taken--;
        taken += ELLIPSIS;
    }

    sink_text(sink, "| ");
    if (!left)
        sink_repeat(sink, ' ', width - taken);
    if (colour && bytes)
        sink_text(sink, colour);
    write_safely(sink, text, bytes);
    if (cut)
        sink_text(sink, "...");
    if (colour && bytes)
        sink_text(sink, plain);
    if (left)
        sink_repeat(sink, ' ', width - taken);
    sink_char(sink, ' ');
}

static const char *colour_of(enum plumb_severity severity, const char *text)
{
    switch (severity) {
    case PLUMB_FAILED:
        return red_bold;
    case PLUMB_SUSPICIOUS:
        return yellow;
    case PLUMB_NORMAL:
        break;
    }
    return strcasecmp(text, "PASS") == 0 ? green : NULL;
}

enum plumb_code box_write(const struct plumb_table *table, const struct plumb_table_look *look,
                          struct sink *sink)
{
    size_t columns = plumb_table_columns(table), rows = plumb_table_rows(table);
    if (!columns)
        return PLUMB_OK;
    size_t *widths = calloc(columns, sizeof *widths);
    if (!widths)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < columns; i++) {
        widths[i] = measure(table, i);
        if (plumb_table_column(table, i)->elastic && !look->wide && widths[i] > USUAL_CUT)
            widths[i] = larger(USUAL_CUT, utf8_text_width(plumb_table_column(table, i)->title));
    }
    if (look->width && !look->wide)
        squeeze(table, widths, look->width);

    write_rule(sink, widths, columns);
    for (size_t i = 0; i < columns; i++) {
        const struct plumb_column *about = plumb_table_column(table, i);
        write_cell(sink, about->title, widths[i], about->left, NULL);
    }
    sink_text(sink, "|\n");
    write_rule(sink, widths, columns);
    for (size_t row = 0; row < rows; row++) {
        enum plumb_severity severity = plumb_table_severity(table, row);
        for (size_t i = 0; i < columns; i++) {
            const struct plumb_column *about = plumb_table_column(table, i);
            char number[NUMBER_BYTES];
            const char *text = cell_shown(plumb_table_cell(table, row, i), about, number);
            const char *colour = look->colour ? colour_of(severity, text) : NULL;
            write_cell(sink, text, widths[i], about->left, colour);
        }
        sink_text(sink, "|\n");
    }
    write_rule(sink, widths, columns);
    free(widths);
    return PLUMB_OK;
}
