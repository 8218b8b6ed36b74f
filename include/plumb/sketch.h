/* Sums of a tensor's numbers with signs: what plumb condense and sketch captures keep so that plumb
 * compare can estimate how far apart two tensors are, and where. docs/FORMATS.md defines them. */
#ifndef PLUMB_SKETCH_H
#define PLUMB_SKETCH_H

#include <stdint.h>

#define PLUMB_SKETCH_SUMS 256
#define PLUMB_SKETCH_AXES 6    /* that are divided into blocks, at most */
#define PLUMB_SKETCH_BLOCKS 16 /* of an axis, at most */
#define PLUMB_SKETCH_FOLD 4    /* sums of a block, at most */
#define PLUMB_SKETCH_FINE 64   /* sums over every 64th sum, which are kept with more digits */

/* Sums of the numbers in each block of indices along one axis: block b has the indices from b *
 * length on. Sum j is of the numbers in all sums i of the sketch with i mod F = j; F is 2, and 4 in
 * version 2. */
struct plumb_sketch_axis {
    unsigned axis, blocks;
    uint64_t size, length; /* indices of the axis, and of a block; the last one may have fewer */
    float sum[PLUMB_SKETCH_BLOCKS][PLUMB_SKETCH_FOLD];
};

/* Sum i is sum[i] * 2^exponent, those of blocks are times 2^block_exponent. The largest is from 0.5
 * to 1 in size, or all are 0. Version 4: sums are rounded to multiples of 2^-10, sum[j] +
 * sum[j + 64] + sum[j + 128] + sum[j + 192] + rest[j] to 2^-22, and those of blocks down to 2^-19.
 * Version 2: the same with 2^-15, 2^-25 and 2^-23. Version 1 has sums with all their digits, and
 * neither rest nor axes. Sketches of different versions have nothing to do with each other. */
struct plumb_sketch {
    int version, exponent, block_exponent;
    float sum[PLUMB_SKETCH_SUMS];
    float rest[PLUMB_SKETCH_FINE];
    unsigned axes;
    struct plumb_sketch_axis axis[PLUMB_SKETCH_AXES];
};

#endif
