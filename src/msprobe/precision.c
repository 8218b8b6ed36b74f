/* api_precision_compare as msProbe does it: its steps, with what makes it fail a row. */
#include "msprobe/profile.h"
#include "verdict/precision_limits.h"

#include <string.h>

static bool unsupported(struct csv_cell dtype)
{
    return precision_is_text(dtype, "torch.float64") ||
           precision_is_text(dtype, "torch.complex64") ||
           precision_is_text(dtype, "torch.complex128");
}

static void skip(struct judged *judged, struct csv_cell message)
{
    judged->verdict = VERDICT_SKIP;
    if (!precision_is_blank(message))
        buf_append(judged->message, message.text, message.length);
}

/* Whether an input was an 8-bit float it reads off a cell that it fills for nothing else; plumb's
 * own files fill it always. */
static void apply(const struct metrics *metrics, const struct route *route, struct judged *judged)
{
    struct csv_cell dtype = metrics->cells[COLUMN_DTYPE];
    if (metrics->no_dtype) {
        judged->failed = true;
        buf_text(judged->message, "the DEVICE Dtype is missing");
        return;
    }
    if (precision_is_blank(dtype) || unsupported(dtype) ||
        precision_is_text(metrics->cells[COLUMN_SHAPE], "(0,)")) {
        skip(judged, metrics->cells[COLUMN_MESSAGE]);
        return;
    }
    enum check_standard standard = route->standard;
    struct value rate = metrics->a[COLUMN_REL_RATE];
    if (rate.typed || rate.kind == VALUE_MISSING) {
        judged->failed = true;
        buf_printf(judged->message, "%s: %s", precision_column_title(COLUMN_REL_RATE),
                   rate.typed ? "no cell of the column is blank" : "the cell is missing");
        return;
    }
    if (metrics->own_dialect && rate.kind != VALUE_BLANK && standard != STANDARD_ULP)
        standard = STANDARD_ABSOLUTE;
    precision_apply(metrics, route, standard, judged);
}

static void judge(const struct metrics *metrics, const struct route *route, struct judged *judged)
{
    apply(metrics, route, judged);
    if (judged->failed) {
        memset(judged->fields, 0, sizeof judged->fields);
        judged->verdict = VERDICT_SKIP;
        judged->standard = -1;
    }
}

static const char *remark(struct csv_cell api, enum verdict forward)
{
    return precision_is_text(api, "topk") && forward == VERDICT_ERROR
               ? "topk may order equal values differently on the two devices"
               : NULL;
}

const struct precision_profile msprobe_precision = {
    .typed_columns = true,
    .any_direction = true,
    .by_stretch = true,
    .stop_keeps = true,
    .blank_is_zero = true,
    .copies_rate = true,
    .thousandth_reached = true,
    .judge = judge,
    .unsupported = unsupported,
    .remark = remark,
};
