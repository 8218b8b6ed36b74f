/* {"columns": [title, ...], "rows": [{title: value, ..., "severity": "normal"}, ...]} */
#include "base/arena.h"
#include "base/json_put.h"
#include "report/writer.h"

#include <math.h>

static void write_string(struct sink *sink, struct buf *scratch, const char *text)
{
    scratch->size = 0;
    json_put_string(scratch, text);
    if (!scratch->failed)
        sink_write(sink, scratch->data, scratch->size);
}

static void write_value(struct sink *sink, struct buf *scratch, const struct plumb_cell *cell,
                        const struct plumb_column *column)
{
    char number[NUMBER_BYTES];
    if (cell->type == PLUMB_CELL_EMPTY)
        sink_text(sink, "null");
    else if (cell->type == PLUMB_CELL_TEXT ||
             (cell->type == PLUMB_CELL_REAL && !isfinite(cell->as.real)))
        write_string(sink, scratch,
                     cell_exact(cell, column, number)); /* JSON has no NaN and no infinity */
    else
        sink_text(sink, cell_exact(cell, column, number));
}

static bool is_taken(const char *const *keys, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return strcmp(key, "severity") == 0;
}

/* A key a column: its title, numbered where a title repeats, since the second value of a key would
 * hide the first. NULL when out of memory. */
static const char **make_keys(struct arena *arena, const struct plumb_table *table)
{
    size_t columns = plumb_table_columns(table);
    const char **keys = arena_array(arena, columns, sizeof *keys);
    for (size_t i = 0; keys && i < columns; i++) {
        const char *title = plumb_table_column(table, i)->title;
        keys[i] = title;
        for (unsigned n = 2; keys[i] && is_taken(keys, i, keys[i]); n++)
            keys[i] = arena_printf(arena, "%s %u", title, n);
        if (!keys[i])
            return NULL;
    }
    return keys;
}

static bool begin(const struct plumb_table *table, struct sink *sink)
{
    struct arena arena = {0};
    struct buf scratch = {0};
    const char **keys = make_keys(&arena, table);
    sink_text(sink, "{\"columns\": [");
    for (size_t i = 0; keys && i < plumb_table_columns(table); i++) {
        if (i)
            sink_text(sink, ", ");
        write_string(sink, &scratch, keys[i]);
    }
    sink_text(sink, "],\n \"rows\": [");
    const bool fine = keys && !scratch.failed;
    arena_free(&arena);
    buf_free(&scratch);
    return fine;
}

static bool write_rows(const struct plumb_table *table, size_t before, struct sink *sink)
{
    static const char *const severities[] = {"normal", "suspicious", "failed"};
    struct arena arena = {0};
    struct buf scratch = {0};
    size_t columns = plumb_table_columns(table), rows = plumb_table_rows(table);
    const char **keys = make_keys(&arena, table);
    for (size_t row = 0; keys && row < rows; row++) {
        sink_text(sink, before + row ? ",\n  {" : "\n  {");
        for (size_t i = 0; i < columns; i++) {
            write_string(sink, &scratch, keys[i]);
            sink_text(sink, ": ");
            write_value(sink, &scratch, plumb_table_cell(table, row, i),
                        plumb_table_column(table, i));
            sink_text(sink, ", ");
        }
        sink_text(sink, "\"severity\": \"");
        sink_text(sink, severities[plumb_table_severity(table, row)]);
        sink_text(sink, "\"}");
    }
    const bool fine = keys && !scratch.failed;
    arena_free(&arena);
    buf_free(&scratch);
    return fine;
}

const struct row_writer json_rows = {begin, write_rows, "]}\n"};
