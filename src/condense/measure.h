/* What is kept of a tensor, from one pass over it. The statistics of complex numbers are those of
 * their sizes, as captures have it. */
#ifndef CONDENSE_MEASURE_H
#define CONDENSE_MEASURE_H

#include "plumb/condense.h"
#include "plumb/metric.h"

struct measured {
    struct plumb_stats stats, finite; /* of all values; of the finite ones */
    uint32_t crc;
    double sketch[PLUMB_SKETCH_VALUES];
    unsigned sketch_count;
};

/* False when `stop` (asked now and then; may be NULL) said so. The caller guards mapped bytes. */
bool measure(struct measured *out, const struct plumb_tensor *tensor, unsigned keep,
             bool (*stop)(const void *context), const void *context);

/* The index of value k of a sketch of n numbers. */
uint64_t measure_index(uint64_t n, unsigned k);

#endif
