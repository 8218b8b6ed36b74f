#define _GNU_SOURCE
#include "base/names.h"
#include "base/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct yml root;
static struct plumb_error err;

static int end(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

static enum plumb_code parse(const char *text)
{
    return yml_parse(&root, &arena, text, strlen(text), &err);
}

static void test_tree(void **state)
{
    (void)state;
    assert_int_equal(parse("b: [1, '~', ~]\na:\n- {c: d}\nb: e\n---\nlast\n"), PLUMB_OK);
    assert_int_equal(root.count, 2);
    const struct yml *map = &root.items[0];
    assert_int_equal(map->kind, YML_MAP);
    assert_int_equal(map->count, 3);
    assert_string_equal(map->keys[0], "b"); /* in the order of the file, twice */
    assert_string_equal(map->keys[2], "b");
    const struct yml *list = &map->items[0];
    assert_int_equal(list->kind, YML_LIST);
    assert_int_equal(list->count, 3);
    assert_string_equal(list->items[0].text, "1");
    assert_false(yml_is_null(&list->items[1]));
    assert_true(yml_is_null(&list->items[2]));
    const struct yml *inner = &map->items[1].items[0];
    assert_string_equal(inner->keys[0], "c");
    assert_string_equal(inner->items[0].text, "d");
    assert_int_equal(inner->line, 3);
    assert_string_equal(root.items[1].text, "last");
    assert_int_equal(root.items[1].line, 6);
}

static void test_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "# nothing\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(parse(texts[i]), PLUMB_OK);
        assert_int_equal(root.count, 0);
    }
}

static void test_refusals_name_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"a: &x b\nc: *x\n", "line 2: aliases"},
                 {"a: 1\n? [b]\n: c\n", "line 2: a list"},
                 {"a: \"\\0\"\n", "line 1: a text with a NUL"},
                 {"a:\n [[[[[[[[[[[[[[[[[[[[[[", "line 2: nested"},
                 {"a: 1\n b: 2\n", "line 2: not YAML"},
                 {"a\xff", "line 1: not UTF-8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text), PLUMB_E_FORMAT);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].text, err.message);
    }
}

/* Whatever is written as a name is read as that name. */
static void test_names_come_back(void **state)
{
    (void)state;
    static const char *const odd[] = {"A.b.0", "N/A",  "",      "a: b", "1.5", "null", "true",
                                      "\"\\'", "\n\t", "- # x", "~",    " a ", "\x7f", "é.b"};
    enum { COUNT = sizeof odd / sizeof *odd };
    struct names names = {0}, again;
    for (size_t i = 0; i < COUNT; i++)
        assert_true(names_add(&names, odd[i], odd[COUNT - 1 - i]));
    char *text = names_text(&names);
    assert_non_null(text);
    assert_int_equal(names_parse(&again, text, strlen(text), &err), PLUMB_OK);
    assert_int_equal(again.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_string_equal(again.from[i], odd[i]);
        assert_string_equal(names_find(&again, odd[i]), odd[COUNT - 1 - i]);
    }
    free(text);
    names_free(&again);
    names_free(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_tree, end),
        cmocka_unit_test_teardown(test_nothing, end),
        cmocka_unit_test_teardown(test_refusals_name_a_line, end),
        cmocka_unit_test_teardown(test_names_come_back, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
