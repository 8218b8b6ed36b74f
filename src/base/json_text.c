/* What the slices of JSON text mean: strings without escapes, numbers. */
#include "base/json.h"

#include "base/digits8.h"
#include "base/shortest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The four hex digits at p, which the scanner has checked. */
static uint32_t hex4(const char *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = p[i];
        value = value << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static char plain_escape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

bool json_unescape(struct json *json, char *out, size_t *length)
{
    const char *p = json->text, *end = p + json->length;
    size_t n = 0;
    while (p < end) {
        const char *slash = json->escaped ? memchr(p, '\\', (size_t)(end - p)) : NULL;
        size_t plain = (size_t)((slash ? slash : end) - p);
        memcpy(out + n, p, plain);
        n += plain;
        if (!slash)
            break;
        p = slash + 2;
        if (slash[1] != 'u') {
            out[n++] = plain_escape(slash[1]);
            continue;
        }
        uint32_t c = hex4(p);
        p += 4;
        if (c >= 0xd800 && c < 0xe000) {
            uint32_t low = end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2) : 0;
            if (c >= 0xdc00 || low < 0xdc00 || low >= 0xe000) {
                json->error = JSON_E_SURROGATE;
                json->error_at = (uint64_t)((const uint8_t *)slash - json->begin);
                return false;
            }
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
        n += put_utf8(out + n, c);
    }
    *length = n;
    return true;
}

char *json_copy(struct json *json, struct arena *arena, size_t *length)
{
    char *copy = arena_alloc(arena, json->length + 1);
    return copy && json_unescape(json, copy, length) ? copy : NULL;
}

bool json_is(const struct json *json, const char *text)
{
    size_t length = strlen(text);
    if (!json->escaped)
        return json->length == length && memcmp(json->text, text, length) == 0;

    char buffer[JSON_MAX_IS * 12];
    struct json copy = *json;
    return json->length <= sizeof buffer && json_unescape(&copy, buffer, &copy.length) &&
           copy.length == length && memcmp(buffer, text, length) == 0;
}

bool json_int64(const struct json *json, int64_t *value)
{
    const char *p = json->text, *end = p + json->length;
    bool negative = p < end && *p == '-';
    p += negative;
    if (p == end)
        return false;
    uint64_t limit = (uint64_t)INT64_MAX + negative, sum = 0;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        uint64_t digit = (uint64_t)(*p - '0');
        if (sum > (limit - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

/* A number as digits * 10^exponent. More significant digits than any double can tell apart are
 * folded into the last one, which keeps ties on the right side. */
enum { MAX_DIGITS = 780 };

struct long_decimal {
    char digits[MAX_DIGITS];
    int count;
    int64_t exponent;
};

static void read_decimal(struct long_decimal *out, const char *p, const char *end)
{
    bool fraction = false;
    out->count = 0;
    out->exponent = 0;
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        if (out->count < MAX_DIGITS) {
            if (out->count || *p != '0')
                out->digits[out->count++] = *p;
            out->exponent -= fraction;
        } else {
            if (*p != '0')
                out->digits[MAX_DIGITS - 1] = '1';
            out->exponent += !fraction;
        }
    }
    if (p == end)
        return;
    p++;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    int64_t exponent = 0;
    for (; p < end; p++)
        if (exponent < INT64_MAX / 100)
            exponent = exponent * 10 + (*p - '0');
    out->exponent += negative ? -exponent : exponent;
}

static double convert_exactly(const char *p, const char *end)
{
    struct long_decimal d;
    read_decimal(&d, p, end);
    if (!d.count)
        return 0;
    /* Without a decimal point the text means the same to strtod in every locale. */
    char text[MAX_DIGITS + 16];
    int exponent = d.exponent > 9999 ? 9999 : d.exponent < -9999 ? -9999 : (int)d.exponent;
    snprintf(text, sizeof text, "%.*se%d", d.count, d.digits, exponent);
    return strtod(text, NULL);
}

/* Numbers of up to 19 digits, as all are that a program wrote; false: the long way. */
static bool convert_fast(const char *p, const char *end, double *value)
{
    enum { MOST = 19, LONGEST = 64 }; /* MOST: digits that fit into 64 bits */
    if (end - p > LONGEST)
        return false;
    struct decimal d = {0};
    const char *point = NULL;
    for (; p < end && (*p == '0' || *p == '.'); p++)
        point = *p == '.' ? p : point;
    const char *first = p;
    for (;; p++) {
        uint64_t word;
        for (; end - p >= 8 && (memcpy(&word, p, 8), digits8_are(word)); p += 8)
            d.digits = d.digits * 100000000 + digits8_value(word);
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            d.digits = d.digits * 10 + (uint64_t)(*p - '0');
        if (p == end || *p != '.')
            break;
        point = p;
    }
    if (p - first - (point && point >= first) > MOST)
        return false;
    d.exponent = point ? (int)(point + 1 - p) : 0;
    if (p < end) {
        const bool negative = p[1] == '-';
        int exponent = 0;
        p += negative || p[1] == '+' ? 2 : 1;
        if (end - p > 4)
            return false;
        for (; p < end; p++)
            exponent = exponent * 10 + (*p - '0');
        d.exponent += negative ? -exponent : exponent;
    }
    if (!d.digits)
        *value = 0;
    return !d.digits || nearest_double(d, value);
}

double json_double(const struct json *json)
{
    const char *p = json->text, *end = p + json->length;
    bool negative = p < end && *p == '-';
    p += negative;
    if (p == end || *p == 'N')
        return NAN;
    if (*p == 'I')
        return negative ? -INFINITY : INFINITY;

    double value;
    if (!convert_fast(p, end, &value))
        value = convert_exactly(p, end);
    return negative ? -value : value;
}
