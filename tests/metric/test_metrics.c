/* Metrics against a naive implementation, and what NaNs and infinities mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>

static void spec_all(struct plumb_metric_spec *spec)
{
    plumb_metric_spec_init(spec);
    spec->groups = PLUMB_G_ALL;
}

static struct plumb_metrics metrics_of(const struct pair *pair,
                                       const struct plumb_metric_spec *spec)
{
    struct plumb_metrics metrics;
    struct plumb_error err;
    memset(&metrics, 0xAA, sizeof metrics);
    if (plumb_metric_pair(spec, &pair->target.tensor, &pair->golden.tensor, &metrics, &err))
        fail_msg("%s", err.message);
    return metrics;
}

static double metric(const struct plumb_metrics *metrics, const char *name)
{
    const struct plumb_metric_name *row = plumb_metric_find(name);
    if (!row)
        fail_msg("there is no metric %s", name);
    return row->value(metrics);
}

/* -- Finite values ----------------------------------------------------------------------------- */

static void check_types(enum plumb_dtype target, enum plumb_dtype golden, uint64_t count,
                        enum pair_layout layout, uint64_t *seed)
{
    struct plumb_metric_spec spec;
    spec_all(&spec);
    if (count % 2) { /* other limits than the usual ones */
        spec.rtol = 1e-2;
        spec.atol = 1e-4;
        spec.gt = 1e-3;
        spec.ulp_threshold = 3;
        spec.small = 1e-2;
        spec.small_atol = 1e-5;
    }
    struct pair pair;
    pair_make(&pair, target, golden, count, layout, 0, seed);
    struct plumb_metrics metrics = metrics_of(&pair, &spec);
    reference_check(&pair, &spec, &metrics);
    pair_free(&pair);
}

static void test_equal_types(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 7, 1023, 1024, 1025, 2049, 5000};
    uint64_t seed = 1;
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            check_types((enum plumb_dtype)dtype, (enum plumb_dtype)dtype, counts[i], DENSE, &seed);
}

static void test_layouts(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (int layout = SWAPPED; layout < LAYOUTS; layout++)
            check_types((enum plumb_dtype)dtype, (enum plumb_dtype)dtype, 2100,
                        (enum pair_layout)layout, &seed);
}

static void test_mixed_types(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (unsigned target = 0; target < PLUMB_DTYPE_COUNT; target++)
        for (unsigned golden = 0; golden < PLUMB_DTYPE_COUNT; golden++)
            check_types((enum plumb_dtype)target, (enum plumb_dtype)golden,
                        1 + random_below(&seed, 1500),
                        (enum pair_layout)random_below(&seed, LAYOUTS), &seed);
}

/* Neighbours that float64 cannot tell apart. */
static void test_int64(void **state)
{
    (void)state;
    const int64_t big = INT64_C(1) << 62;
    const int64_t t[] = {big + 1, big, INT64_MAX, INT64_MIN, -1, INT64_MIN};
    const int64_t g[] = {big, big + 3, INT64_MAX - 1, INT64_MIN + 1, 0, INT64_MAX};
    struct plumb_metric_spec spec;
    spec_all(&spec);
    struct pair pair;
    pair_from(&pair, PLUMB_I64, t, g, 5);
    struct plumb_metrics m = metrics_of(&pair, &spec);
    reference_check(&pair, &spec, &m);
    assert_true(m.max_abs == 3 && m.max_abs_index == 1 && m.min_abs == 1);
    assert_true(m.unequal == 5 && m.above == 2 && m.below == 3 && m.abs_over[0] == 5);
    assert_true(m.mean_abs == 7.0 / 5);
    pair_free(&pair);

    pair_from(&pair, PLUMB_I64, t, g, 6);
    m = metrics_of(&pair, &spec);
    reference_check(&pair, &spec, &m);
    assert_true(m.max_abs == 0x1p64 && m.max_abs_index == 5);
    pair_free(&pair);

    const uint64_t ut[] = {UINT64_MAX, UINT64_MAX - 1, 0};
    const uint64_t ug[] = {UINT64_MAX - 1, UINT64_MAX - 1, 1};
    pair_from(&pair, PLUMB_U64, ut, ug, 3);
    m = metrics_of(&pair, &spec);
    reference_check(&pair, &spec, &m);
    assert_true(m.max_abs == 1 && m.unequal == 2);
    /* One side signed, the other not. */
    pair.golden.tensor.dtype = PLUMB_I64;
    m = metrics_of(&pair, &spec);
    assert_true(m.max_abs == 0x1p64 && m.max_abs_index == 0);
    pair_free(&pair);
}

static void test_empty(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        check_types((enum plumb_dtype)dtype, (enum plumb_dtype)dtype, 0, DENSE, &seed);
    struct plumb_tensor tensor;
    struct plumb_stats stats;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 1, (const int64_t[]){0}, NULL),
                     PLUMB_OK);
    plumb_tensor_stats(&tensor, &stats);
    assert_true(stats.count == 0 && isnan(stats.min) && isnan(stats.max) && isnan(stats.mean) &&
                isnan(stats.std) && isnan(stats.norm) && isnan(stats.finite_min));
}

static void test_counts_differ(void **state)
{
    (void)state;
    struct plumb_tensor a, b;
    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    struct plumb_error err;
    const float x[3] = {0};
    spec_all(&spec);
    plumb_tensor_init(&a, PLUMB_F32, 1, (const int64_t[]){2}, NULL);
    plumb_tensor_init(&b, PLUMB_F32, 1, (const int64_t[]){3}, NULL);
    a.data = b.data = x;
    assert_int_equal(plumb_metric_pair(&spec, &a, &b, &metrics, &err), PLUMB_E_ARG);
    assert_string_equal(err.message, "2 elements against 3");
}

/* Groups that were not asked for are NaN or 0, and those that were do not depend on the others. */
static void test_groups(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_F64, PLUMB_F32, PLUMB_F16,      PLUMB_BF16,
                                             PLUMB_C64, PLUMB_I32, PLUMB_F8_E4M3FN};
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (unsigned special = 0; special <= 3; special += 3) {
            struct pair pair;
            struct plumb_metric_spec spec;
            pair_make(&pair, types[i], types[i], 3000, DENSE, special, &seed);
            spec_all(&spec);
            struct plumb_metrics whole = metrics_of(&pair, &spec);
            for (int round = 0; round < 40; round++) {
                spec.groups = (unsigned)random_below(&seed, PLUMB_G_ALL + 1) | PLUMB_G_ERROR;
                if (round < 4) /* the short cut through the combined kernels */
                    spec.groups = PLUMB_G_ERROR | (round & 1 ? PLUMB_G_RELATIVE : 0) |
                                  (round & 2 ? PLUMB_G_CLOSE : 0);
                struct plumb_metrics part = metrics_of(&pair, &spec);
                for (const struct plumb_metric_name *row = plumb_metric_names(); row->name; row++) {
                    double a = row->value(&whole), b = row->value(&part);
                    if (row->group & spec.groups && !(isnan(a) && isnan(b)) && a != b)
                        fail_msg("%s of %s with groups %x: %a, not %a", row->name,
                                 plumb_dtype_info(types[i])->name, spec.groups, b, a);
                    if (!(row->group & spec.groups) && !row->integer &&
                        plumb_metric_find(row->name)->group == PLUMB_G_ABSOLUTE)
                        assert_true(isnan(b));
                }
            }
            pair_free(&pair);
        }
}

/* A metric without a loop would stay what it was at the beginning: each must take two values,
 * whether its group is computed alone or with all others. */
static void test_every_metric_moves(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_F32, PLUMB_I32, PLUMB_F16, PLUMB_F64};
    enum { PAIRS = 2 * sizeof types / sizeof *types };
    struct pair pairs[PAIRS];
    uint64_t seed = 11;
    for (size_t i = 0; i < PAIRS; i++)
        pair_make(&pairs[i], types[i / 2], types[i / 2], i % 2 ? 2000 : 4, DENSE, i % 2 ? 40 : 0,
                  &seed);
    for (const struct plumb_metric_name *row = plumb_metric_names(); row->name; row++)
        for (int alone = 0; alone < 2; alone++) {
            bool moved = false;
            double first = NAN;
            for (size_t i = 0; i < PAIRS; i++) {
                struct plumb_metric_spec spec;
                spec_all(&spec);
                if (alone)
                    spec.groups = row->group | PLUMB_G_ERROR;
                const struct plumb_metrics metrics = metrics_of(&pairs[i], &spec);
                const double value = row->value(&metrics);
                moved = moved || (!isnan(first) && !isnan(value) && value != first);
                first = isnan(first) ? value : first;
            }
            if (!moved)
                fail_msg("%s is always %g%s", row->name, first, alone ? ", alone" : "");
        }
    for (size_t i = 0; i < PAIRS; i++)
        pair_free(&pairs[i]);
}

static void test_defaults(void **state)
{
    (void)state;
    struct plumb_metric_spec spec;
    memset(&spec, 0xAA, sizeof spec);
    plumb_metric_spec_init(&spec);
    assert_true(spec.groups == PLUMB_G_ERROR && spec.relative == PLUMB_REL_PLAIN);
    assert_true(spec.rtol == 1e-3 && spec.atol == 1e-5 && spec.gt == 0 && spec.equal_nan);
    assert_null(plumb_metric_find("no such metric"));
    assert_null(plumb_metric_find(""));
}

/* -- Values that are not finite ---------------------------------------------------------------- */

static const double of_class[PLUMB_CLASSES] = {
    [PLUMB_FINITE] = 2, [PLUMB_POS_INF] = INFINITY, [PLUMB_NEG_INF] = -INFINITY, [PLUMB_NAN] = NAN};

/* Is it spoiled by a pair that is not finite on one side? What is not is named here: counts,
 * shares, statistics of a side, and those that check_class_pair looks at by themselves. */
static bool is_error_metric(const struct plumb_metric_name *row)
{
    static const char *const others[] = {"cosine",        "one_minus_cosine", "kl",
                                         "min_abs",       "rel_below_1e2",    "rel_below_5e3",
                                         "rel_below_1e3", "rel_below_1e4",    "close_percent",
                                         "error_balance", "ulp_over_share"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(row->name, others[i]) == 0)
            return false;
    return !row->integer && row->group != PLUMB_G_STATS;
}

/* One pair of the two classes among finite ones with a known error. */
static void check_class_pair(enum plumb_class t, enum plumb_class g, enum plumb_dtype dtype,
                             bool equal_nan)
{
    enum { N = 1500, AT = 1100 };
    double values[2][N];
    float singles[2][N];
    for (int i = 0; i < N; i++) {
        values[0][i] = i == 7 ? 1.5 : 1;
        values[1][i] = 1;
    }
    values[0][AT] = of_class[t];
    values[1][AT] = of_class[g];
    for (int i = 0; i < 2 * N; i++)
        singles[i / N][i % N] = (float)values[i / N][i % N];

    struct pair pair;
    struct plumb_metric_spec spec;
    spec_all(&spec);
    spec.equal_nan = equal_nan;
    if (dtype == PLUMB_F64)
        pair_from(&pair, dtype, values[0], values[1], N);
    else
        pair_from(&pair, dtype, singles[0], singles[1], N);
    struct plumb_metrics m = metrics_of(&pair, &spec);

    bool finite = t == PLUMB_FINITE && g == PLUMB_FINITE, mismatch = t != g;
    bool nan = t == PLUMB_NAN || g == PLUMB_NAN;
    bool equal = !mismatch && (t != PLUMB_NAN || equal_nan);
    assert_true(m.count == N);
    assert_true(m.classes[PLUMB_FINITE][PLUMB_FINITE] == (finite ? N : N - 1));
    assert_true(m.classes[t][g] == (finite ? N : 1));
    assert_true(m.nonfinite_mismatch == mismatch);
    for (const struct plumb_metric_name *row = plumb_metric_names(); row->name; row++) {
        if (!is_error_metric(row))
            continue;
        double value = row->value(&m);
        if (mismatch ? (nan ? !isnan(value) : value != INFINITY) : !(value > 0 && isfinite(value)))
            fail_msg("%s is %g for classes %d and %d", row->name, value, t, g);
    }
    assert_true(mismatch ? isnan(m.cosine) && isnan(m.one_minus_cosine) && isnan(m.kl)
                         : m.cosine < 1 && m.kl > 0);
    if (!mismatch) {
        assert_true(m.max_abs == 0.5 && m.max_rel == 0.5 && m.mean_abs == 0.5 / (double)N);
        assert_true(fabs(m.rmse - 0.5 / sqrt(N)) < 1e-15);
    }
    assert_true(m.min_abs == 0.5);
    assert_true(m.max_abs_index == 7);

    /* The one with an error, and the odd one unless it counts as equal. */
    unsigned bad = 1 + !equal;
    assert_true(m.close == N - bad && m.greater == bad && m.unequal == bad);
    assert_true(m.above == 1 && m.below == 0);
    assert_true(m.abs_over[0] == bad && m.abs_over[6] == bad && m.ulp_over == bad);
    assert_true(m.rel_below_1e2 == N - bad && m.rel_below_5e3 == N - bad &&
                m.rel_below_1e3 == N - bad && m.rel_below_1e4 == N - bad);

    /* Histograms leave nobody out. */
    const struct plumb_histogram *histograms[] = {&m.abs_histogram, &m.rel_histogram,
                                                  &m.ulp_histogram};
    for (int k = 0; k < 3; k++) {
        uint64_t total = 0;
        for (int bin = 0; bin < PLUMB_HISTOGRAM_BINS; bin++)
            total += histograms[k]->bin[bin];
        assert_true(total == N);
        assert_true(histograms[k]->bin[PLUMB_HISTOGRAM_BINS - 1] == mismatch);
        assert_true(histograms[k]->bin[0] == (mismatch ? N - 2 : N - 1));
    }

    /* Each side's own statistics. */
    const struct plumb_stats *sides[] = {&m.target, &m.golden};
    const enum plumb_class classes[] = {t, g};
    for (int side = 0; side < 2; side++) {
        const struct plumb_stats *s = sides[side];
        enum plumb_class class = classes[side];
        assert_true(s->count == N && s->nan == (class == PLUMB_NAN) &&
                    s->pos_inf == (class == PLUMB_POS_INF) &&
                    s->neg_inf == (class == PLUMB_NEG_INF));
        assert_true(s->finite_min == 1);
        if (class == PLUMB_NAN)
            assert_true(isnan(s->min) && isnan(s->max) && isnan(s->mean) && isnan(s->std) &&
                        isnan(s->norm));
        else if (class != PLUMB_FINITE)
            assert_true((class == PLUMB_POS_INF ? s->max == INFINITY && s->min == 1
                                                : s->min == -INFINITY && s->max < 2) &&
                        s->mean == of_class[class] && isnan(s->std) && s->norm == INFINITY);
        else
            assert_true(s->max == 2 && s->min == 1 && s->norm > 1);
    }
    pair_free(&pair);
}

static void test_classes(void **state)
{
    (void)state;
    for (int t = 0; t < PLUMB_CLASSES; t++)
        for (int g = 0; g < PLUMB_CLASSES; g++)
            for (int variant = 0; variant < 4; variant++)
                check_class_pair((enum plumb_class)t, (enum plumb_class)g,
                                 variant & 1 ? PLUMB_F64 : PLUMB_F32, variant & 2);
}

/* The short cut for few groups must not lose them either. */
static void test_classes_directly(void **state)
{
    (void)state;
    float t[3] = {1, INFINITY, 3}, g[3] = {1, INFINITY, 3};
    struct plumb_metric_spec spec;
    struct pair pair;
    plumb_metric_spec_init(&spec);
    pair_from(&pair, PLUMB_F32, t, g, 3);
    struct plumb_metrics m = metrics_of(&pair, &spec);
    assert_true(m.max_abs == 0 && m.classes[PLUMB_POS_INF][PLUMB_POS_INF] == 1 && m.cosine == 1);
    pair_free(&pair);
    t[2] = 3.5; /* behind a pair that was taken out, it keeps its number */
    pair_from(&pair, PLUMB_F32, t, g, 3);
    m = metrics_of(&pair, &spec);
    assert_true(m.max_abs == 0.5 && m.max_abs_index == 2);
    pair_free(&pair);
    g[1] = -INFINITY;
    t[2] = NAN;
    pair_from(&pair, PLUMB_F32, t, g, 3);
    m = metrics_of(&pair, &spec);
    assert_true(isnan(m.max_abs) && m.nonfinite_mismatch == 2 && isnan(m.mean_abs));
    assert_true(m.classes[PLUMB_NAN][PLUMB_FINITE] == 1);
    pair_free(&pair);
}

/* Nothing finite at all. */
static void test_nothing_finite(void **state)
{
    (void)state;
    float t[2] = {NAN, INFINITY};
    struct plumb_metric_spec spec;
    struct pair pair;
    spec_all(&spec);
    pair_from(&pair, PLUMB_F32, t, t, 2);
    struct plumb_metrics m = metrics_of(&pair, &spec);
    assert_true(m.count == 2 && m.max_abs == 0 && m.rmse == 0 && m.max_abs_index == 2);
    assert_true(m.close == 2 && m.unequal == 0 && m.kl == 0 && m.bits_differ == 0);
    assert_true(isnan(m.target.min) && isnan(m.target.finite_min));
    pair_free(&pair);
}

/* -- The ends of float64 ----------------------------------------------------------------------- */

static void check_scaled(double scale, const struct plumb_metrics *unit)
{
    enum { N = 3000 };
    static double t[N], g[N];
    uint64_t seed = 6;
    for (int i = 0; i < N; i++) {
        g[i] = random_unit(&seed);
        t[i] = g[i] + 1e-3 * random_unit(&seed);
        if (i % 100 == 0)
            t[i] = -g[i];
        t[i] *= scale;
        g[i] *= scale;
    }
    struct plumb_metric_spec spec;
    struct pair pair;
    spec_all(&spec);
    pair_from(&pair, PLUMB_F64, t, g, N);
    struct plumb_metrics m = metrics_of(&pair, &spec);
    static const struct {
        const char *name;
        bool scales;
    } rows[] = {
        {"cosine", false},        {"one_minus_cosine", false}, {"relative_euclidean", false},
        {"max_rel", false},       {"mean_rel", false},         {"max_abs_index", false},
        {"rel_below_1e3", false}, {"max_ulp", false},          {"mean_ulp", false},
        {"above", false},         {"unequal", false},          {"euclidean", true},
        {"rmse", true},           {"max_abs", true},           {"mean_abs", true},
        {"min_abs", true},        {"target_min", true},        {"target_mean", true},
        {"target_std", true},     {"golden_norm", true},       {"golden_max", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double wanted = metric(unit, rows[i].name) * (rows[i].scales ? scale : 1);
        double got = metric(&m, rows[i].name);
        if (!(fabs(got - wanted) <= 1e-12 * fabs(wanted)))
            fail_msg("%s at %g is %.17g, not %.17g", rows[i].name, scale, got, wanted);
    }
    pair_free(&pair);
}

/* Powers of two change nothing but the exponents: whatever does not depend on the scale stays. */
static void test_scales(void **state)
{
    (void)state;
    enum { N = 3000 };
    static double t[N], g[N];
    uint64_t seed = 6;
    for (int i = 0; i < N; i++) {
        g[i] = random_unit(&seed);
        t[i] = g[i] + 1e-3 * random_unit(&seed);
        if (i % 100 == 0)
            t[i] = -g[i];
    }
    struct plumb_metric_spec spec;
    struct pair pair;
    spec_all(&spec);
    pair_from(&pair, PLUMB_F64, t, g, N);
    struct plumb_metrics unit = metrics_of(&pair, &spec);
    reference_check(&pair, &spec, &unit);
    pair_free(&pair);
    static const int exponents[] = {0, 100, 300, 500, 511, 512, 600, 664, 800, 1000};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
        check_scaled(ldexp(1, exponents[i]), &unit);
    static const int tiny[] = {-100, -300, -400, -480, -511, -537, -600, -664, -800, -940};
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++)
        check_scaled(ldexp(1, tiny[i]), &unit);
}

/* Differences that have nothing of the size of the values beside them: d at two places, equal
 * values elsewhere. */
static void test_differences_of_another_size(void **state)
{
    (void)state;
    enum { N = 1500 };
    static double t[N], g[N];
    static const double values[] = {1, 1e170, 1.5e308, 1e-200},
                        sizes[] = {1, 2e9, 1e-120, 1e-170, 1e-310, 1e200, 1.2e308};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            for (int i = 0; i < N; i++)
                t[i] = g[i] = values[v];
            t[7] = g[7] = t[1200] = g[1200] = 0;
            t[7] = sizes[k];
            t[1200] = -sizes[k];
            struct plumb_metric_spec spec;
            struct pair pair;
            plumb_metric_spec_init(&spec);
            pair_from(&pair, PLUMB_F64, t, g, N);
            struct plumb_metrics m = metrics_of(&pair, &spec);
            const double distance = sqrt(2) * sizes[k];
            const double norm = values[v] / distance * sqrt(N - 2);
            assert_true(fabs(m.euclidean / distance - 1) < 1e-12);
            assert_true(fabs(m.rmse * sqrt(N) / distance - 1) < 1e-12);
            if (isfinite(norm) && norm != 0) /* of subnormal numbers some digits are left */
                assert_true(fabs(m.relative_euclidean * norm - 1) < (norm > 1e300 ? 0.1 : 1e-12));
            pair_free(&pair);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_types),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_mixed_types),
        cmocka_unit_test(test_int64),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_counts_differ),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_every_metric_moves),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_classes_directly),
        cmocka_unit_test(test_nothing_finite),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_differences_of_another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
