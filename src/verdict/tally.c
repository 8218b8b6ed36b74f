/* A block is loaded as float64 once and goes through the kernels of the metrics engine and a few
 * loops of its own while it is in the cache. Pairs that are not finite are set aside first; what
 * stands in their place, a pair of zeros, is counted among the small values. */
#include "verdict/tally.h"

#include <math.h>
#include <string.h>

static enum plumb_dtype part_type(enum plumb_dtype dtype)
{
    return dtype == PLUMB_C64 ? PLUMB_F32 : dtype == PLUMB_C128 ? PLUMB_F64 : dtype;
}

static double eps_of(enum plumb_dtype part)
{
    return part == PLUMB_BF16 ? 0x1p-8 : part == PLUMB_F32 || part == PLUMB_F64 ? 0x1p-52 : 0x1p-23;
}

static double sum_lanes(const double *lanes, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += lanes[i];
    return sum;
}

/* The nearest value of the device's type: what a perfect device would have returned. */
static double on_grid(const struct tally *tally, double x)
{
    return tally->part == PLUMB_F64 ? x : plumb_round_to(tally->part, x);
}

/* Sets the pairs aside that are not finite. A benchmark beyond the device's range stands for an
 * infinity there, if the device has one. */
static void set_aside(struct tally *tally, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d = tally->d[i], b = tally->b[i];
        if (isfinite(d) && isfinite(b))
            continue;
        double held = isfinite(b) ? on_grid(tally, b) : b;
        bool equal = (isnan(d) && isnan(held)) || d == held;
        tally->equal += equal;
        tally->unlike += !equal;
        tally->unlike_nan |= !equal && (isnan(d) || isnan(b));
        tally->above += d > b && !equal;
        tally->below += d < b && !equal;
        tally->d[i] = tally->b[i] = 0;
    }
}

/* rounded = the benchmark in the device's type. Adding and taking away a number whose last digit is
 * that of the type at b rounds b to it, without a call for each value. */
static void round_block(struct tally *tally, size_t n)
{
    const struct tally_grid grid = tally->grid;
    if (tally->part == PLUMB_F64) {
        memcpy(tally->rounded, tally->b, n * sizeof *tally->b);
        return;
    }
    if (tally->part == PLUMB_F32) {
        for (size_t i = 0; i < n; i++)
            tally->rounded[i] = (double)(float)tally->b[i];
        return;
    }
    if (grid.factor == 0) {
        for (size_t i = 0; i < n; i++)
            tally->rounded[i] = plumb_round_to(tally->part, tally->b[i]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double b = tally->b[i], power;
        uint64_t bits;
        memcpy(&bits, &b, sizeof bits);
        bits &= UINT64_C(0x7ff) << 52;
        memcpy(&power, &bits, sizeof power);
        power = power > grid.smallest ? power : grid.smallest;
        double shift = copysign(power * grid.factor, b);
        double near = copysign((b + shift) - shift, b);
        /* NaN where the shift of a huge b was infinite */
        tally->rounded[i] = fabs(near) <= grid.max ? near : copysign(INFINITY, b);
    }
}

/* Pairs of zeros whose signs differ, which the difference does not show. */
static uint64_t count_signed_zeros(const struct tally *tally, size_t n)
{
    const struct small_limits limits = {0};
    struct small_counts zeros = {0};
    tally->kernels.small(tally->d, tally->d, n, &limits, &zeros);
    if (!zeros.small)
        return 0;
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += tally->d[i] == 0 && tally->rounded[i] == 0 &&
                 signbit(tally->d[i]) != signbit(tally->rounded[i]);
    return count;
}

/* Against what a perfect device would have returned; -0 is not 0. */
static void compare_rounded(struct tally *tally, size_t n)
{
    const struct kernels *k = &tally->kernels;
    const struct close_limits limits = {0};
    struct close_counts counts = {0};
    round_block(tally, n);
    if (tally->zero_signs)
        tally->differ += count_signed_zeros(tally, n);
    k->difference(tally->d, tally->rounded, n, tally->rounded);
    k->close(tally->rounded, tally->b, n, &limits, &counts);
    tally->differ += counts.greater;
    tally->above += counts.above;
    tally->below += counts.below;
}

static void see_sizes(double zero, const double *x, size_t n, bool *big, double *most)
{
    for (size_t i = 0; i < n && !*big; i++) {
        *big = fabs(x[i]) > zero;
        *most = fabs(x[i]) > *most ? fabs(x[i]) : *most;
    }
    *most = *big ? 0 : *most;
}

struct block_sums {
    struct error_lanes error;
    struct ratio_lanes ratio;
    struct relative_counts relative;
};

/* diff, and whether all pairs are finite (or far too large to be sure without looking). */
static bool take_differences(struct tally *tally, size_t n, struct block_sums *sums)
{
    tally->kernels.difference(tally->d, tally->b, n, tally->diff);
    sums->error = (struct error_lanes){0};
    tally->kernels.error(tally->d, tally->b, tally->diff, n, &sums->error);
    return isfinite(sum_lanes(sums->error.tt, LANES) + sum_lanes(sums->error.gg, LANES));
}

static void relative_errors(struct tally *tally, size_t n, struct block_sums *sums)
{
    const struct kernels *k = &tally->kernels;
    for (size_t i = 0; i < n; i++)
        tally->den[i] = fabs(tally->b[i]) + tally->eps;
    k->relative(tally->diff, tally->den, n, tally->r);
    k->ratio_tally(tally->r, n, &sums->ratio);
    k->relative_tally(tally->r, n, &sums->relative);
    tally->under[DUAL_100] += sums->ratio.below_1e2;
    tally->under[DUAL_1000] += sums->relative.below_1e3;
    tally->under[DUAL_10000] += sums->ratio.below_1e4;
}

/* Takes the small values out of the errors and their sums. */
static void mask_small(struct tally *tally, size_t n, struct block_sums *sums)
{
    double limit = tally->limits->small;
    for (size_t i = 0; i < n; i++) {
        bool keep = fabs(tally->b[i]) > limit;
        tally->diff[i] = keep ? tally->diff[i] : 0;
        tally->r[i] = keep ? tally->r[i] : 0;
    }
    *sums = (struct block_sums){0};
    tally->kernels.ratio_tally(tally->r, n, &sums->ratio);
    tally->kernels.relative_tally(tally->r, n, &sums->relative);
    tally->kernels.error(tally->diff, tally->diff, tally->diff, n, &sums->error);
}

/* Small values over the absolute threshold; most sets have one tolerance for both standards. */
static uint64_t count_absolute_errors(const struct tally *tally, size_t n,
                                      const struct small_counts *benchmark)
{
    const struct small_limits absolute = {tally->limits->small, tally->limits->absolute_atol};
    struct small_counts counts = {0};
    if (tally->limits->absolute_atol == tally->limits->small_atol)
        return benchmark->errors;
    tally->kernels.small(tally->diff, tally->b, n, &absolute, &counts);
    return counts.errors;
}

/* Errors of small values are judged by their size, of others in proportion. */
static void masked_errors(struct tally *tally, size_t n, struct block_sums *sums)
{
    const struct kernels *k = &tally->kernels;
    const struct standard_limits *limits = tally->limits;
    const struct small_limits small = {limits->small, limits->small_atol};
    const struct small_limits every = {INFINITY, limits->rtol};
    struct small_counts counts = {0}, over = {0};
    k->small(tally->diff, tally->b, n, &small, &counts);
    tally->small += counts.small;
    tally->small_errors += counts.errors;
    tally->absolute_errors += count_absolute_errors(tally, n, &counts);
    tally->normal += n - counts.small;
    if (counts.small)
        mask_small(tally, n, sums);

    k->small(tally->r, tally->r, n, &every, &over);
    tally->normal_errors += over.errors;
    exact_add(&tally->rel, sum_lanes(sums->ratio.sum, LANES));
    exact_add(&tally->squares, sum_lanes(sums->error.dd, LANES));
    if (sums->relative.max > tally->max_rel)
        tally->max_rel = sums->relative.max;
}

/* The formula has no place for zero and for what is less than the type's smallest value; a device
 * that returned the nearest value there is (the difference is in `rounded`) is right all the same.
 */
static void fp8_ulps(struct tally *tally, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double d = tally->d[i], b = tally->b[i];
        double ulp = d == b ? 0 : fabs(judge_fp8_ulp(d, b));
        if (tally->rounded[i] == 0 && ulp > 0.5)
            ulp = 0.5;
        if (ulp > tally->max_ulp)
            tally->max_ulp = ulp;
        tally->ulp_over += ulp > tally->limits->ulp_threshold;
        exact_add(&tally->ulp, ulp);
    }
}

static enum plumb_code tally_init(struct tally *tally, const struct judge_pair *pair)
{
    const struct plumb_tensor *device = pair->device;
    tally->part = part_type(device->dtype);
    const struct plumb_dtype_info *info = plumb_dtype_info(tally->part);
    tally->eps = eps_of(tally->part);
    /* Of float64 that is a unit in the last place of 1, and what should cancel out leaves some. */
    tally->zero = tally->part == PLUMB_F64 ? 64 * COSINE_ZERO : COSINE_ZERO;
    tally->limits = standard_limits(pair->options->rules, device->dtype);
    tally->kernels = kernels_current();
    tally->zero_signs =
        tally->part == device->dtype && !standard_chooses(pair->api) && !pair->options->gradient;
    tally->count = device->count * plumb_dtype_parts(device->dtype);
    if (tally->part == PLUMB_F16 || tally->part == PLUMB_BF16)
        tally->grid = (struct tally_grid){.smallest = ldexp(1, info->emin),
                                          .factor = ldexp(1, 52 - info->precision),
                                          .max = info->max_finite};
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_ERROR | PLUMB_G_ULP;
    spec.ulp_threshold = tally->limits->ulp_threshold;
    tally->engine = plumb_metric_new(&spec, tally->part, PLUMB_F64, tally->count);
    return tally->engine ? PLUMB_OK : PLUMB_E_NOMEM;
}

static void tally_all(struct tally *tally, const struct judge_pair *pair)
{
    const struct plumb_tensor *device = pair->device, *bench = pair->bench;
    unsigned parts = plumb_dtype_parts(device->dtype);
    bool fp8 = standard_is_fp8(device->dtype);
    struct room room[2];
    for (uint64_t at = 0; at < device->count;) {
        uint64_t left = device->count - at;
        size_t elements = left < TALLY_BLOCK / parts ? (size_t)left : TALLY_BLOCK / parts;
        size_t n = elements * parts;
        const void *d = dense_block(device, at, elements, &room[0]);
        const void *b = dense_block(bench, at, elements, &room[1]);
        dense_load(&tally->kernels, device->dtype, d, n, tally->d);
        dense_load(&tally->kernels, bench->dtype, b, n, tally->b);
        struct block_sums sums = {0};
        if (!take_differences(tally, n, &sums)) {
            set_aside(tally, n);
            take_differences(tally, n, &sums);
        }
        see_sizes(tally->zero, tally->d, n, &tally->device_big, &tally->device_most);
        see_sizes(tally->zero, tally->b, n, &tally->bench_big, &tally->bench_most);

        struct plumb_tensor view[2];
        int64_t shape = (int64_t)n;
        plumb_tensor_init(&view[0], PLUMB_F64, 1, &shape, NULL);
        view[1] = view[0];
        view[0].data = tally->d;
        view[1].data = tally->b;
        plumb_metric_update(tally->engine, &view[0], &view[1], 0, n);
        compare_rounded(tally, n);
        if (fp8)
            fp8_ulps(tally, n);
        relative_errors(tally, n, &sums);
        masked_errors(tally, n, &sums);
        at += elements;
    }
}

enum plumb_code tally_pair(struct tally *tally, const struct judge_pair *pair)
{
    enum plumb_code code = tally_init(tally, pair);
    if (!code)
        tally_all(tally, pair);
    return code;
}

void tally_destroy(struct tally *tally)
{
    plumb_metric_free(tally->engine);
}
