/* The online check in C: which calls are checked, what is logged, what is kept. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/guard.h"
#include "scratch.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static int64_t fixed_now(void)
{
    return 1747648801; /* 2025-05-19 10:00:01 UTC */
}

static char *read_text(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static struct plumb_guard_config config_for(struct scratch *scratch, const char *name)
{
    struct plumb_guard_config config;
    plumb_guard_config_init(&config);
    config.path = scratch_path(scratch, name);
    config.now = fixed_now;
    return config;
}

static struct plumb_guard *open_guard(const struct plumb_guard_config *config)
{
    struct plumb_guard *guard = NULL;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_open(&guard, config, &err), PLUMB_OK);
    return guard;
}

static struct plumb_arg tensor_arg(struct plumb_tensor *tensor, enum plumb_dtype dtype,
                                   unsigned rank, const int64_t *shape, const void *data)
{
    assert_int_equal(plumb_tensor_init(tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor->data = data;
    return (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = tensor};
}

/* x + 1 where the kernel gave `out`. */
static struct plumb_guard_verdict judge_floats(struct plumb_guard_op *op, const float *out,
                                               size_t n)
{
    static const float x[8] = {0};
    struct plumb_tensor tensors[3];
    const int64_t shape[] = {(int64_t)n};
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct plumb_arg input = tensor_arg(&tensors[0], PLUMB_F32, 1, shape, x);
    struct plumb_arg output = tensor_arg(&tensors[1], PLUMB_F32, 1, shape, out);
    struct plumb_arg reference = tensor_arg(&tensors[2], PLUMB_F32, 1, shape, ones);
    struct plumb_guard_case about = {.call = {.name = "add", .args = &input, .n_args = 1},
                                     .outputs = &output,
                                     .n_outputs = 1,
                                     .reference = &reference,
                                     .n_reference = 1,
                                     .where = "File \"a.py\", line 1, in f\nFile \"b.py\", line 2"};
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    return verdict;
}

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

/* ---- Several at once ------------------------------------------------------------------------- */

static void *call_often(void *context)
{
    struct plumb_guard *guard = context;
    const float bad[] = {2};
    for (int k = 0; k < 1000; k++) {
        char name[32];
        snprintf(name, sizeof name, "aten::op%d", k % 50);
        struct plumb_guard_op *op = plumb_guard_operator(guard, name, NULL);
        if (plumb_guard_call(op) == PLUMB_GUARD_CHECK && plumb_guard_claim(op, 1))
            judge_floats(op, bad, 1);
    }
    return NULL;
}

static void threads_share_a_watch(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.log_once = false;
    config.max_checks = 3;
    struct plumb_guard *guard = open_guard(&config);
    pthread_t threads[4];
    for (int k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, call_often, guard), 0);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    struct plumb_table *table = plumb_guard_table(guard);
    assert_int_equal(plumb_table_rows(table), 50);
    for (size_t k = 0; k < 50; k++) {
        assert_int_equal(plumb_table_cell(table, k, 1)->as.integer, 80);
        assert_int_equal(plumb_table_cell(table, k, 2)->as.integer, 3);
    }
    plumb_table_free(table);
    plumb_guard_close(guard);
}

static void processes_share_a_log(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.log_once = false;
    config.max_checks = 1000;
    pid_t children[3];
    for (int k = 0; k < 3; k++) {
        children[k] = fork();
        if (children[k] == 0) {
            struct plumb_guard *guard = NULL;
            const float bad[] = {2};
            if (plumb_guard_open(&guard, &config, NULL))
                _exit(1);
            struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mm", NULL);
            for (int j = 0; j < 100; j++)
                judge_floats(op, bad, 1);
            _exit(0);
        }
    }
    for (int k = 0; k < 3; k++) {
        int status;
        assert_int_equal(waitpid(children[k], &status, 0), children[k]);
        assert_int_equal(status, 0);
    }
    int lines = 0;
    for (char *line = strtok(read_text(scratch_path(*state, "log")), "\n"); line;
         line = strtok(NULL, "\n"), lines++)
        assert_string_equal(line, "2025-05-19 10:00:01 [WARNING] Op: mm | FAIL | in: "
                                  "[(1,):torch.float32] | out: (1,):torch.float32 | max_abs: "
                                  "1.000000e+00 | max_rel: 1.000000e+00 | rtol=0.0001, atol=1e-05");
    assert_int_equal(lines, 300);
}

/* ---- Saved failures -------------------------------------------------------------------------- */

static void saved_failures_replay(void **state)
{
    struct scratch *scratch = *state;
    struct plumb_guard_config config = config_for(scratch, "log");
    char folder[sizeof scratch->path];
    snprintf(folder, sizeof folder, "%s", scratch_path(scratch, "not/yet/failures"));
    config.save = folder;
    config.format = PLUMB_GUARD_JSONL;
    config.log_once = false;
    config.path = scratch_path(scratch, "log");
    struct plumb_guard *guard = open_guard(&config);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::add.Tensor", NULL);
    struct plumb_tensor tensors[2];
    const int64_t shape[] = {3};
    const float x[] = {1, 2, 3}, wrong[] = {3, 6, 9.5f};
    const struct plumb_arg input = tensor_arg(&tensors[0], PLUMB_F32, 1, shape, x);
    const struct plumb_arg inputs[] = {input, input};
    const struct plumb_kwarg alpha = {.name = "alpha",
                                      .value = {.kind = PLUMB_ARG_INT, .integer = 2}};
    struct plumb_arg output = tensor_arg(&tensors[1], PLUMB_F32, 1, shape, wrong);
    struct plumb_guard_case about = {.call = {.prefix = "Aten",
                                              .name = "add.Tensor",
                                              .args = inputs,
                                              .n_args = 2,
                                              .kwargs = &alpha,
                                              .n_kwargs = 1},
                                     .outputs = &output,
                                     .n_outputs = 1,
                                     .where = "a \"quoted\" place"};
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    assert_int_equal(verdict.found.fault, PLUMB_FAULT_NOT_CLOSE);
    char saved[1024];
    snprintf(saved, sizeof saved, "%s", verdict.saved);
    assert_string_equal(saved + strlen(saved) - 13, "/add.Tensor.0");
    assert_non_null(strstr(read_text(config.path), saved));
    assert_int_equal(plumb_guard_judge(op, &about, &verdict, &err), PLUMB_OK);
    assert_string_equal(verdict.saved + strlen(saved) - 13, "/add.Tensor.1");
    plumb_guard_close(guard);

    struct plumb_replay replay;
    if (plumb_replay_run(saved, "cpu", 2, &replay, &err))
        fail_msg("%s: %s", err.file, err.message);
    assert_string_equal(replay.op, "add.Tensor");
    assert_int_equal(replay.recorded.found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_true(replay.recorded.found.max_abs == 0.5);
    assert_int_equal(replay.device.found.fault, PLUMB_FAULT_NONE);
    assert_null(replay.device_error);
    assert_int_equal(plumb_table_rows(replay.worst), 1);
    assert_string_equal(plumb_table_cell(replay.worst, 0, 0)->as.text, "[2]");
    plumb_replay_destroy(&replay);
    assert_int_not_equal(plumb_replay_run(saved, "no_device", 2, &replay, &err), PLUMB_OK);
    plumb_replay_destroy(&replay);

    char path[1100];
    snprintf(path, sizeof path, "%s/dump_tensor_data/output.0.pt", saved);
    assert_int_equal(truncate(path, 20), 0);
    assert_int_not_equal(plumb_replay_run(saved, "cpu", 2, &replay, &err), PLUMB_OK);
    plumb_replay_destroy(&replay);
    snprintf(path, sizeof path, "%s/outputs.json", saved);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(plumb_replay_run(saved, "cpu", 2, &replay, &err), PLUMB_E_IO);
    plumb_replay_destroy(&replay);
}

static void hostile_replays(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{}",
        "{\"precision_check\": 3, \"framework\": \"pytorch\", \"data\": {}}",
        "{\"precision_check\": {\"rtol\": \"x\", \"atol\": 1}, \"framework\": \"pytorch\"}",
        "{\"precision_check\": {\"rtol\": 1, \"atol\": 1}, \"data\": {}}"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const char *path = scratch_write(*state, "dump.json", texts[k], strlen(texts[k]));
        struct plumb_replay replay;
        struct plumb_error err = {0};
        assert_int_not_equal(plumb_replay_run(path, "cpu", 2, &replay, &err), PLUMB_OK);
        assert_true(strlen(err.message) > 0);
        plumb_replay_destroy(&replay);
    }
}

static void an_unwritable_folder_is_told(void **state)
{
    struct plumb_guard_config config = config_for(*state, "log");
    config.save = "/dev/null/failures";
    struct plumb_guard *guard = open_guard(&config);
    const float bad[] = {3};
    struct plumb_guard_verdict verdict =
        judge_floats(plumb_guard_operator(guard, "aten::mm", NULL), bad, 1);
    assert_int_equal(verdict.found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_string_equal(verdict.saved, "");
    char *closing = plumb_guard_closing(guard);
    assert_non_null(strstr(closing, "failing inputs of mm cannot be saved"));
    free(closing);
    plumb_guard_close(guard);
}

static int make(void **state)
{
    static struct scratch scratch;
    setenv("TZ", "UTC", 1);
    tzset();
    scratch_make(&scratch);
    *state = &scratch;
    return 0;
}

static int clean(void **state)
{
    scratch_remove(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(skip_list_and_names),
        TEST(include_and_exclude),
        TEST(counts_and_limits),
        TEST(quiet_after_a_whole_pass),
        TEST(large_calls_keep_nobody),
        TEST(log_once_closes_an_operator),
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
        TEST(threads_share_a_watch),
        TEST(processes_share_a_log),
        TEST(saved_failures_replay),
        TEST(hostile_replays),
        TEST(an_unwritable_folder_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
