#define _GNU_SOURCE
#include "task/precheck/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TENSOR(rest) "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float32\"," rest "}"

/* A dump of calls of one API, each its positional arguments, a tab, its keyword arguments. */
static struct case_file *make(char **text, const char *const *calls, size_t count)
{
    size_t size;
    FILE *stream = open_memstream(text, &size);
    assert_non_null(stream);
    fprintf(stream, "{\"framework\":\"pytorch\",\"data\":{");
    for (size_t i = 0; i < count; i++) {
        const char *tab = strchr(calls[i], '\t');
        fprintf(stream, "%s\"Torch.f.%zu.forward\":{\"input_args\":[%.*s],\"input_kwargs\":{%s}}",
                i ? "," : "", i, (int)(tab - calls[i]), calls[i], tab + 1);
    }
    fprintf(stream, "}}");
    assert_int_equal(fclose(stream), 0);
    struct case_file *file;
    struct plumb_error err = {0};
    if (case_file_parse(*text, size, "dump.json", &file, &err))
        fail_msg("%s", err.message);
    return file;
}

/* Whether the second call counts as a repetition of the first. */
static bool repeats(bool msprobe, const char *first, const char *second)
{
    const char *calls[] = {first, second};
    bool keep[2] = {false, false};
    char *text;
    struct case_file *file = make(&text, calls, 2);
    assert_int_equal(filter_repeats(file, msprobe, keep, NULL), PLUMB_OK);
    assert_true(keep[0]);
    case_file_close(file);
    free(text);
    return !keep[1];
}

static void test_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        bool documented, msprobe;
    } cases[] = {
        {"\t", "\t", true, true},
        {TENSOR("\"shape\":[2],\"Max\":1,\"Min\":0") "\t",
         TENSOR("\"shape\":[2],\"Max\":2,\"Min\":1") "\t", true, true},
        {TENSOR("\"shape\":[2]") "\t", TENSOR("\"shape\":[3]") "\t", false, false},
        {TENSOR("\"shape\":[2]") "\t",
         "{\"type\":\"torch.Tensor\",\"dtype\":\"torch.float16\","
         "\"shape\":[2]}\t",
         false, false},
        {TENSOR("\"shape\":[2],\"requires_grad\":true") "\t",
         TENSOR("\"shape\":[2],\"requires_grad\":false") "\t", false, false},
        /* Every other recorded value. */
        {TENSOR("\"Mean\":1") "\t", TENSOR("\"Mean\":2") "\t", true, false},
        {TENSOR("\"Norm\":1") "\t", TENSOR("\"Norm\":2") "\t", true, false},
        {TENSOR("\"md5\":\"a\"") "\t", TENSOR("\"md5\":\"b\"") "\t", true, false},
        {TENSOR("\"data_name\":\"a\"") "\t", TENSOR("\"data_name\":\"b\"") "\t", true, false},
        {TENSOR("\"datapath\":\"a\"") "\t", TENSOR("\"datapath\":\"b\"") "\t", true, false},
        {TENSOR("\"Max_except_inf_nan\":1") "\t", TENSOR("\"Max_except_inf_nan\":2") "\t", true,
         false},
        {TENSOR("\"Min_except_inf_nan\":1") "\t", TENSOR("\"Shape\":1") "\t", false, false},
        /* In keyword arguments. */
        {"\t\"out\":" TENSOR("\"Max\":1"), "\t\"out\":" TENSOR("\"Max\":2"), true, false},
        {"\t\"Max\":1", "\t\"Max\":2", false, false},
        {"\t\"a\":1,\"b\":2", "\t\"b\":2,\"a\":1", true, true},
        {"\t\"a\":1,\"b\":2", "\t\"a\":2,\"b\":1", false, false},
        {"\t\"a\":1", "\t\"a\":1,\"b\":null", false, false},
        {"\t\"a\":3,\"a\":1", "\t\"a\":1", true, true},
        /* Lists and nulls: not looked at by the other rules. */
        {"[" TENSOR("\"shape\":[2]") "]\t", "[" TENSOR("\"shape\":[3]") "]\t", false, true},
        {"[" TENSOR("\"Max\":2") "]\t", "[" TENSOR("\"Max\":3") "]\t", true, true},
        {"null\t", "\t", false, true},
        {"1\t", "2\t", false, true},
        /* Values are equal as they are in Python. */
        {"\t\"a\":1", "\t\"a\":1.0", true, true},
        {"\t\"a\":1", "\t\"a\":true", true, true},
        {"\t\"a\":0", "\t\"a\":-0.0", true, true},
        {"\t\"a\":NaN", "\t\"a\":NaN", true, true},
        {"\t\"a\":Infinity", "\t\"a\":-Infinity", false, false},
        {"\t\"a\":9007199254740992", "\t\"a\":9007199254740993", false, false},
        {"\t\"a\":9007199254740992", "\t\"a\":9007199254740992.0", true, true},
        {"\t\"a\":9223372036854775807", "\t\"a\":9223372036854775808", false, false},
        {"\t\"a\":100000000000000000001", "\t\"a\":100000000000000000002", false, false},
        {"\t\"a\":1", "\t\"a\":\"1\"", false, false},
        {"\t\"a\":\"\\u0061\"", "\t\"a\":\"a\"", true, true},
        {"\t\"a\":null", "\t\"a\":false", false, false},
        {"\t\"a\":[[1],2]", "\t\"a\":[[1,2]]", false, false},
        {"\t\"a\":{\"b\":{}}", "\t\"a\":{\"b\":[]}", false, false},
        {"\t\"a\":{\"b\":1,\"c\":{\"d\":1,\"e\":2}}", "\t\"a\":{\"c\":{\"e\":2,\"d\":1},\"b\":1}",
         true, true},
        {"{\"type\":\"int\",\"value\":1}\t", "{\"type\":\"int\",\"value\":2}\t", false, false},
        /* A dictionary's own keys are no statistics. */
        {"{\"a\":1,\"Mean\":1}\t", "{\"a\":1,\"Mean\":2}\t", false, false},
        {"{\"a\":1,\"Max\":1}\t", "{\"a\":1,\"Max\":2}\t", false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (repeats(false, cases[i].first, cases[i].second) != cases[i].documented ||
            repeats(true, cases[i].first, cases[i].second) != cases[i].msprobe)
            fail_msg("%s | %s", cases[i].first, cases[i].second);
    }
}

static void filter_text(const char *text, bool msprobe, const char *expected)
{
    struct case_file *file;
    struct plumb_error err = {0};
    bool keep[16];
    if (case_file_parse(text, strlen(text), "dump.json", &file, &err))
        fail_msg("%s", err.message);
    assert_int_equal(case_count(file), strlen(expected));
    if (filter_repeats(file, msprobe, keep, &err))
        fail_msg("%s", err.message);
    for (size_t i = 0; expected[i]; i++)
        if (keep[i] != (expected[i] == '+'))
            fail_msg("call %zu", i);
    case_file_close(file);
}

#define HEAD "{\"framework\":\"pytorch\",\"data\":{"

/* The same call under these names, with backwards from number `backward` on. */
static char *calls_of(const char *const *names, size_t count, size_t backward)
{
    size_t size;
    char *text;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    fprintf(stream, HEAD "\"Module.first.forward.0\":{}");
    for (size_t i = 0; i < count; i++)
        fprintf(stream, ",\"%s.forward\":{\"input_args\":[1],\"input_kwargs\":{}}", names[i]);
    for (size_t i = backward; i < count; i++)
        fprintf(stream, ",\"%s.backward\":{}", names[i]);
    fprintf(stream, "}}");
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void test_groups(void **state)
{
    (void)state;
    static const char *const names[] = {"Torch.a.0", "Torch.b.0", "Tensor.a.0",
                                        "Torch.a.1", "Torch.b.7", "Torch.a.b.0"};
    char *text = calls_of(names, 6, 6);
    filter_text(text, true, "+++--+");
    filter_text(text, false, "+++--+");
    free(text);

    /* A call whose backward can be checked is worth more than one without. */
    static const char *const again[] = {"Torch.a.0", "Torch.a.1", "Torch.a.2"};
    text = calls_of(again, 3, 1);
    filter_text(text, false, "++-");
    filter_text(text, true, "+--");
    free(text);
}

static void test_odd_entries(void **state)
{
    (void)state;
    /* What cannot be understood is kept, to be complained about where calls are checked. */
    filter_text(HEAD "\"T.a.0.forward\":null,\"T.a.1.forward\":null,\"T.a.2.forward\":{},"
                     "\"T.a.3.forward\":{},\"T.a.4.forward\":[]}}",
                false, "+++-+");
    filter_text("{\"framework\":\"pt\",\"data\":{}}", true, "");

    static const char *const wrong[] = {"{\"input_args\":[]}", "{\"input_kwargs\":{}}", "null",
                                        "{\"input_args\":null,\"input_kwargs\":{}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[300];
        struct case_file *file;
        struct plumb_error err = {0};
        bool keep[2];
        snprintf(text, sizeof text,
                 HEAD "\"Torch.a.0.forward\":{\"input_args\":[1],\"input_kwargs\":{}},"
                      "\"Torch.bad.0.forward\":%s}}",
                 wrong[i]);
        assert_int_equal(case_file_parse(text, strlen(text), "dump.json", &file, &err), PLUMB_OK);
        assert_int_equal(filter_repeats(file, true, keep, &err), PLUMB_E_FORMAT);
        assert_non_null(strstr(err.message, "Torch.bad.0"));
        assert_int_equal(err.offset, strstr(text, wrong[i]) - text);
        assert_string_equal(err.file, "dump.json");
        case_file_close(file);
    }
}

static void test_deep(void **state)
{
    (void)state;
    char deep[500] = "\t\"a\":", *p = deep + strlen(deep);
    memset(p, '[', 100);
    memset(p + 100, ']', 100);
    assert_false(repeats(false, deep, deep));
}

static void test_many(void **state)
{
    (void)state;
    enum { MANY = 20000, KINDS = 700 };
    size_t size;
    char *text;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    fprintf(stream, HEAD);
    for (int i = 0; i < MANY; i++)
        fprintf(stream,
                "%s\"Torch.a.%d.forward\":{\"input_args\":[{\"Max\":%d,\"x\":%d}],"
                "\"input_kwargs\":{}}",
                i ? "," : "", i, i, i * 31 % KINDS);
    fprintf(stream, "}}");
    assert_int_equal(fclose(stream), 0);
    struct case_file *file;
    assert_int_equal(case_file_parse(text, size, "dump.json", &file, NULL), PLUMB_OK);
    bool *keep = calloc(MANY, sizeof *keep);
    assert_non_null(keep);
    assert_int_equal(filter_repeats(file, true, keep, NULL), PLUMB_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(keep[i], i < KINDS); /* 31 and 700 have no common factor */
    free(keep);
    case_file_close(file);
    free(text);
}

/* The rows of a result that was made with -f. */
static void test_golden(void **state)
{
    (void)state;
    char path[1000], line[1000];
    const char *data = getenv("PLUMB_TEST_DATA");
    assert_non_null(data);
    snprintf(path, sizeof path, "%s/golden/precheck/e2e/filter/dump.json", data);
    struct case_file *file;
    struct plumb_error err = {0};
    if (case_file_open(path, &file, &err))
        fail_msg("%s", err.message);
    bool *keep = calloc(case_count(file), sizeof *keep);
    assert_non_null(keep);
    assert_int_equal(filter_repeats(file, true, keep, &err), PLUMB_OK);

    snprintf(path, sizeof path,
             "%s/golden/precheck/e2e/filter/accuracy_checking_result_20260101000008.csv", data);
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_non_null(fgets(line, sizeof line, stream)); /* the header */
    for (size_t i = 0; i < case_count(file); i++) {
        if (!keep[i])
            continue;
        assert_non_null(fgets(line, sizeof line, stream));
        line[strcspn(line, ",")] = '\0';
        assert_string_equal(line, case_place(file, i)->name);
    }
    assert_null(fgets(line, sizeof line, stream));
    fclose(stream);

    size_t kept = 0;
    assert_int_equal(filter_repeats(file, false, keep, &err), PLUMB_OK);
    for (size_t i = 0; i < case_count(file); i++)
        kept += keep[i];
    assert_int_equal(kept, 38);
    free(keep);
    case_file_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),       cmocka_unit_test(test_groups),
        cmocka_unit_test(test_odd_entries), cmocka_unit_test(test_deep),
        cmocka_unit_test(test_many),        cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
