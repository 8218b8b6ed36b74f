/* The table as boxed text for a terminal. */
#include "base/utf8.h"
#include "report/writer.h"

#include <stdlib.h>
#include <string.h>
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

/* Columns that the first bytes of text take. */
static size_t width_of(const char *text, size_t bytes)
{
    size_t total = 0;
    for (const char *end = text + bytes; text < end;) {
        const struct utf8_shown c = utf8_show(text);
        total += c.columns;
        text += c.taken;
    }
    return total;
}

/* How many bytes of a title go on one line of so many columns: whole words, and at least one. */
static size_t line_of(const char *title, size_t width)
{
    size_t end = 0, at = 0;
    while (title[at]) {
        at += strspn(title + at, " ");
        at += strcspn(title + at, " ");
        if (end && width_of(title, at) > width)
            break;
        end = at;
    }
    return end;
}

static size_t widest_word(const char *title)
{
    size_t widest = 0;
    while (*title) {
        size_t bytes = line_of(title, 0);
        widest = larger(widest, width_of(title, bytes));
        title += bytes;
        title += strspn(title, " ");
    }
    return widest;
}

static size_t title_width(const struct plumb_column *about, bool wrap)
{
    return wrap ? widest_word(about->title) : utf8_text_width(about->title);
}

static size_t measure(const struct plumb_table *table, size_t column, bool wrap, bool cut)
{
    const struct plumb_column *about = plumb_table_column(table, column);
    size_t rows = plumb_table_rows(table), width = 0;
    for (size_t row = 0; row < rows; row++) {
        char number[NUMBER_BYTES];
        const char *text = cell_shown(plumb_table_cell(table, row, column), about, number);
        width = larger(width, utf8_text_width(text));
    }
    if (about->elastic && cut && width > USUAL_CUT)
        width = USUAL_CUT;
    return larger(width, title_width(about, wrap));
}

static size_t total_width(const size_t *widths, size_t columns)
{
    size_t total = 1;
    for (size_t i = 0; i < columns; i++)
        total += widths[i] + 3;
    return total;
}

/* Narrows the widest of the elastic columns, one step at a time, until the table fits or nothing
 * more can give. */
static void squeeze(const struct plumb_table *table, size_t *widths, size_t target, bool wrap)
{
    size_t columns = plumb_table_columns(table), total = total_width(widths, columns);
    while (total > target) {
        size_t widest = columns;
        for (size_t i = 0; i < columns; i++) {
            const struct plumb_column *about = plumb_table_column(table, i);
            size_t least = larger(NARROWEST_CUT, title_width(about, wrap));
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

/* Narrow first what may be cut, then the titles, by breaking them into lines. */
static void find_widths(const struct plumb_table *table, const struct plumb_table_look *look,
                        size_t *widths)
{
    size_t columns = plumb_table_columns(table);
    size_t target = look->wide ? 0 : look->width;
    for (int wrap = 0; wrap < 2; wrap++) {
        for (size_t i = 0; i < columns; i++)
            widths[i] = measure(table, i, wrap, !look->wide);
        if (!target)
            return;
        squeeze(table, widths, target, wrap);
        if (total_width(widths, columns) <= target)
            return;
    }
}

/* The columns that stand side by side. */
struct band {
    const size_t *widths; /* of all columns */
    size_t *columns;      /* the numbers of those shown */
    size_t count;
};

static void write_rule(struct sink *sink, const struct band *band)
{
    for (size_t k = 0; k < band->count; k++) {
        size_t i = band->columns[k];
        sink_char(sink, '+');
        sink_repeat(sink, '-', band->widths[i] + 2);
    }
    sink_text(sink, "+\n");
}

/* How much of text fits into width columns: its bytes, and the columns they take. */
static size_t fit(const char *text, size_t width, size_t *taken)
{
    size_t bytes = *taken = utf8_plain(text, width);
    while (text[bytes]) {
        const struct utf8_shown c = utf8_show(text + bytes);
        if (*taken + c.columns > width)
            break;
        *taken += c.columns;
        bytes += c.taken;
    }
    return bytes;
}

/* What a terminal might act on, instead of showing it, becomes '?'. */
static void write_safely(struct sink *sink, const char *text, size_t bytes)
{
    for (const char *end = text + bytes; text < end;) {
        const size_t run = utf8_plain(text, (size_t)(end - text));
        sink_write(sink, text, run);
        text += run;
        if (text == end)
            return;
        const struct utf8_shown c = utf8_show(text);
        sink_write(sink, c.bytes, c.size);
        text += c.taken;
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

static void write_titles(struct sink *sink, const struct plumb_table *table,
                         const struct band *band)
{
    bool more = true;
    for (size_t line = 0; more; line++) {
        more = false;
        for (size_t k = 0; k < band->count; k++) {
            size_t i = band->columns[k];
            const struct plumb_column *about = plumb_table_column(table, i);
            const char *title = about->title;
            size_t width = band->widths[i], bytes = line_of(title, width);
            for (size_t above = 0; above < line; above++) {
                title += bytes;
                title += strspn(title, " ");
                bytes = line_of(title, width);
            }
            size_t gap = width - width_of(title, bytes);
            sink_text(sink, "| ");
            sink_repeat(sink, ' ', about->left ? 0 : gap);
            write_safely(sink, title, bytes);
            sink_repeat(sink, ' ', (about->left ? gap : 0) + 1);
            more = more || title[bytes];
        }
        sink_text(sink, "|\n");
    }
}

static void write_band(struct sink *sink, const struct plumb_table *table, const struct band *band,
                       bool coloured)
{
    size_t rows = plumb_table_rows(table);
    write_rule(sink, band);
    write_titles(sink, table, band);
    write_rule(sink, band);
    for (size_t row = 0; row < rows; row++) {
        enum plumb_severity severity = plumb_table_severity(table, row);
        for (size_t k = 0; k < band->count; k++) {
            size_t i = band->columns[k];
            const struct plumb_column *about = plumb_table_column(table, i);
            char number[NUMBER_BYTES];
            const char *text = cell_shown(plumb_table_cell(table, row, i), about, number);
            const char *colour = coloured ? colour_of(severity, text) : NULL;
            write_cell(sink, text, band->widths[i], about->left, colour);
        }
        sink_text(sink, "|\n");
    }
    write_rule(sink, band);
}

/* Columns up to the first name tell rows apart: they begin every band. None where that leaves too
 * little room for the others. */
static size_t key_columns(const struct plumb_table *table, const size_t *widths, size_t target)
{
    size_t columns = plumb_table_columns(table), key = 0, widest = 0;
    while (key < columns && !plumb_table_column(table, key)->elastic)
        key++;
    if (key == columns)
        return 0;
    key++;
    for (size_t i = key; i < columns; i++)
        widest = larger(widest, widths[i]);
    return total_width(widths, key) + widest + 3 <= target ? key : 0;
}

/* Fills the band with the key and as many columns from first on as fit; returns the next one. */
static size_t fill_band(struct band *band, size_t key, size_t first, size_t columns, size_t target)
{
    size_t total = 1, next = first;
    band->count = 0;
    for (size_t i = 0; i < key; i++) {
        band->columns[band->count++] = i;
        total += band->widths[i] + 3;
    }
    for (; next < columns; next++) {
        total += band->widths[next] + 3;
        if (target && total > target)
            break;
        band->columns[band->count++] = next;
    }
    return next;
}

enum plumb_code box_write(const struct plumb_table *table, const struct plumb_table_look *look,
                          struct sink *sink)
{
    size_t columns = plumb_table_columns(table);
    if (!columns)
        return PLUMB_OK;
    size_t *numbers = calloc(columns, 2 * sizeof *numbers);
    if (!numbers)
        return PLUMB_E_NOMEM;
    size_t *widths = numbers + columns;
    find_widths(table, look, widths);

    /* What is still too wide is shown in bands, one below the other. */
    size_t target = look->wide ? 0 : look->width, key = 0;
    if (target && total_width(widths, columns) > target)
        key = key_columns(table, widths, target);
    struct band band = {.widths = widths, .columns = numbers};
    for (size_t next = key; next < columns;) {
        next = fill_band(&band, key, next, columns, key ? target : 0);
        write_band(sink, table, &band, look->colour);
    }
    free(numbers);
    return PLUMB_OK;
}
