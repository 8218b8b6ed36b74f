// A unit test whose tests die in several ways, for the test of the runner.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void passes(void **state)
{
    (void)state;
}

static void aborts(void **state)
{
    (void)state;
    abort();
}

static void fails(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

static void skips(void **state)
{
    (void)state;
    skip();
}

static void leaves(void **state)
{
    (void)state;
    _exit(0);
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(passes), cmocka_unit_test(aborts),
                                       cmocka_unit_test(fails)};
    const struct CMUnitTest second[] = {cmocka_unit_test(skips), cmocka_unit_test(leaves),
                                        cmocka_unit_test(passes)};
    const int failed = cmocka_run_group_tests(first, NULL, NULL);
    return failed + cmocka_run_group_tests(second, NULL, NULL);
}
