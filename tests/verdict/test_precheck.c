#define _GNU_SOURCE
#include "msprobe/numpy_sum.h"
#include "msprobe/profile.h"
#include "plumb/metric.h"
#include "verdict/cells.h"
#include "verdict/precheck.h"
#include "verdict/precheck_parts.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static struct plumb_tensor tensor(enum plumb_dtype dtype, int64_t n, const void *data)
{
    struct plumb_tensor t;
    assert_int_equal(plumb_tensor_init(&t, dtype, 1, &n, NULL), PLUMB_OK);
    t.data = data;
    return t;
}

static struct details_row judge_args(const struct precheck_profile *rules, const char *api,
                                     const struct plumb_arg *bench, const struct plumb_arg *device)
{
    struct judge_options options = {
        .rules = rules->standards, .precision = 14, .quantized = standard_quantized};
    struct details_row row;
    memset(&row, 0x55, sizeof row);
    assert_int_equal(judge_output(&options, api, false, bench, device, &arena, &row), PLUMB_OK);
    assert_non_null(row.message);
    for (int i = 0; i < CELL_COUNT; i++)
        assert_non_null(row.cell[i]);
    return row;
}

static struct details_row judge_tensor(const struct precheck_profile *rules, const char *api,
                                       const struct plumb_tensor *bench,
                                       const struct plumb_tensor *device)
{
    struct plumb_arg b = {.kind = PLUMB_ARG_TENSOR, .tensor = bench};
    struct plumb_arg d = {.kind = PLUMB_ARG_TENSOR, .tensor = device};
    return judge_args(rules, api, &b, &d);
}

static struct details_row judge(const struct precheck_profile *rules, const char *api,
                                enum plumb_dtype bench, const void *b, enum plumb_dtype device,
                                const void *d, int64_t n)
{
    struct plumb_tensor bt = tensor(bench, n, b), dt = tensor(device, n, d);
    return judge_tensor(rules, api, &bt, &dt);
}

/* float64 against float32, documented. */
static struct details_row singles(const char *api, const double *b, const float *d, int64_t n)
{
    return judge(&profile_documented, api, PLUMB_F64, b, PLUMB_F32, d, n);
}

static double number(const struct details_row *row, enum details_cell cell)
{
    return strtod(row->cell[cell], NULL);
}

static void expect(const struct details_row *row, enum check_status status, const char *part)
{
    assert_string_equal(check_status_text(row->status), check_status_text(status));
    if (!strstr(row->message, part))
        fail_msg("\"%s\" does not say \"%s\"", row->message, part);
}

static void test_equal_specials(void **state)
{
    (void)state;
    double b[] = {1, NAN, INFINITY, -INFINITY, 1e39, -1e300, 2};
    float d[] = {1, NAN, INFINITY, -INFINITY, INFINITY, -INFINITY, 2};
    struct details_row row = singles("softmax", b, d, 7);
    expect(&row, STATUS_PASS, "maximum absolute error 0 is below 0.001");
    assert_string_equal(row.cell[CELL_COSINE], "1.00000000000000");
    assert_string_equal(row.cell[CELL_DUAL_10000], "1.00000000000000");
    assert_string_equal(row.cell[CELL_INF_NAN], "0.00000000000000");
    assert_string_equal(row.cell[CELL_BINARY], "0.00000000000000");
    assert_string_equal(row.cell[CELL_ULP_MAX], "0.00000000000000");
    assert_string_equal(row.shape, "(7,)");

    row = singles("softmax", b + 1, d + 1, 5); /* nothing but such pairs */
    expect(&row, STATUS_PASS, "the same on both sides");
}

/* One bad value among very many is as bad as many. */
static void test_rare_mismatch(void **state)
{
    (void)state;
    enum { N = 100003 };
    double *b = malloc(N * sizeof *b);
    float *d = malloc(N * sizeof *d);
    const struct {
        double b;
        float d;
        const char *max;
    } bad[] = {{1, NAN, "nan"},
               {NAN, 1, "nan"},
               {1, INFINITY, "inf"},
               {INFINITY, 1, "inf"},
               {INFINITY, -INFINITY, "inf"},
               {NAN, INFINITY, "nan"},
               {1e39, -INFINITY, "inf"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        for (int i = 0; i < N; i++) {
            b[i] = 1 + i % 7;
            d[i] = (float)b[i];
        }
        b[77777] = bad[k].b;
        d[77777] = bad[k].d;
        struct details_row row = singles("softmax", b, d, N);
        expect(&row, STATUS_ERROR, "1 of 100003 values");
        assert_string_equal(row.cell[CELL_MAX_ABS], bad[k].max);
        assert_string_equal(row.cell[CELL_COSINE], "nan");
        assert_true(fabs(number(&row, CELL_INF_NAN) - 1.0 / (double)N) < 1e-13);
        assert_true(fabs(number(&row, CELL_DUAL_100) - (double)(N - 1) / (double)N) < 1e-13);
        assert_true(fabs(number(&row, CELL_BINARY) - 1.0 / (double)N) < 1e-13);
        row = singles("relu", b, d, N);
        expect(&row, STATUS_ERROR, "1 of 100003 values");
    }
    /* A device that stops at its largest number, where the true one is only a little beyond. */
    double over = 3.4028236e38;
    float most = 3.4028235e38f;
    struct details_row row = singles("softmax", &over, &most, 1);
    expect(&row, STATUS_PASS, "dual-10000 1 is above 0.9999");
    free(b);
    free(d);
}

static void test_binary_consistency(void **state)
{
    (void)state;
    double b[] = {0.1, -0.0, 3, NAN};
    float d[] = {0.1f, -0.0f, 3, NAN};
    struct details_row row = singles("relu", b, d, 4);
    expect(&row, STATUS_PASS, "0 of 4 values differ");

    d[1] = 0;
    row = singles("relu", b, d, 4);
    expect(&row, STATUS_ERROR, "1 of 4 values differ");
    assert_string_equal(row.cell[CELL_BINARY], "0.25000000000000");
    assert_string_equal(row.cell[CELL_MAX_ABS], "0.00000000149012");
    row = singles("softmax", b, d, 4); /* another standard decides, the column is filled anyway */
    expect(&row, STATUS_PASS, "maximum absolute error");
    assert_string_equal(row.cell[CELL_BINARY], "0.25000000000000");

    d[1] = -0.0f;
    d[2] = nextafterf(3, 4);
    row = singles("neg_", b, d, 4);
    expect(&row, STATUS_ERROR, "1 of 4 values differ");
    assert_string_equal(row.cell[CELL_BALANCE], "0.25000000000000");
}

/* The vectorised rounding of the benchmark against the library's, over ties and subnormals. */
static void test_rounding(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_F16, PLUMB_BF16, PLUMB_F32, PLUMB_F8_E5M2};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const struct plumb_dtype_info *info = plumb_dtype_info(types[t]);
        double b[600];
        int n = 0;
        for (int e = -150; e < 20; e += 7) {
            double x = ldexp(1.37, e);
            double step = ldexp(1, (e > info->emin ? e : info->emin) - info->precision);
            double at = floor(x / step) * step;
            b[n++] = at;
            b[n++] = at + step / 2; /* a tie */
            b[n++] = -(at + step * 1.5);
            b[n++] = at + step * 0.49;
        }
        b[n++] = 0;
        b[n++] = info->max_finite;
        /* The device returns what the library rounds to: nothing may differ. */
        unsigned char d[600 * 4];
        for (int i = 0; i < n; i++) {
            double r = plumb_round_to(types[t], b[i]);
            float f = (float)r;
            uint32_t bits;
            memcpy(&bits, &f, 4);
            if (types[t] == PLUMB_F32)
                memcpy(d + 4 * i, &bits, 4);
            else if (types[t] == PLUMB_BF16)
                memcpy(d + 2 * i, (char *)&bits + 2, 2);
            else
                for (unsigned code = 0; code < 1u << info->bits; code++) {
                    uint16_t half = (uint16_t)code;
                    uint8_t quarter = (uint8_t)code;
                    const void *raw = info->bits == 16 ? (void *)&half : (void *)&quarter;
                    double value;
                    plumb_to_f64(types[t], raw, 0, 1, false, &value);
                    if (value == r && signbit(value) == signbit(r))
                        memcpy(d + i * (info->bits / 8), raw, info->bits / 8);
                }
        }
        struct details_row row = judge(&profile_documented, "relu", PLUMB_F64, b, types[t], d, n);
        expect(&row, STATUS_PASS, "0 of");
        assert_string_equal(row.cell[CELL_BALANCE], "0.00000000000000");
    }
}

/* 8-bit floats are held to the share of ULP errors: what is rounded right passes, zeros and values
 * below the type's smallest included, and what is two digits off does not. */
static void test_eight_bits(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_F8_E4M3FN, PLUMB_F8_E5M2, PLUMB_F8_E4M3FNUZ,
                                             PLUMB_F8_E5M2FNUZ, PLUMB_HIF8};
    enum { N = 2000 };
    static double b[N];
    static uint8_t d[N];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (int i = 0; i < N; i++) {
            b[i] = i % 50 == 0 ? 0 : ldexp(1 + i % 37 / 37.0, i % 9 - 7) * (i % 3 ? 1 : -1);
            double wanted = plumb_round_to(types[t], b[i]), value;
            for (unsigned code = 0; code < 256; code++) {
                uint8_t byte = (uint8_t)code;
                plumb_to_f64(types[t], &byte, 0, 1, false, &value);
                if (value == wanted)
                    d[i] = byte;
            }
        }
        struct details_row row =
            judge(&profile_documented, "softmax", PLUMB_F64, b, types[t], d, N);
        expect(&row, STATUS_PASS, "proportion of ULP errors over 1: 0 is below 0.001");
        assert_string_equal(row.cell[CELL_ULP_RATE], "0.00000000000000");
        for (int k = 0; k < 2; k++) {
            b[100 * k + 8] = 8;
            for (unsigned code = 0; code < 256; code++) {
                uint8_t byte = (uint8_t)code;
                double value;
                plumb_to_f64(types[t], &byte, 0, 1, false, &value);
                if (value == 12)
                    d[100 * k + 8] = byte;
            }
            row = judge(&profile_documented, "softmax", PLUMB_F64, b, types[t], d, N);
            expect(&row, k ? STATUS_ERROR : STATUS_PASS,
                   k ? "over 1: 0.001 is not below 0.001" : "over 1: 0.0005 is below 0.001");
        }
    }
}

/* n values of 100; the first `off` are wrong by a relative error. */
static struct details_row spoiled(enum plumb_dtype device, int n, int off, double error)
{
    double *b = malloc((size_t)n * sizeof *b);
    float *d = malloc((size_t)n * sizeof *d);
    uint16_t *h = malloc((size_t)n * sizeof *h);
    for (int i = 0; i < n; i++) {
        b[i] = 128;
        d[i] = (float)(i < off ? 128 * (1 + error) : 128);
        uint32_t bits;
        memcpy(&bits, &d[i], 4);
        h[i] = (uint16_t)(bits >> 16);
    }
    struct details_row row = judge(&profile_documented, "softmax", PLUMB_F64, b, device,
                                   device == PLUMB_F32 ? (void *)d : (void *)h, n);
    free(b);
    free(d);
    free(h);
    return row;
}

static void test_ladder(void **state)
{
    (void)state;
    struct details_row row = spoiled(PLUMB_F32, 1000, 1, 0.05);
    expect(&row, STATUS_ERROR, "dual-1000 0.999 is not above 0.999"); /* as many is too many */
    row = spoiled(PLUMB_F32, 1001, 1, 0.05);
    expect(&row, STATUS_WARNING, "dual-10000 0.999001 is not above 0.9999");
    row = spoiled(PLUMB_F32, 20000, 1, 0.05);
    expect(&row, STATUS_PASS, "dual-10000 0.99995 is above 0.9999");
    row = spoiled(PLUMB_F32, 100, 100, 5e-4);
    expect(&row, STATUS_WARNING, "dual-10000 0 is not above 0.9999");

    row = spoiled(PLUMB_BF16, 100, 1, 0.5);
    expect(&row, STATUS_ERROR, "dual-100 0.99 is not above 0.99");
    row = spoiled(PLUMB_BF16, 101, 1, 0.5);
    expect(&row, STATUS_WARNING, "dual-1000 0.990099 is not above 0.999");
    row = spoiled(PLUMB_BF16, 2000, 1, 0.5);
    expect(&row, STATUS_PASS, "dual-1000 0.9995 is above 0.999");

    double b[] = {1, -1, 1, 1};
    float d[] = {1, 1, 1, -1};
    row = singles("softmax", b, d, 4);
    expect(&row, STATUS_ERROR, "cosine similarity 0 is not above 0.99");

    double edge[] = {0, 0.5};
    float near[] = {0, 0.5f};
    near[0] = 0.001f; /* a little over 0.001 in float32 */
    row = singles("softmax", edge, near, 2);
    assert_int_equal(row.status, STATUS_ERROR);
    near[0] = nextafterf(0.001f, 0);
    row = singles("softmax", edge, near, 2);
    expect(&row, STATUS_PASS, "maximum absolute error 0.001 is below 0.001");
}

static void test_undefined_cosine(void **state)
{
    (void)state;
    double zero[] = {0, 0, -0.0}, some[] = {0, 1e-4, 0}, one[] = {5};
    float fzero[] = {0, 0, 0}, fsome[] = {0, 1e-4f, 0}, fone[] = {6};
    struct details_row row = singles("softmax", zero, fzero, 3);
    expect(&row, STATUS_PASS, "both sides are zero");
    assert_string_equal(row.cell[CELL_COSINE], " ");
    row = singles("softmax", some, fzero, 3);
    expect(&row, STATUS_ERROR, "device's values are all zero");
    row = singles("softmax", zero, fsome, 3);
    expect(&row, STATUS_ERROR, "benchmark's values are all zero");
    assert_string_equal(row.cell[CELL_COSINE], " ");
    row = singles("softmax", one, fone, 1);
    expect(&row, STATUS_ERROR, "a single element has no cosine similarity; dual-1000 0");
    assert_string_equal(row.cell[CELL_COSINE], " ");
}

/* What is as good as zero is not called zero. */
static void test_nearly_zero(void **state)
{
    (void)state;
    double zero[] = {0, 0, 0}, tiny[] = {1e-16, 0, -2e-16}, some[] = {0, 1e-4, 0};
    float fzero[] = {0, 0, 0}, ftiny[] = {-1e-16f, 0, 2e-16f}, fsome[] = {0, 1e-4f, 0};
    struct details_row row = singles("softmax", tiny, ftiny, 3);
    expect(&row, STATUS_PASS, "no value of either side is above 2e-16, so there is no cosine");
    assert_string_equal(row.cell[CELL_COSINE], " ");
    row = singles("softmax", tiny, fzero, 3);
    expect(&row, STATUS_PASS, "no value of either side is above 2e-16");
    row = singles("softmax", zero, ftiny, 3);
    expect(&row, STATUS_PASS, "no value of either side is above 2e-16");
    row = singles("softmax", some, ftiny, 3);
    expect(&row, STATUS_ERROR, "no value of the device is above 2e-16, those of the benchmark are");
    row = singles("softmax", tiny, fsome, 3);
    expect(&row, STATUS_ERROR, "no value of the benchmark is above 2e-16, those of the device are");
    float noise[] = {0, 1e-6f, 0}; /* up to 64 units in the last place of 1 */
    row = singles("softmax", zero, noise, 3);
    expect(&row, STATUS_PASS, "no value of either side is above 1e-06");

    /* One side just above the limit and the other just below it. */
    double above[] = {0x1.00001p-52, -0x1p-53, 0x1p-60};
    float below[] = {0x1p-52f, -0x1p-53f, 0x1p-60f};
    row = singles("softmax", above, below, 3);
    expect(&row, STATUS_PASS, "no value of either side is above 2.2204");
    float over[] = {0x1.00001p-52f, -0x1p-53f, 0x1p-60f};
    double under[] = {0x1p-52, -0x1p-53, 0x1p-60};
    row = singles("softmax", under, over, 3);
    expect(&row, STATUS_PASS, "no value of either side is above 2.2204");
    row = singles("softmax", above, fzero, 3);
    expect(&row, STATUS_ERROR, "the device's values are all zero");
}

static void test_small_values(void **state)
{
    (void)state;
    /* At the limit 2^-14 a value is small; its error may be 2^-30. */
    double b[] = {0x1p-14, 0x1.8p-14, 0x1p-20, 1};
    float d[] = {0x1p-14f + 0x1p-29f, 0x1.8p-14f, 0x1p-20f, 1 + 0x1p-19f};
    struct details_row row = singles("softmax", b, d, 4);
    assert_string_equal(row.cell[CELL_SMALL], "0.50000000000000");
    assert_string_equal(row.cell[CELL_ABS_RATE], "0.50000000000000");
    assert_string_equal(row.cell[CELL_REL_RATE], "0.50000000000000");
    assert_true(fabs(number(&row, CELL_MAX_REL) - 0x1p-19) < 1e-14);
    assert_string_equal(row.cell[CELL_ULP_MAX], "256.00000000000000");
    assert_string_equal(row.cell[CELL_ULP_RATE], "0.25000000000000");
}

static void test_integers(void **state)
{
    (void)state;
    int16_t a[] = {1, -2, 3}, b[] = {1, -2, 4};
    struct details_row row = judge(&profile_documented, "add", PLUMB_I16, a, PLUMB_I16, b, 3);
    expect(&row, STATUS_ERROR, "1 of 3 values differ");
    assert_string_equal(row.cell[CELL_BINARY], "0.33333333333333");
    row = judge(&profile_documented, "add", PLUMB_I16, a, PLUMB_I16, a, 3);
    expect(&row, STATUS_PASS, "0 of 3");
    row = judge(&profile_msprobe, "add", PLUMB_I16, a, PLUMB_I16, a, 3);
    expect(&row, STATUS_ERROR, "cannot be compared");
    row = judge(&profile_documented, "add", PLUMB_U32, a, PLUMB_U32, a, 1);
    assert_int_equal(row.status, STATUS_PASS);
    row = judge(&profile_documented, "add", PLUMB_U16, a, PLUMB_U16, b, 3);
    assert_int_equal(row.status, STATUS_ERROR);

    int64_t big[] = {INT64_MAX, INT64_MIN}, near[] = {INT64_MAX - 1, INT64_MIN};
    for (int rules = 0; rules < 2; rules++) {
        row = judge(precheck_profiles[rules], "add", PLUMB_I64, big, PLUMB_I64, near, 2);
        expect(&row, STATUS_ERROR, "1 of 2");
    }
    float f[] = {1, 2, 3};
    row = judge(&profile_documented, "add", PLUMB_I16, a, PLUMB_F32, f, 3);
    expect(&row, STATUS_ERROR,
           "torch.int16 of the benchmark cannot be compared with torch.float32");
}

static void test_quantized(void **state)
{
    (void)state;
    int8_t a[] = {127, 5}, far[] = {-128, 5}, near[] = {126, 5};
    struct details_row row;
    row = judge(&profile_documented, "npu_dynamic_quant", PLUMB_I8, a, PLUMB_I8, far, 2);
    expect(&row, STATUS_ERROR, "maximum absolute error 255");
    row = judge(&profile_msprobe, "npu_dynamic_quant", PLUMB_I8, a, PLUMB_I8, far, 2);
    expect(&row, STATUS_PASS, "maximum absolute error 1 is at most 1"); /* wraps around */
    assert_string_equal(row.cell[CELL_MAX_ABS], "1");
    row = judge(&profile_documented, "npu_dynamic_quant", PLUMB_I8, a, PLUMB_I8, near, 2);
    assert_int_equal(row.status, STATUS_PASS);
    row = judge(&profile_documented, "add", PLUMB_I8, a, PLUMB_I8, near, 2);
    assert_int_equal(row.status, STATUS_ERROR);

    int64_t wide[] = {INT64_MIN}, zero[] = {0};
    row = judge(&profile_msprobe, "npu_dynamic_quant", PLUMB_I64, zero, PLUMB_I64, wide, 1);
    assert_string_equal(row.cell[CELL_MAX_ABS], "-9223372036854775808");
    assert_int_equal(row.status, STATUS_PASS);
    row = judge(&profile_documented, "npu_dynamic_quant", PLUMB_I64, zero, PLUMB_I64, wide, 1);
    assert_int_equal(row.status, STATUS_ERROR);
    bool yes[] = {true};
    row = judge(&profile_msprobe, "npu_dynamic_quant", PLUMB_BOOL, yes, PLUMB_BOOL, yes, 1);
    expect(&row, STATUS_SKIP, "bool");
}

static void test_complex_and_double(void **state)
{
    (void)state;
    double b[] = {1, 2, 3, 4};
    float d[] = {1, 2, 3, 4.5f};
    struct details_row row = judge(&profile_documented, "mul", PLUMB_C128, b, PLUMB_C64, d, 2);
    expect(&row, STATUS_ERROR, "dual-1000 0.75");
    assert_string_equal(row.bench_dtype, "torch.complex128");
    assert_string_equal(row.cell[CELL_MAX_ABS], "0.50000000000000");
    assert_string_equal(row.cell[CELL_BINARY], "0.25000000000000");
    row = judge(&profile_msprobe, "mul", PLUMB_C128, b, PLUMB_C64, d, 2);
    expect(&row, STATUS_ERROR, "cannot be compared");

    double e[] = {1, 2, 3, nextafter(4, 5)};
    row = judge(&profile_documented, "softmax", PLUMB_F64, b, PLUMB_F64, e, 4);
    assert_int_equal(row.status, STATUS_PASS);
    assert_string_equal(row.cell[CELL_ULP_MAX], "1.00000000000000");
    row = judge(&profile_documented, "relu", PLUMB_F64, b, PLUMB_F64, e, 4);
    assert_int_equal(row.status, STATUS_ERROR);

    double huge[] = {1e300, -1e300}, same[] = {1e300, -1e300};
    row = judge(&profile_documented, "softmax", PLUMB_F64, huge, PLUMB_F64, same, 2);
    expect(&row, STATUS_PASS, "maximum absolute error 0");
    assert_string_equal(row.cell[CELL_COSINE], "1.00000000000000");
    double zero[] = {0, 1}, far[] = {1e300, 1};
    row = judge(&profile_documented, "softmax", PLUMB_F64, zero, PLUMB_F64, far, 2);
    expect(&row, STATUS_ERROR, "cosine similarity");
    assert_string_equal(row.cell[CELL_MAX_REL], "0.00000000000000");
    assert_string_equal(row.cell[CELL_MEAN_REL], "0.00000000000000");
    assert_string_equal(row.cell[CELL_SMALL], "1.00000000000000");
}

/* The same values in another layout, or on another processor, give the same row. */
static void test_layouts(void **state)
{
    (void)state;
    enum { ROWS = 70, COLUMNS = 50, N = ROWS * COLUMNS };
    static double b[N], bt[N];
    static float d[N], dt[N];
    for (int i = 0; i < N; i++) {
        b[i] = sin(i) * exp2(i % 11 - 5);
        d[i] = (float)(b[i] * (1 + 1e-6 * cos(i)));
        int at = i % COLUMNS * ROWS + i / COLUMNS;
        bt[at] = b[i];
        dt[at] = d[i];
    }
    int64_t shape[] = {ROWS, COLUMNS}, stride[] = {1, ROWS};
    struct plumb_tensor plain[2], turned[2];
    for (int k = 0; k < 2; k++) {
        enum plumb_dtype dtype = k ? PLUMB_F32 : PLUMB_F64;
        assert_int_equal(plumb_tensor_init(&plain[k], dtype, 2, shape, NULL), PLUMB_OK);
        turned[k] = plain[k];
        assert_int_equal(plumb_tensor_set_strides(&turned[k], stride, 0, N, NULL), PLUMB_OK);
        plain[k].data = k ? (void *)d : (void *)b;
        turned[k].data = k ? (void *)dt : (void *)bt;
    }
    for (int rules = 0; rules < 2; rules++) {
        struct details_row x = judge_tensor(precheck_profiles[rules], "mm", &plain[0], &plain[1]);
        plumb_cpu_mask(0);
        struct details_row y = judge_tensor(precheck_profiles[rules], "mm", &turned[0], &turned[1]);
        plumb_cpu_mask(~0u);
        assert_string_equal(x.message, y.message);
        assert_string_equal(y.shape, "(70, 50)");
        for (int i = 0; i < CELL_COUNT; i++)
            assert_string_equal(x.cell[i], y.cell[i]);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    float f[] = {1, 2, 3, 4, 5, 6};
    struct plumb_tensor a, b;
    int64_t wide[] = {2, 3}, tall[] = {3, 2}, none[] = {0, 3};
    plumb_tensor_init(&a, PLUMB_F32, 2, wide, NULL);
    plumb_tensor_init(&b, PLUMB_F32, 2, tall, NULL);
    a.data = b.data = f;
    struct details_row row = judge_tensor(&profile_documented, "mm", &a, &b);
    expect(&row, STATUS_ERROR, "shapes differ: the benchmark's is (2, 3), the device's (3, 2)");
    assert_string_equal(row.shape, "(3, 2)");
    assert_string_equal(row.cell[CELL_MAX_ABS], " ");
    plumb_tensor_init(&a, PLUMB_F32, 2, none, NULL);
    for (int rules = 0; rules < 2; rules++) {
        row = judge_tensor(precheck_profiles[rules], "mm", &a, &a);
        expect(&row, STATUS_SKIP, "no elements");
    }
    plumb_tensor_init(&a, PLUMB_F32, 0, none, NULL);
    a.data = f;
    row = judge_tensor(&profile_documented, "mm", &a, &a);
    assert_string_equal(row.shape, "()");
    assert_int_equal(row.status, STATUS_PASS);
}

static void test_plain_values(void **state)
{
    (void)state;
    struct plumb_arg none = {.kind = PLUMB_ARG_NONE}, list = {.kind = PLUMB_ARG_LIST};
    double number = 1;
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F64, 0, NULL, NULL), PLUMB_OK);
    tensor.data = &number;
    struct plumb_arg values = {.kind = PLUMB_ARG_TENSOR, .tensor = &tensor};
    struct plumb_arg yes = {.kind = PLUMB_ARG_BOOL, .integer = 1};
    struct plumb_arg one = {.kind = PLUMB_ARG_INT, .integer = 1};
    struct plumb_arg nan = {.kind = PLUMB_ARG_FLOAT, .number = NAN};
    struct plumb_arg ab = {.kind = PLUMB_ARG_TEXT, .text = "ab"};
    struct plumb_arg cd = {.kind = PLUMB_ARG_TEXT, .text = "cd"};
    for (int r = 0; r < 2; r++) {
        const struct precheck_profile *rules = precheck_profiles[r];
        struct details_row row = judge_args(rules, "size", &none, &none);
        expect(&row, STATUS_SKIP, "None");
        row = judge_args(rules, "svd", &none, &values);
        assert_int_equal(row.status, rules == &profile_msprobe ? STATUS_ERROR : STATUS_SKIP);
        row = judge_args(rules, "svd", &values, &none);
        assert_int_equal(row.status, STATUS_ERROR);
        row = judge_args(rules, "size", &yes, &one);
        expect(&row, STATUS_PASS, "equal");
        assert_string_equal(row.bench_dtype, "<class 'bool'>");
        assert_string_equal(row.device_dtype, "<class 'int'>");
        row = judge_args(rules, "size", &one, &yes);
        expect(&row, STATUS_ERROR, "the benchmark returned an int, the device a bool");
        row = judge_args(rules, "size", &ab, &cd);
        expect(&row, STATUS_ERROR, "differ");
        row = judge_args(rules, "size", &ab, &ab);
        expect(&row, STATUS_PASS, "equal");
        row = judge_args(rules, "size", &list, &list);
        expect(&row, STATUS_ERROR, "a list cannot be compared");
        row = judge_args(rules, "size", &nan, &nan);
        assert_int_equal(row.status, rules == &profile_msprobe ? STATUS_ERROR : STATUS_PASS);
    }
}

static void test_rows(void **state)
{
    (void)state;
    struct details_row rows[3] = {
        {.status = STATUS_ERROR}, {.status = STATUS_WARNING}, {.status = STATUS_SKIP}};
    assert_int_equal(judge_rows(&profile_documented, rows, 3), STATUS_ERROR);
    assert_int_equal(judge_rows(&profile_msprobe, rows, 3), STATUS_WARNING);
    assert_int_equal(judge_rows(&profile_documented, rows + 1, 2), STATUS_WARNING);
    assert_int_equal(judge_rows(&profile_documented, rows + 2, 1), STATUS_PASS);
    assert_int_equal(judge_rows(&profile_msprobe, rows + 2, 1), STATUS_PASS);
    assert_int_equal(judge_rows(&profile_documented, rows, 0), STATUS_BLANK);
}

static void test_dropout(void **state)
{
    (void)state;
    enum { N = 100 };
    double b[N];
    float d[N];
    for (int i = 0; i < N; i++) {
        b[i] = i % 2;
        d[i] = (float)b[i];
    }
    struct plumb_tensor bt = tensor(PLUMB_F64, N, b), dt = tensor(PLUMB_F32, N, d);
    struct plumb_arg ba = {.kind = PLUMB_ARG_TENSOR, .tensor = &bt}, none = {0};
    struct plumb_arg da = {.kind = PLUMB_ARG_TENSOR, .tensor = &dt};
    for (int i = 0; i < 9; i++)
        d[2 * i] = 1;
    assert_int_equal(judge_dropout(&standards_documented, &ba, &da), STATUS_PASS);
    d[18] = 1; /* a tenth is too many */
    assert_int_equal(judge_dropout(&standards_documented, &ba, &da), STATUS_ERROR);
    struct plumb_tensor few = tensor(PLUMB_F32, N - 1, d), few_b = tensor(PLUMB_F64, N - 1, b);
    da.tensor = &few;
    assert_int_equal(judge_dropout(&standards_documented, &ba, &da),
                     STATUS_ERROR); /* not even as many elements */
    ba.tensor = &few_b;
    assert_int_equal(judge_dropout(&standards_documented, &ba, &da),
                     STATUS_PASS); /* too few to say */
    assert_int_equal(judge_dropout(&standards_documented, &ba, &none), STATUS_ERROR);
    assert_int_equal(judge_dropout(&standards_documented, &none, &none), STATUS_SKIP);
}

/* What numpy 1.24 prints. */
static void test_number_text(void **state)
{
    (void)state;
    static const struct {
        double value;
        enum plumb_dtype type;
        const char *text;
    } known[] = {
        {1e-5f, PLUMB_F32, "1e-05"},
        {1e-4f, PLUMB_F32, "1e-04"},
        {-1e-4f, PLUMB_F32, "-1e-04"},
        {0.00012345f, PLUMB_F32, "0.00012345"},
        {1e16f, PLUMB_F32, "1e+16"},
        {9.999e15f, PLUMB_F32, "9999000000000000.0"},
        {0.1f, PLUMB_F32, "0.1"},
        {123456.78f, PLUMB_F32, "123456.78"},
        {1.0f / 3, PLUMB_F32, "0.33333334"},
        {3.4028235e38f, PLUMB_F32, "3.4028235e+38"},
        {1e-45f, PLUMB_F32, "1e-45"},
        {16777216, PLUMB_F32, "16777216.0"},
        {0, PLUMB_F32, "0.0"},
        {NAN, PLUMB_F32, "nan"},
        {-INFINITY, PLUMB_F16, "-inf"},
        {65504, PLUMB_F16, "65500.0"},
        {2048, PLUMB_F16, "2048.0"},
        {0x1p-24, PLUMB_F16, "6e-08"},
        {0x1.554p-2, PLUMB_F16, "0.3333"},
        {0.1, PLUMB_F64, "0.10000000000000"},
        {-1e22, PLUMB_F64, "-10000000000000000000000.00000000000000"},
        {1e-15, PLUMB_F64, "0.00000000000000"},
        {NAN, PLUMB_F64, "nan"},
        {INFINITY, PLUMB_F64, "inf"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(cell_number(&arena, known[i].value, known[i].type, 14), known[i].text);
    assert_string_equal(cell_number(&arena, 2.5, PLUMB_F64, 0), "2");
    assert_string_equal(cell_number(&arena, 0.25, PLUMB_F64, 99), "0.25000000000000000000");
    assert_int_equal(strlen(cell_number(&arena, -1.7976931348623157e308, PLUMB_F64, 20)), 331);
}

/* Means that numpy 1.24 gave. */
static void test_numpy_sum(void **state)
{
    (void)state;
    struct numpy_sum *sum = malloc(sizeof *sum);
    numpy_sum_init(sum, PLUMB_F32);
    for (int i = 0; i < 100000; i++)
        numpy_sum_add(sum, 0.1f);
    assert_true(numpy_sum_mean(sum) == 0x1.99999cp-4);
    numpy_sum_init(sum, PLUMB_F16);
    for (int i = 0; i < 3000; i++)
        numpy_sum_add(sum, plumb_round_to(PLUMB_F16, i % 7 * 0.1));
    assert_true(numpy_sum_mean(sum) == 0x1.33p-2);
    free(sum);
}

static void test_standards(void **state)
{
    (void)state;
    static const struct {
        const char *api;
        enum check_standard standard;
    } known[] = {{"mul", STANDARD_ABSOLUTE},      {"__sub__", STANDARD_ABSOLUTE},
                 {"abs", STANDARD_BINARY},        {"type_as", STANDARD_BINARY},
                 {"matmul", STANDARD_ULP},        {"sspaddmm", STANDARD_ULP},
                 {"conv2d", STANDARD_THOUSANDTH}, {"test_api", STANDARD_ACCUMULATIVE},
                 {"softmax", STANDARD_BENCHMARK}, {"", STANDARD_BENCHMARK},
                 {"mul__", STANDARD_BENCHMARK}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *api = known[i].api;
        assert_int_equal(standard_of_api(&standards_documented, api), known[i].standard);
        assert_int_equal(standard_route(&standards_documented, api, PLUMB_F16, false),
                         known[i].standard);
        assert_int_equal(standard_route(&msprobe_standards, api, PLUMB_F64, false),
                         STANDARD_BENCHMARK);
        assert_int_equal(standard_route(&msprobe_standards, api, PLUMB_C64, false),
                         known[i].standard);
        for (int rules = 0; rules < 2; rules++) {
            const struct standard_set *r = precheck_profiles[rules]->standards;
            assert_int_equal(standard_route(r, api, PLUMB_I32, false), STANDARD_BINARY);
            assert_int_equal(standard_route(r, api, PLUMB_DTYPE_COUNT, false), STANDARD_BINARY);
            assert_int_equal(standard_route(r, api, PLUMB_HIF8, false), STANDARD_ULP);
            assert_int_equal(standard_route(r, api, PLUMB_F32, true), STANDARD_ABSOLUTE);
        }
    }
    assert_string_equal(standard_level_of(&msprobe_standards, "gelu")->name, "L0");
    assert_string_equal(standard_level_of(&standards_documented, "gelu")->name, "L2");
    assert_string_equal(standard_level_of(&msprobe_standards, "GELU")->name, "L2");
    assert_string_equal(standard_level_of(&standards_documented, "embedding")->name, "L1");
    assert_string_equal(standard_level_of(&standards_documented, "linear")->name, "L0");
    assert_true(standard_limits(&standards_documented, PLUMB_BF16)->small == 0x1p-8);
    assert_true(standard_limits(&msprobe_standards, PLUMB_BF16)->small == 0x1p-10);
}

static int release(void **state)
{
    (void)state;
    arena_free(&arena);
    arena = (struct arena){0};
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_specials),
        cmocka_unit_test(test_rare_mismatch),
        cmocka_unit_test(test_binary_consistency),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_eight_bits),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_undefined_cosine),
        cmocka_unit_test(test_nearly_zero),
        cmocka_unit_test(test_small_values),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_quantized),
        cmocka_unit_test(test_complex_and_double),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_plain_values),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_number_text),
        cmocka_unit_test(test_numpy_sum),
        cmocka_unit_test(test_standards),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
