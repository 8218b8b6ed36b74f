/* The rows of a check as plumb's table. */
#include "task/passcheck/rows.h"

#include <string.h>

enum { ITERATION, KIND, NAME, DTYPE, SHAPE, FIXED, MAX_COLUMNS = 128 };

struct columns {
    struct plumb_column column[MAX_COLUMNS];
    size_t metric[MAX_COLUMNS]; /* place among plumb_metric_names */
    size_t n;                   /* up to and without result and reason */
    size_t all;
};

static bool is_brief(const char *name)
{
    return strcmp(name, "cosine") == 0 || strcmp(name, "max_abs") == 0 ||
           strcmp(name, "max_rel") == 0 || strcmp(name, "not_close") == 0;
}

static void choose(struct columns *c, bool wide, bool opinions)
{
    static const struct plumb_column fixed[FIXED] = {
        [ITERATION] = {.title = "Iteration"},
        [KIND] = {.title = "Kind", .left = true},
        [NAME] = {.title = "Name", .left = true, .elastic = true},
        [DTYPE] = {.title = "DType", .left = true},
        [SHAPE] = {.title = "Shape", .left = true, .elastic = true},
    };
    memcpy(c->column, fixed, sizeof fixed);
    c->n = FIXED;
    const struct plumb_metric_name *names = plumb_metric_names();
    for (size_t k = 0; names[k].name && c->n < MAX_COLUMNS - 4; k++)
        if (wide || is_brief(names[k].name)) {
            c->metric[c->n] = k;
            c->column[c->n++] = (struct plumb_column){
                .title = names[k].title,
                .style = names[k].integer ? PLUMB_STYLE_TEXT : PLUMB_STYLE_DIGITS};
        }
    c->column[c->n] = (struct plumb_column){.title = "Result", .left = true};
    c->column[c->n + 1] = (struct plumb_column){.title = "Reason", .left = true, .elastic = true};
    c->all = c->n + 2;
    if (!opinions)
        return;
    c->column[c->all++] = (struct plumb_column){.title = "Verdict", .left = true};
    c->column[c->all++] = (struct plumb_column){.title = "Why", .left = true, .elastic = true};
}

static bool add(struct plumb_table *table, const struct columns *c,
                const struct plumb_passcheck_rows *rows, const struct passcheck_row *row)
{
    if (!plumb_table_add_row(table, passcheck_row_severity(rows, row)))
        return false;
    plumb_table_int(table, ITERATION, (int64_t)row->iteration);
    for (size_t k = FIXED; row->values && k < c->n; k++) {
        const double value = row->values[c->metric[k]];
        if (plumb_metric_names()[c->metric[k]].integer)
            plumb_table_int(table, k, (int64_t)value);
        else
            plumb_table_real(table, k, value);
    }
    return plumb_table_text(table, KIND, passcheck_kind_name(row->kind)) &&
           plumb_table_text(table, NAME, row->name) && plumb_table_text(table, DTYPE, row->dtype) &&
           plumb_table_text(table, SHAPE, row->shape) &&
           plumb_table_text(table, c->n, row->severity == PLUMB_FAILED ? "FAIL" : "PASS") &&
           plumb_table_text(table, c->n + 1, row->severity == PLUMB_NORMAL ? "" : row->reason) &&
           (!row->why || (plumb_table_text(table, c->n + 2, plumb_word_text(row->word)) &&
                          plumb_table_text(table, c->n + 3, row->why)));
}

struct plumb_table *plumb_passcheck_table(const struct plumb_passcheck *check, int64_t iteration,
                                          bool wide)
{
    const struct plumb_passcheck_rows *rows = check->at;
    struct columns columns;
    choose(&columns, wide, rows->verdict != PLUMB_BY_RULES);
    struct plumb_table *table = plumb_table_new(columns.column, columns.all);
    bool fine = table != NULL;
    for (size_t k = 0; fine && k < rows->n; k++)
        if (iteration < 0 || rows->row[k].iteration == iteration)
            fine = add(table, &columns, rows, &rows->row[k]);
    if (fine)
        return table;
    plumb_table_free(table);
    return NULL;
}
