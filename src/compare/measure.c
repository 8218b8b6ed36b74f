#define _GNU_SOURCE
#include "compare/measure.h"

#include "metric/crc.h"
#include "metric/stats.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    struct stats_state stats;
    uint32_t crc;
    uint64_t words; /* all of them, exclusive-ored */
};

struct session {
    struct measured *measured;
    struct kernels kernels;
};

static enum plumb_code accept(void *context, size_t item, const struct plumb_payload *payloads,
                              struct plumb_error *err)
{
    (void)context;
    (void)item;
    (void)payloads;
    (void)err;
    return PLUMB_OK;
}

static void add_complex(struct state *state, const struct kernels *kernels,
                        const struct plumb_tensor *tensor, uint64_t first, uint64_t end)
{
    double parts[2 * PLUMB_METRIC_BLOCK], size[PLUMB_METRIC_BLOCK];
    for (uint64_t at = first; at < end;) {
        size_t n = end - at < PLUMB_METRIC_BLOCK ? (size_t)(end - at) : PLUMB_METRIC_BLOCK;
        plumb_tensor_to_f64(tensor, at, n, parts);
        for (size_t i = 0; i < n; i++)
            size[i] = hypot(parts[2 * i], parts[2 * i + 1]);
        stats_values(&state->stats, kernels, size, n);
        at += n;
    }
}

/* Parts begin at multiples of 2^20 elements, so at multiples of 8 bytes for every type. */
static void add_checksums(struct state *state, const struct plumb_tensor *tensor, uint64_t first,
                          uint64_t end)
{
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    uint64_t block[PLUMB_METRIC_BLOCK * 2]; /* elements of up to 16 bytes */
    uint32_t crc = 0;
    for (uint64_t at = first; at < end;) {
        size_t n = end - at < PLUMB_METRIC_BLOCK ? (size_t)(end - at) : PLUMB_METRIC_BLOCK;
        size_t bytes = (n * bits + 7) / 8;
        memset((unsigned char *)block + bytes / 8 * 8, 0, bytes % 8 ? 8 : 0);
        plumb_tensor_gather(tensor, at, n, block);
        crc = libdeflate_crc32(crc, block, bytes);
        for (size_t i = 0; i < (bytes + 7) / 8; i++)
            state->words ^= block[i];
        at += n;
    }
    uint64_t total = (tensor->count * bits + 7) / 8;
    state->crc = crc_contribution(crc, total - (end * bits + 7) / 8);
}

static void *part(void *context, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count)
{
    const struct session *session = context;
    const struct plumb_tensor *tensor = &payloads[0].tensor;
    struct state *state = calloc(1, sizeof *state);
    if (!state || first >= tensor->count)
        return state;
    uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    if (plumb_dtype_info(tensor->dtype)->kind == PLUMB_KIND_COMPLEX)
        add_complex(state, &session->kernels, tensor, first, end);
    else
        stats_tensor(&state->stats, &session->kernels, tensor, first, count);
    add_checksums(state, tensor, first, end);
    return state;
}

static void merge(void *state, const void *other)
{
    struct state *all = state;
    const struct state *more = other;
    stats_merge(&all->stats, &more->stats);
    all->crc ^= more->crc;
    all->words ^= more->words;
}

static struct plumb_value number(double value)
{
    return (struct plumb_value){.kind = PLUMB_VALUE_NUMBER, .number = value};
}

static struct plumb_value word(bool value)
{
    return (struct plumb_value){.kind = PLUMB_VALUE_WORD, .text = value ? "True" : "False"};
}

static void set_statistics(struct measured *measured, const struct plumb_tensor *tensor,
                           const struct plumb_stats *stats)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    struct plumb_value *out = measured->statistic;
    if (!stats->count)
        return;
    if (measured->wanted & MEASURE_EXACT) {
        out[PLUMB_STATISTIC_MAX] = number(stats->max);
        out[PLUMB_STATISTIC_MIN] = number(stats->min);
        out[PLUMB_STATISTIC_MEAN] = number(stats->mean);
        out[PLUMB_STATISTIC_NORM] = number(stats->norm);
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
    const struct state *all = state;
    struct plumb_stats stats;
    stats_finish(&all->stats, &stats);
    set_statistics(measured, &payloads[0].tensor, &stats);
    if (measured->wanted & MEASURE_XOR)
        snprintf(measured->checksum, sizeof measured->checksum, "0x%016" PRIx64, all->words);
    else
        snprintf(measured->checksum, sizeof measured->checksum, "%08" PRIx32, all->crc);
    measured->done = true;
}

bool compare_is_xor(const char *checksum)
{
    return strncmp(checksum, "0x", 2) == 0;
}

enum plumb_code compare_measure(struct measured *out, const struct walk_side *sides, size_t count,
                                const struct plumb_compare_options *options,
                                struct plumb_error *err)
{
    struct session session = {.measured = out, .kernels = kernels_current()};
    bool any = false;
    for (size_t i = 0; i < count && !any; i++)
        any = out[i].wanted != 0;
    if (!any)
        return PLUMB_OK;
    struct walk_item *items = calloc(count + 1, sizeof *items);
    if (!items)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        items[i] = (struct walk_item){.side = {sides[i]}, .sides = out[i].wanted != 0};
    struct walk walk = {.items = items,
                        .count = count,
                        .threads = options->threads,
                        .progress = options->progress,
                        .progress_context = options->progress_context,
                        .context = &session,
                        .accept = accept,
                        .part = part,
                        .merge = merge,
                        .release = free,
                        .finish = finish};
    enum plumb_code code = walk_run(&walk, err);
    free(items);
    return code;
}
