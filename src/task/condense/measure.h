/* What is kept of a tensor, from one pass over it. The statistics of complex numbers are those of
 * their sizes, as captures have it. */
#ifndef CONDENSE_MEASURE_H
#define CONDENSE_MEASURE_H

#include "metric/kept.h"
#include "plumb/condense.h"
#include "plumb/metric.h"
#include "plumb/sketch.h"

struct measured {
    struct plumb_stats stats, finite; /* of all values; of the finite ones */
    struct ends ends;
    uint32_t crc;
    struct hash hash;
    struct plumb_sketch sketch;
};

enum measure_outcome { MEASURE_DONE, MEASURE_STOPPED, MEASURE_NO_MEMORY };

/* STOPPED when `stop` (asked now and then; may be NULL) said so. The caller guards mapped bytes. */
enum measure_outcome measure(struct measured *out, const struct plumb_tensor *tensor, unsigned keep,
                             bool (*stop)(const void *context), const void *context);

/* What a state has to have for it, and what it has come to; false when out of memory. */
unsigned measure_wanted(unsigned keep);
bool measure_take(struct measured *out, struct kept_state *state);

#endif
