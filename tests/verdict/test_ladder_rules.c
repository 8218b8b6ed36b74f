/* Rule sets as text: what is read, what is printed, and what is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/profiles.h"
#include "msprobe/profile.h"
#include "scratch.h"
#include "verdict/ladder_names.h"
#include "verdict/ladder_rules.h"
#include "verdict/precheck.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

#include <math.h>
#include <string.h>

static struct arena arena;

static const struct standard_set *read_text(const char *text)
{
    const struct standard_set *set = NULL;
    struct plumb_error err = {0};
    if (rules_parse(precheck_profiles, text, strlen(text), &arena, &set, &err))
        fail_msg("%s", err.message);
    return set;
}

static void assert_same(const struct standard_set *a, const struct standard_set *b)
{
    struct rules_number number;
    assert_ptr_equal(a->profile, b->profile);
    for (size_t i = 0; rules_number(i, &number); i++)
        assert_memory_equal((const char *)a + number.offset, (const char *)b + number.offset,
                            sizeof(double));
    for (int i = 0; i < STANDARD_COUNT; i++)
        for (const char *const *name = a->apis[i]; *name; name++)
            assert_int_equal(standard_of_api(b, *name), i);
    for (int i = 0; i < STANDARD_LEVELS; i++)
        for (const char *const *name = a->level_apis[i]; *name; name++)
            assert_string_equal(standard_level_of(b, *name)->name, a->levels[i].name);
}

static void assert_round_trip(const struct standard_set *set)
{
    struct buf text = {0}, again = {0};
    rules_print(&text, set);
    const struct standard_set *back = read_text(text.data);
    assert_same(set, back);
    assert_same(back, set);
    rules_print(&again, back);
    assert_string_equal(again.data, text.data);
    buf_free(&text);
    buf_free(&again);
}

static void test_round_trip(void **state)
{
    (void)state;
    assert_round_trip(&standards_documented);
    assert_round_trip(&msprobe_standards);
    assert_same(read_text(""), &standards_documented);
    assert_same(read_text("base msprobe"), &msprobe_standards);
    assert_round_trip(read_text("set cosine 0.123456789012345678\nset L0.rmse inf\n"
                                "use benchmark matmul mul\nuse ulp add mine\nlevel L0 gelu\n"
                                "level L1 mine sum\nset float8.ulp 0x1.8p-3\n"));
    assert_round_trip(read_text("base msprobe\nlevel L0 GELU\nset float16.small 0"));
}

/* Every number has a name, and every name its own number: all bytes of a set but the lists. */
static void test_names(void **state)
{
    (void)state;
    struct standard_set set = standards_documented;
    struct rules_number number;
    size_t n = 0;
    for (; rules_number(n, &number); n++) {
        double value;
        memcpy(&value, (char *)&set + number.offset, sizeof value);
        assert_true(value >= 0); /* no other name has it */
        value = NAN;
        memcpy((char *)&set + number.offset, &value, sizeof value);
    }
    const size_t in_levels = offsetof(struct standard_level, balance) / sizeof(double);
    const size_t plain =
        (offsetof(struct standard_set, limits) - offsetof(struct standard_set, cosine)) /
        sizeof(double);
    assert_int_equal(n, plain + STANDARD_TYPES * (sizeof *set.limits / sizeof(double)) +
                            STANDARD_LEVELS * in_levels);
}

static void test_overrides(void **state)
{
    (void)state;
    const struct standard_set *set = read_text("# mine\n"
                                               "\tbase documented  # first\r\n"
                                               "set cosine 0.5\n"
                                               "set cosine 0.75 # counts\n"
                                               "set float16.small 0x1p-3\n"
                                               "set L1.max_rel 7\n"
                                               "use absolute matmul linalg.inv\n"
                                               "use benchmark abs\n"
                                               "level L1 matmul\n"
                                               "level L0 Embedding");
    assert_true(set->cosine == 0.75);
    assert_true(standard_limits(set, PLUMB_F16)->small == 0.125);
    assert_true(standard_limits(set, PLUMB_BF16)->small == 0x1p-8);
    assert_int_equal(standard_of_api(set, "matmul"), STANDARD_ABSOLUTE);
    assert_int_equal(standard_of_api(set, "linalg.inv"), STANDARD_ABSOLUTE);
    assert_int_equal(standard_of_api(set, "abs"), STANDARD_BENCHMARK);
    assert_int_equal(standard_of_api(set, "mm"), STANDARD_ULP);
    assert_true(standard_level_of(set, "matmul")->max_rel == 7);
    assert_string_equal(standard_level_of(set, "embedding")->name, "L0");
    assert_int_equal(standard_of_api(&standards_documented, "matmul"), STANDARD_ULP);
}

/* The numbers that a verdict names are those of the file. */
static void test_verdicts(void **state)
{
    (void)state;
    const double b[] = {1, 2, 3, 4};
    const float d[] = {1, 2, 3, 4.002f};
    const int64_t n = 4;
    struct plumb_tensor bench, device;
    plumb_tensor_init(&bench, PLUMB_F64, 1, &n, NULL);
    plumb_tensor_init(&device, PLUMB_F32, 1, &n, NULL);
    bench.data = b;
    device.data = d;
    const struct plumb_arg sides[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &bench},
                                      {.kind = PLUMB_ARG_TENSOR, .tensor = &device}};
    static const struct {
        const char *text, *api;
        enum check_status status;
        const char *words;
    } cases[] = {
        {"", "softmax", STATUS_WARNING, "dual-10000 0.75 is not above 0.9999"},
        {"base msprobe", "softmax", STATUS_WARNING, "dual-10000 0.75 is not above 0.9999"},
        {"set max_abs 0.01", "softmax", STATUS_PASS, "is below 0.01"},
        {"base msprobe\nset max_abs 0.01", "softmax", STATUS_PASS, "is below 0.01"},
        {"set cosine 1", "softmax", STATUS_ERROR, "is not above 1"},
        {"set dual_10000 0.5", "softmax", STATUS_PASS, "dual-10000 0.75 is above 0.5"},
        {"use binary softmax", "softmax", STATUS_ERROR, "binary consistency: 1 of 4"},
        {"", "abs", STATUS_ERROR, "binary consistency: 1 of 4"},
        {"use benchmark abs", "abs", STATUS_WARNING, "dual-10000"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct judge_options options = {.rules = read_text(cases[k].text), .precision = 14};
        struct details_row row;
        assert_int_equal(
            judge_output(&options, cases[k].api, false, &sides[0], &sides[1], &arena, &row),
            PLUMB_OK);
        assert_int_equal(row.status, cases[k].status);
        assert_non_null(strstr(row.message, cases[k].words));
    }
    /* What counts as small, and with which tolerance. */
    const struct judge_options small = {
        .rules = read_text("set float32.small 10\nset float32.atol 0.001\nset float32.ulp 1e9"),
        .precision = 4};
    struct details_row row;
    judge_output(&small, "softmax", false, &sides[0], &sides[1], &arena, &row);
    assert_string_equal(row.cell[CELL_SMALL], "0.2500");
    assert_string_equal(row.cell[CELL_ABS_RATE], "0.2500");
    assert_string_equal(row.cell[CELL_ULP_RATE], "0.0000");
    const struct judge_options wide = {.rules = read_text("set float32.small 10\n"
                                                          "set float32.atol 1"),
                                       .precision = 4};
    judge_output(&wide, "softmax", false, &sides[0], &sides[1], &arena, &row);
    assert_string_equal(row.cell[CELL_SMALL], "0.2500");
    assert_string_equal(row.cell[CELL_ABS_RATE], "0.0000");
    /* Under base msprobe the rates are filled for 8-bit inputs. */
    const struct judge_options origin = {
        .rules = read_text("base msprobe\nset float32.small 0\nset float32.rtol 0.01"),
        .precision = 4};
    judge_output(&origin, "softmax", true, &sides[0], &sides[1], &arena, &row);
    assert_string_equal(row.cell[CELL_REL_RATE], "0.0000");
    const struct judge_options strict = {.rules = &msprobe_standards, .precision = 4};
    judge_output(&strict, "softmax", true, &sides[0], &sides[1], &arena, &row);
    assert_string_equal(row.cell[CELL_REL_RATE], "0.2500");
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"sett cosine 1",
         "line 1: begins with 'sett'; a line is base, set, use, level or a # comment"},
        {"\n\nbase other", "line 3: write it as: base documented|msprobe"},
        {"base", "line 1: write it as: base documented|msprobe"},
        {"set cosine 1\nbase msprobe", "line 2: base has to come before everything else"},
        {"base msprobe\nbase msprobe", "line 2: base has to come before everything else"},
        {"set cosine", "line 1: write it as: set NAME NUMBER"},
        {"set cosine = 1", "line 1: write it as: set NAME NUMBER"},
        {"set cosin 1", "line 1: there is no number 'cosin'; did you mean 'cosine'? "
                        "'plumb standard documented' shows all"},
        {"set float16.smal 1", "line 1: there is no number 'float16.smal'; did you mean "
                               "'float16.small'? 'plumb standard documented' shows all"},
        {"base msprobe\nset what 1",
         "line 2: there is no number 'what'; 'plumb standard msprobe' shows all"},
        {"set cosine 1.5", "line 1: cosine needs a number from 0 to 1, not '1.5'"},
        {"set max_abs -1", "line 1: max_abs needs a number from 0 up, not '-1'"},
        {"set max_abs 1x", "line 1: max_abs needs a number from 0 up, not '1x'"},
        {"set max_abs nan", "line 1: max_abs needs a number from 0 up, not 'nan'"},
        {"use ulps mm", "line 1: write it as: use absolute|binary|ulp|thousandth|benchmark API..."},
        {"use ulp", "line 1: write it as: use absolute|binary|ulp|thousandth|benchmark API..."},
        {"use", "line 1: write it as: use absolute|binary|ulp|thousandth|benchmark API..."},
        {"use ulp Torch.matmul",
         "line 1: APIs are named without their prefix: 'matmul', not 'Torch.matmul'"},
        {"use ulp a,b", "line 1: 'a,b' is no name of an API"},
        {"base msprobe\nuse ulp mm",
         "line 2: base msprobe holds all floats to the benchmark standard, whatever the API; use "
         "needs base documented"},
        {"level L3 mm", "line 1: write it as: level L0|L1|L2 API..."},
        {"level L1", "line 1: write it as: level L0|L1|L2 API..."},
        {"level L1 =x", "line 1: '=x' is no name of an API"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const struct standard_set *set;
        struct plumb_error err = {0};
        assert_int_equal(
            rules_parse(precheck_profiles, bad[k].text, strlen(bad[k].text), &arena, &set, &err),
            PLUMB_E_FORMAT);
        assert_string_equal(err.message, bad[k].message);
        assert_null(set);
    }
    struct buf many = {0};
    for (int k = 0; k < 2000; k++)
        buf_printf(&many, "level L1 api_%d\n", k);
    const struct standard_set *set;
    struct plumb_error err = {0};
    assert_int_equal(rules_parse(precheck_profiles, many.data, many.size, &arena, &set, &err),
                     PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "more than 1024 names"));
    buf_free(&many);
}

static void test_files(void **state)
{
    (void)state;
    struct scratch scratch;
    const struct standard_set *set;
    struct plumb_error err = {0};
    scratch_make(&scratch);
    const char *path = scratch_write(&scratch, "mine.rules", "set cosine 0.5\nset coarse 1\n", 29);
    assert_int_equal(rules_load(precheck_profiles, path, &arena, &set, &err), PLUMB_E_FORMAT);
    assert_string_equal(err.file, path);
    assert_memory_equal(err.message, "line 2: there is no number 'coarse'", 35);
    scratch_write(&scratch, "mine.rules", "set cosine 0.5\n", 15);
    assert_int_equal(rules_load(precheck_profiles, path, &arena, &set, &err), PLUMB_OK);
    assert_true(set->cosine == 0.5);
    assert_int_equal(rules_load(precheck_profiles, NULL, &arena, &set, &err), PLUMB_OK);
    assert_ptr_equal(set, &standards_documented);
    assert_int_equal(rules_load(precheck_profiles, "msprobe", &arena, &set, &err), PLUMB_OK);
    assert_ptr_equal(set, &msprobe_standards);
    assert_int_equal(rules_load(precheck_profiles, "no/such", &arena, &set, &err), PLUMB_E_ARG);
    assert_string_equal(err.message, "there are no rules 'no/such' and no file of that name; built "
                                     "in are: documented, msprobe");
    assert_int_not_equal(rules_load(precheck_profiles, scratch.folder, &arena, &set, &err),
                         PLUMB_OK);
    scratch_remove(&scratch);
}

static int release(void **state)
{
    (void)state;
    arena_free(&arena);
    arena = (struct arena){0};
    return 0;
}

/* What the tables of options say is what there is. */
static void test_profiles(void **state)
{
    (void)state;
    struct buf names = {0};
    rules_names(&names, precheck_profiles, "|");
    assert_string_equal(names.data, PROFILE_NAMES);
    for (size_t i = 0; all_profiles[i]; i++) {
        assert_ptr_equal(all_profiles[i]->precheck, precheck_profiles[i]);
        assert_string_equal(all_profiles[i]->name, precheck_profiles[i]->name);
        assert_ptr_equal(plumb_profile_find(all_profiles[i]->name), all_profiles[i]);
    }
    assert_ptr_equal(profile_chosen(1), plumb_profile_find(PROFILE_OTHER));
    assert_null(profile_chosen(0));
    assert_null(profile_chosen(-1));
    assert_null(plumb_profile_find("other"));
    assert_non_null(profile_named(precheck_profiles, PROFILE_OTHER)->values->recipe);
    assert_ptr_equal(profile_named(precheck_profiles, NULL), &profile_documented);
    assert_null(profile_named(precheck_profiles, "other"));
    buf_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiles), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_names),    cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_verdicts), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
