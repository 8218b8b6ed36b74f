/* The online check in C: threads, processes, and failures that are kept. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guard_case.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(threads_share_a_watch),        TEST(processes_share_a_log),
        TEST(saved_failures_replay),        TEST(hostile_replays),
        TEST(an_unwritable_folder_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
