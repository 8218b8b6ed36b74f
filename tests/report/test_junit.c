/* JUnit XML: counts, what a case says, and names that strangers chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/junit.h"

#include <stdlib.h>
#include <string.h>

static const struct plumb_column columns[] = {
    {"Index", PLUMB_STYLE_NUMBER, false, false}, {"API Name", PLUMB_STYLE_TEXT, true, true},
    {"Module", PLUMB_STYLE_TEXT, true, true},    {"MaxAbsErr", PLUMB_STYLE_NUMBER, false, false},
    {"Reason", PLUMB_STYLE_TEXT, true, true},
};

static void add(struct plumb_table *table, const char *name, const char *module, const char *reason)
{
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    plumb_table_int(table, 0, 7);
    assert_true(plumb_table_text(table, 1, name));
    assert_true(plumb_table_text(table, 2, module));
    plumb_table_real(table, 3, 0.5);
    assert_true(plumb_table_text(table, 4, reason));
}

static void test_cases(void **state)
{
    (void)state;
    static const unsigned char moods[] = {PLUMB_MOOD_GOOD, PLUMB_MOOD_BAD, PLUMB_MOOD_UNSEEN,
                                          PLUMB_MOOD_DOUBT};
    struct plumb_table *table = plumb_table_new(columns, 5);
    assert_non_null(table);
    add(table, "a", "layers.0", "");
    add(table, "b", "", "max_abs > 0.1");
    add(table, "c", "layers.1", "no partner");
    add(table, "d", "layers.1", "suspicious");
    char *text = plumb_junit_text("plumb.compare", table, moods, 61.25);
    assert_string_equal(
        text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<testsuites name=\"plumb\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\" "
              "time=\"61.250\">\n"
              "  <testsuite name=\"plumb.compare\" tests=\"4\" failures=\"1\" errors=\"0\" "
              "skipped=\"1\" time=\"61.250\">\n"
              "    <testcase name=\"a\" classname=\"layers.0\"/>\n"
              "    <testcase name=\"b\" classname=\"plumb.compare\">\n"
              "      <failure message=\"max_abs &#62; 0.1\">Index: 7\nAPI Name: b\nModule: \n"
              "MaxAbsErr: 0.5\nReason: max_abs &#62; 0.1\n</failure>\n"
              "    </testcase>\n"
              "    <testcase name=\"c\" classname=\"layers.1\">\n"
              "      <skipped message=\"no partner\"/>\n"
              "    </testcase>\n"
              "    <testcase name=\"d\" classname=\"layers.1\"/>\n"
              "  </testsuite>\n"
              "</testsuites>\n");
    free(text);
    plumb_table_free(table);
}

static void test_hostile(void **state)
{
    (void)state;
    static const unsigned char bad = PLUMB_MOOD_BAD;
    struct plumb_table *table = plumb_table_new(columns, 5);
    assert_non_null(table);
    add(table, "<a b=\"c\">&'\x01\x1b[31m\n\xff\xc3\xa9\xef\xbf\xbf", "]]>", "x\ty");
    char *text = plumb_junit_text("s", table, &bad, -1);
    assert_non_null(strstr(text,
                           "name=\"&#60;a b=&#34;c&#34;&#62;&#38;&#39;\xef\xbf\xbd\xef\xbf\xbd"
                           "[31m&#10;\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\""));
    assert_non_null(strstr(text, "classname=\"]]&#62;\""));
    assert_non_null(strstr(text, "message=\"x&#9;y\""));
    assert_null(strstr(text, "]]>"));
    assert_null(strstr(text, "time="));
    free(text);
    plumb_table_free(table);
}

static void test_empty(void **state)
{
    (void)state;
    struct plumb_table *table = plumb_table_new(columns, 5);
    assert_non_null(table);
    char *text = plumb_junit_text("s", table, NULL, 0);
    assert_non_null(strstr(text, "tests=\"0\" failures=\"0\" errors=\"0\" skipped=\"0\""));
    free(text);
    plumb_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
