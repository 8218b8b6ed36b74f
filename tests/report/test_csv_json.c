#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "plumb/table.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct plumb_column columns[] = {
    {"Index", PLUMB_STYLE_NUMBER, false, false},
    {"Name", PLUMB_STYLE_TEXT, true, true},
    {"Value", PLUMB_STYLE_NUMBER, false, false},
    {"Mean", PLUMB_STYLE_REPR, false, false},
};

static struct plumb_table *new_table(void)
{
    struct plumb_table *table = plumb_table_new(columns, 4);
    assert_non_null(table);
    return table;
}

static void add(struct plumb_table *table, const char *name, double value,
                enum plumb_severity severity)
{
    assert_true(plumb_table_add_row(table, severity));
    plumb_table_int(table, 0, (int64_t)plumb_table_rows(table) - 1);
    assert_true(plumb_table_text(table, 1, name));
    plumb_table_real(table, 2, value);
    plumb_table_real(table, 3, value);
}

static void check_print(const struct plumb_table *table, enum plumb_table_format format,
                        const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(plumb_table_print(table, format, NULL, out, NULL), PLUMB_OK);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void csv_numbers(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    add(table, "a", 1, PLUMB_NORMAL);
    add(table, "b", 0.1 + 0.2, PLUMB_FAILED);
    add(table, "c", NAN, PLUMB_NORMAL);
    add(table, "d", -INFINITY, PLUMB_NORMAL);
    add(table, "e", 3.1e-12, PLUMB_NORMAL);
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    check_print(table, PLUMB_TABLE_CSV,
                "Index,Name,Value,Mean\n"
                "0,a,1,1.0\n"
                "1,b,0.30000000000000004,0.30000000000000004\n"
                "2,c,NaN,NaN\n"
                "3,d,-inf,-inf\n"
                "4,e,3.1e-12,3.1e-12\n"
                ",,,\n");
    plumb_table_free(table);
}

static void csv_texts(void **state)
{
    (void)state;
    static const struct plumb_column one = {"a,\"b\"", PLUMB_STYLE_TEXT, true, false};
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"plain text", "plain text"},
        {"[2, 3]", "\"[2, 3]\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"two\nlines", "\"two\nlines\""},
        {"", "\"\""},
        {"=1+1", "'=1+1"},
        {"=cmd|' /C calc'!A0,", "\"'=cmd|' /C calc'!A0,\""},
        {"+1+1", "'+1+1"},
        {"-2+3", "'-2+3"},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"\t=1", "'\t=1"},
        {"\r=1", "\"'\xef\xbf\xbd=1\""},
        {"-", "-"},
        {"-1.5", "-1.5"},
        {"+.5e-07", "+.5e-07"},
        {"-1e", "'-1e"},
        {"-1e5x", "'-1e5x"},
        {"-.", "'-."},
        {"-inf", "-inf"},
        {"a=1", "a=1"},
        {"\xe5\xb1\x82", "\xe5\xb1\x82"},
        {"bad\xff\xc3", "bad\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[128];
        struct plumb_table *table = plumb_table_new(&one, 1);
        assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
        assert_true(plumb_table_text(table, 0, cases[i].text));
        snprintf(expected, sizeof expected, "\"a,\"\"b\"\"\"\n%s\n", cases[i].written);
        check_print(table, PLUMB_TABLE_CSV, expected);
        plumb_table_free(table);
    }
}

/* Every byte at every place: texts are looked at by words of eight. */
/* Texts of the row above are written again as they were, also where the buffer ended between. */
static void csv_repeats(void **state)
{
    (void)state;
    enum { COLUMNS = 70, ROWS = 2000 };
    static const char *const cells[] = {"a", "[8, 512]", "say \"x\"", "=sum"};
    static const char *const written[] = {"a", "\"[8, 512]\"", "\"say \"\"x\"\"\"", "'=sum"};
    struct plumb_column all[COLUMNS];
    struct buf expected = {0};
    for (int i = 0; i < COLUMNS; i++) {
        all[i] = (struct plumb_column){.title = "t"};
        buf_text(&expected, i ? ",t" : "t");
    }
    buf_text(&expected, "\n");
    struct plumb_table *table = plumb_table_new(all, COLUMNS);
    assert_non_null(table);
    for (size_t row = 0; row < ROWS; row++) {
        assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
        for (size_t i = 0; i < COLUMNS; i++) {
            const size_t k = (i + row / 3) % 4; /* the same three times, then another */
            assert_true(plumb_table_text(table, i, cells[k]));
            buf_printf(&expected, i ? ",%s" : "%s", written[k]);
        }
        buf_text(&expected, "\n");
    }
    assert_false(expected.failed);
    check_print(table, PLUMB_TABLE_CSV, expected.data);
    buf_free(&expected);
    plumb_table_free(table);
}

static void csv_bytes(void **state)
{
    (void)state;
    const struct plumb_column column = {"Name", PLUMB_STYLE_TEXT, true, false};
    for (int c = 1; c < 0x80; c++)
        for (size_t at = 1; at < 17; at++) {
            char text[20] = "abcdefghijklmnopq", expected[64] = "Name\n";
            struct plumb_table *table = plumb_table_new(&column, 1);
            text[at] = (char)c;
            assert_true(table && plumb_table_add_row(table, PLUMB_NORMAL));
            assert_true(plumb_table_text(table, 0, text));
            const bool quoted = c == ',' || c == '"' || c == '\r' || c == '\n';
            const char kept[2] = {(char)c, '\0'};
            const char *shown = c == '"'                                           ? "\"\""
                                : (c < ' ' && c != '\n' && c != '\t') || c == 0x7f ? "\xef\xbf\xbd"
                                                                                   : kept;
            const size_t used = strlen(expected);
            snprintf(expected + used, sizeof expected - used, "%s%.*s%s%s%s\n", quoted ? "\"" : "",
                     (int)at, text, shown, text + at + 1, quoted ? "\"" : "");
            check_print(table, PLUMB_TABLE_CSV, expected);
            plumb_table_free(table);
        }
}

static void json_values(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    add(table, "a", 1, PLUMB_NORMAL);
    add(table, "q\"b\\\n\x1b/\x7f", 0.1, PLUMB_SUSPICIOUS);
    add(table, "\xe5\xb1\x82\xff", NAN, PLUMB_FAILED);
    assert_true(plumb_table_add_row(table, PLUMB_FAILED));
    plumb_table_real(table, 2, INFINITY);
    plumb_table_real(table, 3, -INFINITY);
    check_print(table, PLUMB_TABLE_JSON,
                "{\"columns\": [\"Index\", \"Name\", \"Value\", \"Mean\"],\n \"rows\": [\n"
                "  {\"Index\": 0, \"Name\": \"a\", \"Value\": 1, \"Mean\": 1.0, "
                "\"severity\": \"normal\"},\n"
                "  {\"Index\": 1, \"Name\": \"q\\\"b\\\\\\n\\u001b/\\u007f\", \"Value\": 0.1, "
                "\"Mean\": 0.1, \"severity\": \"suspicious\"},\n"
                "  {\"Index\": 2, \"Name\": \"\xe5\xb1\x82\xef\xbf\xbd\", \"Value\": \"NaN\", "
                "\"Mean\": \"NaN\", \"severity\": \"failed\"},\n"
                "  {\"Index\": null, \"Name\": null, \"Value\": \"inf\", \"Mean\": \"-inf\", "
                "\"severity\": \"failed\"}]}\n");
    plumb_table_free(table);
}

static void json_repeated_titles(void **state)
{
    (void)state;
    static const struct plumb_column same[] = {
        {"x", PLUMB_STYLE_TEXT, true, false},
        {"x", PLUMB_STYLE_TEXT, true, false},
        {"severity", PLUMB_STYLE_TEXT, true, false},
    };
    struct plumb_table *table = plumb_table_new(same, 3);
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    check_print(
        table, PLUMB_TABLE_JSON,
        "{\"columns\": [\"x\", \"x 2\", \"severity 2\"],\n \"rows\": [\n"
        "  {\"x\": null, \"x 2\": null, \"severity 2\": null, \"severity\": \"normal\"}]}\n");
    plumb_table_limit(table, 0);
    check_print(table, PLUMB_TABLE_JSON,
                "{\"columns\": [\"x\", \"x 2\", \"severity 2\"],\n \"rows\": []}\n");
    plumb_table_free(table);
}

static void markdown(void **state)
{
    (void)state;
    struct plumb_table *table = new_table();
    add(table, "a|b.forward_params", 3.0e-6, PLUMB_NORMAL);
    add(table, "__init__ *x* `y` <b>\n[a](b)\\", 0.123456789, PLUMB_FAILED);
    check_print(
        table, PLUMB_TABLE_MARKDOWN,
        "| Index | Name | Value | Mean |\n"
        "| ---: | :--- | ---: | ---: |\n"
        "| 0 | a\\|b.forward_params | 3e-06 | 3e-06 |\n"
        "| 1 | \\_\\_init\\_\\_ \\*x\\* \\`y\\` \\<b> [a]\\(b)\\\\ | 0.1234568 | 0.1234568 |\n");
    plumb_table_free(table);
}

static void formats_by_ending(void **state)
{
    (void)state;
    enum plumb_table_format format;
    assert_true(plumb_table_format_of("a.csv", &format));
    assert_int_equal(format, PLUMB_TABLE_CSV);
    assert_true(plumb_table_format_of("dir.x/a.b.JSON", &format));
    assert_int_equal(format, PLUMB_TABLE_JSON);
    assert_true(plumb_table_format_of("a.md", &format));
    assert_int_equal(format, PLUMB_TABLE_MARKDOWN);
    assert_true(plumb_table_format_of("a.XlSx", &format));
    assert_int_equal(format, PLUMB_TABLE_XLSX);
    assert_true(plumb_table_format_of("./a.txt", &format));
    assert_int_equal(format, PLUMB_TABLE_BOX);
    assert_false(plumb_table_format_of("a", &format));
    assert_false(plumb_table_format_of("csv", &format));
    assert_false(plumb_table_format_of("a.csv/b", &format));
    assert_false(plumb_table_format_of("a.csv.gz", &format));
    assert_false(plumb_table_format_of("", &format));
}

static void fails_when_the_stream_does(void **state)
{
    (void)state;
    struct plumb_error err;
    struct plumb_table *table = new_table();
    for (int i = 0; i < 5000; i++)
        add(table, "a name of some length", i, PLUMB_NORMAL);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        for (int format = PLUMB_TABLE_BOX; format <= PLUMB_TABLE_MARKDOWN; format++) {
            assert_int_equal(
                plumb_table_print(table, (enum plumb_table_format)format, NULL, full, &err),
                PLUMB_E_IO);
            assert_non_null(strstr(err.message, "No space left"));
        }
        fclose(full);
        /* A device is written in place, and stays what it is. */
        struct stat st;
        assert_int_equal(plumb_table_save(table, "/dev/full", PLUMB_TABLE_CSV, NULL, &err),
                         PLUMB_E_IO);
        assert_string_equal(err.file, "/dev/full");
        assert_int_equal(stat("/dev/full", &st), 0);
        assert_true(S_ISCHR(st.st_mode));
    }
    assert_int_equal(plumb_table_print(table, PLUMB_TABLE_XLSX, NULL, stdout, &err), PLUMB_E_ARG);
    plumb_table_free(table);
}

static size_t count_files(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void check_file(const char *path, const char *expected)
{
    char text[256];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

static void saves_completely_or_not_at_all(void **state)
{
    (void)state;
    static const char expected[] = "Index,Name,Value,Mean\n0,a,1,1.0\n";
    char folder[] = "/tmp/plumb-test-XXXXXX", path[512], link[512];
    struct plumb_error err;
    struct stat st;
    assert_non_null(mkdtemp(folder));
    struct plumb_table *table = new_table();
    add(table, "a", 1, PLUMB_NORMAL);

    snprintf(path, sizeof path, "%s/out.csv", folder);
    assert_int_equal(plumb_table_save(table, path, PLUMB_TABLE_CSV, NULL, &err), PLUMB_OK);
    check_file(path, expected);
    assert_int_equal(count_files(folder), 1);

    /* Over an old file, through a link: the link and the mode stay. */
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, 3), 0);
    snprintf(link, sizeof link, "%s/link.csv", folder);
    assert_int_equal(symlink("out.csv", link), 0);
    assert_int_equal(plumb_table_save(table, link, PLUMB_TABLE_CSV, NULL, &err), PLUMB_OK);
    check_file(path, expected);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(count_files(folder), 2);
    unlink(link);
    unlink(path);

    /* Nowhere to write to. */
    for (int format = PLUMB_TABLE_BOX; format <= PLUMB_TABLE_XLSX; format++) {
        snprintf(path, sizeof path, "%s/missing/out", folder);
        assert_int_equal(plumb_table_save(table, path, (enum plumb_table_format)format, NULL, &err),
                         PLUMB_E_IO);
        assert_string_equal(err.file, path);
        assert_non_null(strstr(err.message, "No such file"));
        assert_int_equal(
            plumb_table_save(table, folder, (enum plumb_table_format)format, NULL, &err),
            PLUMB_E_IO);
        assert_non_null(strstr(err.message, "directory"));
    }
    assert_int_equal(count_files(folder), 0);
    rmdir(folder);
    plumb_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_numbers),
        cmocka_unit_test(csv_texts),
        cmocka_unit_test(csv_repeats),
        cmocka_unit_test(csv_bytes),
        cmocka_unit_test(json_values),
        cmocka_unit_test(json_repeated_titles),
        cmocka_unit_test(markdown),
        cmocka_unit_test(formats_by_ending),
        cmocka_unit_test(fails_when_the_stream_does),
        cmocka_unit_test(saves_completely_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
