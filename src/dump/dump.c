/* Reading a dump.json. */
#include "dump/dump.h"

#include "base/mapped.h"
#include "dump/outline.h"
#include "dump/python.h"
#include "dump/reader.h"
#include "dump/uninitialised.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lists and dicts of an entry, in the order of its rows. */
static const struct section {
    const char *key;
    const char *suffix;
    enum dump_section section;
} sections[] = {
    {"input_args", "input", DUMP_INPUT},  {"input_kwargs", "input", DUMP_INPUT},
    {"input", "input", DUMP_INPUT},       {"parameters", "parameters", DUMP_PARAMETERS},
    {"output", "output", DUMP_OUTPUT},    {"parameters_grad", "parameters_grad", DUMP_GRADIENTS},
    {"buffers", "buffers", DUMP_BUFFERS},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

void *dump_grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t more = *capacity ? *capacity * 2 : 64;
    if (more > SIZE_MAX / size)
        return NULL;
    void *grown = realloc(items, more * size);
    if (grown)
        *capacity = more;
    return grown;
}

enum plumb_code dump_warn(struct dump_tree *tree, const char *format, ...)
{
    if (tree->warning_count >= DUMP_MAX_WARNINGS)
        return PLUMB_OK;
    if (!tree->warnings)
        tree->warnings = arena_array(&tree->arena, DUMP_MAX_WARNINGS, sizeof *tree->warnings);
    if (!tree->warnings)
        return PLUMB_E_NOMEM;

    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = arena_copy(&tree->arena, text, strlen(text));
    if (!copy)
        return PLUMB_E_NOMEM;
    tree->warnings[tree->warning_count++] = copy;
    return PLUMB_OK;
}

/* True when one of the name's dot-separated fields is this one. */
static bool has_field(const char *name, const char *field)
{
    size_t length = strlen(field);
    for (const char *p = name; p; p = strchr(p, '.')) {
        p += *p == '.';
        if (strncmp(p, field, length) == 0 && (p[length] == '.' || !p[length]))
            return true;
    }
    return false;
}

/* Rows are collected as the file has them; this puts the sections of one entry in order. */
static enum plumb_code order_rows(struct dump_tree *tree, size_t first, const size_t *begins,
                                  const uint8_t *kinds, size_t parts)
{
    bool ordered = true;
    for (size_t i = 1; i < parts; i++)
        ordered &= kinds[i - 1] <= kinds[i];
    if (ordered)
        return PLUMB_OK;

    size_t count = tree->row_count - first, filled = 0;
    struct dump_row *rows = malloc((count ? count : 1) * sizeof *rows);
    if (!rows)
        return PLUMB_E_NOMEM;
    for (unsigned kind = 0; kind < SECTIONS; kind++) {
        for (size_t i = 0; i < parts; i++) {
            size_t end = i + 1 < parts ? begins[i + 1] : tree->row_count;
            if (kinds[i] != kind)
                continue;
            memcpy(rows + filled, tree->rows + begins[i], (end - begins[i]) * sizeof *rows);
            filled += end - begins[i];
        }
    }
    memcpy(tree->rows + first, rows, filled * sizeof *rows);
    free(rows);
    return PLUMB_OK;
}

/* Captures write the ranks of a group at its first exchange, and its name at all of them. */
static enum plumb_code share_group(struct reader *r, struct dump_api *api, const char *id)
{
    uint64_t *place = map_put(&r->groups, id, strlen(id), NULL);
    if (!place)
        return PLUMB_E_NOMEM;
    if (api->group)
        *place = (uint64_t)(uintptr_t)api->group;
    else
        api->group = (const char *)(uintptr_t)*place;
    return PLUMB_OK;
}

/* Order and group of what ranks exchange; what is not understood counts as not recorded. */
static enum plumb_code read_exchange(struct reader *r)
{
    struct dump_api *api = &r->tree->apis[r->tree->api_count - 1];
    const char *id = NULL;
    enum json_event event = json_next(&r->json);
    if (event != JSON_OBJECT)
        return json_skip(&r->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        const bool order = json_is(&r->json, "order"), group = json_is(&r->json, "group_ranks");
        const bool named = json_is(&r->json, "group_id");
        int64_t number;
        event = json_next(&r->json);
        if (order && event == JSON_NUMBER && json_int64(&r->json, &number) && number >= 0) {
            api->order = number;
        } else if ((group && event == JSON_ARRAY) || (named && event == JSON_STRING)) {
            const char *text = dump_word(r, event, 0);
            if (!text)
                return dump_failure(r);
            *(group ? &api->group : &id) = text;
        } else if (!json_skip(&r->json, event)) {
            return PLUMB_E_FORMAT;
        }
    }
    if (event != JSON_OBJECT_END)
        return PLUMB_E_FORMAT;
    return id ? share_group(r, api, id) : PLUMB_OK;
}

static enum plumb_code read_sections(struct reader *r)
{
    enum { MOST = 16 }; /* more can only be repetitions */
    size_t first = r->tree->row_count, base = r->path.size, begins[MOST], parts = 0;
    uint8_t kinds[MOST];
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        size_t kind = 0;
        while (kind < SECTIONS && !json_is(&r->json, sections[kind].key))
            kind++;
        if (json_is(&r->json, "exchange")) {
            enum plumb_code code = read_exchange(r);
            if (code)
                return code;
            continue;
        }
        if (kind == SECTIONS || parts == MOST) {
            if (!json_skip(&r->json, JSON_KEY))
                return PLUMB_E_FORMAT;
            continue;
        }
        const struct section *section = &sections[kind];
        begins[parts] = r->tree->row_count;
        kinds[parts++] = (uint8_t)kind;
        r->section = section->section;
        r->flat = section->section == DUMP_GRADIENTS;
        buf_append(&r->path, ".", 1);
        buf_text(&r->path, section->suffix);
        if (r->path.failed)
            return PLUMB_E_NOMEM;
        enum plumb_code code = dump_walk(r, json_next(&r->json));
        if (r->path.failed)
            return PLUMB_E_NOMEM;
        dump_pop(r, base);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return PLUMB_E_FORMAT;
    return order_rows(r->tree, first, begins, kinds, parts);
}

static enum plumb_code read_entry(struct reader *r, const struct dump_api *api)
{
    bool gradients = has_field(api->name, "parameters_grad");
    enum json_event event = json_next(&r->json);
    if (event <= JSON_END)
        return PLUMB_E_FORMAT;
    r->tree->apis[r->tree->api_count - 1].offset = r->json.start;
    if (gradients || r->tree->debug) {
        r->section = gradients ? DUMP_GRADIENTS : DUMP_OUTPUT;
        r->flat = gradients;
        return dump_walk(r, event);
    }
    if (event == JSON_OBJECT)
        return read_sections(r);
    enum plumb_code code = dump_warn(r->tree, "%.200s: the entry is not an object", api->name);
    return code ? code : json_skip(&r->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
}

/* The rows of an entry to whom they are for. What was read before a damage is good. */
static enum plumb_code hand_on(struct reader *r, enum plumb_code code)
{
    struct dump_tree *tree = r->tree;
    if (!r->take || code == PLUMB_E_NOMEM)
        return code;
    if (tree->row_count && r->take(r->context, tree, tree->rows, tree->row_count))
        return PLUMB_E_NOMEM;
    r->taken += tree->row_count;
    tree->row_count = 0;
    return code;
}

/* One API, or a place of debug.json. */
static enum plumb_code on_entry(void *context)
{
    struct reader *r = context;
    struct dump_tree *tree = r->tree;
    r->path.size = 0;
    python_string(&r->json, &r->path);
    if (r->path.failed)
        return PLUMB_E_NOMEM;
    if (r->path.size > DUMP_MAX_NAME / 2 || !r->path.size) {
        enum plumb_code code = dump_warn(tree, "%.60s...: not a name of an API, left out",
                                         r->path.data ? r->path.data : "");
        return code ? code : outline_skip(&r->json);
    }

    struct dump_api *apis = dump_grow(tree->apis, tree->api_count, &r->api_capacity, sizeof *apis);
    if (!apis)
        return PLUMB_E_NOMEM;
    tree->apis = apis;
    struct dump_api *api = &apis[tree->api_count];
    *api = (struct dump_api){.first = tree->row_count + r->taken, .order = -1};
    api->name = arena_copy(&tree->arena, r->path.data, r->path.size);
    if (!api->name)
        return PLUMB_E_NOMEM;
    tree->api_count++;
    bool twice;
    if (dump_name_last(tree, &twice) ||
        (twice && dump_warn(tree, "%.200s: there twice", api->name)))
        return PLUMB_E_NOMEM;

    r->depth = 0;
    r->takes_memory = dump_takes_memory(r->path.data, r->path.size);
    enum plumb_code code = read_entry(r, api);
    api->cut = code == PLUMB_E_FORMAT;
    api->count = tree->row_count + r->taken - api->first;
    api->size = (uint64_t)(r->json.next - r->json.begin) - api->offset;
    return hand_on(r, code);
}

static enum plumb_code read_head(struct reader *r, const char **out)
{
    enum json_event event = json_next(&r->json);
    if (event != JSON_STRING)
        return json_skip(&r->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    r->text.size = 0;
    python_string(&r->json, &r->text);
    const char *text = r->text.data ? r->text.data : "";
    *out = r->text.failed ? NULL : arena_copy(&r->tree->arena, text, r->text.size);
    return *out ? PLUMB_OK : PLUMB_E_NOMEM;
}

static enum plumb_code on_field(void *context)
{
    struct reader *r = context;
    if (json_is(&r->json, "task"))
        return read_head(r, &r->tree->task_text);
    if (json_is(&r->json, "level"))
        return read_head(r, &r->tree->level);
    if (json_is(&r->json, "framework"))
        return read_head(r, &r->tree->framework);
    return outline_skip(&r->json);
}

static enum plumb_code on_data(void *context, enum json_event event)
{
    struct reader *r = context;
    r->has_data = true;
    if (event == JSON_OBJECT)
        return PLUMB_OK;
    return json_skip(&r->json, event) ? PLUMB_E_UNSUPPORTED : PLUMB_E_FORMAT;
}

/* Reads the file's one object. PLUMB_E_FORMAT: json.error says where it is damaged;
 * PLUMB_E_UNSUPPORTED: it is no dump. */
static enum plumb_code read_object(struct reader *r)
{
    enum plumb_code code = outline_read(&(struct outline){
        .json = &r->json, .field = on_field, .data = on_data, .entry = on_entry, .context = r});
    return !code && !r->has_data ? PLUMB_E_UNSUPPORTED : code;
}

enum plumb_code dump_parse(struct dump_tree *tree, const void *bytes, size_t size, dump_take *take,
                           void *context, struct plumb_error *err)
{
    struct reader r = {.tree = tree, .take = take, .context = context};
    r.name_limit = size > SIZE_MAX / 128 ? SIZE_MAX : size * 64 + (1 << 20);
    json_init(&r.json, bytes, size);
    enum plumb_code code = read_object(&r);
    tree->task = tree->task_text && strcmp(tree->task_text, "tensor") == 0 ? DUMP_TENSOR
                 : r.checksums                                             ? DUMP_MD5
                                                                           : DUMP_STATISTICS;
    if (!tree->framework)
        tree->framework = "pytorch";
    if (code == PLUMB_E_FORMAT && !r.has_data) {
        json_fail(&r.json, 0, err);
    } else if (code == PLUMB_E_FORMAT) { /* what came before the damage is good */
        struct plumb_error damage = {0};
        char text[1024];
        json_fail(&r.json, 0, &damage);
        plumb_error_in_file(&damage, tree->path);
        tree->cut = true;
        code = dump_warn(tree, "%s; entries from there on are missing",
                         plumb_error_text(&damage, text, sizeof text));
    } else if (code == PLUMB_E_UNSUPPORTED) {
        plumb_fail(err, code, "not a dump: the file has no object named \"data\"");
    }
    if (code == PLUMB_E_NOMEM)
        plumb_fail(err, code, "out of memory");
    map_free(&r.words);
    map_free(&r.shapes);
    map_free(&r.groups);
    buf_free(&r.path);
    buf_free(&r.text);
    return code;
}

static enum plumb_code read_file(struct dump_tree *tree, dump_take *take, void *context,
                                 struct plumb_error *err)
{
    struct mapped in;
    enum plumb_code code = mapped_open(&in, tree->path, err);
    if (code)
        return code;
    return mapped_close(&in, dump_parse(tree, in.file.data, in.file.size, take, context, err), err);
}

enum plumb_code dump_open(struct dump_tree *tree, const char *json_path, struct plumb_error *err)
{
    return dump_stream(tree, json_path, NULL, NULL, err);
}

enum plumb_code dump_stream(struct dump_tree *tree, const char *json_path, dump_take *take,
                            void *context, struct plumb_error *err)
{
    *tree = (struct dump_tree){0};
    const char *slash = strrchr(json_path, '/');
    size_t folder = slash ? (size_t)(slash - json_path) : 0;
    enum plumb_code code = PLUMB_E_NOMEM;
    tree->path = arena_copy(&tree->arena, json_path, strlen(json_path));
    tree->folder = !slash ? "." : folder ? arena_copy(&tree->arena, json_path, folder) : "/";
    tree->debug = strcmp(slash ? slash + 1 : json_path, "debug.json") == 0;
    if (tree->path && tree->folder)
        code = read_file(tree, take, context, err);
    if (!code)
        code = dump_read_stacks(tree);
    if (!code)
        code = dump_read_parents(tree);
    if (code) {
        if (code == PLUMB_E_NOMEM)
            plumb_fail(err, code, "out of memory");
        plumb_error_in_file(err, json_path);
        dump_close(tree);
    }
    return code;
}

void dump_close(struct dump_tree *tree)
{
    free(tree->apis);
    free(tree->rows);
    free(tree->stacks);
    free(tree->names.slots);
    arena_free(&tree->arena);
    *tree = (struct dump_tree){0};
}

bool dump_payload(const struct dump_tree *tree, const char *name, char *path, size_t size)
{
    if (!name || strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        return false;
    int length = snprintf(path, size, "%s/dump_tensor_data/%s", tree->folder, name);
    return length > 0 && (size_t)length < size;
}
