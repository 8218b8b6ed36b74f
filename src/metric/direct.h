/* The direct path: blocks of one type through the combined kernels, straight from memory. */
#ifndef METRIC_DIRECT_H
#define METRIC_DIRECT_H

#include "metric/classes.h"
#include "metric/state.h"

/* The groups that need no look at values: plumb_metric_update sees to them on both paths. */
enum { STORED_GROUPS = PLUMB_G_CRC | PLUMB_G_BITS };

/* How many sizes of each class there are: |d| and r. */
struct size_counts {
    uint64_t abs[CLASSES], ratio[CLASSES];
};

/* Adds n stored pairs, the first of which has the number base. False, and nothing added, when they
 * have to go the general way: for their types, for what is wanted, or for what they are. What is
 * counted by class goes to counts, which begins with zeros; direct_finish adds it. */
bool direct_block(struct plumb_metric_state *state, const void *t, const void *g, size_t n,
                  uint64_t base, struct size_counts *counts);
void direct_finish(struct plumb_metric_state *state, const struct size_counts *counts);

#endif
