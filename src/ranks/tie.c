/* Collectives: calls that all ranks of a group make belong together by their order. */
#include "base/buf.h"
#include "base/map.h"
#include "ranks/exchange_parts.h"

#include <stdlib.h>
#include <string.h>

struct tying {
    struct exchange *exchange;
    const struct graph_rank *ranks;
    size_t count;
    struct arena *arena;
    const int64_t *last; /* the list that was looked at last, and whether it is everybody */
    size_t last_count;
    bool everybody;
};

/* What the calls of a collective on all its ranks have in common: operator and group. */
struct collective {
    size_t *turns; /* the k-th call of each rank belongs to tie number turns[k] */
    size_t count, capacity;
    size_t rank; /* at hand + 1 */
    size_t next; /* of its turns */
};

/* All ranks that there are: whether they are named or not makes no difference. */
static bool is_everybody(struct tying *b, const int64_t *ranks, size_t count)
{
    size_t found = 0;
    if (ranks && ranks == b->last && count == b->last_count)
        return b->everybody;
    for (size_t i = 0; i < count && found < b->count; i++)
        found += ranks[i] == b->ranks[found].number;
    b->last = ranks;
    b->last_count = count;
    return b->everybody = found == b->count;
}

static const char *collective_key(struct tying *b, const struct graph_node *node, struct buf *key)
{
    size_t length;
    const char *op = graph_op(node->name, &length);
    const int64_t *ranks = node->group_count ? node->group : node->peers;
    const size_t count = node->group_count ? node->group_count : node->peer_count;
    key->size = 0;
    buf_append(key, op, length);
    buf_append(key, "", 1);
    if (!is_everybody(b, ranks, count))
        buf_append(key, ranks, count * sizeof *ranks);
    return key->failed ? NULL : key->data;
}

/* Whether all ranks of a group make the call, so that the k-th of one is the k-th of all. */
static bool is_collective(const struct graph_node *node)
{
    size_t length;
    const char *op = graph_op(node->name, &length);
    return !graph_is_point_to_point(op, length) && (node->group_count || node->role == GRAPH_LINK);
}

/* The tie of the next call of a rank. False when out of memory. */
static bool take_turn(struct tying *b, struct collective *c, size_t rank, size_t *tie)
{
    if (c->rank != rank + 1) {
        c->rank = rank + 1;
        c->next = 0;
    }
    if (c->next == c->capacity) {
        const size_t more = c->capacity ? 2 * c->capacity : 16;
        size_t *turns = arena_array(b->arena, more, sizeof *turns);
        if (!turns)
            return false;
        if (c->count)
            memcpy(turns, c->turns, c->count * sizeof *turns);
        c->turns = turns;
        c->capacity = more;
    }
    if (c->next == c->count)
        c->turns[c->count++] = b->exchange->tie_count++;
    *tie = c->turns[c->next++];
    return true;
}

struct begun {
    int64_t order;
    size_t member;
};

static int by_order(const void *a, const void *b)
{
    const struct begun *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

/* The collectives of a rank in the order in which they began, which is that of all ranks; what is
 * asynchronous is recorded when it is over, and may be over in another order. */
static size_t list_begun(const struct exchange *x, size_t rank, struct begun *list)
{
    size_t n = 0;
    bool counted = true;
    for (size_t i = x->first[rank]; i < x->first[rank + 1]; i++)
        if (is_collective(x->members[i].node)) {
            counted &= x->members[i].node->order >= 0;
            list[n++] = (struct begun){x->members[i].node->order, i};
        }
    if (counted)
        qsort(list, n, sizeof *list, by_order);
    return n;
}

static enum plumb_code tie_rank(struct tying *b, size_t rank, struct map *map, struct buf *key,
                                struct begun *list)
{
    struct exchange *x = b->exchange;
    const size_t n = list_begun(x, rank, list);
    for (size_t k = 0; k < n; k++) {
        struct exchange_member *member = &x->members[list[k].member];
        const char *text = collective_key(b, member->node, key);
        uint64_t *place = text ? map_get(map, text, key->size) : NULL;
        if (!place) {
            char *copy = text ? arena_copy(b->arena, text, key->size) : NULL;
            struct collective *made = arena_alloc(b->arena, sizeof *made);
            place = copy && made ? map_put(map, copy, key->size, NULL) : NULL;
            if (!place)
                return PLUMB_E_NOMEM;
            *place = (uint64_t)(uintptr_t)made;
        }
        if (!take_turn(b, (struct collective *)(uintptr_t)*place, rank, &member->tie))
            return PLUMB_E_NOMEM;
    }
    return PLUMB_OK;
}

/* Sorts the members of ties by their numbers. */
static enum plumb_code list_tied(struct tying *b)
{
    struct exchange *x = b->exchange;
    const size_t total = x->first[b->count];
    x->tied = arena_array(b->arena, total, sizeof *x->tied);
    x->tie_first = arena_array(b->arena, x->tie_count + 2, sizeof *x->tie_first);
    if (!x->tied || !x->tie_first)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < total; i++)
        if (x->members[i].tie != EXCHANGE_NONE)
            x->tie_first[x->members[i].tie + 2]++;
    for (size_t t = 2; t < x->tie_count + 2; t++)
        x->tie_first[t] += x->tie_first[t - 1];
    for (size_t i = 0; i < total; i++)
        if (x->members[i].tie != EXCHANGE_NONE)
            x->tied[x->tie_first[x->members[i].tie + 1]++] = i;
    return PLUMB_OK;
}

enum plumb_code exchange_tie(struct exchange *x, const struct graph_rank *ranks, size_t count,
                             struct arena *arena)
{
    struct tying tying = {.exchange = x, .ranks = ranks, .count = count, .arena = arena},
                 *b = &tying;
    struct map map = {0};
    struct buf key = {0};
    struct begun *list = arena_array(b->arena, x->first[b->count] + 1, sizeof *list);
    enum plumb_code code = list ? PLUMB_OK : PLUMB_E_NOMEM;
    for (size_t r = 0; r < b->count && !code; r++)
        code = tie_rank(b, r, &map, &key, list);
    map_free(&map);
    buf_free(&key);
    return code ? code : list_tied(b);
}
