/* Adding numbers to a sketch. */
#include "metric/sketch.h"

#include "metric/sketch2.h"
#include "metric/sketch_cursor.h"
#include "plumb/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sketch_state *sketch_new(const struct sketch_frame *frame)
{
    struct sketch_state *sketch = aligned_alloc(_Alignof(struct sketch_state), sizeof *sketch);
    if (!sketch)
        return NULL;
    *sketch = (struct sketch_state){.frame = *frame};
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
    return PLUMB_SKETCH_SUMS + (size_t)sketch->frame.count * SKETCH_AXIS_SUMS;
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
    return PLUMB_SKETCH_SUMS + (size_t)k * SKETCH_AXIS_SUMS +
           (size_t)sketch->cursor.block[k] * PLUMB_SKETCH_FOLD;
}

/* Adds the sums of n numbers in one block of every axis. */
static void add_fold(struct sketch_state *sketch, const double fold[PLUMB_SKETCH_FOLD], size_t n)
{
    for (unsigned k = 0; k < sketch->frame.count; k++) {
        double *sums = sketch->chunk + block_cell(sketch, k);
        for (int j = 0; j < PLUMB_SKETCH_FOLD; j++)
            sums[j] += fold[j];
    }
    cursor_advance(&sketch->cursor, &sketch->frame, n);
}

/* The same of each run among n numbers, from the sums of their tiles. */
static void add_folds(struct sketch_state *sketch, double (*fold)[PLUMB_SKETCH_FOLD], size_t n)
{
    enum { TILE = KERNEL_SKETCH_TILE };
    for (size_t run; n; n -= run) {
        double sum[PLUMB_SKETCH_FOLD];
        run = cursor_run(&sketch->cursor, &sketch->frame, n);
        const size_t tiles = ((size_t)(sketch->cursor.next % TILE) + run + TILE - 1) / TILE;
        memcpy(sum, fold[0], sizeof sum);
        for (size_t k = 1; k < tiles; k++)
            for (int j = 0; j < PLUMB_SKETCH_FOLD; j++)
                sum[j] += fold[k][j];
        add_fold(sketch, sum, run);
        fold += tiles;
    }
}

/* Numbers in one chunk, and in one block of every axis or of whole tiles. */
static void add_run(struct sketch_state *sketch, const struct kernels *kernels, const double *x,
                    size_t n)
{
    double fold[KERNEL_SKETCH_TILES][PLUMB_SKETCH_FOLD];
    const uint64_t first = sketch->cursor.next;
    if (sketch->frame.version == SKETCH_OLD) {
        sketch2_add(x, n, first, sketch->chunk, fold[0]);
        add_fold(sketch, fold[0], n);
    } else {
        kernels->sketch(x, n, first, sketch->chunk, fold);
        add_folds(sketch, fold, n);
    }
}

/* What is too large for sums in float64 goes around them. */
static void add_large(struct sketch_state *sketch, uint64_t index, double x)
{
    size_t cell;
    bool minus;
    if (sketch->frame.version == SKETCH_OLD) {
        minus = sketch2_place(index, &cell);
    } else {
        const uint64_t tile = index / KERNEL_SKETCH_TILE, l = index % KERNEL_SKETCH_TILE;
        cell = kernel_sketch_place(kernel_sketch_places(tile), tile) ^ l;
        minus = kernel_sketch_signs(tile) >> l & 1;
    }
    cursor_seek(&sketch->cursor, &sketch->frame, index);
    add_exactly(sketch, cell, minus ? -x : x);
    for (unsigned k = 0; k < sketch->frame.count; k++)
        add_exactly(sketch, block_cell(sketch, k) + cell % PLUMB_SKETCH_FOLD, minus ? -x : x);
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
static void add_piece(struct sketch_state *sketch, const struct kernels *kernels, uint64_t first,
                      const double *x, size_t n)
{
    if (first / SKETCH_CHUNK != sketch->at) {
        sketch_flush(sketch);
        sketch->at = first / SKETCH_CHUNK;
    }
    if (sketch->cursor.next != first)
        cursor_seek(&sketch->cursor, &sketch->frame, first);
    while (n) {
        const size_t run =
            sketch->frame.whole_tiles ? n : cursor_run(&sketch->cursor, &sketch->frame, n);
        add_run(sketch, kernels, x, run);
        x += run;
        n -= run;
    }
}

/* How many of the next n numbers lie in one block of the pass. */
static size_t piece_of(uint64_t first, size_t n)
{
    const size_t room = PLUMB_METRIC_BLOCK - (size_t)(first % PLUMB_METRIC_BLOCK);
    return n < room ? n : room;
}

void sketch_add(struct sketch_state *sketch, const struct kernels *kernels, uint64_t first,
                const double *x, size_t n, bool plain)
{
    double copy[PLUMB_METRIC_BLOCK];
    for (size_t piece; n; n -= piece) {
        piece = piece_of(first, n);
        if (!plain)
            clean(sketch, first, x, piece, copy);
        add_piece(sketch, kernels, first, plain ? x : copy, piece);
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
