/* Numbers as text. */
#include "base/number.h"
#include "base/shortest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_DECIMALS = 7, SHOWN_DIGITS = 7, MAX_DIGITS = 20 };

/* Digits of value, without NUL; returns how many. */
static int put_digits(uint64_t value, char text[MAX_DIGITS])
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[MAX_DIGITS], *at = digits + MAX_DIGITS;
    for (; value >= 100; value /= 100) /* two at a time: a division is slow */
        memcpy(at -= 2, pairs + 2 * (value % 100), 2);
    if (value >= 10)
        memcpy(at -= 2, pairs + 2 * value, 2);
    else
        *--at = (char)('0' + value);
    const int count = (int)(digits + MAX_DIGITS - at);
    memcpy(text, at, (size_t)count);
    return count;
}

static size_t put_word(const char *word, char text[NUMBER_BYTES])
{
    size_t length = strlen(word);
    memcpy(text, word, length + 1);
    return length;
}

static bool put_special(double value, bool point, char text[NUMBER_BYTES], size_t *length)
{
    if (isnan(value))
        *length = put_word("NaN", text);
    else if (isinf(value))
        *length = put_word(value < 0 ? "-inf" : "inf", text);
    else if (value == 0)
        *length = put_word(&"-0.0"[!signbit(value)], text) - (point ? 0 : 2);
    else
        return false;
    text[*length] = '\0';
    return true;
}

/* Lays a decimal out: with an exponent when it is below 1e-4 or has more than `whole` digits before
 * the point, else plain. */
static size_t put_decimal(bool negative, struct decimal decimal, int whole, bool point,
                          char text[NUMBER_BYTES])
{
    char digits[MAX_DIGITS];
    int count = put_digits(decimal.digits, digits);
    int before =
        count + decimal.exponent; /* digits before the point; the value is 0.DIGITS * 10^before */
    char *out = text;

    if (negative)
        *out++ = '-';
    if (before < -3 || before > whole) {
        *out++ = digits[0];
        if (count > 1) {
            *out++ = '.';
            memcpy(out, digits + 1, (size_t)count - 1);
            out += count - 1;
        }
        int exponent = before - 1;
        *out++ = 'e';
        *out++ = exponent < 0 ? '-' : '+';
        if (abs(exponent) < 10)
            *out++ = '0';
        out += put_digits((uint64_t)abs(exponent), out);
    } else if (before <= 0) {
        *out++ = '0';
        *out++ = '.';
        memset(out, '0', (size_t)-before);
        out += -before;
        memcpy(out, digits, (size_t)count);
        out += count;
    } else {
        const int whole_digits = count < before ? count : before;
        memcpy(out, digits, (size_t)whole_digits);
        memset(out + whole_digits, '0', (size_t)(before - whole_digits));
        out += before;
        if (count > before || point)
            *out++ = '.';
        if (count > before) {
            memcpy(out, digits + before, (size_t)(count - before));
            out += count - before;
        } else if (point) {
            *out++ = '0';
        }
    }
    *out = '\0';
    return (size_t)(out - text);
}

size_t number_exact(double value, bool point, char text[NUMBER_BYTES])
{
    size_t length;
    if (put_special(value, point, text, &length))
        return length;
    return put_decimal(value < 0, shortest_decimal(fabs(value)), 16, point, text);
}

static size_t number_digits(double value, char text[NUMBER_BYTES])
{
    size_t length;
    if (put_special(value, false, text, &length))
        return length;
    /* More digits before the point than are known would have to be made up. */
    return put_decimal(value < 0, rounded_decimal(fabs(value), SHOWN_DIGITS), SHOWN_DIGITS, false,
                       text);
}

/* To the nearest multiple of 10^-7; the C library's conversions are exact, so ties cannot go
 * wrong. */
static double rounded(double value)
{
    if (!(fabs(value) < 9007199254740992.0))
        return value;
    char text[48];
    snprintf(text, sizeof text, "%.*f", SHOWN_DECIMALS, value);
    return strtod(text, NULL);
}

/* Two decimals, towards zero, so that only all of something is 100 %. The small addition is for
 * values like 99.98 that are a little below what they stand for. */
static double cut_percent(double value)
{
    return floor(value * 100 + 1e-9) / 100;
}

size_t number_shown(double value, enum plumb_style style, char text[NUMBER_BYTES])
{
    if (style == PLUMB_STYLE_DIGITS)
        return number_digits(value, text);
    double shown = style == PLUMB_STYLE_PERCENT ? cut_percent(value) : rounded(value);
    if (style == PLUMB_STYLE_REPR)
        return number_exact(shown, true, text);
    /* A difference that is there must not look like none. */
    if (shown == 0 && value != 0)
        return number_digits(value, text);
    return number_exact(shown, false, text);
}

size_t number_integer(int64_t value, char text[NUMBER_BYTES])
{
    char *out = text;
    if (value < 0)
        *out++ = '-';
    out += put_digits(value < 0 ? -(uint64_t)value : (uint64_t)value, out);
    *out = '\0';
    return (size_t)(out - text);
}

const char *number_brief(double value, int digits, char text[NUMBER_BYTES])
{
    size_t length;
    if (!put_special(value, false, text, &length))
        put_decimal(value < 0, rounded_decimal(fabs(value), digits), digits, false, text);
    return text;
}
