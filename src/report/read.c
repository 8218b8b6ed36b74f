/* Tables from files: CSV, with numbers where a whole column is made of them. */
#include "plumb/table.h"

#include "base/arena.h"
#include "base/csv.h"
#include "base/plain.h"
#include "plumb/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CELL = 1 << 20 };

/* A file in memory: its cells in rows, each with a NUL behind it. */
struct grid {
    struct arena arena;
    const char **cells;
    size_t rows, width, capacity;
};

static bool add_row(struct grid *grid, const struct csv *csv)
{
    if ((grid->rows + 1) * grid->width > grid->capacity) {
        const size_t capacity = 2 * (grid->rows + 1) * grid->width;
        const char **more = realloc(grid->cells, capacity * sizeof *more);
        if (!more)
            return false;
        grid->cells = more;
        grid->capacity = capacity;
    }
    const char **row = grid->cells + grid->rows * grid->width;
    for (size_t k = 0; k < grid->width; k++) {
        row[k] = k < csv->count ? arena_copy(&grid->arena, csv->cells[k].text, csv->cells[k].length)
                                : "";
        if (!row[k])
            return false;
    }
    grid->rows++;
    return true;
}

static enum plumb_code read_rows(struct grid *grid, struct csv *csv, struct plumb_error *err)
{
    bool more = true;
    enum plumb_code code;
    while (!(code = csv_next(csv, &more, err)) && more) {
        if (csv->count == 1 && !csv->cells[0].length)
            continue; /* an empty line */
        if (!grid->width)
            grid->width = csv->count;
        if (csv->count > grid->width)
            return plumb_fail(err, PLUMB_E_FORMAT, "line %llu: %zu cells, but the header has %zu",
                              (unsigned long long)csv->row_line, csv->count, grid->width);
        for (size_t k = 0; k < csv->count; k++)
            if (csv->cells[k].length > MOST_CELL)
                return plumb_fail(err, PLUMB_E_FORMAT, "line %llu: a cell of more than a megabyte",
                                  (unsigned long long)csv->row_line);
        if (!add_row(grid, csv))
            return plumb_no_memory(err);
    }
    if (!code && !grid->rows)
        code = plumb_fail(err, PLUMB_E_FORMAT, "it is empty");
    return code;
}

/* A number as programs write one, NaN and infinities too. */
static bool as_number(const char *text, double *value)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"nan", NAN},        {"NaN", NAN},           {"inf", INFINITY},
                 {"-inf", -INFINITY}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(text, words[k].text) == 0) {
            *value = words[k].value;
            return true;
        }
    if (!csv_is_number(text))
        return false;
    *value = plain_number(text, NULL);
    return true;
}

/* Columns of words keep numbers as texts: "0" may be a rank, and "1.10" a version. */
static bool is_of_numbers(const struct grid *grid, size_t column)
{
    size_t numbers = 0;
    for (size_t row = 1; row < grid->rows; row++) {
        const char *text = grid->cells[row * grid->width + column];
        double value;
        if (as_number(text, &value))
            numbers++;
        else if (*text && strcmp(text, "N/A") != 0 && strcmp(text, " ") != 0)
            return false;
    }
    return numbers > 0;
}

static struct plumb_table *make_table(const struct grid *grid)
{
    struct plumb_column *columns = calloc(grid->width + 1, sizeof *columns);
    for (size_t k = 0; columns && k < grid->width; k++) {
        const bool numbers = is_of_numbers(grid, k);
        columns[k] = (struct plumb_column){.title = grid->cells[k],
                                           .style = numbers ? PLUMB_STYLE_DIGITS : PLUMB_STYLE_TEXT,
                                           .left = !numbers};
    }
    struct plumb_table *table = columns ? plumb_table_new(columns, grid->width) : NULL;
    bool fine = table != NULL;
    for (size_t row = 1; fine && row < grid->rows; row++) {
        fine = plumb_table_add_row(table, PLUMB_NORMAL);
        for (size_t k = 0; fine && k < grid->width; k++) {
            const char *text = grid->cells[row * grid->width + k];
            double value;
            if (columns[k].style == PLUMB_STYLE_DIGITS && as_number(text, &value))
                plumb_table_real(table, k, value);
            else if (*text)
                fine = plumb_table_text(table, k, text);
        }
    }
    free(columns);
    if (!fine) {
        plumb_table_free(table);
        return NULL;
    }
    return table;
}

enum plumb_code plumb_table_read(struct plumb_table **table, const char *path,
                                 struct plumb_error *err)
{
    *table = NULL;
    struct plumb_file file;
    enum plumb_code code = plumb_file_map(&file, path, 0, UINT64_MAX, err);
    if (code)
        return code;
    struct grid grid = {0};
    struct csv csv;
    struct plumb_file_guard guard;
    csv_open(&csv, file.data, file.size);
    plumb_file_guard_enter(&guard, &file);
    code = read_rows(&grid, &csv, err);
    if (plumb_file_guard_leave(&guard) && !code)
        code = plumb_fail(err, PLUMB_E_IO, "it became shorter while it was read");
    if (!code && !(*table = make_table(&grid)))
        code = plumb_no_memory(err);
    if (code)
        plumb_error_in_file(err, path);
    csv_close(&csv);
    free(grid.cells);
    arena_free(&grid.arena);
    plumb_file_unmap(&file);
    return code;
}
