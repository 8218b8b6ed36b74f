/* The page of one tensor in a report. */
#include "report/page.h"

#include "base/json_put.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- Histograms ------------------------------------------------------------------------------ */

static void put_bins(struct plumb_report *report, struct buf *out, const char *label,
                     const uint64_t *bins, size_t count, bool first)
{
    double numbers[PLUMB_HISTOGRAM_BINS];
    for (size_t k = 0; k < count; k++)
        numbers[k] = (double)bins[k];
    buf_text(out, first ? "{" : ",{");
    page_text(out, "label", label, true);
    page_key(out, "bins", false);
    page_bulk(report, out, BULK_F64, numbers, count);
    buf_text(out, "}");
}

static void put_values(struct plumb_report *report, struct buf *out, const struct plumb_detail *d,
                       const char *const sides[2])
{
    const struct plumb_stats *t = &d->metrics.target, *g = &d->metrics.golden;
    buf_text(out, "{\"title\":\"values\",\"scale\":\"linear\",\"low\":");
    page_number(out, d->low);
    buf_text(out, ",\"high\":");
    page_number(out, d->high);
    buf_text(out, ",\"sides\":[");
    put_bins(report, out, sides[0], d->values[0], PLUMB_DETAIL_BINS, true);
    put_bins(report, out, sides[1], d->values[1], PLUMB_DETAIL_BINS, false);
    buf_printf(out,
               "],\"beside\":[{\"label\":\"NaN\",\"counts\":[%" PRIu64 ",%" PRIu64
               "]},{\"label\":\"+Inf\",\"counts\":[%" PRIu64 ",%" PRIu64
               "]},{\"label\":\"-Inf\",\"counts\":[%" PRIu64 ",%" PRIu64 "]}]}",
               t->nan, g->nan, t->pos_inf, g->pos_inf, t->neg_inf, g->neg_inf);
}

/* Errors: bins of powers of two, without the empty ones at both ends. */
static void put_errors(struct plumb_report *report, struct buf *out, const char *title,
                       const struct plumb_histogram *h)
{
    int first = 1, end = PLUMB_HISTOGRAM_BINS - 1;
    while (first < end && !h->bin[first])
        first++;
    while (end > first && !h->bin[end - 1])
        end--;
    buf_text(out, ",{");
    page_text(out, "title", title, true);
    buf_printf(out, ",\"scale\":\"log2\",\"low\":%d,\"high\":%d,\"sides\":[", first - 97, end - 97);
    put_bins(report, out, "errors", h->bin + first, (size_t)(end - first), true);
    buf_printf(out,
               "],\"beside\":[{\"label\":\"0\",\"counts\":[%" PRIu64
               "]},{\"label\":\"not finite\",\"counts\":[%" PRIu64 "]}]}",
               h->bin[0], h->bin[PLUMB_HISTOGRAM_BINS - 1]);
}

/* ---- Places ---------------------------------------------------------------------------------- */

static double largest_of(const struct plumb_error_map *map)
{
    double largest = 0;
    for (size_t k = 0; k < (size_t)map->size[0] * map->size[1]; k++)
        if (isfinite(map->largest[k]))
            largest = fmax(largest, map->largest[k]);
    return largest;
}

/* Eighths of powers of two below the largest one. */
static void put_map(struct plumb_report *report, struct buf *out, const struct plumb_error_map *map)
{
    unsigned char cells[PLUMB_DETAIL_CELLS * PLUMB_DETAIL_CELLS];
    const size_t count = (size_t)map->size[0] * map->size[1];
    const double largest = largest_of(map);
    for (size_t k = 0; k < count; k++) {
        const double e = map->largest[k];
        const double step = e > 0 ? round(254 + 8 * log2(e / largest)) : 0;
        cells[k] = !isfinite(e) ? 255 : e > 0 ? (unsigned char)fmax(step, 1) : 0;
    }
    buf_printf(
        out, "{\"axes\":[%d,%d],\"size\":[%u,%u],\"extent\":[%" PRId64 ",%" PRId64 "],\"largest\":",
        map->axes[0], map->axes[1], map->size[0], map->size[1], map->extent[0], map->extent[1]);
    page_number(out, largest);
    buf_text(out, ",\"values\":");
    page_bulk(report, out, BULK_U8, cells, count);
    buf_text(out, "}");
}

static void put_place(struct buf *out, const struct plumb_detail *d, uint64_t index)
{
    int64_t place[PLUMB_MAX_RANK + 1];
    plumb_detail_place(d, index, place);
    buf_text(out, "[");
    for (unsigned axis = 0; axis < d->rank; axis++)
        buf_printf(out, "%s%" PRId64, axis ? "," : "", place[axis]);
    buf_text(out, "]");
}

static void put_worst(struct buf *out, const struct plumb_detail *d,
                      const struct plumb_worst_element *is)
{
    buf_text(out, "{\"at\":");
    put_place(out, d, is->index);
    buf_text(out, ",\"target\":");
    page_number(out, is->target);
    buf_text(out, ",\"golden\":");
    page_number(out, is->golden);
    buf_text(out, ",\"error\":");
    page_number(out, is->error);
    buf_text(out, ",\"ulps\":");
    if (isnan(is->ulps))
        buf_text(out, "null");
    else
        page_number(out, is->ulps);
    buf_text(out, "}");
}

static void put_window(struct plumb_report *report, struct buf *out, const struct plumb_detail *d)
{
    const struct plumb_error_window *w = &d->window;
    page_key(out, "window", false);
    if (!w->target) {
        buf_text(out, "null");
        return;
    }
    const size_t count = (size_t)w->size[0] * w->size[1];
    buf_printf(out, "{\"axes\":[%d,%d],\"at\":", w->axes[0], w->axes[1]);
    put_place(out, d, d->worst[0].index);
    buf_printf(out,
               ",\"origin\":[%" PRId64 ",%" PRId64 "],\"size\":[%u,%u],\"target\":", w->origin[0],
               w->origin[1], w->size[0], w->size[1]);
    page_bulk(report, out, BULK_F64, w->target, count);
    buf_text(out, ",\"golden\":");
    page_bulk(report, out, BULK_F64, w->golden, count);
    buf_text(out, "}");
}

static void put_profile(struct plumb_report *report, struct buf *out,
                        const struct plumb_error_profile *p)
{
    buf_printf(out, "{\"axis\":%d,\"extent\":%" PRId64 ",\"largest\":", p->axis, p->extent);
    page_bulk(report, out, BULK_F64, p->largest, p->size);
    buf_text(out, ",\"mean\":");
    page_bulk(report, out, BULK_F64, p->mean, p->size);
    buf_text(out, "}");
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void put_facts(struct buf *out, const char *const *facts)
{
    page_key(out, "facts", false);
    buf_text(out, "[");
    for (size_t k = 0; facts && facts[k]; k += 2) {
        if (k)
            buf_text(out, ",");
        page_texts(out, (const char *const[]){facts[k], facts[k + 1], NULL});
    }
    buf_text(out, "]");
}

int32_t plumb_report_tensor(struct plumb_report *report, const struct plumb_report_tensor *tensor)
{
    const struct plumb_detail *d = tensor->detail;
    const char *const sides[] = {tensor->sides[0] ? tensor->sides[0] : "target",
                                 tensor->sides[1] ? tensor->sides[1] : "golden"};
    struct buf *out = &report->tensors;
    page_comma(out);
    buf_text(out, "{");
    page_text(out, "name", tensor->name, true);
    buf_printf(out, ",\"row\":%" PRId32 ",\"mood\":%d,\"dtypes\":", tensor->row, (int)tensor->mood);
    page_texts(out, (const char *const[]){tensor->dtypes[0], tensor->dtypes[1], NULL});
    page_key(out, "sides", false);
    page_texts(out, (const char *const[]){sides[0], sides[1], NULL});
    buf_text(out, ",\"shape\":[");
    for (unsigned axis = 0; axis < d->rank; axis++)
        buf_printf(out, "%s%" PRId64, axis ? "," : "", d->shape[axis]);
    buf_text(out, "]");
    put_facts(out, tensor->facts);
    page_key(out, "stack", false);
    page_texts(out, tensor->stack);
    page_key(out, "commands", false);
    page_texts(out, tensor->commands);
    buf_text(out, ",\"histograms\":[");
    put_values(report, out, d, sides);
    put_errors(report, out, "absolute error", &d->metrics.abs_histogram);
    put_errors(report, out, "relative error", &d->metrics.rel_histogram);
    put_errors(report, out, "ULP error", &d->metrics.ulp_histogram);
    buf_text(out, "],\"maps\":[");
    for (size_t k = 0; k < d->n_maps; k++) {
        if (k)
            buf_text(out, ",");
        put_map(report, out, &d->maps[k]);
    }
    buf_text(out, "]");
    put_window(report, out, d);
    buf_text(out, ",\"worst\":[");
    for (size_t k = 0; k < d->n_worst; k++) {
        if (k)
            buf_text(out, ",");
        put_worst(out, d, &d->worst[k]);
    }
    buf_text(out, "],\"profiles\":[");
    for (size_t k = 0; k < d->n_profiles; k++) {
        if (k)
            buf_text(out, ",");
        put_profile(report, out, &d->profiles[k]);
    }
    buf_text(out, "]}");
    return report->n_tensors++;
}
