/* The JSON pull parser. */
#include "base/json.h"

#include "base/digits8.h"

#include <string.h>

enum state {
    STATE_VALUE,      /* a value must follow */
    STATE_FIRST_ITEM, /* a value or ] */
    STATE_FIRST_KEY,  /* a key or } */
    STATE_AFTER,      /* a comma or the end of the container */
    STATE_DONE,
};

static const uint64_t ones = 0x0101010101010101u;
static const uint64_t tops = 0x8080808080808080u;

void json_init(struct json *json, const void *bytes, size_t size)
{
    const uint8_t *begin = size ? bytes : (const uint8_t *)"";
    *json = (struct json){.text = "", .begin = begin, .next = begin, .end = begin + size};
}

static enum json_event fail(struct json *json, enum json_error error, const uint8_t *at)
{
    json->error = error;
    json->error_at = (uint64_t)(at - json->begin);
    return JSON_ERROR;
}

static uint64_t load(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Python indents with runs of spaces, hence the step of eight. */
static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p <= ' ') {
        if (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
            break;
        p++;
        while (end - p >= 8 && load(p) == ones * ' ')
            p += 8;
    }
    return p;
}

/* The first quote, backslash or control character. */
static const uint8_t *find_special(const uint8_t *p, const uint8_t *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word = load(p);
        uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
        uint64_t hit = (((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                        ((word - ones * ' ') & ~word)) &
                       tops;
        if (hit) {
            /* A borrow can only mark bytes above a true one, so the lowest mark is right. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return p + __builtin_ctzll(hit) / 8;
#else
            break;
#endif
        }
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= ' ')
        p++;
    return p;
}

static int hex_digit(int c)
{
    if (is_digit(c))
        return c - '0';
    c |= 'a' - 'A';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The end of the escape that starts at p, or NULL after a failure. */
static const uint8_t *scan_escape(struct json *json, const uint8_t *p)
{
    const uint8_t *start = p++;
    if (p == json->end) {
        fail(json, JSON_E_END, p);
        return NULL;
    }
    switch (*p++) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return p;
    case 'u':
        for (int i = 0; i < 4; i++, p++) {
            if (p == json->end) {
                fail(json, JSON_E_END, p);
                return NULL;
            }
            if (hex_digit(*p) < 0)
                goto bad;
        }
        return p;
    default:
        break;
    }
bad:
    fail(json, JSON_E_ESCAPE, start);
    return NULL;
}

/* next stands on the opening quote; leaves it behind the closing one. */
static bool scan_string(struct json *json)
{
    const uint8_t *start = json->next + 1, *p = start;
    bool escaped = false;
    for (;;) {
        p = find_special(p, json->end);
        if (p == json->end)
            return fail(json, JSON_E_END, p);
        if (*p == '"')
            break;
        if (*p != '\\')
            return fail(json, JSON_E_CONTROL, p);
        escaped = true;
        p = scan_escape(json, p);
        if (!p)
            return false;
    }
    json->text = (const char *)start;
    json->length = (size_t)(p - start);
    json->escaped = escaped;
    json->next = p + 1;
    return true;
}

static const uint8_t *scan_digits(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 8 && digits8_are(load(p)))
        p += 8;
    while (p < end && is_digit(*p))
        p++;
    return p;
}

static bool scan_word(struct json *json, const uint8_t *p, const char *word)
{
    const uint8_t *start = json->next;
    for (; *word; word++, p++) {
        if (p == json->end)
            return fail(json, JSON_E_END, p);
        if (*p != (uint8_t)*word)
            return fail(json, JSON_E_VALUE, start);
    }
    json->text = (const char *)start;
    json->length = (size_t)(p - start);
    json->escaped = false;
    json->next = p;
    return true;
}

static bool scan_number(struct json *json)
{
    const uint8_t *p = json->next, *end = json->end;
    if (*p == '-') {
        p++;
        if (p < end && *p == 'I')
            return scan_word(json, p, "Infinity");
    }
    const uint8_t *digits = p;
    p = scan_digits(p, end);
    if (p == digits)
        return fail(json, p == end ? JSON_E_END : JSON_E_NUMBER, p);
    if (*digits == '0' && p - digits > 1)
        return fail(json, JSON_E_NUMBER, digits + 1);
    if (p < end && *p == '.') {
        digits = ++p;
        p = scan_digits(p, end);
        if (p == digits)
            return fail(json, p == end ? JSON_E_END : JSON_E_NUMBER, p);
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = scan_digits(p, end);
        if (p == digits)
            return fail(json, p == end ? JSON_E_END : JSON_E_NUMBER, p);
    }
    json->text = (const char *)json->next;
    json->length = (size_t)(p - json->next);
    json->escaped = false;
    json->next = p;
    return true;
}

static bool in_object(const struct json *json)
{
    unsigned level = json->depth - 1;
    return json->objects[level / 64] >> (level % 64) & 1;
}

static enum json_event open_container(struct json *json, bool object)
{
    unsigned level = json->depth;
    if (level == JSON_MAX_DEPTH)
        return fail(json, JSON_E_DEPTH, json->next);
    uint64_t bit = (uint64_t)1 << (level % 64);
    if (object)
        json->objects[level / 64] |= bit;
    else
        json->objects[level / 64] &= ~bit;
    json->depth = level + 1;
    json->next++;
    json->state = object ? STATE_FIRST_KEY : STATE_FIRST_ITEM;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static enum json_event close_container(struct json *json)
{
    bool object = in_object(json);
    json->depth--;
    json->next++;
    json->state = json->depth ? STATE_AFTER : STATE_DONE;
    return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static enum json_event read_key(struct json *json)
{
    if (*json->next != '"')
        return fail(json, JSON_E_KEY, json->next);
    if (!scan_string(json))
        return JSON_ERROR;
    const uint8_t *p = skip_space(json->next, json->end);
    if (p == json->end)
        return fail(json, JSON_E_END, p);
    if (*p != ':')
        return fail(json, JSON_E_COLON, p);
    json->next = p + 1;
    json->state = STATE_VALUE;
    return JSON_KEY;
}

static enum json_event read_value(struct json *json)
{
    enum json_event event;
    bool good;
    switch (*json->next) {
    case '{':
        return open_container(json, true);
    case '[':
        return open_container(json, false);
    case '"':
        good = scan_string(json);
        event = JSON_STRING;
        break;
    case 't':
        good = scan_word(json, json->next, "true");
        event = JSON_TRUE;
        break;
    case 'f':
        good = scan_word(json, json->next, "false");
        event = JSON_FALSE;
        break;
    case 'n':
        good = scan_word(json, json->next, "null");
        event = JSON_NULL;
        break;
    case 'N':
        good = scan_word(json, json->next, "NaN");
        event = JSON_NUMBER;
        break;
    case 'I':
        good = scan_word(json, json->next, "Infinity");
        event = JSON_NUMBER;
        break;
    default:
        if (*json->next != '-' && !is_digit(*json->next))
            return fail(json, JSON_E_VALUE, json->next);
        good = scan_number(json);
        event = JSON_NUMBER;
        break;
    }
    if (!good)
        return JSON_ERROR;
    json->state = json->depth ? STATE_AFTER : STATE_DONE;
    return event;
}

enum json_event json_next(struct json *json)
{
    if (json->error)
        return JSON_ERROR;
    json->next = skip_space(json->next, json->end);
    json->start = (uint64_t)(json->next - json->begin);
    if (json->next == json->end)
        return json->state == STATE_DONE ? JSON_END : fail(json, JSON_E_END, json->end);

    int c = *json->next;
    if (json->state == STATE_AFTER) {
        bool object = in_object(json);
        if (c == (object ? '}' : ']'))
            return close_container(json);
        if (c != ',')
            return fail(json, JSON_E_COMMA, json->next);
        json->next = skip_space(json->next + 1, json->end);
        json->start = (uint64_t)(json->next - json->begin);
        if (json->next == json->end)
            return fail(json, JSON_E_END, json->end);
        return object ? read_key(json) : read_value(json);
    }
    switch ((enum state)json->state) {
    case STATE_FIRST_KEY:
        return c == '}' ? close_container(json) : read_key(json);
    case STATE_FIRST_ITEM:
        return c == ']' ? close_container(json) : read_value(json);
    case STATE_DONE:
        return fail(json, JSON_E_TRAILING, json->next);
    default:
        return read_value(json);
    }
}

bool json_skip(struct json *json, enum json_event event)
{
    if (event == JSON_KEY)
        event = json_next(json);
    if (event == JSON_OBJECT || event == JSON_ARRAY) {
        unsigned outside = json->depth - 1;
        while (json->depth > outside)
            if (json_next(json) == JSON_ERROR)
                return false;
    }
    return !json->error;
}

/* Is what follows p written like this? */
static bool repeats(const struct json *json, const uint8_t *p, const struct json_span *span)
{
    return span->length && (size_t)(json->end - p) >= span->length &&
           memcmp(p, span->text, span->length) == 0;
}

bool json_repeats_string(const struct json *json, const struct json_span *span)
{
    if (json->state != span->state || !in_object(json) || !repeats(json, json->next, span))
        return false;
    const uint8_t *value = skip_space(json->next + span->length, json->end);
    return value < json->end && *value == '"';
}

enum json_event json_next_key(struct json *json, struct json_span *span, bool *same)
{
    /* What the parser makes of the same bytes in the same state is the same: nothing is lost. */
    *same = json->state == span->state && !json->error && in_object(json) &&
            repeats(json, json->next, span);
    if (*same) {
        json->next += span->length;
        json->state = STATE_VALUE;
        return JSON_KEY;
    }
    const struct json_span before = {.text = json->next, .state = json->state};
    const enum json_event event = json_next(json);
    if (event == JSON_KEY) {
        *span = before;
        span->length = (size_t)(json->next - before.text);
    }
    return event;
}

bool json_skip_same(struct json *json, const struct json_span *span)
{
    const uint8_t *begin = json->begin + json->start;
    if (json->state != STATE_FIRST_ITEM || !repeats(json, begin, span))
        return false;
    json->next = begin + span->length;
    json->depth--;
    json->state = json->depth ? STATE_AFTER : STATE_DONE;
    return true;
}

struct json_span json_span_from(const struct json *json, uint64_t start)
{
    const uint8_t *begin = json->begin + start;
    return (struct json_span){.text = begin, .length = (size_t)(json->next - begin)};
}

enum plumb_code json_fail(const struct json *json, uint64_t base, struct plumb_error *err)
{
    static const char *const text[] = {
        [JSON_OK] = "no error",
        [JSON_E_END] = "the JSON text ends in the middle of a value",
        [JSON_E_VALUE] = "expected a JSON value here",
        [JSON_E_KEY] = "expected a key in double quotes here",
        [JSON_E_COLON] = "expected a colon after the key",
        [JSON_E_COMMA] = "expected a comma or the end of the list here",
        [JSON_E_TRAILING] = "unexpected text after the end of the JSON value",
        [JSON_E_NUMBER] = "malformed number",
        [JSON_E_CONTROL] = "a string holds an unescaped control character",
        [JSON_E_ESCAPE] = "a string holds an unknown escape",
        [JSON_E_SURROGATE] = "a string holds half of a surrogate pair",
        [JSON_E_DEPTH] = "arrays and objects are nested too deeply",
    };
    _Static_assert(sizeof text / sizeof *text == JSON_ERROR_COUNT, "a text for each error");
    return plumb_fail_at(err, PLUMB_E_FORMAT, base + json->error_at, "%s", text[json->error]);
}
