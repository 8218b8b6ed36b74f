/* Reading modules.json: found once, parsed one call at a time. */
#include "dump/settings.h"

#include "base/map.h"
#include "base/mapped.h"
#include "dump/call_parse.h"

#include <stdlib.h>
#include <string.h>

/* Where the value of a call lies, in the map's order of coming. */
struct entry {
    uint64_t start, size;
};

struct settings {
    struct plumb_file map; /* all zero when the bytes are somebody else's */
    const uint8_t *bytes;
    size_t size;
    struct arena arena; /* names */
    struct map index;   /* name to number of the entry */
    struct entry *entries;
    size_t count, capacity;
};

static enum plumb_code add_entry(struct settings *settings, struct json *json,
                                 struct plumb_error *err)
{
    size_t length;
    const char *name = json_copy(json, &settings->arena, &length);
    if (!name)
        return json->error ? json_fail(json, 0, err) : plumb_no_memory(err);
    if (settings->count == settings->capacity) {
        const size_t capacity = settings->capacity ? 2 * settings->capacity : 64;
        struct entry *entries = realloc(settings->entries, capacity * sizeof *entries);
        if (!entries)
            return plumb_no_memory(err);
        settings->entries = entries;
        settings->capacity = capacity;
    }
    uint64_t *place = map_put(&settings->index, name, length, NULL);
    if (!place)
        return plumb_no_memory(err);
    const enum json_event event = json_next(json);
    const uint64_t start = json->start;
    if (!json_skip(json, event))
        return json_fail(json, 0, err);
    *place = settings->count;
    settings->entries[settings->count++] =
        (struct entry){.start = start, .size = (uint64_t)(json->next - json->begin) - start};
    return PLUMB_OK;
}

static enum plumb_code find_entries(struct settings *settings, struct plumb_error *err)
{
    struct json json;
    json_init(&json, settings->bytes, settings->size);
    enum json_event event = json_next(&json);
    if (event == JSON_ERROR)
        return json_fail(&json, 0, err);
    if (event != JSON_OBJECT)
        return plumb_fail(err, PLUMB_E_FORMAT, "it holds no JSON object");
    enum plumb_code code = PLUMB_OK;
    while (!code && (event = json_next(&json)) == JSON_KEY)
        code = add_entry(settings, &json, err);
    if (!code && event == JSON_OBJECT_END)
        event = json_next(&json);
    return code || event == JSON_END ? code : json_fail(&json, 0, err);
}

static enum plumb_code finish(struct settings *settings, struct settings **out,
                              struct plumb_error *err)
{
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &settings->map);
    enum plumb_code code = find_entries(settings, err);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    if (code)
        settings_close(settings);
    else
        *out = settings;
    return code;
}

enum plumb_code settings_parse(const void *bytes, size_t size, struct settings **out,
                               struct plumb_error *err)
{
    *out = NULL;
    struct settings *settings = calloc(1, sizeof *settings);
    if (!settings)
        return plumb_no_memory(err);
    settings->bytes = bytes;
    settings->size = size;
    return finish(settings, out, err);
}

enum plumb_code settings_open(const char *path, struct settings **out, struct plumb_error *err)
{
    *out = NULL;
    struct settings *settings = calloc(1, sizeof *settings);
    if (!settings)
        return plumb_no_memory(err);
    enum plumb_code code = plumb_file_map(&settings->map, path, 0, UINT64_MAX, err);
    if (code) {
        settings_close(settings);
        return code;
    }
    settings->bytes = settings->map.data;
    settings->size = (size_t)settings->map.size;
    code = finish(settings, out, err);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

void settings_close(struct settings *settings)
{
    if (!settings)
        return;
    plumb_file_unmap(&settings->map);
    map_free(&settings->index);
    arena_free(&settings->arena);
    free(settings->entries);
    free(settings);
}

/* ---- One call -------------------------------------------------------------------------------- */

static enum plumb_code read_setting(struct case_parser *p, struct setting_list *out)
{
    const char *name;
    enum plumb_code code = case_count_item(p);
    if (!code)
        code = case_text(p, &name);
    if (code)
        return code;
    struct case_arg value;
    code = case_plain(p, json_next(&p->json), &value);
    if (!code && strcmp(name, "class") == 0 && value.value.kind == PLUMB_ARG_TEXT) {
        out->class = value.value.text;
        return PLUMB_OK;
    }
    if (code)
        return code;
    if (out->count == CASE_MAX_KWARGS)
        return case_fail(p, "more than %d settings", CASE_MAX_KWARGS);
    out->list = case_grow(p, out->list, out->count, sizeof *out->list);
    if (!out->list)
        return case_no_memory(p);
    out->list[out->count++] = (struct case_kwarg){.name = name, .value = value};
    return PLUMB_OK;
}

static enum plumb_code read_settings(struct case_parser *p, struct setting_list *out)
{
    enum json_event event = json_next(&p->json);
    if (event != JSON_OBJECT)
        return case_fail(p, "the settings of a module must be an object");
    enum plumb_code code = PLUMB_OK;
    while (!code && (event = json_next(&p->json)) == JSON_KEY)
        code = read_setting(p, out);
    return code || event == JSON_OBJECT_END ? code : case_damaged(p);
}

enum plumb_code settings_of(const struct settings *settings, const char *call, struct arena *arena,
                            struct setting_list *out, bool *found, struct plumb_error *err)
{
    *out = (struct setting_list){0};
    const uint64_t *place = settings ? map_get(&settings->index, call, strlen(call)) : NULL;
    *found = place != NULL;
    if (!place)
        return PLUMB_OK;
    const struct entry *entry = &settings->entries[*place];
    struct case_parser p = {.base = entry->start, .arena = arena, .err = err};
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &settings->map);
    json_init(&p.json, settings->bytes + entry->start, (size_t)entry->size);
    enum plumb_code code = read_settings(&p, out);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    return code;
}

const struct case_arg *settings_get(const struct setting_list *list, const char *name)
{
    for (size_t k = list->count; k--;) /* of those with the same name the last counts */
        if (strcmp(list->list[k].name, name) == 0)
            return &list->list[k].value;
    return NULL;
}
