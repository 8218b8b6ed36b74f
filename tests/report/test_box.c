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

static void check_print(const struct plumb_table *table, const struct plumb_table_look *look,
                        const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(plumb_table_print(table, PLUMB_TABLE_BOX, look, out, NULL), PLUMB_OK);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void summary_table(void **state)
{
    (void)state;
    static const struct plumb_column columns[] = {
        {"Index", PLUMB_STYLE_NUMBER, false, false}, {"Step", PLUMB_STYLE_NUMBER, false, false},
        {"Rank", PLUMB_STYLE_NUMBER, false, false},  {"Module", PLUMB_STYLE_TEXT, true, true},
        {"Min", PLUMB_STYLE_REPR, false, false},     {"Max", PLUMB_STYLE_REPR, false, false},
        {"Mean", PLUMB_STYLE_REPR, false, false},    {"Std", PLUMB_STYLE_REPR, false, false},
    };
    static const struct {
        const char *name;
        double min, max, mean, std;
    } rows[] = {
        {"patch_embed.proj.Conv3d.0.forward_params.weight", -0.07763671875, 0.07958984375, 6.8e-06,
         0.0072608},
        {"patch_embed.proj.Conv3d.0.forward_params.bias", -3.046875, 2.953125, 0.0113748,
         0.3257138},
        {"pos_embed.Embedding.0.forward_input.0", 0, 2303, 1153.9191895, 714.59436},
        {"rotary_pos_emb.Qwen2_5_VisionRotaryEmbedding.0.forward_output.0", 0, 25, 1.7337022,
         3.9271674},
        {"blocks.0.attn.proj.RowParallelLinear.0.forward_params.bias", -3.578125, 3.203125,
         -0.0043617, 0.4846557},
    };
    struct plumb_table *table = plumb_table_new(columns, 8);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
        plumb_table_int(table, 0, (int64_t)i);
        plumb_table_int(table, 1, 1);
        plumb_table_int(table, 2, 0);
        assert_true(plumb_table_text(table, 3, rows[i].name));
        plumb_table_real(table, 4, rows[i].min);
        plumb_table_real(table, 5, rows[i].max);
        plumb_table_real(table, 6, rows[i].mean);
        plumb_table_real(table, 7, rows[i].std);
    }
    // clang-format off
    check_print(table, NULL,
"+-------+------+------+-----------------------------------------------------------+------------+-----------+--------------+-----------+\n"
"| Index | Step | Rank | Module                                                    |        Min |       Max |         Mean |       Std |\n"
"+-------+------+------+-----------------------------------------------------------+------------+-----------+--------------+-----------+\n"
"|     0 |    1 |    0 | patch_embed.proj.Conv3d.0.forward_params.weight           | -0.0776367 | 0.0795898 |      6.8e-06 | 0.0072608 |\n"
"|     1 |    1 |    0 | patch_embed.proj.Conv3d.0.forward_params.bias             |  -3.046875 |  2.953125 |    0.0113748 | 0.3257138 |\n"
"|     2 |    1 |    0 | pos_embed.Embedding.0.forward_input.0                     |        0.0 |    2303.0 | 1153.9191895 | 714.59436 |\n"
"|     3 |    1 |    0 | rotary_pos_emb.Qwen2_5_VisionRotaryEmbedding.0.forward... |        0.0 |      25.0 |    1.7337022 | 3.9271674 |\n"
"|     4 |    1 |    0 | blocks.0.attn.proj.RowParallelLinear.0.forward_params...  |  -3.578125 |  3.203125 |   -0.0043617 | 0.4846557 |\n"
"+-------+------+------+-----------------------------------------------------------+------------+-----------+--------------+-----------+\n");
    // clang-format on
    plumb_table_free(table);
}

static struct plumb_table *compare_table(void)
{
    static const struct plumb_column columns[] = {
        {"Index", PLUMB_STYLE_NUMBER, false, false},
        {"Status", PLUMB_STYLE_TEXT, false, false},
        {"Module (Bench/Target)", PLUMB_STYLE_TEXT, true, true},
        {"Cosine", PLUMB_STYLE_NUMBER, false, false},
        {"RMSE", PLUMB_STYLE_NUMBER, false, false},
        {"IsClose (%)", PLUMB_STYLE_NUMBER, false, false},
        {"Max Err (t)", PLUMB_STYLE_NUMBER, false, false},
        {"GtNum", PLUMB_STYLE_NUMBER, false, false},
    };
    static const struct {
        int64_t index;
        const char *name;
        double rmse, close, error;
        int64_t count;
    } rows[] = {
        {0, "patch_embed.proj.Conv3d.0.forward_params.weight", 0, 100, 0, 0},
        {3, "patch_embed.proj.Conv3d.0.forward_output.0", 9.9e-06, 100, 0.001953, 267},
        {11, "blocks.0.norm1.LayerNorm.0.forward_output.0", 1.84e-05, 99.98, 0.0078125, 1585},
        {12, "blocks.0.attn.qkv.QKVParallelLinear.0.forward_params.bias", 0, 100, 0, 0},
        {23, "blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward_input.0", 0.0002779, 98.72,
         0.015625, 40770},
        {24, "blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward_output.0", 0.000779, 98.67,
         0.0078125, 196313},
    };
    struct plumb_table *table = plumb_table_new(columns, 8);
    assert_non_null(table);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool fail = rows[i].error > 0.01;
        assert_true(plumb_table_add_row(table, fail ? PLUMB_FAILED : PLUMB_NORMAL));
        plumb_table_int(table, 0, rows[i].index);
        assert_true(plumb_table_text(table, 1, fail ? "Fail" : ""));
        assert_true(plumb_table_text(table, 2, rows[i].name));
        plumb_table_real(table, 3, 1 - 1e-12 * (double)i);
        plumb_table_real(table, 4, rows[i].rmse);
        plumb_table_real(table, 5, rows[i].close);
        plumb_table_real(table, 6, rows[i].error);
        plumb_table_int(table, 7, rows[i].count);
    }
    return table;
}

// clang-format off
static const char compare_text[] =
"+-------+--------+-----------------------------------------------------------+--------+-----------+-------------+-------------+--------+\n"
"| Index | Status | Module (Bench/Target)                                     | Cosine |      RMSE | IsClose (%) | Max Err (t) |  GtNum |\n"
"+-------+--------+-----------------------------------------------------------+--------+-----------+-------------+-------------+--------+\n"
"|     0 |        | patch_embed.proj.Conv3d.0.forward_params.weight           |      1 |         0 |         100 |           0 |      0 |\n"
"|     3 |        | patch_embed.proj.Conv3d.0.forward_output.0                |      1 |   9.9e-06 |         100 |    0.001953 |    267 |\n"
"|    11 |        | blocks.0.norm1.LayerNorm.0.forward_output.0               |      1 |  1.84e-05 |       99.98 |   0.0078125 |   1585 |\n"
"|    12 |        | blocks.0.attn.qkv.QKVParallelLinear.0.forward_params.bias |      1 |         0 |         100 |           0 |      0 |\n"
"|    23 |   Fail | blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward... |      1 | 0.0002779 |       98.72 |    0.015625 |  40770 |\n"
"|    24 |        | blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward... |      1 |  0.000779 |       98.67 |   0.0078125 | 196313 |\n"
"+-------+--------+-----------------------------------------------------------+--------+-----------+-------------+-------------+--------+\n";
// clang-format on

static void comparison_table(void **state)
{
    (void)state;
    struct plumb_table *table = compare_table();
    check_print(table, NULL, compare_text);
    /* A terminal that is wide enough changes nothing. */
    check_print(table, &(struct plumb_table_look){.width = 137}, compare_text);
    plumb_table_free(table);
}

static void narrow_terminal(void **state)
{
    (void)state;
    struct plumb_table *table = compare_table();
    plumb_table_keep_severity(table, PLUMB_FAILED);
    // clang-format off
    check_print(table, &(struct plumb_table_look){.width = 110},
"+-------+--------+----------------------------------+--------+-----------+-------------+-------------+-------+\n"
"| Index | Status | Module (Bench/Target)            | Cosine |      RMSE | IsClose (%) | Max Err (t) | GtNum |\n"
"+-------+--------+----------------------------------+--------+-----------+-------------+-------------+-------+\n"
"|    23 |   Fail | blocks.0.mlp.linear_fc1.Colum... |      1 | 0.0002779 |       98.72 |    0.015625 | 40770 |\n"
"+-------+--------+----------------------------------+--------+-----------+-------------+-------------+-------+\n");
    /* Titles are broken into lines, then the columns into bands that all begin with the name. */
    check_print(table, &(struct plumb_table_look){.width = 94},
"+-------+--------+-------------------------+--------+-----------+---------+----------+-------+\n"
"| Index | Status | Module (Bench/Target)   | Cosine |      RMSE | IsClose |  Max Err | GtNum |\n"
"|       |        |                         |        |           |     (%) |      (t) |       |\n"
"+-------+--------+-------------------------+--------+-----------+---------+----------+-------+\n"
"|    23 |   Fail | blocks.0.mlp.linear_... |      1 | 0.0002779 |   98.72 | 0.015625 | 40770 |\n"
"+-------+--------+-------------------------+--------+-----------+---------+----------+-------+\n");
    check_print(table, &(struct plumb_table_look){.width = 80},
"+-------+--------+----------------------+--------+-----------+---------+\n"
"| Index | Status | Module               | Cosine |      RMSE | IsClose |\n"
"|       |        | (Bench/Target)       |        |           |     (%) |\n"
"+-------+--------+----------------------+--------+-----------+---------+\n"
"|    23 |   Fail | blocks.0.mlp.line... |      1 | 0.0002779 |   98.72 |\n"
"+-------+--------+----------------------+--------+-----------+---------+\n"
"+-------+--------+----------------------+----------+-------+\n"
"| Index | Status | Module               |  Max Err | GtNum |\n"
"|       |        | (Bench/Target)       |      (t) |       |\n"
"+-------+--------+----------------------+----------+-------+\n"
"|    23 |   Fail | blocks.0.mlp.line... | 0.015625 | 40770 |\n"
"+-------+--------+----------------------+----------+-------+\n");
    /* Too narrow for even that: nothing is left out. */
    check_print(table, &(struct plumb_table_look){.width = 40},
"+-------+--------+----------------------+--------+-----------+---------+----------+-------+\n"
"| Index | Status | Module               | Cosine |      RMSE | IsClose |  Max Err | GtNum |\n"
"|       |        | (Bench/Target)       |        |           |     (%) |      (t) |       |\n"
"+-------+--------+----------------------+--------+-----------+---------+----------+-------+\n"
"|    23 |   Fail | blocks.0.mlp.line... |      1 | 0.0002779 |   98.72 | 0.015625 | 40770 |\n"
"+-------+--------+----------------------+--------+-----------+---------+----------+-------+\n");
    /* Wide wins over width. */
    check_print(table, &(struct plumb_table_look){.width = 40, .wide = true},
"+-------+--------+----------------------------------------------------------------+--------+-----------+-------------+-------------+-------+\n"
"| Index | Status | Module (Bench/Target)                                          | Cosine |      RMSE | IsClose (%) | Max Err (t) | GtNum |\n"
"+-------+--------+----------------------------------------------------------------+--------+-----------+-------------+-------------+-------+\n"
"|    23 |   Fail | blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward_input.0 |      1 | 0.0002779 |       98.72 |    0.015625 | 40770 |\n"
"+-------+--------+----------------------------------------------------------------+--------+-----------+-------------+-------------+-------+\n");
    // clang-format on
    plumb_table_free(table);
}

static const struct plumb_column name_and_result[] = {
    {"Name", PLUMB_STYLE_TEXT, true, true},
    {"Result", PLUMB_STYLE_TEXT, false, false},
};

static void add(struct plumb_table *table, const char *name, const char *result,
                enum plumb_severity severity)
{
    assert_true(plumb_table_add_row(table, severity));
    assert_true(plumb_table_text(table, 0, name));
    assert_true(plumb_table_text(table, 1, result));
}

static void hostile_names(void **state)
{
    (void)state;
    struct plumb_table *table = plumb_table_new(name_and_result, 2);
    add(table, "\x1b[2Jclear", "a\nb\tc\r", PLUMB_NORMAL);
    add(table,
        "\xc2\x9b"
        "31m",
        "\x07\x7f", PLUMB_NORMAL); /* the one-character escape of C1 */
    add(table, "\xe2\x80\xaereversed", "\xef\xbb\xbf", PLUMB_NORMAL);
    add(table, "\xff\xc0\xafx\xe4\xb8", "\xed\xa0\x80", PLUMB_NORMAL); /* not UTF-8 */
    check_print(table, NULL,
                "+-----------+--------+\n"
                "| Name      | Result |\n"
                "+-----------+--------+\n"
                "| ?[2Jclear | a?b?c? |\n"
                "| ?31m      |     ?? |\n"
                "| ?reversed |      ? |\n"
                "| ???x??    |    ??? |\n"
                "+-----------+--------+\n");
    plumb_table_free(table);
}

static void wide_characters(void **state)
{
    (void)state;
    struct plumb_table *table = plumb_table_new(name_and_result, 2);
    add(table, "\xe5\xb1\x82.0", "\xc3\xa9", PLUMB_NORMAL);
    add(table, "e\xcc\x81x", "ok", PLUMB_NORMAL); /* combining accent */
    add(table, "123456789.", "ok", PLUMB_NORMAL);
    check_print(table, NULL,
                "+------------+--------+\n"
                "| Name       | Result |\n"
                "+------------+--------+\n"
                "| \xe5\xb1\x82.0       |      \xc3\xa9 |\n"
                "| e\xcc\x81x         |     ok |\n"
                "| 123456789. |     ok |\n"
                "+------------+--------+\n");
    plumb_table_free(table);

    /* Cut in the middle: a character of two columns does not fit into the last one. */
    char name[3 * 30 + 1] = "";
    for (int i = 0; i < 30; i++)
        memcpy(name + 3 * i, "\xe5\xb1\x82", 4);
    table = plumb_table_new(name_and_result, 2);
    add(table, name, "", PLUMB_NORMAL);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const struct plumb_table_look look = {.width = 33};
    assert_int_equal(plumb_table_print(table, PLUMB_TABLE_BOX, &look, out, NULL), PLUMB_OK);
    fclose(out);
    const char *row = strrchr(text, '|');
    while (row > text && row[-1] != '\n')
        row--;
    char expected[128] = "| ";
    for (int i = 0; i < 8; i++)
        memcpy(expected + 2 + 3 * i, "\xe5\xb1\x82", 4);
    snprintf(expected + 2 + 3 * 8, 64, "...  |        |\n");
    assert_int_equal(strncmp(row, expected, strlen(expected)), 0);
    free(text);
    plumb_table_free(table);
}

static void colours(void **state)
{
    (void)state;
    struct plumb_table *table = plumb_table_new(name_and_result, 2);
    add(table, "a", "PASS", PLUMB_NORMAL);
    add(table, "b", "PASS", PLUMB_SUSPICIOUS);
    add(table, "c", "FAIL", PLUMB_FAILED);
    check_print(table, &(struct plumb_table_look){.colour = true},
                "+------+--------+\n"
                "| Name | Result |\n"
                "+------+--------+\n"
                "| a    |   \x1b[32mPASS\x1b[0m |\n"
                "| \x1b[33mb\x1b[0m    |   \x1b[33mPASS\x1b[0m |\n"
                "| \x1b[1;31mc\x1b[0m    |   \x1b[1;31mFAIL\x1b[0m |\n"
                "+------+--------+\n");
    plumb_table_free(table);
}

static void no_rows(void **state)
{
    (void)state;
    struct plumb_table *table = plumb_table_new(name_and_result, 2);
    check_print(table, NULL,
                "+------+--------+\n"
                "| Name | Result |\n"
                "+------+--------+\n"
                "+------+--------+\n");
    plumb_table_free(table);
    table = plumb_table_new(NULL, 0);
    assert_true(plumb_table_add_row(table, PLUMB_NORMAL));
    check_print(table, NULL, "");
    plumb_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summary_table),   cmocka_unit_test(comparison_table),
        cmocka_unit_test(narrow_terminal), cmocka_unit_test(hostile_names),
        cmocka_unit_test(wide_characters), cmocka_unit_test(colours),
        cmocka_unit_test(no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
