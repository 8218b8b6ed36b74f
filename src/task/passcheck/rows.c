/* Rows: what both sides came to, judged pair by pair. */
#include "task/passcheck/rows.h"

#include <string.h>

const char *passcheck_kind_name(enum plumb_passcheck_kind kind)
{
    switch (kind) {
    case PLUMB_PASSCHECK_PARAMETER:
        return "parameter";
    case PLUMB_PASSCHECK_NODE:
        return "node";
    case PLUMB_PASSCHECK_OUTPUT:
        return "output";
    case PLUMB_PASSCHECK_GRADIENT:
        return "gradient";
    case PLUMB_PASSCHECK_STEP:
        return "parameter after step";
    case PLUMB_PASSCHECK_RANDOM_GRADIENT:
        return "gradient of all outputs";
    }
    return "";
}

static size_t metric_count(void)
{
    size_t n = 0;
    while (plumb_metric_names()[n].name)
        n++;
    return n;
}

static struct passcheck_row *next_row(struct plumb_passcheck_rows *rows)
{
    if (rows->n == rows->room) {
        const size_t room = rows->room ? 2 * rows->room : 64;
        struct passcheck_row *grown = arena_array(&rows->arena, room, sizeof *grown);
        if (!grown)
            return NULL;
        if (rows->n)
            memcpy(grown, rows->row, rows->n * sizeof *grown);
        rows->row = grown;
        rows->room = room;
    }
    return &rows->row[rows->n++];
}

/* What is said of both sides: once where it is the same. */
static const char *either(struct arena *arena, const char *a, const char *b)
{
    return strcmp(a, b) == 0 ? arena_copy(arena, a, strlen(a))
                             : arena_printf(arena, "%s / %s", a, b);
}

/* Every metric, for the table. */
static bool keep_metrics(struct plumb_passcheck_rows *rows, const struct plumb_metrics *metrics,
                         struct passcheck_row *row)
{
    const size_t n = metric_count();
    row->values = arena_array(&rows->arena, n, sizeof *row->values);
    for (size_t k = 0; row->values && k < n; k++)
        row->values[k] = plumb_metric_names()[k].value(metrics);
    return row->values != NULL;
}

static bool describe(struct arena *arena, const struct plumb_tensor *before,
                     const struct plumb_tensor *after, struct passcheck_row *row)
{
    char a[512], b[512];
    row->dtype =
        either(arena, plumb_dtype_info(before->dtype)->name, plumb_dtype_info(after->dtype)->name);
    row->shape =
        either(arena, plumb_shape_text(before, a, sizeof a), plumb_shape_text(after, b, sizeof b));
    return row->dtype && row->shape;
}

bool passcheck_add_row(struct plumb_passcheck_rows *rows, unsigned iteration,
                       enum plumb_passcheck_kind kind, const char *name,
                       const struct plumb_arg *before, const struct plumb_arg *after)
{
    struct same_verdict found;
    struct plumb_error err;
    if (same_is_nothing(before, after))
        return true;
    struct passcheck_row *row = next_row(rows);
    if (!row)
        return false;
    *row = (struct passcheck_row){.iteration = iteration,
                                  .kind = kind,
                                  .name = arena_copy(&rows->arena, name, strlen(name)),
                                  .dtype = "",
                                  .shape = ""};
    if (!row->name)
        return false;
    if (before && after && before->kind == PLUMB_ARG_TENSOR && after->kind == PLUMB_ARG_TENSOR &&
        !describe(&rows->arena, before->tensor, after->tensor, row))
        return false;
    if (same_judge(&rows->rule, before, after, &found, &err))
        return false;
    row->severity = found.verdict.severity;
    row->reason = arena_copy(&rows->arena, found.verdict.rule, strlen(found.verdict.rule));
    return row->reason && (!found.measured || keep_metrics(rows, &found.metrics, row));
}
