/* The nearest name of the other run, for a record that has no partner. */
#ifndef PAIR_NEAR_H
#define PAIR_NEAR_H

#include "base/map.h"
#include "pair/parts.h"

struct near_name;
struct near_list;

/* All zero: no names. */
struct near {
    struct arena arena;
    struct map known;        /* names that are there */
    struct map tokens;       /* to the number of the token, from 1 */
    struct near_name *names; /* that may be proposed */
    size_t count, capacity;
    struct near_list *lists; /* by number of token: which names have it */
    size_t letter_budget;
};

/* Adds a name that may be proposed, and whose it is; of equal names the first counts. The text is
 * kept. False when out of memory. */
bool near_add(struct near *near, const char *name, size_t record);

/* After all names, before the first question. False when out of memory. */
bool near_ready(struct near *near);

/* Prepares proposals from one side of a matching: its free records or, when there are none, all.
 * False when out of memory, and then there is nothing to destroy. */
bool near_init(struct near *near, const struct matcher *matcher, int which);
void near_destroy(struct near *near);

/* The record whose name is nearest, or PLUMB_NO_RECORD when no name is near at all. The work is
 * bounded, whatever the number of records. */
size_t near_find(struct near *near, const char *name);

#endif
