/* Every kernel of every SIMD level against the one in plain C, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/classes.h"
#include "metric/kernel.h"
#include "plumb/metric.h"
#include "random.h"

#include <float.h>
#include <stdbool.h>
#include <stdio.h>

enum { BLOCK = PLUMB_METRIC_BLOCK, MAX_LEVELS = 4 };

static struct kernels levels[MAX_LEVELS];
static size_t level_count;

/* All levels above plain C that this processor has. */
static int find_levels(void **state)
{
    (void)state;
    const char *last = "c";
    assert_string_equal(kernels_select(0).name, last);
    assert_ptr_equal(kernels_select(0).error, kernels_c.error);
    for (unsigned bits = 1; bits < MAX_LEVELS; bits++) {
        struct kernels level = kernels_select((1u << bits) - 1);
        if (strcmp(level.name, last) != 0)
            levels[level_count++] = level;
        last = level.name;
    }
    for (size_t i = 0; i < level_count; i++)
        printf("# level %s against c\n", levels[i].name);
    if (!level_count)
        printf("# this processor has plain C only\n");
    return 0;
}

/* -- Data -------------------------------------------------------------------------------------- */

static const double odd_values[] = {
    0.0,   -0.0,    5e-324, -5e-324, 0x1p-1022, DBL_MIN, 1e-310, 1e-200, -1e-160, 1e-45,  0x1p-96,
    1e-30, 0x1p-97, 1e-16,  0x1p-31, 0x1p-32,   1,       -1,     1.5,    2,       3,      170,
    -170,  65504,   1e38,   1e150,   -1e150,    1e160,   -1e200, 1e300,  DBL_MAX, 0x1p31, 0x1p32,
    1e-1,  1e-2,    1e-3,   1e-4,    1e-5,      1e-6,    1e-7,   5e-3,   2e-3,    1e-8,   32,
};

enum kind { NORMAL, CLOSE, WIDE, ODD, EQUAL, TIES, LIMITS, KINDS };

static double one_value(enum kind kind, uint64_t *seed)
{
    const size_t count = sizeof odd_values / sizeof *odd_values;
    double x;
    switch (kind) {
    case WIDE:
        return random_finite(seed);
    case ODD: /* a special value, or its neighbour, of either sign */
        x = odd_values[random_below(seed, count)];
        if (random_below(seed, 3) == 0)
            x = nextafter(x, random_unit(seed) < 0 ? -DBL_MAX : DBL_MAX);
        return random_below(seed, 2) ? x : -x;
    case EQUAL:
        return 0.3;
    case TIES:
        return (double)random_below(seed, 3) - 1;
    default:
        return 3 * random_unit(seed);
    }
}

/* A block of pairs: t, g, their difference, and sizes to be tallied. */
struct data {
    double t[BLOCK], g[BLOCK], d[BLOCK], r[BLOCK];
};

static void fill(struct data *data, enum kind kind, uint64_t *seed)
{
    for (int i = 0; i < BLOCK; i++) {
        data->g[i] = one_value(kind, seed);
        data->t[i] = kind == CLOSE && i % 7 ? data->g[i] * (1 + 1e-4 * random_unit(seed))
                                            : one_value(kind, seed);
        data->d[i] = data->t[i] - data->g[i];
        if (kind == ODD && i % 3 == 0) /* d is an input of its own */
            data->d[i] = one_value(kind, seed);
        data->r[i] = fabs(data->d[i]) / fabs(data->g[i]); /* may be infinite, or NaN for 0/0 */
        if (kind == ODD && i % 5 == 0)
            data->r[i] = fabs(one_value(kind, seed));
    }
}

static bool is_tested_length(size_t n)
{
    return n <= 40 || n >= 1000;
}

/* -- Comparing --------------------------------------------------------------------------------- */

static const char *doing; /* for the message */
static size_t length;

/* Equal bits; a NaN is a NaN. */
static void same_reals(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s, n = %zu, place %zu: %a instead of %a", doing, length, i, b[i], a[i]);
}

static void same_counts(const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            fail_msg("%s, n = %zu, place %zu: %llu instead of %llu", doing, length, i,
                     (unsigned long long)b[i], (unsigned long long)a[i]);
}

#define REALS(x, y, field) same_reals((x).field, (y).field, sizeof(x).field / sizeof(double))
#define REAL(x, y, field) same_reals(&(x).field, &(y).field, 1)
#define COUNT(x, y, field) same_counts(&(x).field, &(y).field, 1)

static void same_errors(const struct error_lanes *a, const struct error_lanes *b)
{
    REALS(*a, *b, tg);
    REALS(*a, *b, tt);
    REALS(*a, *b, gg);
    REALS(*a, *b, dd);
    REAL(*a, *b, max);
}

static void same_relatives(const struct relative_counts *a, const struct relative_counts *b)
{
    REAL(*a, *b, max);
    COUNT(*a, *b, below_5e3);
    COUNT(*a, *b, below_1e3);
}

static void same_ratios(const struct ratio_lanes *a, const struct ratio_lanes *b)
{
    REALS(*a, *b, sum);
    COUNT(*a, *b, below_1e2);
    COUNT(*a, *b, below_1e4);
}

static void same_close(const struct close_counts *a, const struct close_counts *b)
{
    COUNT(*a, *b, close);
    COUNT(*a, *b, greater);
    COUNT(*a, *b, above);
    COUNT(*a, *b, below);
}

static void same_absolutes(const struct absolute_lanes *a, const struct absolute_lanes *b)
{
    REALS(*a, *b, sum);
    REAL(*a, *b, min);
    same_counts(a->over, b->over, ABS_LIMITS);
}

static void same_ulps(const struct ulp_lanes *a, const struct ulp_lanes *b)
{
    REALS(*a, *b, sum);
    REAL(*a, *b, max);
    COUNT(*a, *b, over);
}

static void same_small(const struct small_counts *a, const struct small_counts *b)
{
    COUNT(*a, *b, small);
    COUNT(*a, *b, errors);
}

static void same_ranges(const struct range_lanes *a, const struct range_lanes *b)
{
    REALS(*a, *b, sum);
    REALS(*a, *b, min);
    REALS(*a, *b, max);
}

static void same_centres(const struct centre_lanes *a, const struct centre_lanes *b)
{
    REALS(*a, *b, sum);
    REALS(*a, *b, squares);
}

static void same_kl(const struct kl_lanes *a, const struct kl_lanes *b)
{
    REALS(*a, *b, golden);
    REALS(*a, *b, target);
    REALS(*a, *b, weighted);
}

/* -- Kernels on float64 ------------------------------------------------------------------------ */

static void check_maps(const struct kernels *k, const struct data *data, size_t n)
{
    const struct kernels *c = &kernels_c;
    double a[BLOCK + 1], b[BLOCK + 1];
    a[n] = b[n] = 777;

    doing = "difference";
    c->difference(data->t, data->g, n, a);
    k->difference(data->t, data->g, n, b);
    same_reals(a, b, n + 1);

    doing = "relative";
    c->relative(data->d, data->g, n, a);
    k->relative(data->d, data->g, n, b);
    same_reals(a, b, n + 1);

    doing = "relative in place";
    memcpy(b, data->d, n * sizeof *b);
    k->relative(b, data->g, n, b);
    same_reals(a, b, n + 1);

    doing = "ulps";
    static const struct ulp_scale scales[] = {{23, -126, 32}, {52, -1022, 32}, {10, -14, 1},
                                              {7, -126, 1},   {3, -6, 1},      {1, 0, 1}};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        c->ulps(data->d, data->g, n, &scales[i], a);
        k->ulps(data->d, data->g, n, &scales[i], b);
        same_reals(a, b, n + 1);
    }
}

#define TWICE(call)                                                                                \
    do {                                                                                           \
        const struct kernels *use = &kernels_c;                                                    \
        out = &a;                                                                                  \
        call;                                                                                      \
        use = k;                                                                                   \
        out = &b;                                                                                  \
        call;                                                                                      \
    } while (0)

static void check_error(const struct kernels *k, const struct data *data, size_t n)
{
    doing = "error";
    struct error_lanes a = {.tg = {1, -2, 3, 0.1}, .max = 1e-3}, b = a, *out;
    TWICE(use->error(data->t, data->g, data->d, n, out));
    same_errors(&a, &b);
}

static void check_tallies(const struct kernels *k, const struct data *data, size_t n)
{
    {
        doing = "relative_tally";
        struct relative_counts a = {.max = 0.5, .below_1e3 = 7}, b = a, *out;
        TWICE(use->relative_tally(data->r, n, out));
        same_relatives(&a, &b);
    }
    {
        doing = "ratio_tally";
        struct ratio_lanes a = {.sum = {0.1, 0, 0, 0, 0, 1}, .below_1e2 = 3}, b = a, *out;
        TWICE(use->ratio_tally(data->r, n, out));
        same_ratios(&a, &b);
    }
    {
        doing = "absolute";
        struct absolute_lanes a = {.sum = {0.1}, .min = n % 3 ? INFINITY : 1e-5}, b = a, *out;
        TWICE(use->absolute(data->d, n, out));
        same_absolutes(&a, &b);
    }
    static const double thresholds[] = {0, 1, 32, 1e-3};
    for (size_t i = 0; i < 4; i++) {
        doing = "ulp_tally";
        struct ulp_lanes a = {.max = 1}, b = a, *out;
        TWICE(use->ulp_tally(data->r, n, thresholds[i], out));
        same_ulps(&a, &b);
    }
}

static void check_limits(const struct kernels *k, const struct data *data, size_t n)
{
    static const struct close_limits limits[] = {
        {1e-3, 1e-5, 0}, {0, 0, 0}, {1e-1, 1e-7, 1e-3}, {0, 1e-2, 5e-3}, {1, 0, 1}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        doing = "close";
        struct close_counts a = {.close = 5, .below = 1}, b = a, *out;
        TWICE(use->close(data->d, data->g, n, &limits[i], out));
        same_close(&a, &b);
    }
    static const struct small_limits small[] = {
        {0x1p-20, 0x1p-30}, {1e-3, 1e-16}, {0, 0}, {1, 1e-2}};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        doing = "small";
        struct small_counts a = {.small = 1}, b = a, *out;
        TWICE(use->small(data->d, data->g, n, &small[i], out));
        same_small(&a, &b);
    }
}

/* Bins are in no order, so that only their numbers can be compared. */
static void histogram(const struct kernels *k, const double *x, size_t n, uint64_t *bins)
{
    uint8_t bin[BLOCK];
    k->find_bins(x, n, bin);
    k->count_bins(bin, n, HISTOGRAM_BINS - 2, bins);
}

static void check_statistics(const struct kernels *k, const struct data *data, size_t n)
{
    {
        doing = "range";
        struct range_lanes a = range_of_nothing(), b = a, *out;
        TWICE(use->range(data->t, n, out));
        same_ranges(&a, &b);
    }
    static const double centres[] = {0, 0.3, -1e150, 5e-324};
    for (size_t i = 0; i < 4; i++) {
        doing = "centre";
        struct centre_lanes a = {.squares = {0, 1}}, b = a, *out;
        TWICE(use->centre[KERNEL_F64](data->t, n, centres[i], out));
        same_centres(&a, &b);
    }
    {
        doing = "kl";
        double t[BLOCK], g[BLOCK];
        for (size_t i = 0; i < n; i++) {
            t[i] = fmod(data->t[i], KL_FAST);
            g[i] = fmod(data->g[i], KL_FAST);
            if (i % 11 == 0)
                g[i] = copysign(KL_FAST, g[i]);
        }
        struct kl_lanes a = {.golden = {1}, .weighted = {0, -1}}, b = a, *out;
        TWICE(use->pair_kl[KERNEL_F64](t, g, n, out));
        same_kl(&a, &b);

        doing = "kl_near";
        for (size_t i = 0; i < n; i++)
            t[i] = g[i] + fmod(data->d[i], KL_NEAR);
        TWICE(use->pair_kl_near[KERNEL_F64](t, g, n, out));
        same_kl(&a, &b);
    }
    {
        doing = "histogram";
        uint64_t a[HISTOGRAM_BINS] = {[0] = 5, [128] = 5}, b[HISTOGRAM_BINS], total = 0;
        memcpy(b, a, sizeof b);
        histogram(&kernels_c, data->r, n, a);
        histogram(&kernels_c, data->d, n, a);
        histogram(k, data->r, n, b);
        histogram(k, data->d, n, b);
        same_counts(a, b, HISTOGRAM_BINS);
        for (int bin = 0; bin < HISTOGRAM_BINS; bin++)
            total += a[bin];
        assert_int_equal(total, 2 * n + 10);
        assert_int_equal(a[HISTOGRAM_BINS - 1], 0);
    }
}

/* From any number of a tensor on, also in the middle of tiles. */
static void check_sketch(const struct kernels *k, const double *x, size_t n)
{
    doing = "sketch";
    for (uint64_t first = 0; first < 1u << 20; first = first * 5 + 7) {
        double a[KERNEL_SKETCH_SUMS] = {0}, b[KERNEL_SKETCH_SUMS] = {0};
        double c[KERNEL_SKETCH_TILES][4] = {{0}}, d[KERNEL_SKETCH_TILES][4] = {{0}};
        kernels_c.sketch(x, n, first, a, c);
        k->sketch(x, n, first, b, d);
        same_reals(a, b, KERNEL_SKETCH_SUMS);
        same_reals(c[0], d[0], KERNEL_SKETCH_TILES * 4);
    }
}

static void check_all(const struct kernels *k, const struct data *data, size_t n)
{
    length = n;
    check_maps(k, data, n);
    check_error(k, data, n);
    check_tallies(k, data, n);
    check_limits(k, data, n);
    check_statistics(k, data, n);
    check_sketch(k, data->t, n);
}

static void test_float64(void **state)
{
    (void)state;
    static struct data data;
    uint64_t seed = 1;
    for (size_t level = 0; level < level_count; level++)
        for (int kind = 0; kind < KINDS; kind++) {
            fill(&data, (enum kind)kind, &seed);
            for (size_t n = 0; n <= BLOCK; n++)
                if (is_tested_length(n))
                    check_all(&levels[level], &data, n);
        }
}

/* Numbers that are not finite reach these before they are sorted out. */
static void test_not_finite(void **state)
{
    (void)state;
    static struct data data;
    const double specials[] = {INFINITY, -INFINITY, NAN};
    uint64_t seed = 2;
    for (size_t level = 0; level < level_count; level++)
        for (int round = 0; round < 200; round++) {
            fill(&data, NORMAL, &seed);
            for (int i = 0; i < round % 20; i++) {
                data.t[random_below(&seed, BLOCK)] = specials[random_below(&seed, 3)];
                data.g[random_below(&seed, BLOCK)] = specials[random_below(&seed, 3)];
            }
            for (int i = 0; i < BLOCK; i++)
                data.d[i] = data.t[i] - data.g[i];
            length = BLOCK - (size_t)random_below(&seed, 20);
            check_error(&levels[level], &data, length);
            struct range_lanes a = {0}, b = {0};
            doing = "range";
            kernels_c.range(data.t, length, &a);
            levels[level].range(data.t, length, &b);
            same_ranges(&a, &b);
        }
}

/* -- Kernels on stored values ------------------------------------------------------------------ */

static const size_t widths[KERNEL_TYPES] = {8, 4, 2, 2};

/* A value of the type, as its bits: any finite one, or one near others. */
static uint64_t stored_value(enum kernel_type type, enum kind kind, uint64_t *seed)
{
    for (;;) {
        double x = one_value(kind, seed);
        float single = (float)x;
        uint32_t word;
        memcpy(&word, &single, sizeof word);
        uint64_t bits, top;
        switch (type) {
        case KERNEL_F64:
            memcpy(&bits, &x, sizeof bits);
            top = UINT64_C(0x7FF) << 52;
            break;
        case KERNEL_F32:
            bits = kind == WIDE ? random_bits(seed) & UINT32_MAX : word;
            top = 0x7F800000;
            break;
        case KERNEL_F16: /* bits rather than values: mostly in the usual range */
            bits = kind == WIDE || kind == ODD ? random_bits(seed) & 0xFFFF
                                               : 0x3000 + (random_bits(seed) & 0x8FFF);
            top = 0x7C00;
            break;
        default:
            bits = kind == WIDE ? random_bits(seed) & 0xFFFF : word >> 16;
            top = 0x7F80;
            break;
        }
        if ((bits & top) != top)
            return bits;
    }
}

/* A pair of float64 or float32 at a limit of |d| or r, or next to it. */
static void store_limit(enum kernel_type type, unsigned char *t, unsigned char *g, uint64_t *seed)
{
    static const double limits[] = {100, 200, 1000, 10000};
    const double step = (double)(1 + random_below(seed, 7));
    double golden = random_below(seed, 2) ? step * limits[random_below(seed, 4)] : 0;
    double target = golden != 0 ? golden + step : kernel_abs_limits[random_below(seed, ABS_LIMITS)];
    const double to = random_below(seed, 2) ? INFINITY : 0;
    const bool beside = random_below(seed, 2);
    if (type == KERNEL_F64) {
        target = beside ? nextafter(target, to) : target;
        memcpy(t, &target, sizeof target);
        memcpy(g, &golden, sizeof golden);
    } else {
        const float x = beside ? nextafterf((float)target, (float)to) : (float)target;
        const float y = (float)golden;
        memcpy(t, &x, sizeof x);
        memcpy(g, &y, sizeof y);
    }
}

static void fill_stored(enum kernel_type type, enum kind kind, unsigned char *t, unsigned char *g,
                        uint64_t *seed)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (kind == LIMITS && type <= KERNEL_F32) {
            store_limit(type, t + i * widths[type], g + i * widths[type], seed);
            continue;
        }
        uint64_t golden = stored_value(type, kind, seed), target = stored_value(type, kind, seed);
        if (kind == CLOSE && i % 7)
            target = golden ^ random_below(seed, type == KERNEL_F64 ? 1 << 20 : 8);
        if (kind == EQUAL)
            target = golden;
        memcpy(g + i * widths[type], &golden, widths[type]);
        memcpy(t + i * widths[type], &target, widths[type]);
    }
}

static void check_stored(const struct kernels *k, enum kernel_type type, const void *t,
                         const void *g, size_t n)
{
    const struct kernels *c = &kernels_c;
    length = n;
    doing = "load";
    double x[BLOCK + 1], y[BLOCK + 1];
    x[n] = y[n] = 777;
    c->load[type](t, n, x);
    k->load[type](t, n, y);
    same_reals(x, y, n + 1);

    doing = "pair_error";
    struct error_lanes a = {.max = 1e-3}, b = a;
    c->pair_error[type](t, g, n, &a);
    k->pair_error[type](t, g, n, &b);
    same_errors(&a, &b);

    doing = "pair_relative";
    struct relative_counts largest = {0};
    c->pair_relative[type](t, g, n, &b, &largest);
    const double before[] = {
        0, nextafter(largest.max, 0), largest.max, nextafter(largest.max, 1), 1e3, INFINITY};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        if (i % 2 && type >= KERNEL_F16)
            continue; /* no quotient of such values is that near to another */
        struct error_lanes again = {.max = 1e-3};
        struct relative_counts ra = {.max = before[i], .below_5e3 = 3}, rb = ra;
        c->pair_relative[type](t, g, n, &again, &ra);
        same_errors(&a, &again);
        again = (struct error_lanes){.max = 1e-3};
        k->pair_relative[type](t, g, n, &again, &rb);
        same_errors(&a, &again);
        same_relatives(&ra, &rb);
    }

    doing = "pair_close";
    static const struct close_limits limits[] = {{1e-3, 1e-5, 0}, {0, 0, 1e-3}};
    for (int i = 0; i < 2; i++) {
        struct close_counts ca = {.above = 2}, cb = ca;
        c->pair_close[type](t, g, n, &limits[i], &ca);
        k->pair_close[type](t, g, n, &limits[i], &cb);
        same_close(&ca, &cb);
    }
}

/* All groups at once: the same as C, which puts them together from the others. */
static void check_all_groups(const struct kernels *k, enum kernel_type type, const void *t,
                             const void *g, size_t n)
{
    const struct size_classes sizes[] = {abs_classes(), ratio_classes(), {.limits = 0}};
    const struct all_limits limits[] = {
        {{1e-3, 1e-5, 0}, {0x1p-10, 1e-16}, {23, -126, 32}, sizes[0], sizes[1]},
        {{0, 0, 1e-3}, {0x1p-20, 0x1p-30}, {10, -14, 1}, sizes[0], sizes[1]},
        {{1e-2, 0, 1e-4}, {0x1p-20, 0x1p-30}, {7, -126, 1}, sizes[0], sizes[1]},
        {{1e-6, 0x1p-20, 0}, {1, 1e-2}, {10, -14, 0.25}, sizes[0], sizes[1]},
    };
    doing = "pair_all";
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct all_sums a = {.relative.max = i ? 1e-3 : 0, .absolute.min = INFINITY}, b;
        uint8_t classes[2][3 * BLOCK];
        uint64_t counts[2][CLASSES];
        a.range[0] = a.range[1] = range_of_nothing();
        b = a;
        kernels_c.pair_all[type](t, g, n, &limits[i], &a, classes[0]);
        k->pair_all[type](t, g, n, &limits[i], &b, classes[1]);
        same_errors(&a.error, &b.error);
        same_relatives(&a.relative, &b.relative);
        same_ratios(&a.ratio, &b.ratio);
        same_close(&a.close, &b.close);
        same_absolutes(&a.absolute, &b.absolute);
        same_ulps(&a.ulp, &b.ulp);
        same_small(&a.small, &b.small);
        same_ranges(&a.range[0], &b.range[0]);
        same_ranges(&a.range[1], &b.range[1]);
        for (int h = 0; h < 3; h++) {
            memset(counts, 0, sizeof counts);
            const uint8_t top = top_class(sizes[h].limits);
            kernels_c.count_bins(classes[0] + h * BLOCK, n, top, counts[0]);
            k->count_bins(classes[1] + h * BLOCK, n, top, counts[1]);
            same_counts(counts[0], counts[1], CLASSES);
        }
    }
}

static size_t short_pairs;

/* Values small enough for exponentials. */
static void check_stored_kl(const struct kernels *k, enum kernel_type type, const void *t,
                            const void *g, size_t n)
{
    double x[BLOCK], y[BLOCK];
    kernels_c.load[type](t, n, x);
    kernels_c.load[type](g, n, y);
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) > KL_FAST || fabs(y[i]) > KL_FAST)
            return;
    struct kl_lanes a = {.golden = {1}, .weighted = {0, -1}}, b = a;
    doing = "pair_kl";
    kernels_c.pair_kl[type](t, g, n, &a);
    k->pair_kl[type](t, g, n, &b);
    same_kl(&a, &b);
    doing = "pair_kl_near"; /* defined for any values */
    kernels_c.pair_kl_near[type](t, g, n, &a);
    k->pair_kl_near[type](t, g, n, &b);
    same_kl(&a, &b);

    doing = "pair_kl_short";
    const bool is_short = kernels_c.pair_kl_short[type](t, g, n, &a);
    assert_int_equal(is_short, k->pair_kl_short[type](t, g, n, &b));
    same_kl(&a, &b);
    short_pairs += is_short ? n : 0;
}

/* Whole blocks side by side: each as if it were alone. */
static void check_side_by_side(const struct kernels *k, enum kernel_type type, const void *data)
{
    struct range_lanes ranges[SIDE_BY_SIDE];
    struct centre_lanes centres[SIDE_BY_SIDE];
    double wide[SIDE_BY_SIDE * BLOCK];
    const double middle[SIDE_BY_SIDE] = {0.3, -1e3};
    k->ranges[type](data, wide, ranges);
    if (type == KERNEL_F64)
        memcpy(wide, data, sizeof wide);
    k->centres(wide, middle, centres);
    length = BLOCK;
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        double x[BLOCK];
        kernels_c.load[type]((const char *)data + b * BLOCK * widths[type], BLOCK, x);
        doing = "ranges";
        same_reals(x, wide + b * BLOCK, BLOCK);
        struct range_lanes range = range_of_nothing();
        kernels_c.range(x, BLOCK, &range);
        same_ranges(&range, &ranges[b]);
        doing = "centres";
        struct centre_lanes centre = {0};
        kernels_c.centre[KERNEL_F64](x, BLOCK, middle[b], &centre);
        same_centres(&centre, &centres[b]);
    }
}

static void test_side_by_side(void **state)
{
    (void)state;
    static unsigned char data[SIDE_BY_SIDE * BLOCK * 8 + 1], other[BLOCK * 8];
    uint64_t seed = 4;
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (int kind = 0; kind < KINDS; kind++) {
            const size_t offset = kind % 2 != 0, block = BLOCK * widths[type];
            for (size_t b = 0; b < SIDE_BY_SIDE; b++)
                fill_stored((enum kernel_type)type, (enum kind)kind, data + offset + b * block,
                            other, &seed);
            check_side_by_side(&kernels_c, (enum kernel_type)type, data + offset);
            for (size_t level = 0; level < level_count; level++)
                check_side_by_side(&levels[level], (enum kernel_type)type, data + offset);
        }
}

/* Of 0 and -0 the first stays; NaN is no end. */
static void test_side_by_side_ends(void **state)
{
    (void)state;
    static const uint64_t one[KERNEL_TYPES] = {UINT64_C(0x3FF) << 52, 0x3F800000, 0x3C00, 0x3F80};
    static unsigned char data[SIDE_BY_SIDE * BLOCK * 8];
    static const unsigned char nan_end[KERNEL_TYPES][2] = {
        {0xF8, 0x7F}, {0xC0, 0x7F}, {0x00, 0x7E}, {0xC0, 0x7F}};
    uint64_t seed = 5;
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (unsigned subset = 1; subset < 32; subset++) {
            const size_t width = widths[type];
            const uint64_t minus = UINT64_C(1) << (8 * width - 1);
            const uint64_t values[] = {0, minus, one[type], one[type] | minus};
            for (size_t i = 0; i < sizeof data / 8; i++) {
                size_t k;
                do
                    k = random_below(&seed, 4);
                while (subset % 16 && !(subset >> k & 1));
                memcpy(data + i * width, &values[k], width);
            }
            if (subset >= 16)
                memcpy(data + (BLOCK + 77) * width - 2, nan_end[type], 2);
            check_side_by_side(&kernels_c, (enum kernel_type)type, data);
            for (size_t level = 0; level < level_count; level++)
                check_side_by_side(&levels[level], (enum kernel_type)type, data);
        }
}

static void test_stored(void **state)
{
    (void)state;
    static unsigned char t[BLOCK * 8 + 1], g[BLOCK * 8 + 1];
    uint64_t seed = 3;
    for (size_t level = 0; level < level_count; level++)
        for (int type = 0; type < KERNEL_TYPES; type++)
            for (int kind = 0; kind < KINDS; kind++) {
                size_t offset = kind % 2 != 0; /* no alignment is promised */
                fill_stored((enum kernel_type)type, (enum kind)kind, t + offset, g + offset, &seed);
                for (size_t n = 0; n <= BLOCK; n++)
                    if (is_tested_length(n)) {
                        const struct kernels *k = &levels[level];
                        check_stored(k, (enum kernel_type)type, t + offset, g + offset, n);
                        check_all_groups(k, (enum kernel_type)type, t + offset, g + offset, n);
                        check_stored_kl(k, (enum kernel_type)type, t + offset, g + offset, n);
                    }
            }
    assert_true(!level_count || short_pairs > 1000);
}

/* A pair that differs by some steps of its type, or by one of the limits of quotients. */
static void store_near(enum kernel_type type, bool zeros, unsigned char *t, unsigned char *g,
                       uint64_t *seed)
{
    static const unsigned mantissa[] = {[KERNEL_F32] = 23, [KERNEL_F16] = 10, [KERNEL_BF16] = 7};
    static const uint32_t one[] = {
        [KERNEL_F32] = 0x3F800000, [KERNEL_F16] = 0x3C00, [KERNEL_BF16] = 0x3F80};
    static const unsigned factors[] = {100, 200, 1000, 10000};
    const uint32_t half = 1u << mantissa[type], factor = factors[random_below(seed, 4)];
    uint32_t golden = (uint32_t)stored_value(type, NORMAL, seed);
    uint32_t step = (uint32_t)random_below(seed, 1u << random_below(seed, mantissa[type] - 1));
    if (type == KERNEL_F32 && random_below(seed, 4) == 0) {
        step = half / factor + 1 + (uint32_t)random_below(seed, half / factor);
        golden = one[type] + (step * factor - half);
        step += (uint32_t)random_below(seed, 3) - 1;
    }
    uint32_t target = random_below(seed, 2) ? golden + step : golden - step;
    const uint32_t sign = 1u << (8 * widths[type] - 1);
    if (zeros && random_below(seed, 5) == 0) /* one in a long while has another sign */
        golden = target = random_below(seed, 2000) ? 0 : sign;
    memcpy(g, &golden, widths[type]);
    memcpy(t, &target, widths[type]);
}

/* Pairs that are all close, for which levels may have a shorter way. */
static void test_near(void **state)
{
    (void)state;
    static unsigned char t[BLOCK * 4], g[BLOCK * 4];
    uint64_t seed = 8;
    for (int round = 0; round < 300; round++)
        for (int type = KERNEL_F32; type < KERNEL_TYPES; type++) {
            const size_t n = round % 3 ? BLOCK : 1 + (size_t)random_below(&seed, BLOCK);
            const size_t width = widths[type];
            for (size_t i = 0; i < BLOCK; i++)
                store_near((enum kernel_type)type, round % 4 > 1, t + i * width, g + i * width,
                           &seed);
            if (round % 8 == 0) /* all but one */
                memset(g + width * random_below(&seed, BLOCK), 0, width);
            if (round % 32 == 1)
                memcpy(t, g, sizeof t);
            for (size_t level = 0; level < level_count; level++) {
                length = n;
                check_all_groups(&levels[level], (enum kernel_type)type, t, g, n);
                check_stored_kl(&levels[level], (enum kernel_type)type, t, g, n);
            }
        }
}

/* Quotients at the limits 1/200 and 1/1000 and next to them, where a product may decide otherwise
 * than the rounded quotient; and those of zeros and the smallest numbers. */
static void test_quotients(void **state)
{
    (void)state;
    static const unsigned mantissa[] = {[KERNEL_F32] = 23, [KERNEL_F16] = 10, [KERNEL_BF16] = 7};
    static const unsigned one[] = {
        [KERNEL_F32] = 0x3F800000, [KERNEL_F16] = 0x3C00, [KERNEL_BF16] = 0x3F80};
    static unsigned char t[BLOCK * 4], g[BLOCK * 4];
    uint64_t seed = 6, exact = 0;
    for (int round = 0; round < 200; round++)
        for (int type = KERNEL_F32; type < KERNEL_TYPES; type++) {
            const unsigned limit = round % 2 ? 200 : 1000, half = 1u << mantissa[type];
            const unsigned first = (half + limit - 1) / limit;
            const unsigned multiples = (2 * half - 1) / limit - first + 1;
            for (size_t i = 0; i < BLOCK; i++) {
                unsigned whole = half + (unsigned)random_below(&seed, half);
                if (i % 2 && multiples)
                    whole = (first + (unsigned)random_below(&seed, multiples)) * limit;
                const unsigned step = whole / limit + (unsigned)random_below(&seed, 3) - 1;
                exact += step * limit == whole;
                uint32_t golden = one[type] + (whole - half);
                uint32_t target = i % 3 ? golden + step : golden - step;
                if (i % 5 == 0) {
                    golden = (uint32_t)random_below(&seed, 3) * limit;
                    target = golden + (uint32_t)random_below(&seed, 4);
                }
                memcpy(g + i * widths[type], &golden, widths[type]);
                memcpy(t + i * widths[type], &target, widths[type]);
            }
            for (size_t level = 0; level < level_count; level++) {
                check_stored(&levels[level], (enum kernel_type)type, t, g, BLOCK);
                check_all_groups(&levels[level], (enum kernel_type)type, t, g, BLOCK);
            }
        }
    assert_true(exact > 1000);
}

/* All 65,536 codes of the 16-bit types, NaNs and infinities too. */
/* Quotients of all sizes, one hardly larger than another, also of the smallest numbers there are,
 * after a largest one that was found before. */
static void test_rising_quotients(void **state)
{
    (void)state;
    static const uint32_t greatest[] = {
        [KERNEL_F32] = 0x7F000000, [KERNEL_F16] = 0x7800, [KERNEL_BF16] = 0x7F00};
    static unsigned char t[BLOCK * 4], g[BLOCK * 4];
    uint64_t seed = 11;
    for (int round = 0; round < 300; round++)
        for (int type = KERNEL_F32; type < KERNEL_TYPES; type++) {
            const uint32_t most = greatest[type] >> (round % 10), step = 1u << round % 5;
            for (size_t i = 0; i < BLOCK; i++) {
                const uint32_t golden = step + (uint32_t)random_below(&seed, most - 2 * step);
                const uint32_t target =
                    golden - step + (uint32_t)random_below(&seed, 2 * step + (i % 8 != 0));
                memcpy(g + i * widths[type], &golden, widths[type]);
                memcpy(t + i * widths[type], &target, widths[type]);
            }
            for (size_t level = 0; level < level_count; level++) {
                struct relative_counts a = {0}, b = {0};
                for (size_t i = 0; i < BLOCK; i += BLOCK / 4) {
                    const size_t at = i * widths[type];
                    struct error_lanes none = {0};
                    kernels_c.pair_relative[type](t + at, g + at, BLOCK / 4, &none, &a);
                    levels[level].pair_relative[type](t + at, g + at, BLOCK / 4, &none, &b);
                    same_relatives(&a, &b);
                }
            }
        }
}

static void test_load_codes(void **state)
{
    (void)state;
    static uint16_t codes[65536];
    static double a[65536], b[65536];
    for (unsigned i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (size_t level = 0; level < level_count; level++)
        for (int type = KERNEL_F16; type <= KERNEL_BF16; type++) {
            doing = "load";
            for (size_t at = 0; at < 65536; at += BLOCK) {
                kernels_c.load[type](codes + at, BLOCK, a + at);
                levels[level].load[type](codes + at, BLOCK, b + at);
            }
            same_reals(a, b, 65536);
        }
}

static void test_crc(void **state)
{
    (void)state;
    static unsigned char bytes[3000];
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)random_bits(&seed);
    for (size_t level = 0; level < level_count; level++)
        for (size_t n = 0; n < sizeof bytes - 8; n++) {
            const uint32_t crc = (uint32_t)random_bits(&seed);
            assert_int_equal(levels[level].crc32(crc, bytes + n % 8, n),
                             kernels_c.crc32(crc, bytes + n % 8, n));
        }
    assert_int_equal(kernels_c.crc32(0, "123456789", 9), 0xCBF43926);
}

static void test_differing(void **state)
{
    (void)state;
    static unsigned char a[BLOCK * 16 + 1], b[BLOCK * 16 + 1];
    static const unsigned widths_in_bits[] = {4, 8, 16, 32, 64, 128};
    uint64_t seed = 8;
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < sizeof a; i++) {
            a[i] = (unsigned char)random_bits(&seed);
            b[i] =
                random_below(&seed, (uint64_t)round + 1) ? a[i] : (unsigned char)random_bits(&seed);
        }
        for (size_t w = 0; w < sizeof widths_in_bits / sizeof *widths_in_bits; w++) {
            const unsigned bits = widths_in_bits[w];
            const size_t n = round % 2 ? BLOCK : (size_t)random_below(&seed, BLOCK + 1);
            uint64_t count = 0;
            for (size_t i = 0; i < n && bits > 4; i++)
                count += memcmp(a + 1 + i * bits / 8, b + 1 + i * bits / 8, bits / 8) != 0;
            for (size_t i = 0; i < n && bits == 4; i++)
                count += (a[1 + i / 2] >> i % 2 * 4 & 15) != (b[1 + i / 2] >> i % 2 * 4 & 15);
            assert_int_equal(kernels_c.differing(a + 1, b + 1, n, bits), count);
            for (size_t level = 0; level < level_count; level++)
                assert_int_equal(levels[level].differing(a + 1, b + 1, n, bits), count);
        }
    }
}

/* From classes back to bins and limits: each size counted alone, and all together. */
static void test_unfold(void **state)
{
    (void)state;
    const struct size_classes both[] = {abs_classes(), ratio_classes()};
    uint64_t seed = 9;
    for (int which = 0; which < 2; which++) {
        const struct size_classes *sizes = &both[which];
        uint64_t counts[CLASSES] = {0}, bins[HISTOGRAM_BINS] = {0}, passed[CLASS_LIMITS] = {0};
        uint64_t same_bins[HISTOGRAM_BINS] = {0}, same_passed[CLASS_LIMITS] = {0};
        for (int i = 0; i < 100000; i++) {
            double x = fabs(one_value(i % 2 ? ODD : WIDE, &seed));
            if (i % 5 == 0)
                x = sizes->limit[random_below(&seed, (uint64_t)sizes->limits)];
            unsigned class = kernel_bin(x);
            same_bins[class]++;
            for (int k = 0; k < sizes->limits; k++) {
                const bool passes = sizes->reached ? x >= sizes->limit[k] : x > sizes->limit[k];
                same_passed[k] += passes;
                class += passes;
            }
            counts[class]++;
        }
        doing = "unfold";
        classes_unfold(sizes, counts, bins, passed);
        same_counts(bins, same_bins, HISTOGRAM_BINS);
        same_counts(passed, same_passed, CLASS_LIMITS);
    }
}

static void test_mask(void **state)
{
    (void)state;
    plumb_cpu_mask(0);
    assert_string_equal(plumb_cpu_level(), "c");
    plumb_cpu_mask(UINT32_MAX);
    assert_string_equal(plumb_cpu_level(), level_count ? levels[level_count - 1].name : "c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float64),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_side_by_side_ends),
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_quotients),
        cmocka_unit_test(test_load_codes),
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_differing),
        cmocka_unit_test(test_unfold),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_rising_quotients),
    };
    return cmocka_run_group_tests(tests, find_levels, NULL);
}
