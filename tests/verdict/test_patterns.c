/* Patterns of faults, judged in C: tensors of odd shapes, whole numbers, tensors that are another
 * one again, and sentences in a program with a comma for the point. tests/py/test_patterns.py
 * plants the others. */
#define _GNU_SOURCE
#include "plumb/expected.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "comma.h"
#include "verdict/stale.h"

enum { ROWS = 24, COLUMNS = 40, COUNT = ROWS * COLUMNS };

/* A number in [-1, 1), the same everywhere. */
static float number(uint32_t k)
{
    k *= 2654435761u;
    k ^= k >> 15;
    k *= 2246822519u;
    return (float)(int32_t)(k ^ k >> 13) * 0x1p-31F;
}

static struct plumb_tensor tensor(const void *data, enum plumb_dtype dtype, unsigned rank,
                                  const int64_t *shape)
{
    struct plumb_tensor t;
    assert_int_equal(plumb_tensor_init(&t, dtype, rank, shape, NULL), 0);
    t.data = data;
    return t;
}

static struct plumb_tensor matrix(const void *data, enum plumb_dtype dtype)
{
    return tensor(data, dtype, 2, (const int64_t[]){ROWS, COLUMNS});
}

/* What is said about a result of a call of one or two tensors. */
static struct plumb_opinion judge(const char *name, const struct plumb_tensor *x,
                                  const struct plumb_tensor *y, const struct plumb_tensor *got)
{
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = x},
                                     {.kind = PLUMB_ARG_TENSOR, .tensor = y}};
    const struct plumb_call call = {.name = name, .args = args, .n_args = y ? 2 : 1};
    const struct plumb_arg arg = {.kind = PLUMB_ARG_TENSOR, .tensor = got};
    struct plumb_expected *e;
    struct plumb_opinion opinion;
    struct plumb_error err;
    assert_int_equal(plumb_expected_new(&call, NULL, NULL, &e, &err), 0);
    assert_int_equal(plumb_expected_judge(e, PLUMB_PART_OUTPUT, 0, &arg, &opinion, &err), 0);
    plumb_expected_free(e);
    return opinion;
}

static void says(const struct plumb_opinion *o, const char *text)
{
    if (o->word != PLUMB_WORD_FAULT || !strstr(o->pattern, text))
        fail_msg("not '%s' but: %s: %s (%s)", text, plumb_word_text(o->word), o->pattern, o->why);
    assert_non_null(strstr(o->why, o->pattern));
}

/* ---- Odd shapes ------------------------------------------------------------------------------ */

static void test_no_axis(void **state)
{
    (void)state;
    const float x = 0.5F, wrong = 3;
    const struct plumb_tensor in = tensor(&x, PLUMB_F32, 0, NULL);
    const struct plumb_tensor got = tensor(&wrong, PLUMB_F32, 0, NULL);
    const struct plumb_opinion o = judge("exp", &in, NULL, &got);
    says(&o, "1 element is wrong");
}

static void test_many_axes(void **state)
{
    (void)state;
    enum { AXES = 20, N = 1 << 10 };
    static float x[N], y[N];
    int64_t shape[AXES];
    for (int k = 0; k < AXES; k++)
        shape[k] = k % 2 ? 2 : 1;
    for (uint32_t k = 0; k < N; k++) {
        x[k] = number(k);
        y[k] = k >= N / 2 ? 0 : 2 * x[k];
    }
    const struct plumb_tensor in = tensor(x, PLUMB_F32, AXES, shape);
    const struct plumb_tensor got = tensor(y, PLUMB_F32, AXES, shape);
    const struct plumb_opinion o = judge("add", &in, &in, &got);
    says(&o, "512 elements in index 1 of axis 1 are zero");
}

/* A constant tensor fits every move: none may be named. */
static void test_constant(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT];
    for (uint32_t k = 0; k < COUNT; k++) {
        x[k] = 1;
        y[k] = 2 + (k % COLUMNS == 7 ? number(k) : 0);
    }
    const struct plumb_tensor in = matrix(x, PLUMB_F32), got = matrix(y, PLUMB_F32);
    const struct plumb_opinion o = judge("add", &in, &in, &got);
    says(&o, "24 elements in column 7 are wrong");
}

/* ---- Whole numbers --------------------------------------------------------------------------- */

static void test_whole(void **state)
{
    (void)state;
    static int64_t x[COUNT], y[COUNT];
    static int32_t narrow[COUNT];
    for (uint32_t k = 0; k < COUNT; k++) {
        x[k] = (int64_t)(number(k) * 4e9F);
        y[k] = (int32_t)(uint32_t)(uint64_t)(2 * x[k]);
        narrow[k] = k % 5 == 0;
    }
    const struct plumb_tensor in = matrix(x, PLUMB_I64);
    struct plumb_tensor got = matrix(y, PLUMB_I64);
    struct plumb_opinion o = judge("add", &in, &in, &got);
    says(&o, "wrapped around in 32 bits: all 960 numbers fit");
    for (uint32_t k = 0; k < COUNT; k++)
        y[k] = 2 * x[k] + (k % COLUMNS == 3);
    o = judge("add", &in, &in, &got);
    says(&o, "24 elements in column 3 are off by 1");
    got = matrix(narrow, PLUMB_I32); /* of another type than the reference's */
    o = judge("add", &in, &in, &got);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
}

static void test_decisions(void **state)
{
    (void)state;
    static float x[COUNT];
    static bool y[COUNT];
    for (uint32_t k = 0; k < COUNT; k++) {
        x[k] = number(k + 1);
        y[k] = x[k] > 0;
    }
    const struct plumb_tensor in = matrix(x, PLUMB_F32), got = matrix(y, PLUMB_BOOL);
    const struct plumb_opinion o = judge("signbit", &in, NULL, &got);
    says(&o, "inverted: all 960");
}

/* ---- Another one again ----------------------------------------------------------------------- */

static void test_stale(void **state)
{
    (void)state;
    static float x[COUNT], y[COUNT];
    static double wide[COUNT];
    for (uint32_t k = 0; k < COUNT; k++) {
        x[k] = y[k] = number(k);
        wide[k] = (double)x[k] * (1 + 0x1p-26);
    }
    const struct plumb_tensor a = matrix(x, PLUMB_F32), b = matrix(y, PLUMB_F32);
    const struct plumb_tensor c = matrix(wide, PLUMB_F64);
    const struct plumb_tensor flat = tensor(x, PLUMB_F32, 1, (const int64_t[]){COUNT});
    const struct plumb_tensor part = tensor(x, PLUMB_F32, 1, (const int64_t[]){COUNT - 1});
    assert_true(pattern_is_stale(&a, &b));
    assert_true(pattern_is_stale(&a, &c)); /* up to rounding */
    assert_true(pattern_is_stale(&c, &a));
    assert_true(pattern_is_stale(&a, &flat));
    assert_false(pattern_is_stale(&a, &part));
    y[COUNT - 1] += 1e-3F;
    assert_false(pattern_is_stale(&a, &b));
    y[COUNT - 1] = NAN;
    assert_false(pattern_is_stale(&a, &b));
    x[COUNT - 1] = NAN;
    assert_true(pattern_is_stale(&a, &b));
}

/* Zeros, constants, a few numbers and masks are equal by chance. */
static void test_not_stale(void **state)
{
    (void)state;
    static float zeros[COUNT], few[4] = {1, 2, 3, 4}, one;
    static bool mask[COUNT];
    static int64_t whole[COUNT];
    const struct plumb_tensor a = matrix(zeros, PLUMB_F32);
    const struct plumb_tensor b = tensor(few, PLUMB_F32, 1, (const int64_t[]){4});
    const struct plumb_tensor c = tensor(&one, PLUMB_F32, 0, NULL);
    const struct plumb_tensor empty = tensor(few, PLUMB_F32, 1, (const int64_t[]){0});
    const struct plumb_tensor d = matrix(mask, PLUMB_BOOL), e = matrix(whole, PLUMB_I64);
    for (uint32_t k = 0; k < COUNT; k++)
        whole[k] = (int64_t)k;
    assert_false(pattern_is_stale(&a, &a));
    assert_false(pattern_is_stale(&b, &b));
    assert_false(pattern_is_stale(&c, &c));
    assert_false(pattern_is_stale(&empty, &empty));
    assert_false(pattern_is_stale(&d, &d));
    assert_true(pattern_is_stale(&e, &e));
}

/* ---- A comma for the point ------------------------------------------------------------------- */

static void test_comma(void **state)
{
    (void)state;
    struct scratch scratch;
    static float x[COUNT], y[COUNT];
    for (uint32_t k = 0; k < COUNT; k++) {
        x[k] = number(k);
        y[k] = (x[k] < 0 ? 0.01F * x[k] : x[k]) * 1.25F;
    }
    const struct plumb_tensor in = matrix(x, PLUMB_F32), got = matrix(y, PLUMB_F32);
    const struct plumb_opinion plain = judge("leaky_relu", &in, NULL, &got);
    says(&plain, "scaled by 1.25");
    scratch_make(&scratch);
    comma_begin(&scratch);
    const struct plumb_opinion o = judge("leaky_relu", &in, NULL, &got);
    comma_end();
    scratch_remove(&scratch);
    assert_string_equal(o.pattern, plain.pattern);
    assert_string_equal(o.why, plain.why); /* and the default slope was read as 0.01 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_axis),   cmocka_unit_test(test_many_axes),
        cmocka_unit_test(test_constant),  cmocka_unit_test(test_whole),
        cmocka_unit_test(test_decisions), cmocka_unit_test(test_stale),
        cmocka_unit_test(test_not_stale), cmocka_unit_test(test_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
