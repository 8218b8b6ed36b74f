/* Which columns of a comparison fit into a terminal, and names that do not. */
#include "cli/digest_table.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "report/writer.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_ELASTIC = 20, BETWEEN = 3, ELLIPSIS = 3 };

static const struct plumb_column distance = {.title = "Distance"}; /* "0.00123 %" is longer */
enum { DISTANCE_WIDTH = 9 };

struct choice {
    const struct plumb_comparison *comparison;
    const size_t *rows;
    size_t count;
    size_t name;     /* the column that tells rows apart */
    size_t *columns; /* those that are shown */
    size_t n_columns;
    size_t total; /* what they take */
    const struct digest_look *look;
};

static const struct plumb_column *column_of(const struct choice *choice, size_t column)
{
    return plumb_table_column(choice->comparison->table, column);
}

/* The columns of the terminal that a column needs at least; a name in full. */
static size_t needs(const struct choice *choice, size_t column)
{
    const struct plumb_column *about = column_of(choice, column);
    size_t most = utf8_text_width(about->title);
    for (size_t i = 0; i < choice->count; i++) {
        char number[NUMBER_BYTES];
        const char *text = cell_shown(
            plumb_table_cell(choice->comparison->table, choice->rows[i], column), about, number);
        const size_t width = utf8_text_width(text);
        most = width > most ? width : most;
    }
    const bool gives = about->elastic && column != choice->name && most > LEAST_ELASTIC;
    return gives ? LEAST_ELASTIC : most;
}

static bool is_chosen(const struct choice *choice, size_t column)
{
    for (size_t i = 0; i < choice->n_columns; i++)
        if (choice->columns[i] == column)
            return true;
    return false;
}

/* What cannot be missed, then what fits, the most telling first. */
static void choose(struct choice *choice)
{
    const size_t all = plumb_table_columns(choice->comparison->table);
    const unsigned end = choice->look->all ? PLUMB_SPARE + 1 : PLUMB_SPARE;
    for (unsigned level = 0; level < end; level++)
        for (size_t i = 0; i < all; i++) {
            if (choice->comparison->spare[i] != level)
                continue;
            const size_t more = needs(choice, i) + BETWEEN;
            if (level && choice->look->width && choice->total + more > choice->look->width)
                continue;
            choice->columns[choice->n_columns++] = i;
            choice->total += more;
        }
    size_t n = 0; /* and now in the order of the table; all of these are below i */
    size_t *sorted = choice->columns + all;
    for (size_t i = 0; i < all; i++)
        if (is_chosen(choice, i))
            sorted[n++] = i;
    choice->columns = sorted;
}

/* The end of a name that takes more than `room` columns. */
static const char *end_of(const char *name, size_t room)
{
    size_t width = utf8_text_width(name);
    while (*name && width > room) {
        const struct utf8_shown c = utf8_show(name);
        width -= c.columns;
        name += c.taken;
    }
    return name;
}

static bool put_name(struct plumb_table *table, size_t column, const char *name, size_t room)
{
    struct buf text = {0};
    if (room < ELLIPSIS + 1 || utf8_text_width(name) <= room)
        return plumb_table_text(table, column, name);
    buf_text(&text, "...");
    buf_text(&text, end_of(name, room - ELLIPSIS));
    const bool good = !text.failed && plumb_table_text(table, column, text.data);
    buf_free(&text);
    return good;
}

static bool put_cell(struct plumb_table *table, size_t column, const struct plumb_cell *cell)
{
    switch (cell->type) {
    case PLUMB_CELL_TEXT:
        return plumb_table_text(table, column, cell->as.text);
    case PLUMB_CELL_INT:
        plumb_table_int(table, column, cell->as.integer);
        return true;
    case PLUMB_CELL_REAL:
        plumb_table_real(table, column, cell->as.real);
        return true;
    case PLUMB_CELL_EMPTY:
        break;
    }
    return true;
}

/* In per cent of the golden tensor, as the row is ranked by. */
static bool put_distance(struct plumb_table *table, size_t column,
                         const struct plumb_outcome *outcome)
{
    char number[NUMBER_BYTES], text[NUMBER_BYTES + 2];
    if (outcome->distance == 0)
        return plumb_table_text(table, column, "0");
    snprintf(text, sizeof text, "%s %%", number_brief(100 * outcome->distance, 3, number));
    return plumb_table_text(table, column, text);
}

static bool put_row(struct plumb_table *out, const struct choice *choice, size_t row, size_t room)
{
    const struct plumb_table *table = choice->comparison->table;
    bool good = plumb_table_add_row(out, plumb_table_severity(table, row));
    for (size_t k = 0, at = 0; k < choice->n_columns && good; k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, choice->columns[k]);
        const bool name = choice->columns[k] == choice->name;
        good = name && cell->type == PLUMB_CELL_TEXT ? put_name(out, at++, cell->as.text, room)
                                                     : put_cell(out, at++, cell);
        if (good && name && choice->look->distances)
            good = put_distance(out, at++, &choice->comparison->outcomes[row]);
    }
    return good;
}

/* Room for names: what is too much in all is cut from them, where that leaves enough. */
static size_t name_room(const struct choice *choice)
{
    const size_t all = needs(choice, choice->name);
    const size_t over = choice->look->width && choice->total > choice->look->width
                            ? choice->total - choice->look->width
                            : 0;
    return over >= all || all - over < LEAST_ELASTIC ? LEAST_ELASTIC : all - over;
}

static struct plumb_table *fill(const struct choice *choice)
{
    struct plumb_column *about = calloc(choice->n_columns + 1, sizeof *about);
    size_t n = 0;
    for (size_t k = 0; about && k < choice->n_columns; k++) {
        const bool name = choice->columns[k] == choice->name;
        about[n] = *column_of(choice, choice->columns[k]);
        if (name && choice->look->width)
            about[n].elastic = false; /* it has its width already */
        n++;
        if (name && choice->look->distances)
            about[n++] = distance;
    }
    struct plumb_table *out = about ? plumb_table_new(about, n) : NULL;
    free(about);
    const size_t room = choice->look->width ? name_room(choice) : SIZE_MAX;
    for (size_t i = 0; out && i < choice->count; i++)
        if (!put_row(out, choice, choice->rows[i], room)) {
            plumb_table_free(out);
            out = NULL;
        }
    return out;
}

struct plumb_table *digest_table(const struct plumb_comparison *comparison, const size_t *rows,
                                 size_t count, const struct digest_look *look)
{
    const size_t all = plumb_table_columns(comparison->table);
    size_t *columns = calloc(2 * all + 1, sizeof *columns);
    struct choice choice = {.comparison = comparison,
                            .rows = rows,
                            .count = count,
                            .columns = columns,
                            .total = look->distances ? 1 + DISTANCE_WIDTH + BETWEEN : 1,
                            .look = look};
    while (choice.name < all && !column_of(&choice, choice.name)->elastic)
        choice.name++;
    if (columns)
        choose(&choice);
    struct plumb_table *out = columns ? fill(&choice) : NULL;
    free(columns);
    return out;
}
