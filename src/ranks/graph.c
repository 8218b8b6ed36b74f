/* The search for the first bad node: before, along and after communication. */
#include "ranks/graph.h"

#include "ranks/exchange.h"

#include <stdlib.h>
#include <string.h>

bool graph_is_communication(const char *name)
{
    static const char *const words[] = {"send",   "recv",    "broadcast", "reduce",
                                        "gather", "scatter", "all_to_all"};
    if (strncmp(name, "Distributed.", 12) != 0 && strncmp(name, "MintDistributed.", 16) != 0)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

const char *graph_op(const char *name, size_t *length)
{
    const char *dot = strchr(name, '.');
    const char *op = dot ? dot + 1 : name;
    *length = strcspn(op, ".");
    return op;
}

enum graph_role graph_direction(const char *op, size_t length)
{
    static const struct {
        const char *op;
        enum graph_role role;
    } directed[] = {
        {"send", GRAPH_TARGET},    {"isend", GRAPH_TARGET},     {"send_object_list", GRAPH_TARGET},
        {"gather", GRAPH_TARGET},  {"recv", GRAPH_SOURCE},      {"irecv", GRAPH_SOURCE},
        {"scatter", GRAPH_SOURCE}, {"broadcast", GRAPH_SOURCE}, {"recv_object_list", GRAPH_SOURCE},
    };
    for (size_t i = 0; i < sizeof directed / sizeof directed[0]; i++)
        if (strlen(directed[i].op) == length && memcmp(op, directed[i].op, length) == 0)
            return directed[i].role;
    return GRAPH_LINK;
}

bool graph_is_point_to_point(const char *op, size_t length)
{
    static const char *const ops[] = {"send",
                                      "isend",
                                      "recv",
                                      "irecv",
                                      "batch_isend_irecv",
                                      "send_object_list",
                                      "recv_object_list"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strlen(ops[i]) == length && memcmp(op, ops[i], length) == 0)
            return true;
    return false;
}

struct search {
    struct graph_result *result;
    struct graph_rank *ranks;
    size_t count, nodes;
    const struct ranks_rules *rules;
    struct arena *arena;
    struct exchange exchange;
    bool *kept;         /* members that are still there after pruning */
    size_t *near_first; /* neighbours of each member, as a slice of near */
    size_t *near;
    bool *seen;
    bool *seen_ties;
    size_t *group; /* members of the group at hand, in order */
    size_t group_count;
    bool strict; /* who got something bad from the others is not to blame for passing it on */
};

static void report(struct search *s, struct graph_node *node)
{
    s->result->found[s->result->count++] = node;
}

static bool is_bad(const struct graph_node *node)
{
    return node->bad && !node->ignored;
}

static void search_before(struct search *s)
{
    for (size_t r = 0; r < s->count; r++) {
        for (size_t i = 0; i < s->ranks[r].count; i++) {
            struct graph_node *node = &s->ranks[r].nodes[i];
            if (node->communication)
                break;
            if (is_bad(node)) {
                report(s, node);
                break;
            }
        }
    }
}

static void search_after(struct search *s)
{
    for (size_t r = 0; r < s->count; r++) {
        const struct graph_rank *rank = &s->ranks[r];
        size_t start = rank->count;
        while (start && !rank->nodes[start - 1].communication)
            start--;
        for (size_t i = start; start && i < rank->count; i++) {
            if (is_bad(&rank->nodes[i])) {
                report(s, &rank->nodes[i]);
                break;
            }
        }
    }
}

/* Ranks, and positions between communication nodes. Before the first of a rank those do not matter:
 * what is bad there is found in the first phase. */
static void place_nodes(struct search *s)
{
    for (size_t r = 0; r < s->count; r++) {
        size_t position = 0, passed = 0;
        for (size_t i = 0; i < s->ranks[r].count; i++) {
            struct graph_node *node = &s->ranks[r].nodes[i];
            node->rank = r;
            node->position = passed ? position : 0;
            if (node->communication) {
                passed++;
                position = 0;
            } else if (!node->ignored) {
                position++;
            }
        }
    }
}

static size_t rank_of(const struct search *s, size_t member)
{
    return s->exchange.members[member].node->rank;
}

/* The first compute node that member holds; they end with the member itself. */
static struct graph_node *first_held(const struct search *s, size_t member)
{
    size_t chain = s->exchange.first[rank_of(s, member)];
    return member == chain ? s->exchange.members[member].node
                           : s->exchange.members[member - 1].node + 1;
}

static bool holds_any(const struct search *s, size_t member)
{
    const struct graph_node *end = s->exchange.members[member].node;
    for (const struct graph_node *node = first_held(s, member); node < end; node++)
        if (is_bad(node))
            return true;
    return false;
}

static enum plumb_code prune(struct search *s)
{
    const struct exchange *x = &s->exchange;
    size_t total = x->first[s->count];
    s->kept = arena_array(s->arena, total, sizeof *s->kept);
    s->seen = arena_array(s->arena, total, sizeof *s->seen);
    s->group = arena_array(s->arena, total, sizeof *s->group);
    s->near_first = arena_array(s->arena, total + 1, sizeof *s->near_first);
    s->near = arena_array(s->arena, 2 * x->edge_count, sizeof *s->near);
    s->seen_ties = arena_array(s->arena, x->tie_count, sizeof *s->seen_ties);
    if (!s->kept || !s->seen || !s->group || !s->near_first || !s->near || !s->seen_ties)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < total; i++)
        s->kept[i] = x->members[i].node->tainted || holds_any(s, i);

    for (size_t e = 0; e < x->edge_count; e++) {
        if (!s->kept[x->edges[e].a] || !s->kept[x->edges[e].b])
            continue;
        s->near_first[x->edges[e].a]++;
        s->near_first[x->edges[e].b]++;
    }
    for (size_t i = 0, sum = 0; i <= total; i++) {
        sum += s->near_first[i];
        s->near_first[i] = sum; /* the end of the slice; filling moves it to the begin */
    }
    for (size_t e = x->edge_count; e-- > 0;) {
        size_t a = x->edges[e].a, b = x->edges[e].b;
        if (!s->kept[a] || !s->kept[b])
            continue;
        s->near[--s->near_first[a]] = b;
        s->near[--s->near_first[b]] = a;
    }
    return PLUMB_OK;
}

static int by_number(const void *a, const void *b)
{
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    return left < right ? -1 : left > right;
}

static void see(struct search *s, size_t member)
{
    if (s->seen[member])
        return;
    s->seen[member] = true;
    s->group[s->group_count++] = member;
}

/* All members that are connected with this one, in the order of ranks; they count as seen. */
static void gather(struct search *s, size_t member)
{
    const struct exchange *x = &s->exchange;
    s->group_count = 0;
    see(s, member);
    for (size_t i = 0; i < s->group_count; i++) {
        size_t at = s->group[i], tie = x->members[at].tie;
        for (size_t n = s->near_first[at]; n < s->near_first[at + 1]; n++)
            see(s, s->near[n]);
        if (tie == EXCHANGE_NONE || s->seen_ties[tie])
            continue;
        s->seen_ties[tie] = true;
        for (size_t n = x->tie_first[tie]; n < x->tie_first[tie + 1]; n++)
            if (s->kept[x->tied[n]])
                see(s, x->tied[n]);
    }
    qsort(s->group, s->group_count, sizeof *s->group, by_number);
}

/* What the group at hand has to say: what its members hold, then they themselves. The input of a
 * receiver tells nothing, that of any other member can explain what all of them made. */
static void judge(struct search *s)
{
    bool poisoned = false;
    for (size_t i = 0; i < s->group_count; i++) {
        struct graph_node *end = s->exchange.members[s->group[i]].node;
        bool poison = end->role != GRAPH_TARGET && end->bad_input;
        poisoned |= poison;
        if (s->rules->poisoned_only && !poison)
            continue;
        for (struct graph_node *node = first_held(s, s->group[i]); node < end; node++) {
            node->layer = end->layer;
            if (is_bad(node))
                report(s, node);
        }
    }
    if (s->strict && poisoned)
        return;
    for (size_t i = 0; i < s->group_count; i++) {
        struct graph_node *node = s->exchange.members[s->group[i]].node;
        if (is_bad(node))
            report(s, node);
    }
}

static int compare_places(const struct graph_node *a, const struct graph_node *b)
{
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

/* Of what was reported, the earliest stays: one, or all that are equally early. */
static void keep_earliest(struct search *s)
{
    struct graph_result *result = s->result;
    if (!result->count)
        return;
    const struct graph_node *best = result->found[0];
    for (size_t i = 1; i < result->count; i++) {
        int order = compare_places(result->found[i], best);
        if (order < 0 || (!order && !s->rules->first_found && result->found[i]->rank < best->rank))
            best = result->found[i];
    }
    size_t kept = 0;
    for (size_t i = 0; i < result->count; i++) {
        if (result->found[i] == best ||
            (s->rules->all_ties && !compare_places(result->found[i], best)))
            result->found[kept++] = result->found[i];
    }
    result->count = kept;
}

static void search_groups(struct search *s)
{
    size_t total = s->exchange.first[s->count];
    memset(s->seen, 0, total * sizeof *s->seen);
    memset(s->seen_ties, 0, s->exchange.tie_count * sizeof *s->seen_ties);
    for (size_t i = 0; i < total; i++) {
        if (!s->kept[i] || s->seen[i])
            continue;
        gather(s, i);
        judge(s);
    }
}

struct turn {
    size_t layer, member;
};

static int by_layer(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    if (left->layer != right->layer)
        return left->layer < right->layer ? -1 : 1;
    return left->member < right->member ? -1 : left->member > right->member;
}

/* The next member of the rank that is there and not seen, or EXCHANGE_NONE. */
static size_t take_turn(const struct search *s, const struct turn *turns, size_t *next, size_t end)
{
    while (*next < end) {
        size_t member = turns[(*next)++].member;
        if (s->kept[member] && !s->seen[member])
            return member;
    }
    return EXCHANGE_NONE;
}

/* Takes the next node of every rank at a time, until that gives something. Where only the group of
 * the first rank's counts, the others are forgotten. */
static enum plumb_code search_rounds(struct search *s)
{
    const struct exchange *x = &s->exchange;
    struct turn *turns = arena_array(s->arena, x->first[s->count], sizeof *turns);
    size_t *next = arena_array(s->arena, s->count, sizeof *next);
    size_t *heads = arena_array(s->arena, s->count, sizeof *heads);
    if (!turns || !next || !heads)
        return PLUMB_E_NOMEM;
    for (size_t r = 0; r < s->count; r++) {
        next[r] = x->first[r];
        for (size_t i = x->first[r]; i < x->first[r + 1]; i++)
            turns[i] = (struct turn){x->members[i].node->layer, i};
        qsort(turns + x->first[r], x->first[r + 1] - x->first[r], sizeof *turns, by_layer);
    }
    for (bool more = true; more && !s->result->count;) {
        bool looked = false;
        more = false;
        for (size_t r = 0; r < s->count; r++) {
            heads[r] = take_turn(s, turns, &next[r], x->first[r + 1]);
            more |= heads[r] != EXCHANGE_NONE;
        }
        for (size_t r = 0; r < s->count; r++) {
            if (heads[r] == EXCHANGE_NONE || s->seen[heads[r]] || (looked && s->rules->first_group))
                continue;
            looked = true;
            gather(s, heads[r]);
            judge(s);
        }
    }
    return PLUMB_OK;
}

static enum plumb_code search_during(struct search *s)
{
    enum plumb_code code = exchange_build(&s->exchange, s->ranks, s->count, s->rules, s->arena);
    if (!code)
        code = prune(s);
    if (code)
        return code;
    if (s->rules->rounds) {
        code = search_rounds(s);
    } else {
        s->strict = true;
        search_groups(s);
        if (!s->result->count) { /* a capture may lack the node that is to blame */
            s->strict = false;
            search_groups(s);
        }
    }
    if (!code)
        keep_earliest(s);
    return code;
}

enum plumb_code graph_search(struct graph_result *result, struct graph_rank *ranks, size_t count,
                             const struct ranks_rules *rules, struct arena *arena)
{
    struct search s = {.result = result, .ranks = ranks, .count = count, .rules = rules};
    s.arena = arena;
    for (size_t r = 0; r < count; r++)
        s.nodes += ranks[r].count;
    *result = (struct graph_result){0};
    result->found = arena_array(arena, s.nodes, sizeof *result->found);
    if (!result->found)
        return PLUMB_E_NOMEM;

    place_nodes(&s);
    search_before(&s);
    result->phase = GRAPH_BEFORE;
    if (!result->count) {
        result->phase = GRAPH_DURING;
        if (search_during(&s))
            return PLUMB_E_NOMEM;
    }
    if (!result->count) {
        result->phase = GRAPH_AFTER;
        search_after(&s);
    }
    if (!result->count)
        result->phase = GRAPH_CLEAN;
    return PLUMB_OK;
}
