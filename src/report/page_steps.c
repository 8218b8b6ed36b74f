/* Statistics along steps, of a report. */
#include "base/json_put.h"
#include "report/page.h"

#include <inttypes.h>

static void put_series(struct plumb_report *report, const char *key,
                       const struct plumb_report_steps *s, const double *const *values)
{
    struct buf *out = &report->steps;
    page_key(out, key, false);
    buf_text(out, "[");
    for (size_t k = 0; values && k < s->n_series; k++) {
        buf_text(out, k ? ",{" : "{");
        page_text(out, "title", s->titles[k], true);
        page_key(out, "values", false);
        page_bulk(report, out, BULK_F64, values[k], s->n_names * s->n_steps);
        buf_text(out, "}");
    }
    buf_text(out, "]");
}

void plumb_report_steps(struct plumb_report *report, const struct plumb_report_steps *s)
{
    struct buf *out = &report->steps;
    out->size = 0;
    buf_text(out, "{\"steps\":[");
    for (size_t k = 0; k < s->n_steps; k++)
        buf_printf(out, "%s%" PRId64, k ? "," : "", s->steps[k]);
    buf_text(out, "],\"names\":[");
    for (size_t k = 0; k < s->n_names; k++) {
        buf_text(out, k ? "," : "");
        json_put_string(out, s->names[k]);
    }
    buf_text(out, "]");
    put_series(report, "series", s, s->now);
    put_series(report, "earlier", s, s->before);
    buf_text(out, ",\"jumps\":[");
    for (size_t k = 0; k < s->n_jumps; k++) {
        const struct plumb_report_jump *jump = &s->jumps[k];
        buf_printf(out, "%s{\"tensor\":%" PRId32 ",\"step\":%" PRId64, k ? "," : "", jump->tensor,
                   jump->step);
        page_text(out, "why", jump->why, false);
        buf_printf(out, ",\"mood\":%d}", (int)jump->mood);
    }
    buf_text(out, "]}");
}
