/* Lists and plain values of a call, and how its reader complains. */
#include "dump/call_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum plumb_code case_fail(const struct case_parser *p, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return plumb_fail_at(p->err, PLUMB_E_FORMAT, p->base + p->json.start, "%s", text);
}

enum plumb_code case_damaged(const struct case_parser *p)
{
    return json_fail(&p->json, p->base, p->err);
}

enum plumb_code case_no_memory(const struct case_parser *p)
{
    return plumb_no_memory(p->err);
}

enum plumb_code case_skip(struct case_parser *p, enum json_event event)
{
    return json_skip(&p->json, event) ? PLUMB_OK : case_damaged(p);
}

enum plumb_code case_text(struct case_parser *p, const char **out)
{
    struct json decoding = p->json;
    size_t length;
    const char *text = json_copy(&decoding, p->arena, &length);
    if (decoding.error || (text && strlen(text) != length))
        text = arena_copy(p->arena, p->json.text, p->json.length);
    *out = text;
    return text ? PLUMB_OK : case_no_memory(p);
}

void *case_grow(struct case_parser *p, void *items, size_t count, size_t size)
{
    if (count && (count < 4 || (count & (count - 1))))
        return items;
    void *grown = arena_array(p->arena, count < 4 ? 4 : count * 2, size);
    if (grown && count)
        memcpy(grown, items, count * size);
    return grown;
}

enum plumb_code case_enter(struct case_parser *p)
{
    return ++p->depth > CASE_MAX_NESTING
               ? case_fail(p, "arguments are nested deeper than %d levels", CASE_MAX_NESTING)
               : PLUMB_OK;
}

void case_leave(struct case_parser *p)
{
    p->depth--;
}

enum plumb_code case_count_item(struct case_parser *p)
{
    return ++p->items > CASE_MAX_ITEMS
               ? case_fail(p, "more than %d arguments in one call", CASE_MAX_ITEMS)
               : PLUMB_OK;
}

enum plumb_code case_items(struct case_parser *p, case_reader *read, struct case_list *list)
{
    enum json_event event;
    enum plumb_code code = case_enter(p);
    list->items = NULL;
    list->count = 0;
    while (!code && (event = json_next(&p->json)) != JSON_ARRAY_END) {
        if (event == JSON_ERROR)
            return case_damaged(p);
        list->items = case_grow(p, list->items, list->count, list->size);
        if (!list->items)
            return case_no_memory(p);
        code = case_count_item(p);
        if (!code)
            code = read(p, event, (char *)list->items + list->count++ * list->size);
    }
    case_leave(p);
    return code;
}

/* The rest of an array whose elements are arguments. */
static enum plumb_code plain_items(struct case_parser *p, struct case_arg *out)
{
    struct case_list list = {.size = sizeof *out->items};
    enum plumb_code code = case_items(p, case_plain, &list);
    out->items = list.items;
    out->n_items = list.count;
    return code;
}

bool case_is_integer(const struct json *json)
{
    for (size_t i = 0; i < json->length; i++)
        if (json->text[i] != '-' && (json->text[i] < '0' || json->text[i] > '9'))
            return false;
    return true;
}

enum plumb_code case_plain(struct case_parser *p, enum json_event event, void *into)
{
    struct case_arg *out = into;
    struct plumb_arg *value = &out->value;
    *out = (struct case_arg){.value = {.kind = PLUMB_ARG_NONE}};
    switch (event) {
    case JSON_NULL:
        return PLUMB_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        value->kind = PLUMB_ARG_BOOL;
        value->integer = event == JSON_TRUE;
        return PLUMB_OK;
    case JSON_NUMBER:
        value->kind = PLUMB_ARG_INT;
        if (json_int64(&p->json, &value->integer))
            return PLUMB_OK;
        value->kind = case_is_integer(&p->json) ? PLUMB_ARG_OTHER : PLUMB_ARG_FLOAT;
        value->number = json_double(&p->json);
        return value->kind == PLUMB_ARG_OTHER ? case_text(p, &value->text) : PLUMB_OK;
    case JSON_STRING:
        value->kind = PLUMB_ARG_TEXT;
        return case_text(p, &value->text);
    case JSON_ARRAY:
        value->kind = PLUMB_ARG_LIST;
        return plain_items(p, out);
    default:
        value->kind = PLUMB_ARG_OTHER;
        return case_skip(p, event);
    }
}
