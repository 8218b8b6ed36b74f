/* Weights are judged by the rules of the standard `checkpoint`. */
#include "verdict/rules.h"
#include "verdict/weight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

static struct plumb_standard *load(const char *name)
{
    struct plumb_standard *standard = NULL;
    struct plumb_error err = {0};
    if (standard_load_task(&standard, name, &err))
        fail_msg("%s: %s", name, err.message);
    return standard;
}

static void expect(const struct plumb_verdict *verdict, enum plumb_severity severity,
                   const char *rule)
{
    assert_string_equal(verdict->rule, rule);
    assert_int_equal(verdict->severity, severity);
}

static void test_weights(void **state)
{
    (void)state;
    static const struct {
        struct weight_evidence evidence;
        enum plumb_severity severity;
        const char *rule;
    } cases[] = {
        {{1, true, 0}, PLUMB_NORMAL, ""},
        {{0.99, true, 0.01}, PLUMB_NORMAL, ""},
        {{0.98, true, 0.5}, PLUMB_FAILED, "cos 0.98 is below 0.99"},
        {{0.999, true, 0.02}, PLUMB_FAILED, "l2 is 0.02 of the norm of the second, above 0.01"},
        {{NAN, true, NAN}, PLUMB_FAILED, "there are values that are not finite"},
        {{0, false, 1}, PLUMB_FAILED, "one side is all zero"},
    };
    struct plumb_standard *standard = load("checkpoint");
    struct plumb_verdict verdict;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weight_judge(standard, &cases[i].evidence, &verdict);
        expect(&verdict, cases[i].severity, cases[i].rule);
    }
    weight_set_limits(standard, NAN, 0.5);
    assert_true(weight_min_cosine(standard) == 0.99);
    assert_true(weight_max_distance(standard) == 0.5);
    weight_judge(standard, &cases[3].evidence, &verdict);
    expect(&verdict, PLUMB_NORMAL, "");
    weight_judge_integers(false, true, 0, &verdict);
    expect(&verdict, PLUMB_NORMAL, "");
    weight_judge_integers(false, true, 0.02, &verdict);
    expect(&verdict, PLUMB_SUSPICIOUS, "integers that are not the same");
    weight_judge_integers(true, false, 0, &verdict);
    expect(&verdict, PLUMB_SUSPICIOUS, "integers on one side only");
    plumb_standard_free(standard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
