/* A CountSketch: 256 sums of a tensor's numbers with signs, which tell how far apart two tensors
 * are when their values are gone, and a few sums of each block of indices along its axes, which
 * tell where. docs/FORMATS.md defines it. Sketches are linear: those of parts add up to that of the
 * whole, when each number is added under the index that it has in the whole. */
#ifndef METRIC_SKETCH_H
#define METRIC_SKETCH_H

#include "metric/exact.h"
#include "metric/kernel.h"
#include "plumb/sketch.h"
#include "plumb/tensor.h"

#include <stdbool.h>
#include <stddef.h>

enum { SKETCH_VERSION = 4, SKETCH_OLD = 2 };

/* Numbers whose sums are taken in float64; those of chunks are added up without rounding. Parts
 * that begin at multiples of it can be merged to the same bits. */
enum { SKETCH_CHUNK = 65536 };

/* Sums of a chunk's numbers below this cannot overflow. */
#define SKETCH_LARGE 0x1p1000

/* One axis of the whole tensor, divided into blocks. */
struct sketch_axis {
    unsigned axis, blocks;
    uint64_t size, length; /* indices of the axis, and of a block */
    uint64_t inner;        /* numbers for each index */
};

/* How a tensor is divided: the axes of sketch_divide() (format/sketch_kept.h), for
 * SKETCH_VERSION or, to compare values with what older files have, for SKETCH_OLD. */
struct sketch_frame {
    int version;
    unsigned count;
    bool whole_tiles; /* no tile lies in two blocks of an axis */
    struct sketch_axis axis[PLUMB_SKETCH_AXES];
};

void sketch_frame_init(struct sketch_frame *frame, int version, enum plumb_dtype dtype,
                       unsigned rank, const int64_t *shape);

enum {
    SKETCH_AXIS_SUMS = PLUMB_SKETCH_BLOCKS * PLUMB_SKETCH_FOLD,
    SKETCH_CELLS = PLUMB_SKETCH_SUMS + PLUMB_SKETCH_AXES * SKETCH_AXIS_SUMS,
};

/* Where in each axis the next number lies. */
struct sketch_cursor {
    uint64_t next;
    uint64_t left[PLUMB_SKETCH_AXES]; /* numbers until the end of the block */
    unsigned block[PLUMB_SKETCH_AXES];
};

/* Cells are the sums, and then those of the blocks of each axis. A cell is chunk + high + low +
 * rest, without any rounding but that inside the chunk. */
struct sketch_state {
    struct sketch_frame frame;
    struct sketch_cursor cursor;
    uint64_t at;        /* number of the chunk at hand */
    struct exact *rest; /* what two float64 do not hold; NULL: nothing */
    bool failed;        /* out of memory */
    _Alignas(64) double chunk[SKETCH_CELLS];
    double high[SKETCH_CELLS], low[SKETCH_CELLS];
};

/* The sketch of nothing yet. NULL when out of memory. */
struct sketch_state *sketch_new(const struct sketch_frame *frame);
void sketch_free(struct sketch_state *sketch); /* NULL is fine */

/* How many cells a sketch has: the length of its arrays. */
size_t sketch_cells(const struct sketch_state *sketch);

/* Adds numbers [first, first+n) of the whole tensor; a complex element is two. What is not finite
 * counts as 0. plain: all are finite and below 2^1000 in size. */
void sketch_add(struct sketch_state *sketch, const struct kernels *kernels, uint64_t first,
                const double *x, size_t n, bool plain);

/* Adds a part of a larger tensor, whose frame the sketch has: `shape` is that of the whole, offset
 * where the part begins in it. Both have the rank of the part. PLUMB_E_ARG when it does not fit.
 * Sketches of all parts, finished and added by sketch_sum or merged before, are that of the whole
 * but for the rounding of single bits. */
enum plumb_code sketch_part(struct sketch_state *sketch, const struct plumb_tensor *part,
                            const int64_t *shape, const int64_t *offset, struct plumb_error *err);

/* Both have the same frame. */
void sketch_merge(struct sketch_state *sketch, const struct sketch_state *other);

/* Adds the chunk at hand to those before it. */
void sketch_flush(struct sketch_state *sketch);

/* False when memory ran out on the way. */
bool sketch_finish(struct sketch_state *sketch, struct plumb_sketch *out);

/* a + b, of parts of one tensor. False when they are not: other versions or blocks; and for
 * versions other than SKETCH_VERSION. */
bool sketch_sum(struct plumb_sketch *out, const struct plumb_sketch *a,
                const struct plumb_sketch *b);

/* -- Two sketches ------------------------------------------------------------------------------ */

/* Can they be compared? */
bool sketch_alike(const struct plumb_sketch *a, const struct plumb_sketch *b);

/* An estimated distance, its standard error, and what the true one is at least but for once in 400
 * times: three standard deviations of its square are taken off. */
struct sketch_estimate {
    double distance, error, at_least;
};

/* The standard error of estimates from 256 sums, as a share of them: sqrt(1 / 512). */
#define SKETCH_ERROR 0.0442

/* The Euclidean distance of target and golden over the norm of golden, from their sketches; norm is
 * that norm; if it is not finite, it is estimated too. 0/0 is 0. Distances of less than about 1e-2
 * are estimated from 64 sums with more digits. */
struct sketch_estimate sketch_distance(const struct plumb_sketch *target,
                                       const struct plumb_sketch *golden, double norm);

/* The factor that brings golden nearest to target, its standard error, and the share of the
 * distance that is left after it. NaN when golden is zero. */
struct sketch_scale {
    double factor, error, left;
};
struct sketch_scale sketch_scale(const struct plumb_sketch *target,
                                 const struct plumb_sketch *golden);

/* Where the two differ, when that is in some blocks of an axis only: "axis 1: 48-63 (1 of 16
 * blocks)", every such axis; cut to size. "" when it is everywhere, nowhere, or too little to tell.
 * Returns text. */
const char *sketch_where(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                         char *text, size_t size);

#endif
