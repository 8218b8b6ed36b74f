/* Tensors that a graph starts from: type, shape, and where the values come from. */
#include "task/passcheck/parse.h"

#include <math.h>
#include <string.h>

static enum plumb_code parse_dtype(struct case_parser *p, struct passcheck_leaf *leaf)
{
    const char *text;
    enum plumb_code code = passcheck_parse_text(p, "dtype", &text);
    if (code)
        return code;
    leaf->dtype = plumb_dtype_from_name(text);
    leaf->has_dtype = true;
    if (leaf->dtype == PLUMB_DTYPE_COUNT)
        return case_fail(p, "plumb knows no type '%.60s'; write float32, bfloat16, int64, ...",
                         text);
    if (plumb_dtype_info(leaf->dtype)->kind == PLUMB_KIND_COMPLEX ||
        plumb_dtype_info(leaf->dtype)->bits < 8)
        return case_fail(p, "operators of plumb do not compute with %.60s", text);
    return PLUMB_OK;
}

static enum plumb_code parse_shape(struct case_parser *p, struct passcheck_leaf *leaf)
{
    enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_ARRAY)
        return case_fail(p, "\"shape\" must be a list of sizes");
    leaf->rank = 0;
    leaf->has_shape = true;
    while ((event = json_next(&p->json)) != JSON_ARRAY_END) {
        if (event == JSON_ERROR)
            return case_damaged(p);
        if (leaf->rank == PLUMB_MAX_RANK)
            return case_fail(p, "a shape of more than %d dimensions", PLUMB_MAX_RANK);
        int64_t *size = &leaf->shape[leaf->rank++];
        if (event != JSON_NUMBER || !json_int64(&p->json, size) || *size < 0)
            return case_fail(p, "a size must be a whole number from 0 on");
    }
    return PLUMB_OK;
}

static enum plumb_code take_number(struct case_parser *p, const char *what, enum json_event event,
                                   struct case_limit *out)
{
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_NUMBER || !isfinite(json_double(&p->json)))
        return case_fail(p, "\"%s\" takes finite numbers", what);
    *out = (struct case_limit){.kind = LIMIT_FLOAT, .number = json_double(&p->json)};
    if (json_int64(&p->json, &out->integer))
        out->kind = LIMIT_INT;
    return PLUMB_OK;
}

static enum plumb_code take_fill(struct case_parser *p, struct passcheck_leaf *leaf,
                                 enum passcheck_fill fill)
{
    if (leaf->has_fill)
        return case_fail(p, "'%.60s' has two of uniform, normal, value and file", leaf->name);
    leaf->fill = fill;
    leaf->has_fill = true;
    return PLUMB_OK;
}

/* [from, to] or [mean, deviation]. */
static enum plumb_code parse_range(struct case_parser *p, const char *what,
                                   enum passcheck_fill fill, struct passcheck_leaf *leaf)
{
    enum plumb_code code = take_fill(p, leaf, fill);
    if (code)
        return code;
    enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_ARRAY)
        return case_fail(p, "\"%s\" must be a list of two numbers", what);
    code = take_number(p, what, json_next(&p->json), &leaf->from);
    if (!code)
        code = take_number(p, what, json_next(&p->json), &leaf->to);
    if (code)
        return code;
    event = json_next(&p->json);
    if (event != JSON_ARRAY_END)
        return event == JSON_ERROR ? case_damaged(p)
                                   : case_fail(p, "\"%s\" takes two numbers, not more", what);
    if (fill == PASSCHECK_UNIFORM && leaf->from.number > leaf->to.number)
        return case_fail(p, "\"uniform\" goes from the smaller number to the larger one");
    if (fill == PASSCHECK_NORMAL && leaf->to.number < 0)
        return case_fail(p, "the deviation of \"normal\" must not be negative");
    return PLUMB_OK;
}

/* One number for all elements, or a number for each in C order. NaN and infinities are welcome. */
static enum plumb_code parse_values(struct case_parser *p, struct passcheck_leaf *leaf)
{
    enum plumb_code code = take_fill(p, leaf, PASSCHECK_VALUES);
    if (code)
        return code;
    enum json_event event = json_next(&p->json);
    const bool list = event == JSON_ARRAY;
    if (list)
        event = json_next(&p->json);
    for (; event != JSON_ARRAY_END; event = json_next(&p->json)) {
        if (event == JSON_ERROR)
            return case_damaged(p);
        if (event != JSON_NUMBER && event != JSON_TRUE && event != JSON_FALSE)
            return case_fail(p, "\"value\" must be a number or a flat list of numbers");
        code = case_count_item(p);
        if (code)
            return code;
        leaf->values = case_grow(p, leaf->values, leaf->n_values, sizeof *leaf->values);
        if (!leaf->values)
            return case_no_memory(p);
        leaf->values[leaf->n_values++] =
            event == JSON_NUMBER ? json_double(&p->json) : (double)(event == JSON_TRUE);
        if (!list) {
            leaf->one_for_all = true;
            break;
        }
    }
    return PLUMB_OK;
}

static enum plumb_code parse_grad(struct case_parser *p, struct passcheck_leaf *leaf)
{
    const enum json_event event = json_next(&p->json);
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_TRUE && event != JSON_FALSE)
        return case_fail(p, "\"requires_grad\" must be true or false");
    leaf->requires_grad = event == JSON_TRUE;
    return PLUMB_OK;
}

static enum plumb_code parse_field(struct case_parser *p, struct passcheck_leaf *leaf)
{
    if (json_is(&p->json, "dtype"))
        return parse_dtype(p, leaf);
    if (json_is(&p->json, "shape"))
        return parse_shape(p, leaf);
    if (json_is(&p->json, "uniform"))
        return parse_range(p, "uniform", PASSCHECK_UNIFORM, leaf);
    if (json_is(&p->json, "normal"))
        return parse_range(p, "normal", PASSCHECK_NORMAL, leaf);
    if (json_is(&p->json, "value"))
        return parse_values(p, leaf);
    if (json_is(&p->json, "requires_grad"))
        return parse_grad(p, leaf);
    if (json_is(&p->json, "key"))
        return passcheck_parse_text(p, "key", &leaf->key);
    if (json_is(&p->json, "file")) {
        enum plumb_code code = take_fill(p, leaf, PASSCHECK_FILE);
        return code ? code : passcheck_parse_text(p, "file", &leaf->file);
    }
    return case_fail(p,
                     "a tensor has dtype, shape, uniform, normal, value, file, key and "
                     "requires_grad, not \"%.*s\"",
                     p->json.length < 40 ? (int)p->json.length : 40, p->json.text);
}

enum plumb_code passcheck_parse_leaf(struct case_parser *p, struct passcheck_leaf *leaf)
{
    enum json_event event = json_next(&p->json);
    leaf->at = p->json.start;
    if (event == JSON_ERROR)
        return case_damaged(p);
    if (event != JSON_OBJECT)
        return case_fail(p, "the description of '%.60s' must be an object", leaf->name);
    while ((event = json_next(&p->json)) == JSON_KEY) {
        enum plumb_code code = parse_field(p, leaf);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return case_damaged(p);
    if (leaf->fill != PASSCHECK_FILE && (!leaf->has_dtype || !leaf->has_shape))
        return case_fail(p, "'%.60s' needs a %s, or a file that has one", leaf->name,
                         leaf->has_dtype ? "shape" : "dtype");
    return PLUMB_OK;
}
