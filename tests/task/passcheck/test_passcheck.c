#define _GNU_SOURCE
#include "plumb/passcheck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

/* A graph from pieces of its file. */
#define GRAPH(leaves, nodes, outputs)                                                              \
    "{\"plumb_graph\":1," leaves ",\"nodes\":[" nodes "],\"outputs\":[" outputs "]}"

#define X "\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2,3],\"value\":[1,2,3,4,5,6]}}"
#define XW X ",\"parameters\":{\"w\":{\"dtype\":\"float32\",\"shape\":[3],\"value\":[1,2,3]}}"
#define MUL "{\"name\":\"y\",\"op\":\"mul\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"w\"}]}"
#define Y "{\"ref\":\"y\"}"

static struct plumb_passcheck_graph *graph_of(const char *text)
{
    struct plumb_passcheck_graph *graph;
    struct plumb_error err = {0};
    if (plumb_passcheck_graph_parse(&graph, text, strlen(text), "g.json", &err))
        fail_msg("%s: at %llu: %s", text, (unsigned long long)err.offset, err.message);
    return graph;
}

static void refuse(const char *text, enum plumb_code code, const char *at, const char *message)
{
    struct plumb_passcheck_graph *graph;
    struct plumb_error err = {0};
    const char *place = at ? strstr(text, at) : NULL;
    assert_int_equal(plumb_passcheck_graph_parse(&graph, text, strlen(text), "g.json", &err), code);
    assert_null(graph);
    if (!strstr(err.message, message) || strcmp(err.file, "g.json") != 0 ||
        (place && err.offset != (uint64_t)(place - text)))
        fail_msg("%s: %s at %llu: %s", text, err.file, (unsigned long long)err.offset, err.message);
}

struct outcome {
    enum plumb_code code;
    size_t compared, failed;
    char first_node[64], message[512];
    uint64_t offset;
};

static struct outcome check_with(const char *before, const char *after,
                                 const struct plumb_passcheck_options *options)
{
    struct plumb_passcheck_graph *a = graph_of(before), *b = graph_of(after);
    struct plumb_passcheck check;
    struct plumb_error err = {0};
    struct outcome out = {.code = plumb_passcheck_run(a, b, options, &check, &err)};
    out.compared = check.compared;
    out.failed = check.failed;
    out.offset = err.offset;
    snprintf(out.message, sizeof out.message, "%s",
             out.code        ? err.message
             : check.closing ? check.closing
                             : "");
    snprintf(out.first_node, sizeof out.first_node, "%s", check.first_node ? check.first_node : "");
    if (!out.code) {
        struct plumb_table *table = plumb_passcheck_table(&check, -1, true);
        assert_non_null(table);
        assert_int_equal(plumb_table_rows(table), check.compared);
        plumb_table_free(table);
    }
    plumb_passcheck_destroy(&check);
    plumb_passcheck_graph_free(a);
    plumb_passcheck_graph_free(b);
    return out;
}

static struct outcome check(const char *before, const char *after)
{
    struct plumb_passcheck_options options;
    plumb_passcheck_options_init(&options);
    options.iterations = 2;
    options.kinds |= PLUMB_PASSCHECK_NODE;
    return check_with(before, after, &options);
}

static void equal(const char *before, const char *after)
{
    const struct outcome out = check(before, after);
    if (out.code || out.failed || !out.compared)
        fail_msg("%s\n%s\n%s", before, after, out.message);
}

static void test_refused_files(void **state)
{
    (void)state;
    refuse("", PLUMB_E_FORMAT, NULL, "ends");
    refuse("[]", PLUMB_E_FORMAT, "[]", "one object");
    refuse("{\"nodes\":[],\"outputs\":[]}", PLUMB_E_FORMAT, NULL, "plumb_graph");
    refuse("{\"plumb_graph\":2}", PLUMB_E_FORMAT, "2}", "must be 1");
    refuse(GRAPH(X, "", ""), PLUMB_E_FORMAT, NULL, "no \"outputs\"");
    refuse(GRAPH(XW, MUL, "{\"ref\":\"z\"}"), PLUMB_E_FORMAT, "{\"ref\":\"z\"", "named 'z'");
    refuse(GRAPH(XW, MUL "," MUL, Y), PLUMB_E_FORMAT, NULL, "'y' is given twice");
    refuse(GRAPH(XW, "{\"name\":\"x\",\"op\":\"relu\"}", Y), PLUMB_E_FORMAT, "{\"name\":\"x\"",
           "'x' is given twice");
    refuse(GRAPH(XW, "{\"name\":\"y\",\"op\":\"no_such\"}", Y), PLUMB_E_UNSUPPORTED, "\"no_such\"",
           "no operator 'no_such'");
    refuse(GRAPH(XW, "{\"name\":\"y\"}", Y), PLUMB_E_FORMAT, "{\"name\":\"y\"", "without \"op\"");
    refuse(GRAPH(XW, "{\"name\":\"y\",\"op\":\"relu\",\"argz\":[]}", Y), PLUMB_E_FORMAT, "\"argz\"",
           "not \"argz\"");
    refuse(GRAPH(XW, "{\"name\":\"y\",\"op\":\"relu\",\"args\":[{\"a\":1}]}", Y), PLUMB_E_FORMAT,
           NULL, "{\"ref\": NAME}");
    refuse(GRAPH(XW,
                 "{\"name\":\"y\",\"op\":\"relu\",\"args\":[{\"type\":\"torch.Tensor\","
                 "\"shape\":[1]}]}",
                 Y),
           PLUMB_E_FORMAT, NULL, "by its name");
    refuse(GRAPH(XW,
                 "{\"name\":\"a\",\"op\":\"relu\",\"args\":[{\"ref\":\"b\"}]},"
                 "{\"name\":\"b\",\"op\":\"relu\",\"args\":[[{\"ref\":\"c\"}]]},"
                 "{\"name\":\"c\",\"op\":\"relu\",\"args\":[{\"ref\":\"a\"}]}",
                 "{\"ref\":\"a\"}"),
           PLUMB_E_FORMAT, "{\"name\":\"a\"", "'a' needs 'b' needs 'c' needs 'a'");
}

static void test_refused_tensors(void **state)
{
    (void)state;
#define LEAF(text) GRAPH("\"inputs\":{\"x\":{" text "}}", "", "{\"ref\":\"x\"}")
    refuse(LEAF("\"dtype\":\"float33\",\"shape\":[]"), PLUMB_E_FORMAT, "\"float33\"", "float33");
    refuse(LEAF("\"dtype\":\"complex64\",\"shape\":[]"), PLUMB_E_FORMAT, "\"complex64\"",
           "do not compute");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[-1]"), PLUMB_E_FORMAT, "-1", "whole number");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[1.5]"), PLUMB_E_FORMAT, "1.5", "whole number");
    refuse(LEAF("\"dtype\":\"float32\""), PLUMB_E_FORMAT, NULL, "needs a shape");
    refuse(LEAF("\"shape\":[2]"), PLUMB_E_FORMAT, NULL, "needs a dtype");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[2],\"uniform\":[2,1]"), PLUMB_E_FORMAT, NULL,
           "smaller");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[2],\"normal\":[0,-1]"), PLUMB_E_FORMAT, NULL,
           "negative");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[2],\"normal\":[0]"), PLUMB_E_FORMAT, NULL,
           "finite numbers");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[2],\"value\":[[1]]"), PLUMB_E_FORMAT, NULL,
           "flat list");
    refuse(LEAF("\"dtype\":\"float32\",\"shape\":[2],\"uniform\":[0,1],\"value\":[]"),
           PLUMB_E_FORMAT, NULL, "has two of");
    refuse(LEAF("\"colour\":1"), PLUMB_E_FORMAT, "\"colour\"", "not \"colour\"");
#undef LEAF
}

static void test_refused_runs(void **state)
{
    (void)state;
    static const struct {
        const char *text, *at, *message;
    } cases[] = {
        {GRAPH("\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[1000000000,1000000000]}}", "",
               "{\"ref\":\"x\"}"),
         "{\"dtype\"", "'x': "},
        {GRAPH("\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[4294967296,4294967296,"
               "4294967296]}}",
               "", "{\"ref\":\"x\"}"),
         "{\"dtype\"", "'x': "},
        {GRAPH("\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2],\"value\":[1]}}", "",
               "{\"ref\":\"x\"}"),
         "{\"dtype\"", "1 values for 2 elements"},
        {GRAPH(X, "{\"name\":\"y\",\"op\":\"matmul\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"x\"}]}",
               Y),
         "{\"name\":\"y\"", "'y': a matrix product"},
        {GRAPH(X, "{\"name\":\"y\",\"op\":\"relu\",\"args\":[{\"ref\":\"x\",\"index\":0}]}", Y),
         "{\"name\":\"y\"", "'x' is a tensor"},
        {GRAPH(X, "{\"name\":\"y\",\"op\":\"relu\",\"args\":[{\"ref\":\"x\"}]}",
               "{\"ref\":\"y\",\"index\":3}"),
         "{\"ref\":\"y\",\"index\"", "has no result 3"},
        {GRAPH("\"inputs\":{\"x\":{\"file\":\"../secret.npy\"}}", "", "{\"ref\":\"x\"}"), "{\"file",
         "not in the graph's folder"},
        {GRAPH("\"inputs\":{\"x\":{\"file\":\"/etc/passwd\"}}", "", "{\"ref\":\"x\"}"), "{\"file",
         "not in the graph's folder"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct outcome out = check(cases[k].text, cases[k].text);
        assert_int_not_equal(out.code, PLUMB_OK);
        if (!strstr(out.message, cases[k].message) ||
            out.offset != (uint64_t)(strstr(cases[k].text, cases[k].at) - cases[k].text))
            fail_msg("%s: at %llu: %s", cases[k].text, (unsigned long long)out.offset, out.message);
    }
    /* Inputs that do not fit together. */
    const char *other =
        GRAPH("\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[3,2]}}", "", "{\"ref\":\"x\"}");
    const char *more =
        GRAPH("\"inputs\":{\"z\":{\"dtype\":\"float32\",\"shape\":[3,2]}}", "", "{\"ref\":\"z\"}");
    const char *plain = GRAPH(X, "", "{\"ref\":\"x\"}");
    const char *empty = GRAPH(X, "", "null");
    assert_non_null(strstr(check(empty, empty).message, "nothing to compare"));
    assert_non_null(strstr(check(empty, plain).message, "output.0 in iteration 0: None before"));
    assert_non_null(strstr(check(plain, other).message, "[3, 2] here and [2, 3] in"));
    assert_non_null(strstr(check(plain, more).message, "no input named 'z'"));
}

/* y = x*w: dy/dw is the sum of x over rows, [5, 7, 9]. The oracle has it as a literal. */
static void test_gradient_and_step(void **state)
{
    (void)state;
    const char *plain = GRAPH(XW, MUL, Y);
    equal(plain, plain);
    /* Multiplied by one, doubled and halved: the same numbers over more edges. */
    equal(plain, GRAPH(XW,
                       "{\"name\":\"a\",\"op\":\"mul\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"w\"}]},"
                       "{\"name\":\"b\",\"op\":\"add\",\"args\":[{\"ref\":\"a\"},{\"ref\":\"a\"}]},"
                       "{\"name\":\"y\",\"op\":\"div\",\"args\":[{\"ref\":\"b\"},2]}",
                       Y));
    /* The same first outputs, but half of the gradient. */
    const struct outcome out =
        check(plain, GRAPH(XW,
                           "{\"name\":\"d\",\"op\":\"detach\",\"args\":[{\"ref\":\"w\"}]},"
                           "{\"name\":\"a\",\"op\":\"add\",\"args\":[{\"ref\":\"w\"},{\"ref\":"
                           "\"d\"}]},{\"name\":\"b\",\"op\":\"div\",\"args\":[{\"ref\":\"a\"},2]},"
                           "{\"name\":\"y\",\"op\":\"mul\",\"args\":[{\"ref\":\"x\"},"
                           "{\"ref\":\"b\"}]}",
                           Y));
    assert_int_equal(out.code, PLUMB_OK);
    assert_non_null(strstr(out.message, "first: gradient w in iteration 0"));
    assert_string_equal(out.first_node, "");
    /* The step: w - 0.01*[5, 7, 9], seen by the second iteration. */
    struct plumb_passcheck_options options;
    plumb_passcheck_options_init(&options);
    options.iterations = 1;
    options.kinds = PLUMB_PASSCHECK_STEP;
    options.precision = 1e-9;
    const char *stepped = GRAPH(X ",\"parameters\":{\"w\":{\"dtype\":\"float64\",\"shape\":[3],"
                                  "\"value\":[0.95,1.93,2.91]}}",
                                "{\"name\":\"y\",\"op\":\"sum\",\"args\":[{\"ref\":\"x\"}]}", Y);
    const char *wide =
        GRAPH(X ",\"parameters\":{\"w\":{\"dtype\":\"float64\",\"shape\":[3],\"value\":[1,2,3]}}",
              MUL, Y);
    /* Of a graph without gradients nothing moves, which is told. */
    const struct outcome unmoved = check_with(wide, stepped, &options);
    assert_non_null(strstr(unmoved.message, "no gradients: no output after"));
    assert_int_equal(unmoved.compared, 1);
    assert_int_equal(unmoved.failed, 0);
    const char *still =
        GRAPH(X ",\"parameters\":{\"w\":{\"dtype\":\"float64\",\"shape\":[3],"
                "\"value\":[0.95,1.93,2.91]}}",
              "{\"name\":\"z\",\"op\":\"mul\",\"args\":[{\"ref\":\"w\"},0]},"
              "{\"name\":\"y\",\"op\":\"add\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"z\"}]}",
              Y);
    const struct outcome step = check_with(wide, still, &options);
    assert_int_equal(step.code, PLUMB_OK);
    assert_int_equal(step.compared, 1);
    if (step.failed)
        fail_msg("%s", step.message);
}

/* Right outputs and, as the sum of a softmax is constant, a right gradient of their sum. */
static void test_gradient_of_all_outputs(void **state)
{
    (void)state;
    const char *plain =
        GRAPH(XW, MUL ",{\"name\":\"s\",\"op\":\"softmax\",\"args\":[{\"ref\":\"y\"},-1]}",
              "{\"ref\":\"s\"}");
    const char *twice =
        GRAPH(XW,
              MUL ",{\"name\":\"d\",\"op\":\"detach\",\"args\":[{\"ref\":\"y\"}]},"
                  "{\"name\":\"a\",\"op\":\"sub\",\"args\":[{\"ref\":\"y\"},{\"ref\":\"d\"}]},"
                  "{\"name\":\"b\",\"op\":\"add\",\"args\":[{\"ref\":\"y\"},{\"ref\":\"a\"}]},"
                  "{\"name\":\"s\",\"op\":\"softmax\",\"args\":[{\"ref\":\"b\"},-1]}",
              "{\"ref\":\"s\"}");
    equal(plain, plain);
    const struct outcome out = check(plain, twice);
    assert_int_equal(out.code, PLUMB_OK);
    assert_non_null(strstr(out.message, "first: gradient of all outputs w in iteration 0"));
    /* The second output's gradient is another one. */
    const char *first =
        GRAPH(XW, MUL ",{\"name\":\"z\",\"op\":\"mul\",\"args\":[{\"ref\":\"y\"},2]}",
              "{\"ref\":\"y\"},{\"ref\":\"z\"}");
    const char *other =
        GRAPH(XW,
              MUL ",{\"name\":\"d\",\"op\":\"detach\",\"args\":[{\"ref\":\"y\"}]},"
                  "{\"name\":\"z\",\"op\":\"add\",\"args\":[{\"ref\":\"y\"},{\"ref\":\"d\"}]}",
              "{\"ref\":\"y\"},{\"ref\":\"z\"}");
    assert_non_null(strstr(check(first, other).message, "first: gradient of all outputs w"));
}

/* What cuts the gradient off keeps the outputs, and is found all the same. */
static void test_gradient_of_one_side(void **state)
{
    (void)state;
    const char *plain = GRAPH(XW, MUL, Y);
    const char *cut = GRAPH(XW,
                            "{\"name\":\"a\",\"op\":\"mul\",\"args\":[{\"ref\":\"x\"},"
                            "{\"ref\":\"w\"}]},"
                            "{\"name\":\"y\",\"op\":\"detach\",\"args\":[{\"ref\":\"a\"}]}",
                            Y);
    struct plumb_passcheck_options options;
    plumb_passcheck_options_init(&options);
    options.iterations = 1;
    options.kinds = PLUMB_PASSCHECK_OUTPUT | PLUMB_PASSCHECK_GRADIENT;
    struct outcome out = check_with(plain, cut, &options);
    assert_int_equal(out.failed, 2); /* the output's, and that of w, which is None after */
    assert_non_null(strstr(out.message, "first: gradient output.0 in iteration 0: only before"));
    out = check_with(cut, plain, &options);
    assert_int_equal(out.failed, 2);
    assert_non_null(strstr(out.message, "first: gradient output.0 in iteration 0: only after"));
    options.kinds = PLUMB_PASSCHECK_STEP;
    assert_int_equal(check_with(plain, cut, &options).failed, 1);
    options.kinds = PLUMB_PASSCHECK_OUTPUT;
    assert_int_equal(check_with(plain, cut, &options).failed, 0);
}

static void test_names(void **state)
{
    (void)state;
    /* Parameters of one side, nodes in any order, outputs of another number, tuples. */
    const char *before = GRAPH(XW, MUL, Y);
    const char *after =
        GRAPH(X ",\"parameters\":{\"v\":{\"dtype\":\"float32\",\"shape\":[3],\"value\":[1,2,3]}}",
              "{\"name\":\"z\",\"op\":\"relu\",\"args\":[{\"ref\":\"y\"}]},"
              "{\"name\":\"y\",\"op\":\"mul\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"v\"}]}",
              "{\"ref\":\"y\"},{\"ref\":\"z\"}");
    const struct outcome out = check(before, after);
    assert_int_equal(out.code, PLUMB_OK);
    assert_int_equal(out.failed, 2 * 5); /* w and v, again after the step, and output 1 */
    equal(GRAPH(X,
                "{\"name\":\"t\",\"op\":\"chunk\",\"args\":[{\"ref\":\"x\"},3,1]},"
                "{\"name\":\"y\",\"op\":\"cat\",\"args\":[{\"ref\":\"t\"},1]}",
                Y),
          GRAPH(X,
                "{\"name\":\"t\",\"op\":\"chunk\",\"args\":[{\"ref\":\"x\"},3,1]},"
                "{\"name\":\"y\",\"op\":\"cat\",\"args\":[[{\"ref\":\"t\",\"index\":0},"
                "{\"ref\":\"t\",\"index\":1},{\"ref\":\"t\",\"index\":-1}],1]}",
                Y));
    equal(GRAPH(X, "{\"name\":\"y\",\"op\":\"dropout\",\"args\":[{\"ref\":\"x\"},0.5,true]}", Y),
          GRAPH(X, "{\"name\":\"k\",\"op\":\"dropout\",\"args\":[{\"ref\":\"x\"},0.5,true]}",
                "{\"ref\":\"k\"}"));
}

static void test_first_node(void **state)
{
    (void)state;
    const char *before = GRAPH(XW,
                               MUL ",{\"name\":\"a\",\"op\":\"relu\",\"args\":[" Y "]},"
                                   "{\"name\":\"b\",\"op\":\"exp\",\"args\":[{\"ref\":\"a\"}]}",
                               "{\"ref\":\"b\"}");
    const char *after = GRAPH(XW,
                              MUL ",{\"name\":\"a\",\"op\":\"gelu\",\"args\":[" Y "]},"
                                  "{\"name\":\"b\",\"op\":\"exp\",\"args\":[{\"ref\":\"a\"}]}",
                              "{\"ref\":\"b\"}");
    const struct outcome out = check(before, after);
    assert_int_equal(out.code, PLUMB_OK);
    assert_string_equal(out.first_node, "a");
}

static void test_nan_is_equal(void **state)
{
    (void)state;
    const char *nan =
        GRAPH("\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2],\"value\":[NaN,Infinity]}}",
              "{\"name\":\"y\",\"op\":\"mul\",\"args\":[{\"ref\":\"x\"},2]}", Y);
    const char *none =
        GRAPH("\"inputs\":{\"x\":{\"dtype\":\"float32\",\"shape\":[2]}}",
              "{\"name\":\"y\",\"op\":\"full_like\",\"args\":[{\"ref\":\"x\"},1]}", Y);
    equal(nan, nan);
    assert_true(check(nan, none).failed > 0);
}

static void test_generated(void **state)
{
    (void)state;
    /* Same name, seed and shape: same values in both files; another name: others. */
#define GENERATED(name, how)                                                                       \
    GRAPH("\"parameters\":{\"" name "\":{\"dtype\":\"bfloat16\",\"shape\":[300]," how "}}", "",    \
          "{\"ref\":\"" name "\"}")
    struct plumb_passcheck_options options;
    plumb_passcheck_options_init(&options);
    options.iterations = 1;
    options.kinds = PLUMB_PASSCHECK_OUTPUT;
    const char *w = GENERATED("w", "\"normal\":[0,1]");
    assert_int_equal(check_with(w, w, &options).failed, 0);
    assert_int_equal(check_with(w, GENERATED("v", "\"normal\":[0,1]"), &options).failed, 1);
    assert_int_equal(check_with(w, GENERATED("w", "\"uniform\":[0,1]"), &options).failed, 1);
    /* Whole numbers, all of them between the ends; nothing at all. */
    equal(GRAPH("\"inputs\":{\"i\":{\"dtype\":\"int64\",\"shape\":[200],\"uniform\":[3,5]}}",
                "{\"name\":\"y\",\"op\":\"unique\",\"args\":[{\"ref\":\"i\"}]}", Y),
          GRAPH("\"inputs\":{\"i\":{\"dtype\":\"int64\",\"shape\":[200]}}",
                "{\"name\":\"y\",\"op\":\"arange\",\"args\":[3,6]}", Y));
    const char *integers = GRAPH("\"parameters\":{\"i\":{\"dtype\":\"int32\",\"shape\":[9],"
                                 "\"normal\":[5,2]},\"e\":{\"dtype\":\"float16\",\"shape\":"
                                 "[0,4],\"value\":[]}}",
                                 "", "{\"ref\":\"i\"},{\"ref\":\"e\"}");
    equal(integers, integers);
#undef GENERATED
}

/* Token 31998 is not token 31999, however small the difference is against either. */
static void test_integers(void **state)
{
    (void)state;
#define HELD(dtype, value)                                                                         \
    GRAPH("\"buffers\":{\"i\":{\"dtype\":\"" dtype "\",\"shape\":[1],\"value\":" value "}}", "",   \
          "{\"ref\":\"i\"}")
    equal(HELD("int64", "31999"), HELD("int64", "31999"));
    assert_int_not_equal(check(HELD("int64", "31999"), HELD("int64", "31998")).failed, 0);
    assert_int_not_equal(check(HELD("uint8", "200"), HELD("uint8", "201")).failed, 0);
    equal(HELD("float64", "31999"), HELD("float64", "31998"));
#undef HELD
}

static void write_text(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void test_files(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    char graph[600], npy[600], out[600], folder[600];
    snprintf(graph, sizeof graph, "%s/in/g.json", scratch.folder);
    snprintf(folder, sizeof folder, "%s/in", scratch.folder);
    snprintf(npy, sizeof npy, "%s/in/x.npy", scratch.folder);
    snprintf(out, sizeof out, "%s/out.npy", scratch.folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    char bytes[128 + 8] = "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': "
                          "(2,), }";
    for (size_t k = 10 + strlen(bytes + 10); k < 127; k++)
        bytes[k] = ' ';
    bytes[127] = '\n';
    const float values[2] = {1.5f, -2};
    memcpy(bytes + 128, values, sizeof values);
    write_text(npy, bytes, sizeof bytes);
    write_text(out, bytes, sizeof bytes);

    static const struct {
        const char *leaf, *message; /* NULL: fine */
    } cases[] = {
        {"\"file\":\"x.npy\"", NULL},
        {"\"file\":\"x.npy\",\"dtype\":\"float32\",\"shape\":[2]", NULL},
        {"\"file\":\"x.npy\",\"shape\":[3]", "[2] instead of [3]"},
        {"\"file\":\"x.npy\",\"dtype\":\"float16\"", "float32 instead of float16"},
        {"\"file\":\"x.npy\",\"key\":\"w\"", "no tensor named 'w'"},
        {"\"file\":\"gone.npy\"", "'x': "},
        {"\"file\":\"link.npy\"", "not in the graph's folder"},
        {"\"file\":\"in/../../out.npy\"", "not in the graph's folder"},
    };
    char link[600];
    snprintf(link, sizeof link, "%s/in/link.npy", scratch.folder);
    assert_int_equal(symlink("../out.npy", link), 0);
    struct plumb_passcheck_options options;
    plumb_passcheck_options_init(&options);
    options.iterations = 1;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[400];
        snprintf(text, sizeof text, GRAPH("\"inputs\":{\"x\":{%s}}", "", "{\"ref\":\"x\"}"),
                 cases[k].leaf);
        write_text(graph, text, strlen(text));
        struct plumb_passcheck_graph *g = NULL;
        struct plumb_passcheck result;
        struct plumb_error err = {0};
        assert_int_equal(plumb_passcheck_graph_open(&g, graph, &err), PLUMB_OK);
        enum plumb_code code = plumb_passcheck_run(g, g, &options, &result, &err);
        if (!code != !cases[k].message || (code && !strstr(err.message, cases[k].message)))
            fail_msg("%s: %s", cases[k].leaf, err.message);
        plumb_passcheck_destroy(&result);
        plumb_passcheck_graph_free(g);
    }
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_refused_runs),
        cmocka_unit_test(test_gradient_and_step),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_first_node),
        cmocka_unit_test(test_nan_is_equal),
        cmocka_unit_test(test_generated),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_gradient_of_one_side),
        cmocka_unit_test(test_gradient_of_all_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
