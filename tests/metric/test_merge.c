/* Cut and merged, on every SIMD level, in every layout: the same result to the last bit. And the
 * two sums that need more than float64: divergence and deviation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARTS = 64 };

static struct plumb_metrics whole(const struct pair *pair, const struct plumb_metric_spec *spec)
{
    struct plumb_metrics metrics;
    assert_int_equal(
        plumb_metric_pair(spec, &pair->target.tensor, &pair->golden.tensor, &metrics, NULL),
        PLUMB_OK);
    return metrics;
}

/* The parts between random block boundaries, spread over a few states in random order, which are
 * then merged in random order. */
static struct plumb_metrics in_parts(const struct pair *pair, const struct plumb_metric_spec *spec,
                                     uint64_t *seed)
{
    const struct plumb_tensor *t = &pair->target.tensor, *g = &pair->golden.tensor;
    uint64_t blocks = t->count / PLUMB_METRIC_BLOCK + 1, first[MAX_PARTS], size[MAX_PARTS];
    size_t count = 0;
    for (uint64_t at = 0; at < blocks;) {
        uint64_t step = 1 + random_below(seed, 4);
        if (count + 1 == MAX_PARTS)
            step = blocks - at;
        first[count] = at * PLUMB_METRIC_BLOCK;
        size[count++] = step * PLUMB_METRIC_BLOCK; /* the last exceeds what is left */
        at += step;
    }
    for (size_t i = count; i-- > 1;) {
        size_t j = (size_t)random_below(seed, i + 1);
        uint64_t a = first[i], b = size[i];
        first[i] = first[j];
        size[i] = size[j];
        first[j] = a;
        size[j] = b;
    }
    struct plumb_metric_state *states[4];
    size_t used = 1 + (size_t)random_below(seed, 4);
    for (size_t i = 0; i < used; i++) {
        states[i] = plumb_metric_new(spec, t->dtype, g->dtype, t->count);
        assert_non_null(states[i]);
    }
    for (size_t i = 0; i < count; i++)
        plumb_metric_update(states[random_below(seed, used)], t, g, first[i], size[i]);
    for (; used > 1; used--) {
        size_t from = (size_t)random_below(seed, used), to = (from + 1) % used;
        plumb_metric_merge(states[to], states[from]);
        plumb_metric_free(states[from]);
        states[from] = states[used - 1];
    }
    struct plumb_metrics metrics;
    plumb_metric_finish(states[0], &metrics);
    plumb_metric_free(states[0]);
    return metrics;
}

static void check_pair(const struct pair *pair, const struct plumb_metric_spec *spec,
                       uint64_t *seed)
{
    plumb_cpu_mask(0);
    struct plumb_metrics plain = whole(pair, spec);
    struct plumb_metrics plain_parts = in_parts(pair, spec, seed);
    plumb_cpu_mask(UINT32_MAX);
    struct plumb_metrics fast = whole(pair, spec);
    reference_same(&plain, &fast);
    reference_same(&plain, &plain_parts);
    for (int i = 0; i < 3; i++) {
        struct plumb_metrics parts = in_parts(pair, spec, seed);
        reference_same(&plain, &parts);
    }
}

static void test_cuts(void **state)
{
    (void)state;
    uint64_t seed = 1;
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (int rule = PLUMB_REL_PLAIN; rule <= PLUMB_REL_PRECHECK; rule++) {
            uint64_t count = random_below(&seed, 12000);
            enum plumb_dtype golden = (enum plumb_dtype)dtype;
            if (rule % 2 == 1)
                golden = (enum plumb_dtype)random_below(&seed, PLUMB_DTYPE_COUNT);
            struct pair pair;
            pair_make(&pair, (enum plumb_dtype)dtype, golden, count,
                      (enum pair_layout)random_below(&seed, LAYOUTS), rule == 0 ? 0 : 4, &seed);
            spec.relative = (enum plumb_relative_rule)rule;
            spec.groups = PLUMB_G_ALL | PLUMB_G_PRECHECK;
            check_pair(&pair, &spec, &seed);
            spec.groups = PLUMB_G_ERROR | PLUMB_G_RELATIVE | PLUMB_G_CLOSE | PLUMB_G_CRC;
            check_pair(&pair, &spec, &seed);
            pair_free(&pair);
        }
}

/* Wild float64 values: huge ones, tiny ones and everything between, specials too. */
static void test_wild_cuts(void **state)
{
    (void)state;
    enum { N = 9000 };
    static double t[N], g[N];
    uint64_t seed = 2;
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < N; i++) {
            int exponent = (int)random_below(&seed, 2000) - 1000;
            if (round % 3 == 0) /* blocks of one size each */
                exponent = i / 2048 * 400 - 900;
            g[i] = ldexp(random_unit(&seed), exponent);
            t[i] = random_below(&seed, 2) ? g[i] * (1 + 1e-9 * random_unit(&seed))
                                          : ldexp(random_unit(&seed), exponent);
            if (round % 2 && random_below(&seed, 3000) == 0)
                t[i] = random_below(&seed, 2) ? NAN : INFINITY;
        }
        struct pair pair;
        struct plumb_metric_spec spec;
        plumb_metric_spec_init(&spec);
        spec.groups = PLUMB_G_ALL;
        pair_from(&pair, PLUMB_F64, t, g, N);
        check_pair(&pair, &spec, &seed);
        pair_free(&pair);
    }
}

/* The layout of the bytes does not matter: the same numbers give the same bits. */
static void test_layouts(void **state)
{
    (void)state;
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_ALL;
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++) {
        struct plumb_metrics dense;
        for (int layout = DENSE; layout < LAYOUTS; layout++) {
            uint64_t seed = 3; /* the same numbers each time */
            struct pair pair;
            pair_make(&pair, (enum plumb_dtype)dtype, (enum plumb_dtype)dtype, 2310,
                      (enum pair_layout)layout, 2, &seed);
            struct plumb_metrics metrics = whole(&pair, &spec);
            if (layout == DENSE)
                dense = metrics;
            reference_same(&dense, &metrics);
            struct plumb_stats stats;
            plumb_tensor_stats(&pair.target.tensor, &stats);
            assert_true(stats.count == metrics.target.count && stats.nan == metrics.target.nan);
            assert_true(isnan(stats.std) ? isnan(metrics.target.std)
                                         : stats.std == metrics.target.std);
            pair_free(&pair);
        }
    }
}

/* -- Checksums --------------------------------------------------------------------------------- */

static void test_crc(void **state)
{
    (void)state;
    assert_int_equal(reference_crc((const unsigned char *)"123456789", 9), 0xCBF43926);
    uint64_t seed = 4;
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_CRC;
    for (int round = 0; round < 60; round++) {
        enum plumb_dtype target = (enum plumb_dtype)random_below(&seed, PLUMB_DTYPE_COUNT);
        enum plumb_dtype golden = (enum plumb_dtype)random_below(&seed, PLUMB_DTYPE_COUNT);
        struct pair pair;
        pair_make(&pair, target, golden, random_below(&seed, 20000), DENSE, 0, &seed);
        uint32_t wanted[2] = {reference_crc(pair.target.dense, pair.target.dense_bytes),
                              reference_crc(pair.golden.dense, pair.golden.dense_bytes)};
        struct plumb_metrics once = whole(&pair, &spec), parts = in_parts(&pair, &spec, &seed);
        assert_int_equal(once.target_crc, wanted[0]);
        assert_int_equal(once.golden_crc, wanted[1]);
        assert_int_equal(parts.target_crc, wanted[0]);
        assert_int_equal(parts.golden_crc, wanted[1]);
        pair_free(&pair);
    }
}

/* -- KL divergence ----------------------------------------------------------------------------- */

static void check_kl(const double *t, const double *g, uint64_t count, double tolerance,
                     uint64_t *seed)
{
    struct pair pair;
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_KL;
    pair_from(&pair, PLUMB_F64, t, g, count);
    double wanted = reference_kl(&pair), got = whole(&pair, &spec).kl;
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("KL of %g, %g, ... is %.17g, not %.17g", t[0], g[0], got, wanted);
    check_pair(&pair, &spec, seed);
    pair_free(&pair);
}

static void test_kl(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double t[N], g[N];
    static const double widths[] = {1, 10, 100, 170, 180, 400, 700, 1e3, 1e4, 1e6, 1e9};
    uint64_t seed = 5;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int variant = 0; variant < 6; variant++) {
            double width = widths[w];
            for (int i = 0; i < N; i++) {
                g[i] = width * random_unit(&seed);
                t[i] = variant == 0   ? g[i]
                       : variant == 1 ? g[i] + 1e-3 * random_unit(&seed)
                       : variant == 2 ? width * random_unit(&seed)
                       : variant == 3 ? g[i] - width /* a constant changes nothing */
                       : variant == 4 || i / 1024 == 3
                           ? g[i] + random_unit(&seed)
                           : g[i] + (random_below(&seed, 2) ? 0.03 : -0.03); /* the series' ends */
                if (variant == 4 && i / 1024 == 2) /* one block of ordinary values among others */
                    g[i] = t[i] = random_unit(&seed);
            }
            double apart = variant == 0 ? 0 : variant == 2 || variant == 3 ? 2 * width : 2;
            check_kl(t, g, N, 3e-11 * (1 + apart) + 4e-16 * width, &seed);
        }
}

/* Close pairs of float32, for which float32 is precise enough: a part of 1e-6 of the divergence. */
static void test_kl_short(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double t[N], g[N];
    static const double widths[] = {1e-3, 1, 10, 59, 65, 160}, noises[] = {0.03, 1e-3, 1e-6};
    struct plumb_metric_spec spec;
    uint64_t seed = 7;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_KL;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int variant = 0; variant < 6; variant++) {
            struct pair pair;
            for (int i = 0; i < N; i++) { /* low numbers alone, too, whose weights are small */
                g[i] = widths[w] * random_unit(&seed);
                g[i] = (double)(float)(variant % 2 ? -widths[w] + 1e-3 * g[i] : g[i]);
                t[i] = (double)(float)(g[i] + noises[variant / 2] * random_unit(&seed));
            }
            pair_from(&pair, PLUMB_F32, t, g, N);
            const double wanted = reference_kl(&pair), got = whole(&pair, &spec).kl;
            if (!(fabs(got - wanted) <= 1e-6 * wanted + 1e-15))
                fail_msg("KL up to %g is %.17g, not %.17g", widths[w], got, wanted);
            check_pair(&pair, &spec, &seed);
            pair_free(&pair);
        }
}

/* Masks of attention: most values at the lowest number of some type. */
static void test_kl_masked(void **state)
{
    (void)state;
    enum { N = 3000 };
    static double t[N], g[N];
    static const double masks[] = {-1e9, -65504, -1e4, -3.4028234663852886e38, -1.7e308};
    uint64_t seed = 6;
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        for (int i = 0; i < N; i++) {
            bool masked = i < 2048 || random_below(&seed, 2);
            g[i] = masked ? masks[m] : random_unit(&seed);
            t[i] = masked ? masks[m] : g[i] + 0.1 * random_unit(&seed);
        }
        check_kl(t, g, N, 1e-10, &seed);
        for (int i = 0; i < N; i++)
            g[i] = t[i] = masks[m]; /* nothing else at all */
        check_kl(t, g, N, 0, &seed);
    }
    /* So far apart that only the largest is left. */
    const double far_t[] = {1e300, -1e300, 5}, far_g[] = {1e300, 1e299, -1e300};
    check_kl(far_t, far_g, 3, 0, &seed);
    const double moved[] = {0, 1e18, 3};
    const double still[] = {1e18, 0, 3};
    check_kl(moved, still, 3, 1e4, &seed);
}

/* -- Deviation --------------------------------------------------------------------------------- */

static void check_std(const double *x, uint64_t count, double tolerance, uint64_t *seed)
{
    struct pair pair;
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_STATS;
    pair_from(&pair, PLUMB_F64, x, x, count);
    long double sum = 0, squares = 0, start = (long double)x[0];
    for (uint64_t i = 0; i < count; i++)
        sum += (long double)x[i] - start;
    for (uint64_t i = 0; i < count; i++) {
        long double away = (long double)x[i] - start - sum / count;
        squares += away * away;
    }
    double wanted = (double)sqrtl(squares / (count - 1)), got = whole(&pair, &spec).target.std;
    if (!(fabs(got - wanted) <= tolerance * wanted))
        fail_msg("the deviation is %.17g, not %.17g", got, wanted);
    check_pair(&pair, &spec, seed);
    pair_free(&pair);
}

static void test_std(void **state)
{
    (void)state;
    enum { N = 7000 };
    static double x[N];
    uint64_t seed = 7;
    static const double offsets[] = {0, 1, -1e4, 1e8, 1e12, -1e15};
    for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
        for (int i = 0; i < N; i++)
            x[i] = offsets[k] + random_unit(&seed);
        check_std(x, N, 1e-12, &seed);
        for (int i = 0; i < N; i++)
            x[i] = offsets[k];
        check_std(x, N, 0, &seed); /* of equal values: 0, exactly */
    }
    for (int i = 0; i < N; i++) /* each block around another middle */
        x[i] = i / 1024 * 1e8 + random_unit(&seed);
    check_std(x, N, 1e-13, &seed);
    /* Large float32 values, as float32. */
    float single[N];
    for (int i = 0; i < N; i++) {
        single[i] = 1e8f + (float)(100 * random_unit(&seed));
        x[i] = (double)single[i];
    }
    check_std(x, N, 1e-13, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),      cmocka_unit_test(test_wild_cuts),
        cmocka_unit_test(test_layouts),   cmocka_unit_test(test_crc),
        cmocka_unit_test(test_kl),        cmocka_unit_test(test_kl_short),
        cmocka_unit_test(test_kl_masked), cmocka_unit_test(test_std),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
