/* Which communication nodes of different ranks belong to the same exchange, and in which layer. */
#ifndef RANKS_EXCHANGE_H
#define RANKS_EXCHANGE_H

#include "task/ranks/graph.h"

#define EXCHANGE_NONE SIZE_MAX

/* A communication node in the chain of its rank. */
struct exchange_member {
    struct graph_node *node;
    size_t kind; /* among those of its rank */
    size_t next; /* the next member of that kind, or EXCHANGE_NONE */
};

struct exchange_edge {
    size_t a, b; /* members; a of the lower rank */
};

struct exchange {
    struct exchange_member *members; /* chain after chain */
    size_t *first;                   /* where the chain of each rank begins; one more than ranks */
    struct exchange_edge *edges;
    size_t edge_count;
};

/* Ties the chains together and gives every member's node its layer. */
enum plumb_code exchange_build(struct exchange *exchange, const struct graph_rank *ranks,
                               size_t count, const struct ranks_rules *rules, struct arena *arena);

#endif
