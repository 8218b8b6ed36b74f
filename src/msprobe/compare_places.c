/* Which pairs of files two paths stand for. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "dump/dump.h"
#include "plumb/general.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct finder {
    struct arena arena;
    struct plumb_general_place *places;
    size_t count, capacity;
};

static enum plumb_code add(struct finder *finder, const struct dump_place *target,
                           const struct dump_place *golden)
{
    struct arena *arena = &finder->arena;
    if (finder->count == finder->capacity) {
        size_t more = finder->capacity ? finder->capacity * 2 : 16;
        struct plumb_general_place *places = arena_array(arena, more, sizeof *places);
        if (!places)
            return PLUMB_E_NOMEM;
        if (finder->count)
            memcpy(places, finder->places, finder->count * sizeof *places);
        finder->places = places;
        finder->capacity = more;
    }
    const char *slash = strrchr(target->json, '/');
    struct plumb_general_place place = {
        .target = arena_copy(arena, target->json, strlen(target->json)),
        .golden = arena_copy(arena, golden->json, strlen(golden->json)),
        .rank = arena_copy(arena, target->rank, strlen(target->rank)),
        .debug = strcmp(slash ? slash + 1 : target->json, "debug.json") == 0,
    };
    if (!place.target || !place.golden || !place.rank)
        return PLUMB_E_NOMEM;
    finder->places[finder->count++] = place;
    return PLUMB_OK;
}

/* The ranks of two steps, or two single files. */
static enum plumb_code find_step(struct finder *finder, const char *target, const char *golden,
                                 struct plumb_error *err)
{
    struct dump_places t = {0}, g = {0};
    enum plumb_code code = dump_find(&t, target, err);
    if (!code)
        code = dump_find(&g, golden, err);
    if (!code && t.count != g.count)
        code = plumb_fail(err, PLUMB_E_ARG,
                          "%s has %zu ranks and %s has %zu: they cannot be paired in order", target,
                          t.count, golden, g.count);
    for (size_t i = 0; i < t.count && !code; i++)
        if (add(finder, &t.places[i], &g.places[i]))
            code = plumb_no_memory(err);
    dump_places_free(&g);
    dump_places_free(&t);
    return code;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Every step that both folders have, in the order of their names, digits by value. */
static enum plumb_code find_steps(struct finder *finder, const char *target, const char *golden,
                                  struct plumb_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(target, &entries, is_shown, versionsort);
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < count; i++) {
        const char *t = arena_printf(&finder->arena, "%s/%s", target, entries[i]->d_name);
        const char *g = arena_printf(&finder->arena, "%s/%s", golden, entries[i]->d_name);
        if (!code && is_folder(t) && is_folder(g))
            code = find_step(finder, t, g, err);
        free(entries[i]);
    }
    free(entries);
    return code;
}

enum plumb_code plumb_general_find(struct plumb_general_places *out, const char *target,
                                   const char *golden, struct plumb_error *err)
{
    static const char *const modes[] = {"graph", "pynative"};
    *out = (struct plumb_general_places){0};
    struct finder *finder = calloc(1, sizeof *finder);
    if (!finder)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    bool nested = false;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !code; i++) {
        const char *t = arena_printf(&finder->arena, "%s/%s", target, modes[i]);
        const char *g = arena_printf(&finder->arena, "%s/%s", golden, modes[i]);
        if (!t || !g)
            code = plumb_no_memory(err);
        else if (is_folder(t) && is_folder(g)) {
            nested = true;
            code = find_steps(finder, t, g, err);
        }
    }
    if (!code && !nested)
        code = find_step(finder, target, golden, err);
    else if (!code && !finder->count)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "%s and %s have no step in common", target,
                          golden);
    out->places = finder->places;
    out->count = finder->count;
    out->memory = finder;
    if (code)
        plumb_general_places_free(out);
    return code;
}

void plumb_general_places_free(struct plumb_general_places *places)
{
    struct finder *finder = places->memory;
    if (finder)
        arena_free(&finder->arena);
    free(finder);
    *places = (struct plumb_general_places){0};
}
