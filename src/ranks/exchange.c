/* Tying the communication nodes of ranks together. */
#include "ranks/exchange_parts.h"

#include "base/buf.h"
#include "base/map.h"

#include <string.h>

/* Members of one rank that any other member matches all or none of: same operator, role and
 * peers. */
struct kind {
    const char *op;
    size_t op_length;
    enum graph_role role;
    const int64_t *peers;
    size_t peer_count;
    size_t first, last; /* members */
    size_t cursor;      /* the first that the rank at hand has not met yet */
};

struct builder {
    struct exchange *exchange;
    const struct graph_rank *ranks;
    size_t count;
    const struct ranks_rules *rules;
    struct arena *arena;
    struct kind **kinds; /* of each rank */
    size_t *kind_counts;
    size_t edge_capacity;
};

static bool is(const char *op, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(op, name, length) == 0;
}

/* What the other side of an exchange calls it. */
static const char *counterpart(const char *op, size_t *length)
{
    static const char *const pairs[][2] = {
        {"send", "recv"}, {"isend", "irecv"}, {"send_object_list", "recv_object_list"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (size_t side = 0; side < 2; side++) {
            if (is(op, *length, pairs[i][side])) {
                *length = strlen(pairs[i][!side]);
                return pairs[i][!side];
            }
        }
    }
    return op;
}

/* A send may be received by recv and irecv alike. */
static const char *plain(const char *op, size_t *length)
{
    if (is(op, *length, "isend") || is(op, *length, "irecv")) {
        --*length;
        return op + 1;
    }
    return op;
}

static bool op_fits(const struct kind *kind, const char *wanted, size_t length,
                    const struct ranks_rules *rules)
{
    if (rules->begin_alike)
        return kind->op_length >= length && memcmp(kind->op, wanted, length) == 0;
    const char *op = kind->op;
    size_t op_length = kind->op_length;
    if (!rules->exact_names) {
        op = plain(op, &op_length);
        wanted = plain(wanted, &length);
    }
    return op_length == length && memcmp(op, wanted, length) == 0;
}

static bool talks_to(const struct kind *kind, int64_t rank)
{
    for (size_t i = 0; i < kind->peer_count; i++)
        if (kind->peers[i] == rank)
            return true;
    return !kind->peer_count && graph_direction(kind->op, kind->op_length) == GRAPH_LINK;
}

static bool fits(const struct builder *b, const struct kind *mine, int64_t rank,
                 const struct kind *theirs)
{
    size_t length = mine->op_length;
    const char *wanted = counterpart(mine->op, &length);
    enum graph_role role = mine->role == GRAPH_SOURCE   ? GRAPH_TARGET
                           : mine->role == GRAPH_TARGET ? GRAPH_SOURCE
                                                        : GRAPH_LINK;
    return theirs->role == role && op_fits(theirs, wanted, length, b->rules) &&
           talks_to(theirs, rank);
}

static enum plumb_code connect(struct builder *b, size_t mine, size_t theirs)
{
    struct exchange *x = b->exchange;
    if (x->edge_count == b->edge_capacity) {
        size_t more = b->edge_capacity ? b->edge_capacity * 2 : 64;
        struct exchange_edge *edges = arena_array(b->arena, more, sizeof *edges);
        if (!edges)
            return PLUMB_E_NOMEM;
        if (x->edge_count)
            memcpy(edges, x->edges, x->edge_count * sizeof *edges);
        x->edges = edges;
        b->edge_capacity = more;
    }
    x->edges[x->edge_count++] = (struct exchange_edge){mine, theirs};
    if (b->rules->own_layers)
        x->members[theirs].node->layer = x->members[mine].node->layer;
    return PLUMB_OK;
}

/* Looks in one rank for the earliest member that fits and was not met yet. */
static enum plumb_code meet(struct builder *b, size_t member, size_t rank, size_t other)
{
    const struct exchange_member *m = &b->exchange->members[member];
    const struct kind *mine = &b->kinds[rank][m->kind];
    struct kind *best = NULL;
    for (size_t k = 0; k < b->kind_counts[other]; k++) {
        struct kind *kind = &b->kinds[other][k];
        if (kind->cursor != EXCHANGE_NONE && (!best || kind->cursor < best->cursor) &&
            fits(b, mine, b->ranks[rank].number, kind))
            best = kind;
    }
    if (!best)
        return PLUMB_OK;
    size_t found = best->cursor;
    best->cursor = b->exchange->members[found].next;
    return connect(b, member, found);
}

/* The rank of that number after `after`, or the number of ranks. Ranks are in order. */
static size_t find_rank(const struct builder *b, int64_t number, size_t after)
{
    size_t low = after + 1, high = b->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->ranks[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < b->count && b->ranks[low].number == number ? low : b->count;
}

static enum plumb_code connect_rank(struct builder *b, size_t rank)
{
    struct exchange *x = b->exchange;
    for (size_t r = rank + 1; r < b->count; r++)
        for (size_t k = 0; k < b->kind_counts[r]; k++)
            b->kinds[r][k].cursor = b->kinds[r][k].first;

    for (size_t i = x->first[rank]; i < x->first[rank + 1]; i++) {
        if (x->members[i].tie != EXCHANGE_NONE)
            continue;
        const struct kind *kind = &b->kinds[rank][x->members[i].kind];
        struct graph_node *node = x->members[i].node;
        if (b->rules->growing && i > x->first[rank] && node->layer <= x->members[i - 1].node->layer)
            node->layer = x->members[i - 1].node->layer + 1;
        size_t targets = kind->peer_count ? kind->peer_count : b->count - rank - 1;
        for (size_t t = 0; t < targets; t++) {
            size_t other = kind->peer_count ? find_rank(b, kind->peers[t], rank) : rank + 1 + t;
            enum plumb_code code = other < b->count ? meet(b, i, rank, other) : PLUMB_OK;
            if (code)
                return code;
        }
    }
    return PLUMB_OK;
}

static enum plumb_code sort_kinds(struct builder *b, size_t rank)
{
    struct exchange *x = b->exchange;
    size_t length = x->first[rank + 1] - x->first[rank];
    struct kind *kinds = arena_array(b->arena, length, sizeof *kinds);
    struct map map = {0};
    struct buf key = {0};
    enum plumb_code code = kinds ? PLUMB_OK : PLUMB_E_NOMEM;
    b->kinds[rank] = kinds;
    for (size_t i = x->first[rank]; !code && i < x->first[rank + 1]; i++) {
        struct exchange_member *member = &x->members[i];
        const struct graph_node *node = member->node;
        if (member->tie != EXCHANGE_NONE)
            continue;
        struct kind kind = {.role = node->role, .peers = node->peers, .first = i, .last = i};
        kind.op = graph_op(node->name, &kind.op_length);
        kind.peer_count = node->peer_count;
        key.size = 0;
        buf_append(&key, &kind.role, sizeof kind.role);
        buf_append(&key, &kind.peer_count, sizeof kind.peer_count);
        buf_append(&key, kind.peers, kind.peer_count * sizeof *kind.peers);
        buf_append(&key, kind.op, kind.op_length);
        char *copy = key.failed ? NULL : arena_copy(b->arena, key.data, key.size);
        bool added = false;
        uint64_t *place = copy ? map_put(&map, copy, key.size, &added) : NULL;
        if (!place) {
            code = PLUMB_E_NOMEM;
            break;
        }
        if (added) {
            *place = b->kind_counts[rank];
            kinds[b->kind_counts[rank]++] = kind;
        } else {
            x->members[kinds[*place].last].next = i;
            kinds[*place].last = i;
        }
        member->kind = (size_t)*place;
        member->next = EXCHANGE_NONE;
    }
    map_free(&map);
    buf_free(&key);
    return code;
}

static enum plumb_code collect(struct builder *b)
{
    struct exchange *x = b->exchange;
    size_t total = 0;
    for (size_t r = 0; r < b->count; r++)
        for (size_t i = 0; i < b->ranks[r].count; i++)
            total += b->ranks[r].nodes[i].communication;
    x->first = arena_array(b->arena, b->count + 1, sizeof *x->first);
    x->members = arena_array(b->arena, total, sizeof *x->members);
    if (!x->first || !x->members)
        return PLUMB_E_NOMEM;
    size_t filled = 0;
    for (size_t r = 0; r < b->count; r++) {
        x->first[r] = filled;
        for (size_t i = 0; i < b->ranks[r].count; i++) {
            struct graph_node *node = &b->ranks[r].nodes[i];
            if (!node->communication)
                continue;
            node->layer = filled - x->first[r];
            x->members[filled++] = (struct exchange_member){.node = node, .tie = EXCHANGE_NONE};
        }
    }
    x->first[b->count] = filled;
    return PLUMB_OK;
}

enum plumb_code exchange_build(struct exchange *exchange, const struct graph_rank *ranks,
                               size_t count, const struct ranks_rules *rules, struct arena *arena)
{
    struct builder b = {exchange, ranks, count, rules, arena, NULL, NULL, 0};
    *exchange = (struct exchange){0};
    b.kinds = arena_array(arena, count, sizeof *b.kinds);
    b.kind_counts = arena_array(arena, count, sizeof *b.kind_counts);
    enum plumb_code code = b.kinds && b.kind_counts ? collect(&b) : PLUMB_E_NOMEM;
    if (!code && !rules->own_layers)
        code = exchange_tie(exchange, ranks, count, arena);
    for (size_t r = 0; !code && r < count; r++)
        code = sort_kinds(&b, r);
    for (size_t r = 0; !code && r + 1 < count; r++)
        code = connect_rank(&b, r);
    if (!code && !rules->own_layers)
        code = exchange_lay_out(exchange, count, arena);
    return code;
}
