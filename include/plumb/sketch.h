/* Sums of a tensor's numbers with signs: what plumb condense keeps so that plumb compare can
 * estimate how far apart two tensors are. docs/FORMATS.md defines them. */
#ifndef PLUMB_SKETCH_H
#define PLUMB_SKETCH_H

#define PLUMB_SKETCH_SUMS 256

/* Sum i is sum[i] * 2^exponent. The largest sum[i] is from 0.5 to 1 in size, or all are 0. */
struct plumb_sketch {
    int exponent;
    float sum[PLUMB_SKETCH_SUMS];
};

#endif
