/* Finding the dump.json of each rank below a path. */
#define _GNU_SOURCE
#include "dump/dump.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_RANK_DIGITS = 9, MAX_PLACES = 1 << 20, NAMED_STRAYS = 3 };

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The JSON file of a folder: dump.json, or what a debug capture writes. */
static const char *json_of(struct arena *arena, const char *folder)
{
    const char *dump = arena_printf(arena, "%s/dump.json", folder);
    const char *debug = arena_printf(arena, "%s/debug.json", folder);
    if (!dump || !debug)
        return NULL;
    return !is_file(dump) && is_file(debug) ? debug : dump;
}

static bool digits(const char *text)
{
    if (!*text || strlen(text) > MAX_RANK_DIGITS)
        return false;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            return false;
    return true;
}

static bool is_rank(const char *name)
{
    if (strncmp(name, "rank", 4) != 0)
        return false;
    const char *number = name + 4;
    return !*number || (digits(number) && (number[0] != '0' || !number[1]));
}

/* "rank" comes before "rank0". */
static int by_number(const void *a, const void *b)
{
    const char *left = ((const struct dump_place *)a)->rank + 4;
    const char *right = ((const struct dump_place *)b)->rank + 4;
    long l = *left ? strtol(left, NULL, 10) : -1, r = *right ? strtol(right, NULL, 10) : -1;
    return l < r ? -1 : l > r;
}

static enum plumb_code add_place(struct dump_places *places, size_t *capacity, const char *folder,
                                 const char *name, struct plumb_error *err)
{
    if (places->count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 16;
        struct dump_place *grown = arena_array(&places->arena, more, sizeof *grown);
        if (!grown)
            return plumb_no_memory(err);
        if (places->count)
            memcpy(grown, places->places, places->count * sizeof *grown);
        places->places = grown;
        *capacity = more;
    }
    const char *path = arena_printf(&places->arena, "%s/%s", folder, name);
    if (!path)
        return plumb_no_memory(err);
    struct dump_place *place = &places->places[places->count];
    place->json = json_of(&places->arena, path);
    place->rank = arena_copy(&places->arena, name, strlen(name));
    if (!place->json || !place->rank)
        return plumb_no_memory(err);
    places->count++;
    return PLUMB_OK;
}

/* What is no rank beside those that are: how many, and the first by name. */
struct strays {
    char names[NAMED_STRAYS][NAME_MAX + 1];
    size_t count;
};

/* Files, and whatever is called like a rank. What is hidden, and folders of other names, nobody
 * takes for one. */
static bool is_stray(const char *path, const char *name)
{
    return name[0] != '.' && (strncmp(name, "rank", 4) == 0 || is_file(path));
}

static void note_stray(struct strays *strays, const char *name)
{
    size_t at = strays->count < NAMED_STRAYS ? strays->count : NAMED_STRAYS;
    strays->count++;
    for (; at && strcmp(strays->names[at - 1], name) > 0; at--)
        if (at < NAMED_STRAYS)
            memcpy(strays->names[at], strays->names[at - 1], sizeof strays->names[at]);
    if (at < NAMED_STRAYS)
        memcpy(strays->names[at], name, strlen(name) + 1);
}

static bool tell_strays(struct dump_places *places, const struct strays *strays, const char *path)
{
    const char *text = arena_printf(&places->arena, "%s: no rank, and ignored: ", path);
    for (size_t i = 0; text && i < strays->count && i < NAMED_STRAYS; i++)
        text = arena_printf(&places->arena, "%s%s%s", text, i ? ", " : "", strays->names[i]);
    if (text && strays->count > NAMED_STRAYS)
        text = arena_printf(&places->arena, "%s and %zu more", text, strays->count - NAMED_STRAYS);
    places->strays = text;
    return text;
}

/* Rank folders below a step folder, else its only proc folder. */
static enum plumb_code find_ranks(struct dump_places *places, const char *path,
                                  struct plumb_error *err)
{
    DIR *dir = opendir(path);
    if (!dir)
        return plumb_fail(err, PLUMB_E_IO, "cannot list it: %s", strerror(errno));
    enum plumb_code code = PLUMB_OK;
    size_t capacity = 0, procs = 0;
    char proc[NAME_MAX + 1] = "";
    struct strays strays = {.count = 0};
    for (const struct dirent *entry; !code && (entry = readdir(dir));) {
        bool rank = is_rank(entry->d_name);
        bool is_proc = strncmp(entry->d_name, "proc", 4) == 0 && digits(entry->d_name + 4);
        char *sub = NULL;
        if (asprintf(&sub, "%s/%s", path, entry->d_name) < 0) {
            code = plumb_no_memory(err);
            break;
        }
        if ((rank || is_proc) && is_folder(sub)) {
            if (rank && places->count < MAX_PLACES)
                code = add_place(places, &capacity, path, entry->d_name, err);
            if (!rank && !procs++)
                memcpy(proc, entry->d_name, strlen(entry->d_name) + 1);
        } else if (is_stray(sub, entry->d_name)) {
            note_stray(&strays, entry->d_name);
        }
        free(sub);
    }
    closedir(dir);
    if (code)
        return code;
    if (places->count) {
        if (strays.count && !tell_strays(places, &strays, path))
            return plumb_no_memory(err);
        qsort(places->places, places->count, sizeof *places->places, by_number);
        return PLUMB_OK;
    }
    if (procs == 1)
        return add_place(places, &capacity, path, proc, err);
    return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                      procs ? "several proc folders, and no rank says which belong together"
                            : "no dump.json, and no rank or proc folder that could have one");
}

enum plumb_code dump_find(struct dump_places *places, const char *path, struct plumb_error *err)
{
    *places = (struct dump_places){0};
    enum plumb_code code = PLUMB_OK;
    size_t length = strlen(path);
    if (is_folder(path)) {
        const char *json = json_of(&places->arena, path);
        if (!json)
            code = plumb_no_memory(err);
        else if (is_file(json))
            path = json;
        else
            code = find_ranks(places, path, err);
    } else if (length < 5 || strcmp(path + length - 5, ".json") != 0 || !is_file(path)) {
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "not a dump.json, nor a folder with one");
    }
    if (!code && !places->count) {
        places->places = arena_alloc(&places->arena, sizeof *places->places);
        const char *copy = arena_copy(&places->arena, path, strlen(path));
        if (places->places && copy)
            places->places[places->count++] = (struct dump_place){.json = copy, .rank = ""};
        else
            code = plumb_no_memory(err);
    }
    if (code) {
        plumb_error_in_file(err, path);
        dump_places_free(places);
    }
    return code;
}

void dump_places_free(struct dump_places *places)
{
    arena_free(&places->arena);
    *places = (struct dump_places){0};
}
