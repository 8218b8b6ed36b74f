/* Calls as text, and answers that lie. */
#include "exec/device/message.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct plumb_tensor tensor_of(enum plumb_dtype dtype, unsigned rank, const int64_t *shape,
                                     const void *data)
{
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor.data = data;
    return tensor;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void test_setup(void **state)
{
    (void)state;
    const char *const imports[] = {"my_ops", "a \"b\"\\c\n.py"};
    const struct message_setup setup = {
        .device = "cuda:0", .threads = 2, .imports = imports, .n_imports = 2};
    struct buf text = {0};
    assert_true(message_put_setup(&text, &setup));
    assert_string_equal(text.data,
                        "{\"version\":1,\"device\":\"cuda:0\",\"threads\":2,\"jit\":false,"
                        "\"imports\":[\"my_ops\",\"a \\\"b\\\"\\\\c\\n.py\"]}");
    buf_free(&text);
}

static void test_every_kind_of_argument(void **state)
{
    (void)state;
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const struct plumb_tensor x = tensor_of(PLUMB_F32, 2, (int64_t[]){2, 3}, data);
    const struct plumb_tensor y = tensor_of(PLUMB_BF16, 1, (int64_t[]){0}, NULL);
    const struct plumb_tensor g = tensor_of(PLUMB_F32, 0, NULL, data);
    const struct plumb_arg bounds[3] = {{.kind = PLUMB_ARG_INT, .integer = -1}, {0}, {0}};
    const struct plumb_arg list[2] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &y},
                                      {.kind = PLUMB_ARG_BOOL, .integer = 1}};
    const struct plumb_arg args[] = {
        {.kind = PLUMB_ARG_TENSOR, .tensor = &x, .requires_grad = true},
        {.kind = PLUMB_ARG_LIST, .items = list, .n_items = 2},
        {.kind = PLUMB_ARG_SLICE, .items = bounds, .n_items = 3},
        {.kind = PLUMB_ARG_ELLIPSIS},
        {.kind = PLUMB_ARG_FLOAT, .number = 0.1},
        {.kind = PLUMB_ARG_FLOAT, .number = -INFINITY},
        {.kind = PLUMB_ARG_FLOAT, .number = NAN},
        {.kind = PLUMB_ARG_TEXT, .text = "it's\t\"ä\""},
        {.kind = PLUMB_ARG_DTYPE, .dtype = PLUMB_F16},
        {.kind = PLUMB_ARG_DEVICE, .text = "npu:0"},
        {.kind = PLUMB_ARG_OTHER},
        {.kind = PLUMB_ARG_OTHER, .text = "-123456789012345678901"},
        {.kind = PLUMB_ARG_OTHER, .text = "ProcessGroup"},
    };
    const struct plumb_kwarg kwargs[] = {{"out", {.kind = PLUMB_ARG_TENSOR, .tensor = &x}}};
    const struct plumb_tensor *const grads[] = {NULL, &g};
    const struct plumb_call call = {.prefix = "Torch",
                                    .name = "foo",
                                    .args = args,
                                    .n_args = sizeof args / sizeof *args,
                                    .kwargs = kwargs,
                                    .n_kwargs = 1,
                                    .grads = grads,
                                    .n_grads = 2};
    struct message_call message;
    assert_int_equal(message_put_call(&message, &call, true, 1000, NULL), PLUMB_OK);
    assert_string_equal(
        message.text.data,
        "{\"raise\":true,\"prefix\":\"Torch\",\"name\":\"foo\",\"args\":["
        "{\"tensor\":{\"dtype\":\"float32\",\"at\":0,\"grad\":true,\"shape\":[2,3]}},"
        "[{\"tensor\":{\"dtype\":\"bfloat16\",\"at\":64,\"grad\":false,\"shape\":[0]}},true],"
        "{\"slice\":[-1,null,null]},{\"ellipsis\":true},1.0000000000000001e-01,-Infinity,NaN,"
        "\"it's\\t\\\"ä\\\"\",{\"dtype\":\"float16\"},{\"device\":\"npu:0\"},{\"other\":\"\"},"
        "{\"integer\":\"-123456789012345678901\"},{\"other\":\"ProcessGroup\"}],"
        "\"grads\":[null,{\"dtype\":\"float32\",\"at\":64,\"grad\":false,\"shape\":[]}],"
        "\"kwargs\":{\"out\":{\"tensor\":{\"dtype\":\"float32\",\"at\":128,\"grad\":false,"
        "\"shape\":[2,3]}}},\"free\":192,\"limit\":442,\"memory\":1000}");
    assert_int_equal(message.n_leaves, 3);
    assert_int_equal(message.arg_leaves, 2);
    float memory[48] = {0};
    assert_int_equal(message.bytes, sizeof memory);
    message_put_tensors(&message, memory);
    assert_memory_equal(memory, data, sizeof data);
    assert_float_equal(memory[16], 1, 0);
    assert_memory_equal(memory + 32, data, sizeof data);
    message_call_destroy(&message);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* A call of two tensors, one of them positional, and 256 bytes of memory. */
static enum plumb_code read_answer(const char *text, struct plumb_result *result,
                                   struct plumb_error *err)
{
    static const float memory[64] = {[16] = 1, [17] = 2, [63] = 3};
    const struct message_call call = {.n_leaves = 2, .arg_leaves = 1};
    return message_get_result(text, strlen(text), &call, memory, sizeof memory, result, err);
}

#define GRADS ",\"grads\":[null,null],\"arg_grads\":1,\"tuple\":true}"
#define TENSOR(dtype, shape, at)                                                                   \
    "{\"outputs\":[{\"tensor\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"at\":" at "}}"       \
    "]" GRADS

static void test_results(void **state)
{
    (void)state;
    struct plumb_result result;
    assert_int_equal(
        read_answer("{\"new\":[{}],\"outputs\":[{\"tensor\":{\"dtype\":\"float32\",\"more\":{},"
                    "\"shape\":[2,1],\"at\":64}},null,true,-7,{\"float\":NaN},{\"float\":0.5},"
                    "\"a\\u00e4\",{\"other\":\"set\"},"
                    "{\"tensor\":{\"dtype\":\"int64\",\"shape\":[3,0],\"at\":99999}}],"
                    "\"grads\":[{\"tensor\":{\"dtype\":\"float32\",\"shape\":[],\"at\":252}},null],"
                    "\"arg_grads\":1,\"tuple\":true,\"note\":\"a\\nformula\",\"written\":[null,"
                    "{\"tensor\":{\"dtype\":\"float32\",\"shape\":[1],\"at\":252}}]}",
                    &result, NULL),
        PLUMB_OK);
    assert_int_equal(result.n_outputs, 9);
    assert_true(result.tuple);
    const struct plumb_arg *out = result.outputs;
    assert_int_equal(out[0].kind, PLUMB_ARG_TENSOR);
    assert_int_equal(out[0].tensor->rank, 2);
    assert_memory_equal(out[0].tensor->data, ((float[]){1, 2}), 8);
    assert_int_equal(out[1].kind, PLUMB_ARG_NONE);
    assert_int_equal(out[2].kind, PLUMB_ARG_BOOL);
    assert_int_equal(out[3].integer, -7);
    assert_true(out[4].kind == PLUMB_ARG_FLOAT && isnan(out[4].number));
    assert_float_equal(out[5].number, 0.5, 0);
    assert_string_equal(out[6].text, "aä");
    assert_int_equal(out[7].kind, PLUMB_ARG_OTHER);
    assert_int_equal(out[8].tensor->count, 0);
    assert_int_equal(result.n_grads, 2);
    assert_int_equal(result.n_arg_grads, 1);
    assert_float_equal(*(const float *)result.grads[0].tensor->data, 3, 0);
    assert_int_equal(result.written[0].kind, PLUMB_ARG_NONE);
    assert_float_equal(*(const float *)result.written[1].tensor->data, 3, 0);
    assert_string_equal(result.note, "a formula");
    plumb_result_destroy(&result);
}

static void test_lies(void **state)
{
    (void)state;
    static const char *const lies[] = {
        "",
        "null",
        "[]",
        "{",
        "{}",
        "{} {}",
        "{\"outputs\":[]}",
        "{\"outputs\":{}" GRADS,
        "{\"outputs\":[],\"written\":[null]" GRADS,
        "{\"outputs\":[],\"written\":[null,7]" GRADS,
        "{\"outputs\":[],\"written\":{}" GRADS,
        "{\"outputs\":[],\"note\":7" GRADS,
        "{\"outputs\":[[]]" GRADS,
        "{\"outputs\":[{}]" GRADS,
        "{\"outputs\":[{\"float\":1,\"other\":2}]" GRADS,
        "{\"outputs\":[{\"float\":\"1\"}]" GRADS,
        "{\"outputs\":[1e5]" GRADS,
        "{\"outputs\":[9223372036854775808]" GRADS,
        "{\"outputs\":[\"\\ud800\"]" GRADS,
        "{\"outputs\":[{\"tensor\":7}]" GRADS,
        "{\"outputs\":[{\"tensor\":{}}]" GRADS,
        TENSOR("float33", "[1]", "0"),
        TENSOR("float32", "7", "0"),
        TENSOR("float32", "[-1]", "0"),
        TENSOR("float32", "[1.5]", "0"),
        TENSOR("float32", "[\"1\"]", "0"),
        TENSOR("float32", "[4611686018427387904,4]", "0"),
        TENSOR("float32", "[1]", "-64"),
        TENSOR("float32", "[1]", "253"),
        TENSOR("float32", "[65]", "0"),
        TENSOR("float32", "[33]", "128"),
        TENSOR("float32", "[1]", "18446744073709551552"),
        TENSOR("float32", "[1]", "9223372036854775807"),
        TENSOR("float32",
               "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
               "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
               "0"),
        /* the same bytes more than once */
        "{\"outputs\":[{\"tensor\":{\"dtype\":\"uint8\",\"shape\":[200],\"at\":0}},"
        "{\"tensor\":{\"dtype\":\"uint8\",\"shape\":[200],\"at\":0}}]" GRADS,
        "{\"outputs\":[],\"grads\":[null],\"arg_grads\":1}",
        "{\"outputs\":[],\"grads\":[null,null,null],\"arg_grads\":1}",
        "{\"outputs\":[],\"grads\":[null,null],\"arg_grads\":2}",
        "{\"outputs\":[],\"grads\":[null,null]}",
        "{\"outputs\":[],\"grads\":[null,7],\"arg_grads\":1}",
        "{\"outputs\":[],\"grads\":[null,null],\"arg_grads\":1,\"tuple\":7}",
        "{\"error\":7}",
        "{\"error\":\"x\",\"kind\":7}",
    };
    for (size_t k = 0; k < sizeof lies / sizeof *lies; k++) {
        struct plumb_result result;
        struct plumb_error err = {0};
        const enum plumb_code code = read_answer(lies[k], &result, &err);
        if (code != PLUMB_E_FORMAT)
            print_error("%s: %d %s\n", lies[k], code, err.message);
        assert_int_equal(code, PLUMB_E_FORMAT);
        assert_non_null(strstr(err.message, "makes no sense"));
        assert_null(result.memory);
    }
}

static void test_errors(void **state)
{
    (void)state;
    struct plumb_result result;
    struct plumb_error err = {0};
    assert_int_equal(read_answer("{\"error\":\"ValueError: a\\nb\\u001b[31m\",\"kind\":\"call\"}",
                                 &result, &err),
                     PLUMB_E_ARG);
    assert_string_equal(err.message, "ValueError: a b [31m");
    assert_int_equal(read_answer("{\"error\":\"too much\",\"kind\":\"memory\"}", &result, &err),
                     PLUMB_E_NOMEM);
    assert_string_equal(err.message, "out of memory: too much");
    assert_int_equal(read_answer("{\"error\":\"no\",\"kind\":\"refused\"}", &result, &err),
                     PLUMB_E_UNSUPPORTED);
}

static void test_ready(void **state)
{
    (void)state;
    static const struct {
        const char *text, *kind;
        enum plumb_code code;
    } answers[] = {
        {"{\"ready\":1,\"torch\":\"2.1\"}", "", PLUMB_OK},
        {"{\"ready\":2}", "", PLUMB_E_IO},
        {"{}", "", PLUMB_E_IO},
        {"{\"ready\":true}", "", PLUMB_E_FORMAT},
        {"nonsense", "", PLUMB_E_FORMAT},
        {"{\"error\":\"no\",\"kind\":\"torch\"}", "torch", PLUMB_E_IO},
        {"{\"error\":\"no\",\"kind\":\"a kind that is too long\"}", "a kind that is ", PLUMB_E_IO},
    };
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        char kind[16];
        assert_int_equal(message_get_ready(answers[k].text, strlen(answers[k].text), kind, NULL),
                         answers[k].code);
        assert_string_equal(kind, answers[k].kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_setup),   cmocka_unit_test(test_every_kind_of_argument),
        cmocka_unit_test(test_results), cmocka_unit_test(test_lies),
        cmocka_unit_test(test_errors),  cmocka_unit_test(test_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
