/* The sketch of version 1: its definition written once more, that it is linear, and how good its
 * estimate is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/base85.h"
#include "metric/sketch.h"
#include "metric/sketch1.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100000 };

static void take(struct plumb_sketch *out, const double *x, size_t n)
{
    struct sketch1_state *state = sketch1_new();
    assert_non_null(state);
    for (size_t at = 0; at < n; at += 1024)
        sketch1_add(state, at, x + at, n - at < 1024 ? n - at : 1024);
    sketch1_finish(state, out);
    free(state);
}

/* About normal. */
static double bell(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += random_unit(seed);
    return sum;
}

static double sum_of(const struct plumb_sketch *sketch, int i)
{
    return ldexp((double)sketch->sum[i], sketch->exponent);
}

/* These must never change: files have been written with them. */
static void test_bins_and_signs(void **state)
{
    (void)state;
    static const struct {
        uint64_t index;
        int bin, sign;
    } known[] = {{0, 175, -1}, {1, 29, -1},  {2, 57, 1},        {3, 32, 1},
                 {4, 244, -1}, {255, 85, 1}, {1000003, 178, 1}, {UINT64_C(1) << 40, 24, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct plumb_sketch sketch;
        struct sketch1_state *sums = sketch1_new();
        assert_non_null(sums);
        sketch1_add(sums, known[i].index, (const double[]){1}, 1);
        sketch1_finish(sums, &sketch);
        free(sums);
        for (int k = 0; k < PLUMB_SKETCH_SUMS; k++)
            assert_true(sum_of(&sketch, k) == (k == known[i].bin ? known[i].sign : 0));
    }
}

/* In parts, in another order, with numbers that cancel: not a bit changes. */
static void test_order_does_not_matter(void **state)
{
    (void)state;
    uint64_t seed = 5;
    double *x = malloc(MOST * sizeof *x);
    struct plumb_sketch whole, parts;
    assert_non_null(x);
    for (size_t i = 0; i < MOST; i++)
        x[i] = ldexp(bell(&seed), (int)random_below(&seed, 200) - 100);
    take(&whole, x, MOST);
    struct sketch1_state *sums[2] = {sketch1_new(), sketch1_new()};
    assert_true(sums[0] && sums[1]);
    sketch1_add(sums[1], 50000, x + 50000, MOST - 50000);
    sketch1_add(sums[0], 30001, x + 30001, 50000 - 30001);
    sketch1_add(sums[1], 0, x, 30001);
    sketch1_merge(sums[0], sums[1]);
    sketch1_finish(sums[0], &parts);
    assert_memory_equal(&whole, &parts, sizeof whole);
    free(sums[0]);
    free(sums[1]);
    free(x);
}

static void test_extremes(void **state)
{
    (void)state;
    struct plumb_sketch sketch, other;
    double huge[4096], tiny[4096], odd[3] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 4096; i++) {
        huge[i] = 0x1.8p1023;
        tiny[i] = 0x1p-1074;
    }
    take(&sketch, huge, 4096);
    take(&other, huge, 4095);
    assert_true(sketch.exponent > 1023 && sketch.exponent < 1100);
    double distance = sketch_distance(&other, &sketch, NAN).distance;
    assert_true(distance > 0.01 && distance < 0.02); /* 1/64 */
    assert_true(sketch_distance(&other, &sketch, INFINITY).distance == distance);
    take(&sketch, tiny, 4096);
    take(&other, tiny, 4095);
    distance = sketch_distance(&other, &sketch, 0x1p-1068).distance;
    assert_true(distance == 0x1p-6);
    take(&sketch, odd, 3);
    take(&other, odd, 0);
    assert_memory_equal(&sketch, &other, sizeof sketch);
    assert_true(sketch_distance(&sketch, &other, 0).distance == 0);
    take(&sketch, (const double[]){3}, 1);
    assert_true(isinf(sketch_distance(&sketch, &other, 0).distance));
    assert_true(isinf(sketch_distance(&sketch, &other, NAN).distance));
}

/* Of 400 pairs, for sizes and kinds of difference, the root mean square error is what the formula
 * says, and nearly none is beyond three of them. */
static void test_stated_error(void **state)
{
    (void)state;
    enum { PAIRS = 400, COUNT = 3000 };
    uint64_t seed = 11;
    static double golden[COUNT], target[COUNT];
    double squares = 0;
    unsigned beyond = 0;
    for (unsigned pair = 0; pair < PAIRS; pair++) {
        struct plumb_sketch t, g;
        double norm = 0, wanted = 0;
        unsigned kind = pair % 4;
        for (size_t i = 0; i < COUNT; i++) {
            golden[i] = bell(&seed);
            target[i] = golden[i];
        }
        for (size_t i = 0; i < COUNT; i++) {
            if (kind == 0)
                target[i] += 0.01 * bell(&seed);
            else if (kind == 1)
                target[i] *= 1.003;
            else if (kind == 2)
                target[i] = golden[COUNT - 1 - i];
            else if (i % 500 == pair % 500)
                target[i] = 0;
        }
        for (size_t i = 0; i < COUNT; i++) {
            norm += golden[i] * golden[i];
            wanted += (target[i] - golden[i]) * (target[i] - golden[i]);
        }
        take(&t, target, COUNT);
        take(&g, golden, COUNT);
        const struct sketch_estimate estimate = sketch_distance(&t, &g, sqrt(norm));
        double got = estimate.distance;
        double error = got * got / (wanted / norm) - 1;
        squares += error * error;
        beyond += estimate.at_least > sqrt(wanted / norm);
    }
    const double spread = sqrt(squares / (double)PAIRS);
    assert_true(spread < 1.1 * sqrt(2.0 / 256)); /* that many pairs tell no more */
    assert_true(beyond <= PAIRS / 50);
}

static void test_base64(void **state)
{
    (void)state;
    uint8_t bytes[5] = {0, 255, 128, 7, 66}, back[5];
    for (size_t n = 0; n <= 5; n++) {
        struct buf text = {0};
        buf_text(&text, "");
        base64_put(&text, bytes, n);
        assert_true(base64_take(text.data, text.size, back, n));
        assert_memory_equal(bytes, back, n);
        assert_false(base64_take(text.data, text.size, back, n + 3));
        buf_free(&text);
    }
    assert_true(base64_take("Zm9vYg==", 8, back, 4) && memcmp(back, "foob", 4) == 0);
    static const char *const wrong[] = {"Zm9vYg=a", "Zm9vYh==", "Zm9v*g==", "Zm9vY===", "Zm9vYgaa"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(base64_take(wrong[i], 8, back, 4));
}

static void test_base85(void **state)
{
    (void)state;
    uint8_t bytes[64], back[64];
    uint64_t seed = 5;
    for (size_t n = 0; n <= sizeof bytes; n += 4) {
        struct buf text = {0};
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(n == 64 ? 255 : random_below(&seed, 256));
        base85_put(&text, bytes, n);
        assert_true(base85_take(text.data, text.size, back, n));
        assert_memory_equal(back, bytes, n);
        assert_false(base85_take(text.data, text.size, back, n + 4));
        assert_false(base85_take(text.data, text.size, back, n + 1));
        buf_free(&text);
    }
    /* As Python has it: b85encode(b"plumbing"). */
    assert_true(base85_take("aBOvLVrgz?", 10, back, 8) && memcmp(back, "plumbing", 8) == 0);
    static const char *const wrong[] = {"aBOv\"Vrgz?", "aBO\\LVrgz?", "aBOvL~~~~~", "aBOvL|NsC1",
                                        "aBOvLVrgz\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(base85_take(wrong[i], 10, back, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins_and_signs), cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_extremes),       cmocka_unit_test(test_stated_error),
        cmocka_unit_test(test_base64),         cmocka_unit_test(test_base85),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
