/* Paths of modules in names of calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/module.h"

static void test_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"Module.blocks.0.norm.LayerNorm.forward.3", "blocks.0.norm"},
        {"Module.blocks.0.norm.LayerNorm.backward.0.input.1", "blocks.0.norm"},
        {"Module.head.Linear.parameters_grad.weight", "head"},
        {"Module.Net.forward.0", ""},
        {"Module.head", "head"},
        {"blocks.0.norm.LayerNorm.3.forward", "blocks.0.norm"},
        {"blocks.0.norm.LayerNorm.13.forward_output.0", "blocks.0.norm"},
        {"conv.Conv2d.0.backward_input.0", "conv"},
        {"Net.0.forward_output.0", ""},
        {"weight", ""},
        {"", ""},
        {".forward", ""},
        {"a.forward", ""},
        {"forward.forward", ""},
        {"Module.", ""},
    };
    char text[64], small[4];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        assert_string_equal(run_module(names[k][0], text, sizeof text), names[k][1]);
    assert_string_equal(run_module(names[0][0], small, sizeof small), "blo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
