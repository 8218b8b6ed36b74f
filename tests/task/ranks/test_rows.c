/* Workbooks and CSV files, whole, damaged and hostile. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "task/ranks/ranks.h"
#include "task/ranks/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every row as text: cells apart by "|", numbers after "#", rows ended by ";" and begun by the
 * number of their sheet. */
static enum plumb_code note_row(void *context, size_t sheet, const struct row_cell *cells,
                                size_t count, struct plumb_error *err)
{
    struct buf *out = context;
    (void)err;
    buf_printf(out, "%zu:", sheet);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s%s", i ? "|" : "", cells[i].text && cells[i].number ? "#" : "",
                   cells[i].text ? cells[i].text : "");
    buf_text(out, ";");
    return PLUMB_OK;
}

typedef enum plumb_code read_function(const struct plumb_file *, const struct row_reader *,
                                      struct plumb_error *);

/* Reads bytes from memory of exactly that size, so that the sanitizers see a byte read too far. */
static enum plumb_code read_bytes(read_function *read, const void *bytes, size_t size,
                                  struct buf *out, struct plumb_error *err)
{
    struct arena arena = {0};
    struct row_reader reader = {.arena = &arena, .row = note_row, .context = out};
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size)
        memcpy(copy, bytes, size);
    struct plumb_file file = {.data = copy, .size = size, .file_size = size};
    memset(err, 0, sizeof *err);
    enum plumb_code code = read(&file, &reader, err);
    arena_free(&arena);
    free(copy);
    return code;
}

static void map_data(struct plumb_file *file, const char *name)
{
    char path[4096];
    struct plumb_error err;
    const char *root = getenv("PLUMB_TEST_DATA");
    snprintf(path, sizeof path, "%s/xlsx/%s", root ? root : "tests/data", name);
    assert_int_equal(plumb_file_map(file, path, 0, UINT64_MAX, &err), PLUMB_OK);
}

static void whole_workbooks(void **state)
{
    static const char *const names[] = {"good.xlsx", "stored.xlsx"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct plumb_file file;
        struct plumb_error err;
        struct buf out = {0};
        map_data(&file, names[i]);
        assert_int_equal(read_bytes(xlsx_read, file.data, file.size, &out, &err), PLUMB_OK);
        assert_string_equal(out.data, "0:NPU Name||Max diff;0:a & b|#2.5|True|x;1:#-1e-05|#N/A;");
        buf_free(&out);
        plumb_file_unmap(&file);
    }
}

static void damaged_workbooks(void **state)
{
    static const struct {
        const char *name, *says;
    } cases[] = {
        {"far_column.xlsx", "beyond the 16384 columns"},
        {"no_such_string.xlsx", "refers to text 3 of 3"},
        {"not_a_number.xlsx", "refers to text -1"},
        {"same_part.xlsx", "two sheets are the same part"},
        {"missing_part.xlsx", "no part 'xl/worksheets/sheet9.xml'"},
        {"no_sheets.xlsx", "has no sheets"},
        {"doctype.xlsx", "a document type is refused"},
        {"external.xlsx", "a document type is refused"},
        {"deep.xlsx", "nested that deeply"},
        {"unclosed.xlsx", "byte 27 of xl/worksheets/sheet1.xml"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plumb_file file;
        struct plumb_error err;
        struct buf out = {0};
        map_data(&file, cases[i].name);
        assert_int_equal(read_bytes(xlsx_read, file.data, file.size, &out, &err), PLUMB_E_FORMAT);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: '%s' does not say '%s'", cases[i].name, err.message, cases[i].says);
        buf_free(&out);
        plumb_file_unmap(&file);
    }
}

static void cut_at_every_byte(void **state)
{
    struct plumb_file file;
    struct plumb_error err;
    (void)state;
    map_data(&file, "good.xlsx");
    for (size_t size = 0; size < file.size; size++) {
        struct buf out = {0};
        if (!read_bytes(xlsx_read, file.data, size, &out, &err))
            fail_msg("cut to %zu bytes it is read", size);
        assert_true(err.message[0]);
        buf_free(&out);
    }
    plumb_file_unmap(&file);
}

/* Whatever a changed byte does, it is an error or rows, and never a crash. */
static void changed_at_every_byte(void **state)
{
    struct plumb_file file;
    struct plumb_error err;
    size_t refused = 0;
    (void)state;
    map_data(&file, "good.xlsx");
    uint8_t *copy = malloc(file.size);
    assert_non_null(copy);
    for (size_t at = 0; at < file.size; at++) {
        struct buf out = {0};
        memcpy(copy, file.data, file.size);
        copy[at] ^= 0x55;
        refused += read_bytes(xlsx_read, copy, file.size, &out, &err) != PLUMB_OK;
        buf_free(&out);
    }
    assert_true(refused > file.size / 3);
    free(copy);
    plumb_file_unmap(&file);
}

static enum plumb_code stop_row(void *context, size_t sheet, const struct row_cell *cells,
                                size_t count, struct plumb_error *err)
{
    (void)sheet, (void)cells, (void)count;
    ++*(int *)context;
    return plumb_fail(err, PLUMB_E_UNSUPPORTED, "enough");
}

static void a_caller_can_stop(void **state)
{
    struct plumb_file file;
    struct plumb_error err = {0};
    struct arena arena = {0};
    int rows = 0;
    struct row_reader reader = {.arena = &arena, .row = stop_row, .context = &rows};
    (void)state;
    map_data(&file, "good.xlsx");
    assert_int_equal(xlsx_read(&file, &reader, &err), PLUMB_E_UNSUPPORTED);
    assert_string_equal(err.message, "enough");
    assert_int_equal(rows, 1);
    arena_free(&arena);
    plumb_file_unmap(&file);
}

static void csv_files(void **state)
{
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"", ""},
        {"\n\r\n,\n", ""},
        {"a,b\n1,x\n", "0:a|b;0:#1|x;"},
        {"a,b\r\n1,x", "0:a|b;0:#1|x;"},
        {"a\r1\r", "0:a;0:#1;"},
        {"\xef\xbb\xbf"
         "a",
         "0:a;"},
        {"\"a,\"\"b\"\"\n\",c", "0:a,\"b\"\n|c;"},
        {"\"a\"b,c", "0:ab|c;"},
        {" inf,-1.5e-07,+2,1.,.5,.,e5,1e", "0:inf|#-1.5e-07|#+2|#1.|#.5|.|e5|1e;"},
        {"a,,b,\n", "0:a||b|;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plumb_error err;
        struct buf out = {0};
        assert_int_equal(read_bytes(csv_read, cases[i].text, strlen(cases[i].text), &out, &err),
                         PLUMB_OK);
        assert_string_equal(out.data ? out.data : "", cases[i].rows);
        buf_free(&out);
    }
}

static void csv_damage(void **state)
{
    struct plumb_error err;
    struct buf out = {0};
    (void)state;
    assert_int_equal(read_bytes(csv_read, "a\n\"b\nc", 6, &out, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "line 2: a quote is not closed"));
    buf_free(&out);

    struct buf wide = {0};
    buf_repeat(&wide, ',', 20000);
    assert_int_equal(read_bytes(csv_read, wide.data, wide.size, &out, &err), PLUMB_E_FORMAT);
    assert_non_null(strstr(err.message, "line 1: more than 16384 columns"));
    buf_free(&wide);
}

static void names_of_results(void **state)
{
    static const char *const bad[] = {
        "compare_result_rank_20260101000000.csv",
        "compare_result_20260101000000.csv",
        "compare_result_rank1_2026010100000.csv",
        "compare_result_rank1_202601010000000.csv",
        "compare_result_rank1-rank2_20260101000000.csv",
        "compare_result_rank1_20260101000000.json",
        "compare_result_rank1_20260101000000_part_.csv",
        "xcompare_result_rank1_20260101000000.csv",
        "compare_result_rank12345678901_20260101000000.csv",
    };
    struct rank_file file;
    (void)state;
    assert_true(rank_parse("compare_result_rank12_20260101000000.xlsx", &file));
    assert_int_equal(file.rank, 12);
    assert_string_equal(file.stamp, "20260101000000");
    assert_true(file.xlsx);
    assert_true(rank_parse("compare_result_rank3-rank3_20260101000000_part_7.csv", &file));
    assert_int_equal(file.part, 7);
    assert_false(file.xlsx);
    assert_true(rank_parse("compare_result_rank3_20260101000000_2.csv", &file));
    assert_int_equal(file.version, 2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rank_parse(bad[i], &file))
            fail_msg("%s is taken", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_workbooks),   cmocka_unit_test(damaged_workbooks),
        cmocka_unit_test(cut_at_every_byte), cmocka_unit_test(changed_at_every_byte),
        cmocka_unit_test(a_caller_can_stop), cmocka_unit_test(csv_files),
        cmocka_unit_test(csv_damage),        cmocka_unit_test(names_of_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
