/* The file that says how modules are called on the other side. */
#include "base/yaml.h"
#include "pair/layer.h"

#include <string.h>

static size_t count_pieces(const char *path, size_t length)
{
    size_t pieces = 1;
    for (size_t i = 0; i < length; i++)
        pieces += path[i] == '.';
    return pieces;
}

static enum plumb_code read_class(struct layer_rules *rules, const char *class,
                                  const struct yml *names, struct plumb_error *err)
{
    if (yml_is_null(names))
        return PLUMB_OK;
    if (names->kind != YML_MAP)
        return yml_fail(err, names, "a class must have lines NAME: NAME below it");
    if (strcmp(class, "Cell") == 0 || strcmp(class, "Module") == 0) /* older files */
        class = "TopLayer";
    const char **to = arena_array(&rules->arena, rules->count + names->count, sizeof *to);
    if (!to)
        return plumb_no_memory(err);
    if (rules->count)
        memcpy(to, rules->to, rules->count * sizeof *to);
    rules->to = to;
    for (size_t i = 0; i < names->count; i++) {
        const struct yml *name = &names->items[i];
        if (name->kind != YML_TEXT || !*name->text || !*names->keys[i])
            return yml_fail(err, name, "a class must have lines NAME: NAME below it");
        const char *key = arena_printf(&rules->arena, "%s/%s", class, names->keys[i]);
        uint64_t *place = key ? map_put(&rules->names, key, strlen(key), NULL) : NULL;
        if (!place)
            return plumb_no_memory(err);
        *place = rules->count;
        rules->to[rules->count++] = name->text;
        size_t pieces = count_pieces(names->keys[i], strlen(names->keys[i]));
        rules->pieces = pieces > rules->pieces ? pieces : rules->pieces;
    }
    return PLUMB_OK;
}

static enum plumb_code read_document(void *context, const struct yml *document,
                                     struct plumb_error *err)
{
    struct layer_rules *rules = context;
    enum plumb_code code = PLUMB_OK;
    if (yml_is_null(document))
        return PLUMB_OK;
    if (document->kind != YML_MAP)
        return yml_fail(err, document, "expected classes of modules, with lines NAME: NAME below");
    for (size_t i = 0; i < document->count && !code; i++)
        code = read_class(rules, document->keys[i], &document->items[i], err);
    return code;
}

enum plumb_code layer_read(struct layer_rules *rules, const char *file, struct plumb_error *err)
{
    *rules = (struct layer_rules){0};
    if (!*file)
        return PLUMB_OK;
    enum plumb_code code = yml_each(&rules->arena, file, read_document, rules, err);
    if (code)
        layer_free(rules);
    return code;
}

void layer_free(struct layer_rules *rules)
{
    map_free(&rules->names);
    arena_free(&rules->arena);
    *rules = (struct layer_rules){0};
}
