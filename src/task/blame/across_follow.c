/* Where faults, and what is not finite, began, and how they went from rank to rank. */
#include "task/blame/across.h"

#include "ranks/travel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Journeys of all steps. */
struct journeys {
    struct plumb_journey *list;
    size_t count;
};

static bool put_hops(struct plumb_journey *out, const struct travel *travel,
                     const struct across_step *step, struct arena *arena)
{
    struct plumb_hop *hops = arena_array(arena, travel->count, sizeof *hops);
    for (size_t h = 0; hops && h < travel->count; h++) {
        const struct travel_hop *hop = &travel->hops[h];
        int64_t *to = arena_array(arena, hop->count, sizeof *to);
        if (!to)
            return false;
        for (size_t k = 0; k < hop->count; k++)
            to[k] = step->ranks[hop->to[k]].number;
        hops[h] = (struct plumb_hop){.call = hop->by->name,
                                     .from = step->ranks[hop->by->rank].number,
                                     .to = to,
                                     .n_to = hop->count};
    }
    out->hops = hops;
    out->n_hops = travel->count;
    return hops != NULL;
}

static enum plumb_code list_faults(struct journeys *out, struct across_step *step, bool seen,
                                   struct arena *arena)
{
    struct arena work = {0};
    struct travels travels;
    enum plumb_code code = travel_find(&travels, step->ranks, step->count, seen, &work);
    if (!code && travels.count) {
        out->list = arena_array(arena, travels.count, sizeof *out->list);
        code = out->list ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    for (size_t t = 0; t < travels.count && !code; t++) {
        struct plumb_journey *journey = &out->list[out->count++];
        *journey = (struct plumb_journey){.call = travels.list[t].from->name,
                                          .step = step->step,
                                          .rank = step->ranks[travels.list[t].from->rank].number};
        if (!put_hops(journey, &travels.list[t], step, arena))
            code = PLUMB_E_NOMEM;
    }
    arena_free(&work);
    return code;
}

/* ---- What is not finite ---------------------------------------------------------------------- */

/* Nodes tell of what is at least this far from finite. */
static void mark_level(struct across_step *step, enum level level)
{
    for (size_t r = 0; r < step->count; r++)
        for (size_t i = 0; i < step->ranks[r].count; i++) {
            struct graph_node *node = &step->ranks[r].nodes[i];
            const bool in = step->finite[r][i].in >= level, out = step->finite[r][i].out >= level;
            node->bad = out && !in;
            node->bad_input = in;
            node->tainted = in || out;
            node->given = in || (node->ignored && out);
        }
}

static const struct finite *finite_of(const struct across_step *step, const struct graph_node *node)
{
    return &step->finite[node->rank][node - step->ranks[node->rank].nodes];
}

/* A NaN that is made of an infinity began where that did. What was asked for, such as a mask, is
 * no beginning. NULL: it came through an exchange. */
static const struct graph_node *origin_of(const struct across_step *step,
                                          const struct graph_node *maker, bool *given)
{
    const struct graph_node *nodes = step->ranks[maker->rank].nodes, *first = maker;
    *given = false;
    if (finite_of(step, maker)->in == FINITE)
        return maker;
    for (const struct graph_node *node = maker; node-- > nodes;) {
        const struct finite *is = finite_of(step, node);
        if (is->in != FINITE)
            first = node;
        else if (is->out != FINITE)
            return node->communication ? NULL : node->ignored ? maker : node;
    }
    *given = true;
    return first;
}

static bool is_reduced(const struct graph_node *node)
{
    return strncmp(node->name, "Module.reduced.", 15) == 0;
}

/* Whether a rank that something came to has it in the gradient of this name, which
 * DistributedDataParallel has reduced without a call. */
static bool reaches(const struct across_step *step, const struct travels *travels, size_t travel,
                    const struct graph_node *reduced)
{
    for (size_t r = 0; r < step->count; r++) {
        const struct graph_rank *rank = &step->ranks[r];
        for (size_t i = 0; travels->owner[r] == travel + 1 && i < rank->count; i++)
            if (step->finite[r][i].out == NOT_A_NUMBER &&
                strcmp(rank->nodes[i].name, reduced->name) == 0)
                return true;
    }
    return false;
}

/* What came to a rank with reduced gradients did not begin there: a hop of what it is. */
static enum plumb_code join_reduced(const struct across_step *step, struct travels *travels,
                                    struct arena *arena)
{
    for (size_t t = 0; t < travels->count; t++) {
        const struct travel *of = &travels->list[t];
        size_t u = 0, *to;
        if (!is_reduced(of->from))
            continue;
        while (u < travels->count &&
               (is_reduced(travels->list[u].from) || !reaches(step, travels, u, of->from)))
            u++;
        if (u == travels->count)
            continue;
        struct travel *into = &travels->list[u];
        struct travel_hop *last = into->count ? &into->hops[into->count - 1] : NULL;
        const bool fresh = !last || strcmp(last->by->name, of->from->name) != 0;
        const size_t have = fresh ? 0 : last->count;
        struct travel_hop *hops = arena_array(arena, into->count + 1, sizeof *hops);
        to = arena_array(arena, have + 1, sizeof *to);
        if (!hops || !to)
            return PLUMB_E_NOMEM;
        if (into->count)
            memcpy(hops, into->hops, into->count * sizeof *hops);
        if (have)
            memcpy(to, last->to, have * sizeof *to);
        to[have] = of->from->rank;
        into->count += fresh;
        into->hops = hops;
        into->capacity = into->count;
        hops[into->count - 1] = (struct travel_hop){fresh ? of->from : last->by, to, have + 1};
    }
    return PLUMB_OK;
}

/* One that is told already: what several ranks made of the same infinity. */
static bool is_told(const struct journeys *out, const struct plumb_journey *journey)
{
    for (size_t k = 0; k < out->count; k++)
        if (out->list[k].rank == journey->rank && strcmp(out->list[k].call, journey->call) == 0)
            return true;
    return false;
}

static bool add_journey(struct journeys *out, const struct across_step *step,
                        const struct travel *travel, const struct travels *infinite,
                        struct arena *arena)
{
    const bool nan = infinite != NULL;
    bool given = travel->given;
    const struct graph_node *from =
        nan && !given ? origin_of(step, travel->from, &given) : travel->from;
    const struct travel *way = travel;
    const size_t owner = nan ? infinite->owner[travel->from->rank] : 0;
    const struct travel *known = owner ? &infinite->list[owner - 1] : travel;
    if (!from) { /* the infinity came from another rank */
        from = known->from;
        given = known->given;
    }
    if (from == known->from && from != travel->from) /* it went on as an infinity, too */
        way = known;
    struct plumb_journey journey = {.call = from->name,
                                    .step = step->step,
                                    .rank = step->ranks[from->rank].number,
                                    .place = given ? finite_of(step, from)->place : NULL,
                                    .since =
                                        nan && from != travel->from ? travel->from->name : NULL,
                                    .nan = nan};
    if (is_told(out, &journey))
        return true;
    if (journey.place && !(journey.place = arena_copy(arena, journey.place, strlen(journey.place))))
        return false;
    if (!put_hops(&journey, way, step, arena))
        return false;
    out->list[out->count++] = journey;
    return true;
}

/* What was asked for, and an infinity that stays at its rank, as those of a mask do, is nothing to
 * tell. */
static bool is_worth_telling(const struct travels *travels, const struct travel *travel, bool nan)
{
    const bool asked = travel->from->ignored && travel->from->bad;
    if (is_reduced(travel->from)) /* that was joined to another one */
        for (size_t t = 0; t < travels->count; t++)
            for (size_t h = 0; h < travels->list[t].count; h++)
                if (strcmp(travels->list[t].hops[h].by->name, travel->from->name) == 0)
                    return false;
    return nan ? !asked || travel->count : !asked && travel->count;
}

static enum plumb_code list_not_finite(struct journeys *out, struct across_step *step,
                                       struct arena *arena)
{
    struct arena work = {0};
    struct travels infinite, nan;
    mark_level(step, INFINITE);
    enum plumb_code code = travel_find(&infinite, step->ranks, step->count, true, &work);
    mark_level(step, NOT_A_NUMBER);
    if (!code)
        code = travel_find(&nan, step->ranks, step->count, true, &work);
    if (!code)
        code = join_reduced(step, &nan, &work);
    if (!code)
        out->list = arena_array(arena, infinite.count + nan.count + 1, sizeof *out->list);
    bool fine = !code && out->list;
    for (size_t t = 0; fine && t < nan.count; t++)
        if (is_worth_telling(&nan, &nan.list[t], true))
            fine = add_journey(out, step, &nan.list[t], &infinite, arena);
    const size_t told = out->count;
    mark_level(step, INFINITE);
    for (size_t t = 0; fine && !told && t < infinite.count; t++)
        if (is_worth_telling(&infinite, &infinite.list[t], false))
            fine = add_journey(out, step, &infinite.list[t], NULL, arena);
    arena_free(&work);
    return fine ? PLUMB_OK : PLUMB_E_NOMEM;
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* From what is not finite to what is a fault; and beside another run, which exchanges had something
 * of it. */
static void mark_faults(struct across *across, const struct sites *sites)
{
    for (size_t s = 0; s < across->count; s++) {
        struct across_step *step = &across->steps[s];
        for (size_t r = 0; r < step->count; r++)
            for (size_t i = 0; i < step->ranks[r].count; i++) {
                struct graph_node *node = &step->ranks[r].nodes[i];
                const size_t number = step->sites[r][i];
                const struct site *site = number ? &sites->list[number - 1] : NULL;
                node->bad = site && site->is.word == PLUMB_WORD_FAULT;
                node->bad_input = site && site->is.in > 2 * site->floor;
                node->tainted = node->bad_input || (site && site->is.out > 2 * site->floor);
                node->ignored = node->given = false;
            }
    }
}

struct noting {
    struct across_step *step;
    struct sites *sites;
};

static struct site *site_of(const struct noting *n, const struct graph_node *node)
{
    const size_t number = n->step->sites[node->rank][node - n->step->ranks[node->rank].nodes];
    return number ? &n->sites->list[number - 1] : NULL;
}

static void skip_node(void *context, struct graph_node *node)
{
    (void)context;
    (void)node;
}

static void note_exchange(void *context, struct graph_node *const *members, size_t count)
{
    const struct noting *n = context;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const struct site *site = site_of(n, members[i]);
        if (site && members[i]->role != GRAPH_TARGET)
            most = fmax(most, site->is.in);
    }
    for (size_t i = 0; i < count; i++) {
        struct site *site = site_of(n, members[i]);
        if (site)
            site->saved = most;
    }
}

enum plumb_code across_note_saved(struct across *across, struct sites *sites,
                                  struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t s = 0; s < across->count && !code; s++) {
        struct across_step *step = &across->steps[s];
        struct noting n = {step, sites};
        struct arena work = {0};
        code = order_walk(step->ranks, step->count,
                          &(struct order_visitor){skip_node, note_exchange, &n}, &work);
        arena_free(&work);
    }
    return code ? plumb_no_memory(err) : PLUMB_OK;
}

static void count_exchanges(const struct across *across, struct plumb_blame *blame)
{
    for (size_t s = 0; s < across->count; s++) {
        const struct across_step *step = &across->steps[s];
        if (step->count > blame->ranks)
            blame->ranks = step->count;
        for (size_t r = 0; r < step->count; r++)
            for (size_t i = 0; i < step->ranks[r].count; i++)
                blame->exchanges += step->ranks[r].nodes[i].communication;
    }
}

enum plumb_code across_follow(struct across *across, struct kept *kept, struct plumb_error *err)
{
    struct journeys not_finite = {0}, faults = {0};
    count_exchanges(across, &kept->blame);
    enum plumb_code code = PLUMB_OK;
    /* The first step that has some tells; later ones begin from what it left behind. */
    for (size_t s = 0; s < across->count && !not_finite.count && !code; s++)
        code = list_not_finite(&not_finite, &across->steps[s], &kept->arena);
    mark_faults(across, &kept->sites);
    for (size_t s = 0; s < across->count && !faults.count && !code; s++)
        code = list_faults(&faults, &across->steps[s], kept->golden != NULL, &kept->arena);
    kept->blame.followed = kept->golden != NULL;
    kept->blame.not_finite = not_finite.list;
    kept->blame.n_not_finite = not_finite.count;
    kept->blame.first = faults.list;
    kept->blame.n_first = faults.count;
    return code ? plumb_no_memory(err) : PLUMB_OK;
}
