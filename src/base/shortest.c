/* The value and the borders of the interval that rounds to it are scaled by a power of ten, such
 * that the interval is 1 to 10 units wide. Then it holds at most one multiple of 10, which is the
 * shortest if it is there, and at least one whole number, of which the nearest is wanted
 * (Giulietti's scheme). Powers of ten are kept to 128 bits only; where that is too little to
 * decide, which on random numbers practically never happens, the C library's exact conversions are
 * asked instead. */
#include "base/shortest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

enum { STEP = 16, FIRST_POWER = -304 };

/* 10^n for n = -304, -288 ... 320: the highest 128 bits, truncated. In Python:
 *   v = 10**n * 2**2048 if n > 0 else 2**2048 // 10**-n;  v >> v.bit_length() - 128 */
static const uint64_t powers[][2] = {
    {0x8c71dcd9ba0b4925, 0x9ff0c08b7f1d0b14}, {0x9becce62836ac577, 0x4ee367f9430aec32},
    {0xad1c8eab5ee43b66, 0xda3243650005eecf}, {0xc0314325637a1939, 0xfa911155fefb5308},
    {0xd5605fcdcf32e1d6, 0xfb1e4a9a90880a64}, {0xece53cec4a314ebd, 0xa4f8bf5635246428},
    {0x8380dea93da4bc60, 0x4247cb9e59f71e6d}, {0x91ff83775423cc06, 0x7b6306a34627ddcf},
    {0xa21727db38cb002f, 0xb8ada00e5a506a7c}, {0xb3f4e093db73a093, 0x59ed216765690f56},
    {0xc7caba6e7c5382c8, 0xfe64a52ee96b8fc0}, {0xddd0467c64bce4a0, 0xac7cb3f6d05ddbde},
    {0xf64335bcf065d37d, 0x4d4617b5ff4a16d5}, {0x88b402f7fd75539b, 0x11dbcb0218ebb414},
    {0x97c560ba6b0919a5, 0xdccd879fc967d41a}, {0xa87fea27a539e9a5, 0x3f2398d747b36224},
    {0xbb127c53b17ec159, 0x5560c018580d5d52}, {0xcfb11ead453994ba, 0x67de18eda5814af2},
    {0xe69594bec44de15b, 0x4c2ebe687989a9b3}, {0x8000000000000000, 0x0000000000000000},
    {0x8e1bc9bf04000000, 0x0000000000000000}, {0x9dc5ada82b70b59d, 0xf020000000000000},
    {0xaf298d050e4395d6, 0x9670b12b7f410000}, {0xc2781f49ffcfa6d5, 0x3cbf6b71c76b25fb},
    {0xd7e77a8f87daf7fb, 0xdc33745ec97be906}, {0xefb3ab16c59b14a2, 0xc5cfe94ef3ea101e},
    {0x850fadc09923329e, 0x03e2cf6bc604ddb0}, {0x93ba47c980e98cdf, 0xc66f336c36b10137},
    {0xa402b9c5a8d3a6e7, 0x5f16206c9c6209a6}, {0xb616a12b7fe617aa, 0x577b986b314d6009},
    {0xca28a291859bbf93, 0x7d7b8f7503cfdcfe}, {0xe070f78d3927556a, 0x85bbe253f47b1417},
    {0xf92e0c3537826145, 0xa7709a56ccdf8a82}, {0x8a5296ffe33cc92f, 0x82bd6b70d99aaa6f},
    {0x9991a6f3d6bf1765, 0xacca6da1e0a8ef29}, {0xaa7eebfb9df9de8d, 0xddbb901b98feeab7},
    {0xbd49d14aa79dbc82, 0x4b2d8644d8a74e18}, {0xd226fc195c6a2f8c, 0x73832eec6fff3111},
    {0xe950df20247c83fd, 0x47c6b82ef32a2069}, {0x81842f29f2cce375, 0xe6a1158300d46640},
};

static const uint64_t small_powers[STEP] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
};

/* Correct for all exponents that a double can have (and checked so by the tests). */
static int floor_log10_pow2(int e)
{
    return (e * 1262611) >> 22;
}

static int floor_log10_three_quarters_pow2(int e)
{
    return (e * 1262611 - 524031) >> 22;
}

static int floor_log2_pow10(int n)
{
    return (n * 1741647) >> 19;
}

/* The highest 128 bits of 10^n, too small by less than 4 of the last one. */
static u128 power_of_ten(int n)
{
    unsigned from_first = (unsigned)(n - FIRST_POWER);
    const uint64_t *big = powers[from_first / STEP];
    uint64_t small = small_powers[from_first % STEP];
    small <<= __builtin_clzll(small);

    u128 low = (u128)big[1] * small;
    u128 high = (u128)big[0] * small + (low >> 64);
    if (!(high >> 127))
        high = high << 1 | ((uint64_t)low >> 63);
    return high;
}

/* quarters/4 * 2^e * 10^n with 64 bits behind the point; the truth is at least this and less than
 * this plus 2^-63. `power` belongs to n. */
static u128 scale(uint64_t quarters, int e, int n, u128 power)
{
    u128 low = (u128)quarters * (uint64_t)power;
    u128 high = (u128)quarters * (uint64_t)(power >> 64) + (low >> 64);
    int shift = 127 + 2 - (e + floor_log2_pow10(n)) - 64; /* 62 to 66, as the interval is 1 to 10 */
    if (shift >= 64)
        return high >> (shift - 64);
    return high << (64 - shift) | (uint64_t)low >> shift;
}

enum answer { NO, YES, UNSURE };

static enum answer is_inside(uint64_t candidate, u128 lower, u128 upper)
{
    u128 x = (u128)candidate << 64;
    if (x < lower || x >= upper + 2)
        return NO;
    if (x >= lower + 2 && x < upper)
        return YES;
    return UNSURE;
}

static struct decimal without_zeros(uint64_t digits, int exponent)
{
    while (digits && digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    return (struct decimal){digits, exponent};
}

/* Is scale() without error? The power is 5^n, which 128 bits hold, and no bit is behind the
 * 64th. */
static bool is_exact(int e, int n)
{
    return n >= 0 && n <= 55 && e + n >= -64;
}

/* False when 128 bits do not decide it. */
static bool shortest_fast(uint64_t mantissa, int e, bool narrow_below, struct decimal *out)
{
    int k = narrow_below ? floor_log10_three_quarters_pow2(e) : floor_log10_pow2(e);
    u128 power = power_of_ten(-k);
    u128 value = scale(4 * mantissa, e, -k, power);
    u128 lower = scale(4 * mantissa - (narrow_below ? 1 : 2), e, -k, power);
    u128 upper = scale(4 * mantissa + 2, e, -k, power);

    uint64_t floor = (uint64_t)(value >> 64);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t candidate = floor / 10 * 10 + 10 * i;
        enum answer inside = candidate ? is_inside(candidate, lower, upper) : NO;
        if (inside == UNSURE)
            return false;
        if (inside == YES) {
            *out = without_zeros(candidate, k);
            return true;
        }
    }

    enum answer down = floor ? is_inside(floor, lower, upper) : NO;
    enum answer up = is_inside(floor + 1, lower, upper);
    if (down == UNSURE || up == UNSURE || (down == NO && up == NO))
        return false;
    if (down == YES && up == YES) {
        /* In the middle, where numbers of few bits often are: the even one. */
        uint64_t fraction = (uint64_t)value, half = UINT64_C(1) << 63;
        const bool middle = fraction == half;
        if ((middle || fraction == half - 1) && !is_exact(e, -k))
            return false;
        down = fraction < half || (middle && floor % 2 == 0) ? YES : NO;
    }
    *out = without_zeros(down == YES ? floor : floor + 1, k);
    return true;
}

static double read_back(uint64_t digits, int exponent)
{
    char text[48]; /* without a decimal point, so that no locale matters */
    snprintf(text, sizeof text, "%" PRIu64 "e%d", digits, exponent);
    return strtod(text, NULL);
}

/* The digits of "%.*e", whatever the locale has for a point. */
static void printed_digits(double value, int precision, uint64_t *digits, int *exponent)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", precision - 1, value);
    *digits = 0;
    const char *c = text;
    for (; *c && *c != 'e'; c++)
        if (*c >= '0' && *c <= '9')
            *digits = *digits * 10 + (uint64_t)(*c - '0');
    *exponent = (*c ? (int)strtol(c + 1, NULL, 10) : 0) - (precision - 1);
}

static struct decimal shortest_slow(double value)
{
    uint64_t digits = 0;
    int exponent = 0;
    for (int precision = 1; precision <= 17; precision++) {
        printed_digits(value, precision, &digits, &exponent);
        if (read_back(digits, exponent) == value)
            break;
        /* Below a power of two the interval is narrower than above: the second nearest may do. */
        if (read_back(digits + 1, exponent) == value) {
            digits++;
            break;
        }
    }
    return without_zeros(digits, exponent);
}

struct decimal shortest_decimal(double value)
{
    if (value < 9007199254740992.0) { /* 2^53: whole numbers below are exact as they are */
        uint64_t whole = (uint64_t)value;
        if ((double)whole == value)
            return without_zeros(whole, 0);
    }

    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int biased = (int)(bits >> 52 & 0x7ff);
    bool narrow_below = mantissa == 0 && biased > 1;
    if (biased)
        mantissa |= UINT64_C(1) << 52;
    int e = (biased ? biased : 1) - 1075;

    struct decimal result;
    if (!shortest_fast(mantissa, e, narrow_below, &result))
        result = shortest_slow(value);
    return result;
}

/* The value times 10^n is a number of so many digits, and what is behind its point is rounded off;
 * false where 128 bits do not decide that. */
static bool rounded_fast(double value, int precision, struct decimal *out)
{
    enum { MAX_ERROR = 5 };
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int biased = (int)(bits >> 52 & 0x7ff);
    if (!biased || precision > STEP - 1)
        return false;
    const uint64_t mantissa = bits << 11 | UINT64_C(1) << 63; /* the value is this * 2^(e - 63) */
    const int e = biased - 1023;
    int n = precision - 1 - floor_log10_pow2(e);
    for (int k = 0; k < 2; k++, n--) { /* there may be one digit more than its exponent tells */
        if (n < FIRST_POWER || n > 308)
            return false;
        const u128 power = power_of_ten(n);
        const u128 product =
            (u128)mantissa * (uint64_t)(power >> 64) + ((u128)mantissa * (uint64_t)power >> 64);
        const int shift = 126 - e - floor_log2_pow10(n); /* bits behind the point */
        if (shift < 64 || shift > 127)
            return false;
        const u128 half = (u128)1 << (shift - 1), rest = product & ((half << 1) - 1);
        uint64_t digits = (uint64_t)(product >> shift);
        if (digits >= small_powers[precision])
            continue;
        if ((rest <= half && rest + MAX_ERROR >= half) || rest + MAX_ERROR >= half << 1)
            return false;
        digits += rest > half;
        *out = without_zeros(digits, -n);
        return digits >= small_powers[precision - 1];
    }
    return false;
}

struct decimal rounded_decimal(double value, int precision)
{
    uint64_t digits;
    int exponent;
    struct decimal fast;
    if (rounded_fast(value, precision, &fast))
        return fast;
    printed_digits(value, precision, &digits, &exponent);
    return without_zeros(digits, exponent);
}

/* Up to 2^53 and 10^22 both factors are exact, and so one operation rounds once. */
static bool nearest_exactly(struct decimal decimal, double *value)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (decimal.digits > UINT64_C(1) << 53 || decimal.exponent < -22 || decimal.exponent > 22)
        return false;
    *value = decimal.exponent < 0 ? (double)decimal.digits / exact[-decimal.exponent]
                                  : (double)decimal.digits * exact[decimal.exponent];
    return true;
}

bool nearest_double(struct decimal decimal, double *value)
{
    enum { DROPPED = 128 - 53, MAX_ERROR = 5 };
    if (nearest_exactly(decimal, value))
        return true;
    if (decimal.exponent < FIRST_POWER || decimal.exponent > 308)
        return false;
    const int zeros = __builtin_clzll(decimal.digits);
    const uint64_t digits = decimal.digits << zeros;
    const u128 power = power_of_ten(decimal.exponent);
    u128 product = (u128)digits * (uint64_t)(power >> 64) +
                   ((u128)digits * (uint64_t)power >> 64);   /* too small by less than MAX_ERROR */
    int e = 64 - zeros + floor_log2_pow10(decimal.exponent); /* the value is below 2^(e + 1) */
    if (!(product >> 127)) {
        if ((product + MAX_ERROR) >> 127)
            return false;
        product <<= 1; /* and the error with it */
        e--;
    }
    const u128 half = (u128)1 << (DROPPED - 1), rest = product & ((half << 1) - 1);
    const unsigned error = 2 * MAX_ERROR;
    if ((rest <= half && rest + error >= half) || rest + error >= half << 1)
        return false;
    const uint64_t mantissa = (uint64_t)(product >> DROPPED) + (rest > half); /* 2^53 carries on */
    if (e < -1021 || e > 1022)
        return false;
    const uint64_t bits = ((uint64_t)(e + 1023 - 1) << 52) + mantissa;
    memcpy(value, &bits, sizeof *value);
    return true;
}
