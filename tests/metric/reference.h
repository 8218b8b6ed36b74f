/* Pairs of tensors made up for tests, and a naive second opinion on their metrics.
 *
 * Sums are taken in long double, one element after the other; everything else is written down as
 * plumb/metric.h defines it, for the plain rule and finite values. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "plumb/metric.h"

/* One side: the tensor, its bytes as they would lie dense in native order, its numbers. */
struct side {
    struct plumb_tensor tensor;
    unsigned char *storage; /* what tensor.data points into */
    unsigned char *dense;
    uint64_t dense_bytes;
    long double *values; /* numbers: two an element for complex types */
};

struct pair {
    struct side target, golden;
    uint64_t numbers; /* of each side, once real values beside complex ones were padded */
    double *d;        /* target - golden, rounded once */
};

enum pair_layout { DENSE, SWAPPED, STRIDED, SWAPPED_AND_STRIDED, LAYOUTS };

/* count elements of random numbers, most of them close to each other. special: how many numbers of
 * each side (roughly) are NaN or infinite, where the types have them. Free with pair_free. */
void pair_make(struct pair *pair, enum plumb_dtype target, enum plumb_dtype golden, uint64_t count,
               enum pair_layout layout, unsigned special, uint64_t *seed);

/* The same from numbers that are given, of types float32, float64, int64 or uint64 (as bits). */
void pair_from(struct pair *pair, enum plumb_dtype dtype, const void *target, const void *golden,
               uint64_t count);

void pair_free(struct pair *pair);

/* Checks all named metrics, histograms, checksums and statistics; all values must be finite. */
void reference_check(const struct pair *pair, const struct plumb_metric_spec *spec,
                     const struct plumb_metrics *metrics);

/* Fails unless the two are equal to the last bit. */
void reference_same(const struct plumb_metrics *a, const struct plumb_metrics *b);

/* By the bit, from the polynomial. */
uint32_t reference_crc(const unsigned char *bytes, uint64_t size);

/* KL divergence of the softmaxes, in long double. */
double reference_kl(const struct pair *pair);

#endif
