/* What is kept of a tensor in place of its values: statistics, checksums and a sketch, from one
 * pass, mergeable. The statistics of complex numbers are those of their sizes, as captures have
 * it. */
#ifndef METRIC_KEPT_H
#define METRIC_KEPT_H

#include "metric/sketch.h"
#include "metric/stats.h"

struct kept_state {
    struct stats_state stats;
    uint32_t crc;                /* CRC-32 of the elements in C order and native byte order */
    uint64_t words;              /* all 64-bit words of the same bytes, exclusive-ored */
    struct sketch_state *sketch; /* the caller's; NULL: none is wanted */
};

/* Adds elements [first, first+count) of a tensor; first is a multiple of PLUMB_METRIC_BLOCK, count
 * may exceed what is left. */
void kept_tensor(struct kept_state *state, const struct kernels *kernels,
                 const struct plumb_tensor *tensor, uint64_t first, uint64_t count);

void kept_merge(struct kept_state *state, const struct kept_state *other);

#endif
