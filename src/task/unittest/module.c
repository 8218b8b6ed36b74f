/* Writing the tests of one operator as Python. */
#include "task/unittest/module.h"

#include "base/map.h"
#include "task/unittest/code.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_FUNCTION = 120 };

/* "00004-aten" -> "test_00004_aten", with a number behind it when another test is called so. */
static const char *function_name(struct map *used, struct arena *arena, const struct call *call,
                                 size_t position)
{
    struct buf clean = {0};
    const char *name = NULL;
    bool added = false;
    code_clean(&clean, call->name, call->name_length, "", LONGEST_FUNCTION);
    if (clean.failed)
        goto out;
    for (size_t k = position; !added; k++) {
        name = k == position ? arena_printf(arena, "test_%s", clean.data ? clean.data : "")
                             : arena_printf(arena, "test_%s_%zu", clean.data ? clean.data : "", k);
        if (!name || !map_put(used, name, strlen(name), &added)) {
            name = NULL;
            break;
        }
    }
out:
    buf_free(&clean);
    return name;
}

/* "        VALUE,\n" for every argument. */
static bool write_args(struct buf *out, struct json *json, char *refused)
{
    enum json_event event = json_next(json);
    if (event == JSON_NULL)
        return true;
    if (event != JSON_ARRAY) {
        snprintf(refused, CODE_REASON, "its arguments are no list");
        return false;
    }
    while ((event = json_next(json)) != JSON_ARRAY_END) {
        buf_text(out, "        ");
        if (!code_argument(out, json, event, refused))
            return false;
        buf_text(out, ",\n");
    }
    return true;
}

static bool write_kwargs(struct buf *out, struct json *json, char *refused)
{
    enum json_event event = json_next(json);
    if (event == JSON_NULL)
        return true;
    if (event != JSON_OBJECT) {
        snprintf(refused, CODE_REASON, "its keyword arguments are no object");
        return false;
    }
    while (json_next(json) == JSON_KEY) {
        buf_text(out, "        ");
        code_argument(out, json, JSON_STRING, refused); /* a key is read as a string is */
        buf_text(out, ": ");
        if (!code_argument(out, json, json_next(json), refused))
            return false;
        buf_text(out, ",\n");
    }
    return true;
}

/* The arguments of a call as the rest of `aten.check(NAME, OP`. */
static bool write_call(struct buf *out, const struct calls *calls, const struct call *call,
                       char *refused)
{
    struct buf args = {0}, kwargs = {0};
    struct json json;
    bool good = true;
    json_init(&json, calls->bytes + call->start, call->size);
    json_next(&json);
    while (good && json_next(&json) == JSON_KEY) {
        if (json_is(&json, "input_args")) {
            args.size = 0;
            good = write_args(&args, &json, refused);
        } else if (json_is(&json, "input_kwargs")) {
            kwargs.size = 0;
            good = write_kwargs(&kwargs, &json, refused);
        } else {
            good = json_skip(&json, JSON_KEY);
        }
    }
    if (good) {
        buf_text(out, args.size ? ", [\n" : ", [");
        buf_append(out, args.data, args.size);
        buf_text(out, args.size ? "    ]" : "]");
        if (kwargs.size) {
            buf_text(out, ", {\n");
            buf_append(out, kwargs.data, kwargs.size);
            buf_text(out, "    }");
        }
        buf_text(out, ")\n");
    }
    out->failed |= args.failed || kwargs.failed;
    buf_free(&args);
    buf_free(&kwargs);
    return good;
}

bool module_text(struct buf *out, const struct calls *calls, const struct call_group *group)
{
    struct map used = {0};
    struct arena arena = {0};
    bool good = true;
    buf_text(out, MODULE_MARK);
    code_clean(out, group->op, group->op_length, ".", LONGEST_FUNCTION);
    buf_text(out, ". Made by plumb jprof; conftest.py beside it does the work.\"\"\"\n");
    for (size_t k = 0; k < group->count && good; k++) {
        const struct call *call = &calls->items[calls->order[group->first + k]];
        const char *function = function_name(&used, &arena, call, k);
        char refused[CODE_REASON] = "a damaged entry";
        good = function != NULL;
        if (!good)
            break;
        buf_printf(out, "\n\ndef %s(aten):\n    aten.", function);
        size_t begin = out->size;
        buf_text(out, "check(");
        code_string(out, call->name, call->name_length);
        buf_text(out, ", ");
        code_string(out, call->op, call->op_length);
        if (write_call(out, calls, call, refused))
            continue;
        out->size = out->failed ? out->size : begin;
        buf_text(out, "skip(");
        code_string(out, call->name, call->name_length);
        buf_text(out, ", ");
        code_string(out, call->op, call->op_length);
        buf_text(out, ", ");
        code_string(out, refused, strlen(refused));
        buf_text(out, ")\n");
    }
    map_free(&used);
    arena_free(&arena);
    return good && !out->failed;
}
