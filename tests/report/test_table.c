#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct plumb_column columns[] = {
    {"Index", PLUMB_STYLE_NUMBER, false, false},
    {"Module", PLUMB_STYLE_TEXT, true, true},
    {"Max Err", PLUMB_STYLE_NUMBER, false, false},
};

static struct plumb_table *new_table(void)
{
    struct plumb_table *table = plumb_table_new(columns, 3);
    assert_non_null(table);
    return table;
}

static void add(struct plumb_table *table, int64_t index, const char *name, double value,
                enum plumb_severity severity)
{
    assert_true(plumb_table_add_row(table, severity));
    plumb_table_int(table, 0, index);
    assert_true(plumb_table_text(table, 1, name));
    plumb_table_real(table, 2, value);
}

/* The Index cells of all rows, as "3 1 2". */
static const char *order(const struct plumb_table *table, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plumb_table_rows(table); i++)
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? " " : "",
                                 (int)plumb_table_cell(table, i, 0)->as.integer);
    return text;
}

static void check_sorted(struct plumb_table *table, const char *by, const char *expected)
{
    char text[128];
    assert_int_equal(plumb_table_sort(table, by, NULL), PLUMB_OK);
    assert_string_equal(order(table, text, sizeof text), expected);
}

static void keeps_what_it_was_given(void **state)
{
    (void)state;
    char title[] = "Title", name[] = "name";
    const struct plumb_column own = {title, PLUMB_STYLE_TEXT, true, false};
    struct plumb_table *table = plumb_table_new(&own, 1);
    assert_non_null(table);
    plumb_table_int(table, 0, 5); /* no row yet: nothing happens */
    assert_false(plumb_table_text(table, 0, "x"));
    assert_true(plumb_table_add_row(table, PLUMB_SUSPICIOUS));
    assert_int_equal(plumb_table_cell(table, 0, 0)->type, PLUMB_CELL_EMPTY);
    assert_true(plumb_table_text(table, 0, name));
    assert_false(plumb_table_text(table, 1, name)); /* there is no such column */
    memset(title, 'x', sizeof title - 1);
    memset(name, 'x', sizeof name - 1);
    assert_string_equal(plumb_table_column(table, 0)->title, "Title");
    assert_string_equal(plumb_table_cell(table, 0, 0)->as.text, "name");
    assert_int_equal(plumb_table_severity(table, 0), PLUMB_SUSPICIOUS);
    plumb_table_set_severity(table, 0, PLUMB_FAILED);
    assert_int_equal(plumb_table_severity(table, 0), PLUMB_FAILED);
    assert_true(plumb_table_text(table, 0, NULL));
    assert_int_equal(plumb_table_cell(table, 0, 0)->type, PLUMB_CELL_EMPTY);
    plumb_table_free(table);
    plumb_table_free(NULL);
}

static void many_rows(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "row %d", i);
        add(table, i, name, i, PLUMB_NORMAL);
    }
    assert_int_equal(plumb_table_rows(table), 10000);
    assert_int_equal(plumb_table_columns(table), 3);
    assert_string_equal(plumb_table_cell(table, 9876, 1)->as.text, "row 9876");
    assert_true(plumb_table_cell(table, 9876, 2)->as.real == 9876);
    plumb_table_free(table);
}

/* What a column says again and again is there once. */
static void shares_texts(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    const char *const names[] = {"same", "same", "other", "same"};
    for (int i = 0; i < 4; i++)
        add(table, i, names[i], 0, PLUMB_NORMAL);
    const char *texts[4];
    for (size_t i = 0; i < 4; i++) {
        texts[i] = plumb_table_cell(table, i, 1)->as.text;
        assert_string_equal(texts[i], names[i]);
    }
    assert_ptr_equal(texts[0], texts[1]);
    assert_ptr_not_equal(texts[0], names[0]);
    plumb_table_free(table);
}

static void sorts_numbers(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    add(table, 0, "a", 0.5, PLUMB_NORMAL);
    add(table, 1, "b", NAN, PLUMB_NORMAL);
    add(table, 2, "c", -INFINITY, PLUMB_NORMAL);
    add(table, 3, "d", INFINITY, PLUMB_NORMAL);
    add(table, 4, "e", 0.5, PLUMB_NORMAL);
    add(table, 5, "f", NAN, PLUMB_NORMAL);
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    plumb_table_int(table, 0, 6);
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    plumb_table_int(table, 0, 7);
    assert_true(plumb_table_text(table, 2, "N/A"));
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    plumb_table_int(table, 0, 8);
    plumb_table_int(table, 2, 1);

    check_sorted(table, "Max Err", "2 0 4 8 3 1 5 7 6");
    check_sorted(table, "1", "0 1 2 3 4 5 6 7 8");
    check_sorted(table, "-max err", "1 5 3 8 0 4 2 7 6");
    check_sorted(table, "-1", "8 7 6 5 4 3 2 1 0");
    plumb_table_free(table);
}

static void sorts_large_integers_exactly(void **state)
{
    (void)state;
    static const int64_t big = INT64_C(1) << 53;
    struct plumb_table *table = new_table();
    for (int i = 0; i < 6; i++) {
        assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
        plumb_table_int(table, 0, i);
        switch (i) {
        case 0:
            plumb_table_int(table, 2, big + 1);
            break;
        case 1:
            plumb_table_real(table, 2, (double)big);
            break;
        case 2:
            plumb_table_int(table, 2, INT64_MAX);
            break;
        case 3:
            plumb_table_real(table, 2, 9223372036854775808.0);
            break;
        case 4:
            plumb_table_real(table, 2, -1.5);
            break;
        default:
            plumb_table_int(table, 2, -1);
        }
    }
    check_sorted(table, "3", "4 5 1 0 2 3");
    check_sorted(table, "-3", "3 2 0 1 5 4");
    plumb_table_free(table);
}

static void sorts_texts_stably(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    static const char *const names[] = {"b", "a", "b", "B", "a", ""};
    for (int i = 0; i < 6; i++)
        add(table, i, names[i], 0, PLUMB_NORMAL);
    check_sorted(table, "MODULE", "5 3 1 4 0 2");
    check_sorted(table, "1", "0 1 2 3 4 5");
    check_sorted(table, "-module", "0 2 1 4 3 5");
    check_sorted(table, "Max Err", "0 2 1 4 3 5"); /* all equal: stays as it is */
    plumb_table_free(table);
}

static void unknown_column_names_the_columns(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "nothing", "-nothing", "0", "4", "-", "", "18446744073709551617"};
    struct plumb_table *table = new_table();
    add(table, 0, "a", 1, PLUMB_NORMAL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct plumb_error err;
        assert_int_equal(plumb_table_sort(table, wrong[i], &err), PLUMB_E_ARG);
        assert_int_equal(err.code, PLUMB_E_ARG);
        assert_non_null(strstr(err.message, "Index, Module, Max Err"));
    }
    assert_int_equal(plumb_table_sort(table, "x", NULL), PLUMB_E_ARG);
    plumb_table_free(table);
}

static void keeps_by_severity_and_limit(void **state)
{
    (void)state;
    char text[128];
    struct plumb_table *table = new_table();
    for (int i = 0; i < 9; i++)
        add(table, i, "x", 0, (enum plumb_severity)(i % 3));
    plumb_table_limit(table, 100);
    plumb_table_keep_severity(table, PLUMB_NORMAL);
    assert_int_equal(plumb_table_rows(table), 9);
    plumb_table_keep_severity(table, PLUMB_SUSPICIOUS);
    assert_string_equal(order(table, text, sizeof text), "1 2 4 5 7 8");
    plumb_table_keep_severity(table, PLUMB_FAILED);
    assert_string_equal(order(table, text, sizeof text), "2 5 8");
    plumb_table_limit(table, 2);
    assert_string_equal(order(table, text, sizeof text), "2 5");
    plumb_table_limit(table, 0);
    assert_int_equal(plumb_table_rows(table), 0);
    assert_int_equal(plumb_table_sort(table, "1", NULL), PLUMB_OK);
    add(table, 42, "y", 0, PLUMB_NORMAL);
    assert_string_equal(order(table, text, sizeof text), "42");
    plumb_table_free(table);
}

static void picks_rows_and_columns(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    for (int i = 0; i < 5; i++)
        add(table, i, i % 2 ? "odd" : "even", i / 2.0, (enum plumb_severity)(i % 3));
    struct plumb_table *some =
        plumb_table_pick(table, (const size_t[]){4, 1}, 2, (const size_t[]){2, 1}, 2);
    assert_non_null(some);
    plumb_table_free(table); /* nothing of it is shared */
    assert_int_equal(plumb_table_rows(some), 2);
    assert_int_equal(plumb_table_columns(some), 2);
    assert_string_equal(plumb_table_column(some, 0)->title, "Max Err");
    assert_true(plumb_table_cell(some, 0, 0)->as.real == 2.0);
    assert_string_equal(plumb_table_cell(some, 0, 1)->as.text, "even");
    assert_string_equal(plumb_table_cell(some, 1, 1)->as.text, "odd");
    assert_int_equal(plumb_table_severity(some, 0), PLUMB_SUSPICIOUS);
    assert_int_equal(plumb_table_severity(some, 1), PLUMB_SUSPICIOUS);
    plumb_table_free(some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_it_was_given),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(shares_texts),
        cmocka_unit_test(sorts_numbers),
        cmocka_unit_test(sorts_large_integers_exactly),
        cmocka_unit_test(sorts_texts_stably),
        cmocka_unit_test(unknown_column_names_the_columns),
        cmocka_unit_test(keeps_by_severity_and_limit),
        cmocka_unit_test(picks_rows_and_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
