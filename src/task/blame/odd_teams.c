/* Ranks that work together. */
#include "task/blame/odd_teams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Groups of exchanges --------------------------------------------------------------------- */

/* Room for one more; false when out of memory. */
static bool grow(struct teams *teams)
{
    if (teams->count < teams->capacity)
        return true;
    const size_t more = teams->capacity ? 2 * teams->capacity : 16;
    struct team *list = arena_array(&teams->arena, more, sizeof *list);
    if (!list)
        return false;
    if (teams->count)
        memcpy(list, teams->list, teams->count * sizeof *list);
    teams->list = list;
    teams->capacity = more;
    return true;
}

static struct team *team_of(struct teams *teams, const struct across_step *step,
                            const int64_t *numbers, size_t count)
{
    uint64_t *place = map_get(&teams->names, (const char *)numbers, count * sizeof *numbers);
    if (place)
        return &teams->list[*place];
    size_t *ranks = arena_array(&teams->arena, count, sizeof *ranks), n = 0;
    place =
        ranks ? map_put(&teams->names, (const char *)numbers, count * sizeof *numbers, NULL) : NULL;
    if (!place || !grow(teams)) {
        teams->failed = true;
        return NULL;
    }
    for (size_t k = 0, r = 0; k < count; k++) {
        while (r < step->count && step->ranks[r].number < numbers[k])
            r++;
        if (r < step->count && step->ranks[r].number == numbers[k])
            ranks[n++] = r;
    }
    *place = teams->count;
    teams->list[teams->count] = (struct team){.ranks = ranks, .count = n};
    return &teams->list[teams->count++];
}

static void add_size(struct teams *teams, struct sizes *sizes, uint64_t elements)
{
    if (sizes->count == sizes->capacity) {
        const size_t more = sizes->capacity ? 2 * sizes->capacity : 16;
        uint64_t *list = arena_array(&teams->arena, more, sizeof *list);
        if (!list) {
            teams->failed = true;
            return;
        }
        if (sizes->count)
            memcpy(list, sizes->list, sizes->count * sizeof *list);
        sizes->list = list;
        sizes->capacity = more;
    }
    sizes->list[sizes->count++] = elements;
    sizes->sum += elements;
}

static void note_reduced(struct teams *teams, struct team *team, const struct across *across,
                         const struct plumb_run *run, const struct graph_node *node)
{
    size_t count;
    const size_t first = across_records(across, run, node->name, &count);
    for (size_t i = first; i < first + count; i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        if (record->recorded->tensor && strstr(record->key ? record->key : "", ".input."))
            add_size(teams, &team->reduced, record->count);
    }
}

/* The groups of a rank's exchanges, and what it reduces in those that it is the first of. */
static void add_groups(struct teams *teams, const struct across *across,
                       const struct across_step *step, const struct plumb_run *run, size_t rank,
                       const int64_t *all)
{
    const int64_t *last = NULL;
    for (size_t i = 0; i < step->ranks[rank].count && !teams->failed; i++) {
        const struct graph_node *node = &step->ranks[rank].nodes[i];
        if (!node->communication)
            continue;
        const bool everybody = !node->group_count;
        const int64_t *group = everybody ? all : node->group;
        const bool reduces = strstr(node->name, "reduce") && group[0] == all[rank];
        if (group == last && !reduces)
            continue;
        last = group;
        struct team *team =
            team_of(teams, step, group, everybody ? step->count : node->group_count);
        if (team && reduces)
            note_reduced(teams, team, across, run, node);
    }
}

/* ---- Twins ----------------------------------------------------------------------------------- */

enum { MOST_TRAITS = 256 };

static bool is_equal(const struct replica *a, const struct replica *b)
{
    return a->print.bits[0] == b->print.bits[0] && a->print.bits[1] == b->print.bits[1];
}

static const struct replica *replica_of(const struct replicas *set, size_t rank)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (set->list[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    const bool there = low < set->count && set->list[low].rank == rank;
    return there && set->list[low].print.known ? &set->list[low] : NULL;
}

static bool is_reduced(const struct replicas *set)
{
    return strncmp(set->name, "Module.reduced.", 15) == 0;
}

/* Tensors that tell ranks apart: not all of them have it alike. */
static bool is_trait(const struct replicas *set)
{
    for (size_t k = 1; k < set->count && !set->exchanged; k++)
        if (set->list[k].print.known && set->list[0].print.known && !set->list[k].print.constant &&
            !is_equal(&set->list[0], &set->list[k]))
            return true;
    return false;
}

struct traits {
    const struct replicas *list[MOST_TRAITS];
    size_t count;
};

/* Reduced gradients, or else parameters, spread over the run if there are many; none unless at
 * least a quarter of all are traits, as where a model is cut. */
static void find_traits(struct traits *traits, const struct replica_sets *sets, bool reduced)
{
    size_t all = 0, found = 0;
    traits->count = 0;
    for (size_t s = 0; s < sets->count; s++) {
        all += sets->list[s].count > 1 && is_reduced(&sets->list[s]) == reduced;
        found += is_reduced(&sets->list[s]) == reduced && is_trait(&sets->list[s]);
    }
    if (found < 2 || 4 * found < all)
        return;
    const size_t every = (found + MOST_TRAITS - 1) / MOST_TRAITS;
    for (size_t s = 0, k = 0; s < sets->count; s++)
        if (is_reduced(&sets->list[s]) == reduced && is_trait(&sets->list[s]) && k++ % every == 0)
            traits->list[traits->count++] = &sets->list[s];
}

struct trait_key {
    size_t trait;
    uint64_t bits[2];
};

/* Counts for whom the traits of a rank speak: the first one of those that had each before it.
 * Returns how many traits it has. */
static size_t vote(struct teams *teams, const struct traits *traits, size_t rank,
                   const size_t *first, struct map *seen, size_t *votes)
{
    size_t count = 0;
    for (size_t k = 0; k < traits->count && !teams->failed; k++) {
        const struct replica *own = replica_of(traits->list[k], rank);
        if (!own)
            continue;
        const struct trait_key key = {k, {own->print.bits[0], own->print.bits[1]}};
        bool added;
        uint64_t *place = map_put(seen, (const char *)&key, sizeof key, &added);
        teams->failed |= !place;
        if (place && added)
            *place = rank;
        else if (place)
            votes[first[*place]]++;
        count++;
    }
    return count;
}

/* For each rank the first one that has more than half of its traits alike: itself, or a twin. */
static size_t *match_twins(struct teams *teams, const struct across_step *step,
                           const struct traits *traits)
{
    size_t *first = arena_array(&teams->arena, step->count, sizeof *first);
    size_t *votes = arena_array(&teams->arena, step->count, sizeof *votes);
    struct map seen = {0};
    teams->failed |= !first || !votes;
    for (size_t r = 0; r < step->count && !teams->failed; r++) {
        memset(votes, 0, step->count * sizeof *votes);
        const size_t count = vote(teams, traits, r, first, &seen, votes);
        first[r] = r;
        for (size_t k = 0; k < r; k++)
            if (2 * votes[k] > count)
                first[r] = k;
    }
    map_free(&seen);
    return first;
}

static bool is_crossing(const struct team *team, const size_t *first)
{
    for (size_t k = 1; k < team->count; k++)
        if (first[team->ranks[k]] != first[team->ranks[0]])
            return true;
    return false;
}

/* One team of twins says nothing: the others may all be wrong. */
static void add_twins(struct teams *teams, const struct across_step *step, const size_t *first)
{
    int64_t *numbers = arena_array(&teams->arena, step->count, sizeof *numbers);
    size_t pairs = 0;
    teams->failed |= !numbers;
    for (size_t r = 0; r < step->count; r++) {
        size_t n = 0;
        for (size_t k = r; k < step->count && first[r] == r; k++)
            n += first[k] == r;
        pairs += n > 1;
    }
    for (size_t r = 0; r < step->count && pairs > 1 && !teams->failed; r++) {
        size_t n = 0;
        for (size_t k = r; k < step->count && first[r] == r; k++)
            if (first[k] == r)
                numbers[n++] = step->ranks[k].number;
        struct team *team = n > 1 ? team_of(teams, step, numbers, n) : NULL;
        if (team)
            team->twins = true;
    }
    for (size_t t = 0; t < teams->count && pairs > 1; t++)
        teams->list[t].crosses = is_crossing(&teams->list[t], first);
}

static void find_twins(struct teams *teams, const struct across_step *step,
                       const struct replica_sets *sets)
{
    struct traits traits;
    find_traits(&traits, sets, true);
    if (!traits.count)
        find_traits(&traits, sets, false);
    if (!traits.count)
        return;
    const size_t *first = match_twins(teams, step, &traits);
    if (!teams->failed)
        add_twins(teams, step, first);
}

/* ---- Gradients ------------------------------------------------------------------------------- */

/* A parameter, and not once more that of a module that is called again. */
static bool is_own_parameter(const struct replica_sets *sets, const struct replicas *set)
{
    return sets->arguments ? !set->exchanged : strstr(set->name, ".forward.0.parameters.") != NULL;
}

static uint64_t size_at(const struct replicas *set, size_t rank, const struct plumb_run *run)
{
    const struct replica *own = replica_of(set, rank);
    return own ? plumb_run_record(run, own->record)->count : 0;
}

static int by_elements(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void sort_sizes(struct sizes *sizes)
{
    if (sizes->count)
        qsort(sizes->list, sizes->count, sizeof *sizes->list, by_elements);
}

static size_t count_up_to(const struct sizes *sizes, uint64_t size)
{
    size_t low = 0, high = sizes->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sizes->list[middle] <= size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t count_of(const struct sizes *sizes, uint64_t size)
{
    return count_up_to(sizes, size) - count_up_to(sizes, size - 1);
}

/* Is a tensor reduced for each parameter of this size? */
static bool is_covered(const struct team *team, uint64_t size)
{
    const size_t own = count_of(&team->own, size);
    return own && count_of(&team->reduced, size) >= own;
}

/* Whether what a team reduces is the gradients of its parameters: all of them in one piece or in
 * several, or tensors of their sizes. What tensor parallel ranks reduce may have the size of a
 * parameter, but not those of nearly all. */
static void look_for_gradients(struct teams *teams, struct team *team,
                               const struct replica_sets *sets, const struct plumb_run *run)
{
    uint64_t covered = 0, before = 0;
    bool sizes_differ = false;
    for (size_t s = 0; s < sets->count && team->reduced.count && !teams->failed; s++) {
        const uint64_t size = is_own_parameter(sets, &sets->list[s])
                                  ? size_at(&sets->list[s], team->ranks[0], run)
                                  : 0;
        if (size)
            add_size(teams, &team->own, size);
    }
    sort_sizes(&team->reduced);
    sort_sizes(&team->own);
    for (size_t k = 0; k < team->own.count && !teams->failed; k++) {
        const uint64_t size = team->own.list[k];
        if (!is_covered(team, size))
            continue;
        covered += size;
        sizes_differ |= before && size != before;
        before = size;
    }
    team->gradients = team->own.sum && (team->reduced.sum == team->own.sum ||
                                        (sizes_differ && covered >= team->own.sum / 10 * 9));
}

static int by_size(const void *a, const void *b)
{
    const struct team *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1)
                                : (x->ranks[0] > y->ranks[0]) - (x->ranks[0] < y->ranks[0]);
}

enum plumb_code teams_find(struct teams *teams, const struct across *across,
                           const struct across_step *step, const struct replica_sets *sets,
                           const struct plumb_run *run)
{
    *teams = (struct teams){0};
    int64_t *all = arena_array(&teams->arena, step->count, sizeof *all);
    if (!all)
        return PLUMB_E_NOMEM;
    for (size_t r = 0; r < step->count; r++)
        all[r] = step->ranks[r].number;
    team_of(teams, step, all, step->count);
    for (size_t r = 0; r < step->count && !teams->failed; r++)
        add_groups(teams, across, step, run, r, all);
    for (size_t t = 0; t < teams->count; t++)
        teams->list[t].reduces = sets->elements && teams->list[t].reduced.sum >= sets->elements / 2;
    for (size_t t = 0; t < teams->count && !teams->failed; t++)
        if (teams->list[t].count)
            look_for_gradients(teams, &teams->list[t], sets, run);
    if (!teams->failed)
        find_twins(teams, step, sets);
    if (teams->failed)
        return PLUMB_E_NOMEM;
    qsort(teams->list, teams->count, sizeof *teams->list, by_size);
    return PLUMB_OK;
}

void teams_close(struct teams *teams)
{
    map_free(&teams->names);
    arena_free(&teams->arena);
}

/* ---- What must be alike ---------------------------------------------------------------------- */

/* Do all members that have it have it alike, and are there several? */
static bool is_alike(const struct team *team, const struct replicas *set)
{
    const struct replica *one = NULL;
    bool several = false;
    for (size_t k = 0; k < team->count; k++) {
        const struct replica *other = replica_of(set, team->ranks[k]);
        if (one && other && !is_equal(one, other))
            return false;
        several |= one && other;
        one = one ? one : other;
    }
    return several;
}

/* Most of the other twins have it alike. */
static bool is_alike_elsewhere(const struct teams *teams, const struct team *team,
                               const struct replicas *set)
{
    size_t alike = 0, others = 0;
    for (size_t t = 0; t < teams->count; t++) {
        const struct team *other = &teams->list[t];
        if (!other->twins || other == team || !replica_of(set, other->ranks[0]))
            continue;
        others++;
        alike += is_alike(other, set);
    }
    return alike && 2 * alike >= others;
}

/* Of Module.0.up.Linear.forward.0.parameters.weight it is called
 * Module.reduced.0.up.Linear.parameters_grad.0.weight. */
static bool has_one_gradient(const struct replica_sets *sets, const struct team *team,
                             const struct replicas *set)
{
    const char *path = set->name + 7, *call = strstr(set->name, ".forward."),
               *name = call ? strstr(call, ".parameters.") : NULL;
    char text[512];
    if (!name || strncmp(set->name, "Module.", 7) != 0)
        return false;
    const int n = snprintf(text, sizeof text, "Module.reduced.%.*s.parameters_grad.0.%s",
                           (int)(call - path), path, name + 12);
    uint64_t *place =
        n > 0 && (size_t)n < sizeof text ? map_get(&sets->index, text, (size_t)n) : NULL;
    const struct replicas *gradient = place ? &sets->list[*place] : NULL;
    const struct replica *own = gradient ? replica_of(gradient, team->ranks[0]) : NULL;
    return own && !own->print.constant && is_alike(team, gradient);
}

/* Do they reduce gradients of this one? */
static bool reduces_gradient(const struct team *team, const struct replicas *set,
                             const struct plumb_run *run)
{
    if (!team->gradients || set->exchanged || is_reduced(set))
        return false;
    const uint64_t size = size_at(set, team->ranks[0], run);
    return size && (team->reduced.sum == team->own.sum || is_covered(team, size));
}

bool teams_must_agree(const struct teams *teams, const struct team *team,
                      const struct replica_sets *sets, const struct replicas *set,
                      const struct plumb_run *run)
{
    return has_one_gradient(sets, team, set) ||
           (team->twins && is_alike_elsewhere(teams, team, set)) ||
           reduces_gradient(team, set, run);
}
