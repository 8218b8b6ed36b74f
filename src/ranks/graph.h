/* Who was first: operators of several ranks in the order in which they ran, tied together by
 * communication. Both analyses (the first NaN or infinity, the first difference) are this search
 * with their own idea of what makes a node bad.
 *
 * 1. Before any rank communicates: the first bad node of each rank.
 * 2. Communication: nodes that took part in the same exchange form a group; groups lie in layers,
 *    and a communication node holds the bad compute nodes since the one before it. The bad node of
 *    the lowest layer, and inside it the first in its chain, is the one.
 * 3. After the last communication: the first bad node of each rank.
 *
 * A phase counts only when those before it found nothing.
 *
 * ranks/order.h walks the same graph for those who want all of it. */
#ifndef RANKS_GRAPH_H
#define RANKS_GRAPH_H

#include "base/arena.h"
#include "plumb/error.h"
#include "verdict/profiles.h"

#include <stdbool.h>
#include <stdint.h>

enum graph_role { GRAPH_LINK, GRAPH_SOURCE, GRAPH_TARGET };

/* The caller fills the first part, the search the second. */
struct graph_node {
    const char *name;   /* "Distributed.send.0.forward" */
    bool communication; /* else a compute node */
    bool ignored;       /* never bad, and not counted */
    bool bad;           /* something is wrong with what it made, and not with what it got */
    bool tainted;       /* communication: something is wrong with what it made or got */
    bool bad_input;     /* communication: something is wrong with what it got */
    bool given;         /* for ranks/travel.h: it has something wrong, which begins here where its
                           rank had nothing of the kind before */
    enum graph_role role;
    const int64_t *peers; /* ranks it exchanges with; none means all */
    size_t peer_count;
    const int64_t *group; /* ranks of its process group, ascending; none: not recorded */
    size_t group_count;
    int64_t order; /* counts the exchanges of its rank as they began; -1: not recorded */

    size_t rank;     /* index among the ranks */
    size_t layer;    /* of communication nodes */
    size_t position; /* compute nodes since the communication node before it */
};

struct graph_rank {
    int64_t number;
    struct graph_node *nodes;
    size_t count;
};

enum graph_phase { GRAPH_CLEAN, GRAPH_BEFORE, GRAPH_DURING, GRAPH_AFTER };

struct graph_result {
    enum graph_phase phase;
    struct graph_node **found; /* by rank, in the arena */
    size_t count;
};

/* Results and work space come from the arena. PLUMB_E_NOMEM is the only failure. */
enum plumb_code graph_search(struct graph_result *result, struct graph_rank *ranks, size_t count,
                             const struct ranks_rules *rules, struct arena *arena);

/* True for operators that send to, or receive from, single ranks, by API name
 * ("batch_isend_irecv"). */
bool graph_is_point_to_point(const char *op, size_t length);

/* True for the names of operators that exchange tensors between ranks. */
bool graph_is_communication(const char *name);

/* The role that the first number among the arguments decides, by API name ("send"): a target for
 * send and gather, a source for recv, broadcast and scatter, else GRAPH_LINK. */
enum graph_role graph_direction(const char *op, size_t length);

/* The part of the name between its first two dots. */
const char *graph_op(const char *name, size_t *length);

#endif
