/* The online check in C: what is judged, logged and told at the end. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guard_case.h"

#include <fcntl.h>
#include <math.h>

static void judge_halves(struct plumb_guard_op *op)
{
    struct plumb_tensor tensors[3];
    const int64_t shape[] = {2, 3};
    const uint16_t zeros[6] = {0}, ones[6] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00};
    const uint16_t out[6] = {0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c20}; /* 1.03125 */
    struct plumb_arg input = tensor_arg(&tensors[0], PLUMB_F16, 2, shape, zeros);
    struct plumb_arg output = tensor_arg(&tensors[1], PLUMB_F16, 2, shape, out);
    struct plumb_arg reference = tensor_arg(&tensors[2], PLUMB_F16, 2, shape, ones);
    struct plumb_guard_case about = {.call = {.name = "add", .args = &input, .n_args = 1},
                                     .outputs = &output,
                                     .n_outputs = 1,
                                     .reference = &reference,
                                     .n_reference = 1};
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    assert_int_equal(verdict.found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_true(verdict.found.rtol == 1e-2 && verdict.found.atol == 1e-2);
    assert_true(verdict.found.max_ulp == 32);
}

/* One float32 output of 1.005 where 1 is right, after inputs of these types. */
static struct plumb_guard_verdict
judge_types(struct plumb_guard_op *op, const enum plumb_dtype *types, size_t n, const char *changed)
{
    static const double zero[1];
    static const float one[] = {1}, off[] = {1.005f};
    struct plumb_tensor inputs[3], tensors[2];
    struct plumb_arg args[3];
    for (size_t k = 0; k < n; k++)
        args[k] = tensor_arg(&inputs[k], types[k], 0, NULL, zero);
    const struct plumb_arg output =
        tensor_arg(&tensors[0], PLUMB_F32, 0, NULL, changed ? one : off);
    const struct plumb_arg reference = tensor_arg(&tensors[1], PLUMB_F32, 0, NULL, one);
    const struct plumb_guard_case about = {.call = {.name = "add", .args = args, .n_args = n},
                                           .outputs = &output,
                                           .n_outputs = 1,
                                           .reference = &reference,
                                           .n_reference = 1,
                                           .changed = changed};
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    return verdict;
}

static void the_first_float_decides(void **state)
{
    static const struct {
        enum plumb_dtype types[2];
        enum plumb_fault fault;
    } cases[] = {
        {{PLUMB_F16, PLUMB_F32}, PLUMB_FAULT_NONE},
        {{PLUMB_BF16, PLUMB_F32}, PLUMB_FAULT_NONE},
        {{PLUMB_I64, PLUMB_BF16}, PLUMB_FAULT_NONE},
        {{PLUMB_F32, PLUMB_F16}, PLUMB_FAULT_NOT_CLOSE},
        {{PLUMB_F64, PLUMB_BF16}, PLUMB_FAULT_NOT_CLOSE},
        {{PLUMB_I64, PLUMB_BOOL}, PLUMB_FAULT_NOT_CLOSE},
    };
    struct plumb_guard_config config = config_for(*state, "log");
    config.log_once = false;
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_int_equal(judge_types(op, cases[k].types, 2, NULL).found.fault, cases[k].fault);
    plumb_guard_close(guard);
    /* At least 1e-2 means that more stays more. */
    config.rtol = 0.5;
    config.atol = 0.25;
    guard = open_guard(&config);
    op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    const struct plumb_guard_verdict v = judge_types(op, cases[0].types, 2, NULL);
    assert_true(v.found.rtol == 0.5 && v.found.atol == 0.25);
    plumb_guard_close(guard);
}

static void changed_inputs_fail(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    const enum plumb_dtype type = PLUMB_F32;
    const struct plumb_guard_verdict v = judge_types(op, &type, 1, "input 0");
    assert_int_equal(v.found.fault, PLUMB_FAULT_INPUT);
    assert_non_null(strstr(read_text(scratch_path(*state, "log")), "| input_changed: input 0 |"));
    plumb_guard_close(guard);
}

/* A wrong output is told before a changed input. */
static void several_outputs_in_the_log(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.log_once = false;
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::max.dim", NULL);
    struct plumb_tensor tensors[4];
    const float one[] = {1}, two[] = {2};
    const struct plumb_arg outputs[] = {tensor_arg(&tensors[0], PLUMB_F32, 0, NULL, one),
                                        tensor_arg(&tensors[1], PLUMB_F32, 0, NULL, two)};
    const struct plumb_arg reference[] = {tensor_arg(&tensors[2], PLUMB_F32, 0, NULL, one),
                                          tensor_arg(&tensors[3], PLUMB_F32, 0, NULL, one)};
    const struct plumb_guard_case about = {.call = {.name = "max.dim"},
                                           .outputs = outputs,
                                           .n_outputs = 2,
                                           .reference = reference,
                                           .n_reference = 2,
                                           .changed = "input 0"};
    struct plumb_guard_verdict verdict;
    setenv("TZ", "EAST-3", 1); /* the log has the time of the place */
    tzset();
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, NULL), PLUMB_OK);
    assert_string_equal(read_text(scratch_path(*state, "log")),
                        "2025-05-19 13:00:01 [WARNING] Op: max.dim | FAIL | in: [] | out: "
                        "[():torch.float32, ():torch.float32] | output 1 | max_abs: 1.000000e+00 | "
                        "max_rel: 1.000000e+00 | rtol=0.0001, atol=1e-05\n");
    plumb_guard_close(guard);
}

/* The table has the worst of all checks, the account the first failure. */
static void worst_and_first(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.log_once = false;
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mm", NULL);
    const float worst[] = {3}, bad[] = {2}, good[] = {1};
    judge_floats(op, bad, 1);
    judge_floats(op, worst, 1);
    judge_floats(op, good, 1);
    plumb_guard_pass_over(op, "no reference for complex numbers");
    plumb_guard_pass_over(op, "another reason");
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_CHECK); /* others may have one */
    struct plumb_table *table = plumb_guard_table(guard);
    assert_int_equal(plumb_table_cell(table, 0, 2)->as.integer, 3);
    assert_int_equal(plumb_table_cell(table, 0, 3)->as.integer, 2);
    assert_true(plumb_table_cell(table, 0, 4)->as.real == 2);
    plumb_table_free(table);
    char *closing = plumb_guard_closing(guard);
    assert_non_null(strstr(closing, "mm failed: not_close: max_abs: 1.000000e+00"));
    assert_non_null(strstr(closing, "not checked, no reference for complex numbers: mm (some "));
    free(closing);
    plumb_guard_close(guard);
}

static void text_log_is_as_promised(void **state)
{
    struct plumb_guard_config config = config_for(*state, "deep/er/log");
    config.log_once = false;
    const float special[] = {1, 1, NAN};
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    judge_halves(op);
    judge_floats(op, special, 3);
    /* Flushed at once: read before the guard is closed. */
    assert_string_equal(
        read_text(scratch_path(*state, "deep/er/log")),
        "2025-05-19 10:00:01 [WARNING] Op: add.Tensor | FAIL | in: [(2, 3):torch.float16] | out: "
        "(2, 3):torch.float16 | max_abs: 3.125000e-02 | max_rel: 3.125000e-02 | rtol=0.01, "
        "atol=0.01\n"
        "2025-05-19 10:00:01 [WARNING] Op: add.Tensor | FAIL | in: [(3,):torch.float32] | out: "
        "(3,):torch.float32 | special_value_mismatch: nan instead of 1.0 at [2] | rtol=0.0001, "
        "atol=1e-05\n");
    plumb_guard_close(guard);
}

static void json_log_is_as_promised(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log.jsonl");
    config.log_once = false;
    config.format = PLUMB_GUARD_JSONL;
    const float special[] = {1, 1, -INFINITY};
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    judge_halves(op);
    judge_floats(op, special, 3);
    assert_string_equal(
        read_text(scratch_path(*state, "log.jsonl")),
        "{\"op\": \"add.Tensor\", \"status\": \"FAIL\", \"inputs\": [\"(2, 3):torch.float16\"], "
        "\"output\": \"(2, 3):torch.float16\", \"rtol\": 0.01, \"atol\": 0.01, "
        "\"max_abs_diff\": 0.03125, \"max_rel_diff\": 0.031249999999968747, \"max_ulp\": 32.0, "
        "\"timestamp\": \"2025-05-19 10:00:01\"}\n"
        "{\"op\": \"add.Tensor\", \"status\": \"FAIL\", \"inputs\": [\"(3,):torch.float32\"], "
        "\"output\": \"(3,):torch.float32\", \"rtol\": 0.0001, \"atol\": 1e-05, "
        "\"error\": \"special_value_mismatch\", \"message\": \"-inf instead of 1.0 at [2]\", "
        "\"fg_value\": \"-inf\", \"pt_value\": 1.0, \"index\": 2, "
        "\"timestamp\": \"2025-05-19 10:00:01\"}\n");
    plumb_guard_close(guard);
}

static void own_reference_and_missing_operator(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mul.Tensor", NULL);
    struct plumb_tensor tensors[2];
    const int64_t shape[] = {3};
    const float x[] = {1, 2, 3}, right[] = {1, 4, 9}, wrong[] = {1, 4, 9.1f};
    const struct plumb_arg input = tensor_arg(&tensors[0], PLUMB_F32, 1, shape, x);
    const struct plumb_arg inputs[] = {input, input};
    struct plumb_arg output = tensor_arg(&tensors[1], PLUMB_F32, 1, shape, right);
    struct plumb_guard_case about = {
        .call = {.prefix = "Aten", .name = "mul.Tensor", .args = inputs, .n_args = 2},
        .outputs = &output,
        .n_outputs = 1};
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    assert_int_equal(verdict.found.fault, PLUMB_FAULT_NONE);
    tensors[1].data = wrong;
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    assert_int_equal(verdict.found.fault, PLUMB_FAULT_NOT_CLOSE);
    about.call.name = "no_such_operator";
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_E_UNSUPPORTED);
    plumb_guard_close(guard);
}

static void unwritable_log_is_an_error(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    scratch_write(*state, "file", "x", 1);
    config.path = scratch_path(*state, "file/log");
    struct plumb_guard *guard = NULL;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_open(&guard, &config, &err), PLUMB_E_IO);
    assert_non_null(strstr(err.message, "cannot be written"));
    assert_null(guard);
    config.path = "/dev/full"; /* opens, but takes nothing */
    guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mm", NULL);
    const float bad[] = {3};
    assert_int_equal(judge_floats(op, bad, 1).found.fault, PLUMB_FAULT_NOT_CLOSE);
    char *closing = plumb_guard_closing(guard);
    assert_non_null(strstr(closing, "1 check went wrong inside plumb; the first: mm: /dev/full: "));
    free(closing);
    plumb_guard_close(guard);
    config.rtol = NAN;
    assert_int_equal(plumb_guard_open(&guard, &config, &err), PLUMB_E_ARG);
    config.rtol = 0;
    config.atol = -1;
    assert_int_equal(plumb_guard_open(&guard, &config, &err), PLUMB_E_ARG);
}

static void the_default_path_is_in_the_home(void **state)
{
    struct scratch *scratch = *state;
    struct plumb_guard_config config = config_for(scratch, "log");
    config.path = NULL;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", scratch->folder, 1);
    struct plumb_guard *guard = open_guard(&config);
    plumb_guard_close(guard);
    assert_int_equal(access(scratch_path(scratch, ".plumb/precision.log"), F_OK), 0);
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

static void table_and_closing(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    struct plumb_guard *guard = open_guard(&config);
    const float good[] = {1}, bad[] = {1.5f};
    struct plumb_guard_op *mm = plumb_guard_operator(guard, "aten::mm", NULL);
    struct plumb_guard_op *add = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    struct plumb_guard_op *odd = plumb_guard_operator(guard, "aten::odd", NULL);
    plumb_guard_operator(guard, "aten::view", NULL);
    plumb_guard_call(mm);
    plumb_guard_call(add);
    plumb_guard_call(add);
    judge_floats(mm, good, 1);
    judge_floats(add, bad, 1);
    struct plumb_guard_op *even = plumb_guard_operator(guard, "aten::even", NULL);
    plumb_guard_give_up(odd, "there is no reference");
    plumb_guard_give_up(odd, "and another reason");
    plumb_guard_give_up(even, "there is no reference");
    assert_false(plumb_guard_claim(odd, 1));
    plumb_guard_operator(guard, "aten::tan", "excluded");
    struct plumb_guard_op *lost = plumb_guard_operator(guard, "aten::lost", NULL);
    plumb_guard_trouble(mm, "the worker died");
    plumb_guard_trouble(lost, "so did the next");
    struct plumb_table *table = plumb_guard_table(guard);
    assert_int_equal(plumb_table_rows(table), 3);
    assert_string_equal(plumb_table_cell(table, 2, 0)->as.text, "lost");
    assert_string_equal(plumb_table_cell(table, 0, 0)->as.text, "add.Tensor");
    assert_int_equal(plumb_table_severity(table, 0), PLUMB_FAILED);
    assert_int_equal(plumb_table_cell(table, 0, 1)->as.integer, 2);
    assert_int_equal(plumb_table_cell(table, 0, 2)->as.integer, 1);
    assert_int_equal(plumb_table_cell(table, 0, 3)->as.integer, 1);
    assert_true(plumb_table_cell(table, 0, 4)->as.real == 0.5);
    assert_true(plumb_table_cell(table, 0, 6)->as.real == 0x1p22);
    assert_string_equal(plumb_table_cell(table, 0, 7)->as.text, "File \"b.py\", line 2");
    assert_string_equal(plumb_table_cell(table, 1, 0)->as.text, "mm");
    plumb_table_free(table);
    char *closing = plumb_guard_closing(guard);
    char wanted[2048];
    snprintf(wanted, sizeof wanted,
             "2 calls of 2 operators checked: 1 failed, of 1 operator; log: %s\n"
             "add.Tensor failed: not_close: max_abs: 5.000000e-01, max_rel: 5.000000e-01\n"
             "    File \"a.py\", line 1, in f\n"
             "    File \"b.py\", line 2\n"
             "not checked, there is no reference: odd, even\n"
             "2 checks went wrong inside plumb; the first: mm: the worker died\n",
             scratch_path(*state, "log"));
    assert_string_equal(closing, wanted);
    free(closing);
    plumb_guard_close(guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_float_decides),
        TEST(changed_inputs_fail),
        TEST(several_outputs_in_the_log),
        TEST(worst_and_first),
        TEST(text_log_is_as_promised),
        TEST(json_log_is_as_promised),
        TEST(own_reference_and_missing_operator),
        TEST(unwritable_log_is_an_error),
        TEST(the_default_path_is_in_the_home),
        TEST(table_and_closing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
