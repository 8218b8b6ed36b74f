/* Dumps as runs: which rows become records, where their payloads are, and what is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "plumb/run.h"
#include "plumb/write.h"
#include "run/run.h"
#include "scratch.h"

#define LEAF                                                                                       \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,2],\"Max\":3.5,"          \
    "\"Min\":-1,\"Mean\":NaN,\"Norm\":null,\"requires_grad\":true,\"md5\":\"0123abcd\"}"
#define PLAIN "{\"type\":\"T\",\"dtype\":\"torch.float32\",\"shape\":[2],\"Max\":1.5,\"Min\":-1.5}"

static void put(struct scratch *scratch, const char *name, const char *data)
{
    char *text;
    int length = asprintf(&text,
                          "{\"task\":\"statistics\",\"level\":\"L1\",\"framework\":\"pytorch\","
                          "\"data\":{%s}}",
                          data);
    assert_true(length > 0);
    scratch_write(scratch, name, text, (size_t)length);
    free(text);
}

static struct plumb_run *open_run(struct scratch *scratch, const char *name)
{
    struct plumb_run *run;
    struct plumb_error err;
    if (plumb_run_open(&run, scratch_path(scratch, name), &err))
        fail_msg("%s: %s", name, err.message);
    return run;
}

static void put_npy(struct scratch *scratch, const char *name, int64_t count)
{
    static const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 1, &count, NULL), PLUMB_OK);
    tensor.data = values;
    scratch_write(scratch, name, "", 0);
    assert_int_equal(plumb_npy_write(scratch_path(scratch, name), &tensor, NULL), PLUMB_OK);
}

static void test_rows(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    put(&scratch, "a/dump.json",
        "\"Torch.add.0.forward\":{\"input_args\":[" LEAF ",{\"type\":\"int\",\"value\":-2}],"
        "\"input_kwargs\":{\"out\":null},\"output\":[" LEAF "]}");
    scratch_write(&scratch, "a/stack.json",
                  "{\"0\":[[\"Torch.add.0.forward\"],[\"File a.py, line 1\",\"up\"]]}", 59);
    static const char *const ways[] = {"a", "a/dump.json", "a/"};
    for (size_t way = 0; way < 3; way++) {
        struct plumb_run *run = open_run(&scratch, ways[way]);
        assert_string_equal(plumb_run_kind(run), "dump");
        assert_int_equal(plumb_run_count(run), 4);
        const struct plumb_record *record = plumb_run_record(run, 0);
        assert_string_equal(record->name, "Torch.add.0.forward.input.0");
        assert_true(record->absent && !record->error && record->step == -1 && record->rank == -1);
        assert_int_equal(record->requires_grad, 1);
        assert_int_equal(record->dtype, PLUMB_F32);
        assert_int_equal(record->count, 4);
        const struct plumb_recorded *recorded = record->recorded;
        assert_true(recorded->tensor);
        assert_string_equal(recorded->api, "Torch.add.0.forward");
        assert_string_equal(recorded->shape, "[2, 2]");
        assert_string_equal(recorded->checksum, "0123abcd");
        assert_string_equal(plumb_recorded_stack(recorded)[1], "up");
        assert_null(plumb_recorded_stack(recorded)[2]);
        struct plumb_value statistic[PLUMB_STATISTICS];
        for (unsigned k = 0; k < PLUMB_STATISTICS; k++)
            statistic[k] = plumb_recorded_statistic(recorded, k);
        assert_true(statistic[PLUMB_STATISTIC_MAX].number == 3.5);
        assert_true(statistic[PLUMB_STATISTIC_MEAN].number !=
                    statistic[PLUMB_STATISTIC_MEAN].number);
        assert_int_equal(statistic[PLUMB_STATISTIC_NORM].kind, PLUMB_VALUE_NONE);

        const struct plumb_record *integer = plumb_run_record(run, 1);
        assert_false(integer->recorded->tensor);
        assert_string_equal(integer->recorded->value, "-2");
        assert_int_equal(integer->requires_grad, -1);
        assert_ptr_equal(integer->recorded->api, recorded->api);
        assert_ptr_equal(integer->recorded->caller, recorded->caller);
        assert_string_equal(plumb_run_record(run, 2)->recorded->value, "None");

        struct plumb_payload payload;
        struct plumb_error err;
        assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_E_UNSUPPORTED);
        plumb_run_free(run);
    }
    scratch_remove(&scratch);
}

/* Backward calls are counted, forward ones keep their numbers. */
static void test_keys(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    put(&scratch, "dump.json",
        "\"Torch.add.5.forward\":{\"output\":[" LEAF "]},"
        "\"Torch.add.7.backward\":{\"input\":[" LEAF "],\"output\":[" LEAF "]},"
        "\"Torch.add.5.backward\":{\"input\":[" LEAF "]},"
        "\"Module.a.backward.B.backward.4\":{\"input\":[" LEAF "]},"
        "\"Module.a.backward.B.backward.2\":{\"input\":[" LEAF "]},"
        "\"Torch.mul.3.backward\":{\"input\":[" LEAF "]}");
    struct plumb_run *run = open_run(&scratch, "");
    static const char *const keys[] = {"Torch.add.5.forward.output.0",
                                       "Torch.add.0.backward.input.0",
                                       "Torch.add.0.backward.output.0",
                                       "Torch.add.1.backward.input.0",
                                       "Module.a.backward.B.backward.0.input.0",
                                       "Module.a.backward.B.backward.1.input.0",
                                       "Torch.mul.0.backward.input.0"};
    assert_int_equal(plumb_run_count(run), 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(plumb_run_record(run, i)->key, keys[i]);
    assert_string_equal(plumb_run_record(run, 1)->name, "Torch.add.7.backward.input.0");
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void test_payloads(void **state)
{
    (void)state;
    static const char *const names[] = {"good.npy", "lost.npy", "short.npy", "../dump.json",
                                        "link.npy", "text.npy", "huge.npy"};
    static const char *const shapes[] = {
        "2,2", "2,2", "2,2", "2,2", "2,2", "2,2", "1099511627776,1048576"};
    struct scratch scratch;
    char data[4096] = "";
    scratch_make(&scratch);
    for (size_t i = 0; i < 7; i++)
        snprintf(data + strlen(data), sizeof data - strlen(data),
                 "%s\"Torch.t.%zu.forward\":{\"output\":[{\"type\":\"torch.Tensor\","
                 "\"dtype\":\"Float32\",\"shape\":[%s],\"data_name\":\"%s\"}]}",
                 i ? "," : "", i, shapes[i], names[i]);
    put(&scratch, "d/dump.json", data);
    put_npy(&scratch, "d/dump_tensor_data/good.npy", 4);
    put_npy(&scratch, "d/dump_tensor_data/short.npy", 3);
    put_npy(&scratch, "d/dump_tensor_data/huge.npy", 3);
    put_npy(&scratch, "outside.npy", 4);
    scratch_write(&scratch, "d/dump_tensor_data/text.npy", "these are no numbers", 20);
    assert_int_equal(
        symlink("../../outside.npy", scratch_path(&scratch, "d/dump_tensor_data/link.npy")), 0);
    struct plumb_run *run = open_run(&scratch, "d");
    struct plumb_payload payload;
    struct plumb_error err;
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_OK);
    assert_int_equal(payload.tensor.count, 4);
    plumb_payload_release(&payload);
    static const struct {
        enum plumb_code code;
        const char *message;
    } wanted[] = {{PLUMB_E_IO, "No such file"},        {PLUMB_E_FORMAT, "dump.json says [2, 2]"},
                  {PLUMB_E_FORMAT, "leads elsewhere"}, {PLUMB_E_IO, "leads out of the folder"},
                  {PLUMB_E_FORMAT, "none that plumb"}, {PLUMB_E_FORMAT, "too small"}};
    for (size_t i = 1; i < 7; i++) {
        assert_int_equal(plumb_run_load(run, i, &payload, &err), wanted[i - 1].code);
        if (!strstr(err.message, wanted[i - 1].message))
            fail_msg("%s: %s", names[i], err.message);
    }
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void test_places(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    put(&scratch, "p/step10/rank0/dump.json", "\"A.b.0.forward\":{\"output\":[" LEAF "]}");
    put(&scratch, "p/step9/rank10/dump.json", "\"A.b.0.forward\":{\"output\":[" LEAF "]}");
    put(&scratch, "p/step9/rank2/dump.json", "\"A.b.0.forward\":{\"output\":[" LEAF "]}");
    scratch_write(&scratch, "p/step9/rank3/dump.json", "[", 1);
    static const struct {
        int64_t step, rank;
    } wanted[] = {{9, 2}, {9, 3}, {9, 10}, {10, 0}};
    struct plumb_run *run = open_run(&scratch, "p");
    assert_int_equal(plumb_run_count(run), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        assert_int_equal(record->step, wanted[i].step);
        assert_int_equal(record->rank, wanted[i].rank);
        assert_int_equal(record->error != NULL, i == 1);
    }
    plumb_run_free(run);
    run = open_run(&scratch, "p/step9");
    assert_int_equal(plumb_run_count(run), 3);
    assert_int_equal(plumb_run_record(run, 0)->step, -1);
    plumb_run_free(run);

    /* Folders called like ranks that hold no dumps are folders. */
    put_npy(&scratch, "plain/rank0/x.npy", 2);
    run = open_run(&scratch, "plain");
    assert_string_equal(plumb_run_kind(run), "folder");
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void test_damage(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_run *run;
    struct plumb_error err;
    scratch_make(&scratch);
    scratch_write(&scratch, "x/dump.json", "{\"a\":1}", 7);
    assert_int_not_equal(plumb_run_open(&run, scratch_path(&scratch, "x"), &err), PLUMB_OK);
    put(&scratch, "x/dump.json", "");
    assert_int_equal(plumb_run_open(&run, scratch_path(&scratch, "x"), &err), PLUMB_E_FORMAT);

    /* Cut anywhere: an error, or the rows before and a record that says so. */
    put(&scratch, "whole/dump.json",
        "\"A.b.0.forward\":{\"output\":[" LEAF "]},"
        "\"A.b.1.forward\":{\"output\":[" LEAF "]}");
    FILE *stream = fopen(scratch_path(&scratch, "whole/dump.json"), "rb");
    char text[4096];
    size_t size = fread(text, 1, sizeof text, stream), opened = 0;
    fclose(stream);
    for (size_t cut = 0; cut < size; cut++) {
        scratch_write(&scratch, "x/dump.json", text, cut);
        if (plumb_run_open(&run, scratch_path(&scratch, "x"), &err)) {
            assert_non_null(strstr(err.file, "dump.json"));
            continue;
        }
        opened++;
        bool told = false;
        for (size_t i = 0; i < plumb_run_count(run); i++)
            told = told || plumb_run_record(run, i)->error;
        if (!told)
            fail_msg("cut at %zu of %zu: nobody says so", cut, size);
        plumb_run_free(run);
    }
    assert_true(opened > 100);
    scratch_remove(&scratch);
}

/* A run of a million tensors is held in memory: what each of them takes besides its name. */
static void test_size(void **state)
{
    (void)state;
    enum { CALLS = 16384, ROWS = 4 * CALLS };
    struct scratch scratch;
    struct buf text = {0};
    scratch_make(&scratch);
    buf_text(&text, "{\"data\":{");
    for (int i = 0; i < CALLS; i++)
        buf_printf(&text,
                   "%s\"A.b.%d.forward\":{\"input\":[" PLAIN "," PLAIN "," PLAIN
                   "],\"output\":[" PLAIN "]}",
                   i ? "," : "", i);
    buf_text(&text, "}}");
    assert_false(text.failed);
    scratch_write(&scratch, "dump.json", text.data, text.size);
    struct plumb_run *run = open_run(&scratch, "dump.json");
    assert_int_equal(plumb_run_count(run), ROWS);
    const struct dump_tree *tree = &run->trees[0];
    size_t bytes = run->arena.bytes + tree->arena.bytes + tree->api_count * sizeof *tree->apis +
                   tree->names.capacity * sizeof *tree->names.slots;
    for (size_t i = 0; i < ROWS; i++)
        bytes -= strlen(plumb_run_record(run, i)->name) + 1;
    /* A record and what was recorded, a quarter of a call, and what is not in use yet. */
    assert_in_range(bytes / ROWS, 1, 290);
    plumb_run_free(run);
    buf_free(&text);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_payloads), cmocka_unit_test(test_places),
        cmocka_unit_test(test_damage),   cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
