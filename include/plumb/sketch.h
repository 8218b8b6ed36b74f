/* Sums of a tensor's numbers with signs: what plumb condense and sketch captures keep so that plumb
 * compare can estimate how far apart two tensors are, and where. docs/FORMATS.md defines them. */
#ifndef PLUMB_SKETCH_H
#define PLUMB_SKETCH_H

#include <stdint.h>

#define PLUMB_SKETCH_SUMS 256
#define PLUMB_SKETCH_AXES 6    /* that are divided into blocks, at most */
#define PLUMB_SKETCH_BLOCKS 16 /* of an axis, at most */
#define PLUMB_SKETCH_FOLD 4    /* sums of a block */

/* Sums of the numbers in each block of indices along one axis: block b has the indices from b *
 * length on. Sum j is of the numbers in all sums i of the sketch with i mod
 * PLUMB_SKETCH_FOLD = j. */
struct plumb_sketch_axis {
    unsigned axis, blocks;
    uint64_t size, length; /* indices of the axis, and of a block; the last one may have fewer */
    float sum[PLUMB_SKETCH_BLOCKS][PLUMB_SKETCH_FOLD];
};

/* Sum i is sum[i] * 2^exponent, those of blocks too. The largest is from 0.5 to 1 in size, or all
 * are 0. Sketches of different versions have nothing to do with each other; version 1 has no
 * axes. */
struct plumb_sketch {
    int version, exponent;
    float sum[PLUMB_SKETCH_SUMS];
    unsigned axes;
    struct plumb_sketch_axis axis[PLUMB_SKETCH_AXES];
};

#endif
