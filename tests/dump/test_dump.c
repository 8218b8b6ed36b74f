#define _GNU_SOURCE
#include "dump/dump.h"
#include "dump/python.h"
#include "dump/reader.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

static struct scratch scratch;

static int make_scratch(void **state)
{
    (void)state;
    scratch_make(&scratch);
    return 0;
}

static int remove_scratch(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

#define TENSOR                                                                                     \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\",\"shape\":[2,3],\"Max\":1.5,"          \
    "\"Min\":-Infinity,\"Mean\":NaN,\"Norm\":null,\"requires_grad\":true}"

static void open_text(struct dump_tree *tree, const char *name, const char *text)
{
    struct plumb_error err;
    assert_int_equal(dump_open(tree, scratch_write(&scratch, name, text, strlen(text)), &err),
                     PLUMB_OK);
}

static void assert_row(const struct dump_tree *tree, size_t i, const char *name, const char *dtype,
                       const char *shape, const char *max)
{
    assert_true(i < tree->row_count);
    const struct dump_row *row = &tree->rows[i];
    assert_string_equal(row->name, name);
    assert_string_equal(row->dtype, dtype);
    assert_string_equal(row->shape, shape);
    char text[NUMBER_BYTES];
    if (max)
        assert_string_equal(dump_value_text(&row->statistic[DUMP_MAX], text), max);
    else
        assert_null(dump_value_text(&row->statistic[DUMP_MAX], text));
}

static void test_tensor(void **state)
{
    (void)state;
    struct dump_tree tree;
    open_text(&tree, "dump.json",
              "{\"task\":\"statistics\",\"level\":\"L1\",\"data\":{\"Torch.add.0.forward\":"
              "{\"input_args\":[" TENSOR "],\"input_kwargs\":{},\"output\":[]}}}");
    assert_int_equal(tree.task, DUMP_STATISTICS);
    assert_string_equal(tree.framework, "pytorch");
    assert_int_equal(tree.row_count, 1);
    const struct dump_row *row = tree.rows;
    assert_row(&tree, 0, "Torch.add.0.forward.input.0", "torch.float32", "[2, 3]", "1.5");
    assert_true(row->tensor);
    assert_int_equal(row->ndim, 2);
    assert_int_equal(row->dims[1], 3);
    assert_int_equal(row->section, DUMP_INPUT);
    assert_int_equal(row->depth, 1);
    char text[NUMBER_BYTES];
    assert_string_equal(dump_value_text(&row->statistic[DUMP_MIN], text), "-inf");
    assert_string_equal(dump_value_text(&row->statistic[DUMP_MEAN], text), "nan");
    assert_true(isnan(row->statistic[DUMP_MEAN].number));
    assert_int_equal(row->statistic[DUMP_NORM].kind, DUMP_ABSENT);
    assert_string_equal(row->requires_grad, "True");
    dump_close(&tree);
}

static void test_order_of_sections(void **state)
{
    (void)state;
    struct dump_tree tree;
    open_text(&tree, "dump.json",
              "{\"data\":{\"A.b.0.forward\":{\"buffers\":{\"m\":null},\"output\":[null],"
              "\"parameters\":{\"w\":null},"
              "\"other\":[null],\"input_kwargs\":{\"k\":null},\"input_args\":[null,[null,{}]]},"
              "\"A.b.0.backward\":{\"input\":[null],\"output\":null}}}");
    static const char *const names[] = {"A.b.0.forward.input.0",  "A.b.0.forward.input.1.0",
                                        "A.b.0.forward.input.k",  "A.b.0.forward.parameters.w",
                                        "A.b.0.forward.output.0", "A.b.0.forward.buffers.m",
                                        "A.b.0.backward.input.0", "A.b.0.backward.output"};
    assert_int_equal(tree.row_count, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < tree.row_count; i++) {
        assert_row(&tree, i, names[i], "None", "None", NULL);
        assert_null(tree.rows[i].type);
    }
    assert_int_equal(tree.rows[1].depth, 2);
    assert_int_equal(tree.rows[3].section, DUMP_PARAMETERS);
    assert_int_equal(tree.apis[1].first, 6);
    assert_int_equal(tree.apis[1].count, 2);
    dump_close(&tree);
}

static void test_kinds_of_leaves(void **state)
{
    (void)state;
    struct dump_tree tree;
    open_text(
        &tree, "dump.json",
        "{\"task\":\"tensor\",\"framework\":\"mindspore\",\"data\":{\"A.b.0.forward\":"
        "{\"input_args\":[{\"type\":\"int\",\"value\":-3},{\"type\":\"float\",\"value\":1e-05},"
        "{\"type\":\"bool\",\"value\":false},{\"type\":\"str\",\"value\":\"x\\u00e9\"},"
        "{\"type\":\"torch.Size\",\"value\":[2,3]},{\"type\":\"slice\",\"value\":[0,null,2]},"
        "{\"type\":\"ellipsis\",\"value\":\"...\"},{\"value\":[1,\"a'b\"],\"type\":\"list\"},"
        "{\"type\":\"torch.memory_format\",\"format\":\"x\"},{}],"
        "\"input_kwargs\":{\"src\":{\"type\":\"int\",\"value\":1},"
        "\"group\":{\"type\":\"torch.ProcessGroup\",\"group_ranks\":[0,1]},"
        "\"op\":{\"class_type\":\"torch.distributed.P2POp\",\"tensor\":" TENSOR
        ",\"op\":\"isend\",\"peer\":1},"
        "\"type\":{\"type\":\"int\",\"value\":12345678901234567890123}},"
        "\"output\":[{\"type\":\"t\",\"dtype\":\"Float32\",\"shape\":[],"
        "\"data_name\":\"A.b.0.forward.kwargs.z.npy\"}]}}}");
    assert_int_equal(tree.task, DUMP_TENSOR);
    assert_string_equal(tree.framework, "mindspore");
    assert_int_equal(tree.row_count, 14);
    assert_row(&tree, 0, "A.b.0.forward.input.0", "<class 'int'>", "[]", "-3");
    assert_true(tree.rows[0].statistic[DUMP_NORM].integer);
    assert_string_equal(tree.rows[0].value, "-3");
    assert_row(&tree, 1, "A.b.0.forward.input.1", "<class 'float'>", "[]", "1e-05");
    assert_row(&tree, 2, "A.b.0.forward.input.2", "<class 'bool'>", "[]", "False");
    assert_row(&tree, 3, "A.b.0.forward.input.3", "<class 'str'>", "[]", "x\xc3\xa9");
    assert_row(&tree, 4, "A.b.0.forward.input.4", "torch.Size", "[2, 3]", NULL);
    assert_row(&tree, 5, "A.b.0.forward.input.5", "slice", "(3,)", NULL);
    assert_string_equal(tree.rows[5].value, "[0, None, 2]");
    assert_row(&tree, 6, "A.b.0.forward.input.6", "ellipsis", "[]", "...");
    assert_row(&tree, 7, "A.b.0.forward.input.7", "<class 'list'>", "[]", "[1, \"a'b\"]");
    assert_row(&tree, 8, "A.b.0.forward.input.8", "<class 'NoneType'>", "[]", NULL);
    assert_row(&tree, 9, "A.b.0.forward.input.src", "int", "[]", "1");
    assert_string_equal(tree.rows[9].md5, "1");
    assert_row(&tree, 10, "A.b.0.forward.input.group", "torch.ProcessGroup", "[]", "[0, 1]");
    assert_string_equal(tree.rows[10].group_ranks, "[0, 1]");
    assert_row(&tree, 11, "A.b.0.forward.input.op", "torch.float32", "[2, 3]", "1.5");
    assert_string_equal(tree.rows[11].p2p_op, "isend");
    assert_string_equal(tree.rows[11].p2p_peer, "1");
    assert_row(&tree, 12, "A.b.0.forward.input.type", "<class 'int'>", "[]",
               "12345678901234567890123");
    assert_row(&tree, 13, "A.b.0.forward.kwargs.z", "Float32", "[]", NULL);
    assert_string_equal(tree.rows[13].path_name, "A.b.0.forward.output.0");

    char path[512], expected[512];
    assert_true(dump_payload(&tree, tree.rows[13].data_name, path, sizeof path));
    snprintf(expected, sizeof expected, "%s/dump_tensor_data/A.b.0.forward.kwargs.z.npy",
             scratch.folder);
    assert_string_equal(path, expected);
    assert_false(dump_payload(&tree, tree.rows[13].data_name, path, strlen(expected)));
    assert_false(dump_payload(&tree, tree.rows[0].data_name, path, sizeof path));
    dump_close(&tree);
}

static void test_payload_names_stay_inside(void **state)
{
    (void)state;
    struct dump_tree tree = {.folder = "f"};
    char path[64];
    static const char *const bad[] = {"../x.pt", "/x.pt", "a/b.pt", "..", "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dump_row row = {.data_name = bad[i]};
        assert_false(dump_payload(&tree, row.data_name, path, sizeof path));
    }
}

static void test_gradients_and_debug(void **state)
{
    (void)state;
    struct dump_tree tree;
    open_text(&tree, "dump.json",
              "{\"data\":{\"Module.fc.Linear.parameters_grad.0\":{\"weight\":[" TENSOR
              "],\"bias\":[null]}}}");
    assert_int_equal(tree.row_count, 2);
    assert_string_equal(tree.rows[0].name, "Module.fc.Linear.parameters_grad.0.weight");
    assert_int_equal(tree.rows[1].section, DUMP_GRADIENTS);
    dump_close(&tree);

    open_text(&tree, "debug.json",
              "{\"data\":{\"x.0.debug\":" TENSOR ",\"y.0.debug\":{\"a\":[" TENSOR "]}}}");
    assert_true(tree.debug);
    assert_int_equal(tree.row_count, 2);
    assert_string_equal(tree.rows[0].name, "x.0.debug");
    assert_string_equal(tree.rows[1].name, "y.0.debug.a.0");
    dump_close(&tree);
}

static void test_checksums_make_the_task(void **state)
{
    (void)state;
    struct dump_tree tree;
    open_text(&tree, "dump.json",
              "{\"data\":{\"A.b.0.forward\":{\"output\":[{\"type\":\"t\",\"dtype\":\"d\","
              "\"shape\":[1],\"md5\":\"0x00ff\"}]}},\"task\":\"statistics\"}");
    assert_int_equal(tree.task, DUMP_MD5);
    assert_string_equal(tree.rows[0].md5, "0x00ff");
    dump_close(&tree);
}

static void test_side_files(void **state)
{
    (void)state;
    struct dump_tree tree;
    static const char stack[] = "{\"0\":[[\"A.b.0.forward\",\"gone\"],[\"line 1\",\"line 2\"]],"
                                "\"A.c.0.forward\":[\"old form\"],\"9\":3}";
    static const char construct[] = "{\"A.b.0.forward\":\"Module.m\",\"A.c.0.forward\":"
                                    "[\"Module.n\",0],\"A.d.0.forward\":null}";
    scratch_write(&scratch, "stack.json", stack, sizeof stack - 1);
    scratch_write(&scratch, "construct.json", construct, sizeof construct - 1);
    open_text(&tree, "dump.json",
              "{\"data\":{\"A.b.0.forward\":{},\"A.c.0.forward\":{},\"A.d.0.forward\":{}}}");
    assert_int_equal(tree.warning_count, 0);
    assert_int_equal(tree.stack_count, 2);
    assert_int_equal(tree.apis[0].stack, 1);
    assert_string_equal(tree.stacks[0][1], "line 2");
    assert_null(tree.stacks[0][2]);
    assert_int_equal(tree.apis[1].stack, 2);
    assert_string_equal(tree.stacks[1][0], "old form");
    assert_int_equal(tree.apis[2].stack, 0);
    assert_string_equal(tree.apis[0].parent, "Module.m");
    assert_string_equal(tree.apis[1].parent, "Module.n");
    assert_null(tree.apis[2].parent);
    dump_close(&tree);

    /* Damage beside the dump is a warning, wherever it is. */
    for (size_t size = 0; size < sizeof stack - 1; size++) {
        scratch_write(&scratch, "stack.json", stack, size);
        struct plumb_error err;
        assert_int_equal(dump_open(&tree, scratch_path(&scratch, "dump.json"), &err), PLUMB_OK);
        assert_int_equal(tree.warning_count, 1);
        dump_close(&tree);
    }
    unlink(scratch_path(&scratch, "stack.json"));
    unlink(scratch_path(&scratch, "construct.json"));
}

static void test_truncated_anywhere(void **state)
{
    (void)state;
    static const char text[] =
        "{\"task\":\"statistics\",\"data\":{\"A.b.0.forward\":{\"input\":[" TENSOR
        "]},\"A.b.1.forward\":{\"output\":[{\"type\":\"int\","
        "\"value\":[1,{\"a\":2}]}]}}}";
    const char *first = strstr(text, "]},") + 1, *data = strstr(text, "\"data\":") + 7;
    for (size_t size = 0; size < sizeof text - 1; size++) {
        struct dump_tree tree;
        struct plumb_error err;
        const char *path = scratch_write(&scratch, "dump.json", text, size);
        enum plumb_code code = dump_open(&tree, path, &err);
        if (size < (size_t)(data - text)) {
            assert_int_equal(code, PLUMB_E_FORMAT);
            continue;
        }
        assert_int_equal(code, PLUMB_OK);
        assert_int_equal(tree.warning_count, 1);
        assert_true(size < (size_t)(first - text) || tree.row_count >= 1);
        dump_close(&tree);
    }
}

static void test_refuses_what_is_no_dump(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]", "{}", "3", "{\"data\":[]}", "{\"data\":null}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct dump_tree tree;
        struct plumb_error err;
        const char *path = scratch_write(&scratch, "dump.json", texts[i], strlen(texts[i]));
        assert_int_equal(dump_open(&tree, path, &err), PLUMB_E_UNSUPPORTED);
        assert_string_equal(err.file, path);
    }
}

static void test_nesting_and_long_names(void **state)
{
    (void)state;
    struct dump_tree tree;
    struct buf text = {0};
    buf_text(&text, "{\"data\":{\"A.b.0.forward\":{\"input\":[");
    buf_repeat(&text, '[', 200);
    buf_text(&text, "null");
    buf_repeat(&text, ']', 200);
    buf_text(&text, ",{\"");
    buf_repeat(&text, 'k', 5000);
    buf_text(&text, "\":null},null]}}}");
    open_text(&tree, "dump.json", text.data);
    assert_int_equal(tree.row_count, 1);
    assert_string_equal(tree.rows[0].name, "A.b.0.forward.input.2");
    assert_int_equal(tree.warning_count, 2);
    dump_close(&tree);
    buf_free(&text);
}

static void test_odd_entries(void **state)
{
    (void)state;
    struct dump_tree tree;
    open_text(&tree, "dump.json",
              "{\"data\":{\"A.b.0.forward\":7,\"\":{},\"A.c.0.forward\":{\"input\":5,\"output\":"
              "[1,\"x\",true,{\"type\":3}]},\"A.c.0.forward\":{\"output\":[null]}}}");
    assert_int_equal(tree.row_count, 1);
    assert_int_equal(tree.warning_count, 3);
    assert_ptr_equal(dump_named(&tree, "A.c.0.forward", 13), &tree.apis[2]);
    assert_null(dump_named(&tree, "A.c.0.forwar", 12));
    dump_close(&tree);
}

static void test_find(void **state)
{
    (void)state;
    struct dump_places places;
    struct plumb_error err;
    static const char *const files[] = {
        "s/rank10/dump.json", "s/rank2/dump.json", "s/rank/debug.json",
        "s/rank01/dump.json", "s/proc3/dump.json", "p/proc77/dump.json",
        "e/nothing",          "q/proc1/x",         "q/proc2/x"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        scratch_write(&scratch, files[i], "{}", 2);

    assert_int_equal(dump_find(&places, scratch_path(&scratch, "s"), &err), PLUMB_OK);
    assert_int_equal(places.count, 3);
    assert_string_equal(places.places[0].rank, "rank");
    assert_non_null(strstr(places.places[0].json, "/s/rank/debug.json"));
    assert_string_equal(places.places[1].rank, "rank2");
    assert_string_equal(places.places[2].rank, "rank10");
    dump_places_free(&places);

    assert_int_equal(dump_find(&places, scratch_path(&scratch, "p"), &err), PLUMB_OK);
    assert_int_equal(places.count, 1);
    assert_string_equal(places.places[0].rank, "proc77");
    dump_places_free(&places);

    assert_int_equal(dump_find(&places, scratch_path(&scratch, "s/rank2"), &err), PLUMB_OK);
    assert_int_equal(places.count, 1);
    assert_string_equal(places.places[0].rank, "");
    dump_places_free(&places);

    assert_int_equal(dump_find(&places, scratch_path(&scratch, "s/rank2/dump.json"), &err),
                     PLUMB_OK);
    dump_places_free(&places);

    static const char *const bad[] = {"e", "q", "e/nothing", "missing", "missing/dump.json"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dump_find(&places, scratch_path(&scratch, bad[i]), &err),
                         PLUMB_E_UNSUPPORTED);
}

static void test_python_text(void **state)
{
    (void)state;
    static const struct {
        const char *json, *python;
    } cases[] = {
        {"1.50", "1.5"},
        {"-0", "0"},
        {"-0.0", "-0.0"},
        {"1e400", "inf"},
        {"1E5", "100000.0"},
        {"1e16", "1e+16"},
        {"\"a\\nb\"", "a\nb"},
        {"[\"a\\nb\\u0007\", {\"k\": [true, null]}, []]",
         "['a\\nb\\x07', {'k': [True, None]}, []]"},
        {"[\"it's\", \"\\\"it's\\\"\"]", "[\"it's\", '\"it\\'s\"']"},
        {"\"\\ud800\"", "\\ud800"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json json;
        struct buf text = {0};
        json_init(&json, cases[i].json, strlen(cases[i].json));
        assert_true(python_text(&json, json_next(&json), &text));
        assert_string_equal(text.data, cases[i].python);
        buf_free(&text);
    }
}

/* The ranks of a group stand at its first exchange; odd values count as not recorded. */
static void test_exchanges(void **state)
{
    (void)state;
    static const char text[] =
        "{\"data\": {"
        "\"Distributed.all_reduce.0.forward\": {\"exchange\": {\"order\": 0, \"group_ranks\": [0, "
        "1], "
        "\"group_id\": \"a\"}},"
        "\"Distributed.all_reduce.1.forward\": {\"exchange\": {\"order\": 7, \"group_id\": \"a\"}},"
        "\"Distributed.all_reduce.2.forward\": {\"exchange\": {\"order\": -3, \"group_ranks\": "
        "\"x\", "
        "\"group_id\": \"b\"}},"
        "\"Distributed.all_reduce.3.forward\": {\"exchange\": [1]},"
        "\"Torch.exp.0.forward\": {}}}";
    struct dump_tree tree = {.path = "dump.json"};
    struct plumb_error err;
    assert_int_equal(dump_parse(&tree, text, sizeof text - 1, NULL, NULL, &err), PLUMB_OK);
    assert_int_equal(tree.api_count, 5);
    assert_int_equal(tree.apis[0].order, 0);
    assert_string_equal(tree.apis[0].group, "[0, 1]");
    assert_int_equal(tree.apis[1].order, 7);
    assert_ptr_equal(tree.apis[1].group, tree.apis[0].group);
    for (size_t i = 2; i < 5; i++) {
        assert_int_equal(tree.apis[i].order, -1);
        assert_null(tree.apis[i].group);
    }
    dump_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_order_of_sections),
        cmocka_unit_test(test_kinds_of_leaves),
        cmocka_unit_test(test_payload_names_stay_inside),
        cmocka_unit_test(test_gradients_and_debug),
        cmocka_unit_test(test_checksums_make_the_task),
        cmocka_unit_test(test_side_files),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_refuses_what_is_no_dump),
        cmocka_unit_test(test_nesting_and_long_names),
        cmocka_unit_test(test_odd_entries),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_python_text),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
