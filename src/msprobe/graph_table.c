/* The table that msProbe writes in this mode: same columns, same cells. */
#define _GNU_SOURCE
#include "msprobe/graph.h"

#include "base/buf.h"
#include "base/number.h"
#include "plumb/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKEN,
    ID,
    GOLDEN_PATH,
    GOLDEN_TYPE,
    GOLDEN_DTYPE,
    GOLDEN_SHAPE,
    GOLDEN_MAX,
    GOLDEN_MIN,
    GOLDEN_MEAN,
    MY_PATH,
    MY_TYPE,
    MY_DTYPE,
    MY_SHAPE,
    MY_MAX,
    MY_MIN,
    MY_MEAN,
    FIRST_METRIC,
    REASON = FIRST_METRIC + AIR_METRICS,
    COLUMNS
};

static const char *const titles[] = {"token_id",
                                     "data_id",
                                     "golden_data_path",
                                     "golden_op_type",
                                     "golden_dtype",
                                     "golden_shape",
                                     "golden_max_value",
                                     "golden_min_value",
                                     "golden_mean_value",
                                     "my_data_path",
                                     "my_op_type",
                                     "my_dtype",
                                     "my_shape",
                                     "my_max_value",
                                     "my_min_value",
                                     "my_mean_value",
                                     "cosine_similarity",
                                     "max_relative_error",
                                     "mean_relative_error",
                                     "max_absolute_error",
                                     "mean_absolute_error",
                                     "kl_divergence",
                                     "relative_euclidean_distance",
                                     "cmp_fail_reason"};
_Static_assert(sizeof titles / sizeof *titles == COLUMNS, "a title for each column");

/* A number as Python prints it; NaN is an empty cell. */
static bool set_number(struct plumb_table *table, size_t column, double value)
{
    char text[NUMBER_BYTES];
    if (isnan(value))
        return true;
    number_exact(value, true, text);
    return plumb_table_text(table, column, text);
}

static bool set_side(struct plumb_table *table, size_t first, const struct air_side *side,
                     const struct air_shown *shown)
{
    char text[64];
    struct buf path = {0};
    buf_text(&path, side->path ? side->path : "");
    if (side->tensor)
        buf_printf(&path, ",%s,%u", side->tensor->part == GE_INPUT ? "inputs" : "outputs",
                   side->tensor->index);
    bool ok = !path.failed && plumb_table_text(table, first, path.data);
    buf_free(&path);
    if (ok && shown->dtype) {
        snprintf(text, sizeof text, "torch.%s", shown->dtype);
        ok = plumb_table_text(table, first + GOLDEN_DTYPE - GOLDEN_PATH, text);
    }
    if (ok && shown->shape)
        ok = plumb_table_text(table, first + GOLDEN_SHAPE - GOLDEN_PATH, shown->shape);
    if (shown->counted)
        ok = ok && set_number(table, first + GOLDEN_MAX - GOLDEN_PATH, shown->max) &&
             set_number(table, first + GOLDEN_MIN - GOLDEN_PATH, shown->min) &&
             set_number(table, first + GOLDEN_MEAN - GOLDEN_PATH, shown->mean);
    return ok;
}

/* What it has to say about a pair that it does not measure; nothing about one that it does. */
static const char *reason_of(const struct graph_table_row *row, bool own_rules, char *text,
                             size_t size)
{
    if (!own_rules)
        return row->severity == PLUMB_NORMAL ? "" : row->reason;
    if (!row->shown[0].shape || !row->shown[1].shape)
        return row->reason;
    const char *words[3];
    size_t count = 0;
    for (int i = 1; i >= 0; i--) {
        const struct air_shown *shown = &row->shown[i];
        if (shown->counted && (!isfinite(shown->max) || !isfinite(shown->min)))
            words[count++] =
                i ? "golden has NaN or infinite values." : "my has NaN or infinite values.";
    }
    if (row->problem)
        words[count++] = row->problem;
    text[0] = '\0';
    for (size_t i = 0, used = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", words[i]);
    return text;
}

static bool add_row(struct plumb_table *table, const struct graph_table_row *from, bool own_rules)
{
    const struct air_row *row = from->row;
    char text[1200];
    bool ok = plumb_table_add_row(table, from->severity) &&
              set_side(table, GOLDEN_PATH, &row->golden, &from->shown[1]) &&
              set_side(table, MY_PATH, &row->target, &from->shown[0]);
    if (row->token >= 0)
        plumb_table_int(table, TOKEN, row->token);
    if (row->kind == AIR_PAIR)
        plumb_table_int(table, ID, (int64_t)row->id);
    for (size_t i = 0; i < AIR_METRICS && ok; i++)
        ok = set_number(table, FIRST_METRIC + i, from->metric[i]);
    const char *reason = reason_of(from, own_rules, text, sizeof text);
    return ok && (!*reason || plumb_table_text(table, REASON, reason));
}

/* Its order: by what follows the last dot of the target's path, as text. */
struct turn {
    size_t row;
    char *key; /* malloc */
};

static char *make_key(const struct air_row *row)
{
    char *key;
    const char *path = row->target.path ? row->target.path : "";
    const char *dot = strrchr(path, '.');
    const char *tail = dot ? dot + 1 : path;
    int length = row->target.tensor
                     ? asprintf(&key, "%s,%s,%u", tail,
                                row->target.tensor->part == GE_INPUT ? "inputs" : "outputs",
                                row->target.tensor->index)
                     : asprintf(&key, "%s", tail);
    return length < 0 ? NULL : key;
}

static int by_key(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    int order = strcmp(left->key, right->key);
    return order ? order : left->row < right->row ? -1 : left->row > right->row;
}

static void free_turns(struct turn *turns, size_t count)
{
    for (size_t i = 0; turns && i < count; i++)
        free(turns[i].key);
    free(turns);
}

static struct turn *order_rows(const struct graph_table_row *rows, size_t count, bool own_rules)
{
    struct turn *turns = calloc(count + 1, sizeof *turns);
    bool ok = turns != NULL;
    for (size_t i = 0; i < count && ok; i++) {
        turns[i] = (struct turn){i, make_key(rows[i].row)};
        ok = turns[i].key != NULL;
    }
    if (!ok) {
        free_turns(turns, count);
        return NULL;
    }
    if (count && own_rules)
        qsort(turns, count, sizeof *turns, by_key);
    return turns;
}

static enum plumb_code make(struct plumb_table **table, const struct graph_table_row *rows,
                            size_t count, bool own_rules, struct plumb_error *err)
{
    struct plumb_column columns[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (struct plumb_column){.title = titles[i], .left = true};
    columns[GOLDEN_PATH].elastic = columns[MY_PATH].elastic = columns[REASON].elastic = true;
    struct turn *turns = order_rows(rows, count, own_rules);
    struct plumb_table *made = turns ? plumb_table_new(columns, COLUMNS) : NULL;
    bool ok = made != NULL;
    for (size_t i = 0; i < count && ok; i++)
        if (!rows[turns[i].row].dropped)
            ok = add_row(made, &rows[turns[i].row], own_rules);
    free_turns(turns, count);
    if (ok) {
        *table = made;
        return PLUMB_OK;
    }
    plumb_table_free(made);
    return plumb_no_memory(err);
}

const struct graph_columns msprobe_graph_columns = {
    .groups = PLUMB_G_RELATIVE | PLUMB_G_RATIOS | PLUMB_G_ABSOLUTE | PLUMB_G_KL | PLUMB_G_STATS,
    .stem = "msprobe_cmp_report",
    .utc = true,
    .make = make,
};
