/* Mapping files of the origin: names of cells or modules, and names of rows. */
#define _GNU_SOURCE
#include "compare/general.h"
#include "match/match.h"

#include <string.h>

/* text with its first `length` bytes from `at` on replaced. */
static const char *replace(struct arena *arena, const char *text, const char *at, size_t length,
                           const char *by)
{
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, by, at + length);
}

/* The module path and class in "Module.layer.fc.Dense.forward.0.input.0", renamed: as a whole, or
 * else every piece that the file names. */
static const char *rename_cell(struct arena *arena, const struct general_map *map, const char *key)
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
    const uint64_t *whole = map_get(&map->index, path, strlen(path));
    if (whole) {
        path = map->to[*whole];
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

/* The call in "Mint.add.3.forward.input.0", renamed: as the file says, or by what the two frameworks
 * call the same set of functions. */
static const char *rename_api(struct arena *arena, const struct general_map *map, const char *key)
{
    static const char *const prefixes[][2] = {{"MintFunctional.", "Functional."},
                                              {"MintDistributed.", "Distributed."},
                                              {"Mint.", "Torch."},
                                              {"StubTensor.", "Tensor."}};
    const char *dot = strchr(key, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
    if (!end)
        return key;
    const char *api = arena_copy(arena, key, (size_t)(end - key));
    if (!api)
        return NULL;
    const uint64_t *known = map_get(&map->index, api, strlen(api));
    if (known)
        return arena_printf(arena, "%s%s", map->to[*known], end);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(key, prefixes[i][0], strlen(prefixes[i][0])) == 0)
            return arena_printf(arena, "%s%s", prefixes[i][1], key + strlen(prefixes[i][0]));
    return key;
}

enum plumb_code match_rename(struct matcher *matcher, enum match_rename what, const char *file,
                             struct plumb_error *err)
{
    struct match_side *side = &matcher->side[TARGET];
    struct general_map map = {0};
    enum plumb_code code = *file ? general_map_read(&map, file, err) : PLUMB_OK;
    if (code)
        return code;
    bool first = !side->keys;
    if (first)
        side->keys = arena_array(&matcher->arena, side->count, sizeof *side->keys);
    bool done = side->keys != NULL;
    for (size_t i = 0; done && i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        const char *key = record->key ? record->key : record->name;
        key = first ? key : side->keys[i];
        side->keys[i] = what == MATCH_CELLS ? rename_cell(&matcher->arena, &map, key)
                                            : rename_api(&matcher->arena, &map, key);
        done = side->keys[i] != NULL;
    }
    general_map_free(&map);
    return done ? PLUMB_OK : plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
}

/* Pairs by the file; golden rows are known by their names (keys: 0) or what matching compares. */
static bool pair_mapped(struct matcher *matcher, const struct general_map *map, bool by_key)
{
    struct match_key *keys[2];
    for (int which = TARGET; which <= GOLDEN; which++) {
        const struct match_side *side = &matcher->side[which];
        keys[which] = arena_array(&matcher->arena, side->count, sizeof *keys[which]);
        if (!keys[which])
            return false;
        for (size_t i = 0; i < side->count; i++) {
            const struct plumb_record *record = side->records[i];
            const char *name = by_key && record->key ? record->key : record->name;
            if (which == TARGET) {
                const uint64_t *to = map_get(&map->index, name, strlen(name));
                if (!to)
                    continue;
                name = map->to[*to];
            }
            const char *place = match_place(matcher, record);
            const char *key = place ? arena_printf(&matcher->arena, "%s%s", name, place) : NULL;
            if (!key)
                return false;
            keys[which][i] = (struct match_key){key, strlen(key)};
        }
    }
    return match_by_keys(matcher, keys[TARGET], keys[GOLDEN], MATCH_IN_ORDER, PLUMB_BY_MAP, NULL,
                         NULL);
}

enum plumb_code match_data_map(struct matcher *matcher, const char *file, struct plumb_error *err)
{
    struct general_map map;
    enum plumb_code code = general_map_read(&map, file, err);
    if (code)
        return code;
    bool done = pair_mapped(matcher, &map, false) && pair_mapped(matcher, &map, true);
    general_map_free(&map);
    return done ? PLUMB_OK : plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
}
