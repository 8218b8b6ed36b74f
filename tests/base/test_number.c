/* Expected texts are what Python's repr, round(x, 7) and %.7g give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/shortest.h"
#include "random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct expected {
    double value;
    const char *text;
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_shown(const struct expected *cases, size_t count, enum plumb_style style)
{
    for (size_t i = 0; i < count; i++) {
        char text[NUMBER_BYTES];
        size_t length = number_shown(cases[i].value, style, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(text));
    }
}

static void exact_like_repr(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {100.0, "100.0"},
        {123456789.125, "123456789.125"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {1e-7, "1e-07"},
        {1.5e-300, "1.5e-300"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {12345678901234567890.0, "1.2345678901234567e+19"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {9007199254740992.0, "9007199254740992.0"},
        {9007199254740994.0, "9007199254740994.0"},
        {18014398509481984.0, "1.8014398509481984e+16"},
        {5e-324, "5e-324"},
        {1e-323, "1e-323"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        /* powers of two, below which the doubles lie closer than above */
        {0x1p-44, "5.684341886080802e-14"},
        {0x1p-1022, "2.2250738585072014e-308"},
        {0x1p89, "6.189700196426902e+26"},
        {0x1p-24, "5.960464477539063e-08"},
        {0x1p122, "5.316911983139664e+36"},
        {0x1p1023, "8.98846567431158e+307"},
        /* known to be hard */
        {9.5367431640625e-07, "9.5367431640625e-07"},
        {2.98023223876953125e-08, "2.9802322387695312e-08"},
        {4.35, "4.35"},
        {5.0e-20, "5e-20"},
        {2.109808898695963e16, "2.109808898695963e+16"},
        {4.940656e-318, "4.940656e-318"},
        {1.18575755e-316, "1.18575755e-316"},
        {9.0608011534336e15, "9060801153433600.0"},
        {4.708356024711512e18, "4.708356024711512e+18"},
        {9.409340012568248e18, "9.409340012568248e+18"},
        {1.9400994884341945e25, "1.9400994884341945e+25"},
        {3.6131332396758635e25, "3.6131332396758635e+25"},
        {2.5138990223946153e25, "2.5138990223946153e+25"},
        {NAN, "NaN"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[NUMBER_BYTES];
        size_t length = number_exact(cases[i].value, true, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(text));
    }
}

static void exact_without_point(void **state)
{
    (void)state;
    char text[NUMBER_BYTES];
    number_exact(1, false, text);
    assert_string_equal(text, "1");
    number_exact(0, false, text);
    assert_string_equal(text, "0");
    number_exact(-0.0, false, text);
    assert_string_equal(text, "-0");
    number_exact(1200, false, text);
    assert_string_equal(text, "1200");
    number_exact(0.5, false, text);
    assert_string_equal(text, "0.5");
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* The longest text fits, reads back, and no text with a digit less does. */
static void check_shortest(double value)
{
    char text[NUMBER_BYTES], shorter[64];
    if (!isfinite(value))
        return;
    size_t length = number_exact(value, true, text);
    assert_true(length < NUMBER_BYTES);
    double back = strtod(text, NULL);
    assert_memory_equal(&back, &value, sizeof value);

    int digits = 0, zeros = 0;
    for (const char *c = text; *c && *c != 'e'; c++) {
        if (*c == '0' && digits)
            zeros++;
        if (*c >= '1' && *c <= '9') {
            digits += zeros + 1;
            zeros = 0;
        }
    }
    if (digits > 1) {
        snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
        assert_true(strtod(shorter, NULL) != value);
    }
}

static void exact_round_trips(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = next_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        check_shortest(value);
        check_shortest((double)(bits >> 40) / 16777216.0);
        check_shortest((double)(float)value);
        check_shortest((double)(bits >> 44) * 1e-7);
    }
    for (int e = -1074; e < 1024; e++) {
        check_shortest(ldexp(1, e));
        check_shortest(nextafter(ldexp(1, e), 0));
        check_shortest(nextafter(ldexp(1, e), INFINITY));
    }
}

/* The digits before an exponent, without the zeros at both ends. */
static void digits_of(const char *text, char *out)
{
    size_t count = 0, kept = 0;
    for (; *text && *text != 'e'; text++)
        if (*text > '0' && *text <= '9')
            out[count++] = *text, kept = count;
        else if (*text == '0' && count)
            out[count++] = '0';
    out[kept] = '\0';
}

/* Numbers of few bits often lie in the middle between two shortest ones: the even one is taken, as
 * printf does. */
static void exact_takes_the_nearest(void **state)
{
    (void)state;
    uint64_t seed = 1234567;
    unsigned middle = 0;
    for (int i = 0; i < 400000; i++) {
        const uint64_t bits = next_random(&seed);
        const double value = ldexp((double)(bits >> (12 + i % 40) | 1), i % 61 - 58);
        char text[NUMBER_BYTES], printed[64], a[64], b[64];
        number_exact(value, true, text);
        digits_of(text, a);
        snprintf(printed, sizeof printed, "%.*e", (int)strlen(a) - 1, value);
        digits_of(printed, b);
        assert_string_equal(a, b);
        snprintf(printed, sizeof printed, "%.*e", (int)strlen(a) + 30, value);
        digits_of(printed, b);
        middle += strlen(b) == strlen(a) + 1 && b[strlen(a)] == '5';
    }
    assert_true(middle > 1000);
}

static void shown_as_number(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {1, "1"},
        {0, "0"},
        {100, "100"},
        {99.98, "99.98"},
        {99.98000000000001, "99.98"},
        {0.0078125, "0.0078125"},
        {0.00390625, "0.0039062"}, /* a tie, and the even neighbour is below */
        {0.01171875, "0.0117188"},
        {0.001953125, "0.0019531"},
        {9.9e-6, "9.9e-06"},
        {0.00012345678, "0.0001235"},
        {1.84e-5, "1.84e-05"},
        {0.9999999999, "1"},
        {1.00000005, "1"}, /* lies a bit below the tie */
        {2.5e-7, "2e-07"},
        {6e-8, "1e-07"},
        {-2.4200516, "-2.4200516"},
        {3.1e-12, "3.1e-12"},
        {-3.1e-12, "-3.1e-12"},
        {4.9406564584124654e-324, "4.940656e-324"},
        {3.0559023e-13, "3.055902e-13"},
        {1e15, "1000000000000000"},
        {1e16, "1e+16"},
        {1e300, "1e+300"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {123456789.12345678, "123456789.1234568"},
        {-0.0, "-0"},
        {NAN, "NaN"},
        {-NAN, "NaN"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    check_shown(cases, COUNT(cases), PLUMB_STYLE_NUMBER);
    check_shown(cases, COUNT(cases), PLUMB_STYLE_TEXT);
}

static void shown_as_repr(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {2303, "2303.0"},
        {0, "0.0"},
        {6.8e-6, "6.8e-06"},
        {6.81234e-6, "6.8e-06"},
        {-0.07763671875, "-0.0776367"},
        {1153.91918945, "1153.9191894"},
        {714.59436, "714.59436"},
        {-13.8125, "-13.8125"},
        {3.1e-12, "0.0"},
        {-3.1e-12, "-0.0"},
        {1e16, "1e+16"},
        {NAN, "NaN"},
        {-INFINITY, "-inf"},
    };
    check_shown(cases, COUNT(cases), PLUMB_STYLE_REPR);
}

static void shown_by_digits(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {3.0559023e-13, "3.055902e-13"},
        {1, "1"},
        {0, "0"},
        {0.5, "0.5"},
        {123.456789, "123.4568"},
        {0.000123456789, "0.0001234568"},
        {0.00001, "1e-05"},
        {9999999, "9999999"},
        {9999999.6, "1e+07"},
        {16777216, "1.677722e+07"},
        {-1e-320, "-9.999889e-321"},
        {NAN, "NaN"},
        {INFINITY, "inf"},
    };
    check_shown(cases, COUNT(cases), PLUMB_STYLE_DIGITS);
}

static void shown_as_percent(void **state)
{
    (void)state;
    static const struct expected cases[] = {
        {100, "100"},      {99.98, "99.98"}, {99.9755859375, "99.97"}, {99.9999999, "99.99"},
        {99.53, "99.53"},  {0, "0"},         {1e-5, "1e-05"},          {50, "50"},
        {2.34375, "2.34"}, {NAN, "NaN"},     {98.08, "98.08"},         {62.5, "62.5"},
    };
    check_shown(cases, sizeof cases / sizeof *cases, PLUMB_STYLE_PERCENT);
}

static void integers(void **state)
{
    (void)state;
    char text[NUMBER_BYTES];
    number_integer(0, text);
    assert_string_equal(text, "0");
    number_integer(INT64_MAX, text);
    assert_string_equal(text, "9223372036854775807");
    assert_int_equal(number_integer(INT64_MIN, text), 20);
    assert_string_equal(text, "-9223372036854775808");
}

static void brief(void **state)
{
    (void)state;
    char text[NUMBER_BYTES];
    assert_string_equal(number_brief(1.0 / 3, 4, text), "0.3333");
    assert_string_equal(number_brief(-1e300, 17, text), "-1.0000000000000001e+300");
    assert_string_equal(number_brief(-(double)NAN, 4, text), "NaN");
    assert_string_equal(number_brief((double)NAN, 4, text), "NaN");
    assert_string_equal(number_brief(-(double)INFINITY, 4, text), "-inf");
}

/* With few and with many digits, near ties and far from them: always what the C library says. */
static void rounds_like_printf(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 300000; i++) {
        double value = fabs(random_double_from_bits(random_bits(&seed)));
        if (i % 3 == 1)
            value = (double)random_below(&seed, 1000000) / 64; /* ties */
        else if (i % 3 == 2)
            value = fabs(random_unit(&seed)) * pow(10, (double)random_below(&seed, 20) - 10);
        if (!isfinite(value) || value == 0)
            continue;
        const int digits = 1 + (int)random_below(&seed, 17);
        char expected[64], text[NUMBER_BYTES];
        snprintf(expected, sizeof expected, "%.*g", digits, value);
        assert_string_equal(number_brief(value, digits, text), expected);
    }
}

static void reads_like_strtod(void **state)
{
    (void)state;
    uint64_t seed = 11;
    unsigned decided = 0;
    for (int i = 0; i < 300000; i++) {
        struct decimal decimal = {.digits = random_bits(&seed) >> random_below(&seed, 64),
                                  .exponent = (int)random_below(&seed, 700) - 350};
        if (i % 2)
            decimal.exponent = (int)random_below(&seed, 40) - 25;
        if (i % 5 == 0) /* half way between two doubles */
            decimal = (struct decimal){(random_bits(&seed) >> 11 | UINT64_C(1) << 52) * 2 + 1, 0};
        if (!decimal.digits)
            continue;
        char text[64];
        double value;
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)decimal.digits,
                 decimal.exponent);
        if (!nearest_double(decimal, &value))
            continue;
        assert_true(value == strtod(text, NULL));
        decided++;
    }
    assert_true(decided > 150000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_like_repr),    cmocka_unit_test(exact_without_point),
        cmocka_unit_test(exact_round_trips),  cmocka_unit_test(exact_takes_the_nearest),
        cmocka_unit_test(shown_as_number),    cmocka_unit_test(shown_as_repr),
        cmocka_unit_test(shown_by_digits),    cmocka_unit_test(brief),
        cmocka_unit_test(integers),           cmocka_unit_test(shown_as_percent),
        cmocka_unit_test(rounds_like_printf), cmocka_unit_test(reads_like_strtod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
