#include "task/passcheck/rows.h"

#include <math.h>
#include <string.h>

const char *numeric_kind_name(enum plumb_passcheck_kind kind)
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

static struct numeric_row *next_row(struct plumb_passcheck_verdict *numeric)
{
    if (numeric->n == numeric->room) {
        const size_t room = numeric->room ? 2 * numeric->room : 64;
        struct numeric_row *rows = arena_array(&numeric->arena, room, sizeof *rows);
        if (!rows)
            return NULL;
        if (numeric->n)
            memcpy(rows, numeric->rows, numeric->n * sizeof *rows);
        numeric->rows = rows;
        numeric->room = room;
    }
    return &numeric->rows[numeric->n++];
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* What is said of both sides: once where it is the same. */
static const char *either(struct arena *arena, const char *a, const char *b)
{
    return strcmp(a, b) == 0 ? arena_copy(arena, a, strlen(a))
                             : arena_printf(arena, "%s / %s", a, b);
}

static bool judge(struct plumb_passcheck_verdict *numeric, const struct plumb_tensor *before,
                  const struct plumb_tensor *after, struct numeric_row *row)
{
    struct plumb_metrics metrics;
    struct plumb_verdict verdict = {0};
    struct plumb_error err;
    struct plumb_metric_spec spec = numeric->spec;
    const enum plumb_kind kind = plumb_dtype_info(before->dtype)->kind;
    /* Integers are counts and places: the next one to a large one is another. */
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX)
        spec.rtol = 0;
    if (plumb_metric_pair(&spec, after, before, &metrics, &err))
        return false;
    plumb_standard_judge(numeric->standard, &metrics, &verdict);
    row->severity = verdict.severity;
    row->reason = arena_copy(&numeric->arena, verdict.rule, strlen(verdict.rule));
    const size_t n = metric_count();
    row->values = arena_array(&numeric->arena, n, sizeof *row->values);
    for (size_t k = 0; row->values && k < n; k++)
        row->values[k] = plumb_metric_names()[k].value(&metrics);
    return row->reason && row->values;
}

static bool add_tensors(struct plumb_passcheck_verdict *numeric, const struct plumb_tensor *before,
                        const struct plumb_tensor *after, struct numeric_row *row)
{
    struct arena *arena = &numeric->arena;
    char a[512], b[512];
    row->dtype =
        either(arena, plumb_dtype_info(before->dtype)->name, plumb_dtype_info(after->dtype)->name);
    row->shape =
        either(arena, plumb_shape_text(before, a, sizeof a), plumb_shape_text(after, b, sizeof b));
    if (!row->dtype || !row->shape)
        return false;
    row->severity = PLUMB_FAILED;
    if (!same_shape(before, after)) {
        row->reason = "the shape changed";
        return true;
    }
    if (!judge(numeric, before, after, row))
        return false;
    if (before->dtype != after->dtype) {
        row->severity = PLUMB_FAILED;
        row->reason = "the type changed";
    }
    return true;
}

/* Numbers that operators return beside tensors. */
static bool same_value(const struct plumb_arg *a, const struct plumb_arg *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PLUMB_ARG_FLOAT)
        return a->number == b->number || (isnan(a->number) && isnan(b->number));
    if (a->kind == PLUMB_ARG_INT || a->kind == PLUMB_ARG_BOOL)
        return a->integer == b->integer;
    if (a->kind == PLUMB_ARG_TEXT || a->kind == PLUMB_ARG_DEVICE)
        return a->text && b->text && strcmp(a->text, b->text) == 0;
    return a->kind != PLUMB_ARG_DTYPE || a->dtype == b->dtype;
}

bool numeric_add(struct plumb_passcheck_verdict *numeric, unsigned iteration,
                 enum plumb_passcheck_kind kind, const char *name, const struct plumb_arg *before,
                 const struct plumb_arg *after)
{
    const bool none_before = before && before->kind == PLUMB_ARG_NONE;
    const bool none_after = after && after->kind == PLUMB_ARG_NONE;
    if (none_before && none_after)
        return true;
    struct numeric_row *row = next_row(numeric);
    if (!row)
        return false;
    *row = (struct numeric_row){.iteration = iteration,
                                .kind = kind,
                                .name = arena_copy(&numeric->arena, name, strlen(name)),
                                .dtype = "",
                                .shape = "",
                                .severity = PLUMB_FAILED};
    if (!row->name)
        return false;
    if (!before || !after) {
        row->reason = before ? "only before" : "only after";
        return true;
    }
    if (none_before || none_after) {
        row->reason = none_before ? "None before" : "None after";
        return true;
    }
    if (before->kind == PLUMB_ARG_TENSOR && after->kind == PLUMB_ARG_TENSOR)
        return add_tensors(numeric, before->tensor, after->tensor, row);
    const bool same = same_value(before, after);
    row->severity = same ? PLUMB_NORMAL : PLUMB_FAILED;
    row->reason = same ? "" : "the value changed";
    return true;
}
