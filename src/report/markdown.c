/* A GitHub table. Texts are escaped such that they show as they are and nothing else. */
#include "base/utf8.h"
#include "report/writer.h"

#include <ctype.h>

static bool needs_escape(const char *start, const char *at)
{
    if (strchr("\\|`*<&~$", *at))
        return true;
    if (*at == '(') /* of a link */
        return at > start && at[-1] == ']';
    /* Within a word, as in forward_input, an underscore means nothing. */
    return *at == '_' &&
           (at == start || !isalnum((unsigned char)at[-1]) || !isalnum((unsigned char)at[1]));
}

static void write_text(struct sink *sink, const char *text)
{
    const char *start = text;
    for (struct utf8_char c; *text; text += c.size) {
        c = utf8_next(text);
        if (utf8_width(c) < 0) {
            sink_char(sink, *text == '\n' || *text == '\t' ? ' ' : '?');
            continue;
        }
        if (c.size == 1 && needs_escape(start, text))
            sink_char(sink, '\\');
        sink_write(sink, text, c.size);
    }
}

static bool begin(const struct plumb_table *table, struct sink *sink)
{
    size_t columns = plumb_table_columns(table);
    for (size_t i = 0; i < columns; i++) {
        sink_text(sink, i ? " | " : "| ");
        write_text(sink, plumb_table_column(table, i)->title);
    }
    sink_text(sink, " |\n|");
    for (size_t i = 0; i < columns; i++)
        sink_text(sink, plumb_table_column(table, i)->left ? " :--- |" : " ---: |");
    sink_char(sink, '\n');
    return true;
}

static bool write_rows(const struct plumb_table *table, size_t before, struct sink *sink)
{
    size_t columns = plumb_table_columns(table), rows = plumb_table_rows(table);
    (void)before;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < columns; i++) {
            char number[NUMBER_BYTES];
            sink_text(sink, i ? " | " : "| ");
            write_text(sink, cell_shown(plumb_table_cell(table, row, i),
                                        plumb_table_column(table, i), number));
        }
        sink_text(sink, " |\n");
    }
    return true;
}

const struct row_writer markdown_rows = {begin, write_rows, ""};
