/* RFC 4180 with LF, UTF-8, quotes only where needed, and all digits of every number. What
 * a terminal might obey is replaced. */
#include "base/csv.h"
#include "base/utf8.h"
#include "report/writer.h"

void csv_write_text(struct sink *sink, const char *text)
{
    bool formula = csv_is_formula(text);
    bool quote = strpbrk(text, ",\"\r\n") != NULL;

    if (quote)
        sink_char(sink, '"');
    if (formula)
        sink_char(sink, '\'');
    for (struct utf8_char c; *text; text += c.size) {
        size_t plain = 0;
        while (text[plain] >= 0x20 && text[plain] < 0x7f && text[plain] != '"')
            plain++;
        sink_write(sink, text, plain);
        text += plain;
        if (!*text)
            break;
        c = utf8_next(text);
        if (*text == '"')
            sink_text(sink, "\"\"");
        else if (utf8_width(c) < 0 && *text != '\n' && *text != '\t')
            sink_text(sink, UTF8_REPLACEMENT);
        else
            sink_write(sink, text, c.size);
    }
    if (quote)
        sink_char(sink, '"');
}

enum plumb_code csv_write(const struct plumb_table *table, const struct plumb_table_look *look,
                          struct sink *sink)
{
    (void)look;
    size_t columns = plumb_table_columns(table), rows = plumb_table_rows(table);
    for (size_t i = 0; i < columns; i++) {
        if (i)
            sink_char(sink, ',');
        csv_write_text(sink, plumb_table_column(table, i)->title);
    }
    sink_char(sink, '\n');

    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < columns; i++) {
            const struct plumb_cell *cell = plumb_table_cell(table, row, i);
            char number[NUMBER_BYTES];
            if (i)
                sink_char(sink, ',');
            if (cell->type == PLUMB_CELL_TEXT)
                csv_write_text(sink, cell->as.text);
            else
                sink_text(sink, cell_exact(cell, plumb_table_column(table, i), number));
            /* A line with nothing on it would not be read as a row. */
            if (columns == 1 && (cell->type == PLUMB_CELL_EMPTY ||
                                 (cell->type == PLUMB_CELL_TEXT && !*cell->as.text)))
                sink_text(sink, "\"\"");
        }
        sink_char(sink, '\n');
    }
    return PLUMB_OK;
}
