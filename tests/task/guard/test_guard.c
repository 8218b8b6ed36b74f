/* The online check in C: which calls are checked, and how often. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guard_case.h"

static void skip_list_and_names(void **state)
{
    (void)state;
    static const char *const never[] = {
        "argsort",
        "bernoulli_",
        "clone",
        "contiguous",
        "copy_",
        "empty",
        "empty_permuted",
        "expand",
        "expand_",
        "exponential",
        "exponential_",
        "full",
        "masked_fill_",
        "multinomial",
        "narrow",
        "normal_",
        "ones",
        "random_",
        "randperm",
        "sort",
        "topk",
        "_to_copy",
        "unbind",
        "uniform_",
        "zeros",
        "view",
        "reshape",
        "transpose",
        "t",
        "permute",
        "detach",
        "alias",
        "as_strided",
        "slice",
        "select",
        "squeeze",
        "unsqueeze",
        "split",
        "chunk",
        "add.out",
        "aten::mm.out",
        "max_pool_out",
        "aten::max_pool_out.x",
        "aten::add.x_out",
        "profiler::_record_function_enter",
        "aten::slice.Tensor",
        "aten::clone.default",
    };
    for (size_t k = 0; k < sizeof never / sizeof *never; k++)
        if (!plumb_guard_skips(never[k]))
            fail_msg("%s is not skipped", never[k]);
    static const char *const checked[] = {
        "mm",    "add.Tensor", "add_.Tensor", "masked_fill.Scalar", "softmax", "aten::tanh",
        "round", "outer",      "layout",      "native_dropout"};
    for (size_t k = 0; k < sizeof checked / sizeof *checked; k++)
        assert_null(plumb_guard_skips(checked[k]));
}

static bool is_checked(struct plumb_guard *guard, const char *name)
{
    return plumb_guard_call(plumb_guard_operator(guard, name, NULL)) == PLUMB_GUARD_CHECK;
}

static void include_and_exclude(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    const char *include[] = {"mm", "add.Tensor", "aten::mul.Tensor", "clone"};
    const char *exclude[] = {"mul"};
    config.include = include;
    config.n_include = 4;
    config.exclude = exclude;
    config.n_exclude = 1;
    struct plumb_guard *guard = open_guard(&config);
    assert_true(is_checked(guard, "aten::mm"));
    assert_true(is_checked(guard, "aten::mm.default"));
    assert_true(is_checked(guard, "aten::add.Tensor"));
    assert_false(is_checked(guard, "aten::add.Scalar"));
    assert_false(is_checked(guard, "aten::add_.Tensor"));
    assert_false(is_checked(guard, "aten::mul.Tensor")); /* excluded */
    assert_false(is_checked(guard, "aten::clone"));      /* never, although asked for */
    assert_false(is_checked(guard, "aten::tanh"));
    plumb_guard_close(guard);
}

static void counts_and_limits(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    assert_int_equal(config.max_checks, 10);
    config.max_checks = 2;
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mm", NULL);
    assert_ptr_equal(op, plumb_guard_operator(guard, "aten::mm", NULL));
    assert_string_equal(plumb_guard_op_name(op), "mm");
    assert_false(plumb_guard_claim(op, 1048577)); /* too large, and costs no check */
    assert_true(plumb_guard_claim(op, 1048576));
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_CHECK);
    assert_true(plumb_guard_claim(op, 1));
    assert_false(plumb_guard_claim(op, 1));
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_PASS);
    struct plumb_guard_counts counts;
    plumb_guard_op_counts(op, &counts);
    assert_int_equal(counts.calls, 2);
    assert_false(counts.open);
    op = plumb_guard_operator(guard, "aten::odd", "has no reference");
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_PASS);
    plumb_guard_close(guard);
}

static void quiet_after_a_whole_pass(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.max_checks = 1;
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *view = plumb_guard_operator(guard, "aten::view", NULL);
    struct plumb_guard_op *mm = plumb_guard_operator(guard, "aten::mm", NULL);
    for (int k = 0; k < 600; k++) /* nothing was checked yet: no end to see */
        assert_int_equal(plumb_guard_call(view), PLUMB_GUARD_PASS);
    assert_int_equal(plumb_guard_call(mm), PLUMB_GUARD_CHECK);
    assert_true(plumb_guard_claim(mm, 1));
    for (int k = 0; k < 601; k++)
        assert_int_equal(plumb_guard_call(mm), PLUMB_GUARD_PASS);
    assert_int_equal(plumb_guard_call(mm), PLUMB_GUARD_QUIET);
    struct plumb_guard_op *late = plumb_guard_operator(guard, "aten::tanh", NULL);
    assert_int_equal(plumb_guard_call(late), PLUMB_GUARD_CHECK); /* a new one wakes it up */
    assert_int_equal(plumb_guard_call(mm), PLUMB_GUARD_PASS);
    plumb_guard_close(guard);
}

static void large_calls_keep_nobody(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.max_checks = 2;
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mm", NULL);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_CHECK);
        assert_false(plumb_guard_claim(op, 1 << 21));
    }
    for (int k = 0; k < 256; k++)
        assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_CHECK);
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_QUIET);
    assert_true(plumb_guard_claim(op, 1)); /* but a small one is welcome */
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_CHECK);
    plumb_guard_close(guard);
}

static void log_once_closes_an_operator(void **state)
{
    struct plumb_guard_config config = config_for(*state, "once.log");
    const float bad[] = {1, 2};
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    assert_true(plumb_guard_claim(op, 2));
    assert_int_equal(judge_floats(op, bad, 2).found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_false(plumb_guard_claim(op, 2));
    plumb_guard_close(guard);

    config.log_once = false;
    config.path = scratch_path(*state, "often.log");
    guard = open_guard(&config);
    op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    for (int k = 0; k < 3; k++) {
        assert_true(plumb_guard_claim(op, 2));
        judge_floats(op, bad, 2);
    }
    plumb_guard_close(guard);
    int lines = 0;
    for (const char *c = read_text(scratch_path(*state, "often.log")); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 3);
    lines = 0;
    for (const char *c = read_text(scratch_path(*state, "once.log")); *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(skip_list_and_names),     TEST(include_and_exclude),
        TEST(counts_and_limits),       TEST(quiet_after_a_whole_pass),
        TEST(large_calls_keep_nobody), TEST(log_once_closes_an_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
