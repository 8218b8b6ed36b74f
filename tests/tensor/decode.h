/* Decoders of the small types, written once more from the formats' definitions. Include after
 * cmocka.h. */
#ifndef DECODE_H
#define DECODE_H

#include "plumb/dtype.h"

#include <math.h>
#include <string.h>

/* What the name of a binary format stands for. */
struct layout {
    enum plumb_dtype dtype;
    unsigned bits, exponent_bits;
    int bias;
    enum { IEEE, ONLY_ALL_ONES_IS_NAN, NEGATIVE_ZERO_IS_NAN, NO_SPECIALS } specials;
};

static const struct layout layouts[] = {
    {PLUMB_F16, 16, 5, 15, IEEE},
    {PLUMB_BF16, 16, 8, 127, IEEE},
    {PLUMB_F8_E4M3FN, 8, 4, 7, ONLY_ALL_ONES_IS_NAN},
    {PLUMB_F8_E5M2, 8, 5, 15, IEEE},
    {PLUMB_F8_E4M3FNUZ, 8, 4, 8, NEGATIVE_ZERO_IS_NAN},
    {PLUMB_F8_E5M2FNUZ, 8, 5, 16, NEGATIVE_ZERO_IS_NAN},
    {PLUMB_F4_E2M1, 4, 2, 1, NO_SPECIALS},
};

static inline int bit_of(unsigned code, unsigned bit)
{
    return (int)(code >> bit & 1);
}

/* Bit by bit: each mantissa bit is worth half of the one before it. */
static inline double decode_layout(const struct layout *layout, unsigned code)
{
    unsigned sign = layout->bits - 1, mantissa_bits = sign - layout->exponent_bits;
    unsigned magnitude = code & ((1u << sign) - 1);
    unsigned exponent = magnitude >> mantissa_bits;
    unsigned mantissa = magnitude & ((1u << mantissa_bits) - 1);
    bool top = exponent == (1u << layout->exponent_bits) - 1;
    double factor = bit_of(code, sign) ? -1 : 1;
    if (layout->specials == IEEE && top)
        return mantissa ? NAN : factor * INFINITY;
    if (layout->specials == ONLY_ALL_ONES_IS_NAN && magnitude == (1u << sign) - 1)
        return NAN;
    if (layout->specials == NEGATIVE_ZERO_IS_NAN && code == 1u << sign)
        return NAN;
    double value = exponent ? 1 : 0, worth = 0.5;
    for (unsigned bit = mantissa_bits; bit-- > 0; worth /= 2)
        value += worth * bit_of(mantissa, bit);
    int power = (exponent ? (int)exponent : 1) - layout->bias;
    return factor * value * pow(2, power);
}

/* Reads a field of `width` bits from a string of '0' and '1', moving on. */
static inline int take(const char **text, int width)
{
    int value = 0;
    while (width-- > 0)
        value = value * 2 + (*(*text)++ == '1');
    return value;
}

/* Sign, prefix code, exponent of as many bits as the prefix says, mantissa: read from left to right
 * as the format's table is written. */
static inline double decode_hif8(unsigned code)
{
    static const struct {
        const char *prefix;
        int exponent_bits, mantissa_bits;
    } rows[] = {{"11", 4, 1}, {"10", 3, 2}, {"01", 2, 3}, {"001", 1, 3}, {"0001", 0, 3}};
    char digits[9];
    for (unsigned i = 0; i < 8; i++)
        digits[i] = bit_of(code, 7 - i) ? '1' : '0';
    digits[8] = '\0';
    if (code == 0x00)
        return 0;
    if (code == 0x80)
        return NAN;
    double sign = digits[0] == '1' ? -1 : 1;
    if ((code & 0x7F) == 0x6F)
        return sign * INFINITY;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = strlen(rows[i].prefix);
        if (strncmp(digits + 1, rows[i].prefix, length) != 0)
            continue;
        const char *rest = digits + 1 + length;
        int width = rows[i].exponent_bits, exponent = 0;
        if (width) {
            int negative = take(&rest, 1);
            exponent = (1 << (width - 1)) + take(&rest, width - 1);
            exponent = negative ? -exponent : exponent;
        }
        double mantissa = take(&rest, rows[i].mantissa_bits);
        assert_int_equal(*rest, '\0');
        return sign * (1 + mantissa / pow(2, rows[i].mantissa_bits)) * pow(2, exponent);
    }
    const char *rest = digits + 5; /* prefix 0000 */
    return sign * pow(2, take(&rest, 3) - 23);
}

static inline double decode(enum plumb_dtype dtype, unsigned code)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].dtype == dtype)
            return decode_layout(&layouts[i], code);
    switch (dtype) {
    case PLUMB_HIF8:
        return decode_hif8(code);
    case PLUMB_F8_E8M0:
        return code == 255 ? NAN : pow(2, (double)code - 127);
    case PLUMB_BOOL:
        return code ? 1 : 0;
    case PLUMB_U8:
    case PLUMB_U16:
        return code;
    case PLUMB_I8:
        return code < 128 ? (double)code : (double)code - 256;
    case PLUMB_I16:
        return code < 32768 ? (double)code : (double)code - 65536;
    case PLUMB_I4:
        return code < 8 ? (double)code : (double)code - 16;
    default:
        fail_msg("no decoder for type %d", dtype);
        return 0;
    }
}

#endif
