/* One call of a dump.json: its entries as arguments. */
#include "dump/call_parse.h"
#include "base/mapped.h"

#include <string.h>

static case_reader parse_arg;

/* The rest of an object without a type: a named tuple, a data class, a dictionary. */
static enum plumb_code parse_dict(struct case_parser *p, struct case_arg *out)
{
    out->value.kind = PLUMB_ARG_OTHER;
    enum json_event event = JSON_ERROR;
    enum plumb_code code = case_enter(p);
    while (!code && (event = json_next(&p->json)) == JSON_KEY) {
        code = case_count_item(p);
        if (code)
            return code;
        out->items = case_grow(p, out->items, out->n_items, sizeof *out->items);
        if (!out->items)
            return case_no_memory(p);
        code = parse_arg(p, json_next(&p->json), &out->items[out->n_items++]);
    }
    if (code)
        return code;
    case_leave(p);
    out->named_tuple_or_dict = out->n_items > 0;
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

/* Whether the object that json has just entered has a type; it is nearly always the first key. */
static bool has_type(struct json json)
{
    while (json_next(&json) == JSON_KEY) {
        bool type = json_is(&json, "type");
        enum json_event event = json_next(&json);
        if (type && event == JSON_STRING)
            return true;
        if (!json_skip(&json, event))
            break;
    }
    return false;
}

/* The rest of an array of arguments. */
static enum plumb_code parse_items(struct case_parser *p, struct case_arg **out, size_t *count)
{
    struct case_list list = {.size = sizeof **out};
    enum plumb_code code = case_items(p, parse_arg, &list);
    *out = list.items;
    *count = list.count;
    return code;
}

static enum plumb_code parse_arg(struct case_parser *p, enum json_event event, void *into)
{
    struct case_arg *out = into;
    *out = (struct case_arg){.value = {.kind = PLUMB_ARG_NONE}};
    enum plumb_code code;
    switch (event) {
    case JSON_ERROR:
        return case_damaged(p);
    case JSON_ARRAY:
        out->value.kind = PLUMB_ARG_LIST;
        return parse_items(p, &out->items, &out->n_items);
    case JSON_OBJECT:
        return has_type(p->json) ? case_typed(p, out) : parse_dict(p, out);
    default:
        code = case_plain(p, event, out);
        out->bare = event != JSON_NULL;
        return code;
    }
}

/* A list of arguments; null or absent is an empty one. */
static enum plumb_code parse_list(struct case_parser *p, const char *key, struct case_arg **out,
                                  size_t *count)
{
    *out = NULL;
    *count = 0;
    enum json_event event = json_next(&p->json);
    if (event == JSON_ARRAY)
        return parse_items(p, out, count);
    return event == JSON_NULL    ? PLUMB_OK
           : event == JSON_ERROR ? case_damaged(p)
                                 : case_fail(p, "\"%s\" must be a list", key);
}

/* One keyword argument, whose key was just read. Of those with the same name the last counts. */
static enum plumb_code parse_kwarg(struct case_parser *p, struct check_case *out)
{
    const char *name;
    enum plumb_code code = case_count_item(p);
    if (!code)
        code = case_text(p, &name);
    if (code)
        return code;
    size_t i = 0;
    while (i < out->n_kwargs && strcmp(out->kwargs[i].name, name) != 0)
        i++;
    if (i == CASE_MAX_KWARGS)
        return case_fail(p, "more than %d keyword arguments", CASE_MAX_KWARGS);
    if (i == out->n_kwargs) {
        out->kwargs = case_grow(p, out->kwargs, i, sizeof *out->kwargs);
        if (!out->kwargs)
            return case_no_memory(p);
        out->n_kwargs++;
    }
    out->kwargs[i].name = name;
    return parse_arg(p, json_next(&p->json), &out->kwargs[i].value);
}

static enum plumb_code parse_kwargs(struct case_parser *p, struct check_case *out)
{
    out->kwargs = NULL;
    out->n_kwargs = 0;
    enum json_event event = json_next(&p->json);
    if (event == JSON_NULL)
        return PLUMB_OK;
    if (event != JSON_OBJECT)
        return event == JSON_ERROR ? case_damaged(p)
                                   : case_fail(p, "\"input_kwargs\" must be an object");
    while ((event = json_next(&p->json)) == JSON_KEY) {
        enum plumb_code code = parse_kwarg(p, out);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

/* One output of the list; only its type is wanted. What holds several makes the list uneven. */
static enum plumb_code parse_output(struct case_parser *p, enum json_event event,
                                    struct check_case *out, bool *even)
{
    struct case_fields f = {.type = TYPE_PLAIN};
    enum plumb_code code = event == JSON_OBJECT ? case_fields(p, &f) : case_skip(p, event);
    const size_t n = out->n_output_dtypes;
    *even &= event != JSON_ARRAY && f.type != TYPE_NONE && n < CASE_MAX_OUTPUTS;
    if (code || !*even)
        return code;
    out->output_dtypes = case_grow(p, out->output_dtypes, n, sizeof *out->output_dtypes);
    if (!out->output_dtypes)
        return case_no_memory(p);
    out->output_dtypes[n] = f.type == TYPE_TENSOR ? f.dtype : NULL;
    out->n_output_dtypes++;
    return PLUMB_OK;
}

static enum plumb_code parse_outputs(struct case_parser *p, struct check_case *out)
{
    out->output_dtypes = NULL;
    out->n_output_dtypes = 0;
    out->all_outputs = false;
    enum json_event event = json_next(&p->json);
    if (event != JSON_ARRAY)
        return case_skip(p, event);
    enum plumb_code code = PLUMB_OK;
    bool even = true;
    while (!code && even && (event = json_next(&p->json)) != JSON_ARRAY_END)
        code = parse_output(p, event, out, &even);
    if (!code && !even)
        code = case_skip(p, JSON_ARRAY); /* what is left of it */
    out->all_outputs = even && out->n_output_dtypes;
    out->output_dtype = out->n_output_dtypes ? out->output_dtypes[0] : NULL;
    return code;
}

static enum plumb_code parse_forward(struct case_parser *p, void *into)
{
    struct check_case *out = into;
    enum json_event event = json_next(&p->json);
    if (event != JSON_OBJECT)
        return case_fail(p, "the entry of a forward call must be an object");
    while ((event = json_next(&p->json)) == JSON_KEY) {
        enum plumb_code code = json_is(&p->json, "input_args")
                                   ? parse_list(p, "input_args", &out->args, &out->n_args)
                               : json_is(&p->json, "input_kwargs") ? parse_kwargs(p, out)
                               : json_is(&p->json, "output")       ? parse_outputs(p, out)
                                                                   : case_skip(p, JSON_KEY);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

static enum plumb_code parse_backward(struct case_parser *p, void *into)
{
    struct check_case *out = into;
    out->has_backward = true;
    enum json_event event = json_next(&p->json);
    if (event != JSON_OBJECT)
        return case_fail(p, "the entry of a backward call must be an object");
    while ((event = json_next(&p->json)) == JSON_KEY) {
        enum plumb_code code = json_is(&p->json, "input")
                                   ? parse_list(p, "input", &out->grads, &out->n_grads)
                                   : case_skip(p, JSON_KEY);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

/* "Torch.linalg.inv.0": what stands before the first dot, and between it and the last. */
static enum plumb_code split_name(struct case_parser *p, const char *call, struct check_case *out)
{
    const char *first = strchr(call, '.'), *last = strrchr(call, '.');
    size_t prefix = first ? (size_t)(first - call) : strlen(call);
    /* "InsideTorch.add.0" is a call of a compiled region's graph, interpreted. */
    static const char inside[] = "Inside";
    size_t skip = strncmp(call, inside, sizeof inside - 1) == 0 && prefix >= sizeof inside
                      ? sizeof inside - 1
                      : 0;
    out->prefix = arena_copy(p->arena, call + skip, prefix - skip);
    out->api = arena_copy(p->arena, first ? first + 1 : "",
                          first && last > first ? (size_t)(last - first - 1) : 0);
    return out->prefix && out->api ? PLUMB_OK : case_no_memory(p);
}

/* Reads both entries of call i, the backward one where there is one. */
static enum plumb_code parse_entries(const struct case_file *file, size_t i, struct case_parser *p,
                                     enum plumb_code (*forward)(struct case_parser *, void *),
                                     enum plumb_code (*backward)(struct case_parser *, void *),
                                     void *out)
{
    const struct case_place *place = &file->places[i];
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &file->map);
    p->base = place->forward;
    json_init(&p->json, file->bytes + place->forward, (size_t)place->forward_size);
    enum plumb_code code = forward(p, out);
    if (!code && place->backward_size) {
        p->base = place->backward;
        p->depth = 0;
        json_init(&p->json, file->bytes + place->backward, (size_t)place->backward_size);
        code = backward(p, out);
    }
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(p->err);
    if (code)
        plumb_error_in_file(p->err, file->path);
    return code;
}

enum plumb_code case_parse(const struct case_file *file, size_t i, struct arena *arena,
                           struct check_case *out, struct plumb_error *err)
{
    const struct case_place *place = &file->places[i];
    *out = (struct check_case){.name = place->name, .index = i};
    struct case_parser p = {.base = place->forward, .arena = arena, .err = err};
    const enum plumb_code code = split_name(&p, place->call, out);
    return code ? code : parse_entries(file, i, &p, parse_forward, parse_backward, out);
}

/* ---- What it gave ---------------------------------------------------------------------------- */

static enum plumb_code parse_given(struct case_parser *p, struct case_arg **out, size_t *count)
{
    enum json_event event = json_next(&p->json);
    if (event != JSON_OBJECT)
        return case_fail(p, "the entry of a call must be an object");
    while ((event = json_next(&p->json)) == JSON_KEY) {
        const enum plumb_code code = json_is(&p->json, "output")
                                         ? parse_list(p, "output", out, count)
                                         : case_skip(p, JSON_KEY);
        if (code)
            return code;
    }
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

static enum plumb_code parse_given_outputs(struct case_parser *p, void *into)
{
    struct case_results *out = into;
    return parse_given(p, &out->outputs, &out->n_outputs);
}

static enum plumb_code parse_given_grads(struct case_parser *p, void *into)
{
    struct case_results *out = into;
    return parse_given(p, &out->grads, &out->n_grads);
}

enum plumb_code case_parse_results(const struct case_file *file, size_t i, struct arena *arena,
                                   struct case_results *out, struct plumb_error *err)
{
    struct case_parser p = {.arena = arena, .err = err};
    *out = (struct case_results){0};
    return parse_entries(file, i, &p, parse_given_outputs, parse_given_grads, out);
}
