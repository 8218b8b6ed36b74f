/* The documented way from a pair of rows to a verdict. */
#define _GNU_SOURCE
#include "verdict/precision_limits.h"
#include "verdict/profile.h"

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

bool precision_is_text(struct csv_cell cell, const char *text)
{
    return strlen(text) == cell.length && memcmp(cell.text, text, cell.length) == 0;
}

bool precision_is_blank(struct csv_cell cell)
{
    for (size_t i = 0; i < cell.length; i++)
        if (cell.text[i] != ' ' && !(cell.text[i] >= '\t' && cell.text[i] <= '\r'))
            return false;
    return true;
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
    if (rules->profile->precision->sums_gradients && gradient && standard_adds_gradients(api))
        route.standard = STANDARD_BENCHMARK;
    /* The document does not know that standard, and no real API is on its list. */
    if (route.standard == STANDARD_ACCUMULATIVE)
        route.standard = STANDARD_BENCHMARK;
    route.level = standard_level_of(rules, api);
    route.limits = standard_limits(rules, route.dtype);
    return route;
}

/* What the pre-check said of a row that cannot be compared; never that it is fine. */
static void keep_status(const struct metrics *metrics, const struct route *route,
                        struct judged *judged)
{
    struct csv_cell status = metrics->cells[COLUMN_STATUS];
    struct csv_cell message = metrics->cells[COLUMN_MESSAGE];
    struct metrics alone = *metrics;
    memcpy(alone.b, alone.a, sizeof alone.b);
    bool lacks = !precision_has(&alone, route, STANDARD_BENCHMARK);
    judged->verdict = precision_is_text(status, "error")     ? VERDICT_ERROR
                      : precision_is_text(status, "warning") ? VERDICT_WARNING
                                                             : VERDICT_SKIP;
    buf_printf(judged->message, "the %s file has no metrics to compare%s", lacks ? "NPU" : "GPU",
               judged->verdict == VERDICT_SKIP ? "" : ", so it stays what the pre-check said");
    if (!precision_is_blank(message)) {
        buf_text(judged->message, ": ");
        buf_append(judged->message, message.text, message.length);
    }
}

/* Two types for one output: the errors say nothing about that, and one of the devices is wrong. */
static void warn_of_types(struct csv_cell a, struct csv_cell b, struct judged *judged)
{
    if (judged->verdict != VERDICT_PASS || precision_is_blank(a) || precision_is_blank(b) ||
        (a.length == b.length && memcmp(a.text, b.text, a.length) == 0))
        return;
    judged->verdict = VERDICT_WARNING;
    buf_printf(judged->message, "%sthe types differ: %.*s, the other device's %.*s",
               judged->message->size ? "; " : "", (int)(a.length < 60 ? a.length : 60), a.text,
               (int)(b.length < 60 ? b.length : 60), b.text);
}

static void compare(const struct metrics *metrics, const struct route *route, struct judged *judged)
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
    if (!precision_is_blank(metrics->cells[COLUMN_DTYPE]))
        judged->standard = (int)standard;
}

static void judge(const struct metrics *metrics, const struct route *route, struct judged *judged)
{
    compare(metrics, route, judged);
    warn_of_types(metrics->cells[COLUMN_DTYPE], metrics->other_cells[COLUMN_DTYPE], judged);
}

const struct precision_profile precision_documented = {
    .needs_status = true,
    .sums_gradients = true,
    .judge = judge,
};

void precision_judge(const struct metrics *metrics, const struct route *route,
                     struct judged *judged)
{
    judged->standard = -1;
    route->rules->profile->precision->judge(metrics, route, judged);
}
