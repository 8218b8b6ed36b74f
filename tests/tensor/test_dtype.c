/* Every code of every small type against independent decoders, rounding, and the table of types. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decode.h"
#include "plumb/dtype.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

/* -- Decoding ---------------------------------------------------------------------------------- */

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void check(enum plumb_dtype dtype, unsigned code, double got, double wanted)
{
    if (!same(got, wanted))
        fail_msg("%s 0x%x is %.17g, not %.17g", plumb_dtype_info(dtype)->name, code, got, wanted);
}

static void test_all_bytes(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_BOOL,        PLUMB_U8,      PLUMB_I8,
                                             PLUMB_F8_E4M3FN,   PLUMB_F8_E5M2, PLUMB_F8_E4M3FNUZ,
                                             PLUMB_F8_E5M2FNUZ, PLUMB_F8_E8M0, PLUMB_HIF8};
    uint8_t codes[256];
    double values[256];
    for (unsigned i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        assert_int_equal(plumb_dtype_info(types[t])->bits, 8);
        for (int swap = 0; swap < 2; swap++) { /* a byte has no order */
            plumb_to_f64(types[t], codes, 0, 256, swap, values);
            for (unsigned i = 0; i < 256; i++)
                check(types[t], i, values[i], decode(types[t], i));
        }
    }
}

static void test_all_words(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_F16, PLUMB_BF16, PLUMB_U16, PLUMB_I16};
    static unsigned char bytes[2 * 65536 + 1];
    static double values[65536];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int swap = 0; swap < 2; swap++) {
            /* At an odd address, to see that alignment does not matter. */
            for (unsigned i = 0; i < 65536; i++) {
                uint16_t word = swap ? (uint16_t)(i << 8 | i >> 8) : (uint16_t)i;
                memcpy(bytes + 1 + 2 * i, &word, 2);
            }
            plumb_to_f64(types[t], bytes + 1, 0, 65536, swap, values);
            for (unsigned i = 0; i < 65536; i++)
                check(types[t], i, values[i], decode(types[t], i));
        }
}

static void test_nibbles(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_I4, PLUMB_F4_E2M1};
    uint8_t bytes[256];
    double values[512];
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    for (size_t t = 0; t < 2; t++) {
        assert_int_equal(plumb_dtype_info(types[t])->bits, 4);
        plumb_to_f64(types[t], bytes, 0, 512, false, values);
        for (unsigned i = 0; i < 512; i++)
            check(types[t], i, values[i], decode(types[t], i % 2 ? i / 2 >> 4 : i / 2 & 15));
        /* From an odd place, an odd number. */
        plumb_to_f64(types[t], bytes, 301, 13, false, values + 5);
        for (unsigned i = 0; i < 13; i++) {
            unsigned at = 301 + i;
            check(types[t], at, values[5 + i],
                  decode(types[t], at % 2 ? at / 2 >> 4 : at / 2 & 15));
        }
    }
    static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (unsigned i = 0; i < 8; i++)
        assert_true(decode(PLUMB_F4_E2M1, i) == e2m1[i] &&
                    decode(PLUMB_F4_E2M1, i + 8) == -e2m1[i]);
}

static void reverse(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        unsigned char byte = bytes[i];
        bytes[i] = bytes[size - 1 - i];
        bytes[size - 1 - i] = byte;
    }
}

/* Types that C has itself. */
static void test_wide(void **state)
{
    (void)state;
    enum { N = 1000 };
    uint64_t seed = 1;
    unsigned char bytes[N * 8 + 3];
    double values[N], wanted[N];
    static const enum plumb_dtype types[] = {PLUMB_U32, PLUMB_I32, PLUMB_F32, PLUMB_C64,
                                             PLUMB_U64, PLUMB_I64, PLUMB_F64, PLUMB_C128};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int swap = 0; swap < 2; swap++) {
            size_t size = t < 4 ? 4 : 8;
            for (size_t i = 0; i < N; i++) {
                uint64_t bits = random_bits(&seed);
                uint32_t low = (uint32_t)bits;
                float single;
                memcpy(&single, &low, 4);
                switch (types[t]) {
                case PLUMB_U32:
                    wanted[i] = low;
                    break;
                case PLUMB_I32:
                    wanted[i] = (int32_t)low;
                    break;
                case PLUMB_F32:
                case PLUMB_C64:
                    wanted[i] = (double)single;
                    break;
                case PLUMB_U64:
                    wanted[i] = (double)bits;
                    break;
                case PLUMB_I64:
                    wanted[i] = (double)(int64_t)bits;
                    break;
                default:
                    wanted[i] = random_double_from_bits(bits);
                }
                memcpy(bytes + 3 + i * size, size == 4 ? (void *)&low : (void *)&bits, size);
                if (swap)
                    reverse(bytes + 3 + i * size, size);
            }
            plumb_to_f64(types[t], bytes + 3, 0, N, swap, values);
            for (size_t i = 0; i < N; i++)
                check(types[t], (unsigned)i, values[i], wanted[i]);
            plumb_to_f64(types[t], bytes + 3, 417, 100, swap, values);
            for (size_t i = 0; i < 100; i++)
                check(types[t], (unsigned)i, values[i], wanted[417 + i]);
        }
    /* Beyond 2^53, to nearest even. */
    const int64_t near[] = {(INT64_C(1) << 53) + 1, (INT64_C(1) << 53) + 3, -(INT64_C(1) << 53) - 1,
                            INT64_MAX, INT64_MIN};
    plumb_to_f64(PLUMB_I64, near, 0, 5, false, values);
    assert_true(values[0] == 0x1p53 && values[1] == 0x1p53 + 4 && values[2] == -0x1p53 &&
                values[3] == 0x1p63 && values[4] == -0x1p63);
    const uint64_t most = UINT64_MAX;
    plumb_to_f64(PLUMB_U64, &most, 0, 1, false, values);
    assert_true(values[0] == 0x1p64);
    plumb_to_f64(PLUMB_F32, NULL, 0, 0, false, values); /* nothing is read */
}

/* -- Rounding ---------------------------------------------------------------------------------- */

static const enum plumb_dtype small_floats[] = {PLUMB_F16,     PLUMB_BF16,        PLUMB_F8_E4M3FN,
                                                PLUMB_F8_E5M2, PLUMB_F8_E4M3FNUZ, PLUMB_F8_E5M2FNUZ,
                                                PLUMB_F8_E8M0, PLUMB_HIF8,        PLUMB_F4_E2M1};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The finite values of a type from the smallest to the largest, zero once. */
static size_t all_values(enum plumb_dtype dtype, double *values)
{
    size_t count = 0;
    bool zero = false;
    for (unsigned code = 0; code < 1u << plumb_dtype_info(dtype)->bits; code++) {
        double x = decode(dtype, code);
        if (!isfinite(x) || (x == 0 && zero))
            continue;
        zero = zero || x == 0;
        values[count++] = x == 0 ? 0 : x;
    }
    qsort(values, count, sizeof *values, by_value);
    return count;
}

/* Of two neighbours, the one that is an even multiple of their distance. Powers of two side by side
 * are 1 and 2 of them: the larger, as IEEE 754 has it for a precision of one digit. */
static double even_of(double low, double high)
{
    double gap = high - low;
    bool low_even = fmod(low / gap, 2) == 0, high_even = fmod(high / gap, 2) == 0;
    assert_true(low_even != high_even);
    return low_even ? low : high;
}

static void rounds_to(enum plumb_dtype dtype, double x, double wanted)
{
    double got = plumb_round_to(dtype, x);
    if (!(isnan(wanted) ? isnan(got) : got == wanted))
        fail_msg("%s: %.17g is rounded to %.17g, not %.17g", plumb_dtype_info(dtype)->name, x, got,
                 wanted);
}

static void test_round_values(void **state)
{
    (void)state;
    static double values[65536];
    for (size_t t = 0; t < sizeof small_floats / sizeof *small_floats; t++) {
        enum plumb_dtype dtype = small_floats[t];
        size_t count = all_values(dtype, values);
        assert_true(count > 10);
        assert_true(values[count - 1] == plumb_dtype_info(dtype)->max_finite);
        for (size_t i = 0; i < count; i++)
            rounds_to(dtype, values[i], values[i]);
        for (size_t i = 0; i + 1 < count; i++) {
            double low = values[i], high = values[i + 1], middle = low / 2 + high / 2;
            rounds_to(dtype, nextafter(middle, -INFINITY), low);
            rounds_to(dtype, middle, even_of(low, high));
            rounds_to(dtype, nextafter(middle, INFINITY), high);
            rounds_to(dtype, nextafter(low, INFINITY), low);
            rounds_to(dtype, nextafter(high, -INFINITY), high);
        }
        assert_true(isnan(plumb_round_to(dtype, NAN)));
    }
}

/* Beyond the largest value rounding goes as if the type went on: half a step further, and what then
 * does not fit is infinite, or NaN where the type knows no infinity. */
static void test_round_overflow(void **state)
{
    (void)state;
    static const struct {
        enum plumb_dtype dtype;
        double last; /* the largest value that still comes down */
        bool infinite, tie_comes_down;
    } rows[] = {
        {PLUMB_F16, 65520, true, false},          {PLUMB_BF16, 0x1.ffp127, true, false},
        {PLUMB_F32, 0x1.ffffffp127, true, false}, {PLUMB_C64, 0x1.ffffffp127, true, false},
        {PLUMB_F8_E4M3FN, 464, false, true},      {PLUMB_F8_E5M2, 61440, true, false},
        {PLUMB_F8_E4M3FNUZ, 248, false, false},   {PLUMB_F8_E5M2FNUZ, 61440, false, false},
        {PLUMB_F8_E8M0, 0x1.8p127, false, false}, {PLUMB_HIF8, 40960, true, true},
        {PLUMB_F4_E2M1, 7, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum plumb_dtype dtype = rows[i].dtype;
        double max = plumb_dtype_info(dtype)->max_finite,
               beyond = rows[i].infinite ? INFINITY : NAN;
        rounds_to(dtype, nextafter(rows[i].last, 0), max);
        rounds_to(dtype, rows[i].last, rows[i].tie_comes_down ? max : beyond);
        rounds_to(dtype, nextafter(rows[i].last, INFINITY), beyond);
        rounds_to(dtype, 1e300, beyond);
        rounds_to(dtype, INFINITY, beyond);
        if (dtype == PLUMB_F8_E8M0) {
            rounds_to(dtype, -1, NAN);
            rounds_to(dtype, 0, 0x1p-127);
            rounds_to(dtype, 1e-300, 0x1p-127);
            continue;
        }
        rounds_to(dtype, -nextafter(rows[i].last, 0), -max);
        rounds_to(dtype, -nextafter(rows[i].last, INFINITY), -beyond);
        rounds_to(dtype, -INFINITY, -beyond);
        rounds_to(dtype, 1e-300, 0);
        rounds_to(dtype, 5e-324, 0);
    }
    assert_true(plumb_round_to(PLUMB_F64, 0.1) == 0.1);
    assert_true(plumb_round_to(PLUMB_C128, -5e-324) == -5e-324);
}

static void test_round_single(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < 100000; i++) {
        double x = random_finite(&seed);
        if (i % 2)
            x = random_unit(&seed) * ldexp(1, (int)random_below(&seed, 300) - 160);
        assert_true(same(plumb_round_to(PLUMB_F32, x), (double)(float)x));
    }
}

/* Types without a negative zero do not get one by rounding. */
static void test_round_zero(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof small_floats / sizeof *small_floats; t++) {
        enum plumb_dtype dtype = small_floats[t];
        if (dtype == PLUMB_F8_E8M0)
            continue;
        bool has_negative = false;
        for (unsigned code = 0; code < 1u << plumb_dtype_info(dtype)->bits; code++)
            has_negative = has_negative || same(decode(dtype, code), -0.0);
        const double zeros[] = {-0.0, -1e-300};
        for (size_t i = 0; i < 2; i++)
            check(dtype, 0, plumb_round_to(dtype, zeros[i]), has_negative ? -0.0 : 0.0);
        check(dtype, 0, plumb_round_to(dtype, 0.0), 0.0);
    }
}

/* -- The table --------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    (void)state;
    char text[64];
    for (unsigned i = 0; i < PLUMB_DTYPE_COUNT; i++) {
        enum plumb_dtype dtype = (enum plumb_dtype)i;
        const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
        assert_int_equal(plumb_dtype_from_name(info->name), dtype);
        snprintf(text, sizeof text, "torch.%s", info->name);
        assert_int_equal(plumb_dtype_from_name(text), dtype);
        if (info->safetensors)
            assert_int_equal(plumb_dtype_from_name(info->safetensors), dtype);
        assert_int_equal(plumb_dtype_parts(dtype), info->kind == PLUMB_KIND_COMPLEX ? 2 : 1);
    }
    static const struct {
        const char *name;
        enum plumb_dtype dtype;
    } rows[] = {{"torch.float", PLUMB_F32},
                {"float", PLUMB_F32},
                {"double", PLUMB_F64},
                {"torch.double", PLUMB_F64},
                {"half", PLUMB_F16},
                {"torch.half", PLUMB_F16},
                {"torch.long", PLUMB_I64},
                {"int", PLUMB_I32},
                {"short", PLUMB_I16},
                {"cfloat", PLUMB_C64},
                {"cdouble", PLUMB_C128},
                {"bf16", PLUMB_BF16},
                {"torch.bfloat16", PLUMB_BF16},
                {"F8_E4M3", PLUMB_F8_E4M3FN},
                {"torch.bool", PLUMB_BOOL},
                {"float8_e8m0", PLUMB_F8_E8M0},
                {"U64", PLUMB_U64},
                {"", PLUMB_DTYPE_COUNT},
                {"torch.", PLUMB_DTYPE_COUNT},
                {"float33", PLUMB_DTYPE_COUNT},
                {"Float32", PLUMB_DTYPE_COUNT},
                {"float32 ", PLUMB_DTYPE_COUNT},
                {"torch.torch.float32", PLUMB_DTYPE_COUNT},
                {"tensor.int8", PLUMB_DTYPE_COUNT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(plumb_dtype_from_name(rows[i].name), rows[i].dtype);
}

/* The limits in the table are those of the values. */
static void test_limits(void **state)
{
    (void)state;
    static double values[65536];
    for (size_t t = 0; t < sizeof small_floats / sizeof *small_floats; t++) {
        const struct plumb_dtype_info *info = plumb_dtype_info(small_floats[t]);
        size_t count = all_values(small_floats[t], values);
        for (size_t i = 0; i + 1 < count; i++)
            if (values[i] == 1)
                assert_true(values[i + 1] - 1 == ldexp(1, -info->precision));
        if (small_floats[t] == PLUMB_HIF8)
            continue; /* has no normal numbers in the usual sense */
        double normal = ldexp(1, info->emin);
        for (size_t i = 0; i + 1 < count; i++)
            if (values[i] == normal)
                assert_true(values[i + 1] - normal == ldexp(1, info->emin - info->precision));
    }
}

static void test_bytes(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_true(plumb_dtype_bytes(PLUMB_F32, 7, &bytes) && bytes == 28);
    assert_true(plumb_dtype_bytes(PLUMB_C128, 7, &bytes) && bytes == 112);
    assert_true(plumb_dtype_bytes(PLUMB_I4, 7, &bytes) && bytes == 4);
    assert_true(plumb_dtype_bytes(PLUMB_F4_E2M1, 0, &bytes) && bytes == 0);
    assert_true(plumb_dtype_bytes(PLUMB_I4, UINT64_MAX, &bytes) && bytes == UINT64_C(1) << 63);
    assert_true(plumb_dtype_bytes(PLUMB_U8, UINT64_MAX, &bytes) && bytes == UINT64_MAX);
    assert_true(plumb_dtype_bytes(PLUMB_F16, UINT64_MAX / 2, &bytes) && bytes == UINT64_MAX - 1);
    assert_false(plumb_dtype_bytes(PLUMB_F16, UINT64_MAX / 2 + 1, &bytes));
    assert_true(plumb_dtype_bytes(PLUMB_F64, UINT64_MAX / 8, &bytes));
    assert_false(plumb_dtype_bytes(PLUMB_F64, UINT64_MAX / 8 + 1, &bytes));
    assert_false(plumb_dtype_bytes(PLUMB_C128, UINT64_C(1) << 60, &bytes));
}

/* -- Somebody else's list ---------------------------------------------------------------------- */

/* golden/compare/vectors/lowbit_decode.csv: code, then for each of three types what a tool reads
 * and what is true. */
static void test_golden_list(void **state)
{
    (void)state;
    const char *data = getenv("PLUMB_TEST_DATA");
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/golden/compare/vectors/lowbit_decode.csv",
             data ? data : "tests/data");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(strncmp(line, "code,msprobe_hif8,true_hif8,msprobe_e4m3fn,true_e4m3fn,", 55),
                     0);
    unsigned rows = 0;
    for (; fgets(line, sizeof line, file); rows++) {
        static const enum plumb_dtype types[] = {PLUMB_HIF8, PLUMB_F8_E4M3FN, PLUMB_F8_E5M2};
        char *rest;
        uint8_t code = (uint8_t)strtoul(line, &rest, 10);
        for (int t = 0; t < 3; t++) {
            strtod(rest + 1, &rest);
            double wanted = strtod(rest + 1, &rest), got;
            plumb_to_f64(types[t], &code, 0, 1, false, &got);
            if (!(isnan(wanted) ? isnan(got) : got == wanted))
                check(types[t], code, got, wanted);
        }
    }
    fclose(file);
    assert_true(rows >= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_bytes),    cmocka_unit_test(test_all_words),
        cmocka_unit_test(test_nibbles),      cmocka_unit_test(test_wide),
        cmocka_unit_test(test_round_values), cmocka_unit_test(test_round_overflow),
        cmocka_unit_test(test_round_single), cmocka_unit_test(test_round_zero),
        cmocka_unit_test(test_names),        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_golden_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
