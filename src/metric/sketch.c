/* Adding numbers to a sketch. */
#include "metric/sketch.h"

#include "metric/sketch_cursor.h"
#include "plumb/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sketch_state *sketch_new(const struct sketch_frame *frame)
{
    struct sketch_state *sketch = calloc(1, sizeof *sketch);
    if (!sketch)
        return NULL;
    sketch->frame = *frame;
    cursor_seek(&sketch->cursor, frame, 0);
    return sketch;
}

void sketch_free(struct sketch_state *sketch)
{
    if (sketch)
        free(sketch->rest);
    free(sketch);
}

size_t sketch_cells(const struct sketch_state *sketch)
{
    return KERNEL_SKETCH_ROOM + (size_t)sketch->frame.count * SKETCH_AXIS_SUMS;
}

/* a + b without rounding: the sum, and what float64 lost of it. */
static inline double add(double a, double b, double *lost)
{
    double sum = a + b, part = sum - a;
    *lost = (a - (sum - part)) + (b - part);
    return sum;
}

static void add_exactly(struct sketch_state *sketch, size_t cell, double x)
{
    if (!sketch->rest && !sketch->failed) {
        sketch->rest = calloc(sketch_cells(sketch), sizeof *sketch->rest);
        sketch->failed = !sketch->rest;
    }
    if (sketch->rest)
        exact_add(&sketch->rest[cell], x);
}

/* Two float64 hold nearly every sum; what even they lose is rare enough to be slow. */
void sketch_flush(struct sketch_state *sketch)
{
    const size_t cells = sketch_cells(sketch);
    double lost[SKETCH_CELLS];
    bool any = false;
    for (size_t i = 0; i < cells; i++) {
        double low;
        sketch->high[i] = add(sketch->high[i], sketch->chunk[i], &low);
        sketch->low[i] = add(sketch->low[i], low, &lost[i]);
        any |= lost[i] != 0;
        sketch->chunk[i] = 0;
    }
    for (size_t i = 0; any && i < cells; i++)
        if (lost[i] != 0)
            add_exactly(sketch, i, lost[i]);
}

/* The first sum of a block, at hand, of the k-th axis. */
static size_t block_cell(const struct sketch_state *sketch, unsigned k)
{
    return KERNEL_SKETCH_ROOM + (size_t)k * SKETCH_AXIS_SUMS +
           (size_t)sketch->cursor.block[k] * PLUMB_SKETCH_FOLD;
}

/* Numbers in one block of every axis and in one chunk. */
static void add_run(struct sketch_state *sketch, const struct kernels *kernels,
                    enum kernel_type type, const void *data, size_t n)
{
    double fold[PLUMB_SKETCH_FOLD] = {0};
    kernels->sketch[type](data, n, sketch->cursor.next, sketch->chunk, fold);
    for (unsigned k = 0; k < sketch->frame.count; k++) {
        double *sums = sketch->chunk + block_cell(sketch, k);
        for (int j = 0; j < PLUMB_SKETCH_FOLD; j++)
            sums[j] += fold[j];
    }
    cursor_advance(&sketch->cursor, &sketch->frame, n);
}

/* What is too large for sums in float64 goes around them. */
static void add_large(struct sketch_state *sketch, uint64_t index, double x)
{
    const uint64_t word = kernel_sketch_word(index / KERNEL_SKETCH_GROUP);
    const size_t lane = index % KERNEL_SKETCH_GROUP, cell = (word & 255) + lane;
    const double y = word >> (8 + lane) & 1 ? -x : x;
    cursor_seek(&sketch->cursor, &sketch->frame, index);
    add_exactly(sketch, cell, y);
    for (unsigned k = 0; k < sketch->frame.count; k++)
        add_exactly(sketch, block_cell(sketch, k) + cell % PLUMB_SKETCH_FOLD, y);
}

/* A copy with zeros for what is not finite, or is added already. */
static void clean(struct sketch_state *sketch, uint64_t first, const double *x, size_t n,
                  double *out)
{
    for (size_t i = 0; i < n; i++) {
        const bool small = fabs(x[i]) < SKETCH_LARGE;
        out[i] = small ? x[i] : 0;
        if (!small && isfinite(x[i]))
            add_large(sketch, first + i, x[i]);
    }
}

/* Up to a block, inside one chunk. */
static void add_piece(struct sketch_state *sketch, const struct kernels *kernels,
                      enum kernel_type type, uint64_t first, const char *data, size_t n)
{
    const size_t width = kernel_width(type);
    if (first / SKETCH_CHUNK != sketch->at) {
        sketch_flush(sketch);
        sketch->at = first / SKETCH_CHUNK;
    }
    if (sketch->cursor.next != first)
        cursor_seek(&sketch->cursor, &sketch->frame, first);
    while (n) {
        const size_t run = cursor_run(&sketch->cursor, &sketch->frame, n);
        add_run(sketch, kernels, type, data, run);
        data += run * width;
        n -= run;
    }
}

/* How many of the next n numbers lie in one block of the pass. */
static size_t piece_of(uint64_t first, size_t n)
{
    const size_t room = PLUMB_METRIC_BLOCK - (size_t)(first % PLUMB_METRIC_BLOCK);
    return n < room ? n : room;
}

void sketch_add_stored(struct sketch_state *sketch, const struct kernels *kernels,
                       enum kernel_type type, uint64_t first, const void *data, size_t n)
{
    const char *bytes = data;
    for (size_t piece; n; n -= piece) {
        piece = piece_of(first, n);
        add_piece(sketch, kernels, type, first, bytes, piece);
        first += piece;
        bytes += piece * kernel_width(type);
    }
}

void sketch_add(struct sketch_state *sketch, const struct kernels *kernels, uint64_t first,
                const double *x, size_t n, bool plain)
{
    double copy[PLUMB_METRIC_BLOCK];
    if (plain) {
        sketch_add_stored(sketch, kernels, KERNEL_F64, first, x, n);
        return;
    }
    for (size_t piece; n; n -= piece) {
        piece = piece_of(first, n);
        clean(sketch, first, x, piece, copy);
        add_piece(sketch, kernels, KERNEL_F64, first, (const char *)copy, piece);
        first += piece;
        x += piece;
    }
}

void sketch_merge(struct sketch_state *sketch, const struct sketch_state *other)
{
    const size_t cells = sketch_cells(sketch);
    const double *parts[] = {other->chunk, other->high, other->low};
    sketch_flush(sketch);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        memcpy(sketch->chunk, parts[k], cells * sizeof *sketch->chunk);
        sketch_flush(sketch);
    }
    for (size_t i = 0; other->rest && i < cells; i++) {
        add_exactly(sketch, i, 0); /* so that there is a rest */
        if (sketch->rest)
            exact_merge(&sketch->rest[i], &other->rest[i]);
    }
    sketch->failed = sketch->failed || other->failed;
}
