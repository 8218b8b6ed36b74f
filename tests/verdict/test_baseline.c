#define _GNU_SOURCE
#include "verdict/baseline_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../scratch.h"

static const struct plumb_baseline_options how = {.seed = 1234, .arithmetic = NULL};

static struct plumb_deviation scaled(void)
{
    return (struct plumb_deviation){.call = "Functional.layer_norm.3.forward",
                                    .result = "output 0",
                                    .step = 0,
                                    .rank = -1,
                                    .word = PLUMB_WORD_FAULT,
                                    .worst = 1234.5678,
                                    .pattern = "everything is scaled by 1.03 (37 sigma)"};
}

static struct plumb_baseline *make(const struct plumb_deviation *list, size_t n)
{
    struct plumb_baseline *out = NULL;
    struct plumb_error err;
    assert_int_equal(plumb_baseline_new(&how, &out, &err), PLUMB_OK);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(plumb_baseline_add(out, &list[k], &err), PLUMB_OK);
    return out;
}

static void test_standing(void **state)
{
    (void)state;
    const struct plumb_deviation before = scaled();
    struct plumb_baseline *accepted = make(&before, 1);
    struct plumb_deviation now = before;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_ACCEPTED);
    now.worst *= 1.9;
    now.pattern = "everything is scaled by 0.97 (31 sigma)";
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_ACCEPTED);
    now.worst = 2.1 * before.worst;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_WORSE);
    now.worst = INFINITY;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_WORSE);
    now = before;
    now.pattern = "transposed: the last two dimensions are exchanged";
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_WORSE);
    now.pattern = NULL;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_WORSE);
    now = before;
    now.word = PLUMB_WORD_CHEAPER; /* better, whatever explains it */
    now.arithmetic = "TF32 inputs";
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_ACCEPTED);
    now.word = PLUMB_WORD_ROUNDING;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_FINE);
    now = before;
    now.rank = 1;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_NEW);
    now = before;
    now.result = "output 1";
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_NEW);
    plumb_baseline_free(accepted);
}

static void test_arithmetic(void **state)
{
    (void)state;
    const struct plumb_deviation before = {.call = "Torch.mm.0",
                                           .step = -1,
                                           .rank = -1,
                                           .word = PLUMB_WORD_CHEAPER,
                                           .worst = 40,
                                           .arithmetic = "TF32 inputs"};
    struct plumb_baseline *accepted = make(&before, 1);
    struct plumb_deviation now = before;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_ACCEPTED);
    now.arithmetic = "bfloat16 inputs";
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_WORSE);
    now = before;
    now.word = PLUMB_WORD_FAULT;
    assert_int_equal(plumb_baseline_ask(accepted, &now), PLUMB_STANDING_WORSE);
    plumb_baseline_free(accepted);
}

/* Places and counts may be others on another machine; what it looks like may not. */
static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *before, *now;
        bool same;
    } cases[] = {
        {"1 element in row 3 is zero", "12 elements in rows 3 to 5 are zero", true},
        {"rolled by 3 along the last dimension", "rolled by -1 along the last dimension", true},
        {"1 element in row 3 is zero", "1 element in column 3 is zero", false},
        {"1 element in row 3 is zero", "1 element in row 3 is zero too", false},
        {"", "", true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct plumb_deviation is = scaled();
        is.pattern = cases[k].before;
        struct plumb_baseline *accepted = make(&is, 1);
        is.pattern = cases[k].now;
        assert_int_equal(plumb_baseline_ask(accepted, &is),
                         cases[k].same ? PLUMB_STANDING_ACCEPTED : PLUMB_STANDING_WORSE);
        plumb_baseline_free(accepted);
    }
}

static void test_compare(void **state)
{
    (void)state;
    struct plumb_deviation before[4], now[5];
    static const char *const names[] = {"a", "b", "c", "d"};
    for (size_t k = 0; k < 4; k++) {
        before[k] = now[k] = scaled();
        before[k].call = now[k].call = names[k];
    }
    now[1].worst *= 10;
    now[2].word = PLUMB_WORD_ROUNDING;
    now[3].call = "e\n\033[31m";
    now[4] = now[0];
    now[4].worst = 1; /* of one result the worse is kept */
    struct plumb_baseline *accepted = make(before, 4), *found = make(now, 5);
    struct plumb_baseline_diff *diff = NULL;
    struct plumb_error err;
    assert_int_equal(plumb_baseline_compare(accepted, found, &diff, &err), PLUMB_OK);
    assert_int_equal(plumb_baseline_count(found), 3);
    assert_int_equal(diff->n_changes, 4);
    assert_string_equal(diff->changes[3].why, "not there now");
    char *text = plumb_baseline_diff_text(diff, 0);
    assert_string_equal(
        text, "baseline: accepted: 1, new: 1, worse: 1, gone: 2\n"
              "  new: e?\?[31m, output 0, step 0: fault\n"
              "  worse: b, output 0, step 0: fault, an excess of 1.2e+04 sigma, 1.2e+03 before\n"
              "  gone: c, output 0, step 0: now rounding\n"
              "  gone: d, output 0, step 0: not there now\n");
    free(text);
    text = plumb_baseline_diff_text(diff, 1);
    assert_non_null(strstr(text, "  gone: 1 more\n"));
    free(text);
    plumb_baseline_diff_free(diff);
    plumb_baseline_free(accepted);
    plumb_baseline_free(found);
}

/* What was written is read again, and its order does not depend on who came first. */
static void test_file(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    struct plumb_deviation list[3] = {scaled(), scaled(), scaled()};
    list[1].call = "\"quoted\" \\ \xff";
    list[1].worst = INFINITY;
    list[2].call = "right";
    list[2].word = PLUMB_WORD_SAME;
    struct plumb_baseline *found = make(list, 3), *again = NULL;
    struct plumb_baseline_diff *diff = NULL;
    struct plumb_error err;
    const char *path = scratch_path(&scratch, "baseline.json");
    assert_int_equal(plumb_baseline_write(found, path, &err), PLUMB_OK);
    char text[1024] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(
        text,
        "{\"plumb_baseline\": 1, \"verdict_version\": 2, \"seed\": 1234, \"arithmetic\": \"\",\n"
        " \"accepted\": [\n"
        "  {\"call\": \"\\\"quoted\\\" \\\\ \xef\xbf\xbd\", \"result\": \"output 0\", \"step\": 0, "
        "\"verdict\": \"fault\", \"worst\": null, \"pattern\": \"everything is scaled by 1.03 (37 "
        "sigma)\"},\n"
        "  {\"call\": \"Functional.layer_norm.3.forward\", \"result\": \"output 0\", \"step\": 0, "
        "\"verdict\": \"fault\", \"worst\": 1.2e+03, \"pattern\": \"everything is scaled by 1.03 "
        "(37 sigma)\"}\n"
        " ]}\n");
    assert_int_equal(plumb_baseline_read(path, &how, &again, &err), PLUMB_OK);
    assert_int_equal(plumb_baseline_count(again), 2);
    assert_int_equal(plumb_baseline_ask(again, &list[0]), PLUMB_STANDING_ACCEPTED);
    assert_int_equal(plumb_baseline_compare(again, again, &diff, &err), PLUMB_OK);
    assert_int_equal(diff->count[PLUMB_STANDING_ACCEPTED], 2);
    assert_int_equal(diff->n_changes, 0);
    plumb_baseline_diff_free(diff);
    plumb_baseline_free(again);
    plumb_baseline_free(found);
    assert_int_equal(plumb_baseline_read(scratch_path(&scratch, "none"), &how, &again, &err),
                     PLUMB_E_IO);
    scratch_remove(&scratch);
}

#define HEAD                                                                                       \
    "{\"plumb_baseline\": 1, \"verdict_version\": 2, \"seed\": 1234, \"arithmetic\": \"\", "
#define ONE "{\"call\": \"a\", \"verdict\": \"fault\", \"worst\": 1}"

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum plumb_code code;
        const char *said;
    } cases[] = {
        {"", PLUMB_E_FORMAT, ""},
        {"[]", PLUMB_E_FORMAT, "it is no baseline"},
        {"{}", PLUMB_E_FORMAT, "it is no baseline"},
        {"{\"plumb_baseline\": 2, \"verdict_version\": 2, \"seed\": 1, \"arithmetic\": \"\", "
         "\"accepted\": []}",
         PLUMB_E_UNSUPPORTED, "form 2"},
        {"{\"plumb_baseline\": 1, \"verdict_version\": 7, \"seed\": 1234, \"arithmetic\": \"\", "
         "\"accepted\": []}",
         PLUMB_E_UNSUPPORTED, "verdict version 7"},
        {"{\"plumb_baseline\": 1, \"verdict_version\": 2, \"seed\": 1, \"arithmetic\": \"\", "
         "\"accepted\": []}",
         PLUMB_E_UNSUPPORTED, "seed 1"},
        {"{\"plumb_baseline\": 1, \"verdict_version\": 2, \"seed\": 1234, \"arithmetic\": "
         "\"tf32\", \"accepted\": []}",
         PLUMB_E_UNSUPPORTED, "'tf32'"},
        {HEAD "\"accepted\": 3}", PLUMB_E_FORMAT, "a list"},
        {HEAD "\"accepted\": [3]}", PLUMB_E_FORMAT, "a deviation is expected"},
        {HEAD "\"accepted\": [{}]}", PLUMB_E_FORMAT, "needs call"},
        {HEAD "\"accepted\": [{\"call\": \"a\\u0000b\"}]}", PLUMB_E_FORMAT, "NUL"},
        {HEAD "\"accepted\": [{\"call\": 3}]}", PLUMB_E_FORMAT, "a text"},
        {HEAD "\"accepted\": [{\"step\": -2}]}", PLUMB_E_FORMAT, "a whole number"},
        {HEAD "\"accepted\": [{\"worst\": -2}]}", PLUMB_E_FORMAT, "from 0 on"},
        {HEAD "\"accepted\": [{\"worst\": NaN}]}", PLUMB_E_FORMAT, "from 0 on"},
        {HEAD "\"accepted\": [{\"verdict\": \"rounding\"}]}", PLUMB_E_FORMAT, "only 'fault'"},
        {HEAD "\"accepted\": [{\"cal\": \"a\"}]}", PLUMB_E_FORMAT, "no such member"},
        {HEAD "\"accepted\": [" ONE ", " ONE "]}", PLUMB_E_FORMAT, "twice"},
        {HEAD "\"accepted\": [" ONE "]} x", PLUMB_E_FORMAT, ""},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct plumb_baseline *out = NULL;
        struct plumb_error err = {0};
        const enum plumb_code code =
            baseline_parse(cases[k].text, strlen(cases[k].text), &how, &out, &err);
        if (code != cases[k].code || !strstr(err.message, cases[k].said) || out)
            fail_msg("%s: %d, %s", cases[k].text, code, err.message);
    }
    /* Whatever is cut off, it is an error. */
    static const char whole[] = HEAD "\"accepted\": [" ONE "]}";
    struct plumb_baseline *out = NULL;
    for (size_t size = 0; size < sizeof whole - 1; size++)
        assert_int_equal(baseline_parse(whole, size, &how, &out, NULL), PLUMB_E_FORMAT);
    assert_int_equal(baseline_parse(whole, sizeof whole - 1, &how, &out, NULL), PLUMB_OK);
    plumb_baseline_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standing), cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_kinds),    cmocka_unit_test(test_compare),
        cmocka_unit_test(test_file),     cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
