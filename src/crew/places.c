/* Where the files of a dump are on this host. */
#define _GNU_SOURCE
#include "crew/places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t without_slashes(const char *text, size_t length)
{
    while (length > 1 && text[length - 1] == '/')
        length--;
    return length;
}

static enum plumb_code add_rule(struct crew_places *places, const char *word, const char *host,
                                struct plumb_error *err)
{
    const char *colon = strchr(word, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    if (!colon || !equals || colon == word || equals == colon + 1 || !equals[1])
        return plumb_fail(err, PLUMB_E_ARG, "'%s' is no HOST:FROM=TO", word);
    const size_t length = (size_t)(colon - word);
    places->given++;
    if (!(length == 1 && *word == '*') &&
        !(strlen(host) == length && memcmp(host, word, length) == 0))
        return PLUMB_OK;
    struct place_rule *rules = realloc(places->rules, (places->count + 1) * sizeof *rules);
    if (!rules)
        return plumb_no_memory(err);
    places->rules = rules;
    const size_t from = without_slashes(colon + 1, (size_t)(equals - colon - 1));
    const size_t to = without_slashes(equals + 1, strlen(equals + 1));
    struct place_rule rule = {arena_copy(&places->arena, colon + 1, from),
                              arena_copy(&places->arena, equals + 1, to)};
    if (!rule.from || !rule.to)
        return plumb_no_memory(err);
    rules[places->count++] = rule;
    return PLUMB_OK;
}

static enum plumb_code add_file(struct crew_places *places, const char *path, const char *host,
                                struct plumb_error *err)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    enum plumb_code code = PLUMB_OK;
    if (!file)
        code = plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
    while (file && !code && getline(&line, &capacity, file) >= 0) {
        char *text = line + strspn(line, " \t");
        text[strcspn(text, "#\n")] = 0;
        text[strcspn(text, "\r")] = 0;
        for (size_t end = strlen(text); end && strchr(" \t", text[end - 1]);)
            text[--end] = 0;
        if (*text)
            code = add_rule(places, text, host, err);
    }
    plumb_error_in_file(code ? err : NULL, path);
    free(line);
    if (file)
        fclose(file);
    return code;
}

enum plumb_code crew_places_add(struct crew_places *places, const char *word, const char *host,
                                struct plumb_error *err)
{
    return strchr(word, '=') ? add_rule(places, word, host, err)
                             : add_file(places, word, host, err);
}

void crew_places_free(struct crew_places *places)
{
    free(places->rules);
    arena_free(&places->arena);
    *places = (struct crew_places){0};
}

/* What follows a folder in a path, with its slash; NULL: it is not in there. */
static const char *below(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0)
        return NULL;
    return !path[length] || path[length] == '/' ? path + length : NULL;
}

const char *crew_places_here(const struct crew_places *places, const char *path,
                             struct arena *arena)
{
    const struct place_rule *best = NULL;
    for (size_t i = 0; places && i < places->count; i++)
        if (below(path, places->rules[i].from) &&
            (!best || strlen(places->rules[i].from) > strlen(best->from)))
            best = &places->rules[i];
    return best ? arena_printf(arena, "%s%s", best->to, below(path, best->from)) : path;
}

void crew_places_name(const struct crew_places *places, struct plumb_error *err)
{
    for (size_t i = 0; places && i < places->count; i++) {
        const char *rest = below(err->file, places->rules[i].to);
        char text[sizeof err->file];
        if (!rest)
            continue;
        snprintf(text, sizeof text, "%s%.*s", places->rules[i].from, (int)sizeof text - 1, rest);
        memcpy(err->file, text, sizeof text);
        return;
    }
}
