#define _GNU_SOURCE
#include "dump/call.h"

#include <math.h>
#include <pthread.h>
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

#define HEAD "{\"task\":\"statistics\",\"framework\":\"pytorch\",\"dump_data_dir\":null,\"data\":{"
#define TAIL "}}"
#define TENSOR(rest) "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\"," rest "}"

static struct case_file *open_text(const char *text)
{
    struct case_file *file;
    struct plumb_error err = {0};
    if (case_file_parse(text, strlen(text), "some/where/dump.json", &file, &err))
        fail_msg("%s", err.message);
    return file;
}

static void refuse(const char *text, enum plumb_code code, uint64_t offset, const char *message)
{
    struct case_file *file;
    struct plumb_error err = {0};
    assert_int_equal(case_file_parse(text, strlen(text), "some/where/dump.json", &file, &err),
                     code);
    assert_null(file);
    assert_string_equal(err.file, "some/where/dump.json");
    assert_int_equal(err.offset, offset);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" does not say \"%s\"", err.message, message);
}

/* A file with one call, which is parsed; close it with done. */
struct one {
    struct case_file *file;
    struct arena arena;
    struct check_case call;
    struct plumb_error err;
    enum plumb_code code;
    char *text;
};

static struct one parse_entry(const char *entry)
{
    struct one one = {0};
    assert_true(asprintf(&one.text, HEAD "\"Torch.add.0.forward\":%s" TAIL, entry) > 0);
    one.file = open_text(one.text);
    assert_int_equal(case_count(one.file), 1);
    one.code = case_parse(one.file, 0, &one.arena, &one.call, &one.err);
    return one;
}

/* The same with these arguments; the call must be good. */
static struct one parse_args(const char *args)
{
    char *entry;
    assert_true(asprintf(&entry, "{\"input_args\":%s,\"input_kwargs\":{}}", args) > 0);
    struct one one = parse_entry(entry);
    free(entry);
    if (one.code)
        fail_msg("%s", one.err.message);
    return one;
}

static void done(struct one *one)
{
    case_file_close(one->file);
    arena_free(&one->arena);
    free(one->text);
}

static void refuse_args(const char *args, const char *message)
{
    char *entry;
    assert_true(asprintf(&entry, "{\"input_args\":%s}", args) > 0);
    struct one one = parse_entry(entry);
    assert_int_equal(one.code, PLUMB_E_FORMAT);
    if (!strstr(one.err.message, message))
        fail_msg("\"%s\" does not say \"%s\"", one.err.message, message);
    assert_string_equal(one.err.file, "some/where/dump.json");
    assert_true(one.err.offset >= strlen(HEAD) && one.err.offset < strlen(one.text));
    free(entry);
    done(&one);
}

static void test_places(void **state)
{
    (void)state;
    const char *text = HEAD "\"Torch.a.0.backward\": {\"input\":[]}, \"Torch.b.0.forward\":{},"
                            "\"Module.conv.Conv2d.forward.0\":{}, \"net.fc.parameters_grad\":{},"
                            "\"Torch.a.0.forward\": {\"output\":[]},\"Torch.c.0.backward\":{}" TAIL;
    struct case_file *file = open_text(text);
    assert_int_equal(case_count(file), 2); /* c has no forward */
    assert_string_equal(case_place(file, 0)->name, "Torch.b.0");
    assert_int_equal(case_place(file, 0)->backward_size, 0);
    const struct case_place *a = case_place(file, 1);
    assert_string_equal(a->name, "Torch.a.0");
    assert_memory_equal(text + a->forward, "{\"output\":[]}", a->forward_size);
    assert_int_equal(a->forward_size, strlen("{\"output\":[]}"));
    assert_memory_equal(text + a->backward, "{\"input\":[]}", a->backward_size);
    assert_int_equal(a->backward_size, strlen("{\"input\":[]}"));
    assert_null(case_data_dir(file));
    case_file_close(file);
}

/* A dump of operators: their names are numbers, and "op" says what was called. */
static void test_operators(void **state)
{
    (void)state;
    static const struct {
        const char *call, *prefix, *api;
    } wanted[] = {{"Aten.add.0", "Aten", "add"},
                  {"Aten.relu_.0", "Aten", "relu_"},
                  {"torchvision.nms.0", "torchvision", "nms"},
                  {"00003-aten", "00003-aten", ""},
                  {"00004-aten", "00004-aten", ""}};
    struct case_file *file = open_text(
        "{\"level\": \"aten\", \"dump_data_dir\": \"x\", \"framework\": \"pytorch\", \"data\": {"
        "\"00000-aten\": {\"input_args\": [null], \"op\": \"aten.add.Tensor\"},"
        "\"00001-aten\": {\"op\": \"aten.relu_\"}, \"00002-aten\": {\"op\": "
        "\"torchvision.nms.default\"}, \"00003-aten\": {}, \"00004-aten\": {\"op\": \"add\"}}}");
    assert_string_equal(case_data_dir(file), "some/where/dump");
    assert_int_equal(case_count(file), 5);
    for (size_t i = 0; i < 5; i++) {
        struct arena arena = {0};
        struct check_case call;
        char name[16];
        snprintf(name, sizeof name, "%05zu-aten", i);
        assert_string_equal(case_place(file, i)->call, wanted[i].call);
        assert_int_equal(case_parse(file, i, &arena, &call, NULL), PLUMB_OK);
        assert_string_equal(call.name, name);
        assert_string_equal(call.prefix, wanted[i].prefix);
        assert_string_equal(call.api, wanted[i].api);
        assert_int_equal(call.n_args, i == 0);
        arena_free(&arena);
    }
    case_file_close(file);
}

/* As Python's dictionaries have it: the last value, in the place of the first. */
static void test_duplicate_keys(void **state)
{
    (void)state;
    const char *text =
        "{\"framework\":1,\"framework\":\"pt\",\"data\":{\"Torch.z.0.forward\":{}},\"data\":{"
        "\"Torch.a.0.forward\":{\"input_args\":[null]},\"Torch.b.0.forward\":{},"
        "\"Torch.a.0.forward\":{\"input_args\":[1],\"input_args\":[null,null],"
        "\"input_kwargs\":{\"x\":null,\"y\":null,\"x\":{\"type\":\"int\",\"value\":1,\"value\":2}}}"
        "}}";
    struct case_file *file = open_text(text);
    struct arena arena = {0};
    struct check_case call;
    assert_int_equal(case_count(file), 2);
    assert_string_equal(case_place(file, 0)->name, "Torch.a.0");
    assert_int_equal(case_parse(file, 0, &arena, &call, NULL), PLUMB_OK);
    assert_int_equal(call.n_args, 2);
    assert_int_equal(call.n_kwargs, 2);
    assert_string_equal(call.kwargs[0].name, "x");
    assert_int_equal(call.kwargs[0].value.value.integer, 2);
    assert_string_equal(call.kwargs[1].name, "y");
    arena_free(&arena);
    case_file_close(file);
}

static void test_refused_files(void **state)
{
    (void)state;
    refuse("", PLUMB_E_FORMAT, 0, "ends in the middle");
    refuse("[1]", PLUMB_E_FORMAT, 0, "not a dump.json");
    refuse("{\"framework\":\"pytorch\"}", PLUMB_E_FORMAT, PLUMB_NO_OFFSET, "\"data\"");
    refuse("{\"framework\":\"pytorch\",\"data\":null}", PLUMB_E_FORMAT, PLUMB_NO_OFFSET,
           "\"data\"");
    refuse("{\"framework\":\"pytorch\",\"data\":[1]}", PLUMB_E_FORMAT, 30, "must be an object");
    refuse("{\"data\":{}}", PLUMB_E_FORMAT, PLUMB_NO_OFFSET, "add \"framework\": \"pytorch\"");
    refuse("{\"framework\":null,\"data\":{}}", PLUMB_E_FORMAT, PLUMB_NO_OFFSET, "framework");
    refuse("{\"framework\":\"mindspore\",\"data\":{}}", PLUMB_E_UNSUPPORTED, PLUMB_NO_OFFSET,
           "MindSpore");
    refuse("{\"framework\":\"mindtorch\",\"data\":{}}", PLUMB_E_UNSUPPORTED, PLUMB_NO_OFFSET,
           "MindSpore");
    refuse("{\"framework\":\"jax\",\"data\":{}}", PLUMB_E_UNSUPPORTED, PLUMB_NO_OFFSET, "\"jax\"");
    refuse(HEAD "\"Torch.add.0\":{}" TAIL, PLUMB_E_FORMAT, strlen(HEAD), "\"Torch.add.0\"");
    refuse(HEAD "\"Torch.add.0.forward.0\":{}" TAIL, PLUMB_E_FORMAT, strlen(HEAD),
           "neither in .forward nor in .backward");
    refuse(HEAD "\"Torch.add.0.fastforward\":{}" TAIL, PLUMB_E_FORMAT, strlen(HEAD), "neither");
    /* Damage is found wherever it is. */
    refuse(HEAD "\"Torch.a.0.forward\":{\"input_args\":[1,]}" TAIL, PLUMB_E_FORMAT,
           strlen(HEAD "\"Torch.a.0.forward\":{\"input_args\":[1,"), "value");
    refuse(HEAD "\"Torch.a.0.forward\":{", PLUMB_E_FORMAT, strlen(HEAD "\"Torch.a.0.forward\":{"),
           "ends in the middle");
    refuse(HEAD TAIL "x", PLUMB_E_FORMAT, strlen(HEAD TAIL), "after the end");
}

static void test_long_name(void **state)
{
    (void)state;
    char name[5000], *text;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_true(asprintf(&text, HEAD "\"%s.forward\":{}" TAIL, name) > 0);
    refuse(text, PLUMB_E_FORMAT, strlen(HEAD), "longer than 4096 bytes");
    free(text);
}

static void test_empty(void **state)
{
    (void)state;
    struct case_file *file = open_text("{\"framework\":\"pt\",\"data\":{}}");
    assert_int_equal(case_count(file), 0);
    case_file_close(file);
}

static void test_data_dir(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool there;
    } cases[] = {
        {"null", false},     {"\"\"", false},         {"0", false},     {"0.0", false},
        {"[]", false},       {"{}", false},           {"false", false}, {"1", true},
        {"[0]", true},       {"\"elsewhere\"", true}, {"true", true},   {"NaN", true},
        {"{\"a\":1}", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200];
        struct case_file *file;
        snprintf(text, sizeof text, "{\"dump_data_dir\":%s,\"framework\":\"pytorch\",\"data\":{}}",
                 cases[i].value);
        file = open_text(text);
        if (cases[i].there)
            assert_string_equal(case_data_dir(file), "some/where/dump_tensor_data");
        else
            assert_null(case_data_dir(file));
        case_file_close(file);
        if (!cases[i].there)
            continue;
        assert_int_equal(case_file_parse(text, strlen(text), "dump.json", &file, NULL), PLUMB_OK);
        assert_string_equal(case_data_dir(file), "dump_tensor_data");
        case_file_close(file);
        assert_int_equal(case_file_parse(text, strlen(text), "/dump.json", &file, NULL), PLUMB_OK);
        assert_string_equal(case_data_dir(file), "/dump_tensor_data");
        case_file_close(file);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *key, *name, *prefix, *api;
    } cases[] = {
        {"Torch.matmul.1.forward", "Torch.matmul.1", "Torch", "matmul"},
        {"Torch.linalg.inv.0.forward", "Torch.linalg.inv.0", "Torch", "linalg.inv"},
        {"Torch.a.b.c.0.forward", "Torch.a.b.c.0", "Torch", "a.b.c"},
        {"Torch.0.forward", "Torch.0", "Torch", ""},
        {"forward", "", "", ""},
        {"Torch.\\u0061dd.0.forward", "Torch.add.0", "Torch", "add"},
        {"a\\u0000b.c.0.forward", "a\\u0000b.c.0", "a\\u0000b", "c"}, /* no C string: as written */
        {"a\\ud800.c.0.forward", "a\\ud800.c.0", "a\\ud800", "c"},
        {"Aten.log_sigmoid_forward.0.forward", "Aten.log_sigmoid_forward.0", "Aten",
         "log_sigmoid_forward"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300];
        struct arena arena = {0};
        struct check_case call;
        snprintf(text, sizeof text, HEAD "\"%s\":{}" TAIL, cases[i].key);
        struct case_file *file = open_text(text);
        assert_int_equal(case_parse(file, 0, &arena, &call, NULL), PLUMB_OK);
        assert_string_equal(call.name, cases[i].name);
        assert_string_equal(call.prefix, cases[i].prefix);
        assert_string_equal(call.api, cases[i].api);
        arena_free(&arena);
        case_file_close(file);
    }
}

static void test_tensor(void **state)
{
    (void)state;
    struct one one =
        parse_args("[" TENSOR("\"shape\":[2,0,5],\"Max\":1.5,\"Min\":-2,\"Mean\":0.1,\"Norm\":null,"
                              "\"requires_grad\":true,\"data_name\":\"a.pt\"") "]");
    assert_int_equal(one.call.n_args, 1);
    const struct case_arg *arg = one.call.args;
    assert_int_equal(arg->value.kind, PLUMB_ARG_TENSOR);
    assert_true(arg->value.requires_grad);
    assert_false(arg->bare);
    const struct case_tensor *tensor = arg->tensor;
    assert_int_equal(tensor->dtype, PLUMB_F32);
    assert_string_equal(tensor->dtype_name, "torch.float32");
    assert_int_equal(tensor->rank, 3);
    assert_int_equal(tensor->shape[0], 2);
    assert_int_equal(tensor->shape[1], 0);
    assert_int_equal(tensor->shape[2], 5);
    assert_true(tensor->requires_grad);
    assert_int_equal(tensor->max.kind, LIMIT_FLOAT);
    assert_true(tensor->max.number == 1.5);
    assert_int_equal(tensor->min.kind, LIMIT_INT);
    assert_int_equal(tensor->min.integer, -2);
    assert_true(tensor->min.number == -2);
    assert_int_equal(tensor->max_finite.kind, LIMIT_ABSENT);
    assert_string_equal(tensor->data_name, "a.pt");
    done(&one);

    /* Other words for the same, other order, unknown type. */
    one = parse_args("[{\"datapath\":\"b.npy\",\"data_name\":\"a.pt\",\"shape\":[],\"Max\":null,"
                     "\"dtype\":\"torch.quint9\",\"type\":\"torch.nn.parameter.Parameter\"},"
                     "{\"type\":\"torch.Tensor\",\"shape\":[1],\"dtype\":7}]");
    tensor = one.call.args[0].tensor;
    assert_non_null(tensor);
    assert_string_equal(tensor->data_name, "b.npy");
    assert_int_equal(tensor->rank, 0);
    assert_int_equal(tensor->dtype, PLUMB_DTYPE_COUNT);
    assert_string_equal(tensor->dtype_name, "torch.quint9");
    assert_int_equal(tensor->max.kind, LIMIT_NULL);
    assert_int_equal(tensor->min.kind, LIMIT_ABSENT);
    assert_false(tensor->requires_grad);
    assert_int_equal(one.call.args[1].tensor->dtype, PLUMB_DTYPE_COUNT);
    assert_string_equal(one.call.args[1].tensor->dtype_name, "");
    done(&one);
}

static void test_limits(void **state)
{
    (void)state;
    struct one one = parse_args("[" TENSOR(
        "\"shape\":[1],\"Max\":NaN,\"Min\":-Infinity,\"Max_except_inf_nan\":true,"
        "\"Min_except_inf_nan\":\"x\"") "," TENSOR("\"shape\":[1],\"Max\":18446744073709551615,"
                                                   "\"Min\":-9223372036854775809,"
                                                   "\"Max_except_inf_nan\":[1],\"Min_except_inf_"
                                                   "nan\":1e999") "]");
    const struct case_tensor *t = one.call.args[0].tensor;
    assert_int_equal(t->max.kind, LIMIT_FLOAT);
    assert_true(isnan(t->max.number));
    assert_int_equal(t->min.kind, LIMIT_FLOAT);
    assert_true(t->min.number == -INFINITY);
    assert_int_equal(t->max_finite.kind, LIMIT_BOOL);
    assert_int_equal(t->max_finite.integer, 1);
    assert_true(t->max_finite.number == 1);
    assert_int_equal(t->min_finite.kind, LIMIT_OTHER);
    t = one.call.args[1].tensor;
    assert_int_equal(t->max.kind, LIMIT_INT);
    assert_true(t->max.integer == INT64_MAX);
    assert_true(t->max.number == 0x1p64);
    assert_true(t->min.integer == INT64_MIN);
    assert_int_equal(t->max_finite.kind, LIMIT_OTHER);
    assert_int_equal(t->min_finite.kind, LIMIT_FLOAT);
    assert_true(t->min_finite.number == INFINITY);
    done(&one);
}

static void test_shapes(void **state)
{
    (void)state;
    refuse_args("[" TENSOR("\"shape\":[-1]") "]", "size -1");
    refuse_args("[" TENSOR("\"shape\":[2.5]") "]", "size 2.5");
    refuse_args("[" TENSOR("\"shape\":[1e3]") "]", "size 1e3");
    refuse_args("[" TENSOR("\"shape\":[NaN]") "]", "size NaN");
    refuse_args("[" TENSOR("\"shape\":[99999999999999999999]") "]", "size 99999999999999999999");
    refuse_args("[" TENSOR("\"shape\":[\"3\"]") "]", "no size");
    refuse_args("[" TENSOR("\"shape\":[[3]]") "]", "no size");
    refuse_args("[" TENSOR("\"shape\":[true]") "]", "no size");
    refuse_args("[" TENSOR("\"shape\":null") "]", "list of sizes");
    refuse_args("[" TENSOR("\"shape\":{}") "]", "list of sizes");
    refuse_args("[" TENSOR("\"Max\":1") "]", "without a shape");
    refuse_args("[" TENSOR("\"shape\":[4294967296,4294967296]") "]", "no memory");
    refuse_args("[" TENSOR("\"shape\":[9223372036854775807]") "]", "no memory");
    /* Nothing needs no memory. */
    struct one one = parse_args("[" TENSOR("\"shape\":[9223372036854775807,0,4294967296]") "]");
    assert_int_equal(one.call.args[0].tensor->rank, 3);
    done(&one);

    char shape[400] = "[" TENSOR("\"shape\":[1");
    char *end = strstr(shape, "}");
    for (int i = 1; i < PLUMB_MAX_RANK; i++)
        end = stpcpy(end, ",1");
    char *text;
    assert_true(asprintf(&text, "%s]}]", shape) > 0);
    one = parse_args(text);
    assert_int_equal(one.call.args[0].tensor->rank, PLUMB_MAX_RANK);
    done(&one);
    free(text);
    assert_true(asprintf(&text, "%s,1]}]", shape) > 0);
    refuse_args(text, "more than 64 dimensions");
    free(text);
}

static void test_values(void **state)
{
    (void)state;
    struct one one = parse_args(
        "[null,{\"type\":\"int\",\"value\":-3},{\"type\":\"float\",\"value\":2.5},"
        "{\"type\":\"float\",\"value\":2},{\"type\":\"bool\",\"value\":true},"
        "{\"type\":\"str\",\"value\":\"m\\u00e9an\"},{\"type\":\"float\",\"value\":-Infinity},"
        "{\"type\":\"int\",\"value\":99999999999999999999},{\"type\":\"int\"},"
        "{\"type\":\"int\",\"value\":null},{\"type\":\"set\",\"value\":{\"a\":1}}]");
    const struct case_arg *a = one.call.args;
    assert_int_equal(one.call.n_args, 11);
    assert_int_equal(a[0].value.kind, PLUMB_ARG_NONE);
    assert_false(a[0].bare);
    assert_int_equal(a[1].value.kind, PLUMB_ARG_INT);
    assert_int_equal(a[1].value.integer, -3);
    assert_int_equal(a[2].value.kind, PLUMB_ARG_FLOAT);
    assert_true(a[2].value.number == 2.5);
    assert_int_equal(a[3].value.kind, PLUMB_ARG_FLOAT); /* the type says so */
    assert_true(a[3].value.number == 2);
    assert_int_equal(a[4].value.kind, PLUMB_ARG_BOOL);
    assert_int_equal(a[4].value.integer, 1);
    assert_int_equal(a[5].value.kind, PLUMB_ARG_TEXT);
    assert_string_equal(a[5].value.text, "m\xc3\xa9"
                                         "an");
    assert_int_equal(a[6].value.kind, PLUMB_ARG_FLOAT);
    assert_true(a[6].value.number == -INFINITY);
    assert_int_equal(a[7].value.kind, PLUMB_ARG_OTHER);
    assert_string_equal(a[7].value.text, "99999999999999999999");
    assert_int_equal(a[8].value.kind, PLUMB_ARG_OTHER);
    assert_string_equal(a[8].value.text, "int");
    assert_int_equal(a[9].value.kind, PLUMB_ARG_NONE);
    assert_int_equal(a[10].value.kind, PLUMB_ARG_OTHER);
    done(&one);
}

static void test_special_types(void **state)
{
    (void)state;
    struct one one = parse_args(
        "[{\"type\":\"slice\",\"value\":[0,null,-2]},{\"type\":\"ellipsis\",\"value\":\"...\"},"
        "{\"type\":\"torch.Size\",\"value\":[2,3]},{\"type\":\"torch.dtype\",\"value\":\"torch."
        "bfloat16\"},{\"type\":\"torch.device\",\"value\":\"npu:0\"},"
        "{\"type\":\"torch.device\",\"value\":3},"
        "{\"type\":\"torch.memory_format\",\"format\":\"channels_last\"},"
        "{\"type\":\"float64\",\"value\":1},{\"type\":\"numpy.int64\",\"value\":4},"
        "{\"type\":\"numpy.ndarray\",\"dtype\":\"float32\",\"shape\":[-1]},"
        "{\"type\":\"torch.distributed.tensor.DTensor\",\"dtype\":\"torch.float32\",\"shape\":[2]},"
        "{\"type\":\"slice\",\"value\":[0,1]},{\"type\":\"slice\",\"value\":[0,1,\"x\"]},"
        "{\"type\":\"torch.dtype\",\"value\":\"torch.quint9\"},{\"type\":\"torch.Size\",\"value\":"
        "3},"
        "{\"type\":\"torch.ProcessGroup\",\"group_ranks\":[0,1]},{\"type\":\"torch.device\"}]");
    const struct case_arg *a = one.call.args;
    assert_int_equal(one.call.n_args, 17);
    assert_int_equal(a[0].value.kind, PLUMB_ARG_SLICE);
    assert_int_equal(a[0].n_items, 3);
    assert_int_equal(a[0].items[1].value.kind, PLUMB_ARG_NONE);
    assert_int_equal(a[0].items[2].value.integer, -2);
    assert_int_equal(a[1].value.kind, PLUMB_ARG_ELLIPSIS);
    assert_int_equal(a[2].value.kind, PLUMB_ARG_LIST);
    assert_int_equal(a[2].items[1].value.integer, 3);
    assert_false(a[2].items[1].bare);
    assert_int_equal(a[3].value.kind, PLUMB_ARG_DTYPE);
    assert_int_equal(a[3].value.dtype, PLUMB_BF16);
    assert_int_equal(a[4].value.kind, PLUMB_ARG_DEVICE);
    assert_string_equal(a[4].value.text, "npu:0");
    assert_int_equal(a[5].value.kind, PLUMB_ARG_DEVICE);
    assert_string_equal(a[5].value.text, "3");
    assert_int_equal(a[6].value.kind, PLUMB_ARG_NONE);
    assert_int_equal(a[7].value.kind, PLUMB_ARG_FLOAT);
    assert_true(a[7].numpy);
    assert_int_equal(a[8].value.kind, PLUMB_ARG_INT);
    assert_true(a[8].numpy);
    assert_int_equal(a[9].value.kind, PLUMB_ARG_OTHER);
    assert_true(a[9].numpy);
    assert_string_equal(a[9].value.text, "numpy.ndarray");
    assert_int_equal(a[10].value.kind, PLUMB_ARG_OTHER);
    assert_string_equal(a[10].value.text, "torch.distributed.tensor.DTensor");
    for (size_t i = 11; i < 17; i++)
        assert_int_equal(a[i].value.kind, PLUMB_ARG_OTHER);
    assert_string_equal(a[13].value.text, "torch.quint9");
    assert_string_equal(a[15].value.text, "torch.ProcessGroup");
    done(&one);
}

static void test_structures(void **state)
{
    (void)state;
    struct one one = parse_args("[{},[[" TENSOR(
        "\"shape\":[1]") ",null],3],"
                         "{\"a\":" TENSOR("\"shape\":[1]") ",\"b\":{\"type\":7}},\"x\",true,"
                                                           "[1,2,3,4,5,6,7,8,9]]");
    const struct case_arg *a = one.call.args;
    assert_int_equal(one.call.n_args, 6);
    assert_int_equal(a[0].value.kind, PLUMB_ARG_OTHER);
    assert_false(a[0].named_tuple_or_dict);
    assert_int_equal(a[0].n_items, 0);
    assert_int_equal(a[1].value.kind, PLUMB_ARG_LIST);
    assert_int_equal(a[1].n_items, 2);
    assert_non_null(a[1].items[0].items[0].tensor);
    assert_true(a[1].items[1].bare);
    assert_int_equal(a[1].items[1].value.integer, 3);
    assert_int_equal(a[2].value.kind, PLUMB_ARG_OTHER);
    assert_true(a[2].named_tuple_or_dict);
    assert_int_equal(a[2].n_items, 2);
    assert_non_null(a[2].items[0].tensor);
    assert_true(a[2].items[1].named_tuple_or_dict);
    assert_true(a[3].bare);
    assert_int_equal(a[3].value.kind, PLUMB_ARG_TEXT);
    assert_true(a[4].bare);
    assert_int_equal(a[4].value.kind, PLUMB_ARG_BOOL);
    assert_int_equal(a[5].n_items, 9);
    for (int i = 0; i < 9; i++)
        assert_int_equal(a[5].items[i].value.integer, i + 1);
    done(&one);
}

static void test_entries(void **state)
{
    (void)state;
    struct one one = parse_entry("{}");
    assert_int_equal(one.code, PLUMB_OK);
    assert_int_equal(one.call.n_args + one.call.n_kwargs, 0);
    assert_false(one.call.has_backward);
    assert_null(one.call.output_dtype);
    done(&one);

    one = parse_entry(
        "{\"input_args\":null,\"input_kwargs\":null,\"output\":[" TENSOR("\"shape\":[-1]") ",7]}");
    assert_int_equal(one.code, PLUMB_OK); /* the output's shape is not used */
    assert_int_equal(one.call.n_args + one.call.n_kwargs, 0);
    assert_string_equal(one.call.output_dtype, "torch.float32");
    assert_int_equal(one.call.n_output_dtypes, 2);
    assert_null(one.call.output_dtypes[1]);
    done(&one);

    /* behind what holds several outputs nobody knows which is which */
    static const char *const uneven[] = {"[" TENSOR("\"shape\":[]") "]",
                                         "{\"a\":" TENSOR("\"shape\":[]") "}"};
    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++) {
        char entry[400];
        snprintf(entry, sizeof entry, "{\"output\":[null,%s,%s,%s],\"input_args\":[null]}",
                 TENSOR("\"shape\":[]"), uneven[i], TENSOR("\"shape\":[]"));
        one = parse_entry(entry);
        assert_int_equal(one.code, PLUMB_OK);
        assert_int_equal(one.call.n_args, 1);
        assert_null(one.call.output_dtype);
        assert_int_equal(one.call.n_output_dtypes, 2);
        assert_string_equal(one.call.output_dtypes[1], "torch.float32");
        done(&one);
    }

    static const char *const without[] = {"[]",
                                          "null",
                                          "[null]",
                                          "[[" TENSOR("\"shape\":[]") "]]",
                                          "[{\"type\":\"int\",\"value\":3}]",
                                          "[{}]",
                                          "7"};
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        char entry[300];
        snprintf(entry, sizeof entry, "{\"output\":%s,\"input_args\":[null]}", without[i]);
        one = parse_entry(entry);
        assert_int_equal(one.code, PLUMB_OK);
        assert_null(one.call.output_dtype);
        assert_int_equal(one.call.n_args, 1);
        done(&one);
    }

    static const char *const wrong[] = {"null",
                                        "[]",
                                        "7",
                                        "{\"input_args\":{}}",
                                        "{\"input_args\":7}",
                                        "{\"input_kwargs\":[]}",
                                        "{\"input_kwargs\":\"x\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        one = parse_entry(wrong[i]);
        assert_int_equal(one.code, PLUMB_E_FORMAT);
        assert_non_null(strstr(one.err.message, "must be"));
        done(&one);
    }
}

static void test_backward(void **state)
{
    (void)state;
    struct case_file *file = open_text(
        HEAD "\"Torch.a.0.forward\":{\"input_kwargs\":{\"dim\":{\"type\":\"int\",\"value\":-1},"
             "\"out\":" TENSOR(
                 "\"shape\":[3]") "}},\"Torch.b.0.forward\":{},"
                                  "\"Torch.c.0.forward\":{},"
                                  "\"Torch.a.0.backward\":{\"output\":[null],\"input\":[" TENSOR(
                                      "\"shape\":[2]") ",null]},"
                                                       "\"Torch.b.0.backward\":{},\"Torch.c.0."
                                                       "backward\":null" TAIL);
    struct arena arena = {0};
    struct check_case call;
    struct plumb_error err;
    assert_int_equal(case_parse(file, 0, &arena, &call, &err), PLUMB_OK);
    assert_true(call.has_backward);
    assert_int_equal(call.n_grads, 2);
    assert_int_equal(call.grads[0].tensor->shape[0], 2);
    assert_int_equal(call.grads[1].value.kind, PLUMB_ARG_NONE);
    assert_int_equal(call.n_kwargs, 2);
    assert_string_equal(call.kwargs[0].name, "dim");
    assert_int_equal(call.kwargs[0].value.value.integer, -1);
    assert_non_null(call.kwargs[1].value.tensor);
    assert_int_equal(case_parse(file, 1, &arena, &call, &err), PLUMB_OK);
    assert_int_equal(call.index, 1);
    assert_true(call.has_backward);
    assert_int_equal(call.n_grads, 0);
    assert_int_equal(case_parse(file, 2, &arena, &call, &err), PLUMB_E_FORMAT);
    assert_int_equal(err.offset, case_place(file, 2)->backward);
    arena_free(&arena);
    case_file_close(file);
}

static char *nested(const char *open, const char *inside, const char *close, int depth)
{
    char *text = calloc(1, strlen(inside) + (strlen(open) + strlen(close)) * (size_t)depth + 1);
    char *p = text;
    assert_non_null(text);
    for (int i = 0; i < depth; i++)
        p = stpcpy(p, open);
    p = stpcpy(p, inside);
    for (int i = 0; i < depth; i++)
        p = stpcpy(p, close);
    return text;
}

static void test_nesting(void **state)
{
    (void)state;
    static const struct {
        const char *open, *close;
        int good; /* levels */
    } kinds[] = {{"[", "]", 64}, {"[{\"a\":", "}]", 32}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *text = nested(kinds[i].open, "null", kinds[i].close, kinds[i].good);
        struct one one = parse_args(text);
        done(&one);
        free(text);
        text = nested(kinds[i].open, "null", kinds[i].close, kinds[i].good + 1);
        refuse_args(text, "nested deeper than 64");
        free(text);
    }
    char *list = nested("[", "null", "]", 64), *value;
    assert_true(asprintf(&value, "[{\"type\":\"list\",\"value\":%s}]", list) > 0);
    refuse_args(value, "nested deeper than 64");
    free(value);
    free(list);
    /* Beyond what JSON itself may have, the file is refused. */
    char *text = nested("[", "", "]", 600), *whole;
    assert_true(asprintf(&whole, HEAD "\"Torch.a.0.forward\":%s" TAIL, text) > 0);
    refuse(whole, PLUMB_E_FORMAT, strlen(HEAD "\"Torch.a.0.forward\":") + 510, "nested too deeply");
    free(whole);
    free(text);
}

static void test_too_many(void **state)
{
    (void)state;
    size_t count = 300000;
    char *text = malloc(count * 2 + 3), *p = text;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        p = stpcpy(p, i ? ",0" : "[0");
    stpcpy(p, "]");
    refuse_args(text, "more than 262144 arguments");
    free(text);

    /* Keyword arguments, all different and all the same. */
    char *entry = malloc(400000 * 16), *q = stpcpy(entry, "{\"input_kwargs\":{\"x\":0");
    assert_non_null(entry);
    for (int i = 0; i < 2000; i++)
        q += sprintf(q, ",\"k%d\":0", i);
    stpcpy(q, "}}");
    struct one one = parse_entry(entry);
    assert_int_equal(one.code, PLUMB_E_FORMAT);
    assert_non_null(strstr(one.err.message, "more than 1024 keyword arguments"));
    done(&one);
    q = strstr(entry, ",\"k0\"");
    for (int i = 0; i < 300000; i++)
        q = stpcpy(q, ",\"x\":0");
    stpcpy(q, "}}");
    one = parse_entry(entry);
    assert_int_equal(one.code, PLUMB_E_FORMAT);
    assert_non_null(strstr(one.err.message, "more than 262144 arguments"));
    done(&one);
    free(entry);
}

static void test_file(void **state)
{
    (void)state;
    const char *text = HEAD "\"Torch.a.0.forward\":{\"input_args\":[null]}" TAIL;
    const char *path = scratch_write(&scratch, "step0/dump.json", text, strlen(text));
    struct case_file *file;
    struct plumb_error err;
    assert_int_equal(case_file_open(path, &file, &err), PLUMB_OK);
    assert_int_equal(case_count(file), 1);

    /* Cut short while it is open. */
    assert_int_equal(truncate(path, 0), 0);
    struct arena arena = {0};
    struct check_case call;
    assert_int_equal(case_parse(file, 0, &arena, &call, &err), PLUMB_E_IO);
    assert_non_null(strstr(err.message, "shorter"));
    arena_free(&arena);
    case_file_close(file);

    assert_int_equal(case_file_open(path, &file, &err), PLUMB_E_FORMAT);
    assert_null(file);
    assert_string_equal(err.file, path);
    assert_int_equal(case_file_open(scratch_path(&scratch, "nothing"), &file, &err), PLUMB_E_IO);
    assert_int_equal(case_file_open(scratch.folder, &file, &err), PLUMB_E_IO);
    case_file_close(NULL);
}

enum { CALLS = 400, THREADS = 4 };

static void *parse_all(void *from)
{
    const struct case_file *file = from;
    for (size_t i = 0; i < case_count(file); i++) {
        struct arena arena = {0};
        struct check_case call;
        bool good = !case_parse(file, i, &arena, &call, NULL) && call.n_args == i % 7 &&
                    call.n_grads == 1 && call.grads[0].tensor->shape[0] == (int64_t)i;
        for (size_t k = 0; good && k < call.n_args; k++)
            good = call.args[k].value.integer == (int64_t)(i * 10 + k);
        arena_free(&arena);
        if (!good)
            return from;
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    char *text = malloc(CALLS * 1000), *p = stpcpy(text, HEAD);
    assert_non_null(text);
    for (int i = 0; i < CALLS; i++) {
        p += sprintf(p, "%s\"Torch.a.%d.forward\":{\"input_args\":[", i ? "," : "", i);
        for (int k = 0; k < i % 7; k++)
            p += sprintf(p, "%s{\"type\":\"int\",\"value\":%d}", k ? "," : "", i * 10 + k);
        p += sprintf(p, "]},\"Torch.a.%d.backward\":{\"input\":[" TENSOR("\"shape\":[%d]") "]}", i,
                     i);
    }
    stpcpy(p, TAIL);
    struct case_file *file;
    assert_int_equal(
        case_file_open(scratch_write(&scratch, "threads.json", text, strlen(text)), &file, NULL),
        PLUMB_OK);
    assert_int_equal(case_count(file), CALLS);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, parse_all, file), 0);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
    case_file_close(file);
    free(text);
}

/* Far more entries than anything grows to at first, and no tree of them. */
static void test_large(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    char *text = malloc((size_t)MANY * 100), *p = stpcpy(text, HEAD);
    assert_non_null(text);
    for (int i = 0; i < MANY; i++)
        p += sprintf(p, "%s\n \"Tensor.add.%d.forward\": {\"input_args\": [%d]}", i ? "," : "", i,
                     i);
    stpcpy(p, TAIL);
    struct case_file *file = open_text(text);
    assert_int_equal(case_count(file), MANY);
    for (size_t i = 0; i < MANY; i += 9973) {
        struct arena arena = {0};
        struct check_case call;
        assert_int_equal(case_parse(file, i, &arena, &call, NULL), PLUMB_OK);
        assert_int_equal(call.args[0].value.integer, i);
        arena_free(&arena);
    }
    case_file_close(file);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: the guard against files that shrink is installed once, and cmocka takes its signal
         * away before every test. */
        cmocka_unit_test(test_file),          cmocka_unit_test(test_places),
        cmocka_unit_test(test_operators),     cmocka_unit_test(test_duplicate_keys),
        cmocka_unit_test(test_refused_files), cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_empty),         cmocka_unit_test(test_data_dir),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_values),        cmocka_unit_test(test_special_types),
        cmocka_unit_test(test_structures),    cmocka_unit_test(test_entries),
        cmocka_unit_test(test_backward),      cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_too_many),      cmocka_unit_test(test_threads),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
