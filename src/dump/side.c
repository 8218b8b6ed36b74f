/* The files beside dump.json: where each API was called from, and inside which module. */
#include "base/mapped.h"
#include "dump/python.h"
#include "dump/reader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct side {
    struct dump_tree *tree;
    struct json json;
    struct buf text;
    const char **lines; /* of the stack that is being read */
    size_t line_count, line_capacity, stack_capacity;
};

typedef enum plumb_code read_entry(struct side *side);

static struct dump_api *api_named(struct side *side)
{
    side->text.size = 0;
    python_string(&side->json, &side->text);
    if (side->text.failed || !side->text.data)
        return NULL;
    return dump_named(side->tree, side->text.data, side->text.size);
}

/* One line of a stack, or one name of those that share it. */
static enum plumb_code keep_line(struct side *side)
{
    side->text.size = 0;
    python_string(&side->json, &side->text);
    const char *text = side->text.data ? side->text.data : "";
    const char **lines =
        dump_grow(side->lines, side->line_count, &side->line_capacity, sizeof *lines);
    if (!lines)
        return PLUMB_E_NOMEM;
    side->lines = lines;
    lines[side->line_count] = arena_copy(&side->tree->arena, text, side->text.size);
    if (side->text.failed || !lines[side->line_count])
        return PLUMB_E_NOMEM;
    side->line_count++;
    return PLUMB_OK;
}

static enum plumb_code keep_lines(struct side *side)
{
    enum json_event event;
    while ((event = json_next(&side->json)) > JSON_END && event != JSON_ARRAY_END) {
        enum plumb_code code = event == JSON_STRING            ? keep_line(side)
                               : json_skip(&side->json, event) ? PLUMB_OK
                                                               : PLUMB_E_FORMAT;
        if (code)
            return code;
    }
    return event == JSON_ARRAY_END ? PLUMB_OK : PLUMB_E_FORMAT;
}

static enum plumb_code keep_stack(struct side *side)
{
    struct dump_tree *tree = side->tree;
    const char *const **stacks =
        dump_grow(tree->stacks, tree->stack_count, &side->stack_capacity, sizeof *stacks);
    if (!stacks)
        return PLUMB_E_NOMEM;
    tree->stacks = stacks;
    const char **lines = arena_array(&tree->arena, side->line_count + 1, sizeof *lines);
    if (!lines)
        return PLUMB_E_NOMEM;
    if (side->line_count)
        memcpy(lines, side->lines, side->line_count * sizeof *lines);
    stacks[tree->stack_count++] = lines;
    side->line_count = 0;
    return PLUMB_OK;
}

/* The list of APIs that share a stack. */
static enum plumb_code give_stack(struct side *side, size_t number)
{
    enum json_event event;
    while ((event = json_next(&side->json)) > JSON_END && event != JSON_ARRAY_END) {
        struct dump_api *api = event == JSON_STRING ? api_named(side) : NULL;
        if (api)
            api->stack = number;
        if (!json_skip(&side->json, event))
            return PLUMB_E_FORMAT;
    }
    return event == JSON_ARRAY_END ? PLUMB_OK : PLUMB_E_FORMAT;
}

/* "0": [[api, ...], [line, ...]], or in older files "api": [line, ...]. */
static enum plumb_code read_stack(struct side *side)
{
    struct dump_api *owner = api_named(side);
    size_t number = side->tree->stack_count + 1;
    enum json_event event = json_next(&side->json);
    if (event != JSON_ARRAY)
        return json_skip(&side->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;

    unsigned lists = 0;
    enum plumb_code code = PLUMB_OK;
    while (!code && (event = json_next(&side->json)) > JSON_END && event != JSON_ARRAY_END) {
        if (event == JSON_ARRAY && lists++ == 0)
            code = give_stack(side, number);
        else if (event == JSON_ARRAY)
            code = keep_lines(side);
        else if (event == JSON_STRING)
            code = keep_line(side);
        else if (!json_skip(&side->json, event))
            code = PLUMB_E_FORMAT;
    }
    if (!lists && owner)
        owner->stack = number;
    /* Damaged or not: APIs refer to it by now. */
    enum plumb_code kept = keep_stack(side);
    return kept ? kept : code ? code : event == JSON_ARRAY_END ? PLUMB_OK : PLUMB_E_FORMAT;
}

/* "api": "parent", null, or ["parent", micro step]. */
static enum plumb_code read_parent(struct side *side)
{
    struct dump_api *api = api_named(side);
    enum json_event event = json_next(&side->json);
    bool list = event == JSON_ARRAY;
    if (list)
        event = json_next(&side->json);
    if (event == JSON_STRING && api) {
        side->text.size = 0;
        python_string(&side->json, &side->text);
        api->parent = side->text.failed
                          ? NULL
                          : arena_copy(&side->tree->arena, side->text.data ? side->text.data : "",
                                       side->text.size);
        if (!api->parent)
            return PLUMB_E_NOMEM;
    } else if (!list || event != JSON_ARRAY_END) {
        if (!json_skip(&side->json, event))
            return PLUMB_E_FORMAT;
    }
    while (list && event != JSON_ARRAY_END) {
        event = json_next(&side->json);
        if (event <= JSON_END || (event != JSON_ARRAY_END && !json_skip(&side->json, event)))
            return PLUMB_E_FORMAT;
    }
    return PLUMB_OK;
}

static enum plumb_code parse(struct dump_tree *tree, const void *bytes, size_t size,
                             const char *path, read_entry *entry)
{
    struct side side = {.tree = tree, .stack_capacity = tree->stack_count};
    enum plumb_code code = PLUMB_OK;
    json_init(&side.json, bytes, size);
    enum json_event event = json_next(&side.json);
    if (event == JSON_OBJECT) {
        while (!code && json_next(&side.json) == JSON_KEY)
            code = entry(&side);
        if (!code)
            json_next(&side.json);
    } else if (event > JSON_END) {
        code = dump_warn(tree, "%s: not a JSON object, ignored", path);
    }
    if (side.json.error) {
        struct plumb_error err = {0};
        char text[1024];
        json_fail(&side.json, 0, &err);
        plumb_error_in_file(&err, path);
        code = dump_warn(tree, "%s", plumb_error_text(&err, text, sizeof text));
    }
    free(side.lines);
    buf_free(&side.text);
    return code == PLUMB_E_FORMAT ? PLUMB_OK : code;
}

static enum plumb_code read_side(struct dump_tree *tree, const char *name, read_entry *entry)
{
    const char *path = arena_printf(&tree->arena, "%s/%s", tree->folder, name);
    if (!path)
        return PLUMB_E_NOMEM;
    if (access(path, F_OK) != 0)
        return PLUMB_OK;

    struct plumb_error err = {0};
    struct mapped in;
    char text[1024];
    enum plumb_code code = PLUMB_OK, bad = mapped_open(&in, path, &err);
    if (!bad) {
        code = parse(tree, in.file.data, in.file.size, path, entry);
        bad = mapped_close(&in, PLUMB_OK, &err);
    }
    if (bad && !code)
        code = dump_warn(tree, "%s", plumb_error_text(&err, text, sizeof text));
    return code;
}

enum plumb_code dump_read_stacks(struct dump_tree *tree)
{
    return read_side(tree, "stack.json", read_stack);
}

enum plumb_code dump_read_parents(struct dump_tree *tree)
{
    return read_side(tree, "construct.json", read_parent);
}

enum plumb_code dump_parse_stacks(struct dump_tree *tree, const void *bytes, size_t size,
                                  const char *path)
{
    return parse(tree, bytes, size, path, read_stack);
}

enum plumb_code dump_parse_parents(struct dump_tree *tree, const void *bytes, size_t size,
                                   const char *path)
{
    return parse(tree, bytes, size, path, read_parent);
}
