/* Which communication nodes of different ranks belong to the same exchange, and in which layer. */
#ifndef RANKS_EXCHANGE_H
#define RANKS_EXCHANGE_H

#include "ranks/graph.h"

#define EXCHANGE_NONE SIZE_MAX

/* A communication node in the chain of its rank. */
struct exchange_member {
    struct graph_node *node;
    size_t kind; /* among those of its rank */
    size_t next; /* the next member of that kind, or EXCHANGE_NONE */
    size_t tie;  /* the collective that it took part in, or EXCHANGE_NONE */
};

struct exchange_edge {
    size_t a, b; /* members; a of the lower rank */
};

struct exchange {
    struct exchange_member *members; /* chain after chain */
    size_t *first;                   /* where the chain of each rank begins; one more than ranks */
    struct exchange_edge *edges;     /* who met whom, where that is not a tie */
    size_t edge_count;
    size_t *tied; /* members of collectives, one after the other, by rank */
    size_t *tie_first;
    size_t tie_count;
    size_t *sequence;  /* members, each after all that came before any of its exchange; those of an
                         exchange stand together. NULL where the rules have layers of their own */
    size_t *exchanges; /* of the same places: a number that is that of the exchange */
};

/* Ties the chains together and gives every member's node its layer. The time is linear in the
 * members: those of a collective are tied as a whole, and only what goes from one rank to another
 * is looked for in pairs. */
enum plumb_code exchange_build(struct exchange *exchange, const struct graph_rank *ranks,
                               size_t count, const struct ranks_rules *rules, struct arena *arena);

#endif
