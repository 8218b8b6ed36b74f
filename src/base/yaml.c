/* YAML files as trees. */
#include "base/yaml.h"

#include "base/mapped.h"

#include <string.h>
#include <yaml.h>

enum { MAX_DEPTH = 16, MAX_VALUES = 20 * 1000 * 1000 };

/* A list or mapping that is open. */
struct level {
    struct yml *value;
    size_t capacity;
    const char *key; /* of a mapping: the name that waits for its value */
};

struct reading {
    struct arena *arena;
    struct plumb_error *err;
    struct level levels[MAX_DEPTH];
    size_t depth, values;
};

static enum plumb_code fail_at(struct plumb_error *err, size_t line, const char *what)
{
    return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: %s", line, what);
}

enum plumb_code yml_fail(struct plumb_error *err, const struct yml *value, const char *what)
{
    return fail_at(err, value->line, what);
}

/* Room for one more value in the innermost list or mapping; NULL when out of memory. */
static struct yml *add(struct reading *reading)
{
    struct level *level = &reading->levels[reading->depth - 1];
    struct yml *value = level->value;
    if (value->count == level->capacity) {
        size_t capacity = level->capacity ? level->capacity * 2 : 8;
        struct yml *items = arena_array(reading->arena, capacity, sizeof *items);
        const char **keys = arena_array(reading->arena, capacity, sizeof *keys);
        if (!items || !keys)
            return NULL;
        if (value->count) {
            memcpy(items, value->items, value->count * sizeof *items);
            memcpy(keys, value->keys, value->count * sizeof *keys);
        }
        value->items = items;
        value->keys = keys;
        level->capacity = capacity;
    }
    value->keys[value->count] = level->key;
    level->key = NULL;
    return &value->items[value->count++];
}

static bool wants_key(const struct reading *reading)
{
    const struct level *level = &reading->levels[reading->depth - 1];
    return level->value->kind == YML_MAP && !level->key;
}

static enum plumb_code take_text(struct reading *reading, const yaml_event_t *event, size_t line)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length))
        return fail_at(reading->err, line, "a text with a NUL character");
    const char *copy = arena_copy(reading->arena, text, length);
    if (!copy)
        return plumb_no_memory(reading->err);
    if (wants_key(reading)) {
        reading->levels[reading->depth - 1].key = copy;
        return PLUMB_OK;
    }
    struct yml *value = add(reading);
    if (!value)
        return plumb_no_memory(reading->err);
    *value = (struct yml){.kind = YML_TEXT,
                          .line = line,
                          .text = copy,
                          .quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE};
    return PLUMB_OK;
}

/* The levels point into arrays of their parents, which do not grow before the level is closed. */
static enum plumb_code open_level(struct reading *reading, const yaml_event_t *event, size_t line)
{
    if (wants_key(reading))
        return fail_at(reading->err, line, "a list or mapping where a name should be");
    if (reading->depth == MAX_DEPTH)
        return fail_at(reading->err, line, "nested too deeply");
    struct yml *value = add(reading);
    if (!value)
        return plumb_no_memory(reading->err);
    *value = (struct yml){.kind = event->type == YAML_SEQUENCE_START_EVENT ? YML_LIST : YML_MAP,
                          .line = line};
    reading->levels[reading->depth++] = (struct level){.value = value};
    return PLUMB_OK;
}

static enum plumb_code take(struct reading *reading, const yaml_event_t *event)
{
    size_t line = event->start_mark.line + 1;
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return open_level(reading, event, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        reading->depth--;
        return PLUMB_OK;
    case YAML_SCALAR_EVENT:
        if (++reading->values > MAX_VALUES)
            return fail_at(reading->err, line, "too many names");
        return take_text(reading, event, line);
    case YAML_ALIAS_EVENT:
        return fail_at(reading->err, line, "aliases are not taken; write the value out");
    default:
        return PLUMB_OK;
    }
}

static enum plumb_code fail_parser(const yaml_parser_t *parser, struct plumb_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return plumb_no_memory(err);
    if (parser->error == YAML_READER_ERROR)
        return fail_at(err, parser->problem_mark.line + 1, "not UTF-8 text");
    return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: not YAML: %s", parser->problem_mark.line + 1,
                      parser->problem ? parser->problem : "damaged");
}

enum plumb_code yml_parse(struct yml *root, struct arena *arena, const void *bytes, size_t size,
                          struct plumb_error *err)
{
    struct reading reading = {.arena = arena, .err = err, .levels = {{.value = root}}, .depth = 1};
    enum plumb_code code = PLUMB_OK;
    yaml_parser_t parser;
    *root = (struct yml){.kind = YML_LIST, .line = 1};
    if (!yaml_parser_initialize(&parser))
        return plumb_no_memory(err);
    yaml_parser_set_input_string(&parser, size ? bytes : (const unsigned char *)"", size);
    for (bool done = false; !done && !code;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            code = fail_parser(&parser, err);
            break;
        }
        done = event.type == YAML_STREAM_END_EVENT;
        code = take(&reading, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return code;
}

enum plumb_code yml_read(struct yml *root, struct arena *arena, const char *path,
                         struct plumb_error *err)
{
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    return mapped_close(&in, yml_parse(root, arena, in.file.data, in.file.size, err), err);
}

enum plumb_code yml_each(struct arena *arena, const char *path,
                         enum plumb_code (*read)(void *context, const struct yml *document,
                                                 struct plumb_error *err),
                         void *context, struct plumb_error *err)
{
    struct yml root = {0};
    enum plumb_code code = yml_read(&root, arena, path, err);
    if (code)
        return code;
    for (size_t i = 0; i < root.count && !code; i++)
        code = read(context, &root.items[i], err);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

bool yml_is_null(const struct yml *value)
{
    return value->kind == YML_TEXT && !value->quoted &&
           (!*value->text || strcmp(value->text, "~") == 0 || strcmp(value->text, "null") == 0);
}

void yml_write(struct buf *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./";
    /* A letter first and only harmless characters: no number, no sign of the language. */
    bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
    if (letter && strchr(text, '.') && !text[strspn(text, plain)]) {
        buf_text(out, text);
        return;
    }
    buf_text(out, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            buf_append(out, text, 1);
    }
    buf_text(out, "\"");
}
