/* The recorded operators of a dump.json. */
#include "task/unittest/calls.h"

#include "base/map.h"
#include "base/mapped.h"
#include "dump/outline.h"
#include "plumb/op.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAME = 4096 };

struct indexer {
    struct calls *calls;
    struct json json;
    struct map names, ops;
    size_t capacity, entries;
    bool has_data;
    struct plumb_error *err;
};

/* The last key or string, decoded, or as it is written when it means half of a character. */
static const char *take_text(struct indexer *x, size_t *length)
{
    struct json decoding = x->json;
    const char *text = json_copy(&decoding, &x->calls->arena, length);
    if (decoding.error) {
        *length = x->json.length;
        text = arena_copy(&x->calls->arena, x->json.text, x->json.length);
    }
    return text;
}

/* "Functional.linear.3.forward" is a call of torch.nn.functional.linear: its operator is
 * "Functional.linear". Only what plumb computes itself is taken for a function, and nothing random:
 * names come out of the dump. False when out of memory. */
static bool find_function(struct indexer *x, struct call *call)
{
    static const char ending[] = ".forward";
    const size_t tail = sizeof ending - 1;
    if (call->name_length <= tail ||
        memcmp(call->name + call->name_length - tail, ending, tail) != 0)
        return true;
    char *name = arena_copy(&x->calls->arena, call->name, call->name_length - tail);
    if (!name)
        return false;
    char *number = strrchr(name, '.'), *dot = strchr(name, '.');
    if (!number || number == dot || !number[1] ||
        strspn(number + 1, "0123456789") != strlen(number + 1))
        return true;
    *number = *dot = '\0';
    const bool known = strcmp(name, "Functional") == 0 || strcmp(name, "Torch") == 0 ||
                       strcmp(name, "Tensor") == 0;
    const struct plumb_op *op = known ? plumb_op_find(name, dot + 1) : NULL;
    *dot = '.';
    if (op && !op->random) {
        call->op = name;
        call->op_length = strlen(name);
        x->calls->functions = true;
    }
    return true;
}

/* Fills what an entry, whose first brace was just read, says about itself. */
static enum plumb_code read_entry(struct indexer *x, struct call *call, bool *usable)
{
    bool arguments = false;
    enum json_event event;
    call->op = NULL;
    while ((event = json_next(&x->json)) == JSON_KEY) {
        bool op = json_is(&x->json, "op");
        arguments |= json_is(&x->json, "input_args");
        event = json_next(&x->json);
        if (op && event == JSON_STRING && !(call->op = take_text(x, &call->op_length)))
            return plumb_no_memory(x->err);
        if (!json_skip(&x->json, event))
            return PLUMB_E_FORMAT;
    }
    if (!call->op && arguments && !find_function(x, call))
        return plumb_no_memory(x->err);
    *usable = call->op && call->op_length && call->op_length <= MAX_NAME && arguments;
    return event == JSON_OBJECT_END ? PLUMB_OK : PLUMB_E_FORMAT;
}

static enum plumb_code add_call(struct indexer *x, const struct call *call)
{
    struct calls *calls = x->calls;
    bool added;
    uint64_t *place = map_put(&x->names, call->name, call->name_length, &added);
    if (!place)
        return plumb_no_memory(x->err);
    if (!added) {
        calls->items[*place] = *call;
        return PLUMB_OK;
    }
    *place = calls->count;
    if (calls->count == x->capacity) {
        size_t capacity = x->capacity ? 2 * x->capacity : 256;
        struct call *items = realloc(calls->items, capacity * sizeof *items);
        if (!items)
            return plumb_no_memory(x->err);
        calls->items = items;
        x->capacity = capacity;
    }
    calls->items[calls->count++] = *call;
    return PLUMB_OK;
}

static enum plumb_code on_entry(void *context)
{
    struct indexer *x = context;
    struct call call = {.name = NULL};
    call.name = take_text(x, &call.name_length);
    if (!call.name)
        return plumb_no_memory(x->err);
    enum json_event event = json_next(&x->json);
    call.start = x->json.start;
    bool usable = false;
    enum plumb_code code = event == JSON_OBJECT         ? read_entry(x, &call, &usable)
                           : json_skip(&x->json, event) ? PLUMB_OK
                                                        : PLUMB_E_FORMAT;
    call.size = (size_t)((uint64_t)(x->json.next - x->json.begin) - call.start);
    x->entries++;
    if (code)
        return code;
    if (usable && call.name_length <= MAX_NAME)
        return add_call(x, &call);
    x->calls->unusable++;
    return PLUMB_OK;
}

static enum plumb_code on_data(void *context, enum json_event event)
{
    struct indexer *x = context;
    map_free(&x->names); /* of an earlier "data" */
    x->names = (struct map){0};
    x->calls->count = x->calls->unusable = x->entries = 0;
    x->has_data = event == JSON_OBJECT;
    return PLUMB_OK;
}

static enum plumb_code read_calls(struct indexer *x)
{
    enum plumb_code code = outline_read(
        &(struct outline){.json = &x->json, .data = on_data, .entry = on_entry, .context = x});
    if (code == PLUMB_E_UNSUPPORTED)
        return plumb_fail_at(x->err, PLUMB_E_FORMAT, x->json.start,
                             "not a dump.json: it holds no JSON object");
    if (code)
        return x->json.error ? json_fail(&x->json, 0, x->err) : code;
    if (!x->has_data)
        return plumb_fail(x->err, PLUMB_E_FORMAT, "not a dump.json: there is no object \"data\"");
    if (!x->calls->count && x->entries)
        return plumb_fail(x->err, PLUMB_E_FORMAT,
                          "none of its %zu entries is an operator with its arguments; record with "
                          "plumb.begin_dump(X_DEBUG=0x102), or at level L1",
                          x->entries);
    if (!x->calls->count)
        return plumb_fail(x->err, PLUMB_E_FORMAT, "nothing was recorded: \"data\" is empty");
    return PLUMB_OK;
}

/* Numbers the operators and puts the calls of each side by side. */
static enum plumb_code group_calls(struct indexer *x)
{
    struct calls *calls = x->calls;
    calls->groups = calloc(calls->count, sizeof *calls->groups);
    calls->order = calloc(calls->count, sizeof *calls->order);
    if (!calls->groups || !calls->order)
        return plumb_no_memory(x->err);
    for (size_t i = 0; i < calls->count; i++) {
        struct call *call = &calls->items[i];
        bool added;
        uint64_t *place = map_put(&x->ops, call->op, call->op_length, &added);
        if (!place)
            return plumb_no_memory(x->err);
        if (added) {
            *place = calls->group_count;
            calls->groups[calls->group_count++] =
                (struct call_group){.op = call->op, .op_length = call->op_length};
        }
        call->group = *place;
        calls->groups[call->group].count++;
    }
    size_t first = 0;
    for (size_t g = 0; g < calls->group_count; g++) {
        calls->groups[g].first = first;
        first += calls->groups[g].count;
        calls->groups[g].count = 0; /* counted again as they are put in order */
    }
    for (size_t i = 0; i < calls->count; i++) {
        struct call_group *group = &calls->groups[calls->items[i].group];
        calls->order[group->first + group->count++] = i;
    }
    return PLUMB_OK;
}

enum plumb_code calls_parse(struct calls *calls, const void *bytes, size_t size,
                            struct plumb_error *err)
{
    struct plumb_file map = calls->map;
    *calls = (struct calls){.map = map, .bytes = bytes};
    struct indexer x = {.calls = calls, .err = err};
    json_init(&x.json, bytes, size);
    enum plumb_code code = read_calls(&x);
    if (!code)
        code = group_calls(&x);
    map_free(&x.names);
    map_free(&x.ops);
    return code;
}

enum plumb_code calls_open(struct calls *calls, const char *path, struct plumb_error *err)
{
    *calls = (struct calls){0};
    enum plumb_code code = plumb_file_map(&calls->map, path, 0, UINT64_MAX, err);
    if (code)
        return code;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &calls->map);
    code = calls_parse(calls, calls->map.data, (size_t)calls->map.size, err);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

void calls_close(struct calls *calls)
{
    free(calls->items);
    free(calls->groups);
    free(calls->order);
    arena_free(&calls->arena);
    plumb_file_unmap(&calls->map);
    *calls = (struct calls){0};
}
