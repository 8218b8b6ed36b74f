/* Walking over the nodes of all ranks. */
#include "ranks/order.h"

struct walk {
    const struct graph_rank *ranks;
    const struct order_visitor *visitor;
    size_t *next; /* node of each rank */
};

/* The nodes of a rank up to one of them, which is left out. */
static void pass(struct walk *w, size_t rank, size_t end)
{
    for (; w->next[rank] < end; w->next[rank]++) {
        struct graph_node *node = &w->ranks[rank].nodes[w->next[rank]];
        if (!node->communication)
            w->visitor->node(w->visitor->context, node);
    }
}

enum plumb_code order_walk(struct graph_rank *ranks, size_t count,
                           const struct order_visitor *visitor, struct arena *arena)
{
    static const struct ranks_rules own = {0};
    struct exchange x;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < ranks[r].count; i++)
            ranks[r].nodes[i].rank = r;
    enum plumb_code code = exchange_build(&x, ranks, count, &own, arena);
    if (code)
        return code;
    const size_t total = x.first[count];
    struct walk w = {ranks, visitor, arena_array(arena, count, sizeof *w.next)};
    struct graph_node **members = arena_array(arena, total, sizeof *members);
    if (!w.next || !members)
        return PLUMB_E_NOMEM;
    for (size_t i = 0, end; i < total; i = end) {
        size_t n = 0;
        for (end = i; end < total && x.exchanges[end] == x.exchanges[i]; end++) {
            struct graph_node *node = x.members[x.sequence[end]].node;
            pass(&w, node->rank, (size_t)(node - ranks[node->rank].nodes));
            members[n++] = node;
        }
        visitor->exchange(visitor->context, members, n);
    }
    for (size_t r = 0; r < count; r++)
        pass(&w, r, ranks[r].count);
    return PLUMB_OK;
}
