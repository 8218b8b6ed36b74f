/* Texts of a dump.json that come again and again: types, words, shapes. Each is kept once. */
#include "dump/python.h"
#include "dump/reader.h"

#include <string.h>

/* What a field had in the tensor before is what it has in this one, as a rule. */
const char *dump_intern(struct reader *r, const char *text, size_t length, unsigned field)
{
    struct dump_word *last = &r->last[field];
    if (last->text && last->length == length && memcmp(last->text, text, length) == 0)
        return last->text;
    uint64_t *place = map_get(&r->words, text, length);
    if (!place) {
        char *copy = arena_copy(&r->tree->arena, text, length);
        place = copy ? map_put(&r->words, copy, length, NULL) : NULL;
        if (!place)
            return NULL;
        *place = (uintptr_t)copy;
    }
    *last = (struct dump_word){(const char *)(uintptr_t)*place, length};
    return last->text;
}

const char *dump_text(struct reader *r, enum json_event event)
{
    if (event == JSON_STRING && !r->json.escaped)
        return arena_copy(&r->tree->arena, r->json.text, r->json.length);
    r->text.size = 0;
    if (!python_text(&r->json, event, &r->text) || r->text.failed)
        return NULL;
    return arena_copy(&r->tree->arena, r->text.data ? r->text.data : "", r->text.size);
}

const char *dump_word(struct reader *r, enum json_event event, unsigned field)
{
    if (event == JSON_STRING && !r->json.escaped)
        return dump_intern(r, r->json.text, r->json.length, field);
    if (event == JSON_TRUE || event == JSON_FALSE)
        return event == JSON_TRUE ? "True" : "False";
    r->text.size = 0;
    if (!python_text(&r->json, event, &r->text) || r->text.failed)
        return NULL;
    return dump_intern(r, r->text.data ? r->text.data : "", r->text.size, field);
}

/* The sizes of the list that the parser has just entered; left alone where something else than
 * integers is in it: then only its text is kept. */
static bool read_dims(struct reader *r, struct json json, struct dump_shape *shape)
{
    struct json again = json;
    enum json_event event;
    size_t count = 0;
    int64_t value;
    while ((event = json_next(&json)) == JSON_NUMBER && json_int64(&json, &value))
        count++;
    if (event != JSON_ARRAY_END)
        return true;
    int64_t *dims = arena_array(&r->tree->arena, count, sizeof *dims);
    for (size_t i = 0; dims && i < count; i++) {
        json_next(&again);
        json_int64(&again, &dims[i]);
    }
    shape->ndim = count;
    shape->dims = dims;
    return dims;
}

/* They are told apart by how they are written: what is in the file again need not be understood
 * again. */
const struct dump_shape *dump_shape(struct reader *r, enum json_event event)
{
    const struct json start = r->json;
    if (event == JSON_ARRAY && json_skip_same(&r->json, &r->shape_span))
        return r->shape;
    if (!json_skip(&r->json, event))
        return NULL;
    const struct json_span span = json_span_from(&r->json, start.start);
    bool added;
    uint64_t *place = map_put(&r->shapes, (const char *)span.text, span.length, &added);
    if (place && !added) {
        r->shape = (const struct dump_shape *)(uintptr_t)*place;
        r->shape_span = span;
    }
    if (!place || !added)
        return place ? r->shape : NULL;

    struct dump_shape *shape = arena_alloc(&r->tree->arena, sizeof *shape);
    if (!shape)
        return NULL;
    *place = (uintptr_t)shape;
    r->json = start;
    shape->text = dump_word(r, event, 0);
    return shape->text && (event != JSON_ARRAY || read_dims(r, start, shape)) ? shape : NULL;
}
