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

/* In float32, for numbers that it has and that are not too large. */
static double short_weight(double x)
{
    return kernel_short_weight((float)x);
}

/* The largest relative error of an exponential, which has to be below `limit`. */
static double largest_error(double (*function)(double), double limit)
{
    const bool is_short = function == short_weight;
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
        x = is_short ? (double)(float)fmod(x, KL_SHORT) : x;
        mpfr_set_d(wanted, x, MPFR_RNDN);
        mpfr_exp(wanted, wanted, MPFR_RNDN);
        mpfr_set_d(error, function(x), MPFR_RNDN);
        mpfr_sub(error, error, wanted, MPFR_RNDN);
        mpfr_div(error, error, wanted, MPFR_RNDN);
        double relative = fabs(mpfr_get_d(error, MPFR_RNDN));
        if (!(relative < limit))
            fail_msg("exp(%a) is off by %g", x, relative);
        worst = relative > worst ? relative : worst;
    }
    mpfr_clear(wanted);
    mpfr_clear(error);
    mpfr_free_cache();
    assert_true(worst > 1e-14); /* else nothing was measured */
    assert_true(function(0) == 1);
    return worst;
}

static void test_exp(void **state)
{
    (void)state;
    printf("# kernel_exp: largest relative error %.2g\n", largest_error(kernel_exp, 2e-12));
    printf("# kernel_weight: largest relative error %.2g\n", largest_error(kernel_weight, 3e-9));
    printf("# kernel_short_weight: largest relative error %.2g\n",
           largest_error(short_weight, 2e-7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
