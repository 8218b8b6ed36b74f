/* Following something from rank to rank. */
#include "ranks/travel.h"

#include <inttypes.h>
#include <string.h>

struct follow {
    struct travels *out;
    struct arena *arena;
    bool seen, failed;
};

/* The list with room for one more; NULL when out of memory. */
static void *grow(struct follow *f, void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    const size_t more = *capacity ? 2 * *capacity : 8;
    char *grown = arena_array(f->arena, more, size);
    if (grown && count)
        memcpy(grown, list, count * size);
    if (grown)
        *capacity = more;
    f->failed |= !grown;
    return grown;
}

/* Whether what is known of a rank is something asked for, which stayed there. */
static bool is_replaceable(const struct travels *out, size_t rank)
{
    const struct travel *known = out->owner[rank] ? &out->list[out->owner[rank] - 1] : NULL;
    return !known || (known->from->ignored && known->from->bad && !known->count);
}

static void begin(struct follow *f, const struct graph_node *node, bool given)
{
    struct travels *out = f->out;
    const bool made = node->bad && !node->ignored;
    if (made ? !is_replaceable(out, node->rank) : !given || !node->given || out->owner[node->rank])
        return;
    struct travel *list = grow(f, out->list, out->count, &out->capacity, sizeof *list);
    if (!list)
        return;
    out->list = list;
    list[out->count++] = (struct travel){.from = node, .given = !made};
    out->owner[node->rank] = out->count;
}

static void see_node(void *context, struct graph_node *node)
{
    begin(context, node, true);
}

static bool carries(const struct follow *f, const struct graph_node *node)
{
    return f->out->owner[node->rank] && node->role != GRAPH_TARGET && (!f->seen || node->bad_input);
}

static bool receives(const struct follow *f, const struct graph_node *node)
{
    return !f->out->owner[node->rank] && node->role != GRAPH_SOURCE && (!f->seen || node->tainted);
}

static void hop(struct follow *f, const struct graph_node *by, struct graph_node *const *members,
                size_t count)
{
    struct travel *travel = &f->out->list[f->out->owner[by->rank] - 1];
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += receives(f, members[i]);
    if (!n)
        return;
    struct travel_hop *hops = grow(f, travel->hops, travel->count, &travel->capacity, sizeof *hops);
    size_t *to = arena_array(f->arena, n, sizeof *to);
    f->failed |= !to;
    if (!hops || !to)
        return;
    travel->hops = hops;
    hops[travel->count++] = (struct travel_hop){.by = by, .to = to, .count = n};
    n = 0;
    for (size_t i = 0; i < count; i++)
        if (receives(f, members[i])) {
            to[n++] = members[i]->rank;
            f->out->owner[members[i]->rank] = f->out->owner[by->rank];
        }
}

static void see_exchange(void *context, struct graph_node *const *members, size_t count)
{
    struct follow *f = context;
    const struct graph_node *by = NULL;
    for (size_t i = 0; i < count; i++) /* what a receiver has in its buffer is nothing */
        if (!members[i]->bad && members[i]->role != GRAPH_TARGET)
            begin(f, members[i], true);
    for (size_t i = 0; i < count && !by; i++)
        if (carries(f, members[i]))
            by = members[i];
    if (by)
        hop(f, by, members, count);
    /* What is bad of the exchange itself, at ranks that nothing came to. */
    for (size_t i = 0; i < count; i++)
        begin(f, members[i], false);
}

enum plumb_code travel_find(struct travels *out, struct graph_rank *ranks, size_t count, bool seen,
                            struct arena *arena)
{
    struct follow f = {.out = out, .arena = arena, .seen = seen};
    *out = (struct travels){.owner = arena_array(arena, count, sizeof *out->owner)};
    if (!out->owner)
        return PLUMB_E_NOMEM;
    const enum plumb_code code =
        order_walk(ranks, count, &(struct order_visitor){see_node, see_exchange, &f}, arena);
    return f.failed ? PLUMB_E_NOMEM : code;
}

void travel_put_ranks(struct buf *out, const int64_t *ranks, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && ranks[end] == ranks[end - 1] + 1; end++)
            ;
        buf_printf(out, "%s%" PRId64, i ? ", " : "", ranks[i]);
        if (end - i > 2)
            buf_printf(out, "-%" PRId64, ranks[end - 1]);
        else if (end - i == 2)
            buf_printf(out, ", %" PRId64, ranks[end - 1]);
    }
}
