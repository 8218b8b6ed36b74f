/* What is kept of a tensor in place of its values: statistics, checksums, a hash and a sketch, from
 * one pass, mergeable. The statistics of complex numbers are those of their sizes, as captures have
 * it. */
#ifndef METRIC_KEPT_H
#define METRIC_KEPT_H

#include "metric/hash.h"
#include "metric/sketch.h"
#include "metric/sketch1.h"
#include "metric/stats.h"

/* What is wanted besides statistics and CRC-32. */
enum { KEPT_HASH = 1, KEPT_SKETCH = 2, KEPT_SKETCH1 = 4, KEPT_XOR = 8, KEPT_SKETCH2 = 16 };

/* Elements at whose multiples a tensor may be cut, so that the parts merge to the same bits. */
enum { KEPT_CUT = SKETCH_CHUNK };

struct kept_state {
    unsigned wanted;
    struct stats_state stats;
    uint32_t part;                 /* CRC-32 of the part that was added last, alone */
    uint32_t crc;                  /* CRC-32 of the elements in C order and native byte order */
    uint64_t words;                /* all 64-bit words of the same bytes, exclusive-ored */
    struct hash hash;              /* of the same bytes */
    struct sketch_state *sketch;   /* NULL: not wanted */
    struct sketch_state *sketch2;  /* of version 2 */
    struct sketch1_state *sketch1; /* of version 1 */
};

/* Nothing yet of a tensor of this type and shape. False when out of memory. kept_end in any
 * case. */
bool kept_begin(struct kept_state *state, const struct plumb_tensor *tensor, unsigned wanted);
void kept_end(struct kept_state *state);

/* Adds elements [first, first+count) of the tensor; first is a multiple of KEPT_CUT, and count one
 * or more than what is left. */
void kept_tensor(struct kept_state *state, const struct kernels *kernels,
                 const struct plumb_tensor *tensor, uint64_t first, uint64_t count);

/* Both began with the same tensor. */
void kept_merge(struct kept_state *state, const struct kept_state *other);

#endif
