/* Arguments: literals as dump.json has them, lists, and references. */
#include "task/passcheck/parse.h"

enum plumb_code passcheck_parse_text(struct case_parser *p, const char *what, const char **out)
{
    const enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_STRING || p->json.length == 0)
        return case_fail(p, "\"%s\" must be a text in quotes that is not empty", what);
    return case_text(p, out);
}

/* The rest of {"ref": NAME, "index": N}. */
static enum plumb_code parse_ref(struct case_parser *p, struct passcheck_arg *out)
{
    enum plumb_code code = PLUMB_OK;
    enum json_event event;
    while ((event = json_next(&p->json)) == JSON_KEY && !code) {
        if (json_is(&p->json, "ref")) {
            code = passcheck_parse_text(p, "ref", &out->ref);
        } else if (json_is(&p->json, "index")) {
            event = json_next(&p->json);
            if (event != JSON_NUMBER || !json_int64(&p->json, &out->index) ||
                out->index == PASSCHECK_WHOLE)
                code = event == JSON_ERROR
                           ? case_damaged(p)
                           : case_fail(p, "\"index\" must be the number of a result");
        } else {
            code = case_fail(p, "a reference has \"ref\" and \"index\", not \"%.*s\"",
                             p->json.length < 40 ? (int)p->json.length : 40, p->json.text);
        }
    }
    if (code)
        return code;
    return event == JSON_OBJECT_END ? PLUMB_OK : case_damaged(p);
}

/* What json has just entered, by its keys. */
enum object { OBJECT_OTHER, OBJECT_REF, OBJECT_TYPED };

static enum object look_inside(struct json json)
{
    while (json_next(&json) == JSON_KEY) {
        if (json_is(&json, "ref"))
            return OBJECT_REF;
        if (json_is(&json, "type"))
            return OBJECT_TYPED;
        if (!json_skip(&json, JSON_KEY))
            break;
    }
    return OBJECT_OTHER;
}

/* Literals come without descriptions of tensors: those are named at the top of the file. */
static enum plumb_code take_literal(struct case_parser *p, const struct case_arg *from,
                                    struct passcheck_arg *out)
{
    const char *text = from->value.text;
    if (from->tensor)
        return case_fail(p, "a tensor is described under inputs, parameters or buffers and stands "
                            "here by its name: {\"ref\": NAME}");
    if (from->value.kind == PLUMB_ARG_OTHER)
        return case_fail(p, "'%.60s' is nothing that an operator takes", text ? text : "an object");
    *out = (struct passcheck_arg){.value = from->value, .n_items = from->n_items};
    if (!from->n_items)
        return PLUMB_OK;
    out->items = arena_array(p->arena, from->n_items, sizeof *out->items);
    if (!out->items)
        return case_no_memory(p);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < from->n_items && !code; k++)
        code = take_literal(p, &from->items[k], &out->items[k]);
    return code;
}

static case_reader parse_arg;

static enum plumb_code parse_items(struct case_parser *p, struct passcheck_arg **out, size_t *count)
{
    struct case_list list = {.size = sizeof **out};
    enum plumb_code code = case_items(p, parse_arg, &list);
    *out = list.items;
    *count = list.count;
    return code;
}

/* The rest of an object. */
static enum plumb_code parse_object(struct case_parser *p, struct passcheck_arg *out)
{
    struct case_arg literal = {0};
    enum plumb_code code;
    switch (look_inside(p->json)) {
    case OBJECT_REF:
        return parse_ref(p, out);
    case OBJECT_TYPED:
        code = case_typed(p, &literal);
        return code ? code : take_literal(p, &literal, out);
    default:
        return case_fail(p, "an object here is {\"ref\": NAME}, or {\"type\": ..., \"value\": "
                            "...} as in a dump.json");
    }
}

static enum plumb_code parse_arg(struct case_parser *p, enum json_event event, void *into)
{
    struct passcheck_arg *out = into;
    struct case_arg literal;
    enum plumb_code code;
    *out = (struct passcheck_arg){.index = PASSCHECK_WHOLE, .at = p->json.start};
    switch (event) {
    case JSON_ERROR:
        return case_damaged(p);
    case JSON_ARRAY:
        out->value.kind = PLUMB_ARG_LIST;
        return parse_items(p, &out->items, &out->n_items);
    case JSON_OBJECT:
        return parse_object(p, out);
    default:
        code = case_plain(p, event, &literal);
        return code ? code : take_literal(p, &literal, out);
    }
}

enum plumb_code passcheck_parse_arg(struct case_parser *p, enum json_event event,
                                    struct passcheck_arg *out)
{
    return parse_arg(p, event, out);
}

enum plumb_code passcheck_parse_args(struct case_parser *p, const char *what,
                                     struct passcheck_arg **out, size_t *count)
{
    const enum json_event event = json_next(&p->json);
    if (event == JSON_ARRAY)
        return parse_items(p, out, count);
    return event == JSON_ERROR ? case_damaged(p) : case_fail(p, "\"%s\" must be a list", what);
}
