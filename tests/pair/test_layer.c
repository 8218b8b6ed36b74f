#define _GNU_SOURCE
#include "pair/api.h"
#include "pair/layer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

static struct scratch scratch;

static const char *write_yaml(const char *text)
{
    return scratch_write(&scratch, "map.yaml", text, strlen(text));
}

static void read_layers(struct layer_rules *rules, const char *text)
{
    struct plumb_error err = {0};
    if (layer_read(rules, text ? write_yaml(text) : "", &err))
        fail_msg("%s", err.message);
}

enum { MOST = 8 };

struct list {
    struct layer_call calls[MOST];
    struct layer_calls all;
};

static void add(struct list *list, const char *api, const char *parent, const char *const *stack)
{
    list->calls[list->all.count++] =
        (struct layer_call){.api = api, .parent = parent, .stack = stack, .place = ""};
    list->all.calls = list->calls;
}

static void expect(struct list *target, struct list *golden, const char *rules,
                   const size_t *wanted)
{
    struct layer_rules read;
    size_t partner[MOST];
    read_layers(&read, rules);
    assert_true(layer_pair(partner, &target->all, &golden->all, &read));
    for (size_t i = 0; i < target->all.count; i++)
        if (partner[i] != wanted[i])
            fail_msg("%s: %zd, not %zd", target->calls[i].api, partner[i], wanted[i]);
    layer_free(&read);
}

static void test_pieces_of_paths(void **state)
{
    (void)state;
    struct list target = {0}, golden = {0};
    add(&target, "Cell.network.Wrap.forward.0", NULL, NULL);
    add(&target, "Cell.network.lm.Language.forward.0", NULL, NULL);
    add(&target, "Cell.network.lm.encoder.Encoder.forward.0", NULL, NULL);
    add(&target, "Cell.network.lm.encoder.layers.0.mlp.MLP.forward.0", NULL, NULL);
    add(&target, "Cell.network.lm.encoder.layers.0.mlp.up.Dense.backward.0", NULL, NULL);
    add(&target, "Cell.network.lm.encoder.layers.0.mlp.up.Dense.parameters_grad", NULL, NULL);
    add(&golden, "Module.model.Other.forward.0", NULL, NULL);
    add(&golden, "Module.model.decoder.Block.forward.0", NULL, NULL);
    add(&golden, "Module.model.decoder.layers.0.mlp.M.forward.0", NULL, NULL);
    add(&golden, "Module.model.decoder.layers.0.mlp.fc1.Linear.backward.0", NULL, NULL);
    add(&golden, "Module.model.decoder.layers.0.mlp.fc1.Linear.parameters_grad", NULL, NULL);
    expect(&target, &golden,
           "Cell: {network: model}\n"
           "Wrap:\n  lm.encoder: decoder\n  lm: nowhere\n"
           "MLP: {up: fc1}\nDense: {up: wrong}\n",
           (size_t[]){0, LAYER_NONE, 1, 2, 3, 4});
    expect(&target, &golden, "TopLayer: {network: model}\n",
           (size_t[]){0, LAYER_NONE, LAYER_NONE, LAYER_NONE, LAYER_NONE, LAYER_NONE});
}

static void test_calls_by_their_turn_in_a_scope(void **state)
{
    (void)state;
    static const char a[] = "Module.a.A.forward.0", b[] = "Module.b.B.forward.0";
    struct list target = {0}, golden = {0};
    add(&target, "Mint.add.0.forward", "Cell.a.A.forward.0", NULL);
    add(&target, "Mint.add.1.forward", "Cell.a.A.forward.0", NULL);
    add(&target, "Mint.add.2.forward", "Cell.b.B.forward.0", NULL);
    add(&target, "Mint.add.2.backward", NULL, NULL);
    add(&target, "Mint.add.3.forward", NULL, NULL);
    add(&golden, "Torch.add.0.forward", b, NULL);
    add(&golden, "Torch.add.1.forward", a, NULL);
    add(&golden, "Torch.mul.0.forward", a, NULL);
    add(&golden, "Tensor.add.7.forward", a, NULL);
    add(&golden, "Torch.add.1.backward", NULL, NULL);
    add(&golden, "Torch.add.0.backward", NULL, NULL);
    /* A backward call is where its forward call is. */
    expect(&target, &golden, NULL, (size_t[]){1, 3, 0, 5, LAYER_NONE});
}

static void test_functions_of_the_framework_count(void **state)
{
    (void)state;
    static const char *const norm[] = {
        "File /x/site-packages/mindspore/ops/inner.py, line 3, in inner, \n x",
        "File /x/site-packages/mindspore/ops/norm.py, line 9, in norm, \n y",
        "File /home/me/model.py, line 1, in construct, \n z", NULL};
    static const char *const torch_norm[] = {
        "File /y/site-packages/torch/functional.py, line 9, in norm, \n y", NULL};
    static const char *const user[] = {"File /home/me/model.py, line 1, in helper, \n z", NULL};
    static const char *const module[] = {
        "File /x/site-packages/torch/nn/modules/linear.py, line 1, in forward, \n z", NULL};
    struct list target = {0}, golden = {0};
    add(&target, "Mint.sum.0.forward", NULL, user);
    add(&target, "Mint.sum.1.forward", NULL, norm);
    add(&golden, "Torch.sum.0.forward", NULL, torch_norm);
    add(&golden, "Torch.sum.1.forward", NULL, module);
    expect(&target, &golden, NULL, (size_t[]){1, 0});
}

static void test_odd_names(void **state)
{
    (void)state;
    struct list target = {0}, golden = {0};
    add(&target, "", NULL, NULL);
    add(&target, "forward", NULL, NULL);
    add(&target, "Cell.forward.0", ".", NULL);
    add(&target, "Cell..forward.0", "Cell.", NULL);
    add(&target, "x", "forward", NULL);
    add(&golden, "x", NULL, NULL);
    expect(&target, &golden, "TopLayer: {x: y}\n",
           (size_t[]){LAYER_NONE, LAYER_NONE, LAYER_NONE, LAYER_NONE, 0});
    assert_string_equal(layer_suffix("A.b.0.forward", "A.b.1.forward.input.0"), ".input.0");
    assert_null(layer_suffix("A.b.0.forward", "A.b"));
    assert_null(layer_suffix("A.b", "A.b"));
}

static void test_bad_files_name_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line;
    } cases[] = {{"A:\n  b: c\n- d\n", "line"}, {"A: b\n", "line 1"},
                 {"A:\n  b: [c]\n", "line 2"},  {"A: {b: ''}\n", "line 1"},
                 {"[A]\n", "line 1"},           {"A: {b: {c: d}}\n", "line 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct layer_rules rules;
        struct plumb_error err = {0};
        assert_int_equal(layer_read(&rules, write_yaml(cases[i].text), &err), PLUMB_E_FORMAT);
        if (!strstr(err.message, cases[i].line))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
}

static void expect_api(const char *yaml, const char *name, const char *wanted)
{
    struct api_rules rules;
    struct arena arena = {0};
    struct plumb_error err = {0};
    if (api_read(&rules, yaml ? write_yaml(yaml) : "", &err))
        fail_msg("%s", err.message);
    assert_string_equal(api_rename(&arena, &rules, name), wanted);
    arena_free(&arena);
    api_free(&rules);
}

static void test_apis(void **state)
{
    (void)state;
    static const char entries[] = "- ms_api: Functional.abs\n  pt_api: Torch.abs\n"
                                  "  ms_args: [0, 2]\n  pt_args: [0, 1]\n"
                                  "  ms_outputs: [1]\n  pt_outputs: [0]\n"
                                  "- {ms_api: Mint.max, pt_api: Torch.amax}\n";
    expect_api(NULL, "Mint.add.3.forward.input.0", "Torch.add.3.forward.input.0");
    expect_api(NULL, "Module.a.B.forward.0.input.0", "Module.a.B.forward.0.input.0");
    expect_api("Mint.add: Torch.sub\n", "Mint.add.3.forward.input.0",
               "Torch.sub.3.forward.input.0");
    expect_api(entries, "Functional.abs.0.forward.input.2", "Torch.abs.0.forward.input.1");
    expect_api(entries, "Functional.abs.0.forward.input.2.1.x", "Torch.abs.0.forward.input.1.1.x");
    expect_api(entries, "Functional.abs.0.forward.input.out", "Torch.abs.0.forward.input.out");
    expect_api(entries, "Functional.abs.0.forward.output.1", "Torch.abs.0.forward.output.0");
    expect_api(entries, "Functional.abs.0.forward.input.1", "Functional.abs.0.forward.input.1");
    expect_api(entries, "Functional.abs.0.backward.input.1", "Torch.abs.0.backward.input.0");
    expect_api(entries, "Functional.abs.0.backward.output.2", "Torch.abs.0.backward.output.1");
    expect_api(entries, "Mint.max.1.forward.output.5", "Torch.amax.1.forward.output.5");
    expect_api("ms_api: A.b\npt_api: C.d\n", "A.b.0.forward", "C.d.0.forward");
}

static void test_bad_apis_name_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line;
    } cases[] = {{"- a\n", "line 1"},
                 {"- ms_api: a\n", "line 1"},
                 {"- {ms_api: a, pt_api: b}\n- ms_api: c\n", "line 2"},
                 {"ms_api: a\npt_api: b\nms_args: [0]\n", "line 3"},
                 {"ms_api: a\npt_api: b\nms_args: [0]\npt_args: [0, 1]\n", "line 4"},
                 {"ms_api: a\npt_api: b\nms_args: [-1]\npt_args: [0]\n", "line 3"},
                 {"ms_api: a\npt_api: b\nms_args: 1\npt_args: 0\n", "line 3"},
                 {"a: [b]\n", "line 1"},
                 {"word\n", "line 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct api_rules rules;
        struct plumb_error err = {0};
        assert_int_equal(api_read(&rules, write_yaml(cases[i].text), &err), PLUMB_E_FORMAT);
        if (!strstr(err.message, cases[i].line))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
}

static int begin(void **state)
{
    (void)state;
    scratch_make(&scratch);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_of_paths),
        cmocka_unit_test(test_calls_by_their_turn_in_a_scope),
        cmocka_unit_test(test_functions_of_the_framework_count),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_bad_files_name_a_line),
        cmocka_unit_test(test_apis),
        cmocka_unit_test(test_bad_apis_name_a_line),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
