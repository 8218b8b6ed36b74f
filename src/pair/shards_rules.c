/* Which layouts were written down for which names. */
#define _GNU_SOURCE
#include "base/yaml.h"
#include "pair/shards_dims.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct shards_rule *add(struct shards_rules *rules)
{
    if (rules->count == rules->room) {
        const size_t room = rules->room ? rules->room * 2 : 8;
        struct shards_rule *list = realloc(rules->list, room * sizeof *list);
        if (!list)
            return NULL;
        rules->list = list;
        rules->room = room;
    }
    struct shards_rule *rule = &rules->list[rules->count++];
    *rule = (struct shards_rule){.side = {true, true}};
    return rule;
}

enum plumb_code shards_rules_add(struct shards_rules *rules, struct arena *arena, const char *text,
                                 struct plumb_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return plumb_fail(err, PLUMB_E_ARG,
                          "'%s' is no layout of a name; write 'PATTERN=b s h[tp] d'", text);
    struct shards_rule *rule = add(rules);
    if (!rule || !(rule->pattern = arena_copy(arena, text, (size_t)(equals - text))))
        return plumb_no_memory(err);
    return shards_dims_parse(&rule->dims, equals + 1, err);
}

static int side_of(const char **text)
{
    static const char *const words[] = {"target:", "golden:"};
    for (int side = 0; side < 2; side++)
        if (strncmp(*text, words[side], 7) == 0) {
            *text += 7;
            return side;
        }
    return 2;
}

enum plumb_code shards_rules_parallel(struct shards_rules *rules, const char *text,
                                      struct plumb_error *err)
{
    struct shards_mesh mesh;
    const int side = side_of(&text);
    const enum plumb_code code = shards_mesh_parse(&mesh, text, err);
    for (int k = 0; k < 2 && !code; k++)
        if (side == k || side == 2) {
            rules->mesh[k] = mesh;
            rules->given[k] = true;
        }
    return code;
}

/* ---- The file -------------------------------------------------------------------------------- */

static const struct yml *find(const struct yml *map, const char *key)
{
    for (size_t i = 0; i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return &map->items[i];
    return NULL;
}

/* The message of a word that is wrong, with the line that it is in. */
static enum plumb_code in_line(struct plumb_error *err, const struct yml *value)
{
    struct plumb_error why;
    if (!err)
        return PLUMB_E_FORMAT;
    why = *err;
    char text[800];
    plumb_error_text(&why, text, sizeof text);
    return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: %s", value->line, text);
}

static enum plumb_code read_parallel(struct shards_rules *rules, const struct yml *value,
                                     struct plumb_error *err)
{
    if (value->kind == YML_TEXT)
        return shards_rules_parallel(rules, value->text, err) ? in_line(err, value) : PLUMB_OK;
    if (value->kind != YML_MAP)
        return yml_fail(err, value, "parallel is text, such as tp=2,pp=4, or one for each side");
    for (size_t i = 0; i < value->count; i++) {
        const struct yml *item = &value->items[i];
        const int side = strcmp(value->keys[i], "golden") == 0;
        if (item->kind != YML_TEXT || (!side && strcmp(value->keys[i], "target") != 0))
            return yml_fail(err, item, "parallel has the names target and golden");
        if (shards_mesh_parse(&rules->mesh[side], item->text, err))
            return in_line(err, item);
        rules->given[side] = true;
    }
    return PLUMB_OK;
}

static enum plumb_code read_dims(struct shards_rules *rules, struct arena *arena,
                                 const char *pattern, const struct yml *value,
                                 struct plumb_error *err)
{
    if (value->kind != YML_TEXT)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: the layout of %.100s is text: b s h[tp]",
                          value->line, pattern);
    struct shards_rule *rule = add(rules);
    if (!rule || !(rule->pattern = arena_copy(arena, pattern, strlen(pattern))))
        return plumb_no_memory(err);
    return shards_dims_parse(&rule->dims, value->text, err) ? in_line(err, value) : PLUMB_OK;
}

/* Python's \d is not known to POSIX. */
static char *without_digits(struct arena *arena, const char *pattern)
{
    char *made = arena_alloc(arena, strlen(pattern) * 4 + 1), *out = made;
    for (const char *p = pattern; made && *p; p++) {
        if (p[0] == '\\' && p[1] == 'd') {
            memcpy(out, "[0-9]", 5);
            out += 5;
            p++;
        } else {
            if (p[0] == '\\' && p[1])
                *out++ = *p++;
            *out++ = *p;
        }
    }
    return made;
}

static enum plumb_code read_override(struct shards_rules *rules, struct arena *arena,
                                     const struct yml *item, struct plumb_error *err)
{
    const struct yml *match = item->kind == YML_MAP ? find(item, "match") : NULL;
    const struct yml *side = match ? find(item, "side") : NULL;
    const struct yml *dims = match ? find(item, "dims") : NULL;
    if (!dims || match->kind != YML_TEXT || (side && side->kind != YML_TEXT))
        return yml_fail(err, item, "an override has the texts match, dims and, perhaps, side");
    enum plumb_code code = read_dims(rules, arena, match->text, dims, err);
    if (code)
        return code;
    struct shards_rule *rule = &rules->list[rules->count - 1];
    const char *word = side ? side->text : "both";
    const bool golden = strcmp(word, "baseline") == 0 || strcmp(word, "golden") == 0;
    rule->side[0] = !golden;
    rule->side[1] = golden || strcmp(word, "both") == 0;
    if (!golden && !rule->side[1] && strcmp(word, "target") != 0)
        return yml_fail(err, side, "side is both, target, or golden (or baseline)");
    char *pattern = without_digits(arena, match->text);
    if (!pattern)
        return plumb_no_memory(err);
    if (regcomp(&rule->compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return yml_fail(err, match, "this is no regular expression");
    rule->regular = true;
    return PLUMB_OK;
}

static enum plumb_code read_document(struct shards_rules *rules, struct arena *arena,
                                     const struct yml *document, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (yml_is_null(document))
        return PLUMB_OK;
    if (document->kind != YML_MAP)
        return yml_fail(err, document, "a file of layouts has parallel, layouts and overrides");
    for (size_t i = 0; i < document->count && !code; i++) {
        const struct yml *value = &document->items[i];
        const char *key = document->keys[i];
        if (strcmp(key, "parallel") == 0) {
            code = read_parallel(rules, value, err);
        } else if (strcmp(key, "layouts") == 0 && value->kind == YML_MAP) {
            for (size_t k = 0; k < value->count && !code; k++)
                code = read_dims(rules, arena, value->keys[k], &value->items[k], err);
        } else if (strcmp(key, "overrides") == 0 && value->kind == YML_LIST) {
            for (size_t k = 0; k < value->count && !code; k++)
                code = read_override(rules, arena, &value->items[k], err);
        } else {
            code = yml_fail(err, value,
                            "a file of layouts has parallel, layouts (pattern: dims) and overrides "
                            "(a list of match and dims)");
        }
    }
    return code;
}

enum plumb_code shards_rules_parse(struct shards_rules *rules, struct arena *arena,
                                   const void *bytes, size_t size, struct plumb_error *err)
{
    struct yml root;
    enum plumb_code code = yml_parse(&root, arena, bytes, size, err);
    for (size_t i = 0; !code && i < root.count; i++)
        code = read_document(rules, arena, &root.items[i], err);
    return code;
}

enum plumb_code shards_rules_read(struct shards_rules *rules, struct arena *arena, const char *path,
                                  struct plumb_error *err)
{
    struct yml root;
    enum plumb_code code = yml_read(&root, arena, path, err);
    for (size_t i = 0; !code && i < root.count; i++) {
        code = read_document(rules, arena, &root.items[i], err);
        if (code && code != PLUMB_E_NOMEM)
            plumb_error_in_file(err, path);
    }
    return code;
}

bool shards_rule_matches(const struct shards_rule *rule, int side, const char *name)
{
    return rule->side[side] && (rule->regular ? regexec(&rule->compiled, name, 0, NULL, 0) == 0
                                              : fnmatch(rule->pattern, name, 0) == 0);
}

const struct shards_dims *shards_rules_find(const struct shards_rules *rules, int side,
                                            const char *name)
{
    for (size_t i = 0; i < rules->count; i++)
        if (shards_rule_matches(&rules->list[i], side, name))
            return &rules->list[i].dims;
    return NULL;
}

void shards_rules_free(struct shards_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rules->list[i].regular)
            regfree(&rules->list[i].compiled);
    free(rules->list);
    *rules = (struct shards_rules){0};
}
