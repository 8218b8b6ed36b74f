/* Where something began, and how it went from rank to rank. */
#ifndef RANKS_TRAVEL_H
#define RANKS_TRAVEL_H

#include "base/buf.h"
#include "ranks/order.h"

/* An exchange through which it came to ranks that did not have it. */
struct travel_hop {
    const struct graph_node *by; /* as a rank that had it calls the exchange */
    size_t *to;                  /* ranks, by their places in the list */
    size_t count;
};

/* A node that is bad, or has something bad, though nothing bad could have reached its rank. */
struct travel {
    const struct graph_node *from;
    bool given; /* it did not make it */
    struct travel_hop *hops;
    size_t count, capacity;
};

struct travels {
    struct travel *list; /* in the order of the walk */
    size_t count, capacity;
    size_t *owner; /* of each rank: which of them came there first, + 1; 0: none */
};

/* Follows what nodes say of themselves: `bad`, where it begins, unless they are ignored, and
 * `given`, where it is first seen at a rank that nothing came to. What is only given by a node that
 * is ignored gives way to what another makes, as long as it went nowhere. seen: it
 * can be seen in what an exchange got and gave (bad_input, tainted); else whoever may have had it
 * is taken to pass it on, with the direction that the exchange has. All in the arena. */
enum plumb_code travel_find(struct travels *out, struct graph_rank *ranks, size_t count, bool seen,
                            struct arena *arena);

/* "0-2, 5": ranks in ascending order. */
void travel_put_ranks(struct buf *out, const int64_t *ranks, size_t count);

#endif
