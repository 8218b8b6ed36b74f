/* The kernels in plain C: the definition that the vector versions are tested against. */
#include "metric/bytes.h"
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

/* Nearly least relative errors over |r| <= 1/2, with 2^0 = 1: 9e-13 and 3e-9. */
const double kernel_exp2[EXP_TERMS] = {
    1.0,
    0x1.62e42fef8939fp-1,
    0x1.ebfbdff8ebffap-3,
    0x1.c6b08dcf908a6p-5,
    0x1.3b2ab5f1b857ap-7,
    0x1.5d874c84661a9p-10,
    0x1.430aa165dfb73p-13,
    0x1.00d8866fc08a8p-16,
    0x1.61cb748e84266p-20,
};

const double kernel_weight2[WEIGHT_TERMS] = {
    1.0,
    0x1.62e430ad8f1fcp-1,
    0x1.ebfbdc06d02e6p-3,
    0x1.c6aee9f958c13p-5,
    0x1.3b2d7723b53afp-7,
    0x1.5f3dbb8523a22p-10,
    0x1.41deb972dcfbdp-13,
};

const float kernel_short2[WEIGHT_TERMS] = {
    1.0f,           0x1.62e43p-1f,   0x1.ebfbdcp-3f,  0x1.c6aeeap-5f,
    0x1.3b2d78p-7f, 0x1.5f3dbcp-10f, 0x1.41debap-13f,
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

/* 2^k * 2^r with k = round(x / ln 2) and |r| <= 1/2, 2^r by a polynomial. Adding 1.5*2^52 rounds to
 * an integer, which then sits in the low bits of the sum. Fused multiply-adds are written out: they
 * are part of the definition. */
static double power_of_e(double x, const double *terms, int count)
{
    double sum = fma(x, KERNEL_LOG2E, 0x1.8p52);
    double r = fma(x, KERNEL_LOG2E, -(sum - 0x1.8p52));
    double p = terms[count - 1];
    for (int i = count - 2; i >= 0; i--)
        p = fma(p, r, terms[i]);
    return p * from_bits((bits_of(sum) + 1023) << 52);
}

double kernel_exp(double x)
{
    return power_of_e(x, kernel_exp2, EXP_TERMS);
}

double kernel_weight(double x)
{
    return power_of_e(x, kernel_weight2, WEIGHT_TERMS);
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

/* exp(d) = 1 + d * growth, by its series up to d^5. */
static void kl_near_wide(const double *d, const double *g, size_t n, struct kl_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        size_t l = i % LANES;
        double growth = fma(d[i], 1.0 / 120, 1.0 / 24);
        growth = fma(growth, d[i], 1.0 / 6);
        growth = fma(growth, d[i], 0.5);
        growth = fma(growth, d[i], 1.0);
        double weight = kernel_weight(g[i]), shift = weight * d[i];
        out->golden[l] += weight;
        out->target[l] += fma(shift, growth, weight);
        out->weighted[l] -= shift;
    }
}

/* As power_of_e, with the logarithm in two parts: products of it keep all digits of float32. */
float kernel_short_weight(float x)
{
    const float sum = fmaf(x, SHORT_LOG2E, 0x1.8p23f);
    float r = fmaf(x, SHORT_LOG2E, -(sum - 0x1.8p23f)), p = kernel_short2[WEIGHT_TERMS - 1];
    r = fmaf(x, SHORT_LOG2E_REST, r);
    for (int i = WEIGHT_TERMS - 2; i >= 0; i--)
        p = fmaf(p, r, kernel_short2[i]);
    uint32_t bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &sum, sizeof power);
    bits += power << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

struct short_lanes {
    float golden[2 * LANES], shift[2 * LANES], curve[2 * LANES];
};

/* exp(d) = 1 + d + d^2 * half, by its series up to d^5. */
static void short_run(const double *t, const double *g, size_t n, struct short_lanes *out)
{
    for (size_t i = 0; i < n; i++) {
        const size_t l = i % (2 * LANES);
        const float d = (float)t[i] - (float)g[i], weight = kernel_short_weight((float)g[i]);
        float half = fmaf(d, 1.0f / 120, 1.0f / 24);
        half = fmaf(half, d, 1.0f / 6);
        half = fmaf(half, d, 0.5f);
        const float shift = weight * d;
        out->golden[l] += weight;
        out->shift[l] += shift;
        out->curve[l] = fmaf(shift * d, half, out->curve[l]);
    }
}

/* t and g have the digits of float32. */
static bool kl_short(const double *t, const double *g, size_t n, struct kl_lanes *out)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(g[i]) > KL_SHORT)
            return false;
    for (size_t i = 0; i < n; i += KL_RUN) {
        struct short_lanes s = {.golden = {0}};
        short_run(t + i, g + i, n - i < KL_RUN ? n - i : KL_RUN, &s);
        for (size_t l = 0, u = LANES; l < LANES; l++, u++) {
            const double golden = (double)s.golden[l] + (double)s.golden[u];
            const double shift = (double)s.shift[l] + (double)s.shift[u];
            const double curve = (double)s.curve[l] + (double)s.curve[u];
            out->golden[l] += golden;
            out->target[l] += golden + (shift + curve);
            out->weighted[l] -= shift;
        }
    }
    return true;
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

/* Numbers of the tile that are not there are 0. */
static void sketch_tile(const double x[KERNEL_SKETCH_TILE], uint64_t tile, double *sums,
                        double fold[4])
{
    const uint64_t signs = kernel_sketch_signs(tile);
    const unsigned place = kernel_sketch_place(kernel_sketch_places(tile), tile);
    double y[KERNEL_SKETCH_TILE], column[8];
    for (unsigned l = 0; l < KERNEL_SKETCH_TILE; l++) {
        y[l] = signs >> l & 1 ? -x[l] : x[l];
        sums[place ^ l] += y[l];
    }
    for (unsigned c = 0; c < 8; c++)
        column[c] = ((y[c] + y[c + 8]) + (y[c + 16] + y[c + 24])) +
                    ((y[c + 32] + y[c + 40]) + (y[c + 48] + y[c + 56]));
    for (unsigned c = 0; c < 4; c++)
        fold[(place ^ c) % 4] = column[c] + column[c + 4];
}

static void sketch(const double *x, size_t n, uint64_t first, double *sums, double (*fold)[4])
{
    while (n) {
        const size_t lane = first % KERNEL_SKETCH_TILE, room = KERNEL_SKETCH_TILE - lane;
        const size_t m = n < room ? n : room;
        double tile[KERNEL_SKETCH_TILE] = {0};
        memcpy(tile + lane, x, m * sizeof *x);
        sketch_tile(tile, first / KERNEL_SKETCH_TILE, sums, *fold++);
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

static bool pair_kl_short(enum kernel_type type, const void *t, const void *g, size_t n,
                          struct kl_lanes *out)
{
    double wide_t[PLUMB_METRIC_BLOCK], wide_g[PLUMB_METRIC_BLOCK];
    if (type == KERNEL_F64)
        return false;
    kernels_c.load[type](t, n, wide_t);
    kernels_c.load[type](g, n, wide_g);
    return kl_short(wide_t, wide_g, n, out);
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

static void ranges(enum kernel_type type, const void *data, double *wide, struct range_lanes *out)
{
    double copy[SIDE_BY_SIDE * PLUMB_METRIC_BLOCK], *x = type == KERNEL_F64 ? copy : wide;
    kernels_c.load[type](data, SIDE_BY_SIDE * PLUMB_METRIC_BLOCK, x);
    for (int b = 0; b < SIDE_BY_SIDE; b++) {
        out[b] = range_of_nothing();
        range(x + b * PLUMB_METRIC_BLOCK, PLUMB_METRIC_BLOCK, &out[b]);
    }
}

static void centres(const double *wide, const double *middle, struct centre_lanes *out)
{
    for (int b = 0; b < SIDE_BY_SIDE; b++) {
        out[b] = (struct centre_lanes){0};
        centre_wide(wide + b * PLUMB_METRIC_BLOCK, PLUMB_METRIC_BLOCK, middle[b], &out[b]);
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
    static bool pair_kl_short_##suffix(const void *t, const void *g, size_t n,                     \
                                       struct kl_lanes *out)                                       \
    {                                                                                              \
        return pair_kl_short(type, t, g, n, out);                                                  \
    }                                                                                              \
    static void ranges_##suffix(const void *data, double *wide, struct range_lanes *out)           \
    {                                                                                              \
        ranges(type, data, wide, out);                                                             \
    }

TYPED(f64, KERNEL_F64, PLUMB_F64)
TYPED(f32, KERNEL_F32, PLUMB_F32)
TYPED(f16, KERNEL_F16, PLUMB_F16)
TYPED(bf16, KERNEL_BF16, PLUMB_BF16)

void kernel_widen_c(const struct byte_words *words, const void *bytes, size_t n, uint16_t *out)
{
    const uint8_t *code = bytes;
    for (size_t i = 0; i < n; i++)
        out[i] = words->word[code[i]];
}

const struct kernels kernels_c = {
    .name = "c",
    .load = {load_f64, load_f32, load_f16, load_bf16},
    .widen = kernel_widen_c,
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
    .sketch = sketch,
    .hash_eight = hash_eight_c,
    .pair_error = {pair_error_f64, pair_error_f32, pair_error_f16, pair_error_bf16},
    .pair_relative = {pair_relative_f64, pair_relative_f32, pair_relative_f16, pair_relative_bf16},
    .pair_close = {pair_close_f64, pair_close_f32, pair_close_f16, pair_close_bf16},
    .pair_kl = {pair_kl_f64, pair_kl_f32, pair_kl_f16, pair_kl_bf16},
    .pair_kl_near = {pair_kl_near_f64, pair_kl_near_f32, pair_kl_near_f16, pair_kl_near_bf16},
    .pair_all = {pair_all_f64, pair_all_f32, pair_all_f16, pair_all_bf16},
    .pair_kl_short = {pair_kl_short_f64, pair_kl_short_f32, pair_kl_short_f16, pair_kl_short_bf16},
    .centre = {centre_f64, centre_f32, centre_f16, centre_bf16},
    .ranges = {ranges_f64, ranges_f32, ranges_f16, ranges_bf16},
    .centres = centres,
};
