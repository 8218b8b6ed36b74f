/* Sums of what is read a piece at a time against MPFR: all lengths around a run, all types, numbers
 * of any size, along the last dimension and across it, at every processor level to the same
 * bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/cpu.h"
#include "plumb/op.h"
#include "random.h"

#include <math.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2100, COLUMNS = 3 };

/* x.sum(dim) in float64. */
static void run(const struct plumb_tensor *x, int64_t dim, double *y, size_t n)
{
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = x},
                                     {.kind = PLUMB_ARG_INT, .integer = dim}};
    const struct plumb_call call = {.prefix = "Tensor", .name = "sum", .args = args, .n_args = 2};
    struct plumb_result result;
    struct plumb_error err = {0};
    if (plumb_op_run(&call, PLUMB_RAISED, &result, &err))
        fail_msg("%s", err.message);
    assert_true(result.outputs[0].tensor->count == n);
    memcpy(y, result.outputs[0].tensor->data, n * sizeof *y);
    plumb_result_destroy(&result);
}

/* Within an ulp of the sum, and what compensated sums lose: a square of the rounding error. */
static void check(const struct plumb_tensor *x, size_t n, size_t stride, size_t first, double got)
{
    static double all[MOST * COLUMNS];
    mpfr_t sum, size, off;
    mpfr_inits2(4000, sum, size, off, (mpfr_ptr)0);
    mpfr_set_ui(sum, 0, MPFR_RNDN);
    mpfr_set_ui(size, 0, MPFR_RNDN);
    plumb_tensor_to_f64(x, 0, x->count, all);
    for (size_t k = 0; k < n; k++) {
        mpfr_add_d(sum, sum, all[first + k * stride], MPFR_RNDN);
        mpfr_add_d(size, size, fabs(all[first + k * stride]), MPFR_RNDN);
    }
    mpfr_sub_d(off, sum, got, MPFR_RNDN);
    const double allowed = fabs(mpfr_get_d(sum, MPFR_RNDN)) * 0x1p-52 +
                           mpfr_get_d(size, MPFR_RNDN) * (double)(n + 1) * 0x1p-104;
    if (!(fabs(mpfr_get_d(off, MPFR_RNDN)) <= allowed))
        fail_msg("%s, %zu numbers: %a is off by %a, allowed are %a",
                 plumb_dtype_info(x->dtype)->name, n, got, mpfr_get_d(off, MPFR_RNDN), allowed);
    mpfr_clears(sum, size, off, (mpfr_ptr)0);
}

/* Exponents within `range` of each other, zeros, and a pair that cancels. */
static void fill(double *x, size_t n, int range, uint64_t *seed)
{
    for (size_t k = 0; k < n; k++) {
        const uint64_t bits = random_bits(seed);
        const double size = ldexp(1 + (double)(bits >> 40) * 0x1p-24, (int)(bits % 997) % range);
        x[k] = bits >> 20 & 1 ? size : -size;
        if (bits % 61 == 0)
            x[k] = 0;
    }
    if (n > 2)
        x[n - 1] = -x[0];
}

static void sum_of(enum plumb_dtype dtype, size_t n, int range, uint64_t *seed)
{
    static double x[MOST * COLUMNS];
    static unsigned char data[MOST * COLUMNS * 4];
    const size_t size = plumb_dtype_info(dtype)->bits / 8;
    fill(x, n * COLUMNS, range, seed);
    plumb_from_f64(dtype, x, n * COLUMNS, data);
    for (int dim = 0; dim < 2; dim++) {
        const int64_t rows = dim ? COLUMNS : (int64_t)n, columns = dim ? (int64_t)n : COLUMNS;
        struct plumb_tensor t;
        struct plumb_error err;
        assert_int_equal(plumb_tensor_init(&t, dtype, 2, (const int64_t[]){rows, columns}, &err),
                         PLUMB_OK);
        assert_true(t.count * size <= sizeof data);
        t.data = data;
        double y[COLUMNS], plain[COLUMNS];
        run(&t, dim, y, COLUMNS);
        plumb_cpu_mask(0);
        run(&t, dim, plain, COLUMNS);
        plumb_cpu_mask(~0U);
        assert_memory_equal(y, plain, sizeof y);
        for (size_t k = 0; k < COLUMNS; k++)
            check(&t, n, dim ? 1 : COLUMNS, dim ? k * n : k, y[k]);
    }
}

static void test_sums(void **state)
{
    (void)state;
    static const size_t lengths[] = {1,   2,   15,   16,   17,   511,  512,  513,  527,
                                     528, 529, 1023, 1024, 1025, 1536, 1553, 2048, MOST};
    static const enum plumb_dtype types[] = {PLUMB_F32, PLUMB_BF16, PLUMB_F16};
    uint64_t seed = 17;
    for (size_t t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int range = 1; range <= (t == 2 ? 15 : 120); range += t == 2 ? 7 : 23)
                sum_of(types[t], lengths[k], range, &seed);
}

/* Where exponents are just near enough for plain additions, and just not. */
static void test_border(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int range = 20; range < 34; range++)
        for (int round = 0; round < 8; round++)
            sum_of(PLUMB_F32, 1024, range, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_border)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
