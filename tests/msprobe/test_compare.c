#define _GNU_SOURCE
#include "base/names.h"
#include "msprobe/compare.h"
#include "plumb/write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/number.h"
#include "scratch.h"

static struct scratch scratch;
static struct plumb_general_options options;
static struct plumb_general result;

static int begin(void **state)
{
    (void)state;
    scratch_make(&scratch);
    options = (struct plumb_general_options){.threads = 2};
    return 0;
}

static int end(void **state)
{
    (void)state;
    plumb_general_free(&result);
    scratch_remove(&scratch);
    return 0;
}

#define DUMP(task, data) "{\"task\":\"" task "\",\"data\":{" data "}}"
#define TENSOR(dtype, max, norm, more)                                                             \
    "{\"type\":\"torch.Tensor\",\"dtype\":\"torch." dtype "\",\"shape\":[2,2],\"Max\":" max        \
    ",\"Min\":0.5,\"Mean\":1,\"Norm\":" norm ",\"requires_grad\":false" more "}"
#define SCALAR(type, value) "{\"type\":\"" type "\",\"value\":" value "}"
#define API(name, in, out) "\"" name "\":{\"input_args\":[" in "],\"output\":[" out "]}"

static enum plumb_code try_compare(const char *target, const char *golden, struct plumb_error *err)
{
    char paths[2][1024];
    snprintf(paths[0], sizeof paths[0], "%s",
             scratch_write(&scratch, "t/dump.json", target, strlen(target)));
    snprintf(paths[1], sizeof paths[1], "%s",
             scratch_write(&scratch, "g/dump.json", golden, strlen(golden)));
    plumb_general_free(&result);
    return plumb_general_compare(&result, paths[0], paths[1], &options, err);
}

static void compare(const char *target, const char *golden)
{
    struct plumb_error err;
    if (try_compare(target, golden, &err))
        fail_msg("%s", err.message);
}

/* What a CSV file would have. */
static const char *cell(size_t row, const char *title)
{
    static char text[NUMBER_BYTES];
    assert_true(row < plumb_table_rows(result.table));
    for (size_t i = 0; i < plumb_table_columns(result.table); i++) {
        const struct plumb_column *column = plumb_table_column(result.table, i);
        const struct plumb_cell *found = plumb_table_cell(result.table, row, i);
        if (strcmp(column->title, title) != 0)
            continue;
        if (found->type == PLUMB_CELL_TEXT)
            return found->as.text;
        if (found->type == PLUMB_CELL_INT)
            number_integer(found->as.integer, text);
        else
            number_exact(found->as.real, true, text);
        return text;
    }
    fail_msg("no column %s", title);
    return NULL;
}

static void assert_cells(size_t row, const char *const *titles, const char *const *texts)
{
    for (; *titles; titles++, texts++)
        assert_string_equal(cell(row, *titles), *texts);
}

static void test_differences_of_statistics(void **state)
{
    (void)state;
    static const struct {
        const char *target, *golden, *diff, *relative;
    } cases[] = {
        {"2.5", "2.0", "0.5", "25.0%"},
        {"3", "4", "-1", "25.0%"},
        {"3", "3", "0", "0"},
        {"1.0", "0.0", "1.0", "inf"},
        {"NaN", "NaN", "0", "0"},
        {"NaN", "1.0", "Nan", "Nan"},
        {"Infinity", "1.0", "inf", "inf"},
        {"-Infinity", "Infinity", "-inf", "-inf"},
        {"1.0", "Infinity", "-inf", "-inf"},
        {"1.0", "-Infinity", "inf", "inf"},
        {"null", "1.0", "Diff", "Diff"},
        {"null", "null", "0", "0"},
        {"true", "false", "Diff", "Diff"},
        {"\"npu:0\"", "\"cuda:0\"", "N/A", "N/A"},
        {"\"npu:0\"", "1.0", "Diff", "Diff"},
        {"1.4490689039230347", "1.4490690231323242", "-1.1920928932873665e-07",
         "8.226612219689333e-06%"},
    };
    static const char format[] =
        DUMP("statistics", API("A.b.0.forward", "", TENSOR("float32", "%s", "1", "")));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char texts[2][1024];
        snprintf(texts[0], sizeof texts[0], format, cases[i].target);
        snprintf(texts[1], sizeof texts[1], format, cases[i].golden);
        compare(texts[0], texts[1]);
        assert_string_equal(cell(0, "Max diff"), cases[i].diff);
        assert_string_equal(cell(0, "MaxRelativeErr"), cases[i].relative);
    }
}

static void test_words_for_what_is_not_finite(void **state)
{
    (void)state;
    const char *text =
        DUMP("statistics", API("A.b.0.forward", "", TENSOR("float32", "Infinity", "NaN", "")));
    compare(text, text);
    assert_string_equal(cell(0, "NPU max"), " inf");
    assert_string_equal(cell(0, "Bench l2norm"), "Nan");
    assert_string_equal(cell(0, "Result"), "pass");
    options.plain_infinities = true;
    compare(text, text);
    assert_string_equal(cell(0, "NPU max"), "inf");
}

static void test_types_that_do_not_fit_part_rows(void **state)
{
    (void)state;
    compare(
        DUMP("statistics",
             API("A.b.0.forward", TENSOR("float32", "1", "1", "") "," TENSOR("int8", "1", "1", ""),
                 TENSOR("float64", "1", "1", ""))),
        DUMP("statistics", API("A.b.0.forward",
                               TENSOR("bfloat16", "1", "1", "") "," TENSOR("int16", "1", "1", ""),
                               TENSOR("float32", "1", "1", ""))));
    assert_int_equal(result.rows, 3);
    assert_int_equal(result.unmatched, 2);
    assert_string_equal(cell(0, "Bench Dtype"), "torch.bfloat16");
    assert_string_equal(cell(0, "Result"), "error");
    static const char *const titles[] = {
        "Bench Name", "Bench Tensor Shape", "Max diff", "Bench max", "Requires_grad Consistent",
        "Result",     "Err_message",        NULL};
    static const char *const texts[] = {"N/A", "N/A", "N/A", "N/A", "False", "pass", "[]"};
    assert_cells(1, titles, texts);
    assert_cells(2, titles, texts);
}

static void test_backward_calls_are_counted_anew(void **state)
{
    (void)state;
    compare(DUMP("statistics",
                 API("A.b.3.backward", "null", "") "," API("A.b.1.backward", "null", "") "," API(
                     "Module.x.Y.backward.5", "null", "") "," API("A.b.0.forward", "null", "")),
            DUMP("statistics",
                 API("A.b.7.backward", "null", "") "," API("A.b.2.backward", "null", "") "," API(
                     "Module.x.Y.backward.0", "null", "") "," API("A.b.1.forward", "null", "")));
    assert_string_equal(cell(0, "Bench Name"), "A.b.7.backward.input.0");
    assert_string_equal(cell(1, "Bench Name"), "A.b.2.backward.input.0");
    assert_string_equal(cell(2, "Bench Name"), "Module.x.Y.backward.0.input.0");
    assert_string_equal(cell(3, "Bench Name"), "N/A");
}

static void test_equal_names_multiply_and_others_vanish(void **state)
{
    (void)state;
    /* A file name that two rows share makes two rows of one name. */
    static const char row[] = TENSOR("float32", "1", "1", ",\"data_name\":\"x.pt\"");
    char text[2048];
    snprintf(text, sizeof text,
             "{\"task\":\"tensor\",\"data\":{\"A.b.0.forward\":{\"output\":[%s,%s]},"
             "\"A.b.0.note\":{\"output\":[null]}}}",
             row, row);
    compare(text, text);
    assert_int_equal(result.rows, 4);
    assert_string_equal(cell(0, "Cosine"), "unsupported");
    assert_string_equal(cell(0, "Data_name"), "['x.pt', 'x.pt']");
}

static void test_fuzzy_in_statistics(void **state)
{
    (void)state;
    options.fuzzy = true;
    compare(
        DUMP("statistics",
             API("T.a.0.forward", "null", "") "," API("T.a.1.forward", "null", "") "," API(
                 "T.b.0.forward", "null", "") "," API("T.c.0.forward", "null,null", "")),
        DUMP("statistics", API("T.a.9.forward", "null", "") "," API("T.b.4.forward", "null", "")));
    assert_int_equal(result.rows, 4);
    assert_string_equal(cell(0, "Bench Name"), "T.a.9.forward.input.0");
    assert_string_equal(cell(1, "Bench Name"), "N/A");
    assert_string_equal(cell(2, "Bench Name"), "T.b.4.forward.input.0");
    /* The golden side has ended: the row that was being read is the last. */
    assert_string_equal(cell(3, "NPU Name"), "T.c.0.forward.input.0");
}

static void test_mappings(void **state)
{
    (void)state;
    static const char cells[] = "fc1.Dense: fc.Linear\nAttn: Attention\n";
    static const char rows[] = "T.a.0.forward.input.0: T.z.5.forward.input.0\n";
    const char *target = DUMP("statistics", API("Cell.fc1.Dense.forward.0", "null",
                                                "") "," API("Cell.l.AttnX.forward.0", "null", ""));
    const char *golden = DUMP("statistics", API("Module.fc.Linear.forward.0", "null", "") "," API(
                                                "Module.l.AttentionX.forward.0", "null", ""));
    char path[1024];
    snprintf(path, sizeof path, "%s", scratch_write(&scratch, "c.yaml", cells, sizeof cells - 1));
    options.cell_map = path;
    compare(target, golden);
    assert_int_equal(result.unmatched, 0);

    options.cell_map = "";
    compare(target, golden);
    assert_int_equal(result.unmatched, 2);
    compare(target, DUMP("statistics", API("Module.l.AttnX.forward.0", "null", "")));
    assert_int_equal(result.unmatched, 1);

    options.cell_map = NULL;
    snprintf(path, sizeof path, "%s", scratch_write(&scratch, "d.yaml", rows, sizeof rows - 1));
    options.data_map = path;
    compare(DUMP("statistics", API("T.a.0.forward", TENSOR("float32", "1", "1", ""), "")),
            DUMP("statistics", API("T.z.5.forward", TENSOR("int8", "1", "1", ""), "")));
    assert_string_equal(cell(0, "Bench Dtype"), "torch.int8"); /* types are not looked at */
}

static void test_bad_mappings_name_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line;
    } cases[] = {{"a: b\nc: [d]\n", "line 2"}, {"a: b\nc: {d: e}\n", "line 2"},
                 {"- a\n", "line 1"},          {"word\n", "line 1"},
                 {"a: b\n\"c\n", "line 3"},    {"a: &x b\nc: *x\n", "line 2"},
                 {"a: \xff\n", "line 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct names map;
        struct plumb_error err;
        assert_int_equal(names_parse(&map, cases[i].text, strlen(cases[i].text), &err),
                         PLUMB_E_FORMAT);
        if (!strstr(err.message, cases[i].line))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
    struct names map;
    struct plumb_error err;
    assert_int_equal(names_parse(&map, "", 0, &err), PLUMB_OK);
    assert_int_equal(map.count, 0);
    names_free(&map);
    assert_int_equal(names_read(&map, "missing.yaml", &err), PLUMB_E_IO);
}

static void test_rules_of_statistics(void **state)
{
    (void)state;
    /* The norm of the output is off by 100 %, those of the inputs by nothing. */
    compare(DUMP("statistics", API("T.a.0.forward", TENSOR("float32", "1", "1", ""),
                                   TENSOR("float32", "1", "2", ""))),
            DUMP("statistics", API("T.a.0.forward", TENSOR("float32", "1", "1", ""),
                                   TENSOR("float32", "1", "1", ""))));
    assert_string_equal(cell(1, "Result"), "error");
    assert_int_equal(result.errors, 1);
    /* By 20 %: a warning. */
    compare(DUMP("statistics", API("T.a.0.forward", TENSOR("float32", "1", "1", ""),
                                   TENSOR("float32", "1", "1.2", ""))),
            DUMP("statistics", API("T.a.0.forward", TENSOR("float32", "1", "1", ""),
                                   TENSOR("float32", "1", "1", ""))));
    assert_string_equal(cell(1, "Result"), "warning");
    assert_int_equal(result.warnings, 1);
    /* Memory that nobody wrote says nothing. */
    compare(DUMP("statistics",
                 API("T.empty.0.forward", SCALAR("int", "1"), TENSOR("float32", "NaN", "9", ""))),
            DUMP("statistics",
                 API("T.empty.0.forward", SCALAR("int", "2"), TENSOR("float32", "1", "1", ""))));
    assert_int_equal(result.errors + result.warnings, 0);
    /* Inputs of these are buffers; outputs count. */
    compare(
        DUMP("statistics", API("D.all_to_all_single.0.forward", TENSOR("float32", "NaN", "1", ""),
                               TENSOR("float32", "NaN", "9", ""))),
        DUMP("statistics", API("D.all_to_all_single.0.forward", TENSOR("float32", "1", "1", ""),
                               TENSOR("float32", "1", "1", ""))));
    assert_string_equal(cell(0, "Result"), "pass");
    assert_string_equal(cell(1, "Result"), "error");
    /* An argument of another value. */
    compare(DUMP("statistics", API("T.a.0.forward", SCALAR("int", "1"), "")),
            DUMP("statistics", API("T.a.0.forward", SCALAR("int", "2"), "")));
    assert_string_equal(cell(0, "Result"), "error");
}

static void test_checksums(void **state)
{
    (void)state;
    compare(DUMP("statistics", API("T.a.0.forward", SCALAR("int", "3") "," SCALAR("str", "\"x\""),
                                   TENSOR("float32", "1", "1", ",\"md5\":\"00ff00ff\"") ",null")),
            DUMP("statistics", API("T.a.0.forward", SCALAR("int", "3") "," SCALAR("str", "\"y\""),
                                   TENSOR("float32", "1", "1", ",\"md5\":\"00ff00ff\"") ",null")));
    assert_int_equal(plumb_table_columns(result.table), 13);
    assert_string_equal(cell(0, "NPU MD5"), "6dd28e9b"); /* CRC-32 of "3" */
    assert_string_equal(cell(0, "Result"), "pass");
    assert_string_equal(cell(1, "Result"), "error");
    assert_string_equal(cell(2, "BENCH MD5"), "00ff00ff");
    assert_string_equal(cell(3, "NPU MD5"), "N/A");
    assert_string_equal(cell(3, "Result"), "pass");
}

static void test_tasks_must_agree(void **state)
{
    (void)state;
    struct plumb_error err;
    assert_int_equal(try_compare(DUMP("tensor", ""), DUMP("statistics", ""), &err), PLUMB_E_ARG);
    assert_int_equal(try_compare("{}", DUMP("statistics", ""), &err), PLUMB_E_UNSUPPORTED);
}

static void write_floats(const char *side, const char *name, enum plumb_dtype dtype, unsigned rank,
                         const int64_t *shape, const void *data)
{
    struct plumb_tensor tensor;
    char path[512];
    snprintf(path, sizeof path, "%s/dump_tensor_data/%s", side, name);
    scratch_write(&scratch, path, "", 0);
    assert_int_equal(plumb_tensor_init(&tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor.data = data;
    assert_int_equal(plumb_npy_write(scratch.path, &tensor, NULL), PLUMB_OK);
}

static void pair_up(enum plumb_dtype dtype, unsigned rank, const int64_t *shape, const void *target,
                    const void *golden)
{
    static const char text[] =
        DUMP("tensor",
             API("T.a.0.forward", "", TENSOR("float32", "1", "1", ",\"data_name\":\"x.npy\"")));
    write_floats("t", "x.npy", dtype, rank, shape, target);
    write_floats("g", "x.npy", dtype, rank, shape, golden);
    compare(text, text);
}

static void test_metrics(void **state)
{
    (void)state;
    static const char *const titles[] = {"Cosine",
                                         "EucDist",
                                         "MaxAbsErr",
                                         "MaxRelativeErr",
                                         "One Thousandth Err Ratio",
                                         "Five Thousandths Err Ratio",
                                         NULL};
    int64_t two[] = {1, 2}, one[] = {1};
    float a[] = {1, 2}, b[] = {1, 4}, zero[] = {0, 0}, odd[] = {1, INFINITY},
          neg[] = {1, -INFINITY};
    pair_up(PLUMB_F32, 2, two, a, b);
    assert_cells(0, titles,
                 (const char *const[]){"0.976187060184", "2.0", "2.0", "0.5", "0.5", "0.5"});
    pair_up(PLUMB_F32, 2, two, a, zero);
    assert_cells(
        0, titles,
        (const char *const[]){"Nan", "2.23606797749979", "2.0", "16777215.0", "0.0", "0.0"});
    pair_up(PLUMB_F32, 2, two, zero, zero);
    assert_cells(0, titles, (const char *const[]){"1.0", "0.0", "0.0", "0.0", "1.0", "1.0"});
    pair_up(PLUMB_F32, 2, two, odd, a);
    assert_cells(0, titles, (const char *const[]){"N/A", "N/A", "N/A", "N/A", "N/A", "N/A"});
    pair_up(PLUMB_F32, 2, two, odd, neg); /* the sign of infinity is not looked at */
    assert_cells(0, titles, (const char *const[]){"1.0", "0.0", "0.0", "0.0", "1.0", "1.0"});
    pair_up(PLUMB_F32, 1, one, a, b + 1);
    assert_cells(0, titles,
                 (const char *const[]){"unsupported", "unsupported", "3.0", "0.75", "unsupported",
                                       "unsupported"});
    uint8_t small[] = {3}, large[] = {5};
    pair_up(PLUMB_U8, 1, one, small, large); /* numpy wraps around */
    assert_string_equal(cell(0, "MaxAbsErr"), "254.0");
    assert_string_equal(cell(0, "MaxRelativeErr"), "0.40000000596");
    int64_t none[] = {0, 2};
    pair_up(PLUMB_F32, 2, none, a, b);
    assert_string_equal(cell(0, "Cosine"), "unsupported");
}

static void test_damaged_payloads(void **state)
{
    (void)state;
    static const struct {
        const char *file, *cosine;
    } cases[] = {
        {"good.npy", "1.0"},
        {"cut.npy", "unsupported"},
        {"gone.npy", "unsupported"},
        {"../t/dump_tensor_data/good.npy", "unsupported"},
        {"shape.npy", "shape unmatched"},
        {"", "unsupported"},
    };
    enum { CASES = sizeof cases / sizeof cases[0] };
    static const char format[] =
        API("T.a.%zu.forward", "", TENSOR("float32", "1", "1", ",\"data_name\":\"%s\""));
    char text[4096];
    size_t length = (size_t)snprintf(text, sizeof text, "{\"task\":\"tensor\",\"data\":{");
    for (size_t i = 0; i < CASES; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, format, i, cases[i].file);
        length += (size_t)snprintf(text + length, sizeof text - length, i + 1 < CASES ? "," : "}}");
    }
    int64_t two[] = {2}, three[] = {3};
    float a[] = {1, 2, 3};
    for (unsigned i = 0; i < 2; i++) {
        const char *side = i ? "g" : "t";
        write_floats(side, "good.npy", PLUMB_F32, 1, two, a);
        write_floats(side, "cut.npy", PLUMB_F32, 1, two, a);
        assert_int_equal(truncate(scratch.path, 100), 0);
        write_floats(side, "shape.npy", PLUMB_F32, 1, i ? two : three, a);
    }
    compare(text, text);
    assert_int_equal(result.rows, CASES);
    for (size_t i = 0; i < CASES; i++)
        assert_string_equal(cell(i, "Cosine"), cases[i].cosine);
    assert_string_equal(cell(5, "Data_name"), "['-1', '-1']");
}

static void test_stack_column(void **state)
{
    (void)state;
    static const char stack[] = "{\"0\":[[\"T.a.0.forward\"],[\"File 'f', line 1, in g\"]]}";
    const char *text = DUMP("statistics", API("T.a.0.forward", "null,null", ""));
    compare(text, text);
    assert_int_equal(plumb_table_columns(result.table), 27);
    scratch_write(&scratch, "t/stack.json", stack, sizeof stack - 1);
    compare(text, text);
    assert_int_equal(plumb_table_columns(result.table), 28);
    assert_string_equal(cell(0, "NPU_Stack_Info"), "[\"File 'f', line 1, in g\"]");
    assert_string_equal(cell(1, "NPU_Stack_Info"), "N/A");
}

static void test_places(void **state)
{
    (void)state;
    struct plumb_general_places places;
    struct plumb_error err;
    static const char *const files[] = {"t/rank0/dump.json",
                                        "t/rank1/dump.json",
                                        "g/rank4/dump.json",
                                        "g/rank8/dump.json",
                                        "one/rank0/dump.json",
                                        "mt/graph/step1/rank/dump.json",
                                        "mg/graph/step1/rank/dump.json",
                                        "mt/graph/step2/rank/dump.json"};
    char paths[2][1024];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        scratch_write(&scratch, files[i], "{}", 2);
    snprintf(paths[0], sizeof paths[0], "%s", scratch_path(&scratch, "t"));
    snprintf(paths[1], sizeof paths[1], "%s", scratch_path(&scratch, "g"));
    assert_int_equal(plumb_general_find(&places, paths[0], paths[1], &err), PLUMB_OK);
    assert_int_equal(places.count, 2);
    assert_string_equal(places.places[1].rank, "rank1");
    assert_non_null(strstr(places.places[1].golden, "/g/rank8/dump.json"));
    plumb_general_places_free(&places);

    snprintf(paths[1], sizeof paths[1], "%s", scratch_path(&scratch, "one"));
    assert_int_equal(plumb_general_find(&places, paths[0], paths[1], &err), PLUMB_E_ARG);
    assert_int_equal(plumb_general_find(&places, "nowhere", paths[1], &err), PLUMB_E_UNSUPPORTED);

    snprintf(paths[0], sizeof paths[0], "%s", scratch_path(&scratch, "mt"));
    snprintf(paths[1], sizeof paths[1], "%s", scratch_path(&scratch, "mg"));
    assert_int_equal(plumb_general_find(&places, paths[0], paths[1], &err), PLUMB_OK);
    assert_int_equal(places.count, 1);
    assert_string_equal(places.places[0].rank, "rank");
    plumb_general_places_free(&places);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_differences_of_statistics),
        TEST(test_words_for_what_is_not_finite),
        TEST(test_types_that_do_not_fit_part_rows),
        TEST(test_backward_calls_are_counted_anew),
        TEST(test_equal_names_multiply_and_others_vanish),
        TEST(test_fuzzy_in_statistics),
        TEST(test_mappings),
        TEST(test_bad_mappings_name_a_line),
        TEST(test_rules_of_statistics),
        TEST(test_checksums),
        TEST(test_tasks_must_agree),
        TEST(test_metrics),
        TEST(test_damaged_payloads),
        TEST(test_stack_column),
        TEST(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
