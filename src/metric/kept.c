/* What is kept of a tensor in place of its values. */
#include "metric/kept.h"

#include "metric/crc.h"
#include "metric/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct sketch_state *begin_sketch(int version, const struct plumb_tensor *tensor)
{
    struct sketch_frame frame;
    sketch_frame_init(&frame, version, tensor->dtype, tensor->rank, tensor->shape);
    return sketch_new(&frame);
}

bool kept_begin(struct kept_state *state, const struct plumb_tensor *tensor, unsigned wanted)
{
    *state = (struct kept_state){.wanted = wanted};
    if (wanted & KEPT_SKETCH)
        state->sketch = begin_sketch(SKETCH_VERSION, tensor);
    if (wanted & KEPT_SKETCH2)
        state->sketch2 = begin_sketch(SKETCH_OLD, tensor);
    if (wanted & KEPT_SKETCH1)
        state->sketch1 = sketch1_new();
    return (state->sketch || !(wanted & KEPT_SKETCH)) &&
           (state->sketch2 || !(wanted & KEPT_SKETCH2)) &&
           (state->sketch1 || !(wanted & KEPT_SKETCH1));
}

void kept_end(struct kept_state *state)
{
    sketch_free(state->sketch);
    sketch_free(state->sketch2);
    free(state->sketch1);
    state->sketch = state->sketch2 = NULL;
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

/* Numbers that are not finite so far. */
static uint64_t odd_ones(const struct stats_state *stats)
{
    return stats->nan + stats->pos_inf + stats->neg_inf;
}

/* The sizes of n complex numbers, in their place. */
static void take_sizes(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = hypot(x[2 * i], x[2 * i + 1]);
}

static bool below_large(const struct stats_state *stats)
{
    return stats->max < SKETCH_LARGE && stats->min > -SKETCH_LARGE;
}

/* plain: as sketch_add has it. */
static void add_sketches(struct kept_state *state, const struct kernels *kernels, uint64_t first,
                         const double *x, size_t n, bool plain)
{
    if (state->sketch)
        sketch_add(state->sketch, kernels, first, x, n, plain);
    if (state->sketch2)
        sketch_add(state->sketch2, kernels, first, x, n, plain);
    if (state->sketch1)
        sketch1_add(state->sketch1, first, x, n);
}

/* Numbers converted once for all, a block at a time. */
static void add_converted(struct kept_state *state, const struct kernels *kernels,
                          const struct plumb_tensor *chunk, uint64_t first)
{
    const unsigned parts = plumb_dtype_parts(chunk->dtype);
    const unsigned bits = plumb_dtype_info(chunk->dtype)->bits;
    const size_t block = PLUMB_METRIC_BLOCK / parts;
    double x[PLUMB_METRIC_BLOCK];
    for (size_t at = 0; at < chunk->count; at += block) {
        const size_t n = chunk->count - at < block ? (size_t)chunk->count - at : block;
        const void *bytes = (const char *)chunk->data + at * bits / 8;
        bool plain = false;
        dense_load(kernels, chunk->dtype, bytes, n * parts, x);
        if (parts == 1) {
            const uint64_t before = odd_ones(&state->stats);
            stats_values(&state->stats, kernels, x, n);
            ends_add(&state->stats.ends, chunk->dtype, bytes, n);
            plain = odd_ones(&state->stats) == before && below_large(&state->stats);
        }
        add_sketches(state, kernels, (first + at) * parts, x, n * parts, plain);
        if (parts == 2) {
            take_sizes(x, n);
            stats_values(&state->stats, kernels, x, n);
        }
    }
}

/* Whole blocks of a type that kernels read as it is stored; false when they are not that simple. */
static bool add_blocks(struct kept_state *state, const struct kernels *kernels,
                       const struct plumb_tensor *chunk, uint64_t first)
{
    _Alignas(64) double wide[STATS_BLOCKS];
    const int type = kernel_type_of(chunk->dtype);
    if (type < 0 || plumb_dtype_parts(chunk->dtype) != 1 || chunk->count != STATS_BLOCKS)
        return false;
    const double *x =
        stats_blocks(&state->stats, kernels, (enum kernel_type)type, chunk->data, wide);
    if (x)
        add_sketches(state, kernels, first, x, STATS_BLOCKS, below_large(&state->stats));
    return x;
}

/* Dense elements in native byte order, as many whole pieces as are hashed side by side, or the
 * rest; first: of the whole tensor. Blocks stay in the cache nearest to the processor until all
 * that needs their numbers is done; what needs bytes comes last. */
static void add_span(struct kept_state *state, const struct kernels *kernels,
                     const struct plumb_tensor *span, uint64_t first, uint32_t *crc)
{
    const unsigned bits = plumb_dtype_info(span->dtype)->bits;
    const uint64_t step = STATS_BLOCKS / plumb_dtype_parts(span->dtype);
    const size_t size = (size_t)((span->count * bits + 7) / 8);
    struct plumb_tensor chunk = *span;
    for (uint64_t at = 0; at < span->count; at += chunk.count) {
        chunk.count = span->count - at < step ? span->count - at : step;
        chunk.data = (const char *)span->data + at * bits / 8;
        if (!add_blocks(state, kernels, &chunk, first + at))
            add_converted(state, kernels, &chunk, first + at);
    }
    if (state->wanted & KEPT_XOR)
        state->words ^= xor_words(span->data, size);
    if (state->wanted & KEPT_HASH)
        hash_add(&state->hash, kernels, span->data, size, first * bits / 8 / HASH_PIECE, crc);
    else
        *crc = kernels->crc32(*crc, span->data, size);
}

void kept_tensor(struct kept_state *state, const struct kernels *kernels,
                 const struct plumb_tensor *tensor, uint64_t first, uint64_t count)
{
    enum { SPAN = HASH_SIDE * HASH_PIECE }; /* bytes */
    const unsigned parts = plumb_dtype_parts(tensor->dtype);
    const unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    const uint64_t step = (uint64_t)SPAN * 8 / bits, block = PLUMB_METRIC_BLOCK / parts;
    _Alignas(64) unsigned char gathered[SPAN];
    struct room room;
    if (first >= tensor->count)
        return;
    const uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    uint32_t crc = 0;
    struct plumb_tensor span = {.dtype = tensor->dtype, .rank = 1, .dense = true};
    for (uint64_t at = first; at < end; at += span.count) {
        span.count = end - at < step ? end - at : step;
        span.data = gathered;
        if (tensor->dense && !tensor->swap)
            span.data = (const char *)tensor->data + at * bits / 8;
        for (uint64_t i = 0; span.data == gathered && i < span.count; i += block) {
            const size_t n = span.count - i < block ? (size_t)(span.count - i) : (size_t)block;
            memcpy(gathered + i * bits / 8, dense_block(tensor, at + i, n, &room),
                   (n * bits + 7) / 8);
        }
        add_span(state, kernels, &span, at, &crc);
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
    if (state->sketch2)
        sketch_merge(state->sketch2, other->sketch2);
    if (state->sketch1)
        sketch1_merge(state->sketch1, other->sketch1);
}
