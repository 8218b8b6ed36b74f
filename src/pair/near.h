/* The nearest name of the other run, for a record that has no partner. */
#ifndef PAIR_NEAR_H
#define PAIR_NEAR_H

#include "base/map.h"
#include "pair/parts.h"

struct near_name;
struct near_list;

struct near {
    struct arena arena;
    struct map tokens;       /* to the number of the token, from 1 */
    struct near_name *names; /* that may be proposed */
    size_t count;
    struct near_list *lists; /* by number of token: which names have it */
    size_t letter_budget;
};

/* Prepares proposals from one side of a matching: its free records or, when there are none, all.
 * False when out of memory, and then there is nothing to destroy. */
bool near_init(struct near *near, const struct matcher *matcher, int which);
void near_destroy(struct near *near);

/* The record whose name is nearest, or PLUMB_NO_RECORD when no name is near at all. The work is
 * bounded, whatever the number of records. */
size_t near_find(struct near *near, const char *name);

#endif
