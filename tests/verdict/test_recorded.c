/* What was written down is judged by the rules of the standard `statistics`. */
#define _GNU_SOURCE
#include "verdict/recorded.h"
#include "verdict/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

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

static void number(struct plumb_value *value, double x)
{
    *value = (struct plumb_value){.kind = PLUMB_VALUE_NUMBER, .number = x};
}

/* Two sides that have nothing but a Max. */
static void judge_max(const struct plumb_standard *standard, double target, double golden,
                      struct recorded_judgement *out)
{
    struct recorded_evidence evidence = {
        .count = 4, .side = {{.dtype = PLUMB_DTYPE_COUNT}, {.dtype = PLUMB_DTYPE_COUNT}}};
    number(&evidence.side[0].statistic[PLUMB_STATISTIC_MAX], target);
    number(&evidence.side[1].statistic[PLUMB_STATISTIC_MAX], golden);
    memset(out, 0x55, sizeof *out);
    recorded_judge_statistics(standard, &evidence, out);
    assert_null(out->problem);
}

static void test_statistics(void **state)
{
    (void)state;
    struct plumb_standard *standard = load("statistics");
    struct recorded_judgement judgement;
    judge_max(standard, 1024, 1024, &judgement);
    expect(&judgement.verdict, PLUMB_NORMAL, "largest relative difference 0% < 1% (Max)");
    assert_true(judgement.has_differences);
    judge_max(standard, 1026, 1024, &judgement);
    expect(&judgement.verdict, PLUMB_SUSPICIOUS,
           "Max 1026 against 1024: relative difference 0.1953% >= 0.1%");
    judge_max(standard, 1040, 1024, &judgement);
    expect(&judgement.verdict, PLUMB_FAILED,
           "Max 1040 against 1024: relative difference 1.562% >= 1%");
    assert_true(judgement.distance == 0.015625);
    assert_true(judgement.difference[PLUMB_STATISTIC_MAX].absolute == 16);
    judge_max(standard, NAN, 1024, &judgement);
    expect(&judgement.verdict, PLUMB_FAILED, "Max NaN against 1024: NaN on one side only");
    judge_max(standard, NAN, NAN, &judgement);
    expect(&judgement.verdict, PLUMB_SUSPICIOUS,
           "not judged: NaN or infinite on both sides, which says nothing about the rest");
    assert_true(judgement.verdict.unjudged);
    plumb_standard_free(standard);
}

/* The limit of suspicion is always a tenth, to the last bit. */
static void test_limit(void **state)
{
    (void)state;
    static const double limits[] = {0.01, 0.005, 0.03, 1.0 / 3, 1e9, 1e-300, INFINITY};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct plumb_standard *standard = load("statistics");
        assert_true(recorded_limit(standard) == 0.01);
        recorded_set_limit(standard, limits[i]);
        assert_true(recorded_limit(standard) == limits[i]);
        assert_true(standard_find_rule(standard, RULE_STATISTICS, PLUMB_SUSPICIOUS)->limit ==
                    limits[i] / 10);
        assert_true(standard_find_rule(standard, RULE_ARGUMENT, PLUMB_FAILED)->limit == 1e-6);
        plumb_standard_free(standard);
    }
}

static void test_nothing_known(void **state)
{
    (void)state;
    struct plumb_standard *standard = load("statistics");
    struct recorded_judgement judgement;
    struct recorded_evidence evidence = {.side = {{.checksum = "0000abcd", .dtype = PLUMB_F32},
                                                  {.checksum = "0000ABCD", .dtype = PLUMB_F32}}};
    recorded_judge_statistics(standard, &evidence, &judgement);
    expect(&judgement.verdict, PLUMB_NORMAL, "the checksums are equal");
    evidence.side[1].dtype = PLUMB_F64;
    recorded_judge_statistics(standard, &evidence, &judgement);
    assert_string_equal(judgement.problem,
                        "the types differ, so that checksums cannot be compared");
    evidence.side[1].checksum = NULL;
    recorded_judge_statistics(standard, &evidence, &judgement);
    assert_string_equal(judgement.problem,
                        "neither a statistic nor a checksum is there on both sides");
    plumb_standard_free(standard);
}

static void test_checksums(void **state)
{
    (void)state;
    struct recorded_judgement judgement = {0};
    recorded_judge_checksums("12345678", "12345679", &judgement);
    expect(&judgement.verdict, PLUMB_FAILED, "the checksums differ: 12345678 against 12345679");
    assert_true(isinf(judgement.distance));
    recorded_judge_checksums("0x12", "12345679", &judgement);
    expect(&judgement.verdict, PLUMB_FAILED, "checksums of different kinds: 0x12 against 12345679");
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *target, *golden;
        enum plumb_severity severity;
        const char *rule;
    } cases[] = {
        {"True", "True", PLUMB_NORMAL, "the same argument: True"},
        {NULL, "None", PLUMB_NORMAL, "the same argument: None"},
        {"npu:0", "cpu", PLUMB_NORMAL, "devices, not compared: npu:0 against cpu"},
        {"1", "1.0", PLUMB_NORMAL, "equal arguments: 1 and 1.0"},
        {"1000001", "1000000", PLUMB_SUSPICIOUS,
         "arguments that nearly agree: 1000001 against 1000000"},
        {"1000002", "1000000", PLUMB_FAILED, "the arguments differ: 1000002 against 1000000"},
        {"1e-30", "0", PLUMB_FAILED, "the arguments differ: 1e-30 against 0"},
        {"sum", "mean", PLUMB_FAILED, "the arguments differ: sum against mean"},
        {"<a.ReduceOp object at 0x1>", "<a.ReduceOp object at 0x2>", PLUMB_NORMAL,
         "addresses, not compared: <a.ReduceOp object at 0x1> against <a.ReduceOp object at 0x2>"},
        {"<a.ReduceOp object at 0x1>", "RedOpType.SUM", PLUMB_NORMAL,
         "addresses, not compared: <a.ReduceOp object at 0x1> against RedOpType.SUM"},
        {"<a.ReduceOp object at 0x1>", "<a.Group object at 0x1>", PLUMB_FAILED,
         "the arguments differ: <a.ReduceOp object at 0x1> against <a.Group object at 0x1>"},
    };
    struct plumb_standard *standard = load("statistics");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plumb_recorded target = {.value = cases[i].target};
        struct plumb_recorded golden = {.value = cases[i].golden};
        struct plumb_verdict verdict;
        recorded_judge_argument(standard, &target, &golden, &verdict);
        expect(&verdict, cases[i].severity, cases[i].rule);
    }
    plumb_standard_free(standard);
}

static void test_gradient(void **state)
{
    (void)state;
    struct plumb_record yes = {.requires_grad = 1}, no = {.requires_grad = 0};
    struct plumb_record unknown = {.requires_grad = -1};
    struct plumb_verdict verdict = {.rule = "before"};
    recorded_judge_gradient(&yes, &yes, &verdict);
    recorded_judge_gradient(&yes, &unknown, &verdict);
    expect(&verdict, PLUMB_NORMAL, "before");
    recorded_judge_gradient(&yes, &no, &verdict);
    expect(&verdict, PLUMB_SUSPICIOUS, "requires_grad is True, in the golden False");
    verdict = (struct plumb_verdict){.severity = PLUMB_FAILED, .rule = "worse"};
    recorded_judge_gradient(&yes, &no, &verdict);
    expect(&verdict, PLUMB_FAILED, "worse");
}

static void test_jump(void **state)
{
    (void)state;
    struct plumb_standard *standard = NULL;
    struct plumb_verdict verdict = {.rule = "before"};
    assert_int_equal(plumb_standard_load(&standard, "torchair", NULL), PLUMB_OK);
    standard_judge_jump(standard, 0.5, 0, &verdict);
    standard_judge_jump(standard, 0.5, 0.05, &verdict);
    standard_judge_jump(standard, NAN, 0.05, &verdict);
    expect(&verdict, PLUMB_NORMAL, "before");
    standard_judge_jump(standard, 0.5, 0.025, &verdict);
    expect(&verdict, PLUMB_SUSPICIOUS, "jump 20 > 10: max_rel 0.5 from inputs with 0.025");
    plumb_standard_free(standard);
}

/* The standards of single jobs are no choice for values, which they would let pass. */
static void test_jobs_only(void **state)
{
    (void)state;
    static const char *const names[] = {"statistics", "checkpoint"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct plumb_standard *standard = NULL;
        assert_non_null(plumb_standard_text(names[i]));
        assert_int_equal(plumb_standard_load(&standard, names[i], NULL), PLUMB_E_ARG);
        assert_null(standard);
    }
    struct plumb_standard standard = {0};
    struct plumb_error err;
    const char *text = plumb_standard_text("statistics");
    assert_int_equal(standard_parse(&standard, text, strlen(text), &err), PLUMB_E_FORMAT);
    arena_free(&standard.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),    cmocka_unit_test(test_limit),
        cmocka_unit_test(test_nothing_known), cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_arguments),     cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_jump),          cmocka_unit_test(test_jobs_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
