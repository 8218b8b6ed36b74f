/* Python expressions for recorded arguments; what cannot be made again is refused. */
#include "task/unittest/code.h"

#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Python refuses to parse brackets nested deeper than some 200, and integers of thousands of
 * digits: one such argument would take its whole module with it. */
enum { MAX_DEPTH = 32, MAX_DIGITS = 40, MAX_ITEMS = 1 << 18, MAX_RANK = 64 };

struct writer {
    struct buf *out;
    struct json *json;
    char *refused;
    unsigned depth;
    size_t items;
};

void code_string(struct buf *out, const char *text, size_t length)
{
    buf_text(out, "\"");
    for (size_t i = 0; i < length;) {
        char c = text[i];
        if (c == '"' || c == '\\') {
            buf_printf(out, "\\%c", c);
            i++;
        } else if (c >= ' ' && c < 127) {
            buf_append(out, &text[i++], 1);
        } else {
            char rest[5] = {0}; /* a NUL behind what there is */
            memcpy(rest, text + i, length - i < 4 ? length - i : 4);
            struct utf8_char wide = {0};
            if (*rest)
                wide = utf8_next(rest);
            if (wide.valid && wide.size > 1) {
                buf_printf(out, "\\U%08x", wide.code);
                i += wide.size;
            } else {
                buf_printf(out, "\\x%02x", (unsigned char)text[i++]);
            }
        }
    }
    buf_text(out, "\"");
}

void code_clean(struct buf *out, const char *text, size_t length, const char *also, size_t most)
{
    for (size_t i = 0; i < length && i < most; i++) {
        char c = text[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c && strchr(also, c));
        buf_append(out, good ? &c : "_", 1);
    }
}

static bool refuse(struct writer *w, const char *what, const char *text, size_t length)
{
    int shown = length < 60 ? (int)length : 60;
    snprintf(w->refused, CODE_REASON, "%s%.*s", what, shown, text);
    return false;
}

static bool write_text(struct writer *w)
{
    struct json decoding = *w->json;
    char *text = malloc(decoding.length + 1);
    size_t length = 0;
    if (!text) {
        w->out->failed = true;
        return true;
    }
    if (!json_unescape(&decoding, text, &length)) {
        memcpy(text, w->json->text, w->json->length);
        length = w->json->length;
    }
    code_string(w->out, text, length);
    free(text);
    return true;
}

static bool write_number(struct writer *w)
{
    const struct json *json = w->json;
    char text[NUMBER_BYTES];
    size_t digits = 0;
    while (digits < json->length && strchr("-0123456789", json->text[digits]))
        digits++;
    if (digits == json->length && json->length <= MAX_DIGITS) {
        buf_append(w->out, json->text, json->length);
        return true;
    }
    if (digits == json->length)
        return refuse(w, "an integer too large to be an argument: ", json->text, json->length);
    double value = json_double(json);
    if (isfinite(value)) {
        number_exact(value, true, text);
        buf_text(w->out, text);
    } else {
        buf_printf(w->out, "float(\"%s\")", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    }
    return true;
}

static bool write_argument(struct writer *w, enum json_event event);

/* The rest of an array. */
static bool write_list(struct writer *w)
{
    enum json_event event;
    const char *between = "";
    buf_text(w->out, "[");
    while ((event = json_next(w->json)) != JSON_ARRAY_END) {
        buf_text(w->out, between);
        if (!write_argument(w, event))
            return false;
        between = ", ";
    }
    buf_text(w->out, "]");
    return true;
}

/* The rest of an object without a type. */
static bool write_dict(struct writer *w)
{
    const char *between = "";
    buf_text(w->out, "{");
    while (json_next(w->json) == JSON_KEY) {
        buf_text(w->out, between);
        write_text(w);
        buf_text(w->out, ": ");
        if (!write_argument(w, json_next(w->json)))
            return false;
        between = ", ";
    }
    buf_text(w->out, "}");
    return true;
}

/* A member of the object that `object` has just entered: *at stands behind the event that its value
 * begins with. Of members with the same name the last counts. */
static bool find(const struct json *object, const char *key, struct json *at,
                 enum json_event *event)
{
    struct json json = *object;
    bool found = false;
    while (json_next(&json) == JSON_KEY) {
        bool here = json_is(&json, key);
        enum json_event e = json_next(&json);
        if (here) {
            found = true;
            *at = json;
            *event = e;
        }
        if (!json_skip(&json, e))
            break;
    }
    return found;
}

/* Whole numbers of at least 0; false when it holds anything else. */
static bool read_sizes(struct json json, enum json_event event, int64_t sizes[MAX_RANK],
                       unsigned *rank)
{
    *rank = 0;
    if (event != JSON_ARRAY)
        return false;
    while ((event = json_next(&json)) != JSON_ARRAY_END) {
        if (event != JSON_NUMBER || *rank == MAX_RANK || !json_int64(&json, &sizes[*rank]) ||
            sizes[*rank] < 0)
            return false;
        ++*rank;
    }
    return true;
}

static void write_sizes(struct buf *out, const int64_t *sizes, unsigned rank)
{
    buf_text(out, "[");
    for (unsigned k = 0; k < rank; k++)
        buf_printf(out, "%s%lld", k ? ", " : "", (long long)sizes[k]);
    buf_text(out, "]");
}

static bool is_dense(const int64_t *shape, const int64_t *stride, unsigned rank)
{
    int64_t step = 1;
    for (unsigned k = rank; k-- > 0;) {
        if (shape[k] != 1 && stride[k] != step)
            return false;
        if (__builtin_mul_overflow(step, shape[k], &step))
            return false;
    }
    return true;
}

static bool write_limit(struct writer *w, const struct json *object, const char *key,
                        const char *name)
{
    struct json at;
    enum json_event event;
    if (!find(object, key, &at, &event))
        return true;
    if (event != JSON_NUMBER && event != JSON_TRUE && event != JSON_FALSE)
        return true;
    buf_printf(w->out, ", %s=", name);
    struct writer inside = *w;
    inside.json = &at;
    return write_argument(&inside, event);
}

static bool write_tensor(struct writer *w, const struct json *object)
{
    struct json at;
    enum json_event event;
    int64_t shape[MAX_RANK], stride[MAX_RANK];
    unsigned rank, strides;
    if (!find(object, "shape", &at, &event) || !read_sizes(at, event, shape, &rank))
        return refuse(w, "a tensor without a usable shape", "", 0);
    bool laid = find(object, "stride", &at, &event) && read_sizes(at, event, stride, &strides) &&
                strides == rank && !is_dense(shape, stride, rank);
    if (!find(object, "dtype", &at, &event) || event != JSON_STRING)
        return refuse(w, "a tensor without a dtype", "", 0);
    struct writer inside = *w;
    inside.json = &at;
    buf_text(w->out, "aten.tensor(");
    write_text(&inside);
    buf_text(w->out, ", ");
    write_sizes(w->out, shape, rank);
    if (laid) {
        buf_text(w->out, ", stride=");
        write_sizes(w->out, stride, rank);
    }
    if (!write_limit(w, object, "Min", "low") || !write_limit(w, object, "Max", "high"))
        return false;
    /* A name that leads elsewhere is none. */
    if (find(object, "data_name", &at, &event) && event == JSON_STRING && at.length &&
        !at.escaped && !memchr(at.text, '/', at.length)) {
        buf_text(w->out, ", file=");
        write_text(&inside);
    }
    buf_text(w->out, ")");
    return true;
}

static bool write_word(struct writer *w, const struct json *object, const char *maker,
                       const char *key)
{
    struct json at;
    enum json_event event;
    if (!find(object, key, &at, &event) || event != JSON_STRING)
        return refuse(w, "an argument without its value: ", maker, strlen(maker));
    struct writer inside = *w;
    inside.json = &at;
    buf_printf(w->out, "aten.%s(", maker);
    write_text(&inside);
    buf_text(w->out, ")");
    return true;
}

/* The items of a list of that many numbers (or None) as arguments of a constructor. */
static bool write_constructor(struct writer *w, const struct json *object, const char *maker,
                              size_t count)
{
    struct json at;
    enum json_event event;
    size_t n = 0;
    bool good = find(object, "value", &at, &event) && event == JSON_ARRAY;
    struct writer inside = *w;
    inside.json = &at;
    buf_printf(w->out, "%s(", maker);
    while (good && (event = json_next(&at)) != JSON_ARRAY_END) {
        buf_text(w->out, n++ ? ", " : "");
        good = event == JSON_NULL || (event == JSON_NUMBER && json_double(&at) < INFINITY);
        good = good && write_argument(&inside, event);
    }
    buf_text(w->out, ")");
    return (good && n == count) || refuse(w, "a damaged ", maker, strlen(maker));
}

static bool write_value(struct writer *w, const struct json *object, const struct json *type)
{
    struct json at;
    enum json_event event;
    if (!find(object, "value", &at, &event) || event == JSON_OBJECT)
        return refuse(w, "an argument of a type that cannot be made again: ", type->text,
                      type->length);
    struct writer inside = *w;
    inside.json = &at;
    return write_argument(&inside, event);
}

static bool write_typed(struct writer *w, const struct json *object, const struct json *type)
{
    static const char *const plain[] = {"int", "float", "bool", "str", "torch.Size"};
    if (json_is(type, "torch.Tensor") || json_is(type, "torch.nn.parameter.Parameter"))
        return write_tensor(w, object);
    if (json_is(type, "torch.dtype"))
        return write_word(w, object, "dtype", "value");
    if (json_is(type, "torch.layout"))
        return write_word(w, object, "layout", "value");
    if (json_is(type, "torch.memory_format"))
        return write_word(w, object, "memory_format", "format");
    if (json_is(type, "slice"))
        return write_constructor(w, object, "slice", 3);
    if (json_is(type, "complex"))
        return write_constructor(w, object, "complex", 2);
    if (json_is(type, "torch.device") || json_is(type, "ellipsis") ||
        json_is(type, "torch.Generator")) {
        buf_text(w->out, json_is(type, "torch.device") ? "aten.device"
                         : json_is(type, "ellipsis")   ? "..."
                                                       : "None");
        return true;
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (json_is(type, plain[i]))
            return write_value(w, object, type);
    return refuse(w, "an argument of a type that cannot be made again: ", type->text, type->length);
}

static bool write_object(struct writer *w)
{
    const struct json object = *w->json;
    struct json type;
    enum json_event event;
    if (!find(&object, "type", &type, &event) || event != JSON_STRING)
        return write_dict(w);
    return write_typed(w, &object, &type) &&
           (json_skip(w->json, JSON_OBJECT) || refuse(w, "damaged", "", 0));
}

static bool write_argument(struct writer *w, enum json_event event)
{
    bool good = true;
    if (++w->items > MAX_ITEMS)
        return refuse(w, "too many values for one call", "", 0);
    if (++w->depth > MAX_DEPTH)
        return refuse(w, "arguments nested too deeply", "", 0);
    switch (event) {
    case JSON_NULL:
        buf_text(w->out, "None");
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        buf_text(w->out, event == JSON_TRUE ? "True" : "False");
        break;
    case JSON_NUMBER:
        good = write_number(w);
        break;
    case JSON_STRING:
        good = write_text(w);
        break;
    case JSON_ARRAY:
        good = write_list(w);
        break;
    case JSON_OBJECT:
        good = write_object(w);
        break;
    default:
        good = refuse(w, "a damaged entry", "", 0);
        break;
    }
    w->depth--;
    return good;
}

bool code_argument(struct buf *out, struct json *json, enum json_event event,
                   char refused[CODE_REASON])
{
    struct writer w = {.out = out, .json = json, .refused = refused};
    return write_argument(&w, event);
}
