/* The nodes of all ranks in one order, in which each comes after everything that it may have
 * learned from: the nodes before it in its rank, and what came before the exchanges that it took
 * part in. */
#ifndef RANKS_ORDER_H
#define RANKS_ORDER_H

#include "ranks/exchange.h"

struct order_visitor {
    void (*node)(void *context, struct graph_node *node); /* that computes */
    /* Nodes of one exchange, by rank. */
    void (*exchange)(void *context, struct graph_node *const *members, size_t count);
    void *context;
};

/* Walks over all nodes. Ranks are in order of their numbers; nodes get their rank and layer. Work
 * space comes from the arena; PLUMB_E_NOMEM is the only failure. */
enum plumb_code order_walk(struct graph_rank *ranks, size_t count,
                           const struct order_visitor *visitor, struct arena *arena);

#endif
