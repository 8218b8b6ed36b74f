/* Sketches as they are kept: sums of 16 bits, what sums over every 64th of them lose by it, and
 * sums of blocks with 24 bits. */
#ifndef FORMAT_SKETCH_KEPT_H
#define FORMAT_SKETCH_KEPT_H

#include "plumb/sketch.h"

#include <stdbool.h>
#include <stddef.h>

/* The sums alone; each block of an axis takes SKETCH_BLOCK_BYTES more. */
enum {
    SKETCH_SUM_BYTES = PLUMB_SKETCH_SUMS * 2 + PLUMB_SKETCH_FINE * 3 / 2,
    SKETCH_BLOCK_BYTES = PLUMB_SKETCH_FOLD * 3,
    SKETCH_MOST_BYTES =
        SKETCH_SUM_BYTES + PLUMB_SKETCH_AXES * PLUMB_SKETCH_BLOCKS * SKETCH_BLOCK_BYTES,
};

/* Rounds sums with all their digits, and `rest` (what sums over every 64th of them are short of),
 * to what is kept. A sketch that is rounded stays as it is. */
void sketch_round(struct plumb_sketch *sketch);

/* The bytes of a rounded sketch, how many there are, and back: exponents and the blocks of axes
 * are known. */
size_t sketch_bytes(const struct plumb_sketch *sketch);
void sketch_to_bytes(const struct plumb_sketch *sketch, uint8_t *bytes);
void sketch_from_bytes(struct plumb_sketch *sketch, const uint8_t *bytes);

#endif
