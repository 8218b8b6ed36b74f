/* Numbers of layers, experts and ranks in names, and what they are in the whole model. */
#ifndef PAIR_SHARDS_NUMBER_H
#define PAIR_SHARDS_NUMBER_H

#include "pair/shards_group.h"

enum numbering_kind { NUMBER_LAYERS, NUMBER_EXPERTS, NUMBER_KINDS };

struct numbering {
    struct numbered {
        unsigned places; /* groups of ranks that have their own; 1: none */
        unsigned ranks;  /* the run's */
        int64_t *before; /* by place: how many come before its own */
        unsigned *place; /* by rank, in the order of `known` */
    } kind[NUMBER_KINDS];
    const int64_t *known; /* ranks, ascending */
};

/* The rank of a record, from its name where the run does not know; *name goes behind it. */
int64_t numbering_rank(const struct plumb_record *record, const char **name);

/* Where the number of a layer is in a name, "layers.3."; false: there is none. */
bool numbering_layer(const char *name, size_t *at, size_t *length);

/* All ranks of a run, ascending. False when out of memory. */
bool numbering_ranks(struct arena *arena, const struct plumb_record *const *records, size_t count,
                     int64_t **ranks, unsigned *rank_count);

bool numbering_init(struct numbering *numbering, struct arena *arena,
                    const struct plumb_record *const *records, size_t count, const int64_t *ranks,
                    unsigned rank_count, const struct shards_mesh *mesh,
                    const struct shards_numbers *other);

/* The name that a rank's name is in the whole model; NULL when out of memory. */
const char *numbering_whole(const struct numbering *numbering, struct arena *arena,
                            const char *name, int64_t rank);

#endif
