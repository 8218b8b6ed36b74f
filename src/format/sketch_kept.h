/* Sketches as they are kept: sums of few bits, what sums over every 64th of them lose by it, and
 * sums of blocks. */
#ifndef FORMAT_SKETCH_KEPT_H
#define FORMAT_SKETCH_KEPT_H

#include "plumb/dtype.h"
#include "plumb/sketch.h"

#include <stdbool.h>
#include <stddef.h>

/* What of a sketch of version 4, or of version 2, is kept. */
struct sketch_digits {
    int sum, rest, block; /* multiples of 2^-sum, 2^-rest and 2^-block are */
    int rest_bits;        /* of a rest with its sign; a sum has sum + 1, one of a block block + 1 */
    unsigned fold;        /* sums of a block */
    bool down;            /* those are rounded down, so that fewer digits follow from more */
    bool exponents;       /* are among the bytes */
};
const struct sketch_digits *sketch_digits(int version);

/* Bytes of all sums without blocks, and at most. */
enum {
    SKETCH_SUM_BYTES = 4 + (PLUMB_SKETCH_SUMS * 11 + PLUMB_SKETCH_FINE * 14) / 8,
    SKETCH_BLOCK_BYTES = 5,
    SKETCH_MOST_BYTES = PLUMB_SKETCH_SUMS * 2 + PLUMB_SKETCH_FINE * 3 / 2 +
                        PLUMB_SKETCH_AXES * PLUMB_SKETCH_BLOCKS * PLUMB_SKETCH_FOLD * 3,
};

/* How a tensor is divided, into axis and axes of the sketch, whose version is known: at most 16
 * blocks an axis, with runs of about 64 numbers at least; axes that stay whole are left out, and
 * all but the last six of the others. */
void sketch_divide(struct plumb_sketch *sketch, enum plumb_dtype dtype, unsigned rank,
                   const int64_t *shape);

/* Rounds sums with all their digits, and `rest` (what sums over every 64th of them are short of),
 * to what is kept. A sketch that is rounded stays as it is. Not for version 1. */
void sketch_round(struct plumb_sketch *sketch);

/* The bytes of a rounded sketch, how many there are (a multiple of four), and back: the blocks of
 * axes are known, and the exponents of version 2. */
size_t sketch_bytes(const struct plumb_sketch *sketch);
void sketch_to_bytes(const struct plumb_sketch *sketch, uint8_t *bytes);
void sketch_from_bytes(struct plumb_sketch *sketch, const uint8_t *bytes);

#endif
