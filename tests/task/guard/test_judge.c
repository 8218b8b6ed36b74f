/* The online check in C: what is judged in place of outputs, what rounding explains, and
 * accounts of forked processes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/guard.h"
#include "scratch.h"

#include <math.h>
#include <sys/wait.h>

enum { ROWS = 4, TERMS = 64 };

static struct plumb_guard *open_guard(struct scratch *scratch, bool save)
{
    struct plumb_guard_config config;
    struct plumb_guard *guard = NULL;
    struct plumb_error err = {0};
    plumb_guard_config_init(&config);
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", scratch_path(scratch, "saved"));
    config.path = scratch_path(scratch, "log");
    config.save = save ? folder : NULL;
    config.log_once = false;
    assert_int_equal(plumb_guard_open(&guard, &config, &err), PLUMB_OK);
    return guard;
}

static struct plumb_arg floats(struct plumb_tensor *tensor, int64_t rows, int64_t columns,
                               const float *data)
{
    const int64_t shape[] = {rows, columns};
    assert_int_equal(plumb_tensor_init(tensor, PLUMB_F32, 2, shape, NULL), PLUMB_OK);
    tensor->data = data;
    return (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = tensor};
}

static struct plumb_guard_verdict judge(struct plumb_guard_op *op,
                                        const struct plumb_guard_case *about)
{
    struct plumb_guard_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_guard_judge(op, about, &verdict, &err), PLUMB_OK);
    return verdict;
}

/* neg of ones, of which the kernel gave `out`. */
static struct plumb_guard_verdict judge_neg(struct plumb_guard_op *op, float out)
{
    static const float one = 1;
    struct plumb_tensor tensors[2];
    struct plumb_arg input = floats(&tensors[0], 1, 1, &one);
    struct plumb_arg output = floats(&tensors[1], 1, 1, &out);
    return judge(op, &(struct plumb_guard_case){
                         .call = {.prefix = "Aten", .name = "neg", .args = &input, .n_args = 1},
                         .outputs = &output,
                         .n_outputs = 1,
                         .where = "File \"a.py\", line 1"});
}

/* mm of matrices whose terms cancel nearly; each result is off by `off`. */
static enum plumb_fault judge_mm(struct plumb_guard_op *op, double off)
{
    static float a[ROWS * TERMS], b[TERMS * ROWS], y[ROWS * ROWS];
    for (size_t k = 0; k < ROWS * TERMS; k++) {
        a[k] = (k % 2 ? 1e4f : -1e4f) * (1 + (float)(k % 7) / 4096);
        b[k] = 1e3f;
    }
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < ROWS; j++) {
            double sum = off;
            for (size_t k = 0; k < TERMS; k++)
                sum += (double)a[i * TERMS + k] * (double)b[k * ROWS + j];
            y[i * ROWS + j] = (float)sum;
        }
    struct plumb_tensor tensors[3];
    const struct plumb_arg args[] = {floats(&tensors[0], ROWS, TERMS, a),
                                     floats(&tensors[1], TERMS, ROWS, b)};
    const struct plumb_arg output = floats(&tensors[2], ROWS, ROWS, y);
    return judge(op,
                 &(struct plumb_guard_case){
                     .call = {.prefix = "Aten", .name = "mm", .args = args, .n_args = 2},
                     .outputs = &output,
                     .n_outputs = 1})
        .found.fault;
}

static void rounding_of_terms_is_no_fault(void **state)
{
    struct plumb_guard *guard = open_guard(*state, false);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::mm", NULL);
    assert_int_equal(judge_mm(op, 0), PLUMB_FAULT_NONE);
    assert_int_equal(judge_mm(op, 40), PLUMB_FAULT_NONE); /* 6.4e8 in all, 38 to the unit */
    assert_int_equal(judge_mm(op, 4000), PLUMB_FAULT_NOT_CLOSE);
    plumb_guard_close(guard);
}

static void something_else_than_outputs(void **state)
{
    struct plumb_guard *guard = open_guard(*state, true);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::neg_", NULL);
    static const float given = 1, gave = -1, holds = 1;
    struct plumb_tensor tensors[4];
    struct plumb_arg input = floats(&tensors[0], 1, 1, &given);
    const struct plumb_arg output = floats(&tensors[1], 1, 1, &gave);
    const struct plumb_arg judged[] = {output, floats(&tensors[2], 1, 1, &holds)};
    const struct plumb_arg right[] = {output, output};
    static const char *const labels[] = {"", "argument self"};
    const struct plumb_guard_verdict verdict =
        judge(op, &(struct plumb_guard_case){
                      .call = {.prefix = "Aten", .name = "neg_", .args = &input, .n_args = 1},
                      .outputs = &output,
                      .n_outputs = 1,
                      .reference = right,
                      .n_reference = 2,
                      .judged = judged,
                      .n_judged = 2,
                      .labels = labels});
    assert_int_equal(verdict.found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_string_equal(verdict.label, "argument self");
    struct plumb_replay replay;
    struct plumb_error err = {0};
    assert_int_equal(plumb_replay_run(verdict.saved, "cpu", 3, &replay, &err), PLUMB_OK);
    assert_int_equal(replay.recorded.found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_string_equal(replay.recorded.label, "argument self");
    assert_int_equal(replay.device.found.fault, PLUMB_FAULT_NONE);
    plumb_replay_destroy(&replay);
    plumb_guard_close(guard);
}

/* What the user's own function gave, with the caller's opinion of it. */
static struct plumb_guard_verdict judge_own(struct plumb_guard_op *op, float gave,
                                            const struct plumb_opinion *opinion)
{
    static const float right = 1;
    struct plumb_tensor tensors[2];
    const struct plumb_arg output = floats(&tensors[0], 1, 1, &gave);
    const struct plumb_arg reference[] = {floats(&tensors[1], 1, 1, &right)};
    static const char *const labels[] = {"gradient of argument 0"};
    return judge(op, &(struct plumb_guard_case){.call = {.prefix = "Aten", .name = "empty"},
                                                .outputs = &output,
                                                .n_outputs = 1,
                                                .reference = reference,
                                                .n_reference = 1,
                                                .judged = &output,
                                                .n_judged = 1,
                                                .labels = labels,
                                                .opinion = opinion});
}

static void the_callers_opinion_decides(void **state)
{
    struct plumb_guard *guard = open_guard(*state, false);
    assert_int_not_equal(plumb_guard_call(plumb_guard_operator(guard, "ones", NULL)),
                         PLUMB_GUARD_CHECK);
    struct plumb_guard_op *op = plumb_guard_function(guard, "empty"); /* a name that is skipped */
    assert_int_equal(plumb_guard_call(op), PLUMB_GUARD_CHECK);
    const struct plumb_opinion fault = {.word = PLUMB_WORD_FAULT, .why = "off"},
                               rounding = {.word = PLUMB_WORD_ROUNDING, .why = "right"},
                               none = {.word = PLUMB_WORD_NOT_JUDGED, .why = "who knows"};
    const struct plumb_guard_verdict found = judge_own(op, 1, &fault);
    assert_int_equal(found.found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_string_equal(found.label, "gradient of argument 0");
    assert_int_equal(judge_own(op, 2, &rounding).found.fault, PLUMB_FAULT_NONE);
    assert_int_equal(judge_own(op, 2, &none).found.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_int_equal(judge_own(op, 1, &none).found.fault, PLUMB_FAULT_NONE);
    plumb_guard_pass_over(op, "for a reason");
    char *closing = plumb_guard_closing(guard);
    assert_non_null(strstr(closing, "not checked, for a reason: empty (some calls)"));
    free(closing);
    plumb_guard_close(guard);
}

static void a_changed_input_again(void **state)
{
    struct plumb_guard *guard = open_guard(*state, true);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::neg", NULL);
    static const float given = 1, gave = -1;
    struct plumb_tensor tensors[2];
    struct plumb_arg input = floats(&tensors[0], 1, 1, &given);
    const struct plumb_arg output = floats(&tensors[1], 1, 1, &gave);
    const struct plumb_guard_verdict verdict =
        judge(op, &(struct plumb_guard_case){
                      .call = {.prefix = "Aten", .name = "neg", .args = &input, .n_args = 1},
                      .outputs = &output,
                      .n_outputs = 1,
                      .changed = "the kernel changed its input tensor 0"});
    struct plumb_replay replay;
    struct plumb_error err = {0};
    assert_int_equal(plumb_replay_run(verdict.saved, "cpu", 3, &replay, &err), PLUMB_OK);
    assert_int_equal(replay.recorded.found.fault, PLUMB_FAULT_INPUT);
    assert_string_equal(replay.recorded.found.message, "the kernel changed its input tensor 0");
    plumb_replay_destroy(&replay);
    plumb_guard_close(guard);
}

static void children_are_in_the_account(void **state)
{
    enum { CHILDREN = 3 };
    struct plumb_guard *guard = open_guard(*state, false);
    struct plumb_guard_op *op = plumb_guard_operator(guard, "aten::neg", NULL);
    plumb_guard_call(op);
    judge_neg(op, -1);
    for (int k = 0; k < CHILDREN; k++) {
        const pid_t child = fork();
        if (child == 0) {
            plumb_guard_forked(guard);
            plumb_guard_call(op);
            judge_neg(op, k ? 5.0f : (float)INFINITY);
            struct plumb_guard_op *other = plumb_guard_operator(guard, "my::own \"op\"", NULL);
            plumb_guard_pass_over(other, "no reference");
            plumb_guard_trouble(op, "it\nbroke");
            _exit(0);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    struct plumb_guard_counts counts;
    char *text = plumb_guard_closing(guard);
    assert_non_null(strstr(text, "4 calls of 1 operator checked: 3 failed"));
    assert_non_null(strstr(text, "not checked, no reference: my::own \"op\""));
    assert_non_null(strstr(text, "3 checks went wrong inside plumb; the first: neg: it\nbroke"));
    assert_non_null(strstr(text, "neg failed: special_value_mismatch: inf instead of -1.0"));
    assert_non_null(strstr(text, "    File \"a.py\", line 1"));
    free(text);
    plumb_guard_op_counts(op, &counts);
    assert_int_equal(counts.calls, 1 + CHILDREN);
    assert_int_equal(counts.failed, CHILDREN);
    text = plumb_guard_closing(guard); /* nothing twice */
    assert_non_null(strstr(text, "4 calls of 1 operator checked: 3 failed"));
    free(text);
    plumb_guard_close(guard);
}

static int make(void **state)
{
    struct scratch *scratch = malloc(sizeof *scratch);
    assert_non_null(scratch);
    scratch_make(scratch);
    *state = scratch;
    return 0;
}

static int clean(void **state)
{
    scratch_remove(*state);
    free(*state);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        TEST(rounding_of_terms_is_no_fault), TEST(something_else_than_outputs),
        TEST(the_callers_opinion_decides),   TEST(a_changed_input_again),
        TEST(children_are_in_the_account),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
