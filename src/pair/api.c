/* Reading a mapping of APIs, and renaming rows by it. */
#define _GNU_SOURCE
#include "pair/api.h"

#include "base/yaml.h"

#include <stdlib.h>
#include <string.h>

/* A later entry for the same API wins. */
static bool add(struct api_rules *rules, const char *from, const struct api_entry *entry)
{
    if (rules->count == rules->capacity) {
        size_t capacity = rules->capacity ? rules->capacity * 2 : 16;
        struct api_entry *entries = arena_array(&rules->arena, capacity, sizeof *entries);
        if (!entries)
            return false;
        if (rules->count)
            memcpy(entries, rules->entries, rules->count * sizeof *entries);
        rules->entries = entries;
        rules->capacity = capacity;
    }
    bool added;
    uint64_t *place = map_put(&rules->index, from, strlen(from), &added);
    if (!place)
        return false;
    if (added)
        *place = rules->count++;
    rules->entries[*place] = *entry;
    return true;
}

static const struct yml *field(const struct yml *map, const char *name)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], name) == 0)
            return &map->items[i];
    return NULL;
}

static enum plumb_code read_list(const unsigned **list, struct arena *arena,
                                 const struct yml *value, struct plumb_error *err)
{
    static const char wanted[] = "expected a list of positions, such as [0, 1]";
    if (value->kind != YML_LIST)
        return yml_fail(err, value, wanted);
    unsigned *numbers = arena_array(arena, value->count, sizeof *numbers);
    if (!numbers)
        return plumb_no_memory(err);
    for (size_t i = 0; i < value->count; i++) {
        const struct yml *item = &value->items[i];
        size_t digits = item->kind == YML_TEXT ? strspn(item->text, "0123456789") : 0;
        if (!digits || digits > 4 || item->text[digits])
            return yml_fail(err, item, wanted);
        numbers[i] = (unsigned)strtoul(item->text, NULL, 10);
    }
    *list = numbers;
    return PLUMB_OK;
}

static enum plumb_code read_positions(struct api_positions *positions, struct arena *arena,
                                      const struct yml *entry, const char *const names[2],
                                      struct plumb_error *err)
{
    const struct yml *from = field(entry, names[0]), *to = field(entry, names[1]);
    if (!from && !to)
        return PLUMB_OK;
    if (!from || !to)
        return yml_fail(err, from ? from : to, "positions are there for one of the APIs only");
    enum plumb_code code = read_list(&positions->from, arena, from, err);
    if (!code)
        code = read_list(&positions->to, arena, to, err);
    if (!code && from->count != to->count)
        code = yml_fail(err, to, "the two lists of positions differ in length");
    positions->count = from->count;
    positions->given = true;
    return code;
}

static enum plumb_code read_entry(struct api_rules *rules, const struct yml *entry,
                                  struct plumb_error *err)
{
    static const char *const arguments[2] = {"ms_args", "pt_args"};
    static const char *const outputs[2] = {"ms_outputs", "pt_outputs"};
    struct api_entry made = {0};
    const struct yml *from = entry->kind == YML_MAP ? field(entry, "ms_api") : NULL;
    const struct yml *to = entry->kind == YML_MAP ? field(entry, "pt_api") : NULL;
    if (!from || !to || from->kind != YML_TEXT || to->kind != YML_TEXT)
        return yml_fail(err, entry, "an entry needs ms_api: NAME and pt_api: NAME");
    made.to = to->text;
    enum plumb_code code = read_positions(&made.arguments, &rules->arena, entry, arguments, err);
    if (!code)
        code = read_positions(&made.outputs, &rules->arena, entry, outputs, err);
    if (!code && !add(rules, from->text, &made))
        code = plumb_no_memory(err);
    return code;
}

static enum plumb_code read_document(void *context, const struct yml *document,
                                     struct plumb_error *err)
{
    struct api_rules *rules = context;
    enum plumb_code code = PLUMB_OK;
    if (yml_is_null(document))
        return PLUMB_OK;
    if (document->kind == YML_MAP && field(document, "ms_api"))
        return read_entry(rules, document, err);
    if (document->kind == YML_TEXT)
        return yml_fail(err, document, "expected lines NAME: NAME, or a list of entries");
    for (size_t i = 0; i < document->count && !code; i++) {
        const struct yml *item = &document->items[i];
        if (document->kind == YML_LIST)
            code = read_entry(rules, item, err);
        else if (item->kind != YML_TEXT)
            code = yml_fail(err, item, "only lines of the form NAME: NAME are understood here");
        else if (!add(rules, document->keys[i], &(struct api_entry){.to = item->text}))
            code = plumb_no_memory(err);
    }
    return code;
}

enum plumb_code api_read(struct api_rules *rules, const char *file, struct plumb_error *err)
{
    *rules = (struct api_rules){0};
    if (!*file)
        return PLUMB_OK;
    enum plumb_code code = yml_each(&rules->arena, file, read_document, rules, err);
    if (code)
        api_free(rules);
    return code;
}

void api_free(struct api_rules *rules)
{
    map_free(&rules->index);
    arena_free(&rules->arena);
    *rules = (struct api_rules){0};
}

/* Where the name says ".input." or ".output.", with the position after it in *number. NULL: there
 * is no position. */
static const char *find_position(const char *rest, bool *output, unsigned *number, const char **end)
{
    const char *input = strstr(rest, ".input."), *at = strstr(rest, ".output.");
    if (input && (!at || input < at))
        at = input;
    if (!at)
        return NULL;
    *output = at != input;
    at += *output ? strlen(".output.") : strlen(".input.");
    size_t digits = strspn(at, "0123456789");
    if (!digits || digits > 4 || (at[digits] && at[digits] != '.'))
        return NULL;
    *number = (unsigned)strtoul(at, NULL, 10);
    *end = at + digits;
    return at;
}

static const char *by_entry(struct arena *arena, const struct api_entry *entry, const char *name,
                            const char *rest)
{
    bool output;
    unsigned number;
    const char *end, *at = find_position(rest, &output, &number, &end);
    if (at) {
        /* The gradients of outputs go into a backward call, those of arguments come out. */
        bool backward = memmem(rest, (size_t)(at - rest), ".backward.", 10) != NULL;
        const struct api_positions *positions =
            output != backward ? &entry->outputs : &entry->arguments;
        for (size_t i = 0; i < positions->count; i++)
            if (positions->from[i] == number)
                return arena_printf(arena, "%s%.*s%u%s", entry->to, (int)(at - rest), rest,
                                    positions->to[i], end);
        if (positions->given)
            return name;
    }
    return arena_printf(arena, "%s%s", entry->to, rest);
}

const char *api_rename(struct arena *arena, const struct api_rules *rules, const char *name)
{
    static const char *const prefixes[][2] = {{"MintFunctional.", "Functional."},
                                              {"MintDistributed.", "Distributed."},
                                              {"Mint.", "Torch."},
                                              {"StubTensor.", "Tensor."}};
    const char *dot = strchr(name, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
    if (!end)
        return name;
    const uint64_t *known = map_get(&rules->index, name, (size_t)(end - name));
    if (known)
        return by_entry(arena, &rules->entries[*known], name, end);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i][0], strlen(prefixes[i][0])) == 0)
            return arena_printf(arena, "%s%s", prefixes[i][1], name + strlen(prefixes[i][0]));
    return name;
}
