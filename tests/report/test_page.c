/* What became of rows, by the words of their columns; and pages that are copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/report.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4 };

static struct plumb_table *table_of(const char *const titles[COLUMNS], const char *const *rows,
                                    size_t count)
{
    struct plumb_column columns[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        columns[k] = (struct plumb_column){.title = titles[k], .left = true};
    struct plumb_table *table = plumb_table_new(columns, COLUMNS);
    assert_non_null(table);
    for (size_t row = 0; row < count; row++) {
        assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
        for (size_t k = 0; k < COLUMNS; k++)
            assert_true(plumb_table_text(table, k, rows[row * COLUMNS + k]));
    }
    return table;
}

static void expect_moods(const struct plumb_table *table, enum plumb_deciding by,
                         const unsigned char *expected)
{
    unsigned char moods[16];
    assert_true(plumb_report_moods(table, by, moods));
    assert_memory_equal(moods, expected, plumb_table_rows(table));
}

static void test_what_decides(void **state)
{
    (void)state;
    static const char *const titles[] = {"API name", "Forward Test Success",
                                         "Backward Test Success", "Verdict"};
    static const char *const rows[] = {
        "error", "pass",  "pass", "rounding", /* a name is no outcome */
        "b",     "pass",  "SKIP", "same",     /* */
        "c",     "error", " ",    "rounding", /* */
        "d",     "pass",  " ",    "fault",    /* */
        "e",     " ",     " ",    "not judged"};
    struct plumb_table *table = table_of(titles, rows, 5);
    expect_moods(table, PLUMB_BY_RULES, (const unsigned char[]){3, 2, 0, 3, 2});
    expect_moods(table, PLUMB_BY_EXPECTED, (const unsigned char[]){3, 3, 3, 0, 2});
    expect_moods(table, PLUMB_BY_BOTH, (const unsigned char[]){3, 2, 0, 0, 2});
    plumb_table_free(table);
}

/* A metric that objects does not make a row fail that passes as a whole; nor does the other
 * device. */
static void test_sums(void **state)
{
    (void)state;
    static const char *const titles[] = {"API name", "RMSE determination result",
                                         "Comparison result", "GPU Verdict"};
    static const char *const rows[] = {"a", "error", "pass",    "fault",
                                       "b", "pass",  "warning", "same"};
    struct plumb_table *table = table_of(titles, rows, 2);
    expect_moods(table, PLUMB_BY_BOTH, (const unsigned char[]){3, 1});
    expect_moods(table, PLUMB_BY_EXPECTED, (const unsigned char[]){2, 2});
    plumb_table_free(table);
}

static void test_copy(void **state)
{
    (void)state;
    struct plumb_report *report = plumb_report_new("compare", "<T>"), *copy;
    size_t size;
    assert_non_null(report);
    plumb_report_answer(report, &(struct plumb_report_answer){.mood = PLUMB_MOOD_BAD,
                                                              .sentence = "first & last",
                                                              .where = "",
                                                              .row = -1,
                                                              .sure = ""});
    copy = plumb_report_copy(report);
    assert_non_null(copy);
    plumb_report_answer(
        copy,
        &(struct plumb_report_answer){
            .mood = PLUMB_MOOD_GOOD, .sentence = "<another>", .where = "", .row = -1, .sure = ""});
    char *page = plumb_report_html(report, &size), *other = plumb_report_html(copy, &size);
    assert_non_null(page);
    assert_non_null(other);
    assert_int_equal(strlen(other), size);
    assert_non_null(strstr(page, "<p>first &#38; last</p>"));
    assert_non_null(strstr(other, "<p>&#60;another&#62;</p>"));
    assert_null(strstr(other, "first &#38; last"));
    assert_non_null(strstr(other, "&#60;T&#62;"));
    free(page);
    free(other);
    plumb_report_free(copy);
    plumb_report_free(report);
}

static void test_reason(void **state)
{
    (void)state;
    static const char *const titles[] = {"API name", "Verdict", "Message", "Why"};
    static const char *const rows[] = {"a", "fault", "too far", "scaled by 2", "b", "same", "", ""};
    struct plumb_table *table = table_of(titles, rows, 2);
    char text[64], little[8];
    assert_string_equal(plumb_report_reason(table, 0, PLUMB_BY_BOTH, text, sizeof text),
                        "scaled by 2\ntoo far");
    assert_string_equal(plumb_report_reason(table, 0, PLUMB_BY_RULES, text, sizeof text),
                        "too far");
    assert_string_equal(plumb_report_reason(table, 0, PLUMB_BY_EXPECTED, text, sizeof text),
                        "scaled by 2");
    assert_string_equal(plumb_report_reason(table, 1, PLUMB_BY_BOTH, text, sizeof text), "");
    assert_string_equal(plumb_report_reason(table, 0, PLUMB_BY_BOTH, little, sizeof little),
                        "scaled ");
    plumb_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_decides),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
