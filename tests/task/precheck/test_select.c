#define _GNU_SOURCE
#include "task/precheck/select.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dump/call.h"
#include "msprobe/api_names.h"
#include "msprobe/profile.h"
#include "scratch.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

static struct check_config config_of(const char *json, struct arena *arena)
{
    struct check_config config;
    struct plumb_error err = {0};
    if (check_config_json(&config, json, strlen(json), arena, &err))
        fail_msg("%s", err.message);
    return config;
}

static void refuse_json(const char *json, uint64_t offset, const char *message)
{
    struct arena arena = {0};
    struct check_config config;
    struct plumb_error err = {0};
    assert_int_equal(check_config_json(&config, json, strlen(json), &arena, &err), PLUMB_E_FORMAT);
    if (err.offset != offset || !strstr(err.message, message))
        fail_msg("%s: at %llu: %s", json, (unsigned long long)err.offset, err.message);
    arena_free(&arena);
}

static void test_config_json(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct check_config config = config_of(
        "{\"task\":\"acc_check\",\"rank\":[],\"acc_check\":{\"white_list\":[\"relu\",\"l\\u0069"
        "nalg.inv\",\"relu\"],\"black_list\":[],\"error_data_path\":\"/tmp/x\",\"precision\":0,"
        "\"is_online\":{\"a\":[1]},\"quantization_api_list\":[\"q\"]}}",
        &arena);
    assert_int_equal(config.white_list.count, 2);
    assert_string_equal(config.white_list.names[0], "relu");
    assert_string_equal(config.white_list.names[1], "linalg.inv");
    assert_int_equal(config.black_list.count, 0);
    assert_string_equal(config.error_data_path, "/tmp/x");
    assert_int_equal(config.precision, 0);
    assert_int_equal(config.quantization_api_list.count, 1);

    /* What is not there, or null, or said again. */
    config = config_of("{\"acc_check\":{\"black_list\":[\"x\"],\"precision\":3},"
                       "\"acc_check\":{\"white_list\":null,\"error_data_path\":null}}",
                       &arena);
    assert_int_equal(config.white_list.count + config.black_list.count, 0);
    assert_string_equal(config.error_data_path, "./");
    assert_int_equal(config.precision, 14);
    arena_free(&arena);

    refuse_json("", 0, "ends in the middle");
    refuse_json("[]", PLUMB_NO_OFFSET, "no section \"acc_check\"");
    refuse_json("{\"white_list\":[]}", PLUMB_NO_OFFSET, "no section \"acc_check\"");
    refuse_json("{\"acc_check\":[]}", 13, "must be an object");
    refuse_json("{\"acc_check\":{\"white_list\":\"relu\"}}", 14, "white_list must be a list");
    refuse_json("{\"acc_check\":{\"black_list\":[1]}}", 14, "black_list must be a list");
    refuse_json("{\"acc_check\":{\"black_list\":[\"a\",[\"b\"],\"c\"]}}", 14, "black_list must be");
    refuse_json("{\"acc_check\":{\"black_list\":[\"\"]}}", 14, "black_list must be a list");
    refuse_json("{\"acc_check\":{\"black_list\":[\"a\\u0000\"]}}", 14, "black_list must be a list");
    refuse_json("{\"acc_check\":{\"error_data_path\":\"\"}}", 14, "error_data_path must be");
    refuse_json("{\"acc_check\":{\"error_data_path\":[]}}", 14, "error_data_path must be");
    static const char *const precisions[] = {"21",           "-1", "1.5",  "\"x\"",
                                             "100000000000", "[]", "true", "NaN"};
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"acc_check\":{\"precision\":%s}}", precisions[i]);
        refuse_json(text, 14, "precision must be a number of decimals from 0 to 20");
    }
    refuse_json("{\"acc_check\":{\"white_list\":[\"a\"", 31, "ends in the middle");
    refuse_json("{\"acc_check\":{}", 15, "ends in the middle");
    refuse_json("{\"acc_check\":{}}x", 16, "after the end");
}

static void refuse_yaml(const char *yaml, const char *message)
{
    struct arena arena = {0};
    struct check_config config;
    struct plumb_error err = {0};
    assert_int_equal(check_config_yaml(&config, yaml, strlen(yaml), &arena, &err), PLUMB_E_FORMAT);
    if (!strstr(err.message, message))
        fail_msg("%s: %s", yaml, err.message);
    arena_free(&arena);
}

static void test_config_yaml(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct check_config config;
    const char *text = "white_list: []\nblack_list:\n- conv1d\n- conv2d\n- conv1d\n"
                       "error_data_path: './'\nprecision: 7\nanything: {a: 1}\n"
                       "quantization_api_list: [a, b]\n";
    assert_int_equal(check_config_yaml(&config, text, strlen(text), &arena, NULL), PLUMB_OK);
    assert_int_equal(config.white_list.count, 0);
    assert_int_equal(config.black_list.count, 2);
    assert_string_equal(config.black_list.names[1], "conv2d");
    assert_string_equal(config.error_data_path, "./");
    assert_int_equal(config.precision, 7);
    assert_int_equal(config.quantization_api_list.count, 2);
    text = "# nothing\n";
    assert_int_equal(check_config_yaml(&config, text, strlen(text), &arena, NULL), PLUMB_OK);
    assert_int_equal(config.precision, 14);
    arena_free(&arena);
    refuse_yaml("- a\n", "settings");
    refuse_yaml("white_list: relu\n", "white_list must be a list");
    refuse_yaml("white_list: [a, [b]]\n", "white_list must be a list");
    refuse_yaml("a: 1\nprecision: 21\n", "precision must be");
    refuse_yaml("error_data_path: []\n", "error_data_path must be");
}

static void test_config_files(void **state)
{
    (void)state;
    struct scratch scratch;
    struct arena arena = {0};
    struct check_config config;
    struct plumb_error err = {0};
    scratch_make(&scratch);
    const char *text = "precision: 3";
    assert_int_equal(
        check_config_read(&config, scratch_write(&scratch, "c.yaml", text, 12), &arena, &err),
        PLUMB_OK);
    assert_int_equal(config.precision, 3);
    text = "{\"acc_check\":{\"precision\":4}}";
    assert_int_equal(check_config_read(&config,
                                       scratch_write(&scratch, "c.json", text, strlen(text)),
                                       &arena, &err),
                     PLUMB_OK);
    assert_int_equal(config.precision, 4);
    const char *path = scratch_write(&scratch, "bad.json", text, 5);
    assert_int_equal(check_config_read(&config, path, &arena, &err), PLUMB_E_FORMAT);
    assert_string_equal(err.file, path);
    assert_int_equal(check_config_read(&config, scratch_path(&scratch, "none"), &arena, &err),
                     PLUMB_E_IO);
    arena_free(&arena);
    scratch_remove(&scratch);
}

static void test_api_names(void **state)
{
    (void)state;
    static const struct {
        const char *prefix;
        size_t count;
    } lists[] = {{"Functional.", 126}, {"Tensor.", 491}, {"Torch.", 506}, {"NPU.", 235}};
    size_t total = 0;
    for (size_t k = 0; k < 4; k++) {
        size_t count = 0;
        for (size_t i = 0; i < api_names_count; i++)
            count += strncmp(api_names[i], lists[k].prefix, strlen(lists[k].prefix)) == 0;
        assert_int_equal(count, lists[k].count);
        total += count;
    }
    assert_int_equal(total, api_names_count);
    assert_null(api_names[api_names_count]);
    for (size_t i = 1; i < api_names_count; i++)
        assert_true(strcmp(api_names[i - 1], api_names[i]) < 0);

    assert_true(api_name_listed("Functional", "conv2d"));
    assert_true(api_name_listed("Torch", "linalg.inv"));
    assert_true(api_name_listed("Tensor", "__add__"));
    assert_true(api_name_listed("NPU", "npu_rms_norm"));
    assert_false(api_name_listed("Tensor", "conv2d"));
    assert_false(api_name_listed("Tensor", "__getitem__"));
    assert_false(api_name_listed("Tensor", ""));
    assert_false(api_name_listed("Other", "add"));
    assert_true(api_name_listed_anywhere("npu_rms_norm"));
    assert_false(api_name_listed_anywhere("__getitem__"));
    char longer[1000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_false(api_name_listed_anywhere(longer));
}

static void test_outcomes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum select_outcome documented, msprobe;
    } cases[] = {
        {"Torch.relu.0", SELECT_RUN, SELECT_RUN},
        {"Torch.linalg.inv.0", SELECT_RUN, SELECT_RUN},
        {"Functional.conv2d.3", SELECT_RUN, SELECT_RUN},
        {"Distributed.all_reduce.0", SELECT_SKIP, SELECT_SKIP},
        {"MindSpeed.rms_norm.0", SELECT_SKIP, SELECT_SKIP},
        {"Distributed", SELECT_SKIP, SELECT_SKIP},
        {"DistributedX.relu.0", SELECT_RUN, SELECT_REFUSED},
        {"", SELECT_SKIP, SELECT_SKIP},
        {"Torch", SELECT_SKIP, SELECT_SKIP},
        {"Torch.relu", SELECT_SKIP, SELECT_SKIP},
        {"Torch.a.b.c.0", SELECT_SKIP, SELECT_SKIP},
        {"Tensor.to.0", SELECT_SKIP, SELECT_SKIP},
        {"Torch.empty.0", SELECT_SKIP, SELECT_SKIP},
        {"Torch.empty_like.0", SELECT_SKIP, SELECT_SKIP},
        {"Torch.empty_permuted.0", SELECT_SKIP, SELECT_SKIP},
        {"Torch.empty_strided.0", SELECT_SKIP, SELECT_SKIP},
        {"Tensor.new_empty.0", SELECT_SKIP, SELECT_SKIP},
        {"Tensor.new_empty_strided.0", SELECT_SKIP, SELECT_SKIP},
        {"NPU.empty_with_format.0", SELECT_SKIP, SELECT_SKIP},
        {"Aten.add.0", SELECT_RUN, SELECT_REFUSED},
        {"VF.lstm.0", SELECT_RUN, SELECT_UNRUN},
        {"NPU.npu_rms_norm.0", SELECT_RUN, SELECT_REFUSED},
        {"Torch.not_in_yaml_op.0", SELECT_RUN, SELECT_REFUSED},
        {"Tensor.__getitem__.0", SELECT_RUN, SELECT_REFUSED},
        {"Other.relu.0", SELECT_RUN, SELECT_REFUSED},
        {"=Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"+Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"-Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"%Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"@Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"＋Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"－Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"＝Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"％Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"＠Torch.relu.0", SELECT_SKIP, SELECT_ABORT},
        {"Torch.re;=lu.0", SELECT_SKIP, SELECT_ABORT},
        {"Torch.re;;＠lu.0", SELECT_SKIP, SELECT_ABORT},
        {"Torch.re;lu.0;", SELECT_RUN, SELECT_REFUSED},
        {"Torch.re=lu.0", SELECT_RUN, SELECT_REFUSED},
    };
    struct check_config config;
    struct selector documented, msprobe;
    check_config_init(&config);
    assert_int_equal(selector_init(&documented, &config, profile_documented.select, NULL),
                     PLUMB_OK);
    assert_int_equal(selector_init(&msprobe, &config, profile_msprobe.select, NULL), PLUMB_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reason;
        enum select_outcome outcome = select_call(&documented, cases[i].name, &reason);
        if (outcome != cases[i].documented || !reason != (outcome == SELECT_RUN))
            fail_msg("documented: %s: %d", cases[i].name, (int)outcome);
        outcome = select_call(&msprobe, cases[i].name, &reason);
        if (outcome != cases[i].msprobe || !reason != (outcome == SELECT_RUN))
            fail_msg("msprobe: %s: %d", cases[i].name, (int)outcome);
    }
    char longer[1000] = "Torch.";
    memset(longer + 6, 'a', 900);
    memcpy(longer + 906, ".0", 3);
    const char *reason;
    assert_int_equal(select_call(&msprobe, longer, &reason), SELECT_REFUSED);
    selector_destroy(&documented);
    selector_destroy(&msprobe);
}

static void test_lists(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct selector selector;
    struct plumb_error err = {0};
    const char *reason;
    struct check_config config =
        config_of("{\"acc_check\":{\"white_list\":[\"relu\",\"mul\",\"to\","
                  "\"linalg.inv\"],\"black_list\":[\"mul\",\"add\"]}}",
                  &arena);
    for (int msprobe = 0; msprobe < 2; msprobe++) {
        assert_int_equal(
            selector_init(&selector, &config, precheck_profiles[msprobe]->select, &err), PLUMB_OK);
        assert_int_equal(select_call(&selector, "Torch.relu.0", &reason), SELECT_RUN);
        assert_int_equal(select_call(&selector, "Torch.linalg.inv.0", &reason), SELECT_RUN);
        assert_int_equal(select_call(&selector, "Torch.mul.0", &reason), SELECT_SKIP);
        assert_string_equal(reason, "on the black_list"); /* black beats white */
        assert_int_equal(select_call(&selector, "Torch.add.0", &reason), SELECT_SKIP);
        assert_string_equal(reason, "on the black_list");
        assert_int_equal(select_call(&selector, "Torch.sum.0", &reason), SELECT_SKIP);
        assert_string_equal(reason, "not on the white_list");
        assert_int_equal(select_call(&selector, "VF.lstm.0", &reason), SELECT_SKIP);
        assert_int_equal(select_call(&selector, "Tensor.to.0", &reason), SELECT_SKIP);
        assert_non_null(strstr(reason, "never checked"));
        selector_destroy(&selector);
    }

    /* A name that these rules cannot check. */
    config = config_of("{\"acc_check\":{\"black_list\":[\"relu\",\"__getitem__\"]}}", &arena);
    assert_int_equal(selector_init(&selector, &config, profile_msprobe.select, &err), PLUMB_E_ARG);
    assert_non_null(strstr(err.message, "black_list: \"__getitem__\""));
    selector_destroy(&selector);
    assert_int_equal(selector_init(&selector, &config, profile_documented.select, &err), PLUMB_OK);
    assert_int_equal(select_call(&selector, "Tensor.__getitem__.0", &reason), SELECT_SKIP);
    selector_destroy(&selector);
    arena_free(&arena);
}

/* A call that is skipped by its name has the row SKIP in the results of msProbe, and one that is
 * skipped there, but not by its name, is one of those that fail when run. */
static void check_results(const char *config_path, const char *result, const char *const *failing)
{
    char path[1000], line[1000];
    const char *data = getenv("PLUMB_TEST_DATA");
    assert_non_null(data);
    struct arena arena = {0};
    struct plumb_error err = {0};
    struct check_config config;
    struct selector selector;
    struct case_file *file;
    check_config_init(&config);
    if (config_path) {
        snprintf(path, sizeof path, "%s/golden/precheck/e2e/%s", data, config_path);
        if (check_config_read(&config, path, &arena, &err))
            fail_msg("%s", err.message);
    }
    assert_int_equal(selector_init(&selector, &config, profile_msprobe.select, &err), PLUMB_OK);
    snprintf(path, sizeof path, "%s/golden/precheck/e2e/skips/dump.json", data);
    if (case_file_open(path, &file, &err))
        fail_msg("%s", err.message);
    snprintf(path, sizeof path, "%s/golden/precheck/e2e/%s", data, result);
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_non_null(fgets(line, sizeof line, stream)); /* the header */
    for (size_t i = 0; i < case_count(file); i++) {
        assert_non_null(fgets(line, sizeof line, stream));
        const char *name = case_place(file, i)->name, *reason;
        char *comma = strchr(line, ',');
        assert_non_null(comma);
        *comma = '\0';
        assert_string_equal(line, name);
        bool skipped = strncmp(comma + 1, "SKIP", 4) == 0, fails = false;
        for (const char *const *f = failing; *f; f++)
            fails |= strcmp(*f, name) == 0;
        enum select_outcome outcome = select_call(&selector, name, &reason);
        const bool refused = outcome == SELECT_SKIP || outcome == SELECT_REFUSED;
        if ((refused || fails) != skipped || (outcome != SELECT_RUN && fails))
            fail_msg("%s: %d", name, (int)outcome);
    }
    assert_null(fgets(line, sizeof line, stream));
    fclose(stream);
    case_file_close(file);
    selector_destroy(&selector);
    arena_free(&arena);
}

static void test_golden(void **state)
{
    (void)state;
    static const char *const all[] = {"Torch.add.6", "Torch.add.7",     "Torch.add.8",
                                      "Torch.add.9", "Torch.sigmoid.0", "Torch.tanh.0",
                                      NULL};
    static const char *const white[] = {"Torch.add.6", "Torch.add.7", "Torch.add.8", "Torch.add.9",
                                        NULL};
    check_results(NULL, "skips/accuracy_checking_result_20260101000003.csv", all);
    check_results("white_black/config_white.json",
                  "white_black/accuracy_checking_result_20260101000005.csv", white);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_json),  cmocka_unit_test(test_config_yaml),
        cmocka_unit_test(test_config_files), cmocka_unit_test(test_api_names),
        cmocka_unit_test(test_outcomes),     cmocka_unit_test(test_lists),
        cmocka_unit_test(test_golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
