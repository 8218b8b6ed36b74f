/* A JSON pull parser over bytes that somebody else holds: no heap, no copies, each call to
 * json_next yields one event. Takes what Python's json module writes, the bare words NaN, Infinity
 * and -Infinity included. UTF-8 is passed through unchecked.
 *
 *     struct json json;
 *     json_init(&json, bytes, size);
 *     for (enum json_event e; (e = json_next(&json)) > JSON_END;)
 *         ...
 *     if (json.error)
 *         return json_fail(&json, 0, err);
 * / */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>

enum { JSON_MAX_DEPTH = 512, JSON_MAX_IS = 32 };

enum json_event {
    JSON_ERROR, /* error and error_at say what and where; every further call says it again */
    JSON_END,   /* the one value is over, and nothing but white space follows */
    JSON_OBJECT,
    JSON_OBJECT_END,
    JSON_ARRAY,
    JSON_ARRAY_END,
    JSON_KEY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

enum json_error {
    JSON_OK,
    JSON_E_END,       /* the bytes end before the value does */
    JSON_E_VALUE,     /* something else where a value must stand */
    JSON_E_KEY,       /* something else where a quoted key must stand */
    JSON_E_COLON,     /* something else after a key */
    JSON_E_COMMA,     /* something else after a value */
    JSON_E_TRAILING,  /* more text after the value */
    JSON_E_NUMBER,    /* a malformed number */
    JSON_E_CONTROL,   /* a control character inside a string */
    JSON_E_ESCAPE,    /* an escape JSON does not have */
    JSON_E_SURROGATE, /* half of a surrogate pair (found by json_unescape) */
    JSON_E_DEPTH,     /* nested deeper than JSON_MAX_DEPTH */
    JSON_ERROR_COUNT
};

struct json {
    /* Of the last key, string (without quotes, escapes as written) or number. */
    const char *text;
    size_t length;
    bool escaped;   /* the string holds a backslash: json_unescape it */
    uint64_t start; /* byte position where the last event begins */
    unsigned depth; /* arrays and objects that are open */

    enum json_error error;
    uint64_t error_at;

    /* The scanner's own. */
    const uint8_t *begin, *next, *end;
    int state;
    uint64_t objects[JSON_MAX_DEPTH / 64]; /* which open levels are objects */
};

void json_init(struct json *json, const void *bytes, size_t size);

enum json_event json_next(struct json *json);

/* Skips the value that event belongs to: after JSON_KEY the value of that key, after JSON_OBJECT or
 * JSON_ARRAY up to its end; a scalar is already behind us. False on error. */
bool json_skip(struct json *json, enum json_event event);

/* A piece of the text, which a program that writes thousands of the same kind repeats byte for
 * byte. All zero: none yet. */
struct json_span {
    const uint8_t *text;
    size_t length;
    int state; /* the parser's, before it */
};

/* json_next inside of an object. Where the text up to the colon of the next key repeats the span,
 * it is stepped over: *same, JSON_KEY, and text, length and start are not set. Else the span
 * becomes what was read, when that is a key. */
enum json_event json_next_key(struct json *json, struct json_span *span, bool *same);

/* Inside of an object: would json_next_key find the same key, and a string as its value? */
bool json_repeats_string(const struct json *json, const struct json_span *span);

/* After JSON_ARRAY: skips an array that repeats the span of one that was read before, and says
 * so. */
bool json_skip_same(struct json *json, const struct json_span *span);

/* What was read from a byte position on. */
struct json_span json_span_from(const struct json *json, uint64_t start);

/* True when the last key or string, unescaped, is this text of at most JSON_MAX_IS bytes. */
bool json_is(const struct json *json, const char *text);

/* Decodes the last key or string into out, which needs json->length bytes; *length is what it came
 * to. False, with error set, when it holds half of a surrogate pair. */
bool json_unescape(struct json *json, char *out, size_t *length);

/* The same into the arena, with a NUL behind it. NULL with error set as above, or, with error
 * JSON_OK, when out of memory. */
char *json_copy(struct json *json, struct arena *arena, size_t *length);

/* The last number as an integer: false when it has a fraction or an exponent or does not fit. */
bool json_int64(const struct json *json, int64_t *value);

/* The last number, correctly rounded whatever the locale; too large is infinity. */
double json_double(const struct json *json);

/* Turns the error into a PLUMB_E_FORMAT, base bytes further on. */
enum plumb_code json_fail(const struct json *json, uint64_t base, struct plumb_error *err);

#endif
