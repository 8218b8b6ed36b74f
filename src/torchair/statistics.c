#define _GNU_SOURCE
#include "torchair/statistics.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT64_MAX

bool statistics_only(const struct air_side *side)
{
    if (side->tensor)
        return side->tensor->recorded != NULL;
    return side->path && !side->op && ge_is_condensed(side->path);
}

static void set_number(struct plumb_value *value, double number)
{
    *value = (struct plumb_value){.kind = PLUMB_VALUE_NUMBER, .number = number};
}

/* A script that kept ranges only threw the shapes away. */
static bool is_known(const struct plumb_recorded *recorded)
{
    return strcmp(recorded->shape, "unknown") != 0;
}

static uint64_t count_of(const struct ge_tensor *tensor)
{
    uint64_t count = 1;
    for (unsigned i = 0; i < tensor->shape.rank; i++)
        count *= tensor->shape.dim[i];
    return is_known(tensor->recorded) ? count : UNKNOWN;
}

/* Texts belong to whom they were read from, and are not needed. */
static void take_recorded(struct plumb_value *out, const struct plumb_recorded *recorded)
{
    for (int i = 0; i < PLUMB_STATISTICS; i++)
        if (recorded->statistic[i].kind == PLUMB_VALUE_NUMBER)
            set_number(&out[i], recorded->statistic[i].number);
}

static void take_payload(struct plumb_value *out, const struct plumb_tensor *tensor)
{
    struct plumb_stats stats;
    plumb_tensor_stats(tensor, &stats);
    if (!stats.count)
        return;
    set_number(&out[PLUMB_STATISTIC_MAX], stats.max);
    set_number(&out[PLUMB_STATISTIC_MIN], stats.min);
    set_number(&out[PLUMB_STATISTIC_MEAN], stats.mean);
    set_number(&out[PLUMB_STATISTIC_NORM], stats.norm);
}

static enum plumb_code show(struct air_shown *shown, const char *dtype, const char *shape,
                            const struct plumb_value *values, struct plumb_error *err)
{
    if (dtype)
        shown->dtype = dtype;
    shown->shape = strdup(shape);
    if (!shown->shape)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    shown->counted = values[PLUMB_STATISTIC_MEAN].kind == PLUMB_VALUE_NUMBER;
    shown->max = values[PLUMB_STATISTIC_MAX].number;
    shown->min = values[PLUMB_STATISTIC_MIN].number;
    shown->mean = values[PLUMB_STATISTIC_MEAN].number;
    return PLUMB_OK;
}

/* The statistics of a condensed FX file. */
static enum plumb_code read_fx(const char *path, struct plumb_value *values, uint64_t *count,
                               struct air_shown *shown, struct plumb_error *err)
{
    struct plumb_run *run;
    enum plumb_code code = plumb_run_open(&run, path, err);
    if (code)
        return code;
    const struct plumb_record *record = plumb_run_record(run, 0);
    if (plumb_run_count(run) != 1)
        code = plumb_fail(err, PLUMB_E_FORMAT, "%zu tensors where an FX file has one",
                          plumb_run_count(run));
    else if (record->error)
        code = record->error->code;
    else if (!record->recorded)
        code = plumb_fail(err, PLUMB_E_FORMAT, "neither an FX file nor what was condensed of one");
    if (!code) {
        *count = is_known(record->recorded) ? record->count : UNKNOWN;
        take_recorded(values, record->recorded);
        code = show(shown, plumb_dtype_info(record->dtype)->name, record->recorded->shape, values,
                    err);
    } else if (record && record->error) {
        *err = *record->error;
    }
    plumb_error_in_file(err, path);
    plumb_run_free(run);
    return code;
}

static enum plumb_code take_side(const struct air_side *side, const struct plumb_payload *payload,
                                 struct plumb_value *values, uint64_t *count,
                                 struct air_shown *shown, struct plumb_error *err)
{
    char text[256];
    if (side->tensor && side->tensor->recorded) {
        *count = count_of(side->tensor);
        take_recorded(values, side->tensor->recorded);
        return show(shown, side->tensor->recorded->dtype, side->tensor->recorded->shape, values,
                    err);
    }
    if (statistics_only(side))
        return read_fx(side->path, values, count, shown, err);
    *count = payload->tensor.count;
    take_payload(values, &payload->tensor);
    return show(shown, NULL, plumb_shape_text(&payload->tensor, text, sizeof text), values, err);
}

enum plumb_code statistics_compare(const struct measurement *measurement, size_t row,
                                   const struct plumb_payload *payloads, struct plumb_error *err)
{
    const struct air_row *what = &measurement->rows[row];
    const struct air_side *sides[2] = {&what->target, &what->golden};
    struct air_result *result = &measurement->results[row];
    struct plumb_value values[2][PLUMB_STATISTICS] = {0};
    uint64_t counts[2];
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = take_side(sides[i], &payloads[i], values[i], &counts[i], &result->shown[i], err);
    if (code)
        return code;
    if (counts[0] != counts[1] && counts[0] != UNKNOWN && counts[1] != UNKNOWN)
        return plumb_fail(err, PLUMB_E_ARG, "the shapes differ: target %s, golden %s",
                          result->shown[0].shape, result->shown[1].shape);
    result->by_statistics = true;
    if (!counts[0] && !counts[1]) {
        result->compared = true;
        result->verdict = (struct plumb_verdict){PLUMB_NORMAL, "no elements to compare"};
        return PLUMB_OK;
    }
    struct comparison comparison = {.stat_limit = measurement->stat_limit};
    struct row judged = {0};
    compare_judge_statistics(&comparison, &judged, values[0], values[1], result->differences);
    result->compared = judged.compared;
    result->verdict = judged.verdict;
    result->distance = judged.distance;
    result->max_rel = judged.max_rel;
    result->problem = judged.problem;
    return PLUMB_OK;
}
