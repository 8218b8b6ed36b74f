/* The matrix product: OpenBLAS, where there is one, and plumb's own loops, against the sum that
 * defines them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/op/blas.h"
#include "exec/op/quad.h"
#include "plumb/metric.h"
#include "random.h"

#include <float.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* One product: c = alpha * op(a) * op(b) + beta * c. */
struct product {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    double alpha, beta;
};

enum { MAX_SIDE = 300, ROOM = MAX_SIDE * (MAX_SIDE + 5) };

static double a[ROOM], b[ROOM], before[ROOM], after[ROOM];

/* A gemm of one of the number types, with its operands given and returned as doubles. */
#define ADAPT(function, real)                                                                      \
    void function(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *x,    \
                  int64_t lda, const real *y, int64_t ldb, real beta, real *z, int64_t ldc);       \
    static void call_##function(const struct product *p)                                           \
    {                                                                                              \
        static real x[ROOM], y[ROOM], z[ROOM];                                                     \
        for (int i = 0; i < ROOM; i++) {                                                           \
            x[i] = (real)a[i];                                                                     \
            y[i] = (real)b[i];                                                                     \
            z[i] = (real)before[i];                                                                \
        }                                                                                          \
        function(p->ta, p->tb, p->m, p->n, p->k, (real)p->alpha, x, p->lda, y, p->ldb,             \
                 (real)p->beta, z, p->ldc);                                                        \
        for (int i = 0; i < ROOM; i++)                                                             \
            after[i] = (double)z[i];                                                               \
    }
ADAPT(gemm_f32, float)
ADAPT(gemm_f64, double)
ADAPT(gemm_f128, quad)
ADAPT(gemm_plain_f32, float)
ADAPT(gemm_plain_f64, double)

static const struct {
    const char *name;
    void (*call)(const struct product *p);
    double eps;
} kinds[] = {
    {"gemm_f32", call_gemm_f32, FLT_EPSILON},
    {"gemm_f64", call_gemm_f64, DBL_EPSILON},
    {"gemm_f128", call_gemm_f128, DBL_EPSILON}, /* returned as double */
    {"gemm_plain_f32", call_gemm_plain_f32, FLT_EPSILON},
    {"gemm_plain_f64", call_gemm_plain_f64, DBL_EPSILON},
};

/* Numbers that every type holds. */
static void fill(double *x, uint64_t *seed)
{
    for (int i = 0; i < ROOM; i++)
        x[i] = (double)(float)random_unit(seed);
}

static void check(const struct product *p)
{
    for (size_t f = 0; f < sizeof kinds / sizeof *kinds; f++) {
        kinds[f].call(p);
        for (int64_t i = 0; i < ROOM; i++) {
            const int64_t row = p->ldc ? i / p->ldc : 0, column = p->ldc ? i % p->ldc : 0;
            if (row >= p->m || column >= p->n) {
                if (!(after[i] == before[i] || isnan(before[i])))
                    fail_msg("%s wrote beside its result", kinds[f].name);
                continue;
            }
            quad sum = 0, size = 0;
            for (int64_t l = 0; l < p->k; l++) {
                const quad x = p->ta ? a[l * p->lda + row] : a[row * p->lda + l];
                const quad y = p->tb ? b[column * p->ldb + l] : b[l * p->ldb + column];
                sum += x * y;
                size += quad_fabs(x * y);
            }
            const quad old = p->beta == 0 ? 0 : p->beta * (quad)before[i];
            const quad wanted = p->alpha * sum + old;
            const quad bound =
                ((quad)p->k + 3) * kinds[f].eps * (quad_fabs(p->alpha) * size + quad_fabs(old));
            if (!(quad_fabs((quad)after[i] - wanted) <= bound))
                fail_msg("%s: %c%c %d x %d x %d: element %d, %d is %.17g, should be %.17g",
                         kinds[f].name, p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', (int)p->m, (int)p->n,
                         (int)p->k, (int)row, (int)column, after[i], (double)wanted);
        }
    }
}

static void test_definition(void **state)
{
    (void)state;
    static const int64_t sides[][3] = {
        {1, 1, 1}, {1, 1, 9},  {1, 7, 1},   {7, 1, 1},   {5, 1, 8},      {1, 5, 8},
        {2, 3, 4}, {4, 64, 7}, {5, 65, 17}, {33, 7, 64}, {70, 130, 129}, {3, 3, 257},
    };
    static const double factors[][2] = {{1, 0}, {1, 1}, {-0.5, 2}, {0, 0.25}};
    uint64_t seed = 1;
    fill(a, &seed);
    fill(b, &seed);
    fill(before, &seed);
    for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
        for (int bits = 0; bits < 32; bits++) {
            const int64_t m = sides[s][0], n = sides[s][1], k = sides[s][2];
            struct product p = {.ta = bits & 1, .tb = bits & 2, .m = m, .n = n, .k = k};
            const int64_t gap = bits & 4 ? 3 : 0;
            p.lda = (p.ta ? m : k) + gap;
            p.ldb = (p.tb ? k : n) + gap;
            p.ldc = n + gap;
            p.alpha = factors[bits >> 3][0];
            p.beta = factors[bits >> 3][1];
            check(&p);
        }
}

/* No columns to sum: c is scaled; no rows or columns at all: nothing happens. */
static void test_empty(void **state)
{
    (void)state;
    uint64_t seed = 2;
    fill(before, &seed);
    for (int bits = 0; bits < 16; bits++) {
        struct product p = {.ta = bits & 1, .tb = bits & 2, .m = 3, .n = 4, .k = 0};
        p.lda = p.ldb = p.ldc = 4;
        p.alpha = 1;
        p.beta = bits & 4 ? 0 : 2;
        check(&p);
        p.k = 3;
        *(bits & 8 ? &p.m : &p.n) = 0;
        check(&p);
    }
}

/* beta = 0 forgets what was there; NaN in the factors does not get lost. */
static void test_nan(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int bits = 0; bits < 4; bits++)
        for (int64_t n = 1; n < 6; n++) {
            fill(a, &seed);
            fill(b, &seed);
            for (int i = 0; i < ROOM; i++)
                before[i] = NAN;
            struct product p = {bits & 1, bits & 2, 5, n, 6, 6, 6, n, 1, 0};
            check(&p);
            p.m = 1;
            check(&p);
            a[0] = NAN;
            p.m = 5;
            for (size_t f = 0; f < sizeof kinds / sizeof *kinds; f++) {
                kinds[f].call(&p);
                for (int64_t j = 0; j < 5 * n; j++)
                    if ((isnan(after[j]) != 0) != (j < n))
                        fail_msg("%s: element %d is %g", kinds[f].name, (int)j, after[j]);
            }
        }
}

void gemm_f64(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double *x,
              int64_t lda, const double *y, int64_t ldb, double beta, double *z, int64_t ldc);

static void *multiply(void *to)
{
    const int64_t n = MAX_SIDE;
    gemm_f64(false, true, n, n, n, 1, a, n, b, n, 0, to, n);
    return NULL;
}

/* Several threads at once get the bytes that one alone gets. */
static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    static double results[THREADS + 1][MAX_SIDE * MAX_SIDE];
    uint64_t seed = 4;
    fill(a, &seed);
    fill(b, &seed);
    multiply(results[THREADS]);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply, results[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_memory_equal(results[i], results[THREADS], sizeof results[i]);
    assert_non_null(blas_name());
    assert_int_equal(blas_find() == NULL, strcmp(blas_name(), "plain") == 0);
}

/* Numbers of 113 bits: within 100 bits of the definition, whatever the processor has. Those that no
 * double holds, in every third run, go another way, with the same result. */
static void test_binary128(void **state)
{
    (void)state;
    enum { M = 9, N = 37, K = 300 };
    static quad x[M * K], y[K * N], z[2][M * N];
    uint64_t seed = 5;
    for (int run = 0; run < 12; run++) {
        for (int i = 0; i < M * K; i++)
            x[i] = (quad)random_unit(&seed) / 3;
        for (int i = 0; i < K * N; i++)
            y[i] = run % 2 ? (quad)random_unit(&seed) : (quad)random_unit(&seed) / 7;
        if (run % 3 == 0)
            x[run] = y[run] = QUAD_C(1e-3000);
        for (int level = 0; level < 2; level++) {
            plumb_cpu_mask(level ? UINT32_MAX : 0);
            gemm_f128(run & 4, run & 8, M, N, K, 1, x, run & 4 ? M : K, y, run & 8 ? K : N, 0,
                      z[level], N);
        }
        assert_memory_equal(z[0], z[1], sizeof z[0]);
        for (int i = 0; i < M * N; i++) {
            quad sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                const quad term = x[run & 4 ? k * M + i / N : i / N * K + k] *
                                  y[run & 8 ? i % N * K + k : k * N + i % N];
                sum += term;
                size += quad_fabs(term);
            }
            if (!(quad_fabs(z[0][i] - sum) <= size * QUAD_C(0x1p-100)))
                fail_msg("element %d is %.17g, off by %g", i, (double)z[0][i],
                         (double)(z[0][i] - sum));
        }
    }
    x[3] = (quad)INFINITY;
    gemm_f128(false, false, M, N, K, 1, x, K, y, N, 0, z[0], N);
    for (int i = 0; i < M * N; i++)
        assert_int_equal(!quad_isfinite(z[0][i]), i < N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_nan),        cmocka_unit_test(test_binary128),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
