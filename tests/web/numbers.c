/* Writes numbers.json: numbers, and what the program prints for them in each style. The page has to
 * print the same.
 *
 *     cc -Isrc -Iinclude tests/web/numbers.c build/libplumb.a -lm && ./a.out >
 * tests/web/numbers.json */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(double value, const char *end)
{
    static const enum plumb_style styles[] = {PLUMB_STYLE_NUMBER, PLUMB_STYLE_REPR,
                                              PLUMB_STYLE_PERCENT, PLUMB_STYLE_DIGITS};
    uint64_t bits;
    char text[NUMBER_BYTES];
    memcpy(&bits, &value, sizeof bits);
    printf("  [\"%016llx\"", (unsigned long long)bits);
    number_exact(value, false, text);
    printf(", \"%s\"", text);
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        number_shown(value, styles[i], text);
        printf(", \"%s\"", text);
    }
    printf("]%s\n", end);
}

/* The same numbers each time. */
static double made(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

int main(void)
{
    static const double values[] = {
        0,
        -0.0,
        1,
        -1,
        0.5,
        99.98,
        100,
        99.999,
        99.994999,
        99.995,
        0.0078125,
        9.9e-06,
        6.8e-06,
        2303,
        3.055902e-13,
        3.0559021e-13,
        1e-7,
        4.9e-8,
        5e-8,
        5.1e-8,
        -4e-9,
        1e16,
        1e15,
        123456789012345680,
        9007199254740991,
        9007199254740993,
        1e21,
        1e22,
        1e300,
        1.7976931348623157e308,
        5e-324,
        2.2250738585072014e-308,
        0.1,
        0.2,
        0.30000000000000004,
        1.0 / 3,
        2.0 / 3,
        1e-4,
        1e-5,
        0.00012345678,
        1.0 / 256,
        3.0 / 256,
        5.0 / 256,
        7.0 / 256,
        -1.0 / 256,
        -3.0 / 256,
        1 + 1.0 / 256,
        1000000.5,
        1000001.5,
        1000002.5,
        -1000000.5,
        10000005,
        10000015,
        10000025,
        9999999.5,
        99999995,
        0.99999995,
        12345675,
        12345685,
        1234567.5,
        0.000030517578125,
        1.52587890625e-05,
        16777216,
        16777217,
        33554431,
        1e7,
        12345678,
        123456789,
        0.99999999,
        0.999999999,
        99.99999999999999,
        29.0,
        0.29,
        57.0,
        58.0 / 100,
        1.005,
        2.675,
        1e23,
        9.5367431640625e-07,
        4.76837158203125e-07,
        7450580.5,
        3.5,
        2.5e-7,
        1.5e-7,
    };
    size_t count = sizeof values / sizeof *values;
    uint64_t state = 12345;

    printf("[\n");
    for (size_t i = 0; i < count; i++)
        put(values[i], ",");
    for (int i = 0; i < 100; i++) {
        double value = (made(&state) - 0.3) * pow(10, floor(made(&state) * 40) - 20);
        put(value, ",");
        put((double)(float)value, ",");
        put(floor(made(&state) * 1e8) / 256, ",");
        put(floor(made(&state) * 2e8) / 2, ",");
        put(made(&state) * 100, ",");
    }
    put(INFINITY, ",");
    put(-INFINITY, ",");
    put(NAN, "");
    printf("]\n");
    return 0;
}
