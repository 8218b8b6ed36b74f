/* The kernels' exponential against MPFR. That all levels have the same, test_kernels.c checks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/kernel.h"
#include "random.h"

#include <mpfr.h>
#include <stdio.h>

static void test_exp(void **state)
{
    (void)state;
    uint64_t seed = 4;
    double worst = 0;
    mpfr_t wanted, error;
    mpfr_init2(wanted, 120);
    mpfr_init2(error, 120);
    for (int i = 0; i < 60000; i++) {
        double x = 177.5 * random_unit(&seed);
        if (i < 512) /* the ends of the interval of the series */
            x = (i - 256 + 0.5) * 0.6931471805599453;
        else if (i % 10 == 0)
            x = 708 * random_unit(&seed);
        else if (i % 10 == 1)
            x = ldexp(random_unit(&seed), -(int)random_below(&seed, 60));
        mpfr_set_d(wanted, x, MPFR_RNDN);
        mpfr_exp(wanted, wanted, MPFR_RNDN);
        mpfr_set_d(error, kernel_exp(x), MPFR_RNDN);
        mpfr_sub(error, error, wanted, MPFR_RNDN);
        mpfr_div(error, error, wanted, MPFR_RNDN);
        double relative = fabs(mpfr_get_d(error, MPFR_RNDN));
        if (!(relative < 2e-11))
            fail_msg("exp(%a) is off by %g", x, relative);
        worst = relative > worst ? relative : worst;
    }
    mpfr_clear(wanted);
    mpfr_clear(error);
    mpfr_free_cache();
    printf("# kernel_exp: largest relative error %.2g\n", worst);
    assert_true(worst > 1e-14); /* else nothing was measured */
    assert_true(kernel_exp(0) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
