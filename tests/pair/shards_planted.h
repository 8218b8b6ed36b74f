/* Tensors cut into parts in known ways, by code that has nothing in common with src/pair. */
#ifndef TEST_SHARDS_PLANTED_H
#define TEST_SHARDS_PLANTED_H

#include "pair/shards.h"

enum { PLANTED_PARTS = 16 };

enum planted_kind {
    PLANTED_REPLICA,
    PLANTED_CONCAT,
    PLANTED_UNEVEN,
    PLANTED_ZIGZAG,
    PLANTED_FUSED2,
    PLANTED_FUSED3,
    PLANTED_HEADS, /* q k v of the sizes 4:1:1 */
    PLANTED_GRID,  /* two axes */
    PLANTED_MIXED, /* slices that two ranks have each */
    PLANTED_SUM,
    PLANTED_MEAN,
    PLANTED_FLAT, /* rows of numbers, padded */
    PLANTED_KINDS
};

struct planted {
    struct plumb_tensor whole;
    struct plumb_tensor part[PLANTED_PARTS];
    const struct plumb_tensor *parts[PLANTED_PARTS];
    unsigned count, axis;
    void *data[PLANTED_PARTS + 1];
};

/* Cuts a tensor of numbers from `seed` into `count` parts. shuffled: in a random order of ranks.
 * noise: relative, on each part. */
void planted_make(struct planted *out, enum planted_kind kind, enum plumb_dtype dtype,
                  unsigned count, uint64_t seed, bool shuffled, double noise);

/* Other parts of the same whole. */
void planted_again(struct planted *out, const struct planted *from, enum planted_kind kind,
                   unsigned count, uint64_t seed);

void planted_free(struct planted *planted);

double planted_random(uint64_t *state); /* in [-1, 1) */

const char *planted_name(enum planted_kind kind);

#endif
