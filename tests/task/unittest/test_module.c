/* Recorded operators as Python source: what is written, and that nothing in a dump becomes code. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "plumb/unittest.h"
#include "task/unittest/blacklist.h"
#include "task/unittest/code.h"
#include "task/unittest/module.h"

/* The module of the first operator of a dump whose "data" is this text. */
static char *module_of(const char *data)
{
    struct calls calls = {0};
    struct buf json = {0}, out = {0};
    struct plumb_error err = {0};
    buf_printf(&json, "{\"framework\": \"pytorch\", \"data\": {%s}}", data);
    assert_int_equal(calls_parse(&calls, json.data, json.size, &err), PLUMB_OK);
    assert_true(module_text(&out, &calls, &calls.groups[0]));
    calls_close(&calls);
    buf_free(&json);
    return out.data;
}

static void check_module(const char *data, const char *wanted)
{
    char *text = module_of(data);
    const char *body = strstr(text, "\n\n\ndef ");
    assert_non_null(body);
    assert_string_equal(body + 3, wanted);
    free(text);
}

/* One call of aten.f.default with that argument. */
static void check_argument(const char *json, const char *wanted)
{
    struct buf data = {0}, text = {0};
    buf_printf(&data, "\"1-aten\": {\"op\": \"aten.f.default\", \"input_args\": [%s]}", json);
    buf_printf(&text,
               "def test_1_aten(aten):\n    aten.check(\"1-aten\", \"aten.f.default\", [\n"
               "        %s,\n    ])\n",
               wanted);
    check_module(data.data, text.data);
    buf_free(&data);
    buf_free(&text);
}

static void check_refused(const char *json, const char *reason)
{
    struct buf data = {0}, text = {0};
    buf_printf(&data, "\"1-aten\": {\"op\": \"aten.f.default\", \"input_args\": [1, %s]}", json);
    buf_printf(&text,
               "def test_1_aten(aten):\n    aten.skip(\"1-aten\", \"aten.f.default\", \"%s\")\n",
               reason);
    check_module(data.data, text.data);
    buf_free(&data);
    buf_free(&text);
}

static void test_whole(void **state)
{
    (void)state;
    char *text = module_of(
        "\"00027-aten\": {\"op\": \"aten.add.Tensor\", \"input_args\": [{\"type\": "
        "\"torch.Tensor\", \"dtype\": \"torch.float32\", \"shape\": [2, 3], \"Max\": 1.5, \"Min\": "
        "-2, \"Mean\": 0, \"Norm\": 3, \"requires_grad\": false, \"stride\": [3, 1], "
        "\"data_name\": \"00027-aten.input.0.pt\"}, {\"type\": \"int\", \"value\": 1}], "
        "\"input_kwargs\": {\"alpha\": {\"type\": \"float\", \"value\": 2.0}}, \"output\": []}");
    assert_string_equal(
        text,
        "\"\"\"Recorded calls of aten.add.Tensor. Made by plumb jprof; conftest.py beside it does "
        "the work.\"\"\"\n\n\ndef test_00027_aten(aten):\n    aten.check(\"00027-aten\", "
        "\"aten.add.Tensor\", [\n        aten.tensor(\"torch.float32\", [2, 3], low=-2, high=1.5, "
        "file=\"00027-aten.input.0.pt\"),\n        1,\n    ], {\n        \"alpha\": 2.0,\n    "
        "})\n");
    free(text);
}

static void test_arguments(void **state)
{
    (void)state;
    check_argument("null", "None");
    check_argument("{\"type\": \"bool\", \"value\": true}", "True");
    check_argument("{\"type\": \"str\", \"value\": \"mean\"}", "\"mean\"");
    check_argument("[{\"type\": \"int\", \"value\": -3}, null]", "[-3, None]");
    check_argument("{\"type\": \"float\", \"value\": Infinity}", "float(\"inf\")");
    check_argument("{\"type\": \"float\", \"value\": -Infinity}", "float(\"-inf\")");
    check_argument("{\"type\": \"float\", \"value\": 1e-05}", "1e-05");
    check_argument("{\"type\": \"complex\", \"value\": [1.5, -2.0]}", "complex(1.5, -2.0)");
    check_argument("{\"type\": \"slice\", \"value\": [1, null, 2]}", "slice(1, None, 2)");
    check_argument("{\"type\": \"torch.dtype\", \"value\": \"torch.int8\"}",
                   "aten.dtype(\"torch.int8\")");
    check_argument("{\"type\": \"torch.layout\", \"value\": \"torch.strided\"}",
                   "aten.layout(\"torch.strided\")");
    check_argument("{\"type\": \"torch.memory_format\", \"format\": \"channels_last\"}",
                   "aten.memory_format(\"channels_last\")");
    check_argument("{\"type\": \"torch.device\", \"value\": \"npu:0\"}", "aten.device");
    check_argument("{\"type\": \"torch.Generator\"}", "None");
    check_argument("{\"type\": \"torch.Size\", \"value\": [2, 3]}", "[2, 3]");
    check_argument("{\"a\": 1}", "{\"a\": 1}");
    check_argument("{\"shape\": [], \"type\": \"torch.Tensor\", \"dtype\": \"torch.bool\", "
                   "\"Max\": true, \"Min\": false}",
                   "aten.tensor(\"torch.bool\", [], low=False, high=True)");
    /* A transposed tensor, NaN in it, and a place for a file that is null. */
    check_argument("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.float16\", \"shape\": [2, 3], "
                   "\"stride\": [1, 2], \"Max\": NaN, \"Min\": null, \"data_name\": null}",
                   "aten.tensor(\"torch.float16\", [2, 3], stride=[1, 2], high=float(\"nan\"))");
    /* A dimension of one element has any stride. */
    check_argument("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [1, 3], "
                   "\"stride\": [77, 1]}",
                   "aten.tensor(\"torch.int8\", [1, 3])");
}

static void test_refused(void **state)
{
    (void)state;
    check_refused("{\"type\": \"torch.ScriptObject\"}",
                  "an argument of a type that cannot be made again: torch.ScriptObject");
    check_refused("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\"}",
                  "a tensor without a usable shape");
    check_refused("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [-1]}",
                  "a tensor without a usable shape");
    check_refused("{\"type\": \"torch.Tensor\", \"shape\": [1]}", "a tensor without a dtype");
    check_refused("{\"type\": \"slice\", \"value\": [1, 2]}", "a damaged slice");
    check_refused("{\"type\": \"slice\", \"value\": [\"x\", 2, 3]}", "a damaged slice");
    check_refused("123456789012345678901234567890123456789012345",
                  "an integer too large to be an argument: "
                  "123456789012345678901234567890123456789012345");
    char deep[256] = "";
    for (int i = 0; i < 100; i++)
        deep[i] = '[';
    for (int i = 100; i < 200; i++)
        deep[i] = ']';
    check_refused(deep, "arguments nested too deeply");
}

/* Whatever a dump says stays inside quotes, and names lose what Python would take for code. */
static void test_hostile(void **state)
{
    (void)state;
    check_argument("{\"type\": \"str\", \"value\": \"\\\"); __import__(\\\"os\\\")\\n#\"}",
                   "\"\\\"); __import__(\\\"os\\\")\\x0a#\"");
    check_argument("{\"type\": \"str\", \"value\": \"\\u00e9\\u2028\\ud83d\\ude00\\u0000\\\\\"}",
                   "\"\\U000000e9\\U00002028\\U0001f600\\x00\\\\\"");
    check_argument("{\"type\": \"str\", \"value\": \"\xff\"}", "\"\\xff\"");
    check_argument("{\"type\": \"torch.dtype\", \"value\": \"__import__('os')\"}",
                   "aten.dtype(\"__import__('os')\")");
    check_argument("{\"type\": \"torch.Tensor\", \"dtype\": \"torch.int8\", \"shape\": [1], "
                   "\"data_name\": \"../../etc/passwd\", \"Max\": \"__import__('os')\"}",
                   "aten.tensor(\"torch.int8\", [1])");
    check_argument("{\"k\\\": __import__('os')\": 1}", "{\"k\\\": __import__('os')\": 1}");
    char *text =
        module_of("\"x(): pass\\nimport os #\": {\"op\": \"aten\\\"\\\"\\\"\\nimport os\", "
                  "\"input_args\": []}, \"x___ pass_import_os _\": {\"op\": "
                  "\"aten\\\"\\\"\\\"\\nimport os\", \"input_args\": null}");
    assert_string_equal(
        text, "\"\"\"Recorded calls of aten____import_os. Made by plumb jprof; conftest.py beside "
              "it does the work.\"\"\"\n\n\ndef test_x____pass_import_os__(aten):\n    "
              "aten.check(\"x(): pass\\x0aimport os #\", \"aten\\\"\\\"\\\"\\x0aimport os\", "
              "[])\n\n\ndef test_x____pass_import_os___2(aten):\n    aten.check(\"x___ "
              "pass_import_os _\", \"aten\\\"\\\"\\\"\\x0aimport os\", [])\n");
    free(text);
}

static void check_error(const char *json, const char *message)
{
    struct calls calls = {0};
    struct plumb_error err = {0};
    char text[1024];
    assert_int_equal(calls_parse(&calls, json, strlen(json), &err), PLUMB_E_FORMAT);
    assert_string_equal(plumb_error_text(&err, text, sizeof text), message);
    calls_close(&calls);
}

static void test_errors(void **state)
{
    (void)state;
    check_error("[]", "at byte 0: not a dump.json: it holds no JSON object");
    check_error("{}", "not a dump.json: there is no object \"data\"");
    check_error("{\"data\": {}}", "nothing was recorded: \"data\" is empty");
    check_error("{\"data\": {\"Torch.load.0.forward\": {\"input_args\": []}, \"a\": 1}}",
                "none of its 2 entries is an operator with its arguments; record with "
                "plumb.begin_dump(X_DEBUG=0x102), or at level L1");
    check_error("{\"data\": {\"1-aten\": {\"op\": \"aten.f\", \"input_args\": []}}, \"data\": {}}",
                "nothing was recorded: \"data\" is empty"); /* of several the last counts */
    struct calls calls = {0};
    struct plumb_error err = {0};
    const char *cut = "{\"data\": {\"1-aten\": {\"op\": \"aten.f\", \"input_args\": [";
    assert_int_equal(calls_parse(&calls, cut, strlen(cut), &err), PLUMB_E_FORMAT);
    assert_int_equal(err.offset, strlen(cut));
    calls_close(&calls);
}

/* Calls of the same name: the last counts, in the place of the first. */
static void test_repeated(void **state)
{
    (void)state;
    check_module("\"1-aten\": {\"op\": \"aten.g.x\", \"input_args\": [1]}, \"1-aten\": {\"op\": "
                 "\"aten.f.x\", \"input_args\": [2]}",
                 "def test_1_aten(aten):\n    aten.check(\"1-aten\", \"aten.f.x\", [\n        2,\n"
                 "    ])\n");
}

static bool is_listed(const struct blacklist *list, const char *op)
{
    return blacklist_has(list, op, strlen(op));
}

static void test_blacklist(void **state)
{
    (void)state;
    struct blacklist list;
    struct scratch scratch;
    assert_int_equal(blacklist_open(&list, false, NULL, NULL), PLUMB_OK);
    assert_false(is_listed(&list, "aten.randn.default"));
    assert_true(is_listed(&list, "aten.from_file.default"));
    blacklist_close(&list);
    assert_int_equal(blacklist_open(&list, true, NULL, NULL), PLUMB_OK);
    static const char *const black[] = {
        "aten.randn.default",     "aten.rand_like.default",   "aten.bernoulli_.float",
        "aten.dropout.default",   "aten.empty.memory_format", "aten.new_empty_strided.default",
        "aten.normal_.default",   "aten.multinomial.default", "aten.native_dropout.default",
        "aten.uniform_.default",  "aten.randperm.default",    "aten.scatter.src",
        "aten.index_put_.default"};
    static const char *const white[] = {"aten.add.Tensor",          "aten.norm.Scalar",
                                        "aten.scatter_add.default", "aten.normalize.default",
                                        "aten.set.default",         "torchvision.nms.default"};
    for (size_t i = 0; i < sizeof black / sizeof *black; i++)
        assert_true(is_listed(&list, black[i]));
    for (size_t i = 0; i < sizeof white / sizeof *white; i++)
        assert_false(is_listed(&list, white[i]));
    blacklist_close(&list);

    scratch_make(&scratch);
    const char text[] = "# slow\r\n aten.add.Tensor \nmul # all of it\n\nsum.dim*\n*\naten.mm";
    const char *path = scratch_write(&scratch, "list.txt", text, sizeof text - 1);
    assert_int_equal(blacklist_open(&list, true, path, NULL), PLUMB_OK);
    assert_int_equal(list.count, 5);
    assert_true(is_listed(&list, "aten.add.Tensor"));
    assert_false(is_listed(&list, "aten.add.Scalar"));
    assert_true(is_listed(&list, "aten.mul.Tensor"));
    assert_false(is_listed(&list, "aten.mul_.Tensor"));
    assert_true(is_listed(&list, "aten.sum.dim_IntList"));
    assert_false(is_listed(&list, "aten.sum.default"));
    assert_true(is_listed(&list, "aten.mm.default"));
    assert_false(is_listed(&list, "aten.randn.default"));
    blacklist_close(&list);
    scratch_remove(&scratch);
}

/* The folder: old modules go, names do not collide or lead away. */
static void test_folder(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    const char dump[] = "{\"data\": {\"1-aten\": {\"op\": \"aten.f.x\", \"input_args\": []}, "
                        "\"2-aten\": {\"op\": \"aten.F.x\", \"input_args\": []}, "
                        "\"3-aten\": {\"op\": \"../../f\", \"input_args\": []}, "
                        "\"4-aten\": {\"op\": \"aten.rand.default\", \"input_args\": []}, "
                        "\"5-aten\": {\"op\": \"aten.f.x\"}}}";
    scratch_write(&scratch, "pytests/test_old.py", MODULE_MARK, sizeof MODULE_MARK - 1);
    char path[1024];
    snprintf(path, sizeof path, "%s", scratch_write(&scratch, "dump.json", dump, sizeof dump - 1));
    struct plumb_unittest_result result;
    struct plumb_error err = {0};
    assert_int_equal(plumb_unittest_write(
                         &result, path, &(struct plumb_unittest_options){.blacklist = true}, &err),
                     PLUMB_OK);
    assert_int_equal(result.tests, 3);
    assert_int_equal(result.operators, 3);
    assert_int_equal(result.blacklisted, 1);
    assert_int_equal(result.unusable, 1);
    static const char *const there[] = {"pytests/conftest.py", "pytests/test_aten_f_x.py",
                                        "pytests/test_aten_F_x_2.py", "pytests/test_______f.py"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_int_equal(access(scratch_path(&scratch, there[i]), R_OK), 0);
    assert_int_not_equal(access(scratch_path(&scratch, "pytests/test_old.py"), F_OK), 0);
    plumb_unittest_free(&result);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_errors),    cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_blacklist), cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
