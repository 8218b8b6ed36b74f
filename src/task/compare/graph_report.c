/* Tables and closing lines of TorchAir comparisons. */
#define _GNU_SOURCE
#include "task/compare/graph_report.h"

#include "base/buf.h"
#include "base/number.h"
#include "base/utf8.h"
#include "pair/graph_names.h"
#include "task/compare/outcome.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *relative_to(const char *root, const char *path)
{
    size_t length = root ? strlen(root) : 0;
    if (length && strncmp(path, root, length) == 0 && path[length] == '/')
        return path + length + 1;
    return path;
}

/* "FOLDERS/Add.Add.2.6.1740800000000274,inputs,0" */
static void put_side(struct buf *text, const struct air_side *side, const char *root)
{
    if (!side->path) {
        buf_text(text, "N/A");
        return;
    }
    buf_text(text, relative_to(root, side->path));
    if (side->tensor)
        buf_printf(text, ",%s,%u", side->tensor->part == GE_INPUT ? "inputs" : "outputs",
                   side->tensor->index);
}

/* "float16" when both sides agree, else "float16/float32". */
static bool set_both(struct plumb_table *table, size_t column, const char *target,
                     const char *golden)
{
    char text[600];
    if (!target && !golden)
        return plumb_table_text(table, column, "N/A");
    if (!target || !golden || strcmp(target, golden) == 0)
        return plumb_table_text(table, column, target ? target : golden);
    snprintf(text, sizeof text, "%s/%s", target, golden);
    return plumb_table_text(table, column, text);
}

static bool set_number(struct plumb_table *table, size_t column, const struct measurement *what,
                       size_t row, unsigned which)
{
    const struct layout *layout = &what->layout;
    const struct air_result *result = &what->results[row];
    if (!result->compared || result->by_statistics ||
        (result->integers && layout->metrics[which]->group == PLUMB_G_ULP))
        return plumb_table_text(table, column, "N/A");
    double value = what->values[row * layout->metric_count + which];
    if (layout->metrics[which]->integer)
        plumb_table_int(table, column, (int64_t)value);
    else
        plumb_table_real(table, column, value);
    return true;
}

static bool set_names(struct plumb_table *table, size_t column, const struct report *report,
                      const struct air_row *row)
{
    struct buf text = {0};
    buf_text(&text, "[");
    put_side(&text, &row->target, report->roots[0]);
    buf_text(&text, ", ");
    /* A conversion is compared with itself: its golden side lies in the target's folder. */
    put_side(&text, &row->golden,
             report->roots[row->golden.op && row->golden.op == row->target.op ? 0 : 1]);
    buf_text(&text, "]");
    bool ok = !text.failed && plumb_table_text(table, column, text.data);
    buf_free(&text);
    return ok;
}

static bool set_difference(struct plumb_table *table, size_t column, const struct measurement *what,
                           size_t row)
{
    const struct air_result *result = &what->results[row];
    const struct field *field = &what->layout.fields[column];
    if (!result->compared || !result->by_statistics)
        return plumb_table_text(table, column, "N/A");
    return compare_set_difference(table, column, &result->differences[field->detail],
                                  field->source == FROM_RELATIVE);
}

/* "input 0"; "" for what is about a whole operator, or about none. */
static const char *place_text(const struct air_row *row, char text[64])
{
    const struct ge_tensor *tensor = row->target.tensor ? row->target.tensor : row->golden.tensor;
    const struct air_side *side = row->target.path ? &row->target : &row->golden;
    const char *slash = side->path && !side->op ? strrchr(side->path, '/') : NULL;
    struct fx_name fx;
    text[0] = '\0';
    if (tensor)
        snprintf(text, 64, "%s %u", tensor->part == GE_INPUT ? "input" : "output", tensor->index);
    else if (!slash || !fx_name_parse(slash + 1, &fx))
        return text;
    else if (fx.inner)
        snprintf(text, 64, "%s %" PRIu64 ".%" PRIu64, fx.input ? "input" : "output", fx.index,
                 fx.inner);
    else
        snprintf(text, 64, "%s %" PRIu64, fx.input ? "input" : "output", fx.index);
    return text;
}

static bool set_cell(struct plumb_table *table, size_t column, const struct report *report,
                     size_t number)
{
    const struct measurement *what = report->measurement;
    const struct field *field = &what->layout.fields[column];
    const struct air_row *row = &what->rows[number];
    const struct air_result *result = &what->results[number];
    bool failed = measure_severity(what, number) == PLUMB_FAILED;
    bool alone = measure_alone(what, number);
    const struct air_side *side = field->detail == 0 ? &row->target : &row->golden;
    char text[32], place[64];
    switch (field->source) {
    case FROM_INDEX:
        plumb_table_int(table, column, (int64_t)number);
        return true;
    case FROM_STATUS:
        return plumb_table_text(table, column, failed ? "Fail" : "");
    case FROM_RESULT:
        return plumb_table_text(table, column,
                                alone                      ? "NO COUNTERPART"
                                : failed                   ? "FAIL"
                                : result->verdict.unjudged ? "N/A"
                                                           : "PASS");
    case FROM_REACHED:
        return plumb_table_text(table, column,
                                alone || (result->verdict.unjudged && !failed) ? "N/A"
                                : failed                                       ? "No"
                                                                               : "Yes");
    case FROM_NAME:
        return plumb_table_text(table, column, row->name);
    case FROM_NAMES:
        return set_names(table, column, report, row);
    case FROM_REASON:
        return plumb_table_text(table, column, measure_reason(what, number));
    case FROM_METRIC:
        return set_number(table, column, what, number, field->detail);
    case FROM_CRC:
        snprintf(text, sizeof text, "%08" PRIx32, result->crc[field->detail]);
        return plumb_table_text(table, column, result->compared ? text : "N/A");
    case FROM_HISTOGRAM:
        return plumb_table_text(table, column,
                                result->histogram[field->detail] ? result->histogram[field->detail]
                                                                 : "N/A");
    case FROM_CHECKSUM:
        return plumb_table_text(table, column,
                                *result->checksum[field->detail] ? result->checksum[field->detail]
                                                                 : "N/A");
    case FROM_DIFFERENCE:
    case FROM_RELATIVE:
        return set_difference(table, column, what, number);
    case FROM_PLACE:
        return plumb_table_text(table, column, place_text(row, place));
    case FROM_STEP:
    case FROM_TOKEN:
        if (row->token >= 0)
            plumb_table_int(table, column, row->token);
        return true;
    case FROM_RANK:
        if (report->rank >= 0)
            plumb_table_int(table, column, report->rank);
        return true;
    case FROM_DTYPES:
        return set_both(table, column, result->shown[0].dtype, result->shown[1].dtype);
    case FROM_SHAPES:
        return set_both(table, column, result->shown[0].shape, result->shown[1].shape);
    case FROM_MATCH:
        return plumb_table_text(table, column,
                                row->kind != AIR_PAIR                  ? "unmatched"
                                : row->target.op || row->target.tensor ? "by graph"
                                                                       : "by name");
    case FROM_PATH:
        return plumb_table_text(table, column, side->path ? side->path : "N/A");
    default: /* stack, requires_grad: these dumps do not have them */
        return plumb_table_text(table, column, "N/A");
    }
}

static enum plumb_code make_table(struct plumb_table **table, const struct report *report,
                                  struct plumb_error *err)
{
    const struct measurement *what = report->measurement;
    const struct layout *layout = &what->layout;
    struct plumb_table *made = plumb_table_new(layout->columns, layout->count);
    bool ok = made != NULL;
    for (size_t row = 0; ok && row < what->count; row++) {
        if (what->results[row].dropped)
            continue;
        ok = plumb_table_add_row(made, measure_severity(what, row));
        for (size_t column = 0; ok && column < layout->count; column++)
            ok = set_cell(made, column, report, row);
    }
    if (ok) {
        *table = made;
        return PLUMB_OK;
    }
    plumb_table_free(made);
    return plumb_no_memory(err);
}

/* NaN is the worst there is. */
static bool worse(double a, double b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

/* Counts, and the rows of the measurement (not of the table) that are worst and first. Returns how
 * many have no counterpart. */
static size_t count_rows(struct plumb_comparison *out, const struct measurement *what,
                         size_t *worst, size_t *first)
{
    size_t place = 0, alone = 0;
    *worst = *first = out->worst_row = out->first_failing_row = PLUMB_NO_RECORD;
    out->first_fault_row = PLUMB_NO_RECORD;
    for (size_t i = 0; i < what->count; i++) {
        const struct air_result *result = &what->results[i];
        bool failed = measure_severity(what, i) == PLUMB_FAILED;
        if (result->dropped)
            continue;
        if (failed && *first == PLUMB_NO_RECORD) {
            *first = i;
            out->first_failing_row = place;
        }
        if (measure_alone(what, i)) {
            alone++;
        } else if (!result->compared) {
            *(what->rows[i].kind == AIR_MISSING ? &out->unmatched : &out->unreadable) += 1;
        } else {
            out->compared++;
            out->failed += failed;
            out->unjudged += result->verdict.unjudged;
            out->passed += !failed && !result->verdict.unjudged;
            out->suspicious +=
                result->verdict.severity == PLUMB_SUSPICIOUS && !result->verdict.unjudged;
            if (*worst == PLUMB_NO_RECORD ||
                worse(result->distance, what->results[*worst].distance)) {
                *worst = i;
                out->worst_row = place;
            }
        }
        place++;
    }
    out->bad = out->failed + out->unmatched + out->unreadable;
    return alone;
}

/* "Add, token 2, outputs 0" */
static void put_row(struct buf *text, const struct air_row *row)
{
    utf8_put_clean(text, row->name);
    if (row->token >= 0)
        buf_printf(text, ", token %" PRId64, row->token);
    char place[64];
    if (*place_text(row, place))
        buf_printf(text, ", %s", place);
}

static void put_reason(struct buf *text, const struct measurement *what, size_t row)
{
    put_row(text, &what->rows[row]);
    buf_text(text, " (");
    utf8_put_clean(text, measure_reason(what, row));
    buf_text(text, ")");
}

static enum plumb_trouble trouble_of(const struct measurement *what, size_t number)
{
    const struct air_row *row = &what->rows[number];
    const struct air_result *result = &what->results[number];
    if (measure_alone(what, number))
        return PLUMB_TROUBLE_ALONE;
    if (row->kind == AIR_PAIR)
        return result->compared ? outcome_of(&result->verdict) : result->obstacle;
    if (row->kind == AIR_BROKEN)
        return PLUMB_TROUBLE_UNREADABLE;
    return row->target.path   ? PLUMB_TROUBLE_ONLY_TARGET
           : row->golden.path ? PLUMB_TROUBLE_ONLY_GOLDEN
                              : PLUMB_TROUBLE_INCOMPARABLE;
}

static enum plumb_code note_outcomes(struct plumb_comparison *out, const struct measurement *what,
                                     struct plumb_error *err)
{
    size_t place = 0;
    out->outcomes = calloc(what->count + 1, sizeof *out->outcomes);
    out->spare = layout_spare(&what->layout, PLUMB_BY_RULES);
    if (!out->outcomes || !out->spare)
        return plumb_no_memory(err);
    for (size_t i = 0; i < what->count; i++) {
        const struct air_result *result = &what->results[i];
        if (result->dropped)
            continue;
        struct plumb_outcome outcome = {trouble_of(what, i),
                                        result->compared ? result->distance : 0};
        if (!outcome_note(out, place++, outcome))
            continue;
        struct buf text = {0};
        put_reason(&text, what, i);
        out->troubles[outcome.trouble].text = text.data;
        if (text.failed)
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static void put_counts(struct buf *text, const struct plumb_comparison *out, size_t alone)
{
    buf_printf(text, "%zu compared: %zu pass", out->compared, out->passed);
    if (out->suspicious)
        buf_printf(text, " (%zu suspicious)", out->suspicious);
    buf_printf(text, ", %zu fail", out->failed);
    if (out->unjudged)
        buf_printf(text, ", %zu suspicious and not judged", out->unjudged);
    buf_printf(text, "; %zu unmatched", out->unmatched);
    if (alone)
        buf_printf(text, ", %zu without a counterpart", alone);
    if (out->unreadable)
        buf_printf(text, ", %zu not comparable", out->unreadable);
}

static void put_rule(struct buf *text, const struct measurement *what)
{
    if (what->kind == LAYOUT_STATISTICS)
        buf_printf(text, "; rule: statistics differ by less than %g%%\n",
                   recorded_limit(what->standards->recorded) * 100);
    else if (what->kind == LAYOUT_CHECKSUMS)
        buf_text(text, "; rule: checksums are equal\n");
    else
        buf_printf(text, "; standard: %s\n", plumb_standard_name(what->standards->values));
}

static enum plumb_code make_closing(struct plumb_comparison *out, size_t *alone,
                                    const struct report *report, struct plumb_error *err)
{
    const struct measurement *what = report->measurement;
    size_t worst, first;
    struct closing_parts parts = {0};
    *alone = count_rows(out, what, &worst, &first);
    buf_text(&parts.advice, report->notes);
    put_counts(&parts.counts, out, *alone);
    /* Only values tell how far apart two tensors are. */
    if (what->kind == LAYOUT_TENSORS && worst != PLUMB_NO_RECORD &&
        what->results[worst].distance != 0) {
        buf_text(&parts.details, "; worst: ");
        put_row(&parts.details, &what->rows[worst]);
        char number[NUMBER_BYTES];
        buf_printf(&parts.details, " (relative distance %s)",
                   number_brief(what->results[worst].distance, 3, number));
    }
    if (first != PLUMB_NO_RECORD) {
        buf_text(&parts.details, "; first failure: ");
        put_reason(&parts.details, what, first);
    }
    put_rule(&parts.rule, what);
    enum plumb_code code = closing_join(out, &parts, err);
    return code || what->columns ? code : note_outcomes(out, what, err);
}

/* A table with columns of its own. */
static enum plumb_code make_other_table(struct plumb_table **table, const struct report *report,
                                        struct plumb_error *err)
{
    const struct measurement *what = report->measurement;
    struct graph_table_row *rows = calloc(what->count + 1, sizeof *rows);
    if (!rows)
        return plumb_no_memory(err);
    for (size_t i = 0; i < what->count; i++) {
        const struct air_result *result = &what->results[i];
        rows[i] = (struct graph_table_row){.row = &what->rows[i],
                                           .shown = result->shown,
                                           .metric = result->metric,
                                           .problem = result->problem,
                                           .reason = measure_reason(what, i),
                                           .severity = measure_severity(what, i),
                                           .dropped = result->dropped};
    }
    const bool own_rules = what->options->columns == what->options->rules;
    const enum plumb_code code = what->columns->make(table, rows, what->count, own_rules, err);
    free(rows);
    return code;
}

enum plumb_code report_make(struct plumb_comparison *out, size_t *alone,
                            const struct report *report, struct plumb_error *err)
{
    *out = (struct plumb_comparison){0};
    enum plumb_code code = report->measurement->columns ? make_other_table(&out->table, report, err)
                                                        : make_table(&out->table, report, err);
    if (!code)
        code = make_closing(out, alone, report, err);
    if (code)
        plumb_comparison_free(out);
    return code;
}
