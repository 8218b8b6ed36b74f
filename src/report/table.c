/* Tables in memory: filled row by row, sorted and cut. */
#define _GNU_SOURCE
#include "plumb/table.h"
#include "base/arena.h"
#include "base/buf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct row {
    struct plumb_cell *cells;
    size_t order; /* breaks ties while sorting */
    enum plumb_severity severity;
};

struct plumb_table {
    struct arena arena; /* cells and texts */
    struct plumb_column *columns;
    size_t column_count;
    struct row *rows;
    size_t count, capacity;
    struct plumb_cell *current; /* cells of the row added last; NULL when that failed */
};

struct plumb_table *plumb_table_new(const struct plumb_column *columns, size_t count)
{
    struct plumb_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->column_count = count;
    table->columns = arena_array(&table->arena, count, sizeof *columns);
    if (!table->columns)
        goto fail;
    for (size_t i = 0; i < count; i++) {
        table->columns[i] = columns[i];
        table->columns[i].title =
            arena_copy(&table->arena, columns[i].title, strlen(columns[i].title));
        if (!table->columns[i].title)
            goto fail;
    }
    return table;
fail:
    plumb_table_free(table);
    return NULL;
}

void plumb_table_free(struct plumb_table *table)
{
    if (!table)
        return;
    arena_free(&table->arena);
    free(table->rows);
    free(table);
}

bool plumb_table_add_row(struct plumb_table *table, enum plumb_severity severity)
{
    table->current = NULL;
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        if (capacity > SIZE_MAX / 2 / sizeof *table->rows)
            return false;
        struct row *rows = realloc(table->rows, capacity * sizeof *rows);
        if (!rows)
            return false;
        table->rows = rows;
        table->capacity = capacity;
    }
    struct plumb_cell *cells =
        arena_array(&table->arena, table->column_count, sizeof(struct plumb_cell));
    if (!cells)
        return false;
    table->rows[table->count++] = (struct row){.cells = cells, .severity = severity};
    table->current = cells;
    return true;
}

/* The text of the row above, where it is the same, as in columns of words it mostly is; or NULL. */
static const char *same_above(const struct plumb_table *table, size_t column, const char *text)
{
    if (table->count < 2)
        return NULL;
    const struct plumb_cell *above = &table->rows[table->count - 2].cells[column];
    return above->type == PLUMB_CELL_TEXT && strcmp(above->as.text, text) == 0 ? above->as.text
                                                                               : NULL;
}

bool plumb_table_text(struct plumb_table *table, size_t column, const char *text)
{
    if (!table->current || column >= table->column_count)
        return false;
    struct plumb_cell cell = {.type = PLUMB_CELL_EMPTY};
    if (text) {
        cell.type = PLUMB_CELL_TEXT;
        cell.as.text = same_above(table, column, text);
        if (!cell.as.text)
            cell.as.text = arena_copy(&table->arena, text, strlen(text));
        if (!cell.as.text)
            return false;
    }
    table->current[column] = cell;
    return true;
}

void plumb_table_int(struct plumb_table *table, size_t column, int64_t value)
{
    if (table->current && column < table->column_count)
        table->current[column] = (struct plumb_cell){PLUMB_CELL_INT, {.integer = value}};
}

void plumb_table_real(struct plumb_table *table, size_t column, double value)
{
    if (table->current && column < table->column_count)
        table->current[column] = (struct plumb_cell){PLUMB_CELL_REAL, {.real = value}};
}

size_t plumb_table_rows(const struct plumb_table *table)
{
    return table->count;
}

size_t plumb_table_columns(const struct plumb_table *table)
{
    return table->column_count;
}

const struct plumb_column *plumb_table_column(const struct plumb_table *table, size_t column)
{
    return &table->columns[column];
}

const struct plumb_cell *plumb_table_cell(const struct plumb_table *table, size_t row,
                                          size_t column)
{
    return &table->rows[row].cells[column];
}

enum plumb_severity plumb_table_severity(const struct plumb_table *table, size_t row)
{
    return table->rows[row].severity;
}

void plumb_table_set_severity(struct plumb_table *table, size_t row, enum plumb_severity severity)
{
    table->rows[row].severity = severity;
}

static int compare_integers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_reals(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

/* Exact, where converting the integer to double could make neighbours equal. */
static int compare_mixed(int64_t a, double b)
{
    const double limit = 9223372036854775808.0; /* 2^63 */
    if (isnan(b) || b >= limit)
        return -1;
    if (b < -limit)
        return 1;
    int whole = compare_integers(a, (int64_t)b);
    return whole ? whole : compare_reals(0, b - trunc(b));
}

static int compare_values(const struct plumb_cell *a, const struct plumb_cell *b)
{
    if (a->type == PLUMB_CELL_TEXT)
        return strcmp(a->as.text, b->as.text);
    if (a->type == PLUMB_CELL_INT)
        return b->type == PLUMB_CELL_INT ? compare_integers(a->as.integer, b->as.integer)
                                         : compare_mixed(a->as.integer, b->as.real);
    return b->type == PLUMB_CELL_INT ? -compare_mixed(b->as.integer, a->as.real)
                                     : compare_reals(a->as.real, b->as.real);
}

/* Numbers, texts, empty cells: in this order whichever way is sorted, so that what has no value is
 * never what comes first. */
static int group_of(const struct plumb_cell *cell)
{
    return cell->type == PLUMB_CELL_EMPTY ? 2 : cell->type == PLUMB_CELL_TEXT ? 1 : 0;
}

struct sorting {
    size_t column;
    bool descending;
};

static int compare_rows(const void *left, const void *right, void *context)
{
    const struct row *a = left, *b = right;
    const struct sorting *sorting = context;
    const struct plumb_cell *x = &a->cells[sorting->column], *y = &b->cells[sorting->column];

    int order = compare_integers(group_of(x), group_of(y));
    if (!order && x->type != PLUMB_CELL_EMPTY) {
        order = compare_values(x, y);
        if (sorting->descending)
            order = (order < 0) - (order > 0);
    }
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static bool find_title(const struct plumb_table *table, const char *title, size_t *column)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (strcasecmp(table->columns[i].title, title) == 0) {
            *column = i;
            return true;
        }
    }
    return false;
}

static bool find_number(const struct plumb_table *table, const char *text, size_t *column)
{
    size_t number = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || number > table->column_count)
            return false;
        number = number * 10 + (size_t)(*text - '0');
    }
    if (number < 1 || number > table->column_count)
        return false;
    *column = number - 1;
    return true;
}

static enum plumb_code no_such_column(const struct plumb_table *table, const char *column,
                                      struct plumb_error *err)
{
    struct buf titles = {0};
    for (size_t i = 0; i < table->column_count; i++)
        buf_printf(&titles, "%s%s", i ? ", " : "", table->columns[i].title);
    plumb_fail(err, PLUMB_E_ARG, "there is no column '%s' to sort by; the columns are: %s", column,
               titles.failed || !titles.data ? "(none)" : titles.data);
    buf_free(&titles);
    return PLUMB_E_ARG;
}

enum plumb_code plumb_table_sort(struct plumb_table *table, const char *column,
                                 struct plumb_error *err)
{
    struct sorting sorting = {0};
    /* A title as it stands goes first, should one begin with '-'. */
    if (!find_title(table, column, &sorting.column)) {
        sorting.descending = column[0] == '-';
        const char *name = column + sorting.descending;
        if (!find_title(table, name, &sorting.column) && !find_number(table, name, &sorting.column))
            return no_such_column(table, name, err);
    }
    for (size_t i = 0; i < table->count; i++)
        table->rows[i].order = i;
    if (table->count > 1)
        qsort_r(table->rows, table->count, sizeof *table->rows, compare_rows, &sorting);
    return PLUMB_OK;
}

void plumb_table_keep_severity(struct plumb_table *table, enum plumb_severity at_least)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].severity >= at_least)
            table->rows[kept++] = table->rows[i];
    table->count = kept;
}

void plumb_table_limit(struct plumb_table *table, size_t rows)
{
    if (table->count > rows)
        table->count = rows;
}

static bool copy_cell(struct plumb_table *table, size_t column, const struct plumb_cell *cell)
{
    if (cell->type == PLUMB_CELL_TEXT)
        return plumb_table_text(table, column, cell->as.text);
    table->current[column] = *cell;
    return true;
}

struct plumb_table *plumb_table_pick(const struct plumb_table *table, const size_t *rows,
                                     size_t row_count, const size_t *columns, size_t column_count)
{
    struct plumb_column *about = calloc(column_count + 1, sizeof *about);
    for (size_t i = 0; about && i < column_count; i++)
        about[i] = table->columns[columns[i]];
    struct plumb_table *made = about ? plumb_table_new(about, column_count) : NULL;
    free(about);
    for (size_t i = 0; made && i < row_count; i++) {
        const struct row *row = &table->rows[rows[i]];
        bool ok = plumb_table_add_row(made, row->severity);
        for (size_t k = 0; ok && k < column_count; k++)
            ok = copy_cell(made, k, &row->cells[columns[k]]);
        if (!ok) {
            plumb_table_free(made);
            made = NULL;
        }
    }
    return made;
}
