/* The cells of a comparison's table, and the reason that a row gives. */
#include "run/module.h"
#include "task/compare/compare.h"

#include "base/buf.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "float16" when both sides agree, else "float16/float32"; the same for shapes. */
static void both_sides(char *text, size_t size, const char *target, const char *golden)
{
    if (!target || !golden || strcmp(target, golden) == 0)
        snprintf(text, size, "%s", target ? target : golden);
    else
        snprintf(text, size, "%s/%s", target, golden);
}

static const char *dtype_of(const struct plumb_record *record)
{
    return record ? compare_dtype(record) : NULL;
}

static const char *shape_of(const struct plumb_record *record, char *text, size_t size)
{
    return record ? compare_shape(record, text, size) : NULL;
}

static const char *how_text(enum plumb_pair_how how)
{
    static const char *const words[] = {
        [PLUMB_BY_NAME] = "by name",     [PLUMB_BY_LIKENESS] = "by similar name",
        [PLUMB_BY_ORDER] = "by order",   [PLUMB_BY_MAP] = "by map",
        [PLUMB_BY_GROUP] = "as a group", [PLUMB_UNMATCHED] = "unmatched"};
    return words[how];
}

/* " at step 2, rank 0", as far as that is known. */
static const char *place_of(int64_t step, int64_t rank, char *text, size_t size)
{
    if (step >= 0 && rank >= 0)
        snprintf(text, size, " at step %" PRId64 ", rank %" PRId64, step, rank);
    else if (step >= 0 || rank >= 0)
        snprintf(text, size, " at %s %" PRId64, step >= 0 ? "step" : "rank",
                 step >= 0 ? step : rank);
    else
        snprintf(text, size, " without step and rank");
    return text;
}

/* False: no name of the other run is near. */
static bool find_nearest(struct near_record *near, const struct comparison *comparison, size_t pair,
                         int side)
{
    const size_t index = comparison->matching.pairs[pair].nearest;
    if (comparison->nearest) {
        if (comparison->nearest[pair])
            *near = *comparison->nearest[pair];
        return comparison->nearest[pair];
    }
    if (index == PLUMB_NO_RECORD)
        return false;
    const struct plumb_record *record = plumb_run_record(comparison->run[1 - side], index);
    *near = (struct near_record){record->name, record->step, record->rank};
    return true;
}

static const char *unmatched_reason(const struct comparison *comparison, size_t pair, char *text,
                                    size_t size)
{
    const struct plumb_pair *p = &comparison->matching.pairs[pair];
    int side = p->target == PLUMB_NO_RECORD ? 1 : 0;
    const struct plumb_record *record = compare_record(comparison, pair, side);
    const char *where = side ? "golden" : "target";
    struct near_record near;
    char problem[900], here[64], there[64];
    if (p->covered)
        snprintf(text, size, "only in the %s run: the other does this in other steps", where);
    else if (record->error)
        snprintf(text, size, "only in the %s run, and unreadable there: %s", where,
                 plumb_error_text(record->error, problem, sizeof problem));
    else if (!find_nearest(&near, comparison, pair, side))
        snprintf(text, size, "only in the %s run", where);
    else if (strcmp(near.name, record->name) == 0 &&
             (near.step != record->step || near.rank != record->rank))
        snprintf(text, size, "only in the %s run%s; the other has it%s", where,
                 place_of(record->step, record->rank, here, sizeof here),
                 place_of(near.step, near.rank, there, sizeof there));
    else
        snprintf(text, size, "only in the %s run; nearest name in the other: %s", where, near.name);
    return text;
}

const char *compare_reason(const struct comparison *comparison, size_t pair, char *text,
                           size_t size)
{
    const struct row *row = &comparison->rows[pair];
    if (row->compared)
        return row->verdict.rule;
    if (comparison->matching.pairs[pair].how == PLUMB_UNMATCHED)
        return unmatched_reason(comparison, pair, text, size);
    return row->problem ? row->problem : "out of memory";
}

bool compare_fails(const struct comparison *comparison, size_t pair)
{
    const struct row *row = &comparison->rows[pair];
    return row->compared ? row->verdict.severity == PLUMB_FAILED
                         : !comparison->matching.pairs[pair].covered;
}

const char *compare_module(const struct plumb_record *record, char *text, size_t size)
{
    const struct plumb_recorded *recorded = record->recorded;
    if (!recorded)
        return run_module(record->name, text, size);
    const char *const calls[] = {recorded->api, plumb_recorded_parent(recorded)};
    for (int k = 0; k < 2; k++)
        if (calls[k] && strncmp(calls[k], "Module.", 7) == 0)
            return run_module(calls[k], text, size);
    return "";
}

static const char *grad_text(const struct plumb_record *target, const struct plumb_record *golden)
{
    if (!target || !golden || target->requires_grad < 0 || golden->requires_grad < 0)
        return "N/A";
    return target->requires_grad == golden->requires_grad ? "True" : "False";
}

static bool set_number(struct plumb_table *table, size_t column,
                       const struct comparison *comparison, size_t pair, unsigned which)
{
    if (!comparison->rows[pair].compared || comparison->rows[pair].basis != BY_TENSOR)
        return plumb_table_text(table, column, "N/A");
    const struct layout *layout = &comparison->layout;
    if (comparison->rows[pair].integers && layout->metrics[which]->group == PLUMB_G_ULP)
        return plumb_table_text(table, column, "N/A");
    double value = comparison->values[pair * layout->metric_count + which];
    if (layout->metrics[which]->integer)
        plumb_table_int(table, column, (int64_t)value);
    else
        plumb_table_real(table, column, value);
    return true;
}

bool compare_set_difference(struct plumb_table *table, size_t column,
                            const struct recorded_difference *difference, bool relative)
{
    if (difference->kind == DIFFERENCE_NONE)
        return plumb_table_text(table, column, "N/A");
    if (difference->kind == DIFFERENCE_WORD)
        return plumb_table_text(table, column, "Diff");
    if (!relative) {
        plumb_table_real(table, column, difference->absolute);
        return true;
    }
    if (isnan(difference->relative) || isinf(difference->relative))
        return plumb_table_text(table, column, isnan(difference->relative) ? "NaN" : "inf");
    char text[NUMBER_BYTES];
    number_brief(difference->relative * 100, 7, text);
    memcpy(text + strlen(text), "%", 2);
    return plumb_table_text(table, column, text);
}

static bool set_difference(struct plumb_table *table, size_t column,
                           const struct comparison *comparison, size_t pair)
{
    const struct field *field = &comparison->layout.fields[column];
    if (!comparison->rows[pair].has_differences)
        return plumb_table_text(table, column, "N/A");
    return compare_set_difference(table, column,
                                  &comparison->differences[pair * PLUMB_STATISTICS + field->detail],
                                  field->source == FROM_RELATIVE);
}

static bool set_estimate(struct plumb_table *table, size_t column,
                         const struct recorded_estimate *estimate, unsigned which)
{
    char text[80];
    const double share = !estimate                 ? NAN
                         : which == ESTIMATE_ERROR ? estimate->error
                                                   : estimate->distance;
    if (!estimate || (which == ESTIMATE_SCALE && isnan(estimate->scale)))
        return plumb_table_text(table, column, "N/A");
    if (which == ESTIMATE_WHERE)
        return plumb_table_text(table, column, estimate->where);
    if (which == ESTIMATE_SCALE)
        snprintf(text, sizeof text, "%.6g +- %.1g", estimate->scale, estimate->scale_error);
    else if (isfinite(share))
        snprintf(text, sizeof text, "%.4g%%", share * 100);
    else
        snprintf(text, sizeof text, "%s", isnan(share) ? "NaN" : "inf");
    return plumb_table_text(table, column, text);
}

/* The call that a pair belongs to, or NULL. */
static const char *call_of(const struct comparison *comparison, size_t pair)
{
    const struct plumb_record *record = compare_record(comparison, pair, 0);
    if (!record)
        record = compare_record(comparison, pair, 1);
    return record->recorded ? record->recorded->api : NULL;
}

/* Where the call was made, once a call: one line, the innermost place first. */
static bool set_stack(struct plumb_table *table, size_t column, const struct comparison *comparison,
                      size_t pair)
{
    const struct plumb_record *target = compare_record(comparison, pair, 0);
    const struct plumb_record *golden = compare_record(comparison, pair, 1);
    const char *const *stack = target ? plumb_recorded_stack(target->recorded) : NULL;
    if (!stack && golden && golden->recorded)
        stack = plumb_recorded_stack(golden->recorded);
    const char *call = call_of(comparison, pair);
    /* What has no partner stands apart from the rest of its call. */
    const bool begins = !pair || pair == comparison->matching.matched;
    if (!stack || (!begins && call_of(comparison, pair - 1) == call))
        return plumb_table_text(table, column, "N/A");
    struct buf text = {0};
    buf_text(&text, "");
    for (size_t i = 0; stack[i]; i++) {
        buf_text(&text, i ? "; " : "");
        for (const char *line = stack[i]; *line;) {
            size_t blank = strspn(line, " \t\r\n"), word = strcspn(line + blank, " \t\r\n");
            if (word) {
                buf_text(&text, blank && line != stack[i] ? " " : "");
                buf_append(&text, line + blank, word);
            }
            line += blank + word;
        }
    }
    bool ok = !text.failed && plumb_table_text(table, column, text.data);
    buf_free(&text);
    return ok;
}

/* "[target, golden]": names of dumps can be long. */
static bool set_names(struct plumb_table *table, size_t column, const struct plumb_record *target,
                      const struct plumb_record *golden)
{
    const char *const left = target ? target->name : "N/A", *right = golden ? golden->name : "N/A";
    const size_t lefts = strlen(left), rights = strlen(right), need = lefts + rights + 5;
    char brief[512], *text = need <= sizeof brief ? brief : malloc(need);
    if (!text)
        return false;
    memcpy(text, "[", 1);
    memcpy(text + 1, left, lefts);
    memcpy(text + 1 + lefts, ", ", 2);
    memcpy(text + 3 + lefts, right, rights);
    memcpy(text + 3 + lefts + rights, "]", 2);
    bool ok = plumb_table_text(table, column, text);
    if (text != brief)
        free(text);
    return ok;
}

static bool set_word(struct plumb_table *table, size_t column, const struct opinion *opinion)
{
    return opinion->kind == OPINION_NONE ||
           plumb_table_text(table, column,
                            opinion->kind == OPINION_UNMATCHED ? "unmatched"
                                                               : plumb_word_text(opinion->word));
}

/* How the parts of both sides were put together, and where they differ. */
static bool set_layout(struct plumb_table *table, size_t column,
                       const struct comparison *comparison, size_t pair)
{
    const struct plumb_record *target = compare_record(comparison, pair, 0);
    const struct plumb_record *golden = compare_record(comparison, pair, 1);
    const char *left = target ? target->layout : NULL, *right = golden ? golden->layout : NULL;
    const char *parts = comparison->rows[pair].parts;
    struct buf text = {0};
    buf_text(&text, parts ? parts : "");
    if (parts && (left || right))
        buf_text(&text, ": ");
    if (left && right && strcmp(left, right) == 0)
        buf_text(&text, left);
    else if (left || right)
        buf_printf(&text, "%s%s%s%s%s", left && right ? "target: " : "", left ? left : "",
                   left && right ? "; " : "", right ? "golden: " : "", right ? right : "");
    bool ok = !text.failed && plumb_table_text(table, column, text.data);
    buf_free(&text);
    return ok;
}

/* What all cells of a row ask for. */
struct line {
    size_t pair;
    const struct plumb_record *target, *golden; /* or NULL */
    bool failed;
};

static bool set_cell(struct plumb_table *table, size_t column, const struct comparison *comparison,
                     const struct line *line)
{
    const struct field *field = &comparison->layout.fields[column];
    const size_t pair = line->pair;
    const struct row *row = &comparison->rows[pair];
    const struct plumb_record *target = line->target, *golden = line->golden;
    const struct plumb_record *either = golden ? golden : target;
    const bool failed = line->failed;
    bool judged = !row->verdict.unjudged && !comparison->matching.pairs[pair].covered;
    char text[1024], a[160], b[160];

    switch (field->source) {
    case FROM_INDEX:
        plumb_table_int(table, column, (int64_t)pair);
        return true;
    case FROM_STATUS:
        return plumb_table_text(table, column, failed ? "Fail" : "");
    case FROM_RESULT:
        return plumb_table_text(table, column, failed ? "FAIL" : !judged ? "N/A" : "PASS");
    case FROM_REACHED:
        return plumb_table_text(table, column, failed ? "No" : !judged ? "N/A" : "Yes");
    case FROM_NAME:
        return plumb_table_text(table, column, compare_name(comparison, pair));
    case FROM_NAMES:
        return set_names(table, column, target, golden);
    case FROM_STACK:
        return set_stack(table, column, comparison, pair);
    case FROM_GRAD:
        return plumb_table_text(table, column, grad_text(target, golden));
    case FROM_REASON:
        return plumb_table_text(table, column, compare_reason(comparison, pair, text, sizeof text));
    case FROM_METRIC:
        return set_number(table, column, comparison, pair, field->detail);
    case FROM_CRC:
        snprintf(text, sizeof text, "%08" PRIx32, row->crc[field->detail]);
        return plumb_table_text(table, column,
                                row->compared && row->basis == BY_TENSOR ? text : "N/A");
    case FROM_DIFFERENCE:
    case FROM_RELATIVE:
        return set_difference(table, column, comparison, pair);
    case FROM_CHECKSUM:
        return plumb_table_text(
            table, column, row->checksum[field->detail] ? row->checksum[field->detail] : "N/A");
    case FROM_ESTIMATE:
        return set_estimate(table, column, row->estimate, field->detail);
    case FROM_HISTOGRAM:
        return plumb_table_text(
            table, column, row->histogram[field->detail] ? row->histogram[field->detail] : "N/A");
    case FROM_STEP:
        if (either->step >= 0)
            plumb_table_int(table, column, either->step);
        return true;
    case FROM_RANK:
        if (either->rank >= 0)
            plumb_table_int(table, column, either->rank);
        return true;
    case FROM_DTYPES:
        if (!dtype_of(target) && !dtype_of(golden))
            return plumb_table_text(table, column, "N/A");
        both_sides(text, sizeof text, dtype_of(target), dtype_of(golden));
        return plumb_table_text(table, column, text);
    case FROM_SHAPES: {
        const char *left = shape_of(target, a, sizeof a), *right = shape_of(golden, b, sizeof b);
        if (!left && !right)
            return plumb_table_text(table, column, "N/A");
        both_sides(text, sizeof text, left, right);
        return plumb_table_text(table, column, text);
    }
    case FROM_MODULE:
        return plumb_table_text(table, column,
                                compare_module(target ? target : golden, text, sizeof text));
    case FROM_MATCH:
        return plumb_table_text(table, column, how_text(comparison->matching.pairs[pair].how));
    case FROM_PATH: {
        const struct plumb_record *record = field->detail == 0 ? target : golden;
        return plumb_table_text(table, column, record ? record->path : "N/A");
    }
    case FROM_WORD:
        return set_word(table, column, &comparison->opinions[pair]);
    case FROM_WHY:
        return !comparison->opinions[pair].why ||
               plumb_table_text(table, column, comparison->opinions[pair].why);
    case FROM_JUDGE:
        return plumb_table_text(table, column, comparison->judged_by);
    case FROM_LAYOUT:
        return set_layout(table, column, comparison, pair);
    case FROM_TOKEN: /* of graph dumps, which have a table of their own */
    case FROM_PLACE:
        break;
    }
    return true;
}

enum plumb_code compare_table(struct plumb_table **table, const struct comparison *comparison,
                              struct plumb_error *err)
{
    const struct layout *layout = &comparison->layout;
    struct plumb_table *made = plumb_table_new(layout->columns, layout->count);
    for (size_t pair = 0; made && pair < comparison->matching.count; pair++) {
        const struct line line = {pair, compare_record(comparison, pair, 0),
                                  compare_record(comparison, pair, 1),
                                  compare_fails(comparison, pair)};
        bool ok = plumb_table_add_row(made, compare_severity(comparison, pair));
        for (size_t column = 0; ok && column < layout->count; column++)
            ok = set_cell(made, column, comparison, &line);
        if (!ok) {
            plumb_table_free(made);
            made = NULL;
        }
    }
    *table = made;
    return made ? PLUMB_OK : plumb_no_memory(err);
}
