/* construct.json: which module call each API and each module call was made in. */
#define _GNU_SOURCE
#include "task/ranks/analyze.h"

#include "base/json.h"
#include "base/map.h"
#include "base/mapped.h"
#include "plumb/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANCESTORS = 1000 };

/* "name": "parent", null, or ["parent", micro step]. */
static bool read_parent(struct json *json, struct map *parents, struct arena *arena)
{
    size_t length = 0, ignored;
    char *name = json_copy(json, arena, &length);
    enum json_event event = json_next(json);
    bool list = event == JSON_ARRAY;
    if (list)
        event = json_next(json);
    const char *parent = event == JSON_STRING ? json_copy(json, arena, &ignored) : NULL;
    uint64_t *place = name && parent ? map_put(parents, name, length, NULL) : NULL;
    if (place)
        *place = (uint64_t)(uintptr_t)parent;
    while (list && event != JSON_ARRAY_END) {
        if (!json_skip(json, event))
            return false;
        event = json_next(json);
    }
    return event > JSON_END && (list || json_skip(json, event));
}

static bool read_parents(const char *path, struct map *parents, struct arena *arena)
{
    struct mapped in;
    struct json json;
    if (mapped_open(&in, path, NULL))
        return false;
    json_init(&json, in.file.data, in.file.size);
    bool good = json_next(&json) == JSON_OBJECT;
    enum json_event event = JSON_OBJECT_END;
    while (good && (event = json_next(&json)) == JSON_KEY)
        good = read_parent(&json, parents, arena);
    good &= event == JSON_OBJECT_END;
    return !mapped_close(&in, PLUMB_OK, NULL) && good;
}

bool analyze_put_ancestors(struct pretty *out, const char *folder, const char *name,
                           struct arena *arena)
{
    struct map parents = {0};
    const char *chain[MAX_ANCESTORS];
    size_t count = 0;
    const char *path = arena_printf(arena, "%s/construct.json", folder);
    bool good = path && read_parents(path, &parents, arena);
    /* A circle of parents ends where it closes. */
    for (const char *at = name; at && *at && count < MAX_ANCESTORS;) {
        chain[count++] = at;
        const uint64_t *place = map_get(&parents, at, strlen(at));
        at = place ? (const char *)(uintptr_t)*place : NULL;
        for (size_t i = 0; at && i < count; i++)
            if (strcmp(chain[i], at) == 0)
                at = NULL;
    }
    pretty_open(out, '[');
    while (count) {
        pretty_item(out);
        pretty_string(out, chain[--count]);
    }
    pretty_close(out, ']');
    map_free(&parents);
    return good;
}
