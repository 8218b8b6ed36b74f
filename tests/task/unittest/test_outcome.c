/* The CSV files of the generated tests, and how two of them are joined. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scratch.h"

#include "base/buf.h"
#include "plumb/unittest.h"
#include "task/unittest/outcome.h"

#define TITLES                                                                                     \
    "name,op_name,dtype,shape,min-val,max-val,is_pass,max,1e-1,1e-2,1e-3,1e-4,1e-5,1e-6,1e-7\n"

static void check_error(const char *text, const char *message)
{
    struct outcome_file file;
    struct plumb_error err = {0};
    char shown[1024];
    assert_int_equal(outcome_parse(&file, text, strlen(text), &err), PLUMB_E_FORMAT);
    assert_string_equal(plumb_error_text(&err, shown, sizeof shown), message);
    outcome_close(&file);
}

static void test_errors(void **state)
{
    (void)state;
    check_error("", "the file is empty; pytest --detail_compare_path=FILE writes such files");
    check_error("name,op_name\n", "line 1: there is no column \"dtype\"; files of pytest "
                                  "--detail_compare_path=FILE have it");
    check_error(TITLES "1-aten,aten.f,torch.int8,[1]\n",
                "line 2: the row ends before the column \"min-val\"");
    check_error(TITLES "1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,many\n",
                "line 2: \"many\" in the column \"1e-7\" is no number of elements");
    check_error(TITLES "1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,-1\n",
                "line 2: \"-1\" in the column \"1e-7\" is no number of elements");
    check_error(TITLES "1-aten,f,d,[1],0,0,pass,,0,0,0,0,0,0,0\n",
                "line 2: \"\" in the column \"max\" is no number");
    check_error(TITLES "1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0\n\n"
                       "1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0\n",
                "line 4: the name \"1-aten\" was on line 2 already; give each run of pytest one "
                "folder and a file of its own");
}

static void test_read(void **state)
{
    (void)state;
    struct outcome_file file;
    struct plumb_error err = {0};
    const char text[] = TITLES "100000-aten,f,d,[1],0,0,pass,inf,1,1,1,1,1,1,1\r\n"
                               "99999-aten,f,d,\"[2, 3]\",nan,0,skip,,,,,,,,\r\n";
    assert_int_equal(outcome_parse(&file, text, sizeof text - 1, &err), PLUMB_OK);
    assert_int_equal(file.count, 2);
    assert_string_equal(file.rows[0].text[OUTCOME_NAME], "99999-aten");
    assert_true(file.rows[0].skipped);
    assert_true(file.rows[1].error > 1e308);
    assert_int_equal(*map_get(&file.names, "100000-aten", 11), 1);
    outcome_close(&file);
    assert_true(outcome_elements("[]") == 1);
    assert_true(outcome_elements("[2, 3]") == 6);
    assert_true(outcome_elements("[2, -3]") == 0);
    assert_true(outcome_elements("2") == 0);
    assert_true(outcome_elements("[2") == 0);
    assert_true(outcome_elements("") == 0);
}

struct sides {
    struct scratch scratch;
    char first[1024], second[1024];
};

static void write_sides(struct sides *s, const char *names[2], const char *first,
                        const char *second)
{
    struct buf text = {0};
    scratch_make(&s->scratch);
    buf_printf(&text, TITLES "%s", first);
    snprintf(s->first, sizeof s->first, "%s",
             scratch_write(&s->scratch, names[0], text.data, text.size));
    text.size = 0;
    buf_printf(&text, TITLES "%s", second);
    snprintf(s->second, sizeof s->second, "%s",
             scratch_write(&s->scratch, names[1], text.data, text.size));
    buf_free(&text);
}

static const char *cell(const struct plumb_unittest_diff *diff, size_t row, size_t column)
{
    return plumb_table_cell(diff->table, row, column)->as.text;
}

static void test_verdicts(void **state)
{
    (void)state;
    struct sides s;
    struct plumb_unittest_diff diff;
    struct plumb_error err = {0};
    write_sides(&s, (const char *[]){"xpu.csv", "gpu.csv"},
                "1-aten,f,d,[1000],0,0,pass,0,0,0,0,0,0,0,1\n"  /* one more: allowed */
                "2-aten,f,d,[1000],0,0,pass,0,0,0,0,0,0,0,2\n"  /* two more: not */
                "3-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,1\n"    /* 0.1 % of 10 is none */
                "4-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n"    /* better than the other */
                "5-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n"    /* another operator */
                "6-aten,f,d,[10],,,skip,,,,,,,,\n"              /* did not run */
                "7-aten,f,d,[10000],0,0,fail,9,1,1,1,1,1,1,1\n" /* one wild element */
                "8-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n",   /* here only */
                "9-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n"    /* there only */
                "1-aten,f,d,[1000],0,0,pass,0,0,0,0,0,0,0,0\n"
                "2-aten,f,d,[1000],0,0,pass,0,0,0,0,0,0,0,0\n"
                "3-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n"
                "4-aten,f,d,[10],0,0,pass,5,9,9,9,9,9,9,9\n"
                "5-aten,g,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n"
                "6-aten,f,d,[10],0,0,pass,0,0,0,0,0,0,0,0\n"
                "7-aten,f,d,[10000],0,0,pass,0,0,0,0,0,0,0,0\n");
    assert_int_equal(plumb_unittest_compare(&diff, s.first, s.second, 0.001, &err), PLUMB_OK);
    static const char *const wanted[] = {"pass", "fail", "fail",        "pass",       "fail",
                                         "skip", "fail", "only in xpu", "only in gpu"};
    assert_int_equal(plumb_table_rows(diff.table), 9);
    for (size_t i = 0; i < 9; i++)
        assert_string_equal(cell(&diff, i, 6), wanted[i]);
    assert_int_equal(diff.passed, 2);
    assert_int_equal(diff.failed, 4);
    assert_int_equal(diff.skipped, 1);
    assert_int_equal(diff.broken[0], 1);
    assert_int_equal(diff.broken[1], 0);
    assert_true(diff.without_inputs[0] && diff.without_inputs[1]);
    assert_int_equal(diff.first_only, 1);
    assert_int_equal(diff.second_only, 1);
    assert_string_equal(plumb_table_column(diff.table, 7)->title, "xpu_max");
    assert_string_equal(plumb_table_column(diff.table, 9)->title, "xpu_1e-1");
    assert_string_equal(plumb_table_column(diff.table, 22)->title, "gpu_1e-7");
    plumb_unittest_diff_free(&diff);
    assert_int_equal(plumb_unittest_compare(&diff, s.first, s.second, 0, &err), PLUMB_OK);
    assert_int_equal(diff.failed, 5);
    plumb_unittest_diff_free(&diff);
    scratch_remove(&s.scratch);
}

/* What becomes of one row of both files: dtype to 1e-7 of each. */
static void check_row(const char *first, const char *second, const char *wanted)
{
    struct sides s;
    struct plumb_unittest_diff diff;
    struct plumb_error err = {0};
    char rows[2][256];
    snprintf(rows[0], sizeof rows[0], "1-aten,f,%s\n", first);
    snprintf(rows[1], sizeof rows[1], "1-aten,f,%s\n", second);
    write_sides(&s, (const char *[]){"xpu.csv", "gpu.csv"}, rows[0], rows[1]);
    assert_int_equal(plumb_unittest_compare(&diff, s.first, s.second, 0.001, &err), PLUMB_OK);
    if (strcmp(cell(&diff, 0, 6), wanted) != 0)
        fail_msg("%s against %s: %s", first, second, cell(&diff, 0, 6));
    plumb_unittest_diff_free(&diff);
    scratch_remove(&s.scratch);
}

static void test_wild_errors(void **state)
{
    (void)state;
    static const char good[] = "torch.float32,[100000],-2,3,pass,1e-7,0,0,0,0,0,0,0";
    check_row("torch.float32,[100000],-2,3,pass,inf,1,1,1,1,1,1,1", good, "fail");
    check_row("torch.float32,[100000],-2,3,pass,nan,1,1,1,1,1,1,1", good, "fail");
    check_row("torch.float32,[100000],-2,3,pass,1e6,1,1,1,1,1,1,1", good, "fail");
    check_row("torch.float32,[100000],-2,3,fail,1e-2,0,0,1,1,1,1,1", good, "fail");
    /* Not beside a device that is no better either. */
    check_row("torch.float32,[100000],-2,3,fail,inf,1,1,1,1,1,1,1",
              "torch.float32,[100000],-2,3,fail,inf,1,1,1,1,1,1,1", "fail");
    check_row(good, "torch.float32,[100000],-2,3,fail,inf,9,9,9,9,9,9,9", "fail");
    check_row("torch.int64,[100000],0,9,fail,1,1,1,1,1,1,1,1",
              "torch.int64,[100000],0,9,pass,0,0,0,0,0,0,0,0", "fail");
    check_row(good, good, "pass");
}

/* A count decides from the error on that the type has by itself. */
static void test_own_errors(void **state)
{
    (void)state;
    check_row("torch.float32,[100],-2,3,pass,2.4e-7,0,0,0,0,0,0,40",
              "torch.float32,[100],-2,3,pass,0,0,0,0,0,0,0,0", "pass");
    check_row("torch.float32,[100],-2,3,pass,9e-6,0,0,0,0,0,40,40",
              "torch.float32,[100],-2,3,pass,0,0,0,0,0,0,0,0", "pass"); /* 1e-6 of 3 */
    check_row("torch.float32,[100],-2,3,pass,2e-5,0,0,0,0,40,40,40",
              "torch.float32,[100],-2,3,pass,0,0,0,0,0,0,0,0", "fail");
    check_row("torch.float32,[100],-200,3000,pass,2e-3,0,0,40,40,40,40,40",
              "torch.float32,[100],-200,3000,pass,0,0,0,0,0,0,0,0", "pass");
    check_row("torch.float32,[100],0,1e-3,pass,2e-6,0,0,0,0,0,40,40",
              "torch.float32,[100],0,1e-3,pass,0,0,0,0,0,0,0,0", "fail");
    check_row("torch.bfloat16,[100],-1,1,pass,8e-3,0,0,50,50,50,50,50",
              "torch.bfloat16,[100],-1,1,pass,0,0,0,0,0,0,0,0", "pass");
    check_row("torch.bfloat16,[100],-1,1,pass,8e-2,0,50,50,50,50,50,50",
              "torch.bfloat16,[100],-1,1,pass,0,0,0,0,0,0,0,0", "fail");
    check_row("torch.float16,[100],-1,1,pass,9e-4,0,0,0,50,50,50,50",
              "torch.float16,[100],-1,1,pass,0,0,0,0,0,0,0,0", "pass");
    check_row("torch.float16,[100],-1,1,pass,9e-3,0,0,50,50,50,50,50",
              "torch.float16,[100],-1,1,pass,0,0,0,0,0,0,0,0", "fail");
    check_row("torch.float64,[100],-1,1,pass,2e-7,0,0,0,0,0,0,50",
              "torch.float64,[100],-1,1,pass,0,0,0,0,0,0,0,0", "fail");
    check_row("torch.float32,[100],-inf,3,pass,2e-5,0,0,0,0,40,40,40",
              "torch.float32,[100],-inf,3,pass,0,0,0,0,0,0,0,0", "fail");
    check_row("torch.float32,[100],,,pass,2e-7,0,0,0,0,0,0,40",
              "torch.float32,[100],,,pass,0,0,0,0,0,0,0,0", "pass");
}

static void compare_texts(struct plumb_unittest_diff *diff, const char *first, const char *second)
{
    struct scratch scratch;
    struct plumb_error err = {0};
    char paths[2][1024];
    scratch_make(&scratch);
    snprintf(paths[0], sizeof paths[0], "%s",
             scratch_write(&scratch, "xpu.csv", first, strlen(first)));
    snprintf(paths[1], sizeof paths[1], "%s",
             scratch_write(&scratch, "gpu.csv", second, strlen(second)));
    assert_int_equal(plumb_unittest_compare(diff, paths[0], paths[1], 0.001, &err), PLUMB_OK);
    scratch_remove(&scratch);
}

static void test_inputs(void **state)
{
    (void)state;
    static const char with[] =
        "name,op_name,dtype,shape,min-val,max-val,is_pass,max,1e-1,1e-2,1e-3,"
        "1e-4,1e-5,1e-6,1e-7,seed,inputs\n";
    struct plumb_unittest_diff diff;
    char texts[3][1024];
    snprintf(texts[0], sizeof texts[0],
             "%s1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0,42,0badf00d\n"
             "2-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0,42,00000001\n"
             "3-aten,f,d,[1],0,0,skip,,,,,,,,,42,\n",
             with);
    snprintf(texts[1], sizeof texts[1],
             "%s1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0,7,0badf00d\n"
             "2-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0,7,00000002\n"
             "3-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0,7,00000003\n",
             with);
    snprintf(texts[2], sizeof texts[2], TITLES "1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,0\n");
    compare_texts(&diff, texts[0], texts[1]);
    assert_string_equal(cell(&diff, 0, 6), "pass");
    assert_string_equal(cell(&diff, 1, 6), "other inputs");
    assert_string_equal(cell(&diff, 2, 6), "skip");
    assert_int_equal(diff.other_inputs, 1);
    assert_int_equal(diff.failed, 0);
    assert_false(diff.without_inputs[0] || diff.without_inputs[1]);
    plumb_unittest_diff_free(&diff);
    compare_texts(&diff, texts[2], texts[1]);
    assert_string_equal(cell(&diff, 0, 6), "pass");
    assert_true(diff.without_inputs[0] && !diff.without_inputs[1]);
    plumb_unittest_diff_free(&diff);
}

static void check_titles(const char *first, const char *second, const char *a, const char *b)
{
    struct sides s;
    struct plumb_unittest_diff diff;
    struct plumb_error err = {0};
    const char *row = "1-aten,f,d,[1],0,0,pass,0,0,0,0,0,0,0,1\n";
    write_sides(&s, (const char *[]){first, second}, row, row);
    assert_int_equal(plumb_unittest_compare(&diff, s.first, s.second, 0.001, &err), PLUMB_OK);
    assert_string_equal(diff.names[0], a);
    assert_string_equal(diff.names[1], b);
    plumb_unittest_diff_free(&diff);
    scratch_remove(&s.scratch);
}

static void test_titles(void **state)
{
    (void)state;
    check_titles("npu-910.csv", "cpu.csv", "npu-910", "cpu");
    check_titles("a/result.csv", "b/result.csv", "xpu", "gpu");
    check_titles("a b.csv", "cpu.csv", "xpu", "gpu");
    check_titles(".csv", "cpu.csv", "xpu", "gpu");
    check_titles("a_very_long_name_of_a_result_file_of_a_device.csv", "cpu.csv", "xpu", "gpu");
}

static void test_nothing(void **state)
{
    (void)state;
    struct sides s;
    struct plumb_unittest_diff diff;
    struct plumb_error err = {0};
    write_sides(&s, (const char *[]){"xpu.csv", "gpu.csv"}, "", "");
    assert_int_equal(plumb_unittest_compare(&diff, s.first, s.second, 0.001, &err), PLUMB_E_ARG);
    plumb_unittest_diff_free(&diff);
    scratch_remove(&s.scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),      cmocka_unit_test(test_read),
        cmocka_unit_test(test_verdicts),    cmocka_unit_test(test_titles),
        cmocka_unit_test(test_wild_errors), cmocka_unit_test(test_own_errors),
        cmocka_unit_test(test_inputs),      cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
