/* The odd rank out: tensors that a group of ranks must have alike, and one has not. */
#include "task/blame/odd.h"

#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tensors of one name that are further from each other than this are different tensors, unless
 * ranks reduce gradients of all of them. */
#define NEAR 0.5
#define TOGETHER 0.5
/* Replicas that all drift, no two alike, still go together as closely as this. */
#define DRIFT 0.99
enum { MOST_COMPARED = 16 };

/* Ranks that work together, by their places in the step. */
struct team {
    const size_t *ranks; /* ascending */
    size_t count;
    bool reduces; /* as many elements as there are parameters */
};

struct oddity {
    struct across *across;
    struct across_step *step;
    struct kept *kept;
    struct replica_sets sets;
    struct team *teams; /* largest first */
    size_t n_teams, team_capacity;
    struct map names; /* of teams */
    size_t *members;  /* of the set at hand and the team at hand: places in its list */
    bool *settled;    /* of ranks: something is known of them for the set at hand */
    struct plumb_odd *found;
    size_t n_found;
    struct arena arena;
    bool failed;
};

/* ---- Teams ----------------------------------------------------------------------------------- */

/* Room for one more; false when out of memory. */
static bool grow_teams(struct oddity *o)
{
    if (o->n_teams < o->team_capacity)
        return true;
    const size_t more = o->team_capacity ? 2 * o->team_capacity : 16;
    struct team *teams = arena_array(&o->arena, more, sizeof *teams);
    if (teams && o->n_teams)
        memcpy(teams, o->teams, o->n_teams * sizeof *teams);
    if (!teams)
        return false;
    o->teams = teams;
    o->team_capacity = more;
    return true;
}

static struct team *team_of(struct oddity *o, const int64_t *numbers, size_t count)
{
    uint64_t *place = map_get(&o->names, (const char *)numbers, count * sizeof *numbers);
    if (place)
        return &o->teams[*place];
    size_t *ranks = arena_array(&o->arena, count, sizeof *ranks), n = 0;
    place = ranks ? map_put(&o->names, (const char *)numbers, count * sizeof *numbers, NULL) : NULL;
    if (!place || !grow_teams(o)) {
        o->failed = true;
        return NULL;
    }
    for (size_t k = 0, r = 0; k < count; k++) {
        while (r < o->step->count && o->step->ranks[r].number < numbers[k])
            r++;
        if (r < o->step->count && o->step->ranks[r].number == numbers[k])
            ranks[n++] = r;
    }
    *place = o->n_teams;
    o->teams[o->n_teams] = (struct team){ranks, n, false};
    return &o->teams[o->n_teams++];
}

static uint64_t reduced_elements(const struct oddity *o, const struct graph_node *node)
{
    size_t count;
    const size_t first = across_records(o->across, o->kept->target, node->name, &count);
    uint64_t elements = 0;
    for (size_t i = first; i < first + count; i++) {
        const struct plumb_record *record = plumb_run_record(o->kept->target, i);
        if (record->recorded->tensor && strstr(record->key ? record->key : "", ".input."))
            elements += record->count;
    }
    return elements;
}

/* The groups of all exchanges; and whether the first rank of each reduces gradients in it. */
static void find_teams(struct oddity *o)
{
    int64_t *all = arena_array(&o->arena, o->step->count, sizeof *all);
    uint64_t *reduced = NULL;
    size_t capacity = 0;
    o->failed |= !all;
    for (size_t r = 0; all && r < o->step->count; r++)
        all[r] = o->step->ranks[r].number;
    if (all)
        team_of(o, all, o->step->count);
    for (size_t r = 0; r < o->step->count && !o->failed; r++) {
        const int64_t *last = NULL;
        for (size_t i = 0; i < o->step->ranks[r].count && !o->failed; i++) {
            const struct graph_node *node = &o->step->ranks[r].nodes[i];
            if (!node->communication)
                continue;
            const bool everybody = !node->group_count;
            const int64_t *group = everybody ? all : node->group;
            const size_t count = everybody ? o->step->count : node->group_count;
            const bool reduces = strstr(node->name, "reduce") && group[0] == all[r];
            if (group == last && !reduces)
                continue;
            last = group;
            const struct team *team = team_of(o, group, count);
            const size_t number = team ? (size_t)(team - o->teams) : 0;
            if (number >= capacity) {
                const size_t more = 2 * number + 16;
                uint64_t *grown = arena_array(&o->arena, more, sizeof *grown);
                o->failed |= !grown;
                if (!grown)
                    break;
                if (capacity)
                    memcpy(grown, reduced, capacity * sizeof *grown);
                reduced = grown;
                capacity = more;
            }
            reduced[number] += reduces ? reduced_elements(o, node) : 0;
        }
    }
    for (size_t t = 0; t < o->n_teams && t < capacity; t++)
        o->teams[t].reduces = o->sets.elements && reduced[t] >= o->sets.elements / 2;
}

static int by_size(const void *a, const void *b)
{
    const struct team *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1)
                                : (x->ranks[0] > y->ranks[0]) - (x->ranks[0] < y->ranks[0]);
}

/* ---- One set and one team -------------------------------------------------------------------- */

static bool is_equal(const struct replica *a, const struct replica *b)
{
    return a->print.bits[0] == b->print.bits[0] && a->print.bits[1] == b->print.bits[1];
}

/* The members that have the tensor, and whose print is known; how many. */
static size_t meet(struct oddity *o, const struct replicas *set, const struct team *team)
{
    size_t n = 0;
    for (size_t k = 0, i = 0; k < team->count; k++) {
        while (i < set->count && set->list[i].rank < team->ranks[k])
            i++;
        if (i < set->count && set->list[i].rank == team->ranks[k] && set->list[i].print.known)
            o->members[n++] = i;
    }
    return n;
}

/* The member that more than half of them equal, and how many do; SIZE_MAX: there is none. */
static size_t find_majority(const struct oddity *o, const struct replicas *set, size_t n,
                            size_t *votes)
{
    size_t candidate = SIZE_MAX, lead = 0;
    for (size_t k = 0; k < n; k++) {
        if (!lead)
            candidate = o->members[k];
        lead += is_equal(&set->list[candidate], &set->list[o->members[k]]) ? 1 : (size_t)-1;
    }
    *votes = 0;
    for (size_t k = 0; k < n; k++)
        *votes += is_equal(&set->list[candidate], &set->list[o->members[k]]);
    return 2 * *votes > n ? candidate : SIZE_MAX;
}

/* Tensors of the same module that no two ranks have alike: then this one is a shard, too. */
static bool has_distinct_sibling(const struct oddity *o, const struct replicas *set)
{
    const char *end = strstr(set->name, ".parameters.");
    if (!end)
        return false;
    const size_t length = (size_t)(end - set->name) + 12;
    for (size_t s = 0; s < o->sets.count; s++)
        if (o->sets.list[s].distinct && strncmp(o->sets.list[s].name, set->name, length) == 0)
            return true;
    return false;
}

/* Whether two tensors of one name are meant to be the same; *apart: how far they are apart. */
static bool is_replica(const struct oddity *o, const struct replicas *set, const struct team *team,
                       const struct replica *right, const struct replica *odd, double *apart)
{
    double together;
    print_compare(o->kept->target, right->record, odd->record, apart, &together);
    if (set->exchanged)
        return true;
    if (right->print.constant && has_distinct_sibling(o, set))
        return false;
    return (isnan(together) ? *apart < NEAR : together > TOGETHER) ||
           (team->count > 2 && team->reduces);
}

static const int64_t *numbers_of(struct oddity *o, const struct replicas *set, size_t n)
{
    int64_t *numbers = arena_array(&o->kept->arena, n, sizeof *numbers);
    o->failed |= !numbers;
    for (size_t k = 0; numbers && k < n; k++)
        numbers[k] = o->step->ranks[set->list[o->members[k]].rank].number;
    return numbers;
}

/* Of a rank the first tensor is told, and how many there are in that step. */
static void note(struct oddity *o, const struct replicas *set, size_t n, int64_t rank, double apart,
                 const char *why)
{
    const int64_t *group = numbers_of(o, set, n);
    o->failed |= !why;
    for (size_t k = 0; k < o->n_found && group; k++) {
        struct plumb_odd *is = &o->found[k];
        if (is->rank != rank ||
            (rank < 0 && (is->n_group != n || memcmp(is->group, group, n * sizeof *group) != 0)))
            continue;
        is->tensors += is->step == o->step->step;
        return;
    }
    struct plumb_odd *more = arena_array(&o->kept->arena, o->n_found + 1, sizeof *more);
    o->failed |= !more;
    if (o->failed)
        return;
    if (o->n_found)
        memcpy(more, o->found, o->n_found * sizeof *more);
    more[o->n_found++] = (struct plumb_odd){.rank = rank,
                                            .step = o->step->step,
                                            .name = set->name,
                                            .tensors = 1,
                                            .group = group,
                                            .n_group = n,
                                            .apart = apart,
                                            .why = why};
    o->found = more;
}

static const char *say_apart(struct oddity *o, double apart)
{
    char text[NUMBER_BYTES];
    return isfinite(apart)
               ? arena_printf(&o->arena, ": %s %% apart", number_brief(100 * apart, 3, text))
               : "";
}

static const char *say_odd(struct oddity *o, size_t votes, double apart)
{
    const char *far = say_apart(o, apart);
    return far ? arena_printf(&o->kept->arena, "%zu ranks have it alike, and this one has not%s",
                              votes, far)
               : NULL;
}

static const char *say_apart_all(struct oddity *o, size_t n, double apart)
{
    const char *far = say_apart(o, apart);
    return !far ? NULL
                : arena_printf(&o->kept->arena, "%s%s; which is right cannot be said",
                               n == 2 ? "the two do not have it alike"
                                      : "no more than half of them have it alike",
                               far);
}

/* The odd ones beside a majority. False: these are different tensors. */
static bool name_odd(struct oddity *o, const struct replicas *set, const struct team *team,
                     size_t n, size_t right, size_t votes)
{
    bool any = false;
    for (size_t k = 0; k < n && !o->failed; k++) {
        const struct replica *odd = &set->list[o->members[k]];
        double apart;
        if (is_equal(odd, &set->list[right]))
            continue;
        if (!is_replica(o, set, team, &set->list[right], odd, &apart))
            return any;
        any = true;
        note(o, set, n, o->step->ranks[odd->rank].number, apart, say_odd(o, votes, apart));
    }
    return true;
}

/* Nobody has a majority: two that differ, or all that drift. */
static bool name_all(struct oddity *o, const struct replicas *set, size_t n)
{
    double most = 0;
    if (n > MOST_COMPARED || (set->list[o->members[0]].print.constant && !set->exchanged))
        return false;
    for (size_t k = 1; k < n; k++) {
        const struct replica *a = &set->list[o->members[0]], *b = &set->list[o->members[k]];
        double apart, together;
        print_compare(o->kept->target, a->record, b->record, &apart, &together);
        if (!set->exchanged && !(together > (n == 2 ? TOGETHER : DRIFT)))
            return false;
        most = fmax(most, apart);
    }
    note(o, set, n, -1, most, say_apart_all(o, n, most));
    return true;
}

static void settle(struct oddity *o, const struct replicas *set, size_t n)
{
    for (size_t k = 0; k < n; k++)
        o->settled[set->list[o->members[k]].rank] = true;
}

static bool all_settled(const struct oddity *o, const struct replicas *set, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (!o->settled[set->list[o->members[k]].rank])
            return false;
    return true;
}

static void look_at(struct oddity *o, struct replicas *set)
{
    bool replicated = false;
    memset(o->settled, 0, o->step->count * sizeof *o->settled);
    for (size_t t = 0; t < o->n_teams && !o->failed; t++) {
        const size_t n = meet(o, set, &o->teams[t]);
        if (n < 2 || all_settled(o, set, n))
            continue;
        size_t votes;
        const size_t right = find_majority(o, set, n, &votes);
        if (right == SIZE_MAX ? name_all(o, set, n)
                              : votes == n || name_odd(o, set, &o->teams[t], n, right, votes)) {
            settle(o, set, n);
            replicated = true;
        }
        if (set->exchanged)
            break;
    }
    o->kept->blame.replicas += replicated;
}

/* No two of the ranks have it alike. */
static void find_distinct(struct oddity *o)
{
    for (size_t s = 0; s < o->sets.count; s++) {
        struct replicas *set = &o->sets.list[s];
        set->distinct = set->count > 1;
        for (size_t k = 1; k < set->count && set->distinct; k++)
            set->distinct = !is_equal(&set->list[k - 1], &set->list[k]);
    }
}

static enum plumb_code look_at_step(struct oddity *o)
{
    enum plumb_code code =
        sets_find(&o->sets, o->across, o->step, o->kept->target, o->kept->threads);
    o->members = arena_array(&o->arena, o->step->count, sizeof *o->members);
    o->settled = arena_array(&o->arena, o->step->count, sizeof *o->settled);
    if (code || !o->members || !o->settled)
        return PLUMB_E_NOMEM;
    find_teams(o);
    if (!o->failed)
        qsort(o->teams, o->n_teams, sizeof *o->teams, by_size);
    find_distinct(o);
    for (size_t s = 0; s < o->sets.count && !o->failed; s++)
        look_at(o, &o->sets.list[s]);
    return o->failed ? PLUMB_E_NOMEM : PLUMB_OK;
}

enum plumb_code odd_find(struct across *across, struct kept *kept, struct plumb_error *err)
{
    struct plumb_odd *found = NULL;
    size_t n = 0;
    enum plumb_code code = PLUMB_OK;
    for (size_t s = 0; s < across->count && !code; s++) {
        struct oddity o = {.across = across,
                           .step = &across->steps[s],
                           .kept = kept,
                           .found = found,
                           .n_found = n};
        code = look_at_step(&o);
        found = o.found;
        n = o.n_found;
        sets_close(&o.sets);
        map_free(&o.names);
        arena_free(&o.arena);
    }
    kept->blame.odd = found;
    kept->blame.n_odd = n;
    return code ? plumb_no_memory(err) : PLUMB_OK;
}
