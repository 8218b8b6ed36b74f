/* Metrics, once more and slowly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

uint32_t reference_crc(const unsigned char *bytes, uint64_t size)
{
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return ~crc;
}

/* Of the values as float64 has them: 64-bit integers are not exact here. */
static long double as_double(long double x)
{
    return (long double)(double)x;
}

double reference_kl(const struct pair *pair)
{
    const long double *t = pair->target.values, *g = pair->golden.values;
    long double top_t = -INFINITY, top_g = -INFINITY, sum_t = 0, sum_g = 0, divergence = 0;
    for (uint64_t i = 0; i < pair->numbers; i++) {
        top_t = fmaxl(top_t, as_double(t[i]));
        top_g = fmaxl(top_g, as_double(g[i]));
    }
    for (uint64_t i = 0; i < pair->numbers; i++) {
        sum_t += expl(as_double(t[i]) - top_t);
        sum_g += expl(as_double(g[i]) - top_g);
    }
    for (uint64_t i = 0; i < pair->numbers; i++) {
        long double log_t = as_double(t[i]) - top_t - logl(sum_t);
        long double log_g = as_double(g[i]) - top_g - logl(sum_g);
        if (expl(log_g) > 0)
            divergence += expl(log_g) * (log_g - log_t);
    }
    return divergence < 0 ? 0 : (double)divergence;
}

/* -- What a named metric should be ------------------------------------------------------------- */

static const char *context = "";

static void near(const char *name, double got, long double wanted, long double tolerance)
{
    if (isnan((double)wanted) ? isnan(got) : isinf((double)wanted) && got == (double)wanted)
        return;
    if (!(fabsl((long double)got - wanted) <= tolerance))
        fail_msg("%s of %s is %.17g, not %.17Lg", name, context, got, wanted);
}

static void is(const char *name, double got, double wanted)
{
    if (!(isnan(wanted) ? isnan(got) : got == wanted))
        fail_msg("%s of %s is %.17g, not %.17g", name, context, got, wanted);
}

/* Asks for a metric by name, and ticks it off. */
struct checklist {
    const struct plumb_metrics *metrics;
    bool seen[128];
};

static double value_of(struct checklist *list, const char *name)
{
    const struct plumb_metric_name *row = plumb_metric_find(name);
    if (!row)
        fail_msg("there is no metric %s", name);
    assert_string_equal(row->name, name);
    list->seen[row - plumb_metric_names()] = true;
    return row->value(list->metrics);
}

#define IS(name, wanted) is(name, value_of(list, name), (double)(wanted))
#define NEAR(name, wanted, tolerance) near(name, value_of(list, name), wanted, tolerance)

static void check_errors(struct checklist *list, const struct pair *pair)
{
    const long double *t = pair->target.values, *g = pair->golden.values;
    uint64_t n = pair->numbers, index = n;
    long double tt = 0, gg = 0, tg = 0, dd = 0, half = 0, sum = 0;
    double max = NAN, min = INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        double size = fabs(pair->d[i]);
        tt += t[i] * t[i];
        gg += g[i] * g[i];
        tg += t[i] * g[i];
        dd += (long double)size * (long double)size;
        sum += (long double)size;
        if (index == n || size > max) {
            max = size;
            index = i;
        }
        min = size != 0 && size < min ? size : min;
    }
    for (uint64_t i = 0; i < n; i++) { /* half the square of the distance of the unit vectors */
        long double away = t[i] / sqrtl(tt) - g[i] / sqrtl(gg);
        half += away * away / 2;
    }
    IS("count", n);
    if (n && tt > 0 && gg > 0) {
        long double scale = dd / sqrtl(tt * gg);
        NEAR("cosine", tg / sqrtl(tt * gg), 1e-14L);
        NEAR("one_minus_cosine", half, 1e-12L * half + 1e-14L * scale + 1e-18L);
    } else {
        IS("cosine", n ? (tt > 0) == (gg > 0) : NAN);
        IS("one_minus_cosine", n ? (tt > 0) != (gg > 0) : NAN);
    }
    NEAR("euclidean", sqrtl(dd), 1e-13L * sqrtl(dd));
    NEAR("relative_euclidean",
         gg > 0   ? sqrtl(dd / gg)
         : dd > 0 ? INFINITY
                  : 0,
         gg > 0 ? 1e-13L * sqrtl(dd / gg) : 0);
    NEAR("rmse", n ? sqrtl(dd / n) : NAN, 1e-13L * sqrtl(dd));
    IS("max_abs", max);
    IS("max_abs_index", index);
    NEAR("mean_abs", n ? sum / n : NAN, 1e-13L * sum);
    IS("min_abs", isinf(min) ? 0 : min);
}

static double relative(const struct pair *pair, uint64_t i)
{
    double size = fabs(pair->d[i]), g = fabs((double)pair->golden.values[i]);
    return size == 0 ? 0 : size / g;
}

static void check_relative(struct checklist *list, const struct pair *pair)
{
    uint64_t n = pair->numbers, below[4] = {0};
    static const double limits[4] = {1e-2, 5e-3, 1e-3, 1e-4};
    long double sum = 0;
    double max = n ? 0 : NAN;
    for (uint64_t i = 0; i < n; i++) {
        double r = relative(pair, i);
        sum += (long double)r;
        max = r > max ? r : max;
        for (int k = 0; k < 4; k++)
            below[k] += r < limits[k];
    }
    double share[4];
    for (int k = 0; k < 4; k++)
        share[k] = n ? (double)below[k] / (double)n : 1;
    IS("max_rel", max);
    NEAR("mean_rel", n ? sum / n : NAN, isinf((double)sum) ? 0 : 1e-13L * sum);
    IS("rel_below_1e2", share[0]);
    IS("rel_below_5e3", share[1]);
    IS("rel_below_1e3", share[2]);
    IS("rel_below_1e4", share[3]);
}

static void check_counts(struct checklist *list, const struct pair *pair,
                         const struct plumb_metric_spec *spec)
{
    static const char *const over_names[7] = {"abs_over_1e1", "abs_over_1e2", "abs_over_1e3",
                                              "abs_over_1e4", "abs_over_1e5", "abs_over_1e6",
                                              "abs_over_1e7"};
    static const double over_limits[7] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};
    uint64_t n = pair->numbers, close = 0, greater = 0, above = 0, below = 0, over[7] = {0};
    uint64_t small = 0, small_errors = 0;
    enum plumb_dtype device = pair->target.tensor.dtype;
    bool sixteen = device == PLUMB_F16 || device == PLUMB_BF16;
    double small_limit = spec->small > 0 ? spec->small : sixteen ? 0x1p-10 : 0x1p-20;
    double small_atol = spec->small_atol > 0 ? spec->small_atol : sixteen ? 1e-16 : 0x1p-30;
    for (uint64_t i = 0; i < n; i++) {
        double d = pair->d[i], size = fabs(d), g = fabs((double)pair->golden.values[i]);
        close += size <= spec->atol + spec->rtol * g;
        greater += size > spec->gt;
        above += d > 0;
        below += d < 0;
        for (int k = 0; k < 7; k++)
            over[k] += size > over_limits[k];
        small += g <= small_limit;
        small_errors += g <= small_limit && size > small_atol;
    }
    IS("close_percent", n ? 100 * ((double)close / (double)n) : 100);
    IS("not_close", n - close);
    IS("greater", greater);
    IS("above", above);
    IS("below", below);
    IS("unequal", above + below);
    bool integers = true;
    const enum plumb_dtype types[2] = {device, pair->golden.tensor.dtype};
    for (int k = 0; k < 2; k++)
        integers = integers && plumb_dtype_info(types[k])->kind < PLUMB_KIND_FLOAT;
    IS("integer_differences", integers ? above + below : 0);
    IS("error_balance", n ? fabs((double)above - (double)below) / (double)n : NAN);
    for (int k = 0; k < 7; k++)
        IS(over_names[k], over[k]);
    IS("small", small);
    IS("small_errors", small_errors);
    IS("nonfinite_mismatch", 0);
    IS("target_nan", 0);
    IS("golden_nan", 0);
    IS("target_pos_inf", 0);
    IS("golden_pos_inf", 0);
    IS("target_neg_inf", 0);
    IS("golden_neg_inf", 0);
}

static const struct plumb_dtype_info *ulp_type(const struct pair *pair)
{
    const enum plumb_dtype types[2] = {pair->target.tensor.dtype, pair->golden.tensor.dtype};
    for (int i = 0; i < 2; i++)
        if (plumb_dtype_info(types[i])->precision > 0 || types[i] == PLUMB_F8_E8M0)
            return plumb_dtype_info(types[i]);
    return NULL;
}

/* |d| over the distance of neighbours at the golden value; at zero, over that at one. */
static double ulps(const struct pair *pair, const struct plumb_dtype_info *type, uint64_t i)
{
    double g = (double)pair->golden.values[i];
    int exponent = g == 0 ? 0 : ilogb(g);
    if (exponent < type->emin)
        exponent = type->emin;
    return ldexp(fabs(pair->d[i]), type->precision - exponent);
}

static void check_ulps(struct checklist *list, const struct pair *pair,
                       const struct plumb_metric_spec *spec)
{
    const struct plumb_dtype_info *type = ulp_type(pair);
    uint64_t n = pair->numbers, over = 0;
    if (!type || !n) {
        IS("max_ulp", NAN);
        IS("mean_ulp", NAN);
        IS("ulp_over_share", 0);
        return;
    }
    double limit = spec->ulp_threshold > 0 ? spec->ulp_threshold : type->precision >= 23 ? 32 : 1;
    double max = 0;
    long double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        double u = ulps(pair, type, i);
        sum += (long double)u;
        max = u > max ? u : max;
        over += u > limit;
    }
    IS("max_ulp", max);
    NEAR("mean_ulp", sum / n, 1e-13L * sum);
    IS("ulp_over_share", (double)over / (double)n);
}

static void check_stats(const char *side, const struct plumb_stats *got, const long double *x,
                        uint64_t n)
{
    long double sum = 0, size = 0, squares = 0, around = 0;
    double min = INFINITY, max = -INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        sum += x[i];
        size += fabsl(x[i]);
        squares += x[i] * x[i];
        min = (double)x[i] < min ? (double)x[i] : min;
        max = (double)x[i] > max ? (double)x[i] : max;
    }
    for (uint64_t i = 0; i < n; i++)
        around += (x[i] - sum / n) * (x[i] - sum / n);
    assert_true(got->count == n && !got->nan && !got->pos_inf && !got->neg_inf);
    is(side, got->min, n ? min : NAN);
    is(side, got->max, n ? max : NAN);
    is(side, got->finite_min, n ? min : NAN);
    is(side, got->finite_max, n ? max : NAN);
    near(side, got->mean, n ? sum / n : NAN, 1e-13L * size);
    long double std = n > 1 ? sqrtl(around / (n - 1)) : NAN;
    near(side, got->std, std, 1e-11L * std);
    near(side, got->norm, n ? sqrtl(squares) : NAN, 1e-13L * sqrtl(squares));
}

static void check_sides(struct checklist *list, const struct pair *pair)
{
    const struct plumb_metrics *m = list->metrics;
    check_stats("target statistics", &m->target, pair->target.values, pair->numbers);
    check_stats("golden statistics", &m->golden, pair->golden.values, pair->numbers);
    IS("target_min", m->target.min);
    IS("target_max", m->target.max);
    IS("target_mean", m->target.mean);
    IS("target_std", m->target.std);
    IS("target_norm", m->target.norm);
    IS("golden_min", m->golden.min);
    IS("golden_max", m->golden.max);
    IS("golden_mean", m->golden.mean);
    IS("golden_std", m->golden.std);
    IS("golden_norm", m->golden.norm);
}

static void check_rest(struct checklist *list, const struct pair *pair)
{
    const struct side *t = &pair->target, *g = &pair->golden;
    long double widest = 1, apart = 0;
    for (uint64_t i = 0; i < pair->numbers; i++) {
        widest = fmaxl(widest, fmaxl(fabsl(t->values[i]), fabsl(g->values[i])));
        apart = fmaxl(apart, fabsl(t->values[i] - g->values[i]));
    }
    NEAR("kl", reference_kl(pair), 3e-11L * (1 + apart) + 1e-14L * widest);

    uint64_t differ = 0, count = t->tensor.count;
    unsigned bits = plumb_dtype_info(t->tensor.dtype)->bits;
    for (uint64_t i = 0; i < count; i++) {
        if (t->tensor.dtype != g->tensor.dtype)
            differ++;
        else if (bits == 4)
            differ += ((t->dense[i / 2] ^ g->dense[i / 2]) >> (i % 2 ? 4 : 0) & 15) != 0;
        else
            differ += memcmp(t->dense + i * bits / 8, g->dense + i * bits / 8, bits / 8) != 0;
    }
    IS("bits_differ", differ);
    is("target CRC", list->metrics->target_crc, reference_crc(t->dense, t->dense_bytes));
    is("golden CRC", list->metrics->golden_crc, reference_crc(g->dense, g->dense_bytes));
}

static void check_histogram(const char *which, const struct plumb_histogram *got,
                            const uint64_t *wanted)
{
    for (int bin = 0; bin < PLUMB_HISTOGRAM_BINS; bin++)
        if (got->bin[bin] != wanted[bin])
            fail_msg("bin %d of the %s histogram of %s is %llu, not %llu", bin, which, context,
                     (unsigned long long)got->bin[bin], (unsigned long long)wanted[bin]);
}

static int bin_of(double x)
{
    int bin = x == 0 ? 0 : isinf(x) ? 128 : ilogb(x) + 97;
    return x == 0 ? 0 : bin < 1 ? 1 : bin > 128 ? 128 : bin;
}

static void check_histograms(const struct pair *pair, const struct plumb_metrics *m)
{
    const struct plumb_dtype_info *type = ulp_type(pair);
    uint64_t wanted[3][PLUMB_HISTOGRAM_BINS] = {0};
    for (uint64_t i = 0; i < pair->numbers; i++) {
        wanted[0][bin_of(fabs(pair->d[i]))]++;
        wanted[1][bin_of(relative(pair, i))]++;
        if (type)
            wanted[2][bin_of(ulps(pair, type, i))]++;
    }
    check_histogram("absolute", &m->abs_histogram, wanted[0]);
    check_histogram("relative", &m->rel_histogram, wanted[1]);
    check_histogram("ULP", &m->ulp_histogram, wanted[2]);
}

void reference_check(const struct pair *pair, const struct plumb_metric_spec *spec,
                     const struct plumb_metrics *metrics)
{
    struct checklist checklist = {.metrics = metrics}, *list = &checklist;
    static char text[64];
    snprintf(text, sizeof text, "%llu %s against %s", (unsigned long long)pair->numbers,
             plumb_dtype_info(pair->target.tensor.dtype)->name,
             plumb_dtype_info(pair->golden.tensor.dtype)->name);
    context = text;
    check_errors(list, pair);
    check_relative(list, pair);
    check_counts(list, pair, spec);
    check_ulps(list, pair, spec);
    check_sides(list, pair);
    check_rest(list, pair);
    check_histograms(pair, metrics);
    for (const struct plumb_metric_name *row = plumb_metric_names(); row->name; row++)
        if (!list->seen[row - plumb_metric_names()])
            fail_msg("no test knows what %s should be", row->name);
}

/* -- Equal to the last bit --------------------------------------------------------------------- */

static void same(const char *name, double a, double b)
{
    if (!(isnan(a) && isnan(b)) && memcmp(&a, &b, sizeof a) != 0)
        fail_msg("%s: %a and %a", name, a, b);
}

void reference_same(const struct plumb_metrics *a, const struct plumb_metrics *b)
{
    for (const struct plumb_metric_name *row = plumb_metric_names(); row->name; row++)
        same(row->name, row->value(a), row->value(b));
#define SAME(field) same(#field, (double)a->field, (double)b->field)
    SAME(close);
    SAME(ulp_over);
    SAME(target_crc);
    SAME(golden_crc);
    SAME(target.count);
    SAME(target.nan);
    SAME(target.finite_min);
    SAME(golden.finite_max);
    SAME(golden.neg_inf);
    SAME(precheck_rmse);
    SAME(small_error_rate);
    SAME(precheck_balance);
    SAME(precheck_max_rel);
    SAME(precheck_mean_rel);
    SAME(inf_nan_error_rate);
    SAME(rel_error_rate);
    SAME(abs_error_rate);
    SAME(acc_inf_nan_error_rate);
    SAME(acc_rel_error_rate);
    SAME(acc_abs_error_rate);
#undef SAME
    assert_memory_equal(a->classes, b->classes, sizeof a->classes);
    assert_memory_equal(&a->abs_histogram, &b->abs_histogram, sizeof a->abs_histogram);
    assert_memory_equal(&a->rel_histogram, &b->rel_histogram, sizeof a->rel_histogram);
    assert_memory_equal(&a->ulp_histogram, &b->ulp_histogram, sizeof a->ulp_histogram);
}
