/* Which records of the ranks of a run are parts of the same tensor. */
#ifndef PAIR_SHARDS_GROUP_H
#define PAIR_SHARDS_GROUP_H

#include "base/arena.h"
#include "pair/shards_dims.h"
#include "plumb/record.h"

struct shards_group {
    const char *name; /* that the whole has in its run: of its layer there, and unique in a step */
    const char *api;  /* of its call, where that has another number than its parts; else NULL */
    const char *parent; /* of its call, with the numbers of the whole; NULL: none */
    int64_t step;
    size_t *records; /* numbers, in the order of their ranks */
    int64_t *ranks;
    unsigned parts, room;
};

struct shards_groups {
    struct shards_group *list; /* in the order of the first of their records */
    size_t count;
    int64_t *ranks; /* of the run, ascending; none: it knows no ranks */
    unsigned rank_count;
    size_t values;            /* arguments that are no tensors, left out */
    size_t strays;            /* tensors of no rank beside those of ranks, left out */
    const char *stray;        /* the first of them */
    unsigned stages, experts; /* groups of ranks with layers, or experts, of their own; 1: none */
};

/* What a run says about its layers and experts. */
struct shards_numbers {
    int64_t layers, experts; /* the largest number in any name, and one */
};

/* Of all ranks, or (of a run of several ranks) the least that one of them has. */
struct shards_numbers shards_count_numbers(const struct plumb_record *const *records, size_t count);

/* On how many places of their own the experts of a run are: where every rank counts as many from 0,
 * and the other run has that many times more. 1: they are not, or that is not known. False when out
 * of memory. */
bool shards_expert_places(struct arena *arena, const struct plumb_record *const *records,
                          size_t count, const struct shards_numbers *other, unsigned *places);

/* The rank that a folder is named after, "rank3", "rank_3"; -1: none. */
int64_t shards_rank_of_folder(const char *name);

/* The number of the expert in a name, or -1. */
int64_t shards_expert(const char *name);

/* Groups the records of a run. Where mesh has pp (or ep), or the other run has a multiple of the
 * layers (or experts) that each rank of this one has, those of later stages are counted on. Records
 * with names that begin with "rank0/" or "rank0." have their rank from there. False when out of
 * memory; everything is in the arena. */
bool shards_group(struct shards_groups *out, struct arena *arena,
                  const struct plumb_record *const *records, size_t count,
                  const struct shards_mesh *mesh, const struct shards_numbers *other);

/* Gradients that were reduced, "Module.reduced.PATH": where only `of` has them, the other run,
 * which has nothing to reduce, gets groups of these names from its own gradients. False when out of
 * memory. */
bool shards_group_reduced(struct shards_groups *groups, const struct shards_groups *of,
                          struct arena *arena);

#endif
