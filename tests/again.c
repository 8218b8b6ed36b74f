// Every unit test is linked with this in front of cmocka's runner (-Wl,--wrap). It names the tests
// before it runs them, and with PLUMB_TEST_FROM=K it leaves out the first K: tests/run.py starts a
// program again behind a test that died, so that no result is lost.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown);

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction teardown)
{
    static size_t before; // in the groups that ran already
    const char *told = getenv("PLUMB_TEST_FROM");
    size_t from = told ? strtoul(told, NULL, 10) : 0;
    size_t first = from < before ? 0 : from - before;

    setvbuf(stdout, NULL, _IOLBF, 0); // what was reported is not lost when the next test dies
    if (told)
        for (size_t i = 0; i < count; i++)
            printf("# test %zu %s\n", before + i, tests[i].name);
    before += count;
    if (first >= count)
        return 0;
    return __real__cmocka_run_group_tests(name, tests + first, count - first, setup, teardown);
}
