#include "plumb/metric.h"
#include "verdict/cells.h"
#include "verdict/precheck_parts.h"

#include <inttypes.h>
#include <string.h>

enum { BLOCK = 512 };

static bool is_quantized(const struct judge_options *options, const char *api)
{
    for (const char *const *name = options->quantized; name && *name; name++)
        if (strcmp(*name, api) == 0)
            return true;
    return false;
}

/* Elements as 64-bit patterns, sign-extended where the type has a sign. Whole bytes only. */
static void load_bits(const struct plumb_tensor *tensor, uint64_t first, size_t n, uint64_t *out)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    unsigned char bytes[BLOCK * 8];
    size_t size = info->bits / 8;
    unsigned unused = 64 - info->bits;
    plumb_tensor_gather(tensor, first, n, bytes);
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        for (size_t k = 0; k < size; k++) {
            size_t at = tensor->swap ? size - 1 - k : k;
            value |= (uint64_t)bytes[i * size + at] << (8 * k);
        }
        if (info->kind == PLUMB_KIND_INT && unused)
            value = value >> (info->bits - 1) & 1 ? value | ~UINT64_C(0) << info->bits : value;
        out[i] = value;
    }
}

/* The largest difference as numpy has it in the wider of the two types: wrapped around, and with
 * the most negative number as its own absolute value. */
static int64_t wrapped_difference(const struct judge_pair *pair)
{
    const struct plumb_dtype_info *b = plumb_dtype_info(pair->bench->dtype);
    const struct plumb_dtype_info *d = plumb_dtype_info(pair->device->dtype);
    unsigned width = b->bits > d->bits ? b->bits : d->bits;
    bool has_sign = b->kind == PLUMB_KIND_INT;
    uint64_t mask = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
    int64_t most = INT64_MIN;
    uint64_t bench[BLOCK], device[BLOCK];
    for (uint64_t at = 0; at < pair->device->count; at += BLOCK) {
        uint64_t left = pair->device->count - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        load_bits(pair->bench, at, n, bench);
        load_bits(pair->device, at, n, device);
        for (size_t i = 0; i < n; i++) {
            uint64_t gap = (device[i] - bench[i]) & mask;
            bool negative = has_sign && gap >> (width - 1) & 1;
            if (negative)
                gap = (0 - gap) & mask;
            bool lowest = negative && gap >> (width - 1) & 1;
            int64_t size = lowest ? -(int64_t)(gap >> 1) - (int64_t)(gap >> 1) : (int64_t)gap;
            most = size > most ? size : most;
        }
    }
    return most;
}

static void judge_quantized(const struct judge_pair *pair, const struct plumb_metrics *metrics)
{
    struct details_row *row = pair->row;
    bool msprobe = pair->options->rules->base == RULES_MSPROBE;
    double limit = pair->options->rules->quantized;
    bool within;
    if (msprobe && pair->bench->dtype == PLUMB_BOOL && pair->device->dtype == PLUMB_BOOL) {
        row->status = STATUS_SKIP;
        row->message =
            "bool has no differences, so a quantized output of that type is not compared";
        return;
    }
    if (msprobe) {
        int64_t most = wrapped_difference(pair);
        within = (double)most <= limit;
        row->cell[CELL_MAX_ABS] = arena_printf(pair->arena, "%" PRId64, most);
    } else {
        within = metrics->max_abs <= limit;
        row->cell[CELL_MAX_ABS] =
            cell_number(pair->arena, metrics->max_abs, PLUMB_F64, pair->options->precision);
    }
    row->status = within ? STATUS_PASS : STATUS_ERROR;
    row->message =
        arena_printf(pair->arena, "quantized integers: maximum absolute error %s is %s %g",
                     row->cell[CELL_MAX_ABS] ? row->cell[CELL_MAX_ABS] : "",
                     within ? "at most" : "above", limit);
}

enum plumb_code judge_integers(const struct judge_pair *pair)
{
    struct details_row *row = pair->row;
    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    plumb_metric_spec_init(&spec);
    if (plumb_metric_pair(&spec, pair->device, pair->bench, &metrics, NULL))
        return PLUMB_E_NOMEM;

    double rate = (double)metrics.unequal / (double)metrics.count;
    const char *rate_text = cell_number(pair->arena, rate, PLUMB_F64, pair->options->precision);
    if (is_quantized(pair->options, pair->api)) {
        judge_quantized(pair, &metrics);
        if (pair->options->rules->base == RULES_DOCUMENTED)
            row->cell[CELL_BINARY] = rate_text;
    } else {
        row->cell[CELL_BINARY] = rate_text;
        row->status = metrics.unequal ? STATUS_ERROR : STATUS_PASS;
        row->message = arena_printf(pair->arena,
                                    "binary consistency: %" PRIu64 " of %" PRIu64
                                    " values differ; the limit is 0",
                                    metrics.unequal, metrics.count);
    }
    return row->message ? PLUMB_OK : PLUMB_E_NOMEM;
}
