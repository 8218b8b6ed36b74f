/* The exact sum against MPFR with more bits than any such sum can have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/exact.h"
#include "random.h"

#include <float.h>
#include <mpfr.h>
#include <stdlib.h>

enum { PRECISION = 4000, MOST = 4096 };

static double true_sum(const double *values, size_t count)
{
    mpfr_t sum;
    mpfr_init2(sum, PRECISION);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(mpfr_add_d(sum, sum, values[i], MPFR_RNDN), 0); /* exact */
    double result = mpfr_get_d(sum, MPFR_RNDN);
    mpfr_clear(sum);
    return result;
}

static void same(double got, double wanted)
{
    if (!(isnan(wanted) ? isnan(got) : got == wanted))
        fail_msg("%a instead of %a", got, wanted);
}

/* All at once, backwards, and cut into parts that are merged in another order. */
static void check(const double *values, size_t count, uint64_t *seed)
{
    double wanted = true_sum(values, count);
    struct exact sum = {0}, back = {0}, merged = {0}, parts[5] = {0};
    for (size_t i = 0; i < count; i++)
        exact_add(&sum, values[i]);
    same(exact_round(&sum), wanted);
    for (size_t i = count; i-- > 0;)
        exact_add(&back, values[i]);
    same(exact_round(&back), wanted);
    for (size_t i = 0; i < count; i++)
        exact_add(&parts[random_below(seed, 5)], values[i]);
    for (int i = 4; i >= 0; i--)
        exact_merge(&merged, &parts[i]);
    same(exact_round(&merged), wanted);
    exact_add(&merged, 0);
    same(exact_round(&merged), wanted);
}

static void test_random(void **state)
{
    (void)state;
    static double values[MOST];
    uint64_t seed = 1;
    for (int round = 0; round < 300; round++) {
        size_t count = (size_t)random_below(&seed, round % 10 ? 50 : MOST);
        for (size_t i = 0; i < count; i++) { /* any exponent, but not so many that it overflows */
            values[i] = random_finite(&seed);
            if (fabs(values[i]) > 0x1p1010)
                values[i] *= 0x1p-30;
        }
        check(values, count, &seed);
    }
}

/* Neighbouring exponents, where carries and borrows run, and sums of few bits. */
static void test_narrow(void **state)
{
    (void)state;
    static double values[MOST];
    uint64_t seed = 2;
    for (int round = 0; round < 2000; round++) {
        size_t count = (size_t)random_below(&seed, 40);
        int base = (int)random_below(&seed, 2000) - 1050, width = 1 + (int)random_below(&seed, 120);
        for (size_t i = 0; i < count; i++) {
            double x = random_unit(&seed);
            if (round % 3 == 0)
                x = copysign(1, x);
            values[i] = ldexp(x, base + (int)random_below(&seed, (uint64_t)width));
        }
        check(values, count, &seed);
    }
}

/* What remains after everything large has cancelled. */
static void test_cancellation(void **state)
{
    (void)state;
    static double values[MOST];
    uint64_t seed = 3;
    for (int round = 0; round < 300; round++) {
        size_t count = 0;
        for (int i = 0; i < 100; i++) {
            double x = random_finite(&seed) * 0x1p-10;
            values[count++] = x;
            values[count++] = -x;
        }
        if (round % 2)
            values[count++] = ldexp(random_unit(&seed), (int)random_below(&seed, 2000) - 1070);
        for (size_t i = count; i-- > 1;) {
            size_t j = (size_t)random_below(&seed, i + 1);
            double x = values[i];
            values[i] = values[j];
            values[j] = x;
        }
        check(values, count, &seed);
    }
    struct exact sum = {0};
    exact_add(&sum, 1e308);
    exact_add(&sum, 5e-324);
    exact_add(&sum, -1e308);
    assert_true(exact_round(&sum) == 5e-324);
    exact_add(&sum, -5e-324);
    assert_true(exact_round(&sum) == 0);
}

static void test_ties(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int round = 0; round < 20000; round++) {
        /* x, half a unit of x, and perhaps a little more or less, at all exponents. */
        int exponent = (int)random_below(&seed, 1900) - 950;
        double x = ldexp(1 + fabs(random_unit(&seed)) / 2, exponent);
        double half = ldexp(1, exponent - 53);
        double sign = random_below(&seed, 2) ? 1 : -1;
        double values[3] = {sign * x, sign * half, 0};
        switch (random_below(&seed, 4)) {
        case 0:
            values[2] = sign * ldexp(half, -1 - (int)random_below(&seed, 100));
            break;
        case 1:
            values[2] = -sign * ldexp(half, -1 - (int)random_below(&seed, 100));
            break;
        case 2:
            values[2] = 5e-324;
            break;
        default:
            break;
        }
        check(values, 3, &seed);
    }
}

static void test_subnormal(void **state)
{
    (void)state;
    static double values[MOST];
    uint64_t seed = 5;
    for (int round = 0; round < 500; round++) {
        size_t count = (size_t)random_below(&seed, 200);
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = random_bits(&seed) & 0x800FFFFFFFFFFFFFu;
            if (round % 2)
                bits |= random_below(&seed, 4) << 52; /* and the smallest normal ones */
            values[i] = random_double_from_bits(bits);
        }
        check(values, count, &seed);
    }
}

static void test_overflow(void **state)
{
    (void)state;
    uint64_t seed = 6;
    const double half = 0x1p970; /* half a unit of the largest number */
    const struct {
        double values[4];
    } rows[] = {
        {{DBL_MAX, DBL_MAX, -DBL_MAX, 0}},
        {{DBL_MAX, DBL_MAX, DBL_MAX, -DBL_MAX}},
        {{DBL_MAX, half, 0, 0}},
        {{DBL_MAX, half, -5e-324, 0}},
        {{DBL_MAX, nextafter(half, 0), 0, 0}},
        {{-DBL_MAX, -half, 0, 0}},
        {{-DBL_MAX, -half, 5e-324, 0}},
        {{0x1p1023, 0x1p1023, 0, 0}},
        {{0x1p1023, 0x1p1023, -half, 0}},
        {{0x1p1023, 0x1p1023, -half, -5e-324}},
        {{-DBL_MAX, -DBL_MAX, -DBL_MAX, -DBL_MAX}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].values, 4, &seed);

    /* Far beyond, and back. */
    struct exact sum = {0};
    for (int i = 0; i < 100000; i++)
        exact_add(&sum, DBL_MAX);
    assert_true(exact_round(&sum) == INFINITY);
    for (int i = 0; i < 100000 - 1; i++)
        exact_add(&sum, -DBL_MAX);
    assert_true(exact_round(&sum) == DBL_MAX);
}

static void test_infinite(void **state)
{
    (void)state;
    struct exact sum = {0}, other = {0};
    exact_add(&sum, INFINITY);
    exact_add(&sum, -1e308);
    assert_true(exact_round(&sum) == INFINITY);
    exact_add(&other, -INFINITY);
    assert_true(exact_round(&other) == -INFINITY);
    exact_merge(&other, &sum);
    assert_true(isnan(exact_round(&other)));
    sum = (struct exact){0};
    exact_add(&sum, NAN);
    exact_add(&sum, INFINITY);
    assert_true(isnan(exact_round(&sum)));
    sum = (struct exact){0};
    assert_true(exact_round(&sum) == 0 && !signbit(exact_round(&sum)));
    exact_add(&sum, -0.0);
    assert_true(exact_round(&sum) == 0);
}

/* More additions than the carries can wait for without being settled. */
static void test_many(void **state)
{
    (void)state;
    struct exact sum = {0};
    const uint64_t steps = UINT64_C(1) << 22;
    sum.pending = (1u << 29) - (1u << 21); /* as if most had been made before */
    double x = nextafter(1, 0);            /* all bits set */
    for (uint64_t i = 0; i < steps; i++)
        exact_add(&sum, -x);
    assert_true(sum.pending < 1u << 29);
    same(exact_round(&sum), -(double)steps * x);

    /* The limbs at their fullest: 2^29 additions that all fall on the same place. */
    struct exact full = {0};
    exact_add(&full, x);
    for (int i = 0; i < EXACT_LIMBS; i++)
        full.limb[i] *= (1 << 29) - 1;
    full.pending = (1u << 29) - 1;
    exact_add(&full, x);
    same(exact_round(&full), x * 0x1p29);
}

static void test_product(void **state)
{
    (void)state;
    uint64_t seed = 7;
    mpfr_t wanted, a;
    mpfr_init2(wanted, PRECISION);
    mpfr_init2(a, PRECISION);
    for (int round = 0; round < 300; round++) {
        struct exact sum = {0};
        mpfr_set_zero(wanted, 1);
        for (int i = 0; i < 50; i++) {
            /* Products whose lowest bit is still a float64. */
            double x = ldexp(random_unit(&seed), (int)random_below(&seed, 800) - 400);
            double y = ldexp(random_unit(&seed), (int)random_below(&seed, 800) - 400);
            exact_add_product(&sum, x, y);
            mpfr_set_d(a, x, MPFR_RNDN);
            mpfr_mul_d(a, a, y, MPFR_RNDN);
            mpfr_add(wanted, wanted, a, MPFR_RNDN);
        }
        same(exact_round(&sum), mpfr_get_d(wanted, MPFR_RNDN));
    }
    mpfr_clear(wanted);
    mpfr_clear(a);
    struct exact sum = {0};
    exact_add_product(&sum, 1e200, 1e200);
    assert_true(exact_round(&sum) == INFINITY);
}

/* Scaled up or down, added and merged with the shift back: the same sum. */
static void test_shifts(void **state)
{
    (void)state;
    uint64_t seed = 8;
    for (int round = 0; round < 500; round++) {
        for (int step = -EXACT_STEP; step <= EXACT_STEP; step += 2 * EXACT_STEP) {
            double scale = step > 0 ? EXACT_SCALE : 1 / EXACT_SCALE;
            struct exact plain = {0}, scaled = {0}, back = {0};
            for (int i = 0; i < 20; i++) {
                double x = ldexp(random_unit(&seed), (int)random_below(&seed, 700) - 350);
                exact_add(&plain, x);
                exact_add(i % 2 ? &scaled : &back, i % 2 ? x * scale : x);
            }
            exact_merge_shifted(&back, &scaled, -step);
            same(exact_round(&back), exact_round(&plain));
            same(exact_round_shifted(&plain, step), exact_round(&plain) * scale);
        }
    }
    /* Squares beyond both ends of float64. */
    struct exact squares = {0}, ends = {0};
    exact_add(&squares, -0x1p800);
    exact_merge_shifted(&ends, &squares, 2 * EXACT_STEP);
    assert_true(exact_round(&ends) == -INFINITY);
    assert_true(exact_round_shifted(&ends, -2 * EXACT_STEP) == -0x1p800);
    squares = (struct exact){0};
    exact_add(&squares, 5e-324);
    exact_merge_shifted(&ends, &squares, -2 * EXACT_STEP);
    exact_add(&ends, 0);
    struct exact opposite = {0};
    exact_add(&opposite, 0x1p800);
    exact_merge_shifted(&ends, &opposite, 2 * EXACT_STEP);
    assert_true(exact_round(&ends) == 0);
    assert_true(exact_round_shifted(&ends, 2 * EXACT_STEP) == 5e-324);
}

static int release(void **state)
{
    (void)state;
    mpfr_free_cache();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),       cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_cancellation), cmocka_unit_test(test_ties),
        cmocka_unit_test(test_subnormal),    cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_infinite),     cmocka_unit_test(test_many),
        cmocka_unit_test(test_product),      cmocka_unit_test(test_shifts),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
