/* Numbers of cells, read and written. */
#include "task/precision/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_TEXT = 400, PANDAS_DIGITS = 17, EXACT_POWER = 22, DECIMALS = 14, MAX_EXPONENT = 99999 };

static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* A number taken apart. Digits stay in the text: `before` of them up to the point, `after` behind
 * it. */
struct parts {
    bool negative;
    const char *whole, *decimals;
    size_t before, after;
    int exponent;
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(const char **text, size_t *length)
{
    while (*length && is_space(**text))
        (*text)++, (*length)--;
    while (*length && is_space((*text)[*length - 1]))
        (*length)--;
}

static size_t count_digits(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return (size_t)(at - text);
}

static bool take_sign(const char **at, const char *end)
{
    bool negative = *at < end && **at == '-';
    *at += *at < end && (**at == '-' || **at == '+');
    return negative;
}

/* text is trimmed. */
static bool take_apart(const char *text, size_t length, struct parts *parts)
{
    const char *at = text, *end = text + length;
    *parts = (struct parts){.negative = take_sign(&at, end)};
    parts->whole = at;
    at += parts->before = count_digits(at, end);
    if (at < end && *at == '.') {
        parts->decimals = ++at;
        at += parts->after = count_digits(at, end);
    }
    if (!parts->before && !parts->after)
        return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        bool negative = take_sign(&at, end);
        size_t digits = count_digits(at, end);
        int exponent = 0;
        for (size_t i = 0; i < digits; i++)
            exponent = exponent < MAX_EXPONENT ? exponent * 10 + (at[i] - '0') : MAX_EXPONENT;
        parts->exponent = negative ? -exponent : exponent;
        at += digits;
        if (!digits)
            return false;
    }
    return at == end;
}

static bool read_word(const char *text, size_t length, double *value)
{
    const char *at = text;
    bool negative = take_sign(&at, text + length);
    size_t left = length - (size_t)(at - text);
    bool infinite = (left == 3 && strncasecmp(at, "inf", 3) == 0) ||
                    (left == 8 && strncasecmp(at, "infinity", 8) == 0);
    *value = infinite ? (negative ? -INFINITY : INFINITY) : NAN;
    return infinite || (left == 3 && strncasecmp(at, "nan", 3) == 0);
}

/* What the C library makes of the digits; without a point they mean the same in every locale. */
static bool read_slowly(const struct parts *parts, double *value)
{
    char text[MAX_TEXT + 16];
    if (parts->before + parts->after > MAX_TEXT)
        return false;
    memcpy(text, parts->whole, parts->before);
    if (parts->after)
        memcpy(text + parts->before, parts->decimals, parts->after);
    snprintf(text + parts->before + parts->after, 16, "e%d", parts->exponent - (int)parts->after);
    *value = strtod(text, NULL);
    return true;
}

bool precision_number(const char *text, size_t length, double *value)
{
    struct parts parts;
    trim(&text, &length);
    if (!take_apart(text, length, &parts))
        return read_word(text, length, value);
    if (parts.before + parts.after > 18) {
        if (!read_slowly(&parts, value))
            return false;
    } else {
        uint64_t digits = 0;
        for (size_t i = 0; i < parts.before; i++)
            digits = digits * 10 + (uint64_t)(parts.whole[i] - '0');
        for (size_t i = 0; i < parts.after; i++)
            digits = digits * 10 + (uint64_t)(parts.decimals[i] - '0');
        int exponent = parts.exponent - (int)parts.after;
        /* Both exact, so one operation rounds once. */
        if (digits <= UINT64_C(1) << 53 && abs(exponent) <= EXACT_POWER)
            *value = exponent < 0 ? (double)digits / powers[-exponent]
                                  : (double)digits * powers[exponent];
        else
            read_slowly(&parts, value);
    }
    if (parts.negative)
        *value = -*value;
    return true;
}

/* 10^power for any power, as a table of literals would hold it. */
static double power_of_ten(int power)
{
    if (power <= EXACT_POWER)
        return powers[power];
    char text[16];
    snprintf(text, sizeof text, "1e%d", power);
    return strtod(text, NULL);
}

bool precision_number_pandas(const char *text, size_t length, double *value)
{
    struct parts parts;
    trim(&text, &length);
    if (!take_apart(text, length, &parts))
        return read_word(text, length, value) && !isnan(*value);
    double number = 0;
    size_t taken = 0, used = 0;
    for (size_t i = 0; i < parts.before && taken < PANDAS_DIGITS; i++, taken++)
        number = number * 10 + (parts.whole[i] - '0');
    long exponent = (long)(parts.before - taken) + parts.exponent;
    for (; used < parts.after && taken < PANDAS_DIGITS; used++, taken++)
        number = number * 10 + (parts.decimals[used] - '0');
    exponent -= (long)used;
    if (exponent > 308)
        return false;
    if (exponent > 0)
        number *= power_of_ten((int)exponent);
    else if (exponent >= -308)
        number /= power_of_ten((int)-exponent);
    else
        number = exponent < -616 ? 0 : number / power_of_ten((int)(-308 - exponent)) / 1e308;
    *value = parts.negative ? -number : number;
    return isfinite(number);
}

bool precision_integer(const char *text, size_t length, int64_t *value)
{
    trim(&text, &length);
    const char *at = text, *end = text + length;
    bool negative = take_sign(&at, end);
    size_t digits = count_digits(at, end);
    if (!digits || digits > 18 || at + digits != end)
        return false;
    int64_t number = 0;
    for (; at < end; at++)
        number = number * 10 + (*at - '0');
    *value = negative ? -number : number;
    return true;
}

__extension__ typedef unsigned __int128 uint128;

/* value * 10^14 rounded to an integer, ties to even, exactly; false when it is too large for this.
 * The product of the 53 bits of value and the 47 of 10^14 fits into 128. */
static bool scaled(double value, uint64_t *result)
{
    int exponent;
    uint64_t bits = (uint64_t)ldexp(frexp(value, &exponent), 53);
    int shift = 53 - exponent; /* value = bits / 2^shift */
    if (!(value < 0x1p16))
        return false;
    if (shift >= 126) {
        *result = 0;
        return true;
    }
    uint128 product = (uint128)bits * 100000000000000u;
    uint128 half = (uint128)1 << (shift - 1), rest = product & (2 * half - 1);
    uint64_t whole = (uint64_t)(product >> shift);
    *result = whole + (rest > half || (rest == half && whole & 1));
    return true;
}

size_t precision_fixed(double value, char text[FIXED_BYTES])
{
    uint64_t digits;
    if (!isfinite(value))
        return (size_t)snprintf(text, FIXED_BYTES,
                                isnan(value) ? "nan"
                                : value < 0  ? "-inf"
                                             : "inf");
    if (!scaled(fabs(value), &digits)) {
        size_t length = (size_t)snprintf(text, FIXED_BYTES, "%.*f", DECIMALS, value);
        text[length - DECIMALS - 1] = '.'; /* whatever the locale has there */
        return length;
    }
    char reversed[24];
    size_t count = 0, length = 0;
    for (; digits || count <= DECIMALS; digits /= 10)
        reversed[count++] = (char)('0' + digits % 10);
    if (signbit(value))
        text[length++] = '-';
    while (count) {
        text[length++] = reversed[--count];
        if (count == DECIMALS)
            text[length++] = '.';
    }
    text[length] = '\0';
    return length;
}
