/* Writes workbooks and looks into them with Python's zipfile, where there is a Python. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/plumb-test-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out.xlsx", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when a temporary file was left behind */
}

/* The text of one part of the workbook, well-formed XML; NULL when there is no Python. */
static char *read_part(const char *part)
{
    char command[512];
    snprintf(command, sizeof command,
             "/usr/bin/python3 -c \"import sys, zipfile, xml.dom.minidom as m; "
             "z = zipfile.ZipFile('%s'); assert z.testzip() is None; t = z.read('%s'); "
             "m.parseString(t); sys.stdout.buffer.write(t)\"",
             path, part);
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return NULL;
    size_t capacity = 1 << 20;
    char *text = calloc(1, capacity);
    size_t size = text ? fread(text, 1, capacity - 1, pipe) : 0;
    int status = pclose(pipe);
    assert_true(status == 0 && size > 0);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

static void a_workbook(void **state)
{
    (void)state;
    static const struct plumb_column columns[] = {
        {"Index", PLUMB_STYLE_NUMBER, false, false},
        {"Name", PLUMB_STYLE_TEXT, true, true},
        {"Value", PLUMB_STYLE_NUMBER, false, false},
    };
    static const struct {
        const char *name;
        double value;
        enum plumb_severity severity;
    } rows[] = {
        {"blocks.0.norm", 0.1234567890123456, PLUMB_NORMAL},
        {"=1+1", NAN, PLUMB_FAILED},
        {"<&>\x1b\x01\xff\xef\xbf\xbf", INFINITY, PLUMB_SUSPICIOUS},
    };
    struct plumb_error err = {0};
    struct plumb_table *table = plumb_table_new(columns, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(plumb_table_add_row(table, rows[i].severity));
        plumb_table_int(table, 0, (int64_t)i);
        assert_true(plumb_table_text(table, 1, rows[i].name));
        plumb_table_real(table, 2, rows[i].value);
    }
    assert_true(plumb_table_add_row(table, PLUMB_FAILED)); /* empty, coloured all the same */
    plumb_table_int(table, 0, INT64_MAX);
    size_t length = 40000;
    char *name = malloc(length + 1);
    assert_non_null(name);
    memset(name, 'n', length);
    name[length] = '\0';
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    assert_true(plumb_table_text(table, 1, name)); /* more than a cell takes */
    free(name);
    assert_int_equal(plumb_table_save(table, path, PLUMB_TABLE_XLSX, NULL, &err), PLUMB_OK);
    plumb_table_free(table);

    char *sheet = read_part("xl/worksheets/sheet1.xml");
    assert_has(sheet, "<pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\"");
    assert_has(sheet, "<autoFilter ref=\"A1:C6\"/>");
    assert_has(sheet, "<col min=\"1\" max=\"1\"");
    assert_has(sheet, "<v>0.1234567890123456</v>");
    assert_has(sheet, "<c r=\"C3\" s=\"2\" t=\"inlineStr\"><is><t>NaN</t></is></c>");
    assert_has(sheet, "<c r=\"B3\" s=\"2\" t=\"inlineStr\"><is><t>=1+1</t></is></c>");
    assert_has(sheet, "<c r=\"C5\" s=\"2\"/>");
    assert_has(sheet, "9223372036854775807");
    assert_has(sheet, "&lt;&amp;&gt;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd<");
    assert_has(sheet, "nnn...</t>");
    assert_null(strstr(sheet, "<f>"));
    free(sheet);
    char *styles = read_part("xl/styles.xml");
    assert_has(styles, "FFFFC7CE");
    assert_has(styles, "FFFFEB9C");
    assert_has(styles, "<b/>");
    free(styles);
    char *book = read_part("xl/workbook.xml");
    assert_has(book, "name=\"Result\"");
    free(book);
}

static void an_empty_table(void **state)
{
    (void)state;
    static const struct plumb_column one = {"Only", PLUMB_STYLE_TEXT, true, false};
    struct plumb_error err = {0};
    struct plumb_table *table = plumb_table_new(&one, 1);
    assert_int_equal(plumb_table_save(table, path, PLUMB_TABLE_XLSX, NULL, &err), PLUMB_OK);
    plumb_table_free(table);
    table = plumb_table_new(NULL, 0);
    assert_int_equal(plumb_table_save(table, path, PLUMB_TABLE_XLSX, NULL, &err), PLUMB_OK);
    plumb_table_free(table);
}

/* Rows beyond what a sheet holds go to a second one. */
static void two_sheets(void **state)
{
    (void)state;
    static const struct plumb_column one = {"n", PLUMB_STYLE_NUMBER, false, false};
    struct plumb_error err = {0};
    struct plumb_table *table = plumb_table_new(&one, 1);
    for (int64_t i = 0; i < 1048001; i++) {
        assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
        plumb_table_int(table, 0, i);
    }
    assert_int_equal(plumb_table_save(table, path, PLUMB_TABLE_XLSX, NULL, &err), PLUMB_OK);
    plumb_table_free(table);
    char *sheet = read_part("xl/worksheets/sheet2.xml");
    assert_has(sheet, "<t>n</t>");
    assert_has(sheet, "<c r=\"A2\"><v>1048000</v></c>");
    assert_null(strstr(sheet, "r=\"A3\""));
    free(sheet);
    char *book = read_part("xl/workbook.xml");
    assert_has(book, "name=\"Result 2\"");
    free(book);
}

/* Several tables under names of their own, as far as Excel allows them. */
static void named_sheets(void **state)
{
    (void)state;
    static const struct plumb_column columns[] = {{"n", PLUMB_STYLE_NUMBER, false, false},
                                                  {"x", PLUMB_STYLE_TEXT, true, false}};
    struct plumb_error err = {0};
    struct plumb_table *narrow = plumb_table_new(columns, 1), *wide = plumb_table_new(columns, 2);
    assert_true(plumb_table_add_row(wide, PLUMB_NORMAL));
    assert_true(plumb_table_text(wide, 1, "here"));
    const struct plumb_sheet sheets[] = {{"Max diff", narrow},
                                         {"a/b[c]:*?'\\", wide},
                                         {"One Thousandth Err Ratio and more", narrow}};
    assert_int_equal(plumb_workbook_save(sheets, 3, path, &err), PLUMB_OK);
    assert_int_equal(plumb_workbook_save(sheets, 0, path, &err), PLUMB_E_ARG);
    plumb_table_free(narrow);
    plumb_table_free(wide);

    char *book = read_part("xl/workbook.xml");
    assert_has(book, "name=\"Max diff\"");
    assert_has(book, "name=\"a_b_c______\"");
    assert_has(book, "name=\"One Thousandth Err Ratio and mo\"");
    free(book);
    char *sheet = read_part("xl/worksheets/sheet2.xml");
    assert_has(sheet, "<t>here</t>");
    free(sheet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_workbook),
        cmocka_unit_test(an_empty_table),
        cmocka_unit_test(two_sheets),
        cmocka_unit_test(named_sheets),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
