/* Which rows of the two trees belong together. */
#include "base/names.h"
#include "msprobe/compare.h"
#include "pair/api.h"

#include <stdlib.h>
#include <string.h>

static bool contains(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

static bool field_is(const char *field, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(field, word, length) == 0;
}

/* The field of the name that says which way it runs: one of the last two, or NULL. */
static const char *direction_of(const char *name, size_t *length)
{
    static const char *const words[] = {"forward", "backward", "parameters_grad"};
    const char *end = name + strlen(name);
    for (unsigned i = 0; i < 2 && end > name; i++) {
        const char *start = end;
        while (start > name && start[-1] != '.')
            start--;
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            if (field_is(start, (size_t)(end - start), words[k])) {
                *length = (size_t)(end - start);
                return start;
            }
        }
        end = start > name ? start - 1 : name;
    }
    return NULL;
}

/* Splits a backward API's name around its call number: NAME.NUMBER.backward, or, for modules,
 * NAME.backward.NUMBER. False for every other name. */
static bool split_backward(const char *name, size_t *number, size_t *number_end)
{
    size_t length;
    const char *field = direction_of(name, &length);
    if (!field || !field_is(field, length, "backward"))
        return false;
    const char *after = field + length;
    if (*after == '.') {
        *number = (size_t)(after + 1 - name);
        *number_end = strlen(name);
    } else {
        if (field - name < 2)
            return false;
        const char *start = field - 1;
        while (start > name && start[-1] != '.')
            start--;
        *number = (size_t)(start - name);
        *number_end = (size_t)(field - 1 - name);
    }
    if (*number == *number_end)
        return false;
    for (size_t i = *number; i < *number_end; i++)
        if (name[i] < '0' || name[i] > '9')
            return false;
    return true;
}

/* The name that an API's rows are matched by: backward calls count from 0 in the order they were
 * made, since recomputation makes their own numbers depend on the side. */
static const char *renumbered(struct arena *arena, struct map *calls, const char *name)
{
    size_t number, end;
    if (!split_backward(name, &number, &end))
        return name;
    const char *key = arena_printf(arena, "%.*s*%s", (int)number, name, name + end);
    uint64_t *count = key ? map_put(calls, key, strlen(key), NULL) : NULL;
    if (!count)
        return NULL;
    return arena_printf(arena, "%.*s%llu%s", (int)number, name, (unsigned long long)(*count)++,
                        name + end);
}

static enum plumb_code collect(struct general_side *side, const struct dump_tree *tree,
                               struct arena *arena)
{
    struct map calls = {0};
    enum plumb_code code = PLUMB_E_NOMEM;
    side->tree = tree;
    side->rows = arena_array(arena, tree->row_count, sizeof *side->rows);
    side->keys = arena_array(arena, tree->row_count, sizeof *side->keys);
    if (!side->rows || !side->keys)
        goto out;
    for (size_t i = 0; i < tree->api_count; i++) {
        const struct dump_api *api = &tree->apis[i];
        size_t length;
        if (!tree->debug && !direction_of(api->name, &length))
            continue;
        const char *name = renumbered(arena, &calls, api->name);
        if (!name)
            goto out;
        length = strlen(api->name);
        for (size_t k = api->first; k < api->first + api->count; k++) {
            const char *key = tree->rows[k].name;
            if (tree->rows[k].section == DUMP_BUFFERS)
                continue; /* msProbe knows none */
            if (name != api->name && strncmp(key, api->name, length) == 0 &&
                (key[length] == '.' || !key[length]))
                key = arena_printf(arena, "%s%s", name, key + length);
            if (!key)
                goto out;
            side->rows[side->count] = k;
            side->keys[side->count++] = key;
        }
    }
    code = PLUMB_OK;
out:
    map_free(&calls);
    return code;
}

/* text with the first occurrence of `from` replaced. */
static const char *replace_once(struct arena *arena, const char *text, const char *from,
                                const char *to)
{
    const char *at = *from ? strstr(text, from) : NULL;
    if (!at)
        return text;
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* The golden name that a target row should have by the cell mapping. */
static const char *cell_name(struct arena *arena, const struct names *map, const char *name)
{
    static const char *const marks[] = {".forward.", ".backward.", ".parameters_grad."};
    if (!contains(name, "forward") && !contains(name, "backward") &&
        !contains(name, "parameters_grad"))
        return "N/A";
    name = replace_once(arena, name, "Cell", "Module");
    const char *dot = name ? strchr(name, '.') : NULL, *mark = NULL;
    for (size_t i = 0; dot && !mark && i < sizeof marks / sizeof marks[0]; i++)
        mark = strstr(dot, marks[i]);
    if (!mark || mark <= dot)
        return name;

    const char *module = arena_copy(arena, dot + 1, (size_t)(mark - dot - 1));
    if (!module)
        return NULL;
    const char *whole = names_find(map, module);
    if (whole)
        module = whole;
    for (size_t i = 0; !whole && module && i < map->count; i++)
        module = replace_once(arena, module, map->from[i], map->to[i]);
    return module ? arena_printf(arena, "%.*s%s%s", (int)(dot + 1 - name), name, module, mark)
                  : NULL;
}

static enum plumb_code rename_apis(struct general_side *target,
                                   const struct plumb_general_options *options, struct arena *arena,
                                   struct plumb_error *err)
{
    struct api_rules rules;
    enum plumb_code code = options->api_map ? api_read(&rules, options->api_map, err) : PLUMB_OK;
    if (code || !options->api_map)
        return code;
    for (size_t i = 0; !code && i < target->count; i++) {
        target->keys[i] = api_rename(arena, &rules, target->keys[i]);
        if (!target->keys[i])
            code = plumb_no_memory(err);
    }
    api_free(&rules);
    return code;
}

/* Mappings look names up as the target wrote them, and give names as the golden side counts them.
 */
static enum plumb_code map_keys(struct general_side *target,
                                const struct plumb_general_options *options, struct arena *arena,
                                struct plumb_error *err)
{
    struct names map = {0};
    enum plumb_code code = PLUMB_OK;
    const char *path = options->data_map ? options->data_map : options->cell_map;
    if (!path)
        return rename_apis(target, options, arena, err);
    if (*path)
        code = names_read(&map, path, err);
    for (size_t i = 0; !code && i < target->count; i++) {
        const char *name = target->tree->rows[target->rows[i]].name;
        if (options->data_map) {
            const char *to = names_find(&map, name);
            target->keys[i] = to ? arena_copy(arena, to, strlen(to)) : name;
        } else {
            target->keys[i] = cell_name(arena, &map, name);
        }
        if (!target->keys[i])
            code = plumb_no_memory(err);
    }
    names_free(&map);
    return code || options->data_map ? code : rename_apis(target, options, arena, err);
}

static bool in(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

/* What kind of numbers a type's name speaks of; 0 when it does not say. */
static char number_class(const char *dtype)
{
    return contains(dtype, "omplex")                          ? 'c'
           : contains(dtype, "ool")                           ? 'b'
           : contains(dtype, "loat")                          ? 'f'
           : contains(dtype, "int") || contains(dtype, "Int") ? 'i'
                                                              : 0;
}

static bool types_fit(const struct general *general, const char *a, const char *b)
{
    static const char *const torch[] = {"torch.float16", "torch.float32", "torch.bfloat16"};
    static const char *const mindspore[] = {"Float16", "Float32", "BFloat16"};
    if (strcmp(a, b) == 0 || (in(a, torch, 3) && in(b, torch, 3)) ||
        (in(a, mindspore, 3) && in(b, mindspore, 3)))
        return true;
    return strcmp(general->target.framework, general->golden.framework) != 0 && number_class(a) &&
           number_class(a) == number_class(b);
}

enum plumb_code general_add(struct general *general, size_t target, size_t golden)
{
    if (general->count == general->capacity) {
        size_t more = general->capacity ? general->capacity * 2 : 256;
        if (more > SIZE_MAX / sizeof *general->pairs)
            return PLUMB_E_NOMEM;
        struct general_pair *pairs = realloc(general->pairs, more * sizeof *pairs);
        if (!pairs)
            return PLUMB_E_NOMEM;
        general->pairs = pairs;
        general->capacity = more;
    }
    if (golden != GENERAL_NONE && !general->options->data_map && !general->options->layer_map &&
        !types_fit(general, general->target.rows[target].dtype, general->golden.rows[golden].dtype))
        golden = GENERAL_NONE;
    general->pairs[general->count++] = (struct general_pair){.target = target, .golden = golden};
    return PLUMB_OK;
}

/* Every golden row of the same key, in order; a key that is there twice on both sides gives four
 * rows. */
static enum plumb_code match_keys(struct general *general, const struct general_side *target,
                                  const struct general_side *golden)
{
    /* Two hostile files of equal names could ask for a table of any size. */
    const size_t limit = 16 * (target->count + golden->count) + 1000;
    struct map index = {0};
    enum plumb_code code = PLUMB_E_NOMEM;
    size_t *next = arena_array(&general->arena, golden->count, sizeof *next);
    size_t *last = arena_array(&general->arena, golden->count, sizeof *last);
    if (!next || !last)
        return code;
    for (size_t i = 0; i < golden->count; i++) {
        bool added;
        uint64_t *place = map_put(&index, golden->keys[i], strlen(golden->keys[i]), &added);
        if (!place)
            goto out;
        next[i] = GENERAL_NONE;
        if (added)
            *place = i;
        else
            next[last[*place]] = i;
        last[*place] = i;
    }
    code = PLUMB_OK;
    for (size_t i = 0; i < target->count && !code; i++) {
        uint64_t *place = map_get(&index, target->keys[i], strlen(target->keys[i]));
        size_t partner = place ? *place : GENERAL_NONE;
        do {
            code = general_add(general, target->rows[i],
                               partner == GENERAL_NONE ? GENERAL_NONE : golden->rows[partner]);
            partner = partner == GENERAL_NONE ? GENERAL_NONE : next[partner];
        } while (!code && partner != GENERAL_NONE && general->count < limit);
    }
out:
    map_free(&index);
    return code;
}

enum plumb_code general_match(struct general *general, struct plumb_error *err)
{
    const struct plumb_general_options *options = general->options;
    struct general_side target = {0}, golden = {0};
    enum plumb_code code = collect(&target, &general->target, &general->arena);
    if (!code)
        code = collect(&golden, &general->golden, &general->arena);
    if (!code && options->fuzzy && !options->layer_map) {
        code = general_fuzzy(general, &target, &golden);
    } else if (!code) {
        code = options->layer_map ? general_layers(general, &target, &golden, err)
                                  : map_keys(&target, options, &general->arena, err);
        if (code)
            return code;
        code = match_keys(general, &target, &golden);
    }
    return code ? plumb_fail(err, code, "out of memory") : PLUMB_OK;
}
