/* Experts on some of the axes of ranks: which ranks have which of them, found by values.
 *
 * Four ranks with two of four experts each have them twice, as slices or replicas: ranks 0 and 1
 * the first two (an axis before that of experts), or ranks 0 and 2 (an axis behind it). */
#define _GNU_SOURCE
#include "base/map.h"
#include "task/compare/shards.h"

#include <stdio.h>
#include <string.h>

enum { LOOKED_AT = 8 }; /* tensors of experts that are tried */

/* Does a tensor that is put together as grouped agree with the other run's? */
static bool agrees(const struct shards_run *side, const struct shards_group *group,
                   const struct plumb_run *other, size_t record)
{
    struct arena arena = {0};
    struct shards_parts parts = {0};
    struct plumb_payload whole;
    struct plumb_file_guard guard;
    struct shards_found found = {.basis = SHARDS_UNKNOWN};
    bool good = !plumb_run_load(other, record, &whole, NULL);
    if (!good)
        return false;
    if (!shards_parts_load(&parts, side, group, &arena, NULL)) {
        shards_parts_enter(&parts);
        plumb_file_guard_enter(&guard, &whole.file);
        good = !shards_infer(&found, &arena, &whole.tensor, parts.parts, parts.count, NULL);
        const bool shrank = plumb_file_guard_leave(&guard);
        good = !shards_parts_leave(&parts) && !shrank && good;
    } else {
        good = false;
    }
    shards_parts_release(&parts);
    plumb_payload_release(&whole);
    arena_free(&arena);
    return good && found.basis == SHARDS_BY_VALUES && !found.missed;
}

/* How many tensors of later experts agree, of a few. */
static unsigned count_agreeing(const struct shards_run *side, const struct shards_groups *groups,
                               const struct plumb_run *other, const struct map *names,
                               int64_t first)
{
    unsigned looked = 0, agreeing = 0;
    for (size_t i = 0; i < groups->count && looked < LOOKED_AT; i++) {
        const struct shards_group *group = &groups->list[i];
        const uint64_t *record = shards_expert(group->name) >= first
                                     ? map_get(names, group->name, strlen(group->name))
                                     : NULL;
        if (!record)
            continue;
        looked++;
        agreeing += agrees(side, group, other, (size_t)*record);
    }
    return agreeing;
}

static bool note_names(struct map *names, const struct shards_run *other)
{
    for (size_t i = 0; i < other->count; i++) {
        const char *name = other->records[i]->name;
        uint64_t *place = shards_expert(name) < 0 ? NULL : map_put(names, name, strlen(name), NULL);
        if (place)
            *place = i;
        else if (shards_expert(name) >= 0)
            return false;
    }
    return true;
}

bool shards_try_experts(struct shards_mesh *mesh, const struct shards_work *work, int k,
                        const struct shards_numbers *other)
{
    const struct shards_run *side = &work->side[k], *against = &work->side[!k];
    struct arena arena = {0};
    struct map names = {0};
    struct shards_groups groups;
    unsigned places, best = 0;
    bool good = shards_expert_places(&arena, side->records, side->count, other, &places) &&
                places > 1 && note_names(&names, against) &&
                shards_group(&groups, &arena, side->records, side->count, NULL, other);
    if (good && groups.rank_count != places)
        for (int inner = 0; inner < 2; inner++) {
            struct shards_mesh tried = {.axes = 2};
            const unsigned rest = groups.rank_count / places;
            struct shards_groups as;
            snprintf(tried.axis[inner ? 0 : 1].name, SHARDS_WORD, "ep");
            snprintf(tried.axis[inner ? 1 : 0].name, SHARDS_WORD, "other");
            tried.axis[inner ? 0 : 1].size = places;
            tried.axis[inner ? 1 : 0].size = rest;
            if (!shards_group(&as, &arena, side->records, side->count, &tried, other))
                break;
            const unsigned agreeing =
                count_agreeing(side, &as, against->run, &names, other->experts / (int64_t)places);
            if (agreeing > best) {
                best = agreeing;
                *mesh = tried;
            }
        }
    map_free(&names);
    arena_free(&arena);
    return best > 0;
}
