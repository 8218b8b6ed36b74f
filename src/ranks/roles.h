/* What an API of a dump is to the search: whether it communicates, in which role, and with whom. */
#ifndef RANKS_ROLES_H
#define RANKS_ROLES_H

#include "base/buf.h"
#include "base/map.h"
#include "dump/dump.h"
#include "ranks/graph.h"

struct roles {
    struct arena *arena; /* lists of peers come from here */
    const struct ranks_rules *rules;
    struct buf numbers;     /* peers of the node at hand */
    struct map lists;       /* those that are already in the arena; most nodes share a few */
    const char *group_text; /* the group that was read last, and what it is */
    const int64_t *group;
    size_t group_count;
};

/* Fills name, communication, role, group, order and peers of node. Trees must outlive the roles.
 * rank is the number of the rank it ran on. */
enum plumb_code roles_describe(struct roles *roles, struct graph_node *node,
                               const struct dump_tree *tree, const struct dump_api *api,
                               int64_t rank);
void roles_free(struct roles *roles);

#endif
