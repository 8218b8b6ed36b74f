/* RFC 4180 with LF, UTF-8, quotes only where needed, and all digits of every number. What
 * a terminal might obey is replaced. */
#include "base/csv.h"
#include "base/utf8.h"
#include "report/writer.h"

static const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;

/* Marks bytes that are this one; above a marked byte, others too. */
static uint64_t mark(uint64_t word, char c)
{
    const uint64_t other = word ^ ones * (uint8_t)c;
    return (other - ones) & ~other;
}

/* How much of a text is printable ASCII without quotes, nor commas where `commas` end it
 * too. */
static size_t plain_length(const char *text, size_t length, bool commas)
{
    size_t done = 0;
    for (uint64_t word; length - done >= sizeof word; done += sizeof word) {
        memcpy(&word, text + done, sizeof word);
        const uint64_t odd = word | (word - ones * ' ') | mark(word, 0x7f) | mark(word, '"') |
                             (commas ? mark(word, ',') : 0);
        if (odd & tops)
            break;
    }
    for (; done < length; done++)
        if (text[done] < 0x20 || text[done] >= 0x7f || text[done] == '"' ||
            (commas && text[done] == ','))
            break;
    return done;
}

void csv_write_text(struct sink *sink, const char *text)
{
    const char *const end = text + strlen(text);
    const size_t length = (size_t)(end - text);
    const bool formula = csv_is_formula(text);
    if (!formula && plain_length(text, length, true) == length) {
        sink_write(sink, text, length);
        return;
    }
    const bool quote = memchr(text, ',', length) || memchr(text, '"', length) ||
                       memchr(text, '\r', length) || memchr(text, '\n', length);

    if (quote)
        sink_char(sink, '"');
    if (formula)
        sink_char(sink, '\'');
    for (struct utf8_char c; *text; text += c.size) {
        const size_t plain = plain_length(text, (size_t)(end - text), false);
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

static bool begin(const struct plumb_table *table, struct sink *sink)
{
    for (size_t i = 0; i < plumb_table_columns(table); i++) {
        if (i)
            sink_char(sink, ',');
        csv_write_text(sink, plumb_table_column(table, i)->title);
    }
    sink_char(sink, '\n');
    return true;
}

/* Where a text of a column is among what was written. Most are those of the row above, which the
 * table has once (same_above in table.c): they need not be looked at again. */
struct written {
    const char *text;
    uint64_t at;
    size_t size;
};

static void write_or_repeat(struct sink *sink, const char *text, struct written *last)
{
    if (last->text == text && last->at >= sink->passed &&
        last->size <= sizeof sink->bytes - sink->used) {
        memcpy(sink->bytes + sink->used, sink->bytes + (last->at - sink->passed), last->size);
        sink->used += last->size;
        return;
    }
    const uint64_t at = sink->passed + sink->used;
    csv_write_text(sink, text);
    *last = (struct written){text, at, (size_t)(sink->passed + sink->used - at)};
}

static bool write_rows(const struct plumb_table *table, size_t before, struct sink *sink)
{
    struct written last[64] = {{0}}; /* further columns are written anew */
    const size_t columns = plumb_table_columns(table), rows = plumb_table_rows(table);
    (void)before;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < columns; i++) {
            const struct plumb_cell *cell = plumb_table_cell(table, row, i);
            char number[NUMBER_BYTES];
            if (i)
                sink_char(sink, ',');
            if (cell->type == PLUMB_CELL_TEXT)
                write_or_repeat(sink, cell->as.text,
                                i < sizeof last / sizeof *last ? &last[i] : &(struct written){0});
            else
                sink_text(sink, cell_exact(cell, plumb_table_column(table, i), number));
            /* A line with nothing on it would not be read as a row. */
            if (columns == 1 && (cell->type == PLUMB_CELL_EMPTY ||
                                 (cell->type == PLUMB_CELL_TEXT && !*cell->as.text)))
                sink_text(sink, "\"\"");
        }
        sink_char(sink, '\n');
    }
    return true;
}

const struct row_writer csv_rows = {begin, write_rows, ""};
