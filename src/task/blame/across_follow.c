/* Where faults, and what is not finite, began, and how they went from rank to rank. */
#include "task/blame/across.h"

#include "ranks/travel.h"

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

/* An infinity that stays at its rank, as those of a mask do, is nothing to tell. */
static bool is_worth_telling(const struct across_step *step, const struct travel *travel, bool all)
{
    const struct graph_rank *rank = &step->ranks[travel->from->rank];
    return all || travel->count || step->nan[travel->from->rank][travel->from - rank->nodes];
}

/* Steps follow each other: what came in one is no origin in the next. */
static enum plumb_code follow_step(struct journeys *out, struct across_step *step, bool seen,
                                   bool all, struct arena *arena)
{
    struct arena work = {0};
    struct travels travels;
    enum plumb_code code = travel_find(&travels, step->ranks, step->count, seen, &work);
    if (!code && travels.count) {
        out->list = arena_array(arena, travels.count, sizeof *out->list);
        code = out->list ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    for (size_t t = 0; t < travels.count && !code; t++) {
        const struct travel *travel = &travels.list[t];
        if (!is_worth_telling(step, travel, all))
            continue;
        struct plumb_journey *journey = &out->list[out->count++];
        *journey = (struct plumb_journey){.call = travel->from->name,
                                          .step = step->step,
                                          .rank = step->ranks[travel->from->rank].number};
        if (!put_hops(journey, travel, step, arena))
            code = PLUMB_E_NOMEM;
    }
    arena_free(&work);
    return code;
}

/* The first step that has some tells; later ones begin from what it left behind. */
static enum plumb_code follow(struct across *across, bool seen, bool all, struct journeys *out,
                              struct arena *arena)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t s = 0; s < across->count && !out->count && !code; s++)
        code = follow_step(out, &across->steps[s], seen, all, arena);
    return code;
}

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
                node->ignored = false;
            }
    }
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
    enum plumb_code code = follow(across, true, false, &not_finite, &kept->arena);
    mark_faults(across, &kept->sites);
    if (!code)
        code = follow(across, kept->golden != NULL, true, &faults, &kept->arena);
    kept->blame.followed = kept->golden != NULL;
    kept->blame.not_finite = not_finite.list;
    kept->blame.n_not_finite = not_finite.count;
    kept->blame.first = faults.list;
    kept->blame.n_first = faults.count;
    return code ? plumb_no_memory(err) : PLUMB_OK;
}
