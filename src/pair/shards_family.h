/* Process groups that a capture wrote down with what ranks exchange: which ranks belong together.
 *
 * Groups of one size and spacing that have every rank once are a family: of "0,1 2,3" and "0,2 1,3"
 * one is tensor parallel and the other data parallel, whatever their names were. A family does not
 * say what is done with a tensor; it says which ranks are beside each other, and in which order. */
#ifndef PAIR_SHARDS_FAMILY_H
#define PAIR_SHARDS_FAMILY_H

#include "pair/shards_infer.h"

struct shards_family {
    unsigned size;         /* of each group */
    const unsigned *place; /* by rank of the run, ascending: where it is in its group */
    const unsigned *group; /* likewise: the number of its group */
    const char *text;      /* "0,1 2,3"; long ones are cut */
};

struct shards_families {
    struct shards_family *list;
    size_t count;
    size_t left; /* groups that belong to no family: some of their like were not recorded */
    const int64_t *ranks;
    unsigned rank_count;
};

/* Sorts groups, texts like "[0, 1]" (each may come often; what is no such text counts as not
 * there), into families. Groups of one rank, and of all, say nothing. Everything is in the arena;
 * ranks must live as long. False when out of memory. */
bool shards_families(struct shards_families *out, struct arena *arena, const char *const *groups,
                     size_t count, const int64_t *ranks, unsigned rank_count);

/* Where values leave it open how the parts of a side lie in the whole, or no value decides: takes
 * the one layout whose slices follow a family, if it is the only such and fits as well. Where
 * values decided, notes the family that they agree with. PLUMB_E_NOMEM. */
enum plumb_code shards_by_families(struct shards_found *found, struct arena *arena,
                                   const struct shards_side *side, const struct plumb_tensor *whole,
                                   struct plumb_error *err);

#endif
