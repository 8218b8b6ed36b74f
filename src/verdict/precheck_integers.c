/* Integers and bool: equal, or within the limit of quantized ones. */
#include "verdict/cells.h"
#include "verdict/profile.h"

#include <inttypes.h>
#include <string.h>

static bool is_quantized(const struct judge_options *options, const char *api)
{
    for (const char *const *name = options->quantized; name && *name; name++)
        if (strcmp(*name, api) == 0)
            return true;
    return false;
}

void judge_quantized_row(const struct judge_pair *pair, bool within)
{
    struct details_row *row = pair->row;
    row->status = within ? STATUS_PASS : STATUS_ERROR;
    row->message =
        arena_printf(pair->arena, "quantized integers: maximum absolute error %s is %s %g",
                     row->cell[CELL_MAX_ABS] ? row->cell[CELL_MAX_ABS] : "",
                     within ? "at most" : "above", pair->options->rules->quantized);
}

void judge_documented_quantized(const struct judge_pair *pair, const struct plumb_metrics *metrics,
                                const char *rate)
{
    pair->row->cell[CELL_MAX_ABS] =
        cell_number(pair->arena, metrics->max_abs, PLUMB_F64, pair->options->precision);
    judge_quantized_row(pair, metrics->max_abs <= pair->options->rules->quantized);
    pair->row->cell[CELL_BINARY] = rate;
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
        pair->options->rules->profile->judge->quantized(pair, &metrics, rate_text);
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
