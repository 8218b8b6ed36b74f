/* The kernels in plain C: the definition that the vector versions are tested against. */
#include "metric/hash.h"
#include "metric/kernel.h"
#include "metric/kernel_bits.h"
#include "plumb/metric.h"

#include <assert.h>
#include <libdeflate.h>
#include <math.h>
#include <string.h>

static_assert(HISTOGRAM_BINS == PLUMB_HISTOGRAM_BINS, "one layout of histograms");

const double kernel_abs_limits[ABS_LIMITS] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7};

/* (ln 2)^i / i! */
const double kernel_exp2[10] = {
    1.0,
    0x1.62e42fefa39efp-1,
    0x1.ebfbdff82c58fp-3,
    0x1.c6b08d704a0cp-5,
    0x1.3b2ab6fba4e77p-7,
    0x1.5d87fe78a6731p-10,
    0x1.430912f86c787p-13,
    0x1.ffcbfc588b0c7p-17,
    0x1.62c0223a5c824p-20,
    0x1.b5253d395e7c4p-24,
};

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void difference(const double *t, const double *g, size_t n, double *d)
{
    for (size_t i = 0; i < n; i++)
        d[i] = t[i] - g[i];
}

static void relative(const double *d, const double *g, size_t n, double *r)
{
    for (size_t i = 0; i < n; i++)
        r[i] = fabs(d[i]) / fabs(g[i]);
}

/* |d| in units in the last place of g, in a type of the given precision. A unit at zero is the one
 * at 1. The scale is split in two because 2^(precision - exponent) may overflow for float64. */
static void ulps(const double *d, const double *g, size_t n, const struct ulp_scale *scale,
                 double *u)
{
    double factor = ldexp(1, scale->precision - 1);
    for (size_t i = 0; i < n; i++) {
        int exponent = g[i] == 0 ? 1023 : (int)(bits_of(g[i]) >> 52 & 0x7FF);
        if (exponent < scale->emin + 1023)
            exponent = scale->emin + 1023;
        double unit = from_bits((uint64_t)(2047 - exponent) << 52); /* 2^(1 - e) */
        u[i] = fabs(d[i]) * unit * factor;
    }
}

static void error(const double *t, const double *g, const double *d, size_t n,
                  struct error_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t l = i % LANES;
        out->tg[l] += t[i] * g[i];
        out->tt[l] += t[i] * t[i];
        out->gg[l] += g[i] * g[i];
        out->dd[l] += d[i] * d[i];
        if (fabs(d[i]) > out->max)
            out->max = fabs(d[i]);
    }
}

static double largest_of(const double *x, size_t n, double max)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] > max)
            max = x[i];
    return max;
}

static void relative_tally(const double *r, size_t n, struct relative_counts *out)
{
    out->max = largest_of(r, n, out->max);
    for (size_t i = 0; i < n; i++) {
        out->below_5e3 += !(r[i] >= 5e-3);
        out->below_1e3 += !(r[i] >= 1e-3);
    }
}

static void sum_ratios(const double *r, size_t n, double sum[LANES])
{
    for (size_t i = 0; i < n; i++)
        sum[i % LANES] += r[i] >= 0 ? r[i] : 0;
}

static void ratio_tally(const double *r, size_t n, struct ratio_lanes *out)
{
    sum_ratios(r, n, out->sum);
    for (size_t i = 0; i < n; i++) {
        out->below_1e2 += !(r[i] >= 1e-2);
        out->below_1e4 += !(r[i] >= 1e-4);
    }
}

static void close(const double *d, const double *g, size_t n, const struct close_limits *limits,
                  struct close_counts *out)
{
    for (size_t i = 0; i < n; i++) {
        out->close += fabs(d[i]) <= close_room(limits, g[i]);
        out->greater += fabs(d[i]) > limits->gt;
        out->above += d[i] > 0;
        out->below += d[i] < 0;
    }
}

static void sum_sizes(const double *d, size_t n, struct absolute_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        double size = fabs(d[i]);
        out->sum[i % LANES] += size;
        if (size != 0 && size < out->min)
            out->min = size;
    }
}

static void absolute(const double *d, size_t n, struct absolute_lanes *out)
{
    sum_sizes(d, n, out);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < ABS_LIMITS; k++)
            out->over[k] += fabs(d[i]) > kernel_abs_limits[k];
}

static void ulp_tally(const double *u, size_t n, double threshold, struct ulp_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        out->sum[i % LANES] += u[i];
        if (u[i] > out->max)
            out->max = u[i];
        out->over += u[i] > threshold;
    }
}

static void small(const double *d, const double *g, size_t n, const struct small_limits *limits,
                  struct small_counts *out)
{
    for (size_t i = 0; i < n; i++) {
        bool is_small = fabs(g[i]) <= limits->value;
        out->small += is_small;
        out->errors += is_small && fabs(d[i]) > limits->error;
    }
}

static void range(const double *x, size_t n, struct range_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t l = i % LANES;
        out->sum[l] += x[i];
        if (x[i] < out->min[l])
            out->min[l] = x[i];
        if (x[i] > out->max[l])
            out->max[l] = x[i];
    }
}

static void centre_wide(const double *x, size_t n, double middle, struct centre_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        double deviation = x[i] - middle;
        out->sum[i % LANES] += deviation;
        out->squares[i % LANES] += deviation * deviation;
    }
}

/* 2^k * 2^r with k = round(x / ln 2) and |r| <= 1/2, 2^r by its series up to r^9, in pairs so that
 * few operations wait for each other. Adding 1.5*2^52 rounds to an integer, which then sits in the
 * low bits of the sum. Fused multiply-adds are written out: they are part of the definition. */
double kernel_exp(double x)
{
    double sum = fma(x, KERNEL_LOG2E, 0x1.8p52);
    double r = fma(x, KERNEL_LOG2E, -(sum - 0x1.8p52));
    double r2 = r * r, r4 = r2 * r2;
    double p01 = fma(r, kernel_exp2[1], kernel_exp2[0]);
    double p23 = fma(r, kernel_exp2[3], kernel_exp2[2]);
    double p45 = fma(r, kernel_exp2[5], kernel_exp2[4]);
    double p67 = fma(r, kernel_exp2[7], kernel_exp2[6]);
    double p89 = fma(r, kernel_exp2[9], kernel_exp2[8]);
    double low = fma(p23, r2, p01);
    double high = fma(p67, r2, p45);
    double p = fma(fma(p89, r4, high), r4, low);
    return p * from_bits((bits_of(sum) + 1023) << 52);
}

static void kl_wide(const double *t, const double *g, size_t n, struct kl_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t l = i % LANES;
        double weight = kernel_exp(g[i]);
        out->golden[l] += weight;
        out->target[l] += kernel_exp(t[i]);
        out->weighted[l] = fma(weight, g[i] - t[i], out->weighted[l]);
    }
}

/* exp(d) by its series up to d^6. */
static void kl_near_wide(const double *d, const double *g, size_t n, struct kl_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t l = i % LANES;
        double weight = kernel_exp(g[i]), d2 = d[i] * d[i];
        double high = fma(d2, 1.0 / 720, fma(d[i], 1.0 / 120, 1.0 / 24));
        double growth = fma(fma(high, d2, fma(d[i], 1.0 / 6, 0.5)), d2, 1.0 + d[i]);
        out->golden[l] += weight;
        out->target[l] = fma(weight, growth, out->target[l]);
        out->weighted[l] = fma(-weight, d[i], out->weighted[l]);
    }
}

static void find_bins(const double *x, size_t n, uint8_t *bins)
{
    for (size_t i = 0; i < n; i++)
        bins[i] = (uint8_t)kernel_bin(fabs(x[i]));
}

static void find_classes(const double *x, size_t n, const struct size_classes *sizes,
                         uint8_t *classes)
{
    find_bins(x, n, classes);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < sizes->limits; k++) {
            const double size = fabs(x[i]), limit = sizes->limit[k];
            classes[i] = (uint8_t)(classes[i] + (sizes->reached ? size >= limit : size > limit));
        }
}

static void count_bins(const uint8_t *bin, size_t n, uint8_t top, uint64_t *bins)
{
    (void)top;
    for (size_t i = 0; i < n; i++)
        bins[bin[i]]++;
}

/* The kernels over stored values, put together from the others. */

/* Numbers of the group that are not there are 0. */
static void sketch_group(const double x[KERNEL_SKETCH_GROUP], uint64_t group, double *sums,
                         double fold[4])
{
    const uint64_t word = kernel_sketch_word(group);
    const size_t start = word & 255;
    double y[KERNEL_SKETCH_GROUP];
    for (size_t l = 0; l < KERNEL_SKETCH_GROUP; l++) {
        y[l] = word >> (8 + l) & 1 ? -x[l] : x[l];
        sums[start + l] += y[l];
    }
    for (size_t l = 0; l < 4; l++)
        fold[(start + l) % 4] += (y[l] + y[l + 4]) + (y[l + 8] + y[l + 12]);
}

static void sketch(enum kernel_type type, const void *data, size_t n, uint64_t first, double *sums,
                   double fold[4])
{
    double wide[PLUMB_METRIC_BLOCK], *x = wide;
    kernels_c.load[type](data, n, wide);
    while (n) {
        const size_t lane = first % KERNEL_SKETCH_GROUP, room = KERNEL_SKETCH_GROUP - lane;
        const size_t m = n < room ? n : room;
        double group[KERNEL_SKETCH_GROUP] = {0};
        memcpy(group + lane, x, m * sizeof *x);
        sketch_group(group, first / KERNEL_SKETCH_GROUP, sums, fold);
        first += m;
        x += m;
        n -= m;
    }
}

static void pair_relative(enum kernel_type type, const void *t, const void *g, size_t n,
                          struct error_lanes *errors, struct relative_counts *relatives)
{
    double wide_t[PLUMB_METRIC_BLOCK], wide_g[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK] = {0};
    kernels_c.load[type](t, n, wide_t);
    kernels_c.load[type](g, n, wide_g);
    difference(wide_t, wide_g, n, d);
    error(wide_t, wide_g, d, n, errors);
    if (relatives) {
        relative(d, wide_g, n, d);
        relative_tally(d, n, relatives);
    }
}

static void pair_close(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct close_limits *limits, struct close_counts *out)
{
    double wide_t[PLUMB_METRIC_BLOCK], wide_g[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK] = {0};
    kernels_c.load[type](t, n, wide_t);
    kernels_c.load[type](g, n, wide_g);
    difference(wide_t, wide_g, n, d);
    close(d, wide_g, n, limits, out);
}

/* Both exponentials, or one and how it grows. */
static void pair_kl(enum kernel_type type, const void *t, const void *g, size_t n, bool near,
                    struct kl_lanes *out)
{
    double wide_t[PLUMB_METRIC_BLOCK], wide_g[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK] = {0};
    kernels_c.load[type](t, n, wide_t);
    kernels_c.load[type](g, n, wide_g);
    difference(wide_t, wide_g, n, d);
    if (near)
        kl_near_wide(d, wide_g, n, out);
    else
        kl_wide(wide_t, wide_g, n, out);
}

static void pair_all(enum kernel_type type, const void *t, const void *g, size_t n,
                     const struct all_limits *limits, struct all_sums *out, uint8_t *classes)
{
    double wide_t[PLUMB_METRIC_BLOCK], wide_g[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK] = {0};
    double x[PLUMB_METRIC_BLOCK] = {0};
    kernels_c.load[type](t, n, wide_t);
    kernels_c.load[type](g, n, wide_g);
    difference(wide_t, wide_g, n, d);
    error(wide_t, wide_g, d, n, &out->error);
    range(wide_t, n, &out->range[0]);
    range(wide_g, n, &out->range[1]);
    close(d, wide_g, n, &limits->close, &out->close);
    sum_sizes(d, n, &out->absolute);
    small(d, wide_g, n, &limits->small, &out->small);
    find_classes(d, n, &limits->abs, classes);
    relative(d, wide_g, n, x);
    out->relative.max = largest_of(x, n, out->relative.max);
    sum_ratios(x, n, out->ratio.sum);
    find_classes(x, n, &limits->ratio, classes + PLUMB_METRIC_BLOCK);
    ulps(d, wide_g, n, &limits->ulp, x);
    ulp_tally(x, n, limits->ulp.threshold, &out->ulp);
    find_bins(x, n, classes + 2 * PLUMB_METRIC_BLOCK);
}

static void centre(enum kernel_type type, const void *data, size_t n, double middle,
                   struct centre_lanes *out)
{
    double x[PLUMB_METRIC_BLOCK];
    kernels_c.load[type](data, n, x);
    centre_wide(x, n, middle, out);
}

static void ranges(enum kernel_type type, const void *data, struct range_lanes *out)
{
    double x[SIDE_BY_SIDE * PLUMB_METRIC_BLOCK];
    kernels_c.load[type](data, SIDE_BY_SIDE * PLUMB_METRIC_BLOCK, x);
    for (int b = 0; b < SIDE_BY_SIDE; b++) {
        out[b] = range_of_nothing();
        range(x + b * PLUMB_METRIC_BLOCK, PLUMB_METRIC_BLOCK, &out[b]);
    }
}

static void centres(enum kernel_type type, const void *data, const double *middle,
                    struct centre_lanes *out)
{
    double x[SIDE_BY_SIDE * PLUMB_METRIC_BLOCK];
    kernels_c.load[type](data, SIDE_BY_SIDE * PLUMB_METRIC_BLOCK, x);
    for (int b = 0; b < SIDE_BY_SIDE; b++) {
        out[b] = (struct centre_lanes){0};
        centre_wide(x + b * PLUMB_METRIC_BLOCK, PLUMB_METRIC_BLOCK, middle[b], &out[b]);
    }
}

#define TYPED(suffix, type, dtype)                                                                 \
    static void load_##suffix(const void *data, size_t n, double *out)                             \
    {                                                                                              \
        plumb_to_f64(dtype, data, 0, n, false, out);                                               \
    }                                                                                              \
    static void pair_error_##suffix(const void *t, const void *g, size_t n,                        \
                                    struct error_lanes *out)                                       \
    {                                                                                              \
        pair_relative(type, t, g, n, out, NULL);                                                   \
    }                                                                                              \
    static void pair_relative_##suffix(const void *t, const void *g, size_t n,                     \
                                       struct error_lanes *errors,                                 \
                                       struct relative_counts *relatives)                          \
    {                                                                                              \
        pair_relative(type, t, g, n, errors, relatives);                                           \
    }                                                                                              \
    static void pair_close_##suffix(const void *t, const void *g, size_t n,                        \
                                    const struct close_limits *limits, struct close_counts *out)   \
    {                                                                                              \
        pair_close(type, t, g, n, limits, out);                                                    \
    }                                                                                              \
    static void pair_kl_##suffix(const void *t, const void *g, size_t n, struct kl_lanes *out)     \
    {                                                                                              \
        pair_kl(type, t, g, n, false, out);                                                        \
    }                                                                                              \
    static void pair_kl_near_##suffix(const void *t, const void *g, size_t n,                      \
                                      struct kl_lanes *out)                                        \
    {                                                                                              \
        pair_kl(type, t, g, n, true, out);                                                         \
    }                                                                                              \
    static void pair_all_##suffix(const void *t, const void *g, size_t n,                          \
                                  const struct all_limits *limits, struct all_sums *out,           \
                                  uint8_t *classes)                                                \
    {                                                                                              \
        pair_all(type, t, g, n, limits, out, classes);                                             \
    }                                                                                              \
    static void centre_##suffix(const void *data, size_t n, double middle,                         \
                                struct centre_lanes *out)                                          \
    {                                                                                              \
        centre(type, data, n, middle, out);                                                        \
    }                                                                                              \
    static void pair_rest_##suffix(const void *t, const void *g, size_t n, bool near,              \
                                   const double middle[2], struct kl_lanes *kl,                    \
                                   struct centre_lanes *out)                                       \
    {                                                                                              \
        pair_kl(type, t, g, n, near, kl);                                                          \
        centre(type, t, n, middle[0], &out[0]);                                                    \
        centre(type, g, n, middle[1], &out[1]);                                                    \
    }                                                                                              \
    static void ranges_##suffix(const void *data, struct range_lanes *out)                         \
    {                                                                                              \
        ranges(type, data, out);                                                                   \
    }                                                                                              \
    static void centres_##suffix(const void *data, const double *middle, struct centre_lanes *out) \
    {                                                                                              \
        centres(type, data, middle, out);                                                          \
    }                                                                                              \
    static void sketch_##suffix(const void *data, size_t n, uint64_t first, double *sums,          \
                                double fold[4])                                                    \
    {                                                                                              \
        sketch(type, data, n, first, sums, fold);                                                  \
    }

TYPED(f64, KERNEL_F64, PLUMB_F64)
TYPED(f32, KERNEL_F32, PLUMB_F32)
TYPED(f16, KERNEL_F16, PLUMB_F16)
TYPED(bf16, KERNEL_BF16, PLUMB_BF16)

const struct kernels kernels_c = {
    .name = "c",
    .load = {load_f64, load_f32, load_f16, load_bf16},
    .difference = difference,
    .relative = relative,
    .ulps = ulps,
    .error = error,
    .relative_tally = relative_tally,
    .ratio_tally = ratio_tally,
    .close = close,
    .absolute = absolute,
    .ulp_tally = ulp_tally,
    .small = small,
    .range = range,
    .find_bins = find_bins,
    .count_bins = count_bins,
    .differing = differing,
    .crc32 = libdeflate_crc32,
    .sketch = {sketch_f64, sketch_f32, sketch_f16, sketch_bf16},
    .hash_eight = hash_eight_c,
    .pair_error = {pair_error_f64, pair_error_f32, pair_error_f16, pair_error_bf16},
    .pair_relative = {pair_relative_f64, pair_relative_f32, pair_relative_f16, pair_relative_bf16},
    .pair_close = {pair_close_f64, pair_close_f32, pair_close_f16, pair_close_bf16},
    .pair_kl = {pair_kl_f64, pair_kl_f32, pair_kl_f16, pair_kl_bf16},
    .pair_kl_near = {pair_kl_near_f64, pair_kl_near_f32, pair_kl_near_f16, pair_kl_near_bf16},
    .pair_all = {pair_all_f64, pair_all_f32, pair_all_f16, pair_all_bf16},
    .pair_rest = {pair_rest_f64, pair_rest_f32, pair_rest_f16, pair_rest_bf16},
    .centre = {centre_f64, centre_f32, centre_f16, centre_bf16},
    .ranges = {ranges_f64, ranges_f32, ranges_f16, ranges_bf16},
    .centres = {centres_f64, centres_f32, centres_f16, centres_bf16},
};
