/* The names of many ranks, of one side: which of them is nearest. Each is kept once. */
#ifndef COMPARE_RANK_NAMES_H
#define COMPARE_RANK_NAMES_H

#include "pair/near.h"
#include "task/compare/compare.h"

/* All zero: none. */
struct rank_names {
    struct arena arena;
    struct near near;
    struct near_record *list;
    size_t count, capacity;
};

/* Adds that of a record; the first one of a name counts. False when out of memory. */
bool rank_names_add(struct rank_names *names, const struct plumb_record *record);

/* The nearest of all; NULL: none is near. After near_ready(&names->near). */
const struct near_record *rank_names_nearest(struct rank_names *names, const char *name);

void rank_names_free(struct rank_names *names);

#endif
