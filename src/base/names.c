/* Names that stand for other names. */
#include "base/names.h"

#include "base/yaml.h"

#include <string.h>

bool names_add(struct names *names, const char *from, const char *to)
{
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 64;
        const char **froms = arena_array(&names->arena, capacity, sizeof *froms);
        const char **tos = arena_array(&names->arena, capacity, sizeof *tos);
        if (!froms || !tos)
            return false;
        for (size_t i = 0; i < names->count; i++) {
            froms[i] = names->from[i];
            tos[i] = names->to[i];
        }
        names->from = froms;
        names->to = tos;
        names->capacity = capacity;
    }
    bool added;
    uint64_t *place = map_put(&names->index, from, strlen(from), &added);
    if (!place)
        return false;
    if (added) {
        *place = names->count;
        names->from[names->count] = from;
        names->to[names->count++] = to;
    } else {
        names->to[*place] = to;
    }
    return true;
}

/* A second document of the file counts as more of the first. */
static enum plumb_code add_document(void *context, const struct yml *document,
                                    struct plumb_error *err)
{
    struct names *names = context;
    static const char wanted[] = "only lines of the form NAME: NAME are understood here";
    if (yml_is_null(document))
        return PLUMB_OK;
    if (document->kind != YML_MAP)
        return yml_fail(err, document, wanted);
    for (size_t i = 0; i < document->count; i++) {
        if (document->items[i].kind != YML_TEXT)
            return yml_fail(err, &document->items[i], wanted);
        if (!names_add(names, document->keys[i], document->items[i].text))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

enum plumb_code names_parse(struct names *names, const void *bytes, size_t size,
                            struct plumb_error *err)
{
    struct yml root;
    *names = (struct names){0};
    enum plumb_code code = yml_parse(&root, &names->arena, bytes, size, err);
    for (size_t i = 0; !code && i < root.count; i++)
        code = add_document(names, &root.items[i], err);
    if (code)
        names_free(names);
    return code;
}

enum plumb_code names_read(struct names *names, const char *path, struct plumb_error *err)
{
    *names = (struct names){0};
    enum plumb_code code = yml_each(&names->arena, path, add_document, names, err);
    if (code)
        names_free(names);
    return code;
}

void names_free(struct names *names)
{
    map_free(&names->index);
    arena_free(&names->arena);
    *names = (struct names){0};
}

const char *names_find(const struct names *names, const char *name)
{
    const uint64_t *place = map_get(&names->index, name, strlen(name));
    return place ? names->to[*place] : NULL;
}

char *names_text(const struct names *names)
{
    struct buf text = {0};
    buf_text(&text, "");
    for (size_t i = 0; i < names->count; i++) {
        yml_write(&text, names->from[i]);
        buf_text(&text, ": ");
        yml_write(&text, names->to[i]);
        buf_text(&text, "\n");
    }
    if (text.failed)
        buf_free(&text);
    return text.data;
}
