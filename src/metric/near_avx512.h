/* All groups at once on AVX-512, for blocks of float32 and less whose pairs are close: |d| is 0 or
 * below |g| / 2.
 *
 * Then d is exact in float32, sixteen in a register, and what depends on no order needs no float64:
 * sizes are compared as the integers that their bits are, and the exponent of a quotient is that of
 * their difference. In units of 2^(e-24), where e is the exponent of g, d is a whole number below
 * 2^24, so that sums of ULPs are exact. Left for float64 are the sums.
 *
 * Whether pairs are close is known once all have been looked at. If not, or where float32 cannot
 * tell, nothing has been added. */
#ifndef METRIC_NEAR_AVX512_H
#define METRIC_NEAR_AVX512_H

#include "metric/singles_avx512.h"

enum {
    NEAR_ONE = 1 << 23,          /* the exponent of a float32 grows by one */
    NEAR_FIELD = 255 * NEAR_ONE, /* all of it */
    NEAR_UNITS = 24,             /* a unit of whole differences is 2^-24 of that of golden */
    NEAR_DOUBT = 16,             /* steps of float32 between what is and what is not close */
};

/* What is left for float64. */
struct near_sums {
    v8 tg, tt, gg, dd, t, g, size, ratio;
};

INLINE struct near_sums get_near(const struct all_sums *p)
{
    return (struct near_sums){
        .tg = get(p->error.tg),
        .tt = get(p->error.tt),
        .gg = get(p->error.gg),
        .dd = get(p->error.dd),
        .t = get(p->range[0].sum),
        .g = get(p->range[1].sum),
        .size = get(p->absolute.sum),
        .ratio = get(p->ratio.sum),
    };
}

/* Differences have 24 digits, too, so that their squares are exact. */
INLINE struct near_sums add_near(struct near_sums s, v8 x, v8 y, __mmask8 any)
{
    const v8 d = subtract(x, y), size = size_of(d);
    const v8 ratio = _mm512_maskz_div_pd(any, size, size_of(y));
    return (struct near_sums){
        .tg = fused(x, y, s.tg),
        .tt = fused(x, x, s.tt),
        .gg = fused(y, y, s.gg),
        .dd = fused(d, d, s.dd),
        .t = add(s.t, x),
        .g = add(s.g, y),
        .size = add(s.size, size),
        .ratio = add(s.ratio, ratio),
    };
}

INLINE void put_near_sums(struct all_sums *p, struct near_sums s)
{
    put(p->error.tg, s.tg);
    put(p->error.tt, s.tt);
    put(p->error.gg, s.gg);
    put(p->error.dd, s.dd);
    put(p->range[0].sum, s.t);
    put(p->range[1].sum, s.g);
    put(p->absolute.sum, s.size);
    put(p->ratio.sum, s.ratio);
}

struct near16 {
    s16 min[2], max[2];          /* of t, of g */
    __m512i least_golden;        /* |g| */
    __m512i least, most;         /* |d| above 0; |d| */
    __m512i ratio;               /* the difference of |d| and |g| */
    __m512i below, close, doubt; /* doubt: steps between |d| and what is close */
    __m512i sum, most_units, over;
    uint64_t unequal;
    struct near_sums sums;
};

struct near_limits {
    s16 rtol, atol;
    __m512i threshold; /* of ULPs, in whole units */
};

/* May these limits be compared with float32? */
INLINE bool near_limits(enum kernel_type type, const struct all_limits *limits,
                        struct near_limits *out)
{
    const double rtol = limits->close.rtol, atol = limits->close.atol, least = 0x1p-100,
                 most = 0x1p20;
    const double threshold = limits->ulp.threshold * power_of_2(NEAR_UNITS - limits->ulp.precision);
    out->rtol = all_singles((float)rtol);
    out->atol = all_singles((float)atol);
    out->threshold = _mm512_set1_epi32(threshold < 0x1p30 ? (int)threshold : 1 << 30);
    return limits->ulp.emin == (type == KERNEL_F16 ? -14 : -126) && threshold >= 0 &&
           (rtol == 0 || (rtol >= least && rtol <= most)) &&
           (atol == 0 || (atol >= least && atol <= most));
}

INLINE __m512i near_count(__m512i counter, __mmask16 mask)
{
    return _mm512_mask_sub_epi32(counter, mask, counter, _mm512_set1_epi32(-1));
}

/* Classes of |d|: see struct size_classes. */
INLINE c16 near_class(__m512i size, const struct size_classes *sizes)
{
    const __m512i first = _mm512_set1_epi32((int)sizes->short_first);
    const __m512i place = _mm512_min_epu32(_mm512_subs_epu16(_mm512_srli_epi32(size, 23), first),
                                           _mm512_set1_epi32(CLASS_STEPS - 1));
    return _mm512_srai_epi32(_mm512_add_epi32(size, entries(sizes->short_step, place)), 23);
}

/* Classes of |d| / |g|. exponent: of the quotient, which is at least 2^-25, for |d| is 2^-24 of the
 * unit of |g| or more; so its lower bits tell it. */
INLINE c16 near_ratio_class(__m512i exponent, __m512i size, __m512i golden,
                            const struct size_classes *sizes)
{
    const s16 factor = _mm512_castsi512_ps(entries(sizes->quotient_factor, exponent));
    const s16 excess =
        product_less_singles(factor, _mm512_castsi512_ps(size), _mm512_castsi512_ps(golden));
    return _mm512_add_epi32(_mm512_add_epi32(exponent, entries(sizes->quotient_class, exponent)),
                            _mm512_srai_epi32(_mm512_castps_si512(excess), 31));
}

/* |d| in whole units, as float32. */
INLINE __m512i near_units(enum kernel_type type, __m512i size, __m512i golden, __mmask16 any)
{
    __m512i exponent = _mm512_and_si512(golden, _mm512_set1_epi32(NEAR_FIELD));
    if (type == KERNEL_F16)
        exponent = _mm512_max_epi32(exponent, _mm512_set1_epi32((127 - 14) * NEAR_ONE));
    return _mm512_maskz_add_epi32(any, _mm512_sub_epi32(size, exponent),
                                  _mm512_set1_epi32((127 + NEAR_UNITS) * NEAR_ONE));
}

/* Looks at STEP pairs. */
INLINE struct near16 look_near(enum kernel_type type, struct near16 s, const void *t, const void *g,
                               size_t i, const struct all_limits *limits,
                               const struct near_limits *near, uint8_t *classes)
{
    c16 class[STEP / 16], ratio_class[STEP / 16], ulp_class[STEP / 16];
    NO_UNROLL
    for (size_t k = 0; k < STEP / 16; k++) {
        const s16 x = load16(type, t, i + 16 * k), y = load16(type, g, i + 16 * k);
        const s16 d = subtract_singles(x, y), size_y = _mm512_abs_ps(y);
        const __m512i size = _mm512_castps_si512(_mm512_abs_ps(d));
        const __m512i golden = _mm512_castps_si512(size_y);
        const __mmask16 any = _mm512_test_epi32_mask(size, size);
        for (size_t half = 0; half < 2; half++) {
            const size_t at = i + 16 * k + 8 * half;
            s.sums = add_near(s.sums, load8(type, t, at), load8(type, g, at),
                              (__mmask8)(any >> 8 * half));
        }
        s.min[0] = _mm512_min_ps(x, s.min[0]);
        s.max[0] = _mm512_max_ps(x, s.max[0]);
        s.min[1] = _mm512_min_ps(y, s.min[1]);
        s.max[1] = _mm512_max_ps(y, s.max[1]);
        s.least_golden = _mm512_min_epi32(s.least_golden, golden);
        s.most = _mm512_max_epi32(s.most, size);
        s.least = _mm512_mask_min_epi32(s.least, any, s.least, size);
        s.unequal += (uint64_t)__builtin_popcount(any);
        s.below = near_count(
            s.below, _mm512_cmpgt_epu32_mask(_mm512_castps_si512(d), _mm512_set1_epi32(INT32_MIN)));

        const __m512i room = _mm512_castps_si512(fused_singles(near->rtol, size_y, near->atol));
        const __m512i beyond = _mm512_sub_epi32(size, room);
        s.close = _mm512_add_epi32(s.close, _mm512_srli_epi32(beyond, 31));
        s.doubt = _mm512_min_epu32(s.doubt, _mm512_abs_epi32(beyond));

        const __m512i ratio =
            _mm512_mask_sub_epi32(_mm512_set1_epi32(-NEAR_FIELD), any, size, golden);
        s.ratio = _mm512_max_epi32(s.ratio, ratio);
        const __m512i units = near_units(type, size, golden, any);
        const __m512i whole = _mm512_cvttps_epi32(_mm512_castsi512_ps(units));
        s.sum = _mm512_add_epi32(s.sum, whole);
        s.most_units = _mm512_max_epi32(s.most_units, whole);
        s.over = near_count(s.over, _mm512_cmpgt_epi32_mask(whole, near->threshold));

        class[k] = near_class(size, &limits->abs);
        ratio_class[k] =
            near_ratio_class(_mm512_srai_epi32(ratio, 23), size, golden, &limits->ratio);
        ulp_class[k] = _mm512_sub_epi32(
            _mm512_srli_epi32(units, 23),
            _mm512_set1_epi32(127 + NEAR_UNITS + HISTOGRAM_LOWEST - 1 - limits->ulp.precision));
    }
    put_classes(classes + i, class, top_class(limits->abs.limits));
    put_classes(classes + PLUMB_METRIC_BLOCK + i, ratio_class, top_class(limits->ratio.limits));
    put_classes(classes + 2 * PLUMB_METRIC_BLOCK + i, ulp_class, top_class(0));
    return s;
}

/* The lower eight or the upper eight, as float64. */
INLINE v8 near_half(s16 x, int half)
{
    return _mm512_cvtps_pd(half ? _mm512_extractf32x8_ps(x, 1) : _mm512_castps512_ps256(x));
}

/* Zeros of either sign in both halves: which of them was first? */
INLINE bool near_mixed(s16 x)
{
    const v8 low = near_half(x, 0), high = near_half(x, 1);
    const __mmask8 equal = _mm512_cmp_pd_mask(low, high, _CMP_EQ_OQ);
    return equal & (_mm512_movepi64_mask(_mm512_castpd_si512(low)) ^
                    _mm512_movepi64_mask(_mm512_castpd_si512(high)));
}

INLINE double near_number(int bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Is all that was found true? */
INLINE bool near_holds(const struct near16 *s)
{
    const double most = fmax(-_mm512_reduce_min_ps(s->min[1]), _mm512_reduce_max_ps(s->max[1]));
    const int least = _mm512_reduce_min_epi32(s->least);
    const bool sorted = least == INT32_MAX || near_number(least) >= (most > 1 ? most : 1) * 0x1p-95;
    return sorted && _mm512_reduce_max_epi32(s->ratio) < -NEAR_ONE &&
           _mm512_reduce_min_epu32(s->doubt) > NEAR_DOUBT && !near_mixed(s->min[0]) &&
           !near_mixed(s->max[0]) && !near_mixed(s->min[1]) && !near_mixed(s->max[1]);
}

INLINE bool find_near(enum kernel_type type, const void *t, const void *g, size_t n,
                      const struct all_limits *limits, const struct all_sums *sums,
                      struct near16 *out, uint8_t *classes)
{
    struct near_limits near;
    if (!near_limits(type, limits, &near))
        return false;
    const __m512i none = _mm512_setzero_si512(), high = _mm512_set1_epi32(INT32_MAX);
    struct near16 s = {
        .least_golden = high,
        .least = high,
        .most = none,
        .ratio = _mm512_set1_epi32(-NEAR_FIELD),
        .below = none,
        .close = none,
        .doubt = high,
        .sum = none,
        .most_units = none,
        .over = none,
        .sums = get_near(sums),
    };
    s.min[0] = s.min[1] = all_singles(INFINITY);
    s.max[0] = s.max[1] = all_singles(-INFINITY);
    for (size_t i = 0; i < n; i += STEP) {
        fetch_next(type, t, i);
        fetch_next(type, g, i);
        s = look_near(type, s, t, g, i, limits, &near, classes);
        if (_mm512_cmpge_epi32_mask(s.ratio, _mm512_set1_epi32(-NEAR_ONE)))
            return false;
    }
    *out = s;
    return near_holds(&s);
}

INLINE void put_near(struct all_sums *out, const struct near16 *s, const struct all_limits *limits)
{
    const double max = near_number(_mm512_reduce_max_epi32(s->most));
    const int least = _mm512_reduce_min_epi32(s->least);
    const double unit = power_of_2(limits->ulp.precision - NEAR_UNITS);
    const double most_units = _mm512_reduce_max_epi32(s->most_units) * unit;
    const uint64_t below = (uint64_t)_mm512_reduce_add_epi32(s->below);
    out->error.max = max > out->error.max ? max : out->error.max;
    for (int side = 0; side < 2; side++) {
        struct range_lanes *range = &out->range[side];
        const v8 min = smaller(near_half(s->min[side], 1), near_half(s->min[side], 0));
        const v8 most = larger(near_half(s->max[side], 1), near_half(s->max[side], 0));
        put(range->min, smaller(min, get(range->min)));
        put(range->max, larger(most, get(range->max)));
    }
    if (least != INT32_MAX && near_number(least) < out->absolute.min)
        out->absolute.min = near_number(least);
    out->close.close += (uint64_t)_mm512_reduce_add_epi32(s->close);
    out->close.below += below;
    out->close.above += s->unequal - below;
    const __m512i sum = _mm512_add_epi32(s->sum, _mm512_shuffle_i64x2(s->sum, s->sum, 0x4E));
    put(out->ulp.sum,
        fused(_mm512_cvtepi32_pd(_mm512_castsi512_si256(sum)), all(unit), get(out->ulp.sum)));
    out->ulp.max = most_units > out->ulp.max ? most_units : out->ulp.max;
    out->ulp.over += (uint64_t)_mm512_reduce_add_epi32(s->over);
}

/* The largest quotient, where one may be larger than `max`. Taken as float32 the difference of |d|
 * and |g|, moved to the exponent of 1, is at least the quotient. */
INLINE double near_ratio(enum kernel_type type, const void *t, const void *g, size_t n, int bound,
                         double max)
{
    const int one = 127 * NEAR_ONE;
    if (bound == -NEAR_FIELD || near_number(one + bound) <= max)
        return max;
    x8 most = extreme(max);
    __m512i least = _mm512_set1_epi32(INT32_MIN);
    for (size_t i = 0; i < n; i += 16) {
        const s16 x = load16(type, t, i), y = load16(type, g, i);
        const __m512i size = _mm512_castps_si512(_mm512_abs_ps(subtract_singles(x, y)));
        const __m512i golden = _mm512_castps_si512(_mm512_abs_ps(y));
        const __mmask16 any = _mm512_mask_cmpgt_epi32_mask(_mm512_test_epi32_mask(size, size),
                                                           _mm512_sub_epi32(size, golden), least);
        if (!any)
            continue;
        for (size_t half = 0; half < 16; half += 8) {
            const v8 b = load8(type, g, i + half), d = subtract(load8(type, t, i + half), b);
            most = raise_to(most, divide(size_of(d), size_of(b)));
        }
        const float found = (float)(largest(most) * (1 - 0x1p-20));
        int bits;
        memcpy(&bits, &found, sizeof bits);
        least = _mm512_set1_epi32(bits - one);
    }
    return largest(most);
}

/* The largest float32 that is not above x: what float32 has is above both or above neither. */
INLINE s16 near_limit(double x)
{
    const float rounded = (float)x;
    return all_singles(rounded > x ? nextafterf(rounded, -INFINITY) : rounded);
}

INLINE void near_small(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct small_limits *limits, struct small_counts *out)
{
    const s16 value = near_limit(limits->value), error = near_limit(limits->error);
    for (size_t i = 0; i < n; i += 16) {
        const s16 y = load16(type, g, i), d = subtract_singles(load16(type, t, i), y);
        const __mmask16 small = _mm512_cmp_ps_mask(_mm512_abs_ps(y), value, _CMP_LE_OQ);
        const __mmask16 errors =
            _mm512_mask_cmp_ps_mask(small, _mm512_abs_ps(d), error, _CMP_GT_OQ);
        out->small += (uint64_t)__builtin_popcount(small);
        out->errors += (uint64_t)__builtin_popcount(errors);
    }
}

/* n: a multiple of STEP. */
INLINE bool near_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                        const struct all_limits *limits, struct all_sums *out, uint8_t *classes)
{
    struct near16 s;
    if (!n || !find_near(type, t, g, n, limits, out, &s, classes))
        return false;
    const double least = near_number(_mm512_reduce_min_epi32(s.least_golden));
    put_near_sums(out, s.sums);
    out->relative.max =
        near_ratio(type, t, g, n, _mm512_reduce_max_epi32(s.ratio), out->relative.max);
    put_near(out, &s, limits);
    if (least <= limits->small.value)
        near_small(type, t, g, n, &limits->small, &out->small);
    out->close.greater += count_greater(type, t, g, n, limits->close.gt, s.unequal);
    return true;
}

#endif
