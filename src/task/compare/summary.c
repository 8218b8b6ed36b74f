/* The table of plumb summary: a row a tensor, computed or recorded. */
#define _GNU_SOURCE
#include "metric/pack.h"
#include "task/compare/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct result {
    bool done;
    struct plumb_stats stats;
    struct ends ends;
    char shape[64];
    char *problem; /* malloc: why it could not be read; NULL when out of memory */
};

struct summary {
    struct kernels kernels;
    struct result *results;
};

static void *empty(const void *kernels, const struct plumb_tensor tensors[2])
{
    (void)kernels, (void)tensors;
    return calloc(1, sizeof(struct stats_state));
}

static void *part(const void *kernels, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count)
{
    struct stats_state *state = empty(kernels, NULL);
    if (state && payloads[0].tensor.count)
        stats_tensor(state, kernels, &payloads[0].tensor, first, count);
    return state;
}

static void pack_kernels(struct pack *pack, void *kernels)
{
    (void)pack;
    *(struct kernels *)kernels = kernels_current();
}

static void pack_state(struct pack *pack, void *state)
{
    metric_pack_stats(pack, state);
}

static void merge(void *state, const void *other)
{
    stats_merge(state, other);
}

const struct walk_kind walk_summary = {.name = "summary",
                                       .shared_size = sizeof(struct kernels),
                                       .part = part,
                                       .merge = merge,
                                       .release = free,
                                       .pack_shared = pack_kernels,
                                       .empty = empty,
                                       .pack_state = pack_state};

static void finish(void *context, size_t item, const struct plumb_payload *payloads, void *state,
                   const struct plumb_error *err)
{
    const struct summary *summary = context;
    struct result *result = &summary->results[item];
    if (err) {
        char text[800];
        result->problem = strdup(plumb_error_text(err, text, sizeof text));
        return;
    }
    result->done = true;
    stats_finish(state, &result->stats);
    result->ends = ((const struct stats_state *)state)->ends;
    plumb_shape_text(&payloads[0].tensor, result->shape, sizeof result->shape);
}

enum column {
    INDEX,
    STEP,
    RANK,
    MODULE,
    MIN,
    MAX,
    MEAN,
    STD,
    NORMAL_COLUMNS,
    DTYPE = NORMAL_COLUMNS,
    SHAPE,
    NORM,
    NANS,
    INFS,
    PROBLEM,
    ALL_COLUMNS
};

static const struct plumb_column columns[ALL_COLUMNS] = {
    [INDEX] = {"Index", PLUMB_STYLE_TEXT, false, false},
    [STEP] = {"Step", PLUMB_STYLE_TEXT, false, false},
    [RANK] = {"Rank", PLUMB_STYLE_TEXT, false, false},
    [MODULE] = {"Module", PLUMB_STYLE_TEXT, true, true},
    [MIN] = {"Min", PLUMB_STYLE_REPR, false, false},
    [MAX] = {"Max", PLUMB_STYLE_REPR, false, false},
    [MEAN] = {"Mean", PLUMB_STYLE_REPR, false, false},
    [STD] = {"Std", PLUMB_STYLE_REPR, false, false},
    [DTYPE] = {"Dtype", PLUMB_STYLE_TEXT, true, false},
    [SHAPE] = {"Shape", PLUMB_STYLE_TEXT, true, false},
    [NORM] = {"L2norm", PLUMB_STYLE_REPR, false, false},
    [NANS] = {"NaN", PLUMB_STYLE_TEXT, false, false},
    [INFS] = {"Inf", PLUMB_STYLE_TEXT, false, false},
    [PROBLEM] = {"Problem", PLUMB_STYLE_TEXT, true, true},
};

/* A value that is no number is shown as it was written, as is an integer that float64 does not
 * hold. */
static bool set_value(struct plumb_table *table, size_t column, const struct plumb_value *value)
{
    bool integer = value->kind == PLUMB_VALUE_NUMBER && value->text &&
                   !(fabs(value->number) < 0x1p53) &&
                   !value->text[strspn(value->text, "-0123456789")];
    if (value->kind == PLUMB_VALUE_WORD || integer)
        return plumb_table_text(table, column, value->text);
    if (value->kind == PLUMB_VALUE_NUMBER)
        plumb_table_real(table, column, value->number);
    return true;
}

static bool set_recorded(struct plumb_table *table, size_t column,
                         const struct plumb_recorded *recorded, enum plumb_statistic which)
{
    const struct plumb_value value = plumb_recorded_statistic(recorded, which);
    return set_value(table, column, &value);
}

static bool set_end(struct plumb_table *table, size_t column, const struct ends *ends,
                    uint64_t bits, double value)
{
    char text[ENDS_BYTES];
    if (!ends_needed(ends)) {
        plumb_table_real(table, column, value);
        return true;
    }
    ends_text(ends->dtype, bits, text);
    return plumb_table_text(table, column, text);
}

/* What a capture wrote down, where there is no payload. */
static bool add_recorded(struct plumb_table *table, const struct plumb_record *record, bool wide)
{
    const struct plumb_recorded *recorded = record->recorded;
    const struct plumb_kept *kept = plumb_recorded_kept(recorded);
    bool ok = true;
    if (recorded->tensor)
        ok = set_recorded(table, MIN, recorded, PLUMB_STATISTIC_MIN) &&
             set_recorded(table, MAX, recorded, PLUMB_STATISTIC_MAX) &&
             set_recorded(table, MEAN, recorded, PLUMB_STATISTIC_MEAN) &&
             (!kept || set_value(table, STD, &kept->deviation)) &&
             (!wide || set_recorded(table, NORM, recorded, PLUMB_STATISTIC_NORM));
    else if (recorded->value)
        ok = plumb_table_text(table, MIN, recorded->value) &&
             plumb_table_text(table, MAX, recorded->value);
    if (wide && kept) {
        plumb_table_int(table, NANS, (int64_t)kept->nan);
        plumb_table_int(table, INFS, (int64_t)(kept->pos_inf + kept->neg_inf));
    }
    return ok && (!wide || (plumb_table_text(table, DTYPE, recorded->dtype) &&
                            plumb_table_text(table, SHAPE, recorded->shape)));
}

static bool is_odd(const struct plumb_record *record)
{
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++) {
        const struct plumb_value value = plumb_recorded_statistic(record->recorded, i);
        if (value.kind == PLUMB_VALUE_NUMBER && !isfinite(value.number))
            return true;
    }
    return false;
}

static bool is_recorded_only(const struct plumb_record *record)
{
    return record->absent && record->recorded && !record->error;
}

static void step_or_rank(struct plumb_table *table, size_t column, int64_t value)
{
    if (value >= 0)
        plumb_table_int(table, column, value);
}

/* What cannot be read says so in the row: in the column for it, or where the numbers would be. */
static bool add_row(struct plumb_table *table, size_t index, const struct plumb_record *record,
                    const struct result *result, bool wide)
{
    const struct plumb_stats *stats = &result->stats;
    bool noted = is_recorded_only(record);
    if (noted && !plumb_table_add_row(table, is_odd(record) ? PLUMB_SUSPICIOUS : PLUMB_NORMAL))
        return false;
    bool odd = !result->done || stats->nan || stats->pos_inf || stats->neg_inf;
    if (!noted && !plumb_table_add_row(table, !result->done ? PLUMB_FAILED
                                              : odd         ? PLUMB_SUSPICIOUS
                                                            : PLUMB_NORMAL))
        return false;
    plumb_table_int(table, INDEX, (int64_t)index);
    step_or_rank(table, STEP, record->step);
    step_or_rank(table, RANK, record->rank);
    bool ok = plumb_table_text(table, MODULE, record->name);
    if (noted)
        return ok && add_recorded(table, record, wide);
    if (!result->done) {
        const char *text = result->problem ? result->problem : "out of memory";
        for (size_t column = MIN; column <= STD; column++)
            ok = ok && plumb_table_text(table, column, "N/A");
        return ok && (!wide || plumb_table_text(table, PROBLEM, text));
    }
    if (stats->count) {
        ok = ok && set_end(table, MIN, &result->ends, ends_min(&result->ends), stats->min) &&
             set_end(table, MAX, &result->ends, ends_max(&result->ends), stats->max);
        plumb_table_real(table, MEAN, stats->mean);
        plumb_table_real(table, STD, stats->std);
    }
    if (wide) {
        ok = ok &&
             plumb_table_text(table, DTYPE,
                              record->recorded ? record->recorded->dtype
                                               : plumb_dtype_info(record->dtype)->name) &&
             plumb_table_text(table, SHAPE, result->shape);
        plumb_table_real(table, NORM, stats->norm);
        plumb_table_int(table, NANS, (int64_t)stats->nan);
        plumb_table_int(table, INFS, (int64_t)(stats->pos_inf + stats->neg_inf));
    }
    return ok;
}

enum plumb_code plumb_summary(struct plumb_table **table, size_t *unreadable,
                              const struct plumb_run *run,
                              const struct plumb_summary_options *options, struct plumb_error *err)
{
    size_t count = plumb_run_count(run);
    struct summary summary = {.kernels = kernels_current()};
    struct walk_item *items = calloc(count ? count : 1, sizeof *items);
    struct plumb_table *made = NULL;
    enum plumb_code code = PLUMB_E_NOMEM;
    summary.results = calloc(count ? count : 1, sizeof *summary.results);
    if (!items || !summary.results)
        goto out;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct walk_item){.side = {{run, i}},
                                      .sides = !is_recorded_only(plumb_run_record(run, i))};

    struct walk walk = {.kind = &walk_summary,
                        .shared = &summary.kernels,
                        .items = items,
                        .count = count,
                        .threads = options->threads,
                        .crew = options->crew,
                        .progress = options->progress,
                        .progress_context = options->progress_context,
                        .context = &summary,
                        .finish = finish};
    code = walk_run(&walk, err);
    if (code)
        goto out;

    code = PLUMB_E_NOMEM;
    made = plumb_table_new(columns, options->wide ? ALL_COLUMNS : NORMAL_COLUMNS);
    *unreadable = 0;
    for (size_t i = 0; made && i < count; i++) {
        if (!add_row(made, options->first + i, plumb_run_record(run, i), &summary.results[i],
                     options->wide)) {
            plumb_table_free(made);
            made = NULL;
        }
        *unreadable += !summary.results[i].done && !is_recorded_only(plumb_run_record(run, i));
    }
    if (made) {
        *table = made;
        code = PLUMB_OK;
    }
out:
    if (code == PLUMB_E_NOMEM)
        plumb_fail(err, code, "out of memory");
    for (size_t i = 0; summary.results && i < count; i++)
        free(summary.results[i].problem);
    free(items);
    free(summary.results);
    return code;
}
