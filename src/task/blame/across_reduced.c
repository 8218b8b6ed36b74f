/* Gradients that DistributedDataParallel reduced: its all_reduce runs in C++ and is no call, but a
 * capture has what each rank's backward gave, and what was there after it.
 *
 * "Module.reduced.PATH.parameters_grad.0.weight" should be the mean over the ranks of
 * "Module.PATH.parameters_grad.0.weight". */
#define _GNU_SOURCE
#include "task/blame/exchanged.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char after[] = "Module.reduced.", before[] = "Module.";

struct reducing {
    const struct kept *kept;
    struct arena arena;  /* of keys */
    struct map records;  /* "step|rank|name" to 1 + its number */
    struct map firsts;   /* "step|rank|call" to 1 + its first record */
    struct map sites;    /* "step|rank|call" to 1 + its number */
    struct map finished; /* "step|call" */
    exchanged_add_fn *add;
    void *context;
    bool failed;
};

static uint64_t *put(struct reducing *r, struct map *map, int64_t step, int64_t rank,
                     const char *name)
{
    const char *key = arena_printf(&r->arena, "%" PRId64 "|%" PRId64 "|%s", step, rank, name);
    uint64_t *place = key ? map_put(map, key, strlen(key), NULL) : NULL;
    r->failed |= !place;
    return place;
}

/* 1 + the number of it; 0: there is none. */
static size_t get(struct reducing *r, const struct map *map, int64_t step, int64_t rank,
                  const char *head, const char *rest)
{
    const char *key =
        arena_printf(&r->arena, "%" PRId64 "|%" PRId64 "|%s%s", step, rank, head, rest);
    const uint64_t *place = key ? map_get(map, key, strlen(key)) : NULL;
    r->failed |= !key;
    return place ? (size_t)*place : 0;
}

static bool is_reduced(const char *call)
{
    return strncmp(call, after, sizeof after - 1) == 0 && strstr(call, ".parameters_grad.");
}

static bool note_all(struct reducing *r)
{
    const struct plumb_run *run = r->kept->target;
    const char *last = NULL;
    bool any = false;
    for (size_t k = 0; k < r->kept->sites.count && !r->failed; k++) {
        const struct plumb_suspect *is = &r->kept->sites.list[k].is;
        if (!is_reduced(is->call))
            continue;
        uint64_t *place = put(r, &r->sites, is->step, is->rank, is->call);
        if (place)
            *place = k + 1;
        any = true;
    }
    for (size_t i = 0; any && i < plumb_run_count(run) && !r->failed; i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        if (!record->recorded || !strstr(record->name, ".parameters_grad."))
            continue;
        uint64_t *place = put(r, &r->records, record->step, record->rank, record->name);
        if (place)
            *place = i + 1;
        const char *call = record->recorded->api;
        if (!call || call == last || !is_reduced(call))
            continue;
        last = call;
        place = put(r, &r->firsts, record->step, record->rank, call);
        if (place)
            *place = i + 1;
    }
    return any;
}

/* A rank's reduced gradient of one parameter, from those that all ranks had before. */
static const char *add_result(struct reducing *r, struct exchanged *x, struct arena *arena,
                              size_t member, size_t record, const struct exchanged_term *terms)
{
    const struct plumb_run *run = r->kept->target;
    const uint64_t count = plumb_run_record(run, record)->count;
    for (size_t k = 0; k < x->count; k++)
        if (plumb_run_record(run, terms[k].record)->count != count)
            return "it is a shard of what was reduced, which plumb does not compute again";
    struct exchanged_result *result = &x->results[x->n_results];
    const char *name = strrchr(plumb_run_record(run, record)->name, '.');
    result->member = member;
    result->place = name ? name + 1 : "";
    result->parts = arena_alloc(arena, sizeof *result->parts);
    r->failed |= !result->parts;
    if (r->failed)
        return NULL;
    result->parts[0] = (struct exchanged_part){record, 0, count, terms, x->count};
    result->n = 1;
    x->n_results++;
    return NULL;
}

/* One parameter, at all ranks. */
static void add_parameter(struct reducing *r, struct exchanged *x, struct arena *arena,
                          int64_t step, const char *rest)
{
    struct exchanged_term *terms = arena_array(arena, x->count, sizeof *terms);
    r->failed |= !terms;
    for (size_t k = 0; k < x->count && !r->failed && !x->refused; k++) {
        const int64_t rank = x->members[k].rank;
        const size_t record = get(r, &r->records, step, rank, before, rest);
        terms[k] = (struct exchanged_term){record - 1, 0, rank};
        if (!record)
            x->refused = "gradients of all ranks before they were reduced were not recorded";
    }
    for (size_t k = 0; k < x->count && !r->failed && !x->refused; k++) {
        const size_t record = get(r, &r->records, step, x->members[k].rank, after, rest);
        if (record)
            x->refused = add_result(r, x, arena, k, record - 1, terms);
    }
}

/* Ranks of a step that have this call, as members; how many. */
static size_t find_members(struct reducing *r, const struct across_step *step, const char *call,
                           size_t *sites)
{
    size_t count = 0;
    for (size_t k = 0; k < step->count; k++) {
        sites[k] = get(r, &r->sites, step->step, step->ranks[k].number, "", call);
        count += sites[k] != 0;
    }
    return count;
}

/* All parameters of one call, which is a module. */
static void add_call(struct reducing *r, const struct across_step *step, const char *call)
{
    const struct plumb_run *run = r->kept->target;
    size_t *sites = arena_array(&r->arena, step->count, sizeof *sites);
    r->failed |= !sites;
    const size_t count = r->failed ? 0 : find_members(r, step, call, sites);
    struct arena *arena;
    struct exchanged *x = count ? r->add(r->context, count, &arena) : NULL;
    if (!x) {
        r->failed |= count > 0;
        return;
    }
    x->planned = x->reduced = true;
    x->op = EXCHANGED_MEAN;
    for (size_t k = 0, m = 0; k < step->count; k++)
        if (sites[k])
            x->members[m++] =
                (struct exchanged_member){.rank = step->ranks[k].number, .site = sites[k]};
    if (count < step->count)
        x->refused = "some ranks do not have this gradient";
    const size_t first = get(r, &r->firsts, step->step, x->members[0].rank, "", call);
    size_t end = first ? first - 1 : 0;
    const char *api = first ? plumb_run_record(run, end)->recorded->api : NULL;
    while (first && end < plumb_run_count(run) && plumb_run_record(run, end)->recorded &&
           plumb_run_record(run, end)->recorded->api == api)
        end++;
    x->results = arena_array(arena, (first ? end - first + 1 : 0) * count + 1, sizeof *x->results);
    r->failed |= !x->results;
    for (size_t i = first - 1; first && i < end && !r->failed && !x->refused; i++)
        add_parameter(r, x, arena, step->step, plumb_run_record(run, i)->name + sizeof after - 1);
}

enum plumb_code across_find_reduced(const struct across *across, const struct kept *kept,
                                    exchanged_add_fn *add, void *context)
{
    struct reducing r = {.kept = kept, .add = add, .context = context};
    const bool any = note_all(&r);
    for (size_t s = 0; any && s < across->count && !r.failed; s++)
        for (size_t k = 0; k < kept->sites.count && !r.failed; k++) {
            const struct plumb_suspect *is = &kept->sites.list[k].is;
            if (is->step != across->steps[s].step || !is_reduced(is->call))
                continue;
            uint64_t *seen = put(&r, &r.finished, is->step, -1, is->call);
            if (seen && !(*seen)++)
                add_call(&r, &across->steps[s], is->call);
        }
    map_free(&r.records);
    map_free(&r.firsts);
    map_free(&r.sites);
    map_free(&r.finished);
    arena_free(&r.arena);
    return r.failed ? PLUMB_E_NOMEM : PLUMB_OK;
}
