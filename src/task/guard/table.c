/* The account at the end: a row an operator, and what there is to say besides. */
#define _GNU_SOURCE
#include "task/guard/guard.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATOR, CALLS, CHECKED, FAILED, MAX_ABS, MAX_REL, ULPS, WHERE, VERDICT, WHY, COLUMNS };

/* The innermost frame, which the stack ends with. */
static const char *last_line(const char *stack)
{
    const char *newline = stack ? strrchr(stack, '\n') : NULL;
    return newline ? newline + 1 : stack;
}

static bool add_row(struct plumb_table *table, const struct plumb_guard_op *op)
{
    const bool failed = op->failed > 0;
    if (!plumb_table_add_row(table, failed ? PLUMB_FAILED : PLUMB_NORMAL) ||
        !plumb_table_text(table, OPERATOR, op->name))
        return false;
    plumb_table_int(table, CALLS, (int64_t)atomic_load(&op->calls));
    plumb_table_int(table, CHECKED, (int64_t)op->checked);
    plumb_table_int(table, FAILED, (int64_t)op->failed);
    if (op->checked) {
        plumb_table_real(table, MAX_ABS, op->max_abs);
        plumb_table_real(table, MAX_REL, op->max_rel);
        if (!isnan(op->max_ulp))
            plumb_table_real(table, ULPS, op->max_ulp);
    }
    if (op->judged && (!plumb_table_text(table, VERDICT, plumb_word_text(op->word)) ||
                       !plumb_table_text(table, WHY, op->why)))
        return false;
    return !op->where || plumb_table_text(table, WHERE, last_line(op->where));
}

struct plumb_table *plumb_guard_table(struct plumb_guard *guard)
{
    static const struct plumb_column columns[COLUMNS] = {
        [OPERATOR] = {.title = "Operator", .left = true},
        [CALLS] = {.title = "Calls", .style = PLUMB_STYLE_NUMBER},
        [CHECKED] = {.title = "Checked", .style = PLUMB_STYLE_NUMBER},
        [FAILED] = {.title = "Failed", .style = PLUMB_STYLE_NUMBER},
        [MAX_ABS] = {.title = "MaxAbsErr", .style = PLUMB_STYLE_DIGITS},
        [MAX_REL] = {.title = "MaxRelErr", .style = PLUMB_STYLE_DIGITS},
        [ULPS] = {.title = "Max ULP", .style = PLUMB_STYLE_DIGITS},
        [WHERE] = {.title = "First failed at", .left = true, .elastic = true},
        [VERDICT] = {.title = "Verdict", .left = true},
        [WHY] = {.title = "Why", .left = true, .elastic = true},
    };
    bool judged = guard->verdict != PLUMB_BY_RULES;
    pthread_mutex_lock(&guard->lock);
    guard_family_hear(guard);
    for (size_t k = 0; !judged && k < guard->n_ops; k++)
        judged = guard->ops[k]->judged;
    struct plumb_table *table = plumb_table_new(columns, judged ? COLUMNS : VERDICT);
    bool fine = table != NULL;
    for (int failed = 1; failed >= 0; failed--)
        for (size_t k = 0; fine && k < guard->n_ops; k++) {
            const struct plumb_guard_op *op = guard->ops[k];
            if ((op->checked || op->troubles) && (op->failed > 0) == failed)
                fine = add_row(table, op);
        }
    pthread_mutex_unlock(&guard->lock);
    if (fine)
        return table;
    plumb_table_free(table);
    return NULL;
}

static void indent(struct buf *out, const char *lines)
{
    while (lines && *lines) {
        const size_t length = strcspn(lines, "\n");
        buf_printf(out, "    %.*s\n", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void say_failures(struct buf *out, const struct plumb_guard *guard)
{
    for (size_t k = 0; k < guard->n_ops; k++) {
        const struct plumb_guard_op *op = guard->ops[k];
        if (!op->failed)
            continue;
        buf_printf(out, "%s failed: %s\n", op->name, op->first_failure ? op->first_failure : "?");
        indent(out, op->where);
        if (op->saved)
            buf_printf(out, "    saved in %s; see it again with: plumb replay %s\n", op->saved,
                       op->saved);
    }
}

/* Operators that could have been checked but for the reason that they have in common. */
static void say_skipped(struct buf *out, const struct plumb_guard *guard, const char *why)
{
    size_t n = 0;
    for (size_t k = 0; k < guard->n_ops; k++) {
        const struct plumb_guard_op *op = guard->ops[k];
        if (!op->skipped || strcmp(op->skipped, why) != 0)
            continue;
        buf_printf(out, "%s%s", n ? ", " : "not checked, ", n ? "" : why);
        buf_printf(out, "%s%s%s", n ? "" : ": ", op->name, op->checked ? " (some calls)" : "");
        n++;
    }
    if (n)
        buf_text(out, "\n");
}

/* Each reason once; the user's own choice needs no words, nor do operators that compute nothing. */
static void say_all_skipped(struct buf *out, const struct plumb_guard *guard)
{
    for (size_t k = 0; k < guard->n_ops; k++) {
        const struct plumb_guard_op *op = guard->ops[k];
        const bool told = op->is_function || guard_skip_is_told(plumb_guard_skips(op->full));
        if (!op->skipped || !told || strcmp(op->skipped, "excluded") == 0 ||
            strcmp(op->skipped, "not included") == 0)
            continue;
        bool said = false;
        for (size_t j = 0; j < k && !said; j++)
            said = guard->ops[j]->skipped && strcmp(guard->ops[j]->skipped, op->skipped) == 0;
        if (!said)
            say_skipped(out, guard, op->skipped);
    }
}

char *plumb_guard_closing(struct plumb_guard *guard)
{
    struct buf out = {0};
    uint64_t checks = 0, failures = 0, ops = 0, bad = 0;
    pthread_mutex_lock(&guard->lock);
    guard_family_hear(guard);
    for (size_t k = 0; k < guard->n_ops; k++) {
        checks += guard->ops[k]->checked;
        failures += guard->ops[k]->failed;
        ops += guard->ops[k]->checked > 0;
        bad += guard->ops[k]->failed > 0;
    }
    buf_printf(&out, "%" PRIu64 " call%s of %" PRIu64 " operator%s checked", checks, plural(checks),
               ops, plural(ops));
    if (failures)
        buf_printf(&out, ": %" PRIu64 " failed, of %" PRIu64 " operator%s; log: %s\n", failures,
                   bad, plural(bad), guard->path);
    else
        buf_text(&out, ", none failed\n");
    say_failures(&out, guard);
    say_all_skipped(&out, guard);
    if (guard->troubles)
        buf_printf(&out, "%" PRIu64 " check%s went wrong inside plumb; the first: %s\n",
                   guard->troubles, plural(guard->troubles),
                   guard->first_trouble ? guard->first_trouble : "?");
    pthread_mutex_unlock(&guard->lock);
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
