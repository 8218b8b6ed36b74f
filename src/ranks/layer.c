/* In which order exchanges happened. */
#include "ranks/exchange_parts.h"

static size_t root(size_t *parents, size_t i)
{
    while (parents[i] != i)
        i = parents[i] = parents[parents[i]];
    return i;
}

static void join(size_t *parents, size_t a, size_t b)
{
    a = root(parents, a);
    b = root(parents, b);
    parents[a > b ? a : b] = a > b ? b : a;
}

/* Where laying out stands. Groups are known by their first member. */
struct layout {
    size_t *group;       /* of each member */
    size_t *members;     /* by group, ascending */
    size_t *first;       /* where those of a group begin; by its number */
    size_t *waiting;     /* members that their ranks have not reached, by group */
    size_t *layer;       /* by group */
    size_t *next, *rank; /* where each rank stands; the rank of each member */
    size_t *ready;       /* groups that can go on */
    size_t head, tail, done;
    bool *queued, *passed; /* groups that were ready; members that are in the sequence */
};

static enum plumb_code begin_layout(struct exchange *x, size_t count, struct arena *arena,
                                    struct layout *l)
{
    const size_t total = x->first[count];
    size_t **const arrays[] = {&l->group, &l->members, &l->first,    &l->waiting,  &l->layer,
                               &l->rank,  &l->ready,   &x->sequence, &x->exchanges};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        if (!(*arrays[k] = arena_array(arena, total + 2, sizeof **arrays[k])))
            return PLUMB_E_NOMEM;
    l->next = arena_array(arena, count, sizeof *l->next);
    l->queued = arena_array(arena, total, sizeof *l->queued);
    l->passed = arena_array(arena, total, sizeof *l->passed);
    if (!l->next || !l->queued || !l->passed)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < total; i++)
        l->group[i] = i;
    for (size_t e = 0; e < x->edge_count; e++)
        join(l->group, x->edges[e].a, x->edges[e].b);
    for (size_t t = 0; t < x->tie_count; t++)
        for (size_t k = x->tie_first[t] + 1; k < x->tie_first[t + 1]; k++)
            join(l->group, x->tied[x->tie_first[t]], x->tied[k]);
    for (size_t i = 0; i < total; i++) {
        l->group[i] = root(l->group, i);
        l->waiting[l->group[i]]++;
        l->first[l->group[i] + 2]++;
    }
    for (size_t g = 2; g < total + 2; g++)
        l->first[g] += l->first[g - 1];
    for (size_t i = 0; i < total; i++)
        l->members[l->first[l->group[i] + 1]++] = i;
    for (size_t r = 0; r < count; r++) {
        l->next[r] = x->first[r];
        for (size_t i = x->first[r]; i < x->first[r + 1]; i++)
            l->rank[i] = r;
    }
    return PLUMB_OK;
}

/* A rank has come to a member. */
static void reach(struct layout *l, size_t member)
{
    const size_t g = l->group[member];
    if (l->waiting[g] && !--l->waiting[g] && !l->queued[g]) {
        l->queued[g] = true;
        l->ready[l->tail++] = g;
    }
}

/* A rank goes on behind what has happened, to the next member that has not. */
static void go_on(const struct exchange *x, struct layout *l, size_t rank, size_t layer)
{
    while (l->next[rank] < x->first[rank + 1] && l->passed[l->next[rank]]) {
        const size_t after = ++l->next[rank];
        if (after == x->first[rank + 1])
            break;
        const size_t g = l->group[after];
        if (l->layer[g] < layer + 1)
            l->layer[g] = layer + 1;
        reach(l, after);
    }
}

/* A circle: the group of the rank that has come least far goes on. */
static void break_circle(const struct exchange *x, size_t count, struct layout *l)
{
    size_t least = count;
    for (size_t r = 0; r < count; r++)
        if (l->next[r] < x->first[r + 1] &&
            (least == count || l->next[r] - x->first[r] < l->next[least] - x->first[least]))
            least = r;
    const size_t g = l->group[l->next[least]];
    l->queued[g] = true;
    l->head = l->tail = 0; /* nothing waits there */
    l->ready[l->tail++] = g;
}

/* An exchange comes after everything that came before any of its members: groups of connected
 * members, in topological order. Exchanges that are over in another order than they began, and
 * wrong ties (a capture that misses calls), can make a circle; then the group that its rank reached
 * first goes on as a whole. */
enum plumb_code exchange_lay_out(struct exchange *x, size_t count, struct arena *arena)
{
    const size_t total = x->first[count];
    struct layout l = {0};
    enum plumb_code code = begin_layout(x, count, arena, &l);
    for (size_t r = 0; r < count && !code; r++)
        if (l.next[r] < x->first[r + 1])
            reach(&l, l.next[r]);
    while (!code && l.done < total) {
        if (l.head == l.tail)
            break_circle(x, count, &l);
        const size_t g = l.ready[l.head++], layer = l.layer[g];
        for (size_t k = l.first[g]; k < l.first[g + 1]; k++) {
            const size_t i = l.members[k];
            if (l.passed[i])
                continue;
            l.passed[i] = true;
            x->members[i].node->layer = layer;
            x->exchanges[l.done] = g;
            x->sequence[l.done++] = i;
        }
        for (size_t k = l.first[g]; k < l.first[g + 1]; k++)
            go_on(x, &l, l.rank[l.members[k]], layer);
    }
    return code;
}
