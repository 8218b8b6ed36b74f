/* Records of ranks that are parts of one tensor: by name, and calls of functions by their module.
 *
 * The ranks of a pipeline number their calls, and may number their layers, from 0. So a call of a
 * function is known by the call of the module that it was made in, and by its turn there; layers of
 * later stages are counted on from those before. */
#define _GNU_SOURCE
#include "pair/shards_group.h"

#include "base/map.h"
#include "pair/shards_number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct grouping {
    struct shards_groups *out;
    struct arena *arena;
    const struct plumb_record *const *records;
    size_t count, room;
    struct numbering numbering;
    struct map groups; /* "step|key": 1 + its number */
    struct map turns;  /* "step|rank|parent|label": calls so far */
    struct map calls;  /* "step|rank|api": its scope and turn, or 0 */
    struct map owners; /* "step|api": 1 + the first group whose call is called so */
    struct map free;   /* "step|label": the next number that no call has */
};

/* "Functional.linear.3.forward": where its number begins and ends; false: it has none. */
static bool call_number(const char *api, size_t *begin, size_t *end)
{
    const char *last = strrchr(api, '.');
    const char *dot = last ? memrchr(api, '.', (size_t)(last - api)) : NULL;
    if (!dot || strspn(dot + 1, "0123456789") != (size_t)(last - dot - 1) || last == dot + 1)
        return false;
    *begin = (size_t)(dot + 1 - api);
    *end = (size_t)(last - api);
    return true;
}

static bool is_function(const struct plumb_record *record)
{
    const char *api = record->recorded ? record->recorded->api : NULL;
    return api && strncmp(api, "Module.", 7) != 0 && strncmp(api, "Cell.", 5) != 0;
}

/* "step|rank" of a record, for keys of maps. */
static const char *place(struct grouping *g, const struct plumb_record *record, int64_t rank)
{
    return arena_printf(g->arena, "%" PRId64 "|%" PRId64, record->step, rank);
}

/* The call of a function by its module and turn; NULL when out of memory. */
static const char *call_key(struct grouping *g, const struct plumb_record *record, int64_t rank,
                            const char *parent)
{
    const char *api = record->recorded->api, *where = place(g, record, rank);
    size_t begin, end;
    if (!where || !call_number(api, &begin, &end))
        return where ? api : NULL;
    const char *name = arena_printf(g->arena, "%s|%s", where, api);
    uint64_t *known = name ? map_put(&g->calls, name, strlen(name), NULL) : NULL;
    if (!known)
        return NULL;
    if (!*known) {
        const char *turn =
            arena_printf(g->arena, "%s|%s|%.*s%s", where, parent, (int)begin, api, api + end);
        uint64_t *count = turn ? map_put(&g->turns, turn, strlen(turn), NULL) : NULL;
        const char *key = count ? arena_printf(g->arena, "%s|%.*s#%" PRIu64 "%s", parent,
                                               (int)begin, api, *count, api + end)
                                : NULL;
        if (!key)
            return NULL;
        ++*count;
        *known = (uint64_t)(uintptr_t)key;
    }
    return (const char *)(uintptr_t)*known;
}

/* A number for a call whose own is taken by another call; NULL when out of memory. */
static const char *free_api(struct grouping *g, const struct plumb_record *record)
{
    const char *api = record->recorded->api;
    size_t begin, end;
    if (!call_number(api, &begin, &end))
        return api;
    const char *label =
        arena_printf(g->arena, "%" PRId64 "|%.*s%s", record->step, (int)begin, api, api + end);
    uint64_t *next = label ? map_put(&g->free, label, strlen(label), NULL) : NULL;
    return next ? arena_printf(g->arena, "%.*s%" PRIu64 "%s", (int)begin, api, (*next)++, api + end)
                : NULL;
}

/* The numbers that calls of each function have. */
static bool note_numbers(struct grouping *g)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct plumb_record *record = g->records[i];
        size_t begin, end;
        if (!is_function(record) || !call_number(record->recorded->api, &begin, &end))
            continue;
        const char *api = record->recorded->api;
        const char *label =
            arena_printf(g->arena, "%" PRId64 "|%.*s%s", record->step, (int)begin, api, api + end);
        uint64_t *next = label ? map_put(&g->free, label, strlen(label), NULL) : NULL;
        if (!next)
            return false;
        const uint64_t number = strtoull(api + begin, NULL, 10);
        *next = number >= *next && number < UINT32_MAX ? number + 1 : *next;
    }
    return true;
}

static struct shards_group *new_group(struct grouping *g, const struct plumb_record *record)
{
    struct shards_groups *out = g->out;
    if (out->count == g->room) {
        g->room = g->room ? g->room * 2 : 256;
        struct shards_group *list = arena_array(g->arena, g->room, sizeof *list);
        if (!list)
            return NULL;
        if (out->count)
            memcpy(list, out->list, out->count * sizeof *list);
        out->list = list;
    }
    struct shards_group *group = &out->list[out->count++];
    *group = (struct shards_group){.step = record->step};
    return group;
}

/* Names a new group; where another call has its name, it gets another number. */
static bool name_group(struct grouping *g, struct shards_group *group,
                       const struct plumb_record *record, const char *name, const char *key)
{
    group->name = name;
    if (!is_function(record))
        return true;
    const char *api = record->recorded->api;
    const size_t call = strcspn(key, "@"); /* what all records of the call have in common */
    const char *owner = arena_printf(g->arena, "%" PRId64 "|%s", record->step, api);
    uint64_t *taken = owner ? map_put(&g->owners, owner, strlen(owner), NULL) : NULL;
    const char *own = arena_copy(g->arena, key, call);
    if (!taken || !own)
        return false;
    if (!*taken)
        *taken = (uint64_t)(uintptr_t)own;
    if (strcmp((const char *)(uintptr_t)*taken, own) == 0)
        return true;
    const char *mine = arena_printf(g->arena, "%" PRId64 "=%s", record->step, own);
    uint64_t *made = mine ? map_put(&g->owners, mine, strlen(mine), NULL) : NULL;
    if (!made)
        return false;
    if (!*made)
        *made = (uint64_t)(uintptr_t)free_api(g, record);
    group->api = (const char *)(uintptr_t)*made;
    const size_t length = strlen(api);
    if (group->api && strncmp(name, api, length) == 0)
        group->name = arena_printf(g->arena, "%s%s", group->api, name + length);
    return group->api && group->name;
}

static bool add_part(struct grouping *g, struct shards_group *group, size_t record, int64_t rank)
{
    if (group->parts == group->room) {
        group->room = group->room ? group->room * 2 : 4;
        size_t *records = arena_array(g->arena, group->room, sizeof *records);
        int64_t *ranks = arena_array(g->arena, group->room, sizeof *ranks);
        if (!records || !ranks)
            return false;
        for (unsigned i = 0; i < group->parts; i++) {
            records[i] = group->records[i];
            ranks[i] = group->ranks[i];
        }
        group->records = records;
        group->ranks = ranks;
    }
    unsigned at = group->parts++;
    for (; at && group->ranks[at - 1] > rank; at--) {
        group->ranks[at] = group->ranks[at - 1];
        group->records[at] = group->records[at - 1];
    }
    group->ranks[at] = rank;
    group->records[at] = record;
    return true;
}

static bool has_rank(const struct shards_group *group, int64_t rank)
{
    for (unsigned i = 0; i < group->parts; i++)
        if (group->ranks[i] == rank)
            return true;
    return false;
}

static bool add_record(struct grouping *g, size_t i)
{
    const struct plumb_record *record = g->records[i];
    const char *name = record->name;
    const int64_t rank = numbering_rank(record, &name);
    if (g->out->rank_count && rank < g->out->ranks[0]) {
        if (!g->out->strays++)
            g->out->stray = record->name;
        return true;
    }
    if (record->recorded && !record->recorded->tensor) {
        g->out->values++;
        return true;
    }
    const char *parent = plumb_recorded_parent(record->recorded);
    name = numbering_whole(&g->numbering, g->arena, name, rank);
    if (parent)
        parent = numbering_whole(&g->numbering, g->arena, parent, rank);
    const char *key = name;
    if (name && is_function(record) && parent) {
        const char *call = call_key(g, record, rank, parent);
        const size_t length = strlen(record->recorded->api);
        const char *row = strncmp(name, record->recorded->api, length) == 0 ? name + length : name;
        key = call ? arena_printf(g->arena, "%s@%s", call, row) : NULL;
    }
    if (!name || !key)
        return false;
    /* The same name twice on one rank: the k-th of one belongs to the k-th of the others. */
    for (unsigned turn = 0;; turn++) {
        const char *full = arena_printf(g->arena, "%" PRId64 "|%u|%s", record->step, turn, key);
        bool added;
        uint64_t *number = full ? map_put(&g->groups, full, strlen(full), &added) : NULL;
        if (!number)
            return false;
        if (!added && has_rank(&g->out->list[*number], rank))
            continue;
        if (added) {
            struct shards_group *group = new_group(g, record);
            *number = g->out->count - 1;
            if (!group || !name_group(g, group, record, name, key))
                return false;
            group->parent = parent;
        }
        return add_part(g, &g->out->list[*number], i, rank);
    }
}

bool shards_group(struct shards_groups *out, struct arena *arena,
                  const struct plumb_record *const *records, size_t count,
                  const struct shards_mesh *mesh, const struct shards_numbers *other)
{
    *out = (struct shards_groups){.stages = 1, .experts = 1};
    struct grouping g = {.out = out, .arena = arena, .records = records, .count = count};
    bool ok = numbering_ranks(arena, records, count, &out->ranks, &out->rank_count) &&
              numbering_init(&g.numbering, arena, records, count, out->ranks, out->rank_count, mesh,
                             other) &&
              note_numbers(&g);
    out->stages = g.numbering.kind[NUMBER_LAYERS].places;
    out->experts = g.numbering.kind[NUMBER_EXPERTS].places;
    for (size_t i = 0; ok && i < count; i++)
        ok = add_record(&g, i);
    map_free(&g.groups);
    map_free(&g.turns);
    map_free(&g.calls);
    map_free(&g.owners);
    map_free(&g.free);
    return ok;
}

static const char reduced[] = "Module.reduced.";

static bool has_reduced(const struct shards_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        if (strncmp(groups->list[i].name, reduced, sizeof reduced - 1) == 0)
            return true;
    return false;
}

bool shards_group_reduced(struct shards_groups *groups, const struct shards_groups *of,
                          struct arena *arena)
{
    struct map names = {0};
    if (has_reduced(groups) || !has_reduced(of))
        return true;
    struct shards_group *list = arena_array(arena, groups->count + of->count, sizeof *list);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < groups->count; i++) {
        const char *key =
            arena_printf(arena, "%" PRId64 "|%s", groups->list[i].step, groups->list[i].name);
        uint64_t *number = key ? map_put(&names, key, strlen(key), NULL) : NULL;
        ok = number != NULL;
        list[i] = groups->list[i];
        if (ok)
            *number = i + 1;
    }
    size_t count = groups->count;
    for (size_t i = 0; ok && i < of->count; i++) {
        const struct shards_group *group = &of->list[i];
        if (strncmp(group->name, reduced, sizeof reduced - 1) != 0)
            continue;
        const char *key = arena_printf(arena, "%" PRId64 "|Module.%s", group->step,
                                       group->name + sizeof reduced - 1);
        const uint64_t *number = key ? map_get(&names, key, strlen(key)) : NULL;
        ok = key != NULL;
        if (number) {
            list[count] = list[*number - 1];
            list[count++].name = group->name;
        }
    }
    map_free(&names);
    if (ok) {
        groups->list = list;
        groups->count = count;
    }
    return ok;
}
