/* Float and complex outputs by the documented rules: every column, and a verdict. */
#include "verdict/cells.h"
#include "verdict/ladder.h"
#include "verdict/precheck_parts.h"
#include "verdict/tally.h"

#include <math.h>
#include <stdlib.h>

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* All columns. An error that cannot be measured makes NaN or infinity of those that have no place
 * for exceptions. */
static void fill_cells(const struct judge_pair *pair, const struct tally *tally,
                       const struct plumb_metrics *metrics, const struct ladder *ladder)
{
    uint64_t n = tally->count, aside = tally->equal + tally->unlike;
    uint64_t small = tally->small - aside, kept = tally->normal;
    uint64_t balance =
        tally->above > tally->below ? tally->above - tally->below : tally->below - tally->above;
    double correction = (double)n / ((double)kept + 0.0001) + 0.0001;
    double mean_square = exact_round(&tally->squares) / (double)n;
    bool fp8 = standard_is_fp8(pair->device->dtype);
    double spoilt = tally->unlike_nan ? NAN : INFINITY;
    double max_ulp = fp8 ? tally->max_ulp : metrics->max_ulp;
    double mean_ulp = fp8 ? exact_round(&tally->ulp) / (double)n : metrics->mean_ulp;
    uint64_t ulp_over = fp8 ? tally->ulp_over : metrics->ulp_over;

    const double value[CELL_COUNT] = {
        [CELL_COSINE] = ladder->cosine,
        [CELL_MAX_ABS] = ladder->max_abs,
        [CELL_DUAL_100] = ladder->dual[DUAL_100],
        [CELL_DUAL_1000] = ladder->dual[DUAL_1000],
        [CELL_DUAL_10000] = ladder->dual[DUAL_10000],
        [CELL_BINARY] = share(tally->differ + tally->unlike, n),
        [CELL_BALANCE] = share(balance, n),
        [CELL_RMSE] = sqrt(mean_square * correction),
        [CELL_SMALL] = share(tally->small_errors, small),
        [CELL_MAX_REL] = tally->max_rel,
        [CELL_MEAN_REL] = kept ? exact_round(&tally->rel) / (double)kept : 0,
        [CELL_INF_NAN] = share(tally->unlike, n),
        [CELL_REL_RATE] = share(tally->normal_errors, kept),
        [CELL_ABS_RATE] = share(tally->absolute_errors, small),
        [CELL_ULP_MAX] = tally->unlike ? spoilt : max_ulp,
        [CELL_ULP_MEAN] = tally->unlike ? spoilt : mean_ulp,
        [CELL_ULP_RATE] = share(ulp_over + tally->unlike, n),
    };
    for (int i = 0; i < CELL_COUNT; i++)
        if (i != CELL_COSINE || ladder->which == COSINE_GIVEN || ladder->which == COSINE_NAN)
            pair->row->cell[i] =
                cell_number(pair->arena, value[i], PLUMB_F64, pair->options->precision);
}

/* 8-bit floats: a tenth of a percent is less than their last digit, so dual ratios say nothing. */
static void judge_ulps(const struct judge_pair *pair, double rate)
{
    const struct standard_limits *limits =
        standard_limits(pair->options->rules, pair->device->dtype);
    const bool good = rate < limits->ulp_share;
    pair->row->status = good ? STATUS_PASS : STATUS_ERROR;
    pair->row->message =
        arena_printf(pair->arena, "proportion of ULP errors over %g: %.6g is %s %g",
                     limits->ulp_threshold, rate, good ? "below" : "not below", limits->ulp_share);
}

static enum plumb_code verdict(const struct judge_pair *pair, const struct tally *tally,
                               const struct ladder *ladder)
{
    struct details_row *row = pair->row;
    unsigned long long n = tally->count;
    enum ladder_step end;
    if (tally->unlike) {
        row->status = STATUS_ERROR;
        row->message = arena_printf(pair->arena,
                                    "%llu of %llu values are NaN or infinite on one side only, or "
                                    "infinities of opposite sign; the limit is 0",
                                    (unsigned long long)tally->unlike, n);
    } else if (standard_of_api(pair->options->rules, pair->api) == STANDARD_BINARY &&
               !(pair->options->gradient && standard_adds_gradients(pair->api)) &&
               !(pair->options->complex_input && standard_rounds_complex(pair->api))) {
        row->status = tally->differ ? STATUS_ERROR : STATUS_PASS;
        row->message = arena_printf(pair->arena,
                                    "binary consistency: %llu of %llu values differ from the "
                                    "benchmark in the device's type; the limit is 0",
                                    (unsigned long long)tally->differ, n);
    } else if (tally->equal == tally->count) {
        row->status = STATUS_PASS;
        row->message = arena_printf(
            pair->arena, "all %llu values are NaN or infinite, and the same on both sides", n);
    } else if (standard_is_fp8(pair->device->dtype)) {
        judge_ulps(pair, share(tally->ulp_over, n));
    } else if (!ladder_climb(ladder, pair->arena, row, &end)) {
        return PLUMB_E_NOMEM;
    }
    return row->message ? PLUMB_OK : PLUMB_E_NOMEM;
}

enum plumb_code judge_documented_float(const struct judge_pair *pair)
{
    struct tally *tally = calloc(1, sizeof *tally);
    enum plumb_code code = tally ? tally_pair(tally, pair) : PLUMB_E_NOMEM;
    if (code)
        goto out;

    struct plumb_metrics metrics;
    plumb_metric_finish(tally->engine, &metrics);
    bool unlike = tally->unlike > 0;
    double cosine = unlike ? NAN : metrics.cosine;
    struct ladder ladder = {
        .rules = pair->options->rules,
        .half = plumb_dtype_info(pair->device->dtype)->bits <= 16,
        .which = cosine_case(tally->count, !tally->device_big, !tally->bench_big, cosine),
        .cosine = cosine,
        .max_abs = !unlike             ? metrics.max_abs
                   : tally->unlike_nan ? NAN
                                       : INFINITY,
        .most = fmax(tally->device_most, tally->bench_most),
    };
    /* What should cancel out leaves a few units of the last place of 1. And where one side is just
     * above what is as good as zero, and the other just below, they are still the same. */
    const double allowed = ldexp(64, -(int)plumb_dtype_info(tally->part)->precision);
    if ((ladder.which == COSINE_BENCH_ZERO && ladder.max_abs <= allowed) ||
        (ladder.which == COSINE_DEVICE_ZERO && ladder.max_abs <= tally->zero / 64)) {
        ladder.which = COSINE_BOTH_ZERO;
        ladder.most += ladder.max_abs;
    }
    for (int i = 0; i < DUALS; i++)
        ladder.dual[i] = share(tally->under[i] - tally->unlike, tally->count);
    fill_cells(pair, tally, &metrics, &ladder);
    code = verdict(pair, tally, &ladder);
out:
    if (tally)
        tally_destroy(tally);
    free(tally);
    return code;
}
