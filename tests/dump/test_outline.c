/* How a tensor lies on processes, as its entry in a dump.json has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dump/outline.h"

#include <string.h>

/* 1 or 0: spread or not; -1: damaged. */
static int spread_of(const char *value)
{
    struct json json;
    bool spread = false;
    json_init(&json, value, strlen(value));
    return outline_spread(&json, &spread) ? -1 : spread;
}

static void test_placements(void **state)
{
    (void)state;
    assert_int_equal(spread_of("{\"mesh\": [2], \"placements\": [\"R\"]}"), 0);
    assert_int_equal(spread_of("{\"placements\": [\"R\", \"S(0)\"], \"shape\": [4, {}]}"), 1);
    assert_int_equal(spread_of("{\"placements\": [\"P(sum)\"]}"), 1);
    assert_int_equal(spread_of("{\"placements\": []}"), 0);
    assert_int_equal(spread_of("{}"), 0);
}

/* What nobody expects there says nothing, and ends where it ends. */
static void test_other_values(void **state)
{
    (void)state;
    const char *const values[] = {"null",
                                  "3",
                                  "\"S(0)\"",
                                  "[\"S(0)\"]",
                                  "{\"placements\": \"S(0)\"}",
                                  "{\"placements\": {\"a\": [\"S(0)\"]}}"};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        assert_int_equal(spread_of(values[k]), 0);
}

static void test_damaged(void **state)
{
    (void)state;
    const char *const values[] = {"",
                                  "{",
                                  "{\"placements\"",
                                  "{\"placements\": [\"R\"",
                                  "{\"placements\": [\"R\", 3]}",
                                  "{\"placements\": [\"R\"],",
                                  "{\"mesh\": [}"};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        assert_int_equal(spread_of(values[k]), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_placements),
                                       cmocka_unit_test(test_other_values),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
