/* Opening a dump.json: one pass over the bytes that checks the syntax of all of it and notes where
 * each call is. Nothing inside the entries is looked at. */
#define _GNU_SOURCE
#include "base/map.h"
#include "base/mapped.h"
#include "dump/call_file.h"
#include "dump/outline.h"

#include <stdlib.h>
#include <string.h>

enum framework { FRAMEWORK_MISSING, FRAMEWORK_PYTORCH, FRAMEWORK_MINDSPORE, FRAMEWORK_UNKNOWN };

/* A name, its forward and its backward, whichever came first. */
struct slot {
    struct case_place place;
    size_t order; /* of the forwards */
};

struct indexer {
    struct case_file *file;
    struct json json;
    struct plumb_error *err;
    struct map names; /* to slots */
    struct slot *slots;
    size_t count, capacity, forwards;
    enum framework framework;
    char framework_text[64];
    bool has_data, has_payloads, operators; /* "level": "aten" */
};

/* What Python takes for true. */
static bool is_true(struct json *json, enum json_event event)
{
    struct json inside = *json;
    switch (event) {
    case JSON_NULL:
    case JSON_FALSE:
        return false;
    case JSON_STRING:
        return json->length > 0;
    case JSON_NUMBER:
        return json_double(json) != 0;
    case JSON_ARRAY:
        return json_next(&inside) != JSON_ARRAY_END;
    case JSON_OBJECT:
        return json_next(&inside) != JSON_OBJECT_END;
    default:
        return true;
    }
}

static enum plumb_code read_framework(struct indexer *x)
{
    static const struct {
        const char *name;
        enum framework framework;
    } known[] = {
        {"pytorch", FRAMEWORK_PYTORCH},     {"pt", FRAMEWORK_PYTORCH},
        {"mindspore", FRAMEWORK_MINDSPORE}, {"ms", FRAMEWORK_MINDSPORE},
        {"mindtorch", FRAMEWORK_MINDSPORE},
    };
    enum json_event event = json_next(&x->json);
    x->framework = FRAMEWORK_MISSING;
    if (event != JSON_STRING)
        return json_skip(&x->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    size_t length =
        x->json.length < sizeof x->framework_text ? x->json.length : sizeof x->framework_text - 1;
    memcpy(x->framework_text, x->json.text, length);
    x->framework_text[length] = '\0';
    x->framework = FRAMEWORK_UNKNOWN;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (json_is(&x->json, known[i].name))
            x->framework = known[i].framework;
    return PLUMB_OK;
}

/* The key that was just read, decoded; as it is written when what it means cannot be a C string. */
static const char *key_text(struct indexer *x, size_t *length)
{
    *length = x->json.length;
    if (!x->json.escaped)
        return x->json.text;
    struct json decoding = x->json;
    char *text = json_copy(&decoding, &x->file->arena, length);
    if (text && strlen(text) == *length)
        return text;
    *length = x->json.length;
    return text || decoding.error ? x->json.text : NULL;
}

static bool ends_in(const char *key, size_t length, const char *word)
{
    size_t size = strlen(word);
    return length >= size && memcmp(key + length - size, word, size) == 0 &&
           (length == size || key[length - size - 1] == '.');
}

static struct slot *find_slot(struct indexer *x, const char *name, size_t length)
{
    uint64_t *place = map_get(&x->names, name, length);
    if (place)
        return &x->slots[*place];
    if (x->count == x->capacity) {
        size_t capacity = x->capacity ? x->capacity * 2 : 64;
        struct slot *slots = realloc(x->slots, capacity * sizeof *slots);
        if (!slots)
            return NULL;
        x->slots = slots;
        x->capacity = capacity;
    }
    const char *copy = arena_copy(&x->file->arena, name, length);
    place = copy ? map_put(&x->names, copy, length, NULL) : NULL;
    if (!place)
        return NULL;
    *place = x->count;
    x->slots[x->count] = (struct slot){.place = {.name = copy}};
    return &x->slots[x->count++];
}

/* What an operator's entry, which lies in front of json, calls: "aten.add.Tensor" is Aten.add.0.
 * Its arguments say which overload it is. NULL when out of memory. */
static const char *operator_call(struct indexer *x, struct json json, const char *name)
{
    const char *op = NULL;
    size_t length = 0;
    if (json_next(&json) != JSON_OBJECT)
        return name;
    while (json_next(&json) == JSON_KEY) {
        bool here = json_is(&json, "op");
        enum json_event event = json_next(&json);
        if (here && event == JSON_STRING && json.length <= CASE_MAX_NAME) {
            op = json.text;
            length = json.length;
        }
        if (!json_skip(&json, event))
            break;
    }
    const char *dot = op ? memchr(op, '.', length) : NULL;
    if (!dot)
        return name;
    size_t space = (size_t)(dot - op), rest = length - space - 1;
    const char *overload = memchr(dot + 1, '.', rest);
    bool aten = space == 4 && memcmp(op, "aten", 4) == 0;
    return arena_printf(&x->file->arena, "%.*s.%.*s.0", (int)space, aten ? "Aten" : op,
                        (int)(overload ? (size_t)(overload - dot) - 1 : rest), dot + 1);
}

/* One entry of "data". Of entries with the same name the last counts, in the place of the first, as
 * it is for everybody who reads JSON into a dictionary. */
static enum plumb_code on_entry(void *context)
{
    struct indexer *x = context;
    uint64_t at = x->json.start;
    size_t length;
    const char *key = key_text(x, &length);
    if (!key)
        return plumb_no_memory(x->err);
    /* Modules are recorded beside the APIs at level mix. */
    if (memmem(key, length, "Module", 6) || ends_in(key, length, "parameters_grad"))
        return outline_skip(&x->json);
    bool operator= length> 5 && memcmp(key + length - 5, "-aten", 5) == 0;
    bool forward = operator|| ends_in(key, length, "forward");
    int shown = length < 100 ? (int)length : 100;
    if (!forward && !ends_in(key, length, "backward"))
        return plumb_fail_at(x->err, PLUMB_E_FORMAT, at,
                             "the entry \"%.*s\" is no API call: its name ends neither in .forward "
                             "nor in .backward",
                             shown, key);
    size_t suffix = operator? 0 : forward ? sizeof ".forward" - 1 : sizeof ".backward" - 1;
    size_t name = length > suffix ? length - suffix : 0;
    if (name > CASE_MAX_NAME)
        return plumb_fail_at(x->err, PLUMB_E_FORMAT, at,
                             "the name \"%.*s...\" is longer than %d bytes", shown, key,
                             CASE_MAX_NAME);

    struct slot *slot = find_slot(x, key, name);
    if (!slot)
        return plumb_no_memory(x->err);
    slot->place.call = operator? operator_call(x, x->json, slot->place.name) : slot->place.name;
    if (!slot->place.call)
        return plumb_no_memory(x->err);
    enum json_event event = json_next(&x->json);
    uint64_t start = x->json.start;
    if (!json_skip(&x->json, event))
        return PLUMB_E_FORMAT;
    uint64_t size = (uint64_t)(x->json.next - x->json.begin) - start;
    if (!forward) {
        slot->place.backward = start;
        slot->place.backward_size = size;
        return PLUMB_OK;
    }
    if (!slot->place.forward_size)
        slot->order = x->forwards++;
    slot->place.forward = start;
    slot->place.forward_size = size;
    return PLUMB_OK;
}

static enum plumb_code on_data(void *context, enum json_event event)
{
    struct indexer *x = context;
    map_free(&x->names); /* of an earlier "data" */
    x->names = (struct map){0};
    x->count = x->forwards = 0;
    x->has_data = event == JSON_OBJECT;
    if (x->has_data || event == JSON_NULL || event == JSON_ERROR)
        return PLUMB_OK;
    return plumb_fail_at(x->err, PLUMB_E_FORMAT, x->json.start,
                         "\"data\" must be an object of API calls");
}

static enum plumb_code on_field(void *context)
{
    struct indexer *x = context;
    enum json_event event;
    if (json_is(&x->json, "framework"))
        return read_framework(x);
    if (json_is(&x->json, "level")) {
        event = json_next(&x->json);
        x->operators = event == JSON_STRING && json_is(&x->json, "aten");
    } else if (json_is(&x->json, "dump_data_dir")) {
        event = json_next(&x->json);
        x->has_payloads = is_true(&x->json, event);
    } else {
        return outline_skip(&x->json);
    }
    return json_skip(&x->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
}

static enum plumb_code read_outline(struct indexer *x)
{
    enum plumb_code code = outline_read(&(struct outline){
        .json = &x->json, .field = on_field, .data = on_data, .entry = on_entry, .context = x});
    if (code == PLUMB_E_UNSUPPORTED)
        return plumb_fail_at(x->err, PLUMB_E_FORMAT, x->json.start,
                             "not a dump.json: it holds no JSON object");
    return code && x->json.error ? json_fail(&x->json, 0, x->err) : code;
}

static enum plumb_code check_head(const struct indexer *x)
{
    switch (x->framework) {
    case FRAMEWORK_MISSING:
        return plumb_fail(x->err, PLUMB_E_FORMAT,
                          "the file does not say which framework it was recorded in; if it was "
                          "PyTorch, add \"framework\": \"pytorch\" beside \"data\"");
    case FRAMEWORK_MINDSPORE:
        return plumb_fail(x->err, PLUMB_E_UNSUPPORTED,
                          "recorded in MindSpore; only dumps of PyTorch can be pre-checked");
    case FRAMEWORK_UNKNOWN:
        return plumb_fail(x->err, PLUMB_E_UNSUPPORTED,
                          "recorded in the framework \"%s\", which plumb does not know; only dumps "
                          "of PyTorch (\"pytorch\") can be pre-checked",
                          x->framework_text);
    default:
        break;
    }
    if (!x->has_data)
        return plumb_fail(x->err, PLUMB_E_FORMAT,
                          "not a dump.json: there is no object named \"data\"");
    return PLUMB_OK;
}

static enum plumb_code take_places(struct indexer *x)
{
    struct case_place *places = calloc(x->forwards ? x->forwards : 1, sizeof *places);
    if (!places)
        return plumb_no_memory(x->err);
    for (size_t i = 0; i < x->count; i++)
        if (x->slots[i].place.forward_size)
            places[x->slots[i].order] = x->slots[i].place;
    x->file->places = places;
    x->file->count = x->forwards;
    return PLUMB_OK;
}

/* file->bytes, size and path are set; finds the calls. */
static enum plumb_code find_calls(struct case_file *file, struct plumb_error *err)
{
    struct indexer x = {.file = file, .err = err};
    json_init(&x.json, file->bytes, file->size);
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &file->map);
    enum plumb_code code = read_outline(&x);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    if (!code)
        code = check_head(&x);
    if (!code)
        code = take_places(&x);
    if (!code && x.has_payloads) {
        const char *slash = strrchr(file->path, '/');
        int folder = slash ? (int)(slash - file->path) + 1 : 0;
        file->data_dir = arena_printf(&file->arena, "%.*s%s", folder, file->path,
                                      x.operators ? "dump" : "dump_tensor_data");
        if (!file->data_dir)
            code = plumb_no_memory(err);
    }
    map_free(&x.names);
    free(x.slots);
    return code;
}

static enum plumb_code open_bytes(struct case_file *file, const char *path, struct case_file **out,
                                  struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    file->path = arena_copy(&file->arena, path, strlen(path));
    code = file->path ? find_calls(file, err) : plumb_no_memory(err);
    if (code) {
        plumb_error_in_file(err, path);
        case_file_close(file);
        return code;
    }
    *out = file;
    return PLUMB_OK;
}

enum plumb_code case_file_parse(const void *bytes, size_t size, const char *path,
                                struct case_file **out, struct plumb_error *err)
{
    *out = NULL;
    struct case_file *file = calloc(1, sizeof *file);
    if (!file)
        return plumb_no_memory(err);
    file->bytes = bytes;
    file->size = size;
    return open_bytes(file, path, out, err);
}

enum plumb_code case_file_open(const char *path, struct case_file **out, struct plumb_error *err)
{
    *out = NULL;
    struct case_file *file = calloc(1, sizeof *file);
    if (!file)
        return plumb_no_memory(err);
    enum plumb_code code = plumb_file_map(&file->map, path, 0, UINT64_MAX, err);
    if (code) {
        case_file_close(file);
        return code;
    }
    file->bytes = file->map.data;
    file->size = (size_t)file->map.size;
    return open_bytes(file, path, out, err);
}

void case_file_close(struct case_file *file)
{
    if (!file)
        return;
    plumb_file_unmap(&file->map);
    arena_free(&file->arena);
    free(file->places);
    free(file);
}

size_t case_count(const struct case_file *file)
{
    return file->count;
}

const struct case_place *case_place(const struct case_file *file, size_t i)
{
    return &file->places[i];
}

const char *case_data_dir(const struct case_file *file)
{
    return file->data_dir;
}
