/* Mapping files: a flat YAML mapping of names. */
#include "compare/general.h"
#include "plumb/file.h"

#include <string.h>
#include <yaml.h>

enum { MAX_ENTRIES = 10 * 1000 * 1000 };

struct builder {
    struct general_map *map;
    size_t capacity;
};

static enum plumb_code add(struct builder *builder, const char *from, const yaml_event_t *to)
{
    struct general_map *map = builder->map;
    if (map->count == builder->capacity) {
        size_t more = builder->capacity ? builder->capacity * 2 : 64;
        const char **froms = arena_array(&map->arena, more, sizeof *froms);
        const char **tos = arena_array(&map->arena, more, sizeof *tos);
        if (!froms || !tos)
            return PLUMB_E_NOMEM;
        for (size_t i = 0; i < map->count; i++) {
            froms[i] = map->from[i];
            tos[i] = map->to[i];
        }
        map->from = froms;
        map->to = tos;
        builder->capacity = more;
    }
    const char *copy =
        arena_copy(&map->arena, (const char *)to->data.scalar.value, to->data.scalar.length);
    bool added;
    uint64_t *place = copy ? map_put(&map->index, from, strlen(from), &added) : NULL;
    if (!place)
        return PLUMB_E_NOMEM;
    if (added) {
        *place = map->count;
        map->from[map->count] = from;
        map->to[map->count++] = copy;
    } else {
        map->to[*place] = copy;
    }
    return PLUMB_OK;
}

static enum plumb_code fail_at_line(struct plumb_error *err, size_t line, const char *what)
{
    return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: %s", line + 1, what);
}

static enum plumb_code fail_parser(const yaml_parser_t *parser, struct plumb_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    return fail_at_line(err, parser->problem_mark.line,
                        parser->error == YAML_READER_ERROR ? "not UTF-8 text" : "not valid YAML");
}

/* Takes one event. *key is the name that waits for its partner, *depth the mappings that are open.
 */
static enum plumb_code take(struct builder *builder, const yaml_event_t *event, const char **key,
                            unsigned *depth, struct plumb_error *err)
{
    static const char wanted[] = "only lines of the form NAME: NAME are understood here";
    size_t line = event->start_mark.line;
    switch (event->type) {
    case YAML_MAPPING_START_EVENT:
        if (++*depth > 1)
            return fail_at_line(err, line, wanted);
        return PLUMB_OK;
    case YAML_MAPPING_END_EVENT:
        --*depth;
        return PLUMB_OK;
    case YAML_SCALAR_EVENT:
        if (!*depth) /* an empty file is a lone empty scalar */
            return event->data.scalar.length ? fail_at_line(err, line, wanted) : PLUMB_OK;
        if (memchr(event->data.scalar.value, '\0', event->data.scalar.length))
            return fail_at_line(err, line, "a name with a NUL character");
        if (builder->map->count >= MAX_ENTRIES)
            return fail_at_line(err, line, "too many names");
        enum plumb_code code = PLUMB_OK;
        if (*key) {
            code = add(builder, *key, event);
            *key = NULL;
        } else {
            *key = arena_copy(&builder->map->arena, (const char *)event->data.scalar.value,
                              event->data.scalar.length);
            code = *key ? PLUMB_OK : PLUMB_E_NOMEM;
        }
        return code ? plumb_fail(err, code, "out of memory") : PLUMB_OK;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_ALIAS_EVENT:
        return fail_at_line(err, line, wanted);
    default:
        return PLUMB_OK;
    }
}

enum plumb_code general_map_parse(struct general_map *map, const void *bytes, size_t size,
                                  struct plumb_error *err)
{
    *map = (struct general_map){0};
    struct builder builder = {.map = map};
    enum plumb_code code = PLUMB_OK;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, size ? bytes : (const unsigned char *)"", size);
    const char *key = NULL;
    unsigned depth = 0;
    for (bool done = false; !done && !code;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            code = fail_parser(&parser, err);
            break;
        }
        /* A second document of the file counts as more of the first. */
        done = event.type == YAML_STREAM_END_EVENT;
        code = take(&builder, &event, &key, &depth, err);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (code)
        general_map_free(map);
    return code;
}

enum plumb_code general_map_read(struct general_map *map, const char *path, struct plumb_error *err)
{
    struct plumb_file file;
    enum plumb_code code = plumb_file_map(&file, path, 0, UINT64_MAX, err);
    if (code)
        return code;
    struct plumb_guard guard;
    plumb_guard_enter(&guard, &file);
    code = general_map_parse(map, file.data, file.size, err);
    if (plumb_guard_leave(&guard) && !code) {
        general_map_free(map);
        code = plumb_fail(err, PLUMB_E_IO, "the file became shorter while it was read");
    }
    plumb_file_unmap(&file);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

void general_map_free(struct general_map *map)
{
    map_free(&map->index);
    arena_free(&map->arena);
    *map = (struct general_map){0};
}
