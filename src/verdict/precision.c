#define _GNU_SOURCE
#include "verdict/precision.h"
#include "verdict/precision_limits.h"

#include <stdio.h>
#include <string.h>

const char *precision_verdict_text(enum verdict verdict)
{
    static const char *const texts[] = {[VERDICT_NONE] = "",
                                        [VERDICT_SKIP] = "SKIP",
                                        [VERDICT_PASS] = "pass",
                                        [VERDICT_WARNING] = "warning",
                                        [VERDICT_ERROR] = "error"};
    return texts[verdict];
}

static bool is_text(struct csv_cell cell, const char *text)
{
    return strlen(text) == cell.length && memcmp(cell.text, text, cell.length) == 0;
}

bool precision_is_unsupported(struct csv_cell dtype)
{
    return is_text(dtype, "torch.float64") || is_text(dtype, "torch.complex64") ||
           is_text(dtype, "torch.complex128");
}

/* "torch_npu.HiFloat8Tensor" is a class, not a type with a name of its own. */
static enum plumb_dtype dtype_of(const char *name)
{
    enum plumb_dtype dtype = plumb_dtype_from_name(name);
    return dtype == PLUMB_DTYPE_COUNT && strcasestr(name, "hifloat8") ? PLUMB_HIF8 : dtype;
}

struct route precision_route(const struct standard_set *rules, const char *api, const char *dtype,
                             bool gradient)
{
    struct route route = {.dtype = dtype_of(dtype), .rules = rules};
    route.standard = standard_route(rules, api, route.dtype, false);
    if (rules->base == RULES_DOCUMENTED && gradient && standard_adds_gradients(api))
        route.standard = STANDARD_BENCHMARK;
    /* The document does not know that standard, and no real API is on its list. */
    if (route.standard == STANDARD_ACCUMULATIVE)
        route.standard = STANDARD_BENCHMARK;
    route.level = standard_level_of(rules, api);
    route.limits = standard_limits(rules, route.dtype);
    return route;
}

static void take_metrics(struct metrics *metrics, const struct details_file *npu,
                         const struct details_cells *a, const struct details_file *gpu,
                         const struct details_cells *b)
{
    metrics->rules = npu->rules;
    metrics->row = a;
    for (enum precision_column column = FIRST_METRIC; column <= LAST_METRIC; column++) {
        metrics->a[column] = details_value(npu, a, column);
        metrics->b[column] = details_value(gpu, b, column);
    }
}

static void skip(struct judged *judged, struct csv_cell message)
{
    judged->verdict = VERDICT_SKIP;
    if (!details_is_blank(message))
        buf_append(judged->message, message.text, message.length);
}

/* The steps of the origin, with what makes it fail a row. Whether an input was an 8-bit float it
 * reads off a cell that it fills for nothing else; plumb's own files fill it always. */
static void judge_msprobe(const struct metrics *metrics, const struct details_file *npu,
                          const struct route *route, struct judged *judged)
{
    const struct details_cells *a = metrics->row;
    struct csv_cell dtype = a->cell[COLUMN_DTYPE];
    if (details_is_missing(npu, dtype)) {
        judged->failed = true;
        buf_text(judged->message, "the DEVICE Dtype is missing");
        return;
    }
    if (details_is_blank(dtype) || precision_is_unsupported(dtype) ||
        is_text(a->cell[COLUMN_SHAPE], "(0,)")) {
        skip(judged, a->cell[COLUMN_MESSAGE]);
        return;
    }
    enum check_standard standard = route->standard;
    struct value rate = metrics->a[COLUMN_REL_RATE];
    if (npu->origin && (rate.typed || rate.kind == VALUE_MISSING)) {
        judged->failed = true;
        buf_printf(judged->message, "%s: %s", precision_column_title(COLUMN_REL_RATE),
                   rate.typed ? "no cell of the column is blank" : "the cell is missing");
        return;
    }
    if (npu->origin && rate.kind != VALUE_BLANK && standard != STANDARD_ULP)
        standard = STANDARD_ABSOLUTE;
    precision_apply(metrics, route, standard, judged);
}

/* What the pre-check said of a row that cannot be compared; never that it is fine. */
static void keep_status(const struct metrics *metrics, const struct route *route,
                        struct judged *judged)
{
    const struct details_cells *a = metrics->row;
    struct csv_cell status = a->cell[COLUMN_STATUS], message = a->cell[COLUMN_MESSAGE];
    struct metrics alone = *metrics;
    memcpy(alone.b, alone.a, sizeof alone.b);
    bool lacks = !precision_has(&alone, route, STANDARD_BENCHMARK);
    judged->verdict = is_text(status, "error")     ? VERDICT_ERROR
                      : is_text(status, "warning") ? VERDICT_WARNING
                                                   : VERDICT_SKIP;
    buf_printf(judged->message, "the %s file has no metrics to compare%s", lacks ? "NPU" : "GPU",
               judged->verdict == VERDICT_SKIP ? "" : ", so it stays what the pre-check said");
    if (!details_is_blank(message)) {
        buf_text(judged->message, ": ");
        buf_append(judged->message, message.text, message.length);
    }
}

/* Two types for one output: the errors say nothing about that, and one of the devices is wrong. */
static void warn_of_types(struct csv_cell a, struct csv_cell b, struct judged *judged)
{
    if (judged->verdict != VERDICT_PASS || details_is_blank(a) || details_is_blank(b) ||
        (a.length == b.length && memcmp(a.text, b.text, a.length) == 0))
        return;
    judged->verdict = VERDICT_WARNING;
    buf_printf(judged->message, "%sthe types differ: %.*s, the other device's %.*s",
               judged->message->size ? "; " : "", (int)(a.length < 60 ? a.length : 60), a.text,
               (int)(b.length < 60 ? b.length : 60), b.text);
}

static void judge_documented(const struct metrics *metrics, const struct route *route,
                             struct judged *judged)
{
    enum check_standard standard = route->standard;
    bool has = precision_has(metrics, route, standard);
    if (!has && standard != STANDARD_BENCHMARK &&
        precision_has(metrics, route, STANDARD_BENCHMARK)) {
        buf_printf(judged->message, "no metrics for %s, so %s decides", standard_name(standard),
                   standard_name(STANDARD_BENCHMARK));
        standard = STANDARD_BENCHMARK;
        has = true;
    }
    if (has) {
        precision_apply(metrics, route, standard, judged);
        if (judged->verdict == VERDICT_ERROR && precision_no_worse(metrics, standard)) {
            judged->verdict = VERDICT_PASS;
            buf_text(judged->message, "; the other device is no better, so this passes");
        }
        if (standard != STANDARD_ABSOLUTE)
            precision_apply_inf_nan(metrics, judged);
    } else {
        keep_status(metrics, route, judged);
    }
    if (!details_is_blank(metrics->row->cell[COLUMN_DTYPE]))
        judged->standard = (int)standard;
}

static enum plumb_code check_numbers(const struct details_file *file,
                                     const struct details_cells *row, const struct value *values,
                                     struct csv_cell name, struct plumb_error *err)
{
    for (enum precision_column column = FIRST_METRIC; column <= LAST_METRIC; column++) {
        struct csv_cell cell = row->cell[column];
        if (values[column].kind != VALUE_TEXT)
            continue;
        char where[32] = "";
        if (row->line)
            snprintf(where, sizeof where, "line %llu: ", (unsigned long long)row->line);
        plumb_fail(err, PLUMB_E_FORMAT, "%s%.*s: %s is \"%.*s\", which is no number", where,
                   (int)(name.length < 120 ? name.length : 120), name.text,
                   precision_column_title(column), (int)(cell.length < 60 ? cell.length : 60),
                   cell.text);
        plumb_error_in_file(err, file->path);
        return PLUMB_E_FORMAT;
    }
    return PLUMB_OK;
}

enum plumb_code precision_judge(const struct details_file *npu, const struct details_cells *a,
                                const struct details_file *gpu, const struct details_cells *b,
                                const struct route *route, struct judged *judged,
                                struct plumb_error *err)
{
    struct metrics metrics;
    judged->standard = -1;
    take_metrics(&metrics, npu, a, gpu, b);
    if (npu->rules == RULES_MSPROBE) {
        judge_msprobe(&metrics, npu, route, judged);
        if (judged->failed) {
            memset(judged->fields, 0, sizeof judged->fields);
            judged->verdict = VERDICT_SKIP;
            judged->standard = -1;
        }
        return PLUMB_OK;
    }
    struct csv_cell name = a->cell[COLUMN_NAME];
    enum plumb_code code = check_numbers(npu, a, metrics.a, name, err);
    if (!code)
        code = check_numbers(gpu, b, metrics.b, name, err);
    if (!code) {
        judge_documented(&metrics, route, judged);
        warn_of_types(a->cell[COLUMN_DTYPE], b->cell[COLUMN_DTYPE], judged);
    }
    return code;
}
