/* Names of many ranks. */
#include "task/compare/rank_names.h"

#include <string.h>

bool rank_names_add(struct rank_names *names, const struct plumb_record *record)
{
    const size_t length = strlen(record->name);
    if (map_get(&names->near.known, record->name, length))
        return true;
    if (names->count == names->capacity) {
        const size_t more = names->capacity ? names->capacity * 2 : 64;
        struct near_record *list =
            arena_grow(&names->arena, names->list, names->count, more, sizeof *list);
        if (!list)
            return false;
        names->list = list;
        names->capacity = more;
    }
    const char *copy = arena_copy(&names->arena, record->name, length);
    if (!copy || !near_add(&names->near, copy, names->count))
        return false;
    names->list[names->count++] = (struct near_record){copy, record->step, record->rank};
    return true;
}

const struct near_record *rank_names_nearest(struct rank_names *names, const char *name)
{
    const size_t found = near_find(&names->near, name);
    return found == PLUMB_NO_RECORD ? NULL : &names->list[found];
}

void rank_names_free(struct rank_names *names)
{
    near_destroy(&names->near);
    arena_free(&names->arena);
    *names = (struct rank_names){0};
}
