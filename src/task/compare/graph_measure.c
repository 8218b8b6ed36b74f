/* The rows of a graph dump: values, metrics and verdicts, on several threads. */
#define _GNU_SOURCE
#include "task/compare/graph_measure.h"

#include "base/mapped.h"
#include "base/pool.h"
#include "pair/air.h"
#include "task/compare/graph_statistics.h"
#include "verdict/decide.h"
#include "verdict/rules.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What most pairs are compared by. */
static enum layout_kind choose_layout(const struct measurement *measurement)
{
    size_t pairs = 0, condensed = 0;
    const struct air_side *first = NULL;
    for (size_t i = 0; i < measurement->count; i++) {
        const struct air_row *row = &measurement->rows[i];
        bool target = row->kind == AIR_PAIR && statistics_only(&row->target);
        bool golden = row->kind == AIR_PAIR && statistics_only(&row->golden);
        pairs += row->kind == AIR_PAIR;
        condensed += target || golden;
        if (!first && (target || golden))
            first = target ? &row->target : &row->golden;
    }
    if (!condensed || condensed * 2 < pairs)
        return LAYOUT_TENSORS;
    return statistics_are_checksums(first) ? LAYOUT_CHECKSUMS : LAYOUT_STATISTICS;
}

enum plumb_code measure_prepare(struct measurement *measurement, struct plumb_error *err)
{
    const struct plumb_torchair_options *options = measurement->options;
    struct plumb_compare_options columns = {
        .metrics = options->metrics, .wide = options->wide, .reasons = true};
    measurement->kind = choose_layout(measurement);
    enum plumb_code code = layout_init(&measurement->layout, PLUMB_COLUMNS_TORCHAIR,
                                       measurement->kind, false, false, &columns, err);
    if (code)
        return code;
    layout_add_places(&measurement->layout);
    struct plumb_metric_spec *spec = &measurement->spec;
    plumb_metric_spec_init(spec);
    plumb_standard_spec(measurement->standards->values, spec);
    if (plumb_standard_jump(measurement->standards->values) > 0)
        spec->groups |= PLUMB_G_RELATIVE;
    spec->groups |=
        measurement->columns ? measurement->columns->groups : measurement->layout.groups;
    if (measurement->profile->relative)
        spec->relative = measurement->profile->relative;
    return PLUMB_OK;
}

/* -- One row ----------------------------------------------------------------------------------- */

/* The real parts of a complex tensor. */
static void take_real(struct plumb_tensor *tensor)
{
    if (plumb_dtype_parts(tensor->dtype) == 1)
        return;
    tensor->dtype = tensor->dtype == PLUMB_C64 ? PLUMB_F32 : PLUMB_F64;
    for (unsigned i = 0; i < tensor->rank; i++)
        tensor->stride[i] *= 2;
    tensor->dense = tensor->rank == 0 || tensor->count <= 1;
}

static enum plumb_code load_side(const struct measurement *measurement, const struct air_side *side,
                                 struct plumb_payload *payload, const char **dtype,
                                 struct plumb_error *err)
{
    static const struct ge_reading usual = {0};
    const struct graph_profile *profile = measurement->profile;
    const struct ge_reading *reading = profile->rules.reading ? profile->rules.reading : &usual;
    enum plumb_code code;
    *dtype = NULL;
    if (side->assumed) {
        *payload = (struct plumb_payload){0};
        *dtype = "float32";
        return plumb_tensor_init(&payload->tensor, PLUMB_F32, 1, (const int64_t[]){0}, err);
    }
    if (side->tensor) {
        *dtype = ge_dtype_shown(side->tensor, reading);
        code = ge_load(side->op->ge, side->tensor, reading, payload, err);
    } else {
        code = air_load_fx(side->path, payload, err);
        if (!code)
            *dtype = plumb_dtype_info(payload->tensor.dtype)->name;
    }
    if (!code && profile->real_parts)
        take_real(&payload->tensor);
    return code;
}

/* As float32, which is how tables show what was measured. */
static double single(double value)
{
    return (double)(float)value;
}

static void show_stats(struct air_shown *shown, const struct plumb_stats *stats)
{
    shown->counted = stats->count > 0;
    shown->max = single(stats->max);
    shown->min = single(stats->min);
    shown->mean = single(stats->mean);
}

static void take_metrics(const struct measurement *measurement, size_t row,
                         const struct plumb_metrics *metrics)
{
    struct air_result *result = &measurement->results[row];
    const struct layout *layout = &measurement->layout;
    double *values = measurement->values + row * layout->metric_count;
    result->compared = true;
    result->integers = metrics->integers;
    result->distance = metrics->relative_euclidean;
    result->max_rel = metrics->max_rel;
    for (size_t i = 0; i < layout->metric_count; i++)
        values[i] = layout->metrics[i]->value(metrics);
    if (metrics->count)
        plumb_standard_judge(measurement->standards->values, metrics, &result->verdict);
    else
        verdict_empty(&result->verdict);
    result->crc[0] = metrics->target_crc;
    result->crc[1] = metrics->golden_crc;
    double single_metrics[AIR_METRICS] = {
        [AIR_COSINE] = round(metrics->cosine * 1e10) / 1e10,
        [AIR_MAX_REL] = metrics->max_rel,
        [AIR_MEAN_REL] = single(metrics->mean_rel),
        [AIR_MAX_ABS] = single(metrics->max_abs),
        [AIR_MEAN_ABS] = single(metrics->mean_abs),
        [AIR_KL] = single(metrics->kl),
        [AIR_REL_EUCLIDEAN] = single(metrics->relative_euclidean),
    };
    memcpy(result->metric, single_metrics, sizeof result->metric);
    const struct plumb_histogram *histograms[] = {&metrics->abs_histogram, &metrics->rel_histogram,
                                                  &metrics->ulp_histogram};
    for (int k = 0; k < 3 && measurement->spec.groups & PLUMB_G_HISTOGRAM; k++)
        result->histogram[k] = compare_histogram(histograms[k]);
}

/* Does the payload have the shape of the tensor, be it the one it had before the layout was? */
static bool has_original_shape(const struct ge_tensor *tensor, const struct plumb_tensor *other)
{
    struct plumb_tensor original;
    int64_t dims[PLUMB_MAX_RANK];
    if (!tensor || !tensor->original.rank || tensor->original.rank > PLUMB_MAX_RANK)
        return false;
    for (unsigned i = 0; i < tensor->original.rank; i++) {
        if (tensor->original.dim[i] > INT64_MAX)
            return false;
        dims[i] = (int64_t)tensor->original.dim[i];
    }
    return !plumb_tensor_init(&original, other->dtype, tensor->original.rank, dims, NULL) &&
           plumb_shape_equivalent(&original, other);
}

/* Equal values in another order, or as another kind of number, are not the same tensor. */
static enum plumb_code check_likeness(const struct air_row *row, const struct plumb_tensor *target,
                                      const struct plumb_tensor *golden,
                                      enum plumb_trouble *obstacle, struct plumb_error *err)
{
    char text[2][256];
    /* A conversion changes the kind by purpose; a bare number has none of its own. */
    bool number = !row->golden.op && golden->rank == 0 && row->target.tensor &&
                  row->target.tensor->part == GE_INPUT;
    bool converts = number || (row->golden.op && row->golden.op == row->target.op);
    if (!plumb_shape_equivalent(target, golden) &&
        !has_original_shape(row->target.tensor, golden) &&
        !has_original_shape(row->golden.tensor, target)) {
        *obstacle = PLUMB_TROUBLE_SHAPE;
        return plumb_fail(err, PLUMB_E_ARG, "the shapes differ: target %s, golden %s",
                          plumb_shape_text(target, text[0], sizeof text[0]),
                          plumb_shape_text(golden, text[1], sizeof text[1]));
    }
    if (!converts && !compare_same_kind(target->dtype, golden->dtype)) {
        *obstacle = PLUMB_TROUBLE_TYPE;
        return plumb_fail(
            err, PLUMB_E_ARG, "the types are of different kinds: target %s, golden %s",
            plumb_dtype_info(target->dtype)->name, plumb_dtype_info(golden->dtype)->name);
    }
    return PLUMB_OK;
}

static enum plumb_code compare_two(const struct measurement *measurement, size_t row,
                                   const struct plumb_payload *payloads, struct plumb_error *err)
{
    struct air_result *result = &measurement->results[row];
    const struct plumb_tensor *target = &payloads[0].tensor, *golden = &payloads[1].tensor;
    const struct plumb_torchair_options *options = measurement->options;
    bool same_count = target->count == golden->count;
    struct plumb_metrics metrics;
    char text[2][256];
    if (same_count) {
        enum plumb_code code = plumb_metric_pair(&measurement->spec, target, golden, &metrics, err);
        if (code)
            return code;
        take_metrics(measurement, row, &metrics);
    }
    bool stats_shown = measurement->columns || measurement->profile->settle;
    for (int i = 0; i < 2 && (stats_shown || options->wide); i++) {
        struct plumb_stats stats;
        result->shown[i].shape =
            strdup(plumb_shape_text(&payloads[i].tensor, text[i], sizeof text[i]));
        if (!result->shown[i].shape)
            return plumb_no_memory(err);
        if (!stats_shown)
            continue;
        if (same_count && measurement->spec.groups & PLUMB_G_STATS)
            stats = i ? metrics.golden : metrics.target;
        else
            plumb_tensor_stats(&payloads[i].tensor, &stats);
        show_stats(&result->shown[i], &stats);
    }
    if (!measurement->profile->settle)
        return check_likeness(&measurement->rows[row], target, golden, &result->obstacle, err);
    result->dropped =
        measurement->profile->settle(result->metric, result->shown, same_count, target->count);
    if (same_count)
        return PLUMB_OK;
    result->obstacle = PLUMB_TROUBLE_SHAPE;
    return plumb_fail(err, PLUMB_E_ARG, "the shapes differ: target %s, golden %s",
                      plumb_shape_text(target, text[0], sizeof text[0]),
                      plumb_shape_text(golden, text[1], sizeof text[1]));
}

static void measure_row(const struct measurement *measurement, size_t row)
{
    const struct air_row *what = &measurement->rows[row];
    const struct air_side *sides[2] = {&what->target, &what->golden};
    struct air_result *result = &measurement->results[row];
    struct plumb_payload payloads[2] = {0};
    struct plumb_error err;
    struct plumb_file_guard guard[2];
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < AIR_METRICS; i++)
        result->metric[i] = NAN;
    result->obstacle = PLUMB_TROUBLE_UNREADABLE; /* of all that goes wrong, the usual */
    if (what->kind != AIR_PAIR)
        return;
    bool by_statistics = statistics_only(sides[0]) || statistics_only(sides[1]);
    for (int i = 0; i < 2 && !code; i++)
        if (!statistics_only(sides[i]))
            code = load_side(measurement, sides[i], &payloads[i], &result->shown[i].dtype, &err);
    if (!code) {
        plumb_file_guard_enter(&guard[0], &payloads[0].file);
        plumb_file_guard_enter(&guard[1], &payloads[1].file);
        code = by_statistics ? statistics_compare(measurement, row, payloads, &err)
                             : compare_two(measurement, row, payloads, &err);
        for (int i = 1; i >= 0; i--)
            if (plumb_file_guard_leave(&guard[i])) {
                code = mapped_fail_shrank(&err);
                plumb_error_in_file(&err, sides[i]->path);
            }
    }
    if (code) {
        char text[900];
        result->compared = false;
        result->problem = strdup(plumb_error_text(&err, text, sizeof text));
    }
    if (what->loose && (code || result->verdict.severity == PLUMB_FAILED)) {
        result->compared = false;
        result->alone = true;
    }
    plumb_payload_release(&payloads[0]);
    plumb_payload_release(&payloads[1]);
}

/* -- All rows ---------------------------------------------------------------------------------- */

struct session {
    struct measurement *measurement;
    pthread_mutex_t lock;
    uint64_t done;
};

static void work(void *context, size_t row, unsigned thread)
{
    struct session *session = context;
    const struct plumb_torchair_options *options = session->measurement->options;
    (void)thread;
    measure_row(session->measurement, row);
    if (!options->progress)
        return;
    pthread_mutex_lock(&session->lock);
    options->progress(options->progress_context, ++session->done, session->measurement->count);
    pthread_mutex_unlock(&session->lock);
}

static bool is_of(const struct air_row *row, const struct air_op *op, enum ge_part part)
{
    return row->kind == AIR_PAIR && row->target.op == op && row->target.tensor &&
           row->target.tensor->part == part;
}

/* An operator whose outputs are much further off than its inputs were is where to look. Its rows
 * follow each other. */
static void mark_jumps(struct measurement *measurement)
{
    const struct plumb_standard *standard = measurement->standards->values;
    const struct air_row *rows = measurement->rows;
    for (size_t first = 0, end; first < measurement->count; first = end) {
        const struct air_op *op = rows[first].target.op;
        double worst = 0;
        for (end = first; end < measurement->count && rows[end].target.op == op; end++)
            if (op && is_of(&rows[end], op, GE_INPUT) && measurement->results[end].compared &&
                measurement->results[end].max_rel > worst)
                worst = measurement->results[end].max_rel;
        for (size_t i = first; i < end; i++) {
            struct air_result *result = &measurement->results[i];
            if (is_of(&rows[i], op, GE_OUTPUT) && result->compared)
                standard_judge_jump(standard, result->max_rel, worst, &result->verdict);
        }
    }
}

enum plumb_code measure_rows(struct measurement *measurement, struct plumb_error *err)
{
    size_t metrics = measurement->layout.metric_count;
    struct session session = {.measurement = measurement, .lock = PTHREAD_MUTEX_INITIALIZER};
    measurement->results = calloc(measurement->count + 1, sizeof *measurement->results);
    measurement->values = calloc(measurement->count * metrics + 1, sizeof *measurement->values);
    if (!measurement->results || !measurement->values)
        return plumb_no_memory(err);
    unsigned threads = measurement->options->threads;
    pool_run(threads ? threads : pool_default_threads(), measurement->count, work, &session);
    mark_jumps(measurement);
    return PLUMB_OK;
}

void measure_free(struct measurement *measurement)
{
    for (size_t i = 0; measurement->results && i < measurement->count; i++) {
        struct air_result *result = &measurement->results[i];
        for (int k = 0; k < 3; k++)
            free(result->histogram[k]);
        free(result->shown[0].shape);
        free(result->shown[1].shape);
        free(result->problem);
    }
    free(measurement->results);
    free(measurement->values);
    measurement->results = NULL;
    measurement->values = NULL;
}

const char *measure_reason(const struct measurement *measurement, size_t row)
{
    const struct air_row *what = &measurement->rows[row];
    const struct air_result *result = &measurement->results[row];
    if (what->kind != AIR_PAIR)
        return what->why;
    if (result->alone)
        return "an argument of the FX node that is not what the constant here holds";
    if (result->compared)
        return result->verdict.rule;
    return result->problem ? result->problem : "out of memory";
}

bool measure_alone(const struct measurement *measurement, size_t row)
{
    return measurement->rows[row].kind == AIR_ALONE || measurement->results[row].alone;
}

enum plumb_severity measure_severity(const struct measurement *measurement, size_t row)
{
    const struct air_result *result = &measurement->results[row];
    if (measure_alone(measurement, row))
        return PLUMB_SUSPICIOUS;
    return result->compared ? result->verdict.severity : PLUMB_FAILED;
}
