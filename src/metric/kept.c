/* What is kept of a tensor in place of its values. */
#include "metric/kept.h"

#include "metric/crc.h"
#include "metric/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool kept_begin(struct kept_state *state, const struct plumb_tensor *tensor, unsigned wanted)
{
    *state = (struct kept_state){.wanted = wanted};
    if (wanted & KEPT_SKETCH) {
        struct sketch_frame frame;
        sketch_frame_init(&frame, tensor->dtype, tensor->rank, tensor->shape);
        state->sketch = sketch_new(&frame);
    }
    if (wanted & KEPT_SKETCH1)
        state->sketch1 = sketch1_new();
    return (state->sketch || !(wanted & KEPT_SKETCH)) &&
           (state->sketch1 || !(wanted & KEPT_SKETCH1));
}

void kept_end(struct kept_state *state)
{
    sketch_free(state->sketch);
    free(state->sketch1);
    state->sketch = NULL;
    state->sketch1 = NULL;
}

/* Chunks begin at multiples of 8 bytes, whatever the type; what is missing at the end is zero. */
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

/* The numbers of a chunk, converted, a block at a time. */
static void add_numbers(struct kept_state *state, const struct kernels *kernels,
                        const struct plumb_tensor *chunk, uint64_t first, bool plain)
{
    const unsigned parts = plumb_dtype_parts(chunk->dtype);
    const unsigned bits = plumb_dtype_info(chunk->dtype)->bits;
    const size_t block = PLUMB_METRIC_BLOCK / parts;
    double x[PLUMB_METRIC_BLOCK];
    for (size_t at = 0; at < chunk->count; at += block) {
        const size_t n = chunk->count - at < block ? (size_t)chunk->count - at : block;
        dense_load(kernels, chunk->dtype, (const char *)chunk->data + at * bits / 8, n * parts, x);
        if (state->sketch)
            sketch_add(state->sketch, kernels, (first + at) * parts, x, n * parts, plain);
        if (state->sketch1)
            sketch1_add(state->sketch1, (first + at) * parts, x, n * parts);
        for (size_t i = 0; parts == 2 && i < n; i++)
            x[i] = hypot(x[2 * i], x[2 * i + 1]);
        if (parts == 2)
            stats_values(&state->stats, kernels, x, n);
    }
}

/* Numbers that are not finite so far. */
static uint64_t odd_ones(const struct stats_state *stats)
{
    return stats->nan + stats->pos_inf + stats->neg_inf;
}

/* Dense elements in native byte order; first: of the whole tensor. */
static void add_chunk(struct kept_state *state, const struct kernels *kernels,
                      const struct plumb_tensor *chunk, uint64_t first, uint32_t *crc)
{
    const unsigned bits = plumb_dtype_info(chunk->dtype)->bits;
    const size_t size = (size_t)((chunk->count * bits + 7) / 8);
    const bool complex = plumb_dtype_parts(chunk->dtype) == 2;
    const uint64_t before = odd_ones(&state->stats);
    if (!complex)
        stats_tensor(&state->stats, kernels, chunk, 0, chunk->count);
    /* Only float64 has numbers that are too large for sums. */
    const bool plain = !complex && chunk->dtype != PLUMB_F64 && odd_ones(&state->stats) == before;
    const int type = kernel_type_of(chunk->dtype);
    if (state->sketch && !state->sketch1 && plain && type >= 0)
        sketch_add_stored(state->sketch, kernels, (enum kernel_type)type, first, chunk->data,
                          (size_t)chunk->count);
    else if (complex || state->sketch || state->sketch1)
        add_numbers(state, kernels, chunk, first, plain);
    *crc = kernels->crc32(*crc, chunk->data, size);
    if (state->wanted & KEPT_XOR)
        state->words ^= xor_words(chunk->data, size);
    if (state->wanted & KEPT_HASH)
        hash_add(&state->hash, kernels, chunk->data, size, first * bits / 8 / HASH_PIECE);
}

void kept_tensor(struct kept_state *state, const struct kernels *kernels,
                 const struct plumb_tensor *tensor, uint64_t first, uint64_t count)
{
    enum { NUMBERS = 8192, MOST_BITS = 64 }; /* of a chunk, and of a number */
    const unsigned parts = plumb_dtype_parts(tensor->dtype);
    const unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    const uint64_t step = NUMBERS / parts, block = PLUMB_METRIC_BLOCK / parts;
    _Alignas(32) unsigned char gathered[NUMBERS * MOST_BITS / 8];
    struct room room;
    if (first >= tensor->count)
        return;
    const uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    uint32_t crc = 0;
    struct plumb_tensor chunk = {.dtype = tensor->dtype, .rank = 1, .dense = true};
    for (uint64_t at = first; at < end; at += chunk.count) {
        chunk.count = end - at < step ? end - at : step;
        chunk.data = gathered;
        if (tensor->dense && !tensor->swap)
            chunk.data = (const char *)tensor->data + at * bits / 8;
        for (uint64_t i = 0; chunk.data == gathered && i < chunk.count; i += block) {
            const size_t n = chunk.count - i < block ? (size_t)(chunk.count - i) : (size_t)block;
            memcpy(gathered + i * bits / 8, dense_block(tensor, at + i, n, &room),
                   (n * bits + 7) / 8);
        }
        add_chunk(state, kernels, &chunk, at, &crc);
    }
    const uint64_t total = (tensor->count * bits + 7) / 8;
    state->part = crc;
    state->crc ^= crc_contribution(crc, total - (end * bits + 7) / 8);
}

void kept_merge(struct kept_state *state, const struct kept_state *other)
{
    stats_merge(&state->stats, &other->stats);
    state->crc ^= other->crc;
    state->words ^= other->words;
    hash_merge(&state->hash, &other->hash);
    if (state->sketch)
        sketch_merge(state->sketch, other->sketch);
    if (state->sketch1)
        sketch1_merge(state->sketch1, other->sketch1);
}
