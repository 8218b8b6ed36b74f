#include "merge/config.h"

#include "plumb/file.h"

#include <string.h>
#include <yaml.h>

enum { MAX_BYTES = 1 << 20, MAX_ITEMS = 10000 };

struct reading {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one */
    bool has_event;
    struct arena *arena;
    struct plumb_error *err;
};

bool config_add(struct config_list *list, const char *text, size_t length, struct arena *arena)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->items[i]) == length && memcmp(list->items[i], text, length) == 0)
            return true;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        const char **items = arena_array(arena, capacity, sizeof *items);
        if (!items)
            return false;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    const char *copy = arena_copy(arena, text, length);
    if (copy)
        list->items[list->count++] = copy;
    return copy;
}

static enum plumb_code no_memory(const struct reading *reading)
{
    return plumb_fail(reading->err, PLUMB_E_NOMEM, "out of memory");
}

static enum plumb_code refuse(const struct reading *reading, const char *what)
{
    return plumb_fail(reading->err, PLUMB_E_FORMAT, "line %zu: %s",
                      reading->event.start_mark.line + 1, what);
}

static enum plumb_code next(struct reading *reading)
{
    if (reading->has_event)
        yaml_event_delete(&reading->event);
    reading->has_event = yaml_parser_parse(&reading->parser, &reading->event);
    if (reading->has_event && reading->event.type == YAML_ALIAS_EVENT)
        return refuse(reading, "aliases are not taken; write the value out");
    if (reading->has_event)
        return PLUMB_OK;
    const yaml_parser_t *parser = &reading->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reading);
    return plumb_fail(reading->err, PLUMB_E_FORMAT, "line %zu: not YAML: %s",
                      parser->problem_mark.line + 1, parser->problem ? parser->problem : "damaged");
}

/* Passes over the value that the current event begins. */
static enum plumb_code skip(struct reading *reading)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t depth = 0; !code;) {
        yaml_event_type_t type = reading->event.type;
        depth += type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT;
        depth -= type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT;
        if (!depth)
            break;
        code = next(reading);
    }
    return code;
}

static bool is_null(const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    return event->type == YAML_SCALAR_EVENT &&
           event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*value || strcmp(value, "~") == 0 || strcmp(value, "null") == 0);
}

static enum plumb_code read_list(struct reading *reading, struct config_list *list,
                                 const char *wanted)
{
    if (is_null(&reading->event))
        return PLUMB_OK;
    if (reading->event.type != YAML_SEQUENCE_START_EVENT)
        return refuse(reading, wanted);
    for (;;) {
        enum plumb_code code = next(reading);
        if (code || reading->event.type == YAML_SEQUENCE_END_EVENT)
            return code;
        if (reading->event.type != YAML_SCALAR_EVENT || is_null(&reading->event) ||
            !reading->event.data.scalar.length || list->count == MAX_ITEMS)
            return refuse(reading, wanted);
        if (!config_add(list, (const char *)reading->event.data.scalar.value,
                        reading->event.data.scalar.length, reading->arena))
            return no_memory(reading);
    }
}

static enum plumb_code read_mapping(struct reading *reading, struct config *config)
{
    enum plumb_code code = PLUMB_OK;
    do {
        code = next(reading);
    } while (!code && (reading->event.type == YAML_STREAM_START_EVENT ||
                       reading->event.type == YAML_DOCUMENT_START_EVENT));
    if (!code && reading->event.type != YAML_MAPPING_START_EVENT)
        code = refuse(reading, "the file must hold the lists api: and compare_index:");
    while (!code && !(code = next(reading)) && reading->event.type != YAML_MAPPING_END_EVENT) {
        struct config_list *list = NULL;
        const char *wanted = NULL;
        if (reading->event.type == YAML_SCALAR_EVENT) {
            const char *key = (const char *)reading->event.data.scalar.value;
            if (strcmp(key, "api") == 0) {
                list = &config->apis;
                wanted = "api must be a list of names, such as '- Distributed.all_reduce'";
            } else if (strcmp(key, "compare_index") == 0) {
                list = &config->indices;
                wanted = "compare_index must be a list of columns, such as '- Max diff'";
            }
        }
        code = skip(reading); /* the key */
        if (!code)
            code = next(reading);
        if (!code)
            code = list ? read_list(reading, list, wanted) : skip(reading);
    }
    return code;
}

enum plumb_code config_read(struct config *config, const char *path, struct arena *arena,
                            struct plumb_error *err)
{
    struct plumb_file file;
    struct plumb_guard guard;
    struct reading reading = {.arena = arena, .err = err};
    *config = (struct config){0};
    enum plumb_code code = plumb_file_map(&file, path, 0, UINT64_MAX, err);
    if (code)
        return code;
    plumb_guard_enter(&guard, &file);
    if (file.size > MAX_BYTES) {
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "too large for a list of names");
    } else if (!yaml_parser_initialize(&reading.parser)) {
        code = no_memory(&reading);
    } else {
        yaml_parser_set_input_string(&reading.parser, file.size ? file.data : (const uint8_t *)"",
                                     (size_t)file.size);
        code = read_mapping(&reading, config);
        if (reading.has_event)
            yaml_event_delete(&reading.event);
        yaml_parser_delete(&reading.parser);
    }
    if (plumb_guard_leave(&guard))
        code = plumb_fail(err, PLUMB_E_IO, "the file shrank while it was read");
    plumb_file_unmap(&file);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}
