#define _GNU_SOURCE
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scratch.h"

static struct scratch scratch;

static int begin(void **state)
{
    (void)state;
    scratch_make(&scratch);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static void put(const char *name, const char *text)
{
    scratch_write(&scratch, name, text, strlen(text));
}

/* Second version: the least of the group and those above it; "max" is no limit. */
static void test_one_tree(void **state)
{
    (void)state;
    put("memory.max", "max\n");
    put("job/memory.max", "3000000\n");
    put("job/step/memory.max", "max\n");
    assert_int_equal(memory_group_limit("0::/job/step\n", scratch.folder), 3000000);
    assert_int_equal(memory_group_limit("0::/job", scratch.folder), 3000000);
    put("job/step/memory.max", "2000000\n");
    assert_int_equal(memory_group_limit("0::/job/step\n", scratch.folder), 2000000);
    assert_true(memory_group_limit("0::/other\n", scratch.folder) == UINT64_MAX);
    assert_true(memory_group_limit("0::/\n", scratch.folder) == UINT64_MAX);
}

/* Inside a container the path may be the host's, and only the root is there. */
static void test_path_of_the_host(void **state)
{
    (void)state;
    put("memory.max", "4096\n");
    assert_int_equal(memory_group_limit("0::/docker/0123/init.scope\n", scratch.folder), 4096);
}

static void test_first_version(void **state)
{
    (void)state;
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/a/memory.limit_in_bytes", "5000\n");
    put("a/memory.max", "1\n"); /* of no group of this process */
    const char *groups = "9:name=systemd:/a\n5:cpu,cpuacct:/a\n4:hugetlb,memory:/a/b\n0::/\n";
    assert_int_equal(memory_group_limit(groups, scratch.folder), 5000);
    assert_int_equal(memory_group_limit("3:memory:/\n", scratch.folder), 9223372036854771712ULL);
    assert_true(memory_group_limit("3:memoryless,no_memory:/a\n", scratch.folder) == UINT64_MAX);
}

static void test_odd_texts(void **state)
{
    (void)state;
    put("memory.max", "none of your business\n");
    static const char *const texts[] = {
        "", "\n\n", "0", "0:", "0::", ":::\n", "0::\n", "x\n0:/a\n"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        assert_true(memory_group_limit(texts[k], scratch.folder) == UINT64_MAX);
}

static void test_this_machine(void **state)
{
    (void)state;
    assert_true(memory_total() > 1 << 20);
    assert_true(memory_default() < memory_total());
    assert_true(memory_total() == memory_total());
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes; /* 0: refused */
    } sizes[] = {{"4096", 4096},    {"1K", 1024},       {"1k", 1024},
                 {"1.5M", 3 << 19}, {"2G", 1ULL << 31}, {"1T", 1ULL << 40},
                 {"3MiB", 3 << 20}, {"3MB", 3 << 20},   {"", 0},
                 {"0", 0},          {"-1", 0},          {"1P", 0},
                 {"G", 0},          {"1 G", 0},         {"1GG", 0},
                 {"nan", 0},        {"inf", 0},         {"99999999999T", 0},
                 {"1B", 0},         {"0.1", 0}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t bytes = 0;
        assert_int_equal(memory_parse(sizes[k].text, &bytes), sizes[k].bytes > 0);
        assert_int_equal(bytes, sizes[k].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_tree, begin, end),
        cmocka_unit_test_setup_teardown(test_path_of_the_host, begin, end),
        cmocka_unit_test_setup_teardown(test_first_version, begin, end),
        cmocka_unit_test_setup_teardown(test_odd_texts, begin, end),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
