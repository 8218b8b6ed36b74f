/* The odd rank out: tensors that a group of ranks must have alike, and one has not. */
#include "task/blame/odd_teams.h"

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

struct oddity {
    struct across *across;
    struct across_step *step;
    struct kept *kept;
    struct replica_sets sets;
    struct teams teams;
    size_t *members; /* of the set at hand and the team at hand: places in its list */
    bool *settled;   /* of ranks: something is known of them for the set at hand */
    struct plumb_odd *found;
    size_t n_found;
    struct arena arena;
    bool failed;
};

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

static bool must_agree(const struct oddity *o, const struct replicas *set, const struct team *team)
{
    return teams_must_agree(&o->teams, team, &o->sets, set, o->kept->target);
}

/* Whether two tensors of one name are meant to be the same; *apart: how far they are apart. */
static bool is_replica(const struct oddity *o, const struct replicas *set, const struct team *team,
                       const struct replica *right, const struct replica *odd, double *apart)
{
    double together;
    print_compare(o->kept->target, right->record, odd->record, apart, &together);
    if (set->exchanged || must_agree(o, set, team))
        return true;
    if (right->print.constant && has_distinct_sibling(o, set))
        return false;
    return (isnan(together) ? *apart < NEAR : together > (team->crosses ? DRIFT : TOGETHER)) ||
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

/* Nobody has a majority: two that differ, or all that drift. Where a model is cut, ranks that have
 * different parts of it do. */
static bool name_all(struct oddity *o, const struct replicas *set, const struct team *team,
                     size_t n)
{
    double most = 0;
    const bool certain = set->exchanged || must_agree(o, set, team);
    if (!certain && (n > MOST_COMPARED || set->list[o->members[0]].print.constant || team->crosses))
        return false;
    for (size_t k = 1; k < n && k < MOST_COMPARED; k++) {
        const struct replica *a = &set->list[o->members[0]], *b = &set->list[o->members[k]];
        double apart, together;
        print_compare(o->kept->target, a->record, b->record, &apart, &together);
        if (!certain && !(together > (n == 2 ? TOGETHER : DRIFT)))
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
    for (size_t t = 0; t < o->teams.count && !o->failed; t++) {
        const struct team *team = &o->teams.list[t];
        const size_t n = meet(o, set, team);
        if (n < 2 || all_settled(o, set, n))
            continue;
        size_t votes;
        const size_t right = find_majority(o, set, n, &votes);
        if (right == SIZE_MAX ? name_all(o, set, team, n)
                              : votes == n || name_odd(o, set, team, n, right, votes)) {
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

/* ---- Beside another run ---------------------------------------------------------------------- */

/* Whether the other run has it, and how. */
enum there { UNKNOWN_THERE, SAME_THERE, OTHER_THERE };

static enum there look_there(const struct oddity *o, const struct replica *own)
{
    const struct plumb_record *record = plumb_run_record(o->kept->target, own->record);
    for (size_t i = 0; i < plumb_run_count(o->kept->golden); i++) {
        const struct plumb_record *other = plumb_run_record(o->kept->golden, i);
        struct print print;
        if (other->rank != record->rank || other->step != record->step || !other->key ||
            !record->key || strcmp(other->key, record->key) != 0)
            continue;
        print_of(&print, o->kept->golden, i);
        return !print.known                                       ? UNKNOWN_THERE
               : is_equal(&(struct replica){.print = print}, own) ? SAME_THERE
                                                                  : OTHER_THERE;
    }
    return UNKNOWN_THERE;
}

/* Ranks that differ, all but one of which have the tensor as the other run has it: that one. -1:
 * there is no such. */
static int64_t odd_beside(const struct oddity *o, const struct plumb_odd *differ)
{
    const uint64_t *place = map_get(&o->sets.index, differ->name, strlen(differ->name));
    const struct replicas *set = place ? &o->sets.list[*place] : NULL;
    int64_t odd = -1;
    size_t others = 0;
    for (size_t k = 0; k < (set ? set->count : 0); k++) {
        const int64_t rank = o->step->ranks[set->list[k].rank].number;
        bool member = false;
        for (size_t g = 0; g < differ->n_group && !member; g++)
            member = differ->group[g] == rank;
        const enum there there = member ? look_there(o, &set->list[k]) : SAME_THERE;
        if (there == SAME_THERE)
            continue;
        odd = rank;
        others += there == OTHER_THERE ? 1 : 2; /* of one that is not known nothing follows */
    }
    return others == 1 ? odd : -1;
}

static const char *say_beside(struct oddity *o, double apart)
{
    const char *far = say_apart(o, apart);
    const char *text =
        far ? arena_printf(&o->kept->arena,
                           "the others of its group have it as the other run has, and this "
                           "one has not%s",
                           far)
            : NULL;
    o->failed |= !text;
    return text;
}

static void ask_other_run(struct oddity *o, size_t before)
{
    for (size_t k = before; k < o->n_found && o->kept->golden && !o->failed; k++) {
        struct plumb_odd *is = &o->found[k];
        const int64_t rank = is->rank < 0 ? odd_beside(o, is) : -1;
        if (rank < 0)
            continue;
        is->rank = rank;
        is->why = say_beside(o, is->apart);
        for (size_t j = 0; j < o->n_found; j++)
            if (j != k && o->found[j].rank == rank) { /* it is told once */
                o->found[j].tensors += o->found[j].step == is->step ? is->tensors : 0;
                is->tensors = 0;
                break;
            }
    }
}

/* Two that differ, one of which is the odd one by another tensor of the step. */
static struct plumb_odd *odd_of_two(const struct oddity *o, const struct plumb_odd *differ)
{
    struct plumb_odd *odd = NULL;
    for (size_t k = 0; k < o->n_found && differ->rank < 0 && differ->n_group == 2; k++) {
        struct plumb_odd *is = &o->found[k];
        if (!is->tensors || is->step != differ->step ||
            (is->rank != differ->group[0] && is->rank != differ->group[1]))
            continue;
        if (odd)
            return NULL; /* both are */
        odd = is;
    }
    return odd;
}

/* Leaves out ranks that differ because one of them is named already, or as what an earlier step
 * has led to. `before`: how many were found in earlier steps. */
static void leave_out(struct oddity *o, size_t before)
{
    size_t n = before;
    for (size_t k = before; k < o->n_found; k++) {
        struct plumb_odd *odd = odd_of_two(o, &o->found[k]);
        if (odd)
            odd->tensors += o->found[k].tensors;
        o->found[k].tensors = odd || (before && o->found[k].rank < 0) ? 0 : o->found[k].tensors;
    }
    for (size_t k = before; k < o->n_found; k++)
        if (o->found[k].tensors)
            o->found[n++] = o->found[k];
    o->n_found = n;
}

static enum plumb_code look_at_step(struct oddity *o)
{
    enum plumb_code code =
        sets_find(&o->sets, o->across, o->step, o->kept->target, o->kept->threads);
    o->members = arena_array(&o->arena, o->step->count, sizeof *o->members);
    o->settled = arena_array(&o->arena, o->step->count, sizeof *o->settled);
    if (code || !o->members || !o->settled)
        return PLUMB_E_NOMEM;
    if (teams_find(&o->teams, o->across, o->step, &o->sets, o->kept->target))
        return PLUMB_E_NOMEM;
    find_distinct(o);
    const size_t before = o->n_found;
    for (size_t s = 0; s < o->sets.count && !o->failed; s++)
        look_at(o, &o->sets.list[s]);
    ask_other_run(o, before);
    leave_out(o, before);
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
        teams_close(&o.teams);
        arena_free(&o.arena);
    }
    kept->blame.odd = found;
    kept->blame.n_odd = n;
    return code ? plumb_no_memory(err) : PLUMB_OK;
}
