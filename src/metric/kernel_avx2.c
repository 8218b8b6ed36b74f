/* The kernels for AVX2: the same operations as kernel_c.c, four or eight lanes at a time.
 *
 * Products of two values of at most 24 significant bits are exact in float64, so that fused and
 * separate multiply-add round alike; for those types the fused form is used. What is left over
 * after whole vectors goes through the C version, which then continues with lane 0. */
#include "metric/kernel.h"
#include "plumb/dtype.h"
#include "plumb/metric.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* Eight float64, or eight 64-bit counters. */
struct v8 {
    __m256d lo, hi;
};
struct n8 {
    __m256i lo, hi;
};

/* An operation on halves becomes one on the whole. */
#define BOTH(op, a, b)                                                                             \
    (struct v8)                                                                                    \
    {                                                                                              \
        op((a).lo, (b).lo), op((a).hi, (b).hi)                                                     \
    }

INLINE struct v8 get(const double *p)
{
    return (struct v8){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}

INLINE void put(double *p, struct v8 x)
{
    _mm256_storeu_pd(p, x.lo);
    _mm256_storeu_pd(p + 4, x.hi);
}

INLINE struct n8 get_count(const uint64_t *p)
{
    return (struct n8){_mm256_loadu_si256((const __m256i *)p),
                       _mm256_loadu_si256((const __m256i *)(p + 4))};
}

INLINE void put_count(uint64_t *p, struct n8 x)
{
    _mm256_storeu_si256((__m256i *)p, x.lo);
    _mm256_storeu_si256((__m256i *)(p + 4), x.hi);
}

INLINE struct v8 all(double x)
{
    return (struct v8){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}

INLINE struct v8 add(struct v8 a, struct v8 b)
{
    return BOTH(_mm256_add_pd, a, b);
}

INLINE struct v8 subtract(struct v8 a, struct v8 b)
{
    return BOTH(_mm256_sub_pd, a, b);
}

INLINE struct v8 multiply(struct v8 a, struct v8 b)
{
    return BOTH(_mm256_mul_pd, a, b);
}

/* The second operand where one is NaN. */
INLINE struct v8 larger(struct v8 a, struct v8 b)
{
    return BOTH(_mm256_max_pd, a, b);
}

INLINE struct v8 smaller(struct v8 a, struct v8 b)
{
    return BOTH(_mm256_min_pd, a, b);
}

INLINE struct v8 both(struct v8 a, struct v8 b)
{
    return BOTH(_mm256_and_pd, a, b);
}

INLINE struct v8 fused(struct v8 a, struct v8 b, struct v8 c)
{
    return (struct v8){_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)};
}

INLINE __m256d size4(__m256d x)
{
    return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
}

INLINE struct v8 size_of(struct v8 x)
{
    return (struct v8){size4(x.lo), size4(x.hi)};
}

#define COMPARE(a, b, how)                                                                         \
    (struct v8)                                                                                    \
    {                                                                                              \
        _mm256_cmp_pd((a).lo, (b).lo, how), _mm256_cmp_pd((a).hi, (b).hi, how)                     \
    }

/* Adds one to each lane whose mask is set. */
INLINE __m256i count4(__m256i counter, __m256d mask)
{
    return _mm256_sub_epi64(counter, _mm256_castpd_si256(mask));
}

INLINE struct n8 count(struct n8 counter, struct v8 mask)
{
    return (struct n8){count4(counter.lo, mask.lo), count4(counter.hi, mask.hi)};
}

INLINE struct v8 widen(__m128 lo, __m128 hi)
{
    return (struct v8){_mm256_cvtps_pd(lo), _mm256_cvtps_pd(hi)};
}

/* Eight stored values as float64. */
INLINE struct v8 load8(enum kernel_type type, const void *data, size_t i)
{
    const uint16_t *words = (const uint16_t *)data + i;
    switch (type) {
    case KERNEL_F32:
        return widen(_mm_loadu_ps((const float *)data + i),
                     _mm_loadu_ps((const float *)data + i + 4));
    case KERNEL_F16:
        return widen(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)words)),
                     _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(words + 4))));
    case KERNEL_BF16: {
        /* A zero below each word makes a float32 of it. */
        __m128i all8 = _mm_loadu_si128((const __m128i *)words), zero = _mm_setzero_si128();
        return widen(_mm_castsi128_ps(_mm_unpacklo_epi16(zero, all8)),
                     _mm_castsi128_ps(_mm_unpackhi_epi16(zero, all8)));
    }
    default:
        return get((const double *)data + i);
    }
}

/* The address of element i, for handing the rest of a block to the C version. */
INLINE const void *element(enum kernel_type type, const void *data, size_t i)
{
    static const size_t width[] = {
        [KERNEL_F64] = 8, [KERNEL_F32] = 4, [KERNEL_F16] = 2, [KERNEL_BF16] = 2};
    return (const char *)data + i * width[type];
}

/* Error sums: four lanes, so eight values take two steps. */

struct error4 {
    __m256d tg, tt, gg, dd, max;
};

INLINE struct error4 get_error(const struct error_lanes *p)
{
    return (struct error4){_mm256_loadu_pd(p->tg), _mm256_loadu_pd(p->tt), _mm256_loadu_pd(p->gg),
                           _mm256_loadu_pd(p->dd), _mm256_loadu_pd(p->max)};
}

INLINE void put_error(struct error_lanes *p, struct error4 e)
{
    _mm256_storeu_pd(p->tg, e.tg);
    _mm256_storeu_pd(p->tt, e.tt);
    _mm256_storeu_pd(p->gg, e.gg);
    _mm256_storeu_pd(p->dd, e.dd);
    _mm256_storeu_pd(p->max, e.max);
}

INLINE __m256d add_product(enum kernel_type type, __m256d sum, __m256d a, __m256d b)
{
    if (type == KERNEL_F64)
        return _mm256_add_pd(sum, _mm256_mul_pd(a, b));
    return _mm256_fmadd_pd(a, b, sum);
}

INLINE struct error4 add_error(enum kernel_type type, struct error4 e, __m256d t, __m256d g,
                               __m256d d)
{
    e.tg = add_product(type, e.tg, t, g);
    e.tt = add_product(type, e.tt, t, t);
    e.gg = add_product(type, e.gg, g, g);
    e.dd = add_product(KERNEL_F64, e.dd, d, d);
    e.max = _mm256_max_pd(size4(d), e.max);
    return e;
}

struct relative4 {
    __m256d max;
    __m256i below_5e3, below_1e3;
};

INLINE struct relative4 get_relative(const struct relative_lanes *p)
{
    return (struct relative4){_mm256_loadu_pd(p->max),
                              _mm256_loadu_si256((const __m256i *)p->below_5e3),
                              _mm256_loadu_si256((const __m256i *)p->below_1e3)};
}

INLINE void put_relative(struct relative_lanes *p, struct relative4 x)
{
    _mm256_storeu_pd(p->max, x.max);
    _mm256_storeu_si256((__m256i *)p->below_5e3, x.below_5e3);
    _mm256_storeu_si256((__m256i *)p->below_1e3, x.below_1e3);
}

INLINE struct relative4 add_relative(struct relative4 x, __m256d r)
{
    x.max = _mm256_max_pd(r, x.max);
    x.below_5e3 = count4(x.below_5e3, _mm256_cmp_pd(r, _mm256_set1_pd(5e-3), _CMP_NGE_UQ));
    x.below_1e3 = count4(x.below_1e3, _mm256_cmp_pd(r, _mm256_set1_pd(1e-3), _CMP_NGE_UQ));
    return x;
}

INLINE void pair_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                        struct error_lanes *errors, struct relative_lanes *relatives)
{
    struct error4 e = get_error(errors);
    struct relative4 r = {0};
    if (relatives)
        r = get_relative(relatives);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 x = load8(type, t, i), y = load8(type, g, i), d = subtract(x, y);
        e = add_error(type, e, x.lo, y.lo, d.lo);
        if (relatives)
            r = add_relative(r, _mm256_div_pd(size4(d.lo), size4(y.lo)));
        e = add_error(type, e, x.hi, y.hi, d.hi);
        if (relatives)
            r = add_relative(r, _mm256_div_pd(size4(d.hi), size4(y.hi)));
    }
    put_error(errors, e);
    if (relatives)
        put_relative(relatives, r);
    if (i == n)
        return;
    t = element(type, t, i);
    g = element(type, g, i);
    if (relatives)
        kernels_c.pair_relative[type](t, g, n - i, errors, relatives);
    else
        kernels_c.pair_error[type](t, g, n - i, errors);
}

static void error(const double *t, const double *g, const double *d, size_t n,
                  struct error_lanes *out)
{
    struct error4 e = get_error(out);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        e = add_error(KERNEL_F64, e, _mm256_loadu_pd(t + i), _mm256_loadu_pd(g + i),
                      _mm256_loadu_pd(d + i));
    put_error(out, e);
    kernels_c.error(t + i, g + i, d + i, n - i, out);
}

static void relative_tally(const double *r, size_t n, struct relative_lanes *out)
{
    struct relative4 x = get_relative(out);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        x = add_relative(x, _mm256_loadu_pd(r + i));
    put_relative(out, x);
    kernels_c.relative_tally(r + i, n - i, out);
}

/* All others: eight lanes. */

struct close8 {
    struct n8 close, greater, above, below;
};

INLINE struct close8 get_close(const struct close_lanes *p)
{
    return (struct close8){get_count(p->close), get_count(p->greater), get_count(p->above),
                           get_count(p->below)};
}

INLINE void put_close(struct close_lanes *p, struct close8 x)
{
    put_count(p->close, x.close);
    put_count(p->greater, x.greater);
    put_count(p->above, x.above);
    put_count(p->below, x.below);
}

INLINE struct close8 add_close(struct close8 x, struct v8 d, struct v8 g,
                               const struct close_limits *limits)
{
    struct v8 size = size_of(d), zero = all(0);
    struct v8 room = add(all(limits->atol), multiply(all(limits->rtol), size_of(g)));
    x.close = count(x.close, COMPARE(size, room, _CMP_LE_OQ));
    x.greater = count(x.greater, COMPARE(size, all(limits->gt), _CMP_GT_OQ));
    x.above = count(x.above, COMPARE(d, zero, _CMP_GT_OQ));
    x.below = count(x.below, COMPARE(d, zero, _CMP_LT_OQ));
    return x;
}

INLINE void pair_close_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                              const struct close_limits *limits, struct close_lanes *out)
{
    struct close8 x = get_close(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 y = load8(type, g, i);
        x = add_close(x, subtract(load8(type, t, i), y), y, limits);
    }
    put_close(out, x);
    if (i < n)
        kernels_c.pair_close[type](element(type, t, i), element(type, g, i), n - i, limits, out);
}

static void close(const double *d, const double *g, size_t n, const struct close_limits *limits,
                  struct close_lanes *out)
{
    struct close8 x = get_close(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        x = add_close(x, get(d + i), get(g + i), limits);
    put_close(out, x);
    kernels_c.close(d + i, g + i, n - i, limits, out);
}

INLINE void load_kernel(enum kernel_type type, const void *data, size_t n, double *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(out + i, load8(type, data, i));
    if (i < n)
        kernels_c.load[type](element(type, data, i), n - i, out + i);
}

static void difference(const double *t, const double *g, size_t n, double *d)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(d + i, subtract(get(t + i), get(g + i)));
    kernels_c.difference(t + i, g + i, n - i, d + i);
}

static void relative(const double *d, const double *g, size_t n, double *r)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(r + i, BOTH(_mm256_div_pd, size_of(get(d + i)), size_of(get(g + i))));
    kernels_c.relative(d + i, g + i, n - i, r + i);
}

static void ulps(const double *d, const double *g, size_t n, const struct ulp_scale *scale,
                 double *u)
{
    __m256i emin = _mm256_set1_epi64x(scale->emin + 1023);
    __m256i factor = _mm256_set1_epi64x((1023LL + scale->precision - 1) << 52);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        __m256d y = _mm256_loadu_pd(g + i);
        __m256i exponent = _mm256_and_si256(_mm256_srli_epi64(_mm256_castpd_si256(y), 52),
                                            _mm256_set1_epi64x(0x7FF));
        __m256d is_zero = _mm256_cmp_pd(y, _mm256_setzero_pd(), _CMP_EQ_OQ);
        exponent =
            _mm256_blendv_epi8(exponent, _mm256_set1_epi64x(1023), _mm256_castpd_si256(is_zero));
        exponent = _mm256_max_epi32(exponent, emin);
        __m256i unit = _mm256_slli_epi64(_mm256_sub_epi64(_mm256_set1_epi64x(2047), exponent), 52);
        __m256d scaled = _mm256_mul_pd(size4(_mm256_loadu_pd(d + i)), _mm256_castsi256_pd(unit));
        _mm256_storeu_pd(u + i, _mm256_mul_pd(scaled, _mm256_castsi256_pd(factor)));
    }
    kernels_c.ulps(d + i, g + i, n - i, scale, u + i);
}

static void ratio_tally(const double *r, size_t n, struct ratio_lanes *out)
{
    struct v8 sum = get(out->sum);
    struct n8 below_1e2 = get_count(out->below_1e2), below_1e4 = get_count(out->below_1e4);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 x = get(r + i);
        sum = add(sum, both(x, COMPARE(x, all(0), _CMP_GE_OQ)));
        below_1e2 = count(below_1e2, COMPARE(x, all(1e-2), _CMP_NGE_UQ));
        below_1e4 = count(below_1e4, COMPARE(x, all(1e-4), _CMP_NGE_UQ));
    }
    put(out->sum, sum);
    put_count(out->below_1e2, below_1e2);
    put_count(out->below_1e4, below_1e4);
    kernels_c.ratio_tally(r + i, n - i, out);
}

/* Counters of the limits share registers badly, so they take a loop of their own, four at a
 * time. */
static void absolute(const double *d, size_t n, struct absolute_lanes *out)
{
    struct v8 sum = get(out->sum), min = get(out->min);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 size = size_of(get(d + i)), is_zero = COMPARE(size, all(0), _CMP_EQ_OQ);
        sum = add(sum, size);
        /* Zeros must not win: where size is 0, compare the minimum with itself. */
        struct v8 candidate = {_mm256_blendv_pd(size.lo, min.lo, is_zero.lo),
                               _mm256_blendv_pd(size.hi, min.hi, is_zero.hi)};
        min = smaller(candidate, min);
    }
    put(out->sum, sum);
    put(out->min, min);
    for (int half = 0; half < 8; half += 4) {
        __m256i over[ABS_LIMITS];
        for (int k = 0; k < ABS_LIMITS; k++)
            over[k] = _mm256_loadu_si256((const __m256i *)(out->over[k] + half));
        for (size_t j = 0; j < i; j += 8) {
            __m256d size = size4(_mm256_loadu_pd(d + j + half));
            for (int k = 0; k < ABS_LIMITS; k++)
                over[k] = count4(
                    over[k], _mm256_cmp_pd(size, _mm256_set1_pd(kernel_abs_limits[k]), _CMP_GT_OQ));
        }
        for (int k = 0; k < ABS_LIMITS; k++)
            _mm256_storeu_si256((__m256i *)(out->over[k] + half), over[k]);
    }
    kernels_c.absolute(d + i, n - i, out);
}

static void ulp_tally(const double *u, size_t n, double threshold, struct ulp_lanes *out)
{
    struct v8 sum = get(out->sum), max = get(out->max), limit = all(threshold);
    struct n8 over = get_count(out->over);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 x = get(u + i);
        sum = add(sum, x);
        max = larger(x, max);
        over = count(over, COMPARE(x, limit, _CMP_GT_OQ));
    }
    put(out->sum, sum);
    put(out->max, max);
    put_count(out->over, over);
    kernels_c.ulp_tally(u + i, n - i, threshold, out);
}

static void small(const double *d, const double *g, size_t n, double limit, double tolerance,
                  struct small_lanes *out)
{
    struct n8 smalls = get_count(out->small), errors = get_count(out->errors);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 is_small = COMPARE(size_of(get(g + i)), all(limit), _CMP_LE_OQ);
        struct v8 is_over = COMPARE(size_of(get(d + i)), all(tolerance), _CMP_GT_OQ);
        smalls = count(smalls, is_small);
        errors = count(errors, both(is_small, is_over));
    }
    put_count(out->small, smalls);
    put_count(out->errors, errors);
    kernels_c.small(d + i, g + i, n - i, limit, tolerance, out);
}

static void range(const double *x, size_t n, struct range_lanes *out)
{
    struct v8 sum = get(out->sum), min = get(out->min), max = get(out->max);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 v = get(x + i);
        sum = add(sum, v);
        min = smaller(v, min);
        max = larger(v, max);
    }
    put(out->sum, sum);
    put(out->min, min);
    put(out->max, max);
    kernels_c.range(x + i, n - i, out);
}

static void centre(const double *x, size_t n, double middle, struct centre_lanes *out)
{
    struct v8 sum = get(out->sum), squares = get(out->squares);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 deviation = subtract(get(x + i), all(middle));
        sum = add(sum, deviation);
        squares = add(squares, multiply(deviation, deviation));
    }
    put(out->sum, sum);
    put(out->squares, squares);
    kernels_c.centre(x + i, n - i, middle, out);
}

/* See kernel_exp. */
INLINE struct v8 exp8(struct v8 x)
{
    const double *c = kernel_exp2;
    struct v8 sum = fused(x, all(KERNEL_LOG2E), all(0x1.8p52));
    struct v8 k = subtract(sum, all(0x1.8p52));
    struct v8 r = {_mm256_fmsub_pd(x.lo, _mm256_set1_pd(KERNEL_LOG2E), k.lo),
                   _mm256_fmsub_pd(x.hi, _mm256_set1_pd(KERNEL_LOG2E), k.hi)};
    struct v8 r2 = multiply(r, r), r4 = multiply(r2, r2);
    struct v8 p01 = fused(r, all(c[1]), all(c[0]));
    struct v8 p23 = fused(r, all(c[3]), all(c[2]));
    struct v8 p45 = fused(r, all(c[5]), all(c[4]));
    struct v8 p67 = fused(r, all(c[7]), all(c[6]));
    struct v8 p89 = fused(r, all(c[9]), all(c[8]));
    struct v8 low = fused(p23, r2, p01), high = fused(p67, r2, p45);
    struct v8 p = fused(fused(p89, r4, high), r4, low);
    __m256i bias = _mm256_set1_epi64x(1023);
    __m256i lo = _mm256_slli_epi64(_mm256_add_epi64(_mm256_castpd_si256(sum.lo), bias), 52);
    __m256i hi = _mm256_slli_epi64(_mm256_add_epi64(_mm256_castpd_si256(sum.hi), bias), 52);
    return multiply(p, (struct v8){_mm256_castsi256_pd(lo), _mm256_castsi256_pd(hi)});
}

static void kl(const double *t, const double *g, size_t n, struct kl_lanes *out)
{
    struct v8 golden = get(out->golden), target = get(out->target), weighted = get(out->weighted);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 x = get(t + i), y = get(g + i), weight = exp8(y);
        golden = add(golden, weight);
        weighted = fused(weight, subtract(y, x), weighted);
        target = add(target, exp8(x));
    }
    put(out->golden, golden);
    put(out->target, target);
    put(out->weighted, weighted);
    kernels_c.kl(t + i, g + i, n - i, out);
}

static void kl_near(const double *d, const double *g, size_t n, struct kl_lanes *out)
{
    struct v8 golden = get(out->golden), target = get(out->target), weighted = get(out->weighted);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct v8 x = get(d + i), d2 = multiply(x, x), weight = exp8(get(g + i));
        struct v8 high = fused(d2, all(1.0 / 720), fused(x, all(1.0 / 120), all(1.0 / 24)));
        struct v8 low = fused(x, all(1.0 / 6), all(0.5));
        struct v8 growth = fused(fused(high, d2, low), d2, add(all(1.0), x));
        golden = add(golden, weight);
        target = fused(weight, growth, target);
        weighted = (struct v8){_mm256_fnmadd_pd(weight.lo, x.lo, weighted.lo),
                               _mm256_fnmadd_pd(weight.hi, x.hi, weighted.hi)};
    }
    put(out->golden, golden);
    put(out->target, target);
    put(out->weighted, weighted);
    kernels_c.kl_near(d + i, g + i, n - i, out);
}

/* Eight bin numbers, in an order that does not matter; see histogram() of kernel_c.c. The upper
 * halves of the float64 values tell the bin, the lower ones are needed to know zero. */
INLINE __m256i bins8(const double *x)
{
    __m256 a = _mm256_castpd_ps(_mm256_loadu_pd(x)), b = _mm256_castpd_ps(_mm256_loadu_pd(x + 4));
    __m256i lower = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    __m256i upper = _mm256_and_si256(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD)),
                                     _mm256_set1_epi32(0x7FFFFFFF));
    __m256i bin = _mm256_sub_epi32(_mm256_srli_epi32(upper, 20),
                                   _mm256_set1_epi32(1023 + HISTOGRAM_LOWEST - 1));
    bin = _mm256_max_epi32(bin, _mm256_set1_epi32(1));
    bin = _mm256_min_epi32(bin, _mm256_set1_epi32(HISTOGRAM_BINS - 2));
    __m256i zero = _mm256_cmpeq_epi32(_mm256_or_si256(upper, lower), _mm256_setzero_si256());
    __m256i nan = _mm256_cmpgt_epi32(upper, _mm256_set1_epi32(0x7FF00000));
    return _mm256_andnot_si256(_mm256_or_si256(zero, nan), bin);
}

/* 32 of them as bytes: each 32-bit number is shifted to a byte of its own, and four put
 * together. */
INLINE __m256i bins32(const double *x)
{
    __m256i low = _mm256_or_si256(bins8(x), _mm256_slli_epi32(bins8(x + 8), 8));
    __m256i high = _mm256_or_si256(bins8(x + 16), _mm256_slli_epi32(bins8(x + 24), 8));
    return _mm256_or_si256(low, _mm256_slli_epi32(high, 16));
}

INLINE unsigned largest_byte(__m256i bytes)
{
    __m128i m = _mm_max_epu8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    /* The smallest 16-bit word of the complement, once each holds the larger of its two bytes. */
    m = _mm_max_epu8(m, _mm_srli_epi16(m, 8));
    m = _mm_minpos_epu16(
        _mm_xor_si128(_mm_and_si128(m, _mm_set1_epi16(0xFF)), _mm_set1_epi16(0xFF)));
    return 0xFFu - (unsigned)_mm_extract_epi16(m, 0);
}

/* How many of the bytes equal value, value + 1, ... value + 3; at most 255 vectors. */
INLINE void count_bytes(const __m256i *vectors, size_t n, unsigned value, uint64_t found[4])
{
    __m256i wanted[4], sums[4];
    for (int k = 0; k < 4; k++) {
        wanted[k] = _mm256_set1_epi8((char)(value + (unsigned)k));
        sums[k] = _mm256_setzero_si256();
    }
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            sums[k] = _mm256_sub_epi8(sums[k], _mm256_cmpeq_epi8(vectors[i], wanted[k]));
    for (int k = 0; k < 4; k++) {
        uint64_t part[4];
        _mm256_storeu_si256((__m256i *)part, _mm256_sad_epu8(sums[k], _mm256_setzero_si256()));
        found[k] = part[0] + part[1] + part[2] + part[3];
    }
}

/* Errors of one block seldom span more than some twenty powers of two, no error and an infinite one
 * apart. So the bins are written as bytes, and each bin in the range that occurs is counted by
 * comparing all bytes with it: faster than incrementing counters, which wait for each other. */
static void histogram(const double *x, size_t n, uint64_t *bins)
{
    enum { MOST_VECTORS = 32, WIDE_RANGE = 40, TOP = HISTOGRAM_BINS - 2 };
    __m256i vectors[MOST_VECTORS], top = _mm256_set1_epi8((char)TOP);
    __m256i low = _mm256_set1_epi8(-1), high = _mm256_setzero_si256();
    size_t used = 0;
    for (; used < n / 32 && used < MOST_VECTORS; used++) {
        __m256i v = bins32(x + used * 32);
        vectors[used] = v;
        high = _mm256_max_epu8(high, _mm256_andnot_si256(_mm256_cmpeq_epi8(v, top), v));
        /* Zeros wrap around to the largest byte here, and do not count as low. */
        low = _mm256_min_epu8(low, _mm256_sub_epi8(v, _mm256_set1_epi8(1)));
    }
    unsigned last = largest_byte(high);
    unsigned first = 256 - largest_byte(_mm256_xor_si256(low, _mm256_set1_epi8(-1)));
    if (last > first + WIDE_RANGE)
        used = 0;
    if (used) {
        uint64_t zeros = used * 32, found[4];
        count_bytes(vectors, used, TOP, found); /* nothing is above */
        bins[TOP] += found[0];
        zeros -= found[0];
        for (unsigned bin = first; bin <= last; bin += 4) {
            count_bytes(vectors, used, bin, found);
            for (unsigned k = 0; k < 4 && bin + k <= last; k++) {
                bins[bin + k] += found[k];
                zeros -= found[k];
            }
        }
        bins[0] += zeros;
    }
    kernels_c.histogram(x + used * 32, n - used * 32, bins);
}

/* These registers hold one block's sums only. */
INLINE void ranges_kernel(enum kernel_type type, const void *data, struct range_lanes *out)
{
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        struct v8 sum = all(0), min = all(INFINITY), max = all(-INFINITY);
        for (size_t i = 0; i < PLUMB_METRIC_BLOCK; i += 8) {
            struct v8 v = load8(type, data, b * PLUMB_METRIC_BLOCK + i);
            sum = add(sum, v);
            min = smaller(v, min);
            max = larger(v, max);
        }
        put(out[b].sum, sum);
        put(out[b].min, min);
        put(out[b].max, max);
    }
}

INLINE void centres_kernel(enum kernel_type type, const void *data, const double *middle,
                           struct centre_lanes *out)
{
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        struct v8 sum = all(0), squares = all(0), m = all(middle[b]);
        for (size_t i = 0; i < PLUMB_METRIC_BLOCK; i += 8) {
            struct v8 deviation = subtract(load8(type, data, b * PLUMB_METRIC_BLOCK + i), m);
            sum = add(sum, deviation);
            squares = add(squares, multiply(deviation, deviation));
        }
        put(out[b].sum, sum);
        put(out[b].squares, squares);
    }
}

/* Rotations of four lanes, as 32-bit halves: lane (j - by) mod 4 goes to lane j. */
static const int rotations[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                    {6, 7, 0, 1, 2, 3, 4, 5},
                                    {4, 5, 6, 7, 0, 1, 2, 3},
                                    {2, 3, 4, 5, 6, 7, 0, 1}};

INLINE __m256d sketch_group(const double *x, uint64_t group, double *sums, __m256d fold)
{
    const uint64_t word = kernel_sketch_word(group);
    double *start = sums + (word & 255);
    const __m256i all_signs = _mm256_set1_epi64x((long long)word);
    const __m256d sign = _mm256_set1_pd(-0.0);
    __m256d y[4];
    for (int v = 0; v < 4; v++) {
        const __m256i by =
            _mm256_sub_epi64(_mm256_setr_epi64x(55, 54, 53, 52), _mm256_set1_epi64x(4LL * v));
        const __m256i bits = _mm256_sllv_epi64(all_signs, by);
        y[v] = _mm256_xor_pd(_mm256_loadu_pd(x + 4 * v),
                             _mm256_and_pd(_mm256_castsi256_pd(bits), sign));
        _mm256_storeu_pd(start + 4 * v, _mm256_add_pd(_mm256_loadu_pd(start + 4 * v), y[v]));
    }
    const __m256d four = _mm256_add_pd(_mm256_add_pd(y[0], y[1]), _mm256_add_pd(y[2], y[3]));
    const __m256i by = _mm256_loadu_si256((const __m256i *)rotations[word & 3]);
    return _mm256_add_pd(fold,
                         _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(four), by)));
}

static void sketch(const double *x, size_t n, uint64_t first, double *sums, double fold[4])
{
    enum { GROUP = KERNEL_SKETCH_GROUP };
    __m256d folded = _mm256_loadu_pd(fold);
    while (n) {
        const size_t lane = first % GROUP, m = n < GROUP - lane ? n : GROUP - lane;
        if (m == GROUP) {
            folded = sketch_group(x, first / GROUP, sums, folded);
        } else {
            double group[GROUP] = {0};
            for (size_t i = 0; i < m; i++)
                group[lane + i] = x[i];
            folded = sketch_group(group, first / GROUP, sums, folded);
        }
        first += m;
        x += m;
        n -= m;
    }
    _mm256_storeu_pd(fold, folded);
}

#define TYPED(suffix, type)                                                                        \
    static void load_##suffix(const void *data, size_t n, double *out)                             \
    {                                                                                              \
        load_kernel(type, data, n, out);                                                           \
    }                                                                                              \
    static void pair_error_##suffix(const void *t, const void *g, size_t n,                        \
                                    struct error_lanes *out)                                       \
    {                                                                                              \
        pair_kernel(type, t, g, n, out, NULL);                                                     \
    }                                                                                              \
    static void pair_relative_##suffix(const void *t, const void *g, size_t n,                     \
                                       struct error_lanes *errors,                                 \
                                       struct relative_lanes *relatives)                           \
    {                                                                                              \
        pair_kernel(type, t, g, n, errors, relatives);                                             \
    }                                                                                              \
    static void pair_close_##suffix(const void *t, const void *g, size_t n,                        \
                                    const struct close_limits *limits, struct close_lanes *out)    \
    {                                                                                              \
        pair_close_kernel(type, t, g, n, limits, out);                                             \
    }                                                                                              \
    KERNEL_STATISTICS(suffix, type)

TYPED(f64, KERNEL_F64)
TYPED(f32, KERNEL_F32)
TYPED(f16, KERNEL_F16)
TYPED(bf16, KERNEL_BF16)

void kernels_avx2(struct kernels *table)
{
    *table = (struct kernels){
        .name = "avx2",
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
        .centre = centre,
        .kl = kl,
        .kl_near = kl_near,
        .histogram = histogram,
        .sketch = sketch,
        .pair_error = {pair_error_f64, pair_error_f32, pair_error_f16, pair_error_bf16},
        .pair_relative = {pair_relative_f64, pair_relative_f32, pair_relative_f16,
                          pair_relative_bf16},
        .pair_close = {pair_close_f64, pair_close_f32, pair_close_f16, pair_close_bf16},
        .ranges = {ranges_f64, ranges_f32, ranges_f16, ranges_bf16},
        .centres = {centres_f64, centres_f32, centres_f16, centres_bf16},
    };
}
