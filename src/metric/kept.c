/* What is kept of a tensor in place of its values. */
#include "metric/kept.h"

#include "metric/crc.h"
#include "metric/dense.h"

#include <math.h>
#include <string.h>

/* Blocks begin at multiples of 8 bytes, whatever the type; what is missing at the end is zero. */
static uint64_t xor_words(const unsigned char *bytes, size_t size)
{
    uint64_t all = 0, word;
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        all ^= word;
    }
    word = 0;
    memcpy(&word, bytes, size);
    return all ^ word;
}

void kept_tensor(struct kept_state *state, const struct kernels *kernels,
                 const struct plumb_tensor *tensor, uint64_t first, uint64_t count)
{
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    size_t block = PLUMB_METRIC_BLOCK / parts;
    struct room room;
    double x[PLUMB_METRIC_BLOCK];
    if (first >= tensor->count)
        return;
    uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    uint32_t crc = 0;
    for (uint64_t at = first; at < end;) {
        size_t n = end - at < block ? (size_t)(end - at) : block, size = (n * bits + 7) / 8;
        const void *bytes = dense_block(tensor, at, n, &room);
        dense_load(kernels, tensor->dtype, bytes, n * parts, x);
        if (state->sketch)
            sketch_add(state->sketch, at * parts, x, n * parts);
        for (size_t i = 0; parts == 2 && i < n; i++)
            x[i] = hypot(x[2 * i], x[2 * i + 1]);
        stats_values(&state->stats, kernels, x, n);
        ends_add(&state->stats.ends, tensor->dtype, bytes, n);
        crc = kernels->crc32(crc, bytes, size);
        state->words ^= xor_words(bytes, size);
        at += n;
    }
    uint64_t total = (tensor->count * bits + 7) / 8;
    state->crc ^= crc_contribution(crc, total - (end * bits + 7) / 8);
}

void kept_merge(struct kept_state *state, const struct kept_state *other)
{
    stats_merge(&state->stats, &other->stats);
    state->crc ^= other->crc;
    state->words ^= other->words;
    if (state->sketch)
        sketch_merge(state->sketch, other->sketch);
}
