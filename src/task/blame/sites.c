/* The calls of a run, in the order in which they were recorded. */
#include "task/blame/parts.h"

#include "pair/role.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *key_of(struct arena *arena, const char *call, size_t length, int64_t step,
                    int64_t rank)
{
    return arena_printf(arena, "%.*s/%" PRId64 "/%" PRId64, (int)length, call, step, rank);
}

struct site *sites_find(const struct sites *sites, const char *call, size_t length, int64_t step,
                        int64_t rank)
{
    struct arena arena = {0};
    const char *key = key_of(&arena, call, length, step, rank);
    const uint64_t *place = key ? map_get(&sites->index, key, strlen(key)) : NULL;
    struct site *site = place ? &sites->list[*place - 1] : NULL;
    arena_free(&arena);
    return site;
}

struct site *sites_get(struct sites *sites, const char *call, size_t length, int64_t step,
                       int64_t rank)
{
    struct site *site = sites_find(sites, call, length, step, rank);
    if (site)
        return site;
    if (sites->count == sites->capacity) {
        const size_t capacity = sites->capacity ? 2 * sites->capacity : 256;
        struct site *list = realloc(sites->list, capacity * sizeof *list);
        if (!list)
            return NULL;
        sites->list = list;
        sites->capacity = capacity;
    }
    const char *key = key_of(&sites->arena, call, length, step, rank);
    uint64_t *place = key ? map_put(&sites->index, key, strlen(key), NULL) : NULL;
    const char *name = place ? arena_copy(&sites->arena, call, length) : NULL;
    if (!name)
        return NULL;
    *place = sites->count + 1;
    site = &sites->list[sites->count++];
    *site = (struct site){.is = {.call = name,
                                 .result = "",
                                 .pattern = "",
                                 .arithmetic = "",
                                 .equals = "",
                                 .place = "",
                                 .step = step,
                                 .rank = rank,
                                 .word = PLUMB_WORD_NOT_JUDGED,
                                 .in = NAN,
                                 .out = NAN},
                          .between_in = NAN,
                          .between = NAN};
    return site;
}

/* The call that a record belongs to, and the length of its name; NULL: none. */
static const char *call_of(const struct plumb_record *record, size_t *length)
{
    static const char *const beside[] = {".forward_params.", ".forward_buffers."};
    if (record->recorded) {
        *length = strlen(record->recorded->api);
        return record->recorded->api;
    }
    for (size_t k = 0; k < 2; k++) {
        const char *at = strstr(record->name, beside[k]);
        if (at) {
            *length = (size_t)(at - record->name) + strlen(".forward");
            return record->name;
        }
    }
    return pair_role(record->name, length) == ROLE_NONE ? NULL : record->name;
}

struct site *sites_of(const struct sites *sites, const struct plumb_record *record)
{
    size_t length;
    const char *call = call_of(record, &length);
    return call ? sites_find(sites, call, length, record->step, record->rank) : NULL;
}

enum plumb_code sites_list(struct sites *sites, const struct plumb_run *run,
                           struct plumb_error *err)
{
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        const struct plumb_recorded *recorded = record->recorded;
        size_t length;
        const char *call = call_of(record, &length);
        if (!call)
            continue;
        struct site *site = sites_get(sites, call, length, record->step, record->rank);
        if (!site)
            return plumb_no_memory(err);
        if (recorded && !site->is.stack)
            site->is.stack = plumb_recorded_stack(recorded);
        if (recorded && !site->is.parent)
            site->is.parent = plumb_recorded_parent(recorded);
    }
    return PLUMB_OK;
}

void sites_free(struct sites *sites)
{
    free(sites->list);
    map_free(&sites->index);
    arena_free(&sites->arena);
    *sites = (struct sites){0};
}
