/* Values before and after a change: what is equal, what differs, and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verdict/same.h"

#include <math.h>

static struct plumb_arg tensor(struct plumb_tensor *room, enum plumb_dtype dtype, int64_t count,
                               const void *data)
{
    assert_int_equal(plumb_tensor_init(room, dtype, 1, &count, NULL), PLUMB_OK);
    room->data = data;
    return (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = room};
}

static void expect(const struct plumb_arg *before, const struct plumb_arg *after,
                   enum plumb_severity severity, const char *reason)
{
    struct same_rule rule;
    struct same_verdict found;
    struct plumb_error err = {0};
    assert_int_equal(same_rule_init(&rule, 0.25, &err), PLUMB_OK);
    assert_int_equal(same_judge(&rule, before, after, &found, &err), PLUMB_OK);
    assert_int_equal(found.verdict.severity, severity);
    if (reason)
        assert_string_equal(found.verdict.rule, reason);
    same_rule_destroy(&rule);
}

/* Numbers may be off by the precision and that share of what was before; integers by the former. */
static void test_precision(void **state)
{
    (void)state;
    static const float ones[] = {1, 1}, near[] = {1.5f, 0.5f}, far[] = {1.51f, 1};
    static const int64_t many[] = {1000}, more[] = {1001};
    struct plumb_tensor rooms[2];
    struct plumb_arg a = tensor(&rooms[0], PLUMB_F32, 2, ones);
    struct plumb_arg b = tensor(&rooms[1], PLUMB_F32, 2, near);
    expect(&a, &b, PLUMB_NORMAL, "not_close 0 == 0");
    rooms[1].data = far;
    expect(&a, &b, PLUMB_FAILED, NULL);
    a = tensor(&rooms[0], PLUMB_I64, 1, many);
    b = tensor(&rooms[1], PLUMB_I64, 1, many);
    expect(&a, &b, PLUMB_NORMAL, "not_close 0 == 0");
    rooms[1].data = more;
    expect(&a, &b, PLUMB_FAILED, NULL);
}

static void test_nan_is_equal_and_said(void **state)
{
    (void)state;
    static const double nans[] = {NAN, 1};
    struct plumb_tensor rooms[2];
    const struct plumb_arg a = tensor(&rooms[0], PLUMB_F64, 2, nans);
    const struct plumb_arg b = tensor(&rooms[1], PLUMB_F64, 2, nans);
    expect(&a, &b, PLUMB_SUSPICIOUS, NULL);
}

static void test_other_changes(void **state)
{
    (void)state;
    static const double zeros[2];
    struct plumb_tensor rooms[2];
    const struct plumb_arg none = {.kind = PLUMB_ARG_NONE};
    struct plumb_arg a = tensor(&rooms[0], PLUMB_F32, 2, zeros);
    struct plumb_arg b = tensor(&rooms[1], PLUMB_F32, 1, zeros);
    expect(&a, &b, PLUMB_FAILED, "the shape changed");
    b = tensor(&rooms[1], PLUMB_F64, 2, zeros);
    expect(&a, &b, PLUMB_FAILED, "the type changed");
    expect(&a, NULL, PLUMB_FAILED, "only before");
    expect(NULL, &b, PLUMB_FAILED, "only after");
    expect(&none, &b, PLUMB_FAILED, "None before");
    expect(&a, &none, PLUMB_FAILED, "None after");
    assert_true(same_is_nothing(&none, &none));
    assert_false(same_is_nothing(&none, NULL));
}

/* Plain values are no results of rounding. */
static void test_plain_values(void **state)
{
    (void)state;
    struct plumb_arg a = {.kind = PLUMB_ARG_FLOAT, .number = 1}, b = a;
    expect(&a, &b, PLUMB_NORMAL, "");
    b.number = 1.001;
    expect(&a, &b, PLUMB_FAILED, "the value changed");
    a.number = b.number = NAN;
    expect(&a, &b, PLUMB_NORMAL, "");
    a = (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = 1};
    b = (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = 1};
    expect(&a, &b, PLUMB_FAILED, "the value changed");
    assert_string_equal(same_word(0), "EQUAL");
    assert_string_equal(same_word(1), "DIFFERENT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_nan_is_equal_and_said),
        cmocka_unit_test(test_other_changes),
        cmocka_unit_test(test_plain_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
