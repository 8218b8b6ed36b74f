/* Mapping files: names of cells or modules, and names of rows. */
#define _GNU_SOURCE
#include "base/names.h"
#include "pair/api.h"
#include "pair/parts.h"

#include <string.h>

/* text with its first `length` bytes from `at` on replaced. */
static const char *replace(struct arena *arena, const char *text, const char *at, size_t length,
                           const char *by)
{
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, by, at + length);
}

/* The module path and class in "Module.layer.fc.Dense.forward.0.input.0", renamed: as a whole, or
 * else every piece that the file names. */
static const char *rename_cell(struct arena *arena, const struct names *map, const char *key)
{
    static const char *const words[] = {".forward.", ".backward.", ".parameters_grad."};
    const char *end = NULL, *dot = strchr(key, '.');
    for (size_t i = 0; i < sizeof words / sizeof *words && !end; i++)
        end = strstr(key, words[i]);
    if (!end || !dot || dot >= end)
        return key;
    const char *path = arena_copy(arena, dot + 1, (size_t)(end - dot - 1));
    if (!path)
        return NULL;
    const char *whole = names_find(map, path);
    if (whole) {
        path = whole;
    } else {
        for (size_t i = 0; path && i < map->count; i++) {
            const char *found = *map->from[i] ? strstr(path, map->from[i]) : NULL;
            if (found)
                path = replace(arena, path, found, strlen(map->from[i]), map->to[i]);
        }
    }
    if (!path)
        return NULL;
    bool cell = strncmp(key, "Cell.", 5) == 0;
    return arena_printf(arena, "%.*s.%s%s", cell ? 6 : (int)(dot - key), cell ? "Module" : key,
                        path, end);
}

/* The keys of the target, to be changed; NULL when out of memory. */
static const char **target_keys(struct matcher *matcher)
{
    struct match_side *side = &matcher->side[TARGET];
    if (side->keys)
        return side->keys;
    side->keys = arena_array(&matcher->arena, side->count, sizeof *side->keys);
    for (size_t i = 0; side->keys && i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        side->keys[i] = record->key ? record->key : record->name;
    }
    return side->keys;
}

enum plumb_code match_cells(struct matcher *matcher, const char *file, struct plumb_error *err)
{
    struct names map = {0};
    enum plumb_code code = *file ? names_read(&map, file, err) : PLUMB_OK;
    if (code)
        return code;
    const char **keys = target_keys(matcher);
    bool done = keys != NULL;
    for (size_t i = 0; done && i < matcher->side[TARGET].count; i++)
        done = (keys[i] = rename_cell(&matcher->arena, &map, keys[i]));
    names_free(&map);
    return done ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code match_apis(struct matcher *matcher, const char *file, struct plumb_error *err)
{
    struct api_rules rules;
    enum plumb_code code = api_read(&rules, file, err);
    if (code)
        return code;
    const char **keys = target_keys(matcher);
    bool done = keys != NULL;
    for (size_t i = 0; done && i < matcher->side[TARGET].count; i++)
        done = (keys[i] = api_rename(&matcher->arena, &rules, keys[i]));
    api_free(&rules);
    return done ? PLUMB_OK : plumb_no_memory(err);
}

struct data_map {
    struct names names;
    bool by_key; /* rows are known by what matching compares; else by their names */
};

static const char *mapped_name(const struct matcher *matcher, int which, size_t i,
                               const void *context)
{
    const struct data_map *map = context;
    const struct plumb_record *record = matcher->side[which].records[i];
    const char *name = map->by_key && record->key ? record->key : record->name;
    return which == TARGET ? names_find(&map->names, name) : name;
}

enum plumb_code match_data_map(struct matcher *matcher, const char *file, struct plumb_error *err)
{
    struct data_map map = {.by_key = false};
    enum plumb_code code = names_read(&map.names, file, err);
    if (code)
        return code;
    bool done = match_by_names(matcher, mapped_name, &map, PLUMB_BY_MAP);
    map.by_key = true;
    done = done && match_by_names(matcher, mapped_name, &map, PLUMB_BY_MAP);
    names_free(&map.names);
    return done ? PLUMB_OK : plumb_no_memory(err);
}
