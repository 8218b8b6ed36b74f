/* Records without a partner whose work the other run did in one piece: what is inside a module that
 * the other run recorded as a whole, such as a compiled one. */
#include "base/map.h"
#include "pair/parts.h"

#include <string.h>

enum { DEEPEST = 256 }; /* parents may lead in a circle */

struct known {
    const char *parent;
    size_t paired; /* 1 + a record of it that has a partner; 0: none has */
    bool holds;    /* calls were made in it */
};

struct index {
    struct map map; /* call, step and rank -> 1 + its place in list */
    struct known *list;
    size_t count;
};

static struct known *known_call(struct matcher *matcher, struct index *index, const char *call,
                                const struct plumb_record *record)
{
    const char *place = match_place(matcher, record);
    const char *key = place && *place ? arena_printf(&matcher->arena, "%s%s", call, place) : call;
    uint64_t *number = place ? map_put(&index->map, key, strlen(key), NULL) : NULL;
    if (!number)
        return NULL;
    if (!*number) {
        *number = ++index->count;
        index->list[*number - 1] = (struct known){0};
    }
    return &index->list[*number - 1];
}

static bool list_known(struct matcher *matcher, int which, struct index *index)
{
    const struct match_side *side = &matcher->side[which];
    index->list = arena_array(&matcher->arena, 2 * side->count + 1, sizeof *index->list);
    for (size_t i = 0; index->list && i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        const struct plumb_recorded *recorded = record->recorded;
        if (!recorded || !recorded->api)
            continue;
        struct known *call = known_call(matcher, index, recorded->api, record);
        if (!call)
            return false;
        const char *parent = plumb_recorded_parent(recorded);
        call->parent = parent;
        if (side->partner[i] != PLUMB_NO_RECORD)
            call->paired = i + 1;
        struct known *around = parent ? known_call(matcher, index, parent, record) : NULL;
        if (parent && !around)
            return false;
        if (around)
            around->holds = true;
    }
    return index->list != NULL;
}

/* Is it inside a call that has a partner with nothing in it? */
static bool is_inside(struct matcher *matcher, int which, struct index sides[2], size_t i)
{
    const struct match_side *side = &matcher->side[which], *other = &matcher->side[!which];
    const struct plumb_record *record = side->records[i];
    const char *parent = plumb_recorded_parent(record->recorded);
    for (int depth = 0; parent && depth < DEEPEST; depth++) {
        const struct known *call = known_call(matcher, &sides[which], parent, record);
        if (!call)
            return false;
        if (call->paired) {
            const struct plumb_record *whole = other->records[side->partner[call->paired - 1]];
            const struct known *there =
                whole->recorded && whole->recorded->api
                    ? known_call(matcher, &sides[!which], whole->recorded->api, whole)
                    : NULL;
            if (there && !there->holds)
                return true;
        }
        parent = call->parent;
    }
    return false;
}

/* Most often all have partners, and there is nothing to explain. */
static bool any_alone(const struct match_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->partner[i] == PLUMB_NO_RECORD && !side->covered[i])
            return true;
    return false;
}

bool match_covered(struct matcher *matcher)
{
    if (!any_alone(&matcher->side[TARGET]) && !any_alone(&matcher->side[GOLDEN]))
        return true;
    struct index sides[2] = {{.count = 0}, {.count = 0}};
    bool done =
        list_known(matcher, TARGET, &sides[TARGET]) && list_known(matcher, GOLDEN, &sides[GOLDEN]);
    for (int which = TARGET; which <= GOLDEN && done; which++) {
        struct match_side *side = &matcher->side[which];
        for (size_t i = 0; i < side->count; i++)
            if (side->partner[i] == PLUMB_NO_RECORD && !side->covered[i])
                side->covered[i] = is_inside(matcher, which, sides, i);
    }
    map_free(&sides[TARGET].map);
    map_free(&sides[GOLDEN].map);
    return done;
}
