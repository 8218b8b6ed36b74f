/* Records of dumps by the layers that they belong to. */
#define _GNU_SOURCE
#include "base/names.h"
#include "pair/layer.h"
#include "pair/parts.h"

#include <string.h>

struct rows {
    struct layer_calls calls;
    size_t *first; /* by call: its first record */
    size_t *call;  /* by record: its call, or LAYER_NONE */
};

static const char *key_of(const struct plumb_record *record)
{
    return record->key ? record->key : record->name;
}

static bool list_calls(struct rows *rows, struct matcher *matcher, int which)
{
    const struct match_side *side = &matcher->side[which];
    struct arena *arena = &matcher->arena;
    rows->calls.calls = arena_array(arena, side->count, sizeof *rows->calls.calls);
    rows->first = arena_array(arena, side->count, sizeof *rows->first);
    rows->call = arena_array(arena, side->count, sizeof *rows->call);
    if (!rows->calls.calls || !rows->first || !rows->call)
        return false;
    const char *api = NULL;
    for (size_t i = 0; i < side->count; i++) {
        const struct plumb_recorded *recorded = side->records[i]->recorded;
        rows->call[i] = LAYER_NONE;
        if (!recorded || !recorded->api)
            continue;
        if (recorded->api != api) {
            const char *place = match_place(matcher, side->records[i]);
            if (!place)
                return false;
            api = recorded->api;
            rows->first[rows->calls.count] = i;
            rows->calls.calls[rows->calls.count++] =
                (struct layer_call){.api = api,
                                    .parent = plumb_recorded_parent(recorded),
                                    .stack = plumb_recorded_stack(recorded),
                                    .place = place};
        }
        rows->call[i] = rows->calls.count - 1;
    }
    return true;
}

/* Golden records by key and place. */
static bool index_rows(struct map *index, struct matcher *matcher, const struct rows *rows)
{
    const struct match_side *side = &matcher->side[GOLDEN];
    for (size_t i = 0; i < side->count; i++) {
        if (rows->call[i] == LAYER_NONE)
            continue;
        const char *key = arena_printf(&matcher->arena, "%s%s", key_of(side->records[i]),
                                       rows->calls.calls[rows->call[i]].place);
        uint64_t *place = key ? map_put(index, key, strlen(key), NULL) : NULL;
        if (!place)
            return false;
        *place = i;
    }
    return true;
}

/* The golden record of a call that has the same suffix as one of the target, or LAYER_NONE. */
static bool find_partner(size_t *partner, struct matcher *matcher, const struct map *index,
                         const char *suffix, const struct rows *golden, size_t call)
{
    const struct layer_call *to = &golden->calls.calls[call];
    const char *key = key_of(matcher->side[GOLDEN].records[golden->first[call]]);
    const char *end = layer_suffix(to->api, key);
    *partner = LAYER_NONE;
    if (!end || !suffix)
        return true;
    key = arena_printf(&matcher->arena, "%.*s%s%s", (int)(end - key), key, suffix, to->place);
    const uint64_t *place = key ? map_get(index, key, strlen(key)) : NULL;
    if (place)
        *partner = *place;
    return key != NULL;
}

static bool pair_rows(struct matcher *matcher, const struct layer_rules *rules,
                      struct names *mapping)
{
    struct rows target = {0}, golden = {0};
    struct map index = {0};
    size_t *calls = arena_array(&matcher->arena, matcher->side[TARGET].count, sizeof *calls);
    bool done = calls && list_calls(&target, matcher, TARGET) &&
                list_calls(&golden, matcher, GOLDEN) && index_rows(&index, matcher, &golden) &&
                layer_pair(calls, &target.calls, &golden.calls, rules);
    for (size_t i = 0; done && i < matcher->side[TARGET].count; i++) {
        if (target.call[i] == LAYER_NONE)
            continue;
        const struct plumb_record *record = matcher->side[TARGET].records[i];
        const char *suffix = layer_suffix(record->recorded->api, key_of(record));
        size_t partner = LAYER_NONE;
        if (calls[target.call[i]] != LAYER_NONE)
            done = find_partner(&partner, matcher, &index, suffix, &golden, calls[target.call[i]]);
        const char *to = "N/A";
        if (partner != LAYER_NONE) {
            to = matcher->side[GOLDEN].records[partner]->name;
            if (matcher->side[TARGET].partner[i] == PLUMB_NO_RECORD &&
                matcher->side[GOLDEN].partner[partner] == PLUMB_NO_RECORD)
                match_pair(matcher, i, partner, PLUMB_BY_MAP);
        }
        if (done && !names_find(mapping, record->name))
            done = names_add(mapping, record->name, to);
    }
    map_free(&index);
    return done;
}

enum plumb_code match_layers(struct matcher *matcher, const char *file, struct plumb_error *err)
{
    struct layer_rules rules;
    struct names mapping = {0};
    enum plumb_code code = layer_read(&rules, file, err);
    if (code)
        return code;
    if (pair_rows(matcher, &rules, &mapping))
        matcher->mapping = names_text(&mapping);
    names_free(&mapping);
    layer_free(&rules);
    return matcher->mapping ? PLUMB_OK : plumb_no_memory(err);
}
