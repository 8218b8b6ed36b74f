#define _GNU_SOURCE
#include "plumb/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verdict/standard_names.h"

static struct plumb_standard *load(const char *name)
{
    struct plumb_standard *standard = NULL;
    struct plumb_error err = {0};
    if (plumb_standard_load(&standard, name, &err))
        fail_msg("%s: %s", name, err.message);
    return standard;
}

/* A pair of 100 equal, finite values. */
static struct plumb_metrics perfect(void)
{
    struct plumb_metrics metrics = {.count = 100, .cosine = 1, .close = 100, .max_abs_index = 100};
    metrics.classes[PLUMB_FINITE][PLUMB_FINITE] = 100;
    return metrics;
}

static void expect_verdict(const struct plumb_standard *standard,
                           const struct plumb_metrics *metrics, enum plumb_severity severity,
                           const char *rule)
{
    struct plumb_verdict verdict;
    memset(&verdict, 0x55, sizeof verdict);
    plumb_standard_judge(standard, metrics, &verdict);
    assert_string_equal(verdict.rule, rule);
    assert_int_equal(verdict.severity, severity);
}

static void test_xray(void **state)
{
    (void)state;
    struct plumb_standard *standard = load("xray");
    assert_string_equal(plumb_standard_name(standard), "xray");
    struct plumb_metrics metrics = perfect();
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "max_abs 0 <= 0.01");
    metrics.max_abs = 0.0078125;
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "max_abs 0.0078125 <= 0.01");
    metrics.max_abs = 0.01;
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "max_abs 0.01 <= 0.01");
    metrics.max_abs = nextafter(0.01, 1);
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_abs 0.010000000000000002 > 0.01");
    metrics.max_abs = 0.015625;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_abs 0.015625 > 0.01");
    metrics.max_abs = INFINITY;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_abs inf > 0.01");
    metrics.max_abs = NAN;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_abs is NaN, needs <= 0.01");
    metrics = perfect();
    metrics.cosine = NAN;
    metrics.max_rel = INFINITY;
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "max_abs 0 <= 0.01");

    struct plumb_metric_spec spec = {.groups = PLUMB_G_STATS, .rtol = 9, .atol = 9, .gt = 9};
    plumb_standard_spec(standard, &spec);
    assert_true(spec.groups & PLUMB_G_ERROR);
    assert_true(spec.groups & PLUMB_G_STATS);
    assert_true(spec.rtol == 1e-3 && spec.atol == 1e-5 && spec.gt == 0);
    assert_false(spec.equal_nan);
    assert_true(plumb_standard_jump(standard) == 0);
    plumb_standard_free(standard);
}

static void test_torchair(void **state)
{
    (void)state;
    struct plumb_standard *standard = load("torchair");
    struct plumb_metrics metrics = perfect();
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "cosine 1 >= 0.99");
    metrics.cosine = 0.99;
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "cosine 0.99 >= 0.99");
    metrics.cosine = 0.98;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "cosine 0.98 < 0.99");
    metrics.cosine = NAN;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "cosine is NaN, needs >= 0.99");

    metrics = perfect();
    metrics.max_rel = 0.01;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_rel 0.01 >= 0.01");
    metrics.max_rel = INFINITY;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_rel inf >= 0.01");
    metrics.max_rel = 0.0099;
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "max_rel 0.0099 >= 0.001");
    metrics.max_rel = 0.001;
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "max_rel 0.001 >= 0.001");
    metrics.max_rel = 0.000999;
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "cosine 1 >= 0.99");
    metrics.one_minus_cosine = 0.001;
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "one_minus_cosine 0.001 >= 0.001");

    /* A broken require rule goes before a broken expect rule, and the first one decides. */
    metrics.max_rel = 1;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_rel 1 >= 0.01");
    metrics.cosine = 0;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "cosine 0 < 0.99");

    struct plumb_metric_spec spec = {.groups = 0, .rtol = 9, .equal_nan = true};
    plumb_standard_spec(standard, &spec);
    assert_true(spec.groups & PLUMB_G_ERROR);
    assert_true(spec.groups & PLUMB_G_RELATIVE);
    assert_true(spec.rtol == 9);
    assert_true(spec.equal_nan);
    assert_true(plumb_standard_jump(standard) == 10);
    plumb_standard_free(standard);
}

static void test_allclose(void **state)
{
    (void)state;
    struct plumb_standard *standard = load("allclose");
    struct plumb_metrics metrics = perfect();
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "not_close 0 == 0");
    metrics.close = 97;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "not_close 3 != 0");

    struct plumb_metric_spec spec = {.groups = 0, .equal_nan = true};
    plumb_standard_spec(standard, &spec);
    assert_true(spec.groups & PLUMB_G_CLOSE);
    assert_true(spec.rtol == 1e-5 && spec.atol == 1e-8);
    assert_false(spec.equal_nan);
    plumb_standard_free(standard);
}

static const char *const builtins[] = {"xray", "torchair", "allclose"};

/* Whatever the rules say, a value that is NaN or infinite on one side only fails. */
static void test_nonfinite_mismatch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        struct plumb_standard *standard = load(builtins[i]);
        struct plumb_metrics metrics = perfect();
        metrics.classes[PLUMB_NAN][PLUMB_FINITE] = 2;
        metrics.classes[PLUMB_FINITE][PLUMB_NEG_INF] = 1;
        metrics.nonfinite_mismatch = 3;
        expect_verdict(standard, &metrics, PLUMB_FAILED,
                       "3 values are NaN or infinite on one side only "
                       "(1 finite against -inf, 2 NaN against finite)");
        metrics = perfect();
        metrics.classes[PLUMB_POS_INF][PLUMB_NEG_INF] = 1;
        metrics.nonfinite_mismatch = 1;
        expect_verdict(standard, &metrics, PLUMB_FAILED,
                       "1 value is NaN or infinite and not the same on both sides "
                       "(1 inf against -inf)");

        /* As long as it gets with a trillion values. */
        metrics = perfect();
        metrics.nonfinite_mismatch = 999999999999;
        metrics.classes[PLUMB_FINITE][PLUMB_NEG_INF] = 333333333333;
        metrics.classes[PLUMB_POS_INF][PLUMB_NEG_INF] = 333333333333;
        metrics.classes[PLUMB_NEG_INF][PLUMB_POS_INF] = 333333333333;
        metrics.classes[PLUMB_NAN][PLUMB_FINITE] = 1;
        struct plumb_verdict verdict;
        plumb_standard_judge(standard, &metrics, &verdict);
        assert_string_equal(verdict.rule + strlen(verdict.rule) - 6, ", ...)");
        plumb_standard_free(standard);
    }
}

static void test_nan_on_both_sides(void **state)
{
    (void)state;
    struct plumb_standard *standard = load("xray");
    struct plumb_metrics metrics = perfect();
    metrics.classes[PLUMB_NAN][PLUMB_NAN] = 4;
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "NaN on both sides at 4 places");
    metrics.classes[PLUMB_NAN][PLUMB_NAN] = 1;
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "NaN on both sides at 1 place");
    metrics.max_abs = 1;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_abs 1 > 0.01");
    plumb_standard_free(standard);

    /* Without equal_nan the metrics count two NaNs as not close. */
    standard = load("allclose");
    metrics.close = 99;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "not_close 1 != 0");
    plumb_standard_free(standard);
}

static void test_empty_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        struct plumb_standard *standard = load(builtins[i]);
        struct plumb_metrics metrics = {.cosine = NAN, .max_abs = NAN, .max_rel = NAN};
        expect_verdict(standard, &metrics, PLUMB_NORMAL, "both sides are empty");
        plumb_standard_free(standard);
    }
}

static void test_override(void **state)
{
    (void)state;
    struct plumb_error err;
    struct plumb_standard *standard = load("torchair");
    struct plumb_metrics metrics = perfect();
    assert_int_equal(plumb_standard_override(standard, "max_rel=0.5", &err), PLUMB_OK);
    assert_int_equal(plumb_standard_override(standard, "jump=3.5", &err), PLUMB_OK);
    assert_true(plumb_standard_jump(standard) == 3.5);
    metrics.max_rel = 0.4;
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "cosine 1 >= 0.99");
    metrics.max_rel = 0.5;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_rel 0.5 >= 0.5");
    assert_int_equal(plumb_standard_override(standard, "max_rel=inf", &err), PLUMB_OK);
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "cosine 1 >= 0.99");

    assert_int_equal(plumb_standard_override(standard, "rtol=1e-2", &err), PLUMB_OK);
    assert_int_equal(plumb_standard_override(standard, "atol=0", &err), PLUMB_OK);
    assert_int_equal(plumb_standard_override(standard, "gt=2", &err), PLUMB_OK);
    assert_int_equal(plumb_standard_override(standard, "ulp_threshold=4", &err), PLUMB_OK);
    assert_int_equal(plumb_standard_override(standard, "equal_nan=no", &err), PLUMB_OK);
    struct plumb_metric_spec spec = {.equal_nan = true};
    plumb_standard_spec(standard, &spec);
    assert_true(spec.rtol == 1e-2 && spec.atol == 0 && spec.gt == 2 && spec.ulp_threshold == 4);
    assert_false(spec.equal_nan);
    assert_int_equal(plumb_standard_override(standard, "equal_nan=yes", &err), PLUMB_OK);
    plumb_standard_spec(standard, &spec);
    assert_true(spec.equal_nan);

    static const struct {
        const char *assignment, *message;
    } bad[] = {
        {"max_abs", "'max_abs' is not of the form NAME=VALUE"},
        {"=1", "'=1' is not of the form NAME=VALUE"},
        {"", "'' is not of the form NAME=VALUE"},
        {"max_rel=", "'' is no threshold for max_rel"},
        {"max_rel=nan", "'nan' is no threshold for max_rel"},
        {"max_rel=0.1x", "'0.1x' is no threshold for max_rel"},
        {"jump=0", "'0' is no threshold for jump"},
        {"jump=inf", "'inf' is no threshold for jump"},
        {"rtol=-1", "rtol needs a number from 0 up, not '-1'"},
        {"equal_nan=maybe", "equal_nan needs yes or no, not 'maybe'"},
        {"max_abs=1", "the standard torchair has no rule on max_abs"},
        {"max_erl=1", "there is no metric or setting 'max_erl'; the nearest name is 'max_rel'"},
        {"rtoll=1", "there is no metric or setting 'rtoll'; the nearest name is 'rtol'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(plumb_standard_override(standard, bad[i].assignment, &err), PLUMB_E_ARG);
        assert_string_equal(err.message, bad[i].message);
        assert_int_equal(plumb_standard_override(standard, bad[i].assignment, NULL), PLUMB_E_ARG);
    }
    plumb_standard_free(standard);
}

static char path[] = "/tmp/standard-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static enum plumb_code load_bytes(struct plumb_standard **standard, const void *bytes, size_t size,
                                  struct plumb_error *err)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return plumb_standard_load(standard, path, err);
}

static void test_file(void **state)
{
    (void)state;
    static const char text[] = "# own rules\n"
                               "\n"
                               "  set rtol 0.5 # half\r\n"
                               "set equal_nan yes\n"
                               "expect mean_abs != 3\n"
                               "expect jump <= 20\n"
                               "expect jump <= 15\n"
                               "require\tmax_abs\t>\t-1e-3\n"
                               "require rmse >= 0\n"
                               "require count == 100\n"
                               "require max_ulp < inf";
    struct plumb_standard *standard = NULL;
    struct plumb_error err;
    assert_int_equal(load_bytes(&standard, text, sizeof text - 1, &err), PLUMB_OK);
    assert_string_equal(plumb_standard_name(standard), path);
    assert_true(plumb_standard_jump(standard) == 15);
    struct plumb_metric_spec spec = {.groups = 0};
    plumb_standard_spec(standard, &spec);
    assert_true(spec.groups & PLUMB_G_ULP);
    assert_true(spec.rtol == 0.5 && spec.equal_nan);

    struct plumb_metrics metrics = perfect();
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "max_abs 0 > -0.001");
    metrics.max_abs = -1e-3;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_abs -0.001 <= -0.001");
    metrics = perfect();
    metrics.rmse = -1;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "rmse -1 < 0");
    metrics = perfect();
    metrics.count = 123456789;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "count 1.234568e+08 != 100");
    metrics = perfect();
    metrics.max_ulp = INFINITY;
    expect_verdict(standard, &metrics, PLUMB_FAILED, "max_ulp inf >= inf");
    metrics = perfect();
    metrics.mean_abs = 3;
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "mean_abs 3 == 3");
    metrics.mean_abs = NAN; /* although NaN differs from 3 */
    expect_verdict(standard, &metrics, PLUMB_SUSPICIOUS, "mean_abs is NaN, needs != 3");
    plumb_standard_free(standard);

    static const char expect_only[] = "expect max_abs < 1\n";
    assert_int_equal(load_bytes(&standard, expect_only, sizeof expect_only - 1, &err), PLUMB_OK);
    metrics = perfect();
    expect_verdict(standard, &metrics, PLUMB_NORMAL, "max_abs 0 < 1");
    plumb_standard_free(standard);
}

static void test_file_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "there is no require or expect line, so everything would pass"},
        {"# nothing\nset gt 0\n", "there is no require or expect line, so everything would pass"},
        {"require max_abs < 1\nmax_abs < 1\n",
         "line 2: begins with 'max_abs'; a line is set, require, expect or a # comment"},
        {"set rtol\n", "line 1: write it as: set NAME VALUE"},
        {"set rtol 1 2\n", "line 1: write it as: set NAME VALUE"},
        {"\n\nset rtoll 1\n", "line 3: there is no setting 'rtoll'; there are rtol, atol, gt, "
                              "equal_nan and ulp_threshold"},
        {"set rtol -1\n", "line 1: rtol needs a number from 0 up, not '-1'"},
        {"set rtol nan\n", "line 1: rtol needs a number from 0 up, not 'nan'"},
        {"set gt inf\n", "line 1: gt needs a number from 0 up, not 'inf'"},
        {"set equal_nan 1\n", "line 1: equal_nan needs yes or no, not '1'"},
        {"set gt 1\nset gt 2\n", "line 2: gt is set a second time"},
        {"require max_abs<=0.01\n",
         "line 1: write it as: require METRIC OPERATOR NUMBER, with spaces between"},
        {"expect max_abs <= 0.01 too\n",
         "line 1: write it as: expect METRIC OPERATOR NUMBER, with spaces between"},
        {"require max_asb <= 0.01\n",
         "line 1: there is no metric 'max_asb'; the nearest name is 'max_abs'"},
        {"# a\r\nrequire cosin >= 1\r\n",
         "line 2: there is no metric 'cosin'; the nearest name is 'cosine'"},
        {"require max_abs =< 1\n", "line 1: '=<' is no operator; use < <= > >= == or !="},
        {"require max_abs < 0,01\n", "line 1: '0,01' is no threshold for max_abs"},
        {"require max_abs < nan\n", "line 1: 'nan' is no threshold for max_abs"},
        {"require jump <= 10\n", "line 1: a rule on jump has the form: expect jump <= NUMBER"},
        {"expect jump < 10\n", "line 1: a rule on jump has the form: expect jump <= NUMBER"},
        {"expect jump <= 0\n", "line 1: '0' is no threshold for jump"},
    };
    struct plumb_error err;
    struct plumb_standard *standard = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(load_bytes(&standard, bad[i].text, strlen(bad[i].text), &err),
                         PLUMB_E_FORMAT);
        assert_string_equal(err.message, bad[i].message);
        assert_string_equal(err.file, path);
        assert_null(standard);
    }

    static const char zero[] = "require max_abs < 1\nrequire\0max_abs < 1\n";
    assert_int_equal(load_bytes(&standard, zero, sizeof zero - 1, &err), PLUMB_E_FORMAT);
    assert_string_equal(err.message, "line 2: holds a zero byte; not a text");

    char line[300];
    memset(line, 'x', sizeof line);
    assert_int_equal(load_bytes(&standard, line, sizeof line, &err), PLUMB_E_FORMAT);
    assert_string_equal(err.message, "line 1: longer than 200 characters");
    memcpy(line, "require ", 8);
    memcpy(line + 150, " < 1", 4);
    assert_int_equal(load_bytes(&standard, line, 154, &err), PLUMB_E_FORMAT);
    assert_memory_equal(err.message, "line 1: there is no metric 'xxx", 31);

    size_t size = (1u << 20) + 1;
    char *huge = test_malloc(size);
    memset(huge, '\n', size);
    assert_int_equal(load_bytes(&standard, huge, size, &err), PLUMB_E_FORMAT);
    assert_string_equal(err.message, "larger than a text of rules can be");
    test_free(huge);
}

static void test_unknown(void **state)
{
    (void)state;
    struct plumb_error err;
    struct plumb_standard *standard = NULL;
    assert_int_equal(plumb_standard_load(&standard, "xrya", &err), PLUMB_E_ARG);
    assert_string_equal(err.message, "there is no standard 'xrya' and no file of that name; built "
                                     "in are: " STANDARD_LIST);
    assert_int_equal(plumb_standard_load(&standard, "xrya", NULL), PLUMB_E_ARG);
    assert_int_not_equal(plumb_standard_load(&standard, ".", &err), PLUMB_OK);
    assert_null(standard);
    plumb_standard_free(NULL);
}

/* The text of a built-in, saved to a file, is the same standard. */
static void test_text(void **state)
{
    (void)state;
    assert_null(plumb_standard_text("none"));
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        const char *text = plumb_standard_text(builtins[i]);
        assert_non_null(text);
        assert_non_null(strstr(text, "\nrequire "));
        struct plumb_error err;
        struct plumb_standard *copy, *standard = load(builtins[i]);
        assert_int_equal(load_bytes(&copy, text, strlen(text), &err), PLUMB_OK);
        struct plumb_metric_spec a = {.groups = 0}, b = {.groups = 0};
        plumb_standard_spec(standard, &a);
        plumb_standard_spec(copy, &b);
        assert_int_equal(a.groups, b.groups);
        assert_true(a.rtol == b.rtol && a.atol == b.atol && a.gt == b.gt);
        assert_true(plumb_standard_jump(standard) == plumb_standard_jump(copy));
        plumb_standard_free(copy);
        plumb_standard_free(standard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xray),
        cmocka_unit_test(test_torchair),
        cmocka_unit_test(test_allclose),
        cmocka_unit_test(test_nonfinite_mismatch),
        cmocka_unit_test(test_nan_on_both_sides),
        cmocka_unit_test(test_empty_tensors),
        cmocka_unit_test(test_override),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_file_errors),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
