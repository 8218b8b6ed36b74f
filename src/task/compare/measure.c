/* Measuring payloads as a capture, or plumb condense, would have. */
#define _GNU_SOURCE
#include "task/compare/measure.h"

#include "metric/kept.h"
#include "run/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
    struct measured *measured;
    struct kernels kernels;
    bool sketch; /* somebody wants one */
};

static void *part(void *context, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count)
{
    const struct session *session = context;
    struct kept_state *state = calloc(1, sizeof *state);
    if (state && session->sketch && !(state->sketch = sketch_new())) {
        free(state);
        return NULL;
    }
    if (state)
        kept_tensor(state, &session->kernels, &payloads[0].tensor, first, count);
    return state;
}

static void merge(void *state, const void *other)
{
    kept_merge(state, other);
}

static void release(void *state)
{
    struct kept_state *kept = state;
    free(kept->sketch);
    free(kept);
}

static struct plumb_value number(double value)
{
    return (struct plumb_value){.kind = PLUMB_VALUE_NUMBER, .number = value};
}

static struct plumb_value word(bool value)
{
    return (struct plumb_value){.kind = PLUMB_VALUE_WORD, .text = value ? "True" : "False"};
}

static void set_all(struct plumb_value *out, const struct plumb_stats *stats)
{
    out[PLUMB_STATISTIC_MAX] = number(stats->max);
    out[PLUMB_STATISTIC_MIN] = number(stats->min);
    out[PLUMB_STATISTIC_MEAN] = number(stats->mean);
    out[PLUMB_STATISTIC_NORM] = number(stats->norm);
}

static void set_statistics(struct measured *measured, const struct plumb_tensor *tensor,
                           const struct plumb_stats *stats)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    struct plumb_value *out = measured->statistic;
    if (!stats->count)
        return;
    if (measured->wanted & MEASURE_EXACT) {
        set_all(out, stats);
        return;
    }
    if (info->kind == PLUMB_KIND_BOOL) {
        out[PLUMB_STATISTIC_MAX] = word(stats->max != 0);
        out[PLUMB_STATISTIC_MIN] = word(stats->min != 0);
        return;
    }
    out[PLUMB_STATISTIC_MAX] = number(stats->max);
    out[PLUMB_STATISTIC_MIN] = number(stats->min);
    if (info->kind == PLUMB_KIND_COMPLEX) {
        out[PLUMB_STATISTIC_MEAN] = number(stats->mean);
    } else if (info->kind == PLUMB_KIND_FLOAT && tensor->dtype != PLUMB_F64) {
        out[PLUMB_STATISTIC_MEAN] = number(plumb_round_to(tensor->dtype, stats->mean));
        out[PLUMB_STATISTIC_NORM] = number(plumb_round_to(tensor->dtype, stats->norm));
        if (!tensor->rank) /* a scalar's norm keeps its sign */
            out[PLUMB_STATISTIC_NORM] = number(stats->max);
    }
}

static void set_ends(struct measured *measured, const struct ends *ends)
{
    ends_text(ends->dtype, ends_max(ends), measured->end[0]);
    ends_text(ends->dtype, ends_min(ends), measured->end[1]);
    measured->statistic[PLUMB_STATISTIC_MAX].text = measured->end[0];
    measured->statistic[PLUMB_STATISTIC_MIN].text = measured->end[1];
}

/* False when out of memory. */
static bool set_kept(struct measured *measured, const struct kept_state *state,
                     const struct plumb_stats *stats)
{
    struct plumb_kept *kept = &measured->kept;
    struct plumb_stats finite;
    stats_finish_finite(&state->stats, &finite);
    if (measured->wanted & MEASURE_SKETCH) {
        measured->sketch = malloc(sizeof *measured->sketch);
        if (!measured->sketch)
            return false;
        sketch_finish(state->sketch, measured->sketch);
    }
    *kept = (struct plumb_kept){.dtype = kept->dtype,
                                .nan = stats->nan,
                                .pos_inf = stats->pos_inf,
                                .neg_inf = stats->neg_inf,
                                .crc32 = measured->checksum,
                                .sketch = measured->sketch};
    if (finite.count && finite.count < stats->count)
        set_all(kept->finite, &finite);
    return true;
}

/* False when out of memory. */
static bool take(struct measured *measured, const struct plumb_tensor *tensor,
                 const struct kept_state *state)
{
    struct plumb_stats stats;
    measured->kept.dtype = tensor->dtype;
    stats_finish(&state->stats, &stats);
    set_statistics(measured, tensor, &stats);
    if (stats.count && ends_needed(&state->stats.ends))
        set_ends(measured, &state->stats.ends);
    if (measured->wanted & MEASURE_KEPT && !set_kept(measured, state, &stats))
        return false;
    if (measured->wanted & MEASURE_XOR)
        snprintf(measured->checksum, sizeof measured->checksum, "0x%016" PRIx64, state->words);
    else
        snprintf(measured->checksum, sizeof measured->checksum, "%08" PRIx32, state->crc);
    return true;
}

static void finish(void *context, size_t item, const struct plumb_payload *payloads, void *state,
                   const struct plumb_error *err)
{
    const struct session *session = context;
    struct measured *measured = &session->measured[item];
    if (err) {
        char text[800];
        measured->problem = strdup(plumb_error_text(err, text, sizeof text));
        return;
    }
    measured->done = take(measured, &payloads[0].tensor, state); /* else out of memory */
}

bool compare_measure_tensor(struct measured *out, const struct plumb_tensor *tensor)
{
    bool sketch = out->wanted & MEASURE_SKETCH;
    struct kept_state state = {.sketch = sketch ? sketch_new() : NULL};
    if (sketch && !state.sketch)
        return false;
    struct kernels kernels = kernels_current();
    kept_tensor(&state, &kernels, tensor, 0, tensor->count);
    out->done = take(out, tensor, &state);
    free(state.sketch);
    return out->done;
}

enum plumb_code compare_measure(struct measured *out, const struct walk_side *sides, size_t count,
                                const struct plumb_compare_options *options,
                                struct plumb_error *err)
{
    struct session session = {.measured = out, .kernels = kernels_current()};
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        any = any || out[i].wanted;
        session.sketch = session.sketch || out[i].wanted & MEASURE_SKETCH;
    }
    if (!any)
        return PLUMB_OK;
    struct walk_item *items = calloc(count + 1, sizeof *items);
    if (!items)
        return plumb_no_memory(err);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct walk_item){.side = {sides[i]}, .sides = out[i].wanted != 0};
    struct walk walk = {.items = items,
                        .count = count,
                        .threads = options->threads,
                        .progress = options->progress,
                        .progress_context = options->progress_context,
                        .context = &session,
                        .part = part,
                        .merge = merge,
                        .release = release,
                        .finish = finish};
    enum plumb_code code = walk_run(&walk, err);
    free(items);
    return code;
}

static void add_recorded(struct recorded_account *account, const struct plumb_recorded *recorded)
{
    if (recorded->kept) {
        account->kept = recorded->kept;
        account->deviation = &recorded->kept->deviation;
    }
    if (recorded->checksum) {
        account->checksum = recorded->checksum;
        account->dtype = recorded->dtype ? run_dtype(recorded->dtype) : PLUMB_DTYPE_COUNT;
    }
}

struct recorded_account compare_account(const struct plumb_recorded *recorded,
                                        const struct measured *measured)
{
    struct recorded_account account = {.dtype = PLUMB_DTYPE_COUNT};
    if (!recorded || measured->wanted & MEASURE_STATISTICS) {
        memcpy(account.statistic, measured->statistic, sizeof account.statistic);
        account.exact = measured->wanted & MEASURE_EXACT;
    } else {
        for (unsigned k = 0; k < PLUMB_STATISTICS; k++)
            account.statistic[k] = plumb_recorded_statistic(recorded, k);
        account.exact = recorded->exact;
    }
    if (measured->wanted & MEASURE_KEPT)
        account.kept = &measured->kept;
    if (measured->wanted & (MEASURE_CRC | MEASURE_XOR)) {
        account.checksum = measured->checksum;
        account.dtype = measured->kept.dtype;
    }
    if (recorded)
        add_recorded(&account, recorded);
    return account;
}
