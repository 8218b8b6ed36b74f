/* Measuring payloads as a capture, or plumb condense, would have. */
#define _GNU_SOURCE
#include "task/compare/measure.h"

#include "metric/kept.h"
#include "metric/pack.h"
#include "run/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shared {
    struct kernels kernels;
    unsigned wanted; /* by somebody */
};

struct session {
    struct measured *measured;
    struct shared shared;
};

static unsigned wanted_of(unsigned measures)
{
    return (measures & MEASURE_HASH ? KEPT_HASH : 0) |
           (measures & MEASURE_SKETCH ? KEPT_SKETCH : 0) |
           (measures & MEASURE_SKETCH2 ? KEPT_SKETCH2 : 0) |
           (measures & MEASURE_SKETCH1 ? KEPT_SKETCH1 : 0) |
           (measures & MEASURE_XOR ? KEPT_XOR : 0);
}

unsigned compare_measures_kept(const struct plumb_kept *kept)
{
    unsigned measures = MEASURE_KEPT | (kept->hash ? MEASURE_HASH : 0);
    if (kept->sketch)
        measures |= kept->sketch->version == SKETCH_VERSION ? MEASURE_SKETCH
                    : kept->sketch->version == SKETCH_OLD   ? MEASURE_SKETCH2
                                                            : MEASURE_SKETCH1;
    return measures;
}

static void release(void *state)
{
    kept_end(state);
    free(state);
}

static struct kept_state *begin(const struct shared *shared, const struct plumb_tensor *tensor)
{
    struct kept_state *state = calloc(1, sizeof *state);
    if (state && !kept_begin(state, tensor, wanted_of(shared->wanted))) {
        release(state);
        return NULL;
    }
    return state;
}

static void *empty(const void *context, const struct plumb_tensor tensors[2])
{
    return begin(context, &tensors[0]);
}

static void *part(const void *context, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count)
{
    const struct shared *shared = context;
    struct kept_state *state = begin(shared, &payloads[0].tensor);
    if (state)
        kept_tensor(state, &shared->kernels, &payloads[0].tensor, first, count);
    return state;
}

static void merge(void *state, const void *other)
{
    kept_merge(state, other);
}

static void pack_shared(struct pack *pack, void *context)
{
    struct shared *shared = context;
    pack_u32(pack, &shared->wanted);
    shared->kernels = kernels_current();
}

static void pack_state(struct pack *pack, void *state)
{
    metric_pack_kept(pack, state);
}

const struct walk_kind walk_kept = {.name = "kept",
                                    .shared_size = sizeof(struct shared),
                                    .part = part,
                                    .merge = merge,
                                    .release = release,
                                    .pack_shared = pack_shared,
                                    .empty = empty,
                                    .pack_state = pack_state};

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
static bool set_kept(struct measured *measured, struct kept_state *state,
                     const struct plumb_stats *stats)
{
    struct plumb_kept *kept = &measured->kept;
    struct plumb_stats finite;
    stats_finish_finite(&state->stats, &finite);
    if (measured->wanted & (MEASURE_SKETCH | MEASURE_SKETCH2 | MEASURE_SKETCH1)) {
        measured->sketch = malloc(sizeof *measured->sketch);
        if (!measured->sketch)
            return false;
        if (measured->wanted & MEASURE_SKETCH1)
            sketch1_finish(state->sketch1, measured->sketch);
        else if (!sketch_finish(measured->wanted & MEASURE_SKETCH2 ? state->sketch2 : state->sketch,
                                measured->sketch))
            return false;
    }
    if (measured->wanted & MEASURE_HASH)
        hash_text(&state->hash, measured->hash);
    *kept = (struct plumb_kept){.dtype = kept->dtype,
                                .nan = stats->nan,
                                .pos_inf = stats->pos_inf,
                                .neg_inf = stats->neg_inf,
                                .crc32 = measured->checksum,
                                .hash = measured->wanted & MEASURE_HASH ? measured->hash : NULL,
                                .sketch = measured->sketch};
    if (finite.count && finite.count < stats->count)
        set_all(kept->finite, &finite);
    return true;
}

/* False when out of memory. */
static bool take(struct measured *measured, const struct plumb_tensor *tensor,
                 struct kept_state *state)
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
    struct kept_state state;
    struct kernels kernels = kernels_current();
    if (kept_begin(&state, tensor, wanted_of(out->wanted))) {
        kept_tensor(&state, &kernels, tensor, 0, tensor->count);
        out->done = take(out, tensor, &state);
    }
    kept_end(&state);
    return out->done;
}

enum plumb_code compare_measure(struct measured *out, const struct walk_side *sides, size_t count,
                                const struct plumb_compare_options *options,
                                struct plumb_error *err)
{
    struct session session = {.measured = out, .shared = {.kernels = kernels_current()}};
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        any = any || out[i].wanted;
        session.shared.wanted |= out[i].wanted;
    }
    if (!any)
        return PLUMB_OK;
    struct walk_item *items = calloc(count + 1, sizeof *items);
    if (!items)
        return plumb_no_memory(err);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct walk_item){.side = {sides[i]}, .sides = out[i].wanted != 0};
    struct walk walk = {.kind = &walk_kept,
                        .shared = &session.shared,
                        .items = items,
                        .count = count,
                        .threads = options->threads,
                        .crew = options->crew,
                        .progress = options->progress,
                        .progress_context = options->progress_context,
                        .context = &session,
                        .finish = finish};
    enum plumb_code code = walk_run(&walk, err);
    free(items);
    return code;
}

static void add_recorded(struct recorded_account *account, const struct plumb_recorded *recorded)
{
    const struct plumb_kept *kept = plumb_recorded_kept(recorded);
    if (kept) {
        account->kept = kept;
        account->deviation = &kept->deviation;
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
