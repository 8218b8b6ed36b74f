/* The vector vocabulary on AVX2: eight float64 are two registers, and conditions are bits of
 * values. See vec_avx512.h for what each word means. */
#ifndef METRIC_VEC_AVX2_H
#define METRIC_VEC_AVX2_H

#include "metric/kernel.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define NO_UNROLL _Pragma("GCC unroll 1")

typedef struct {
    __m256d lo, hi;
} v8;

typedef v8 m8;
typedef __m256d x8;
typedef __m256i n8;

/* An operation on halves becomes one on the whole. */
#define BOTH(op, a, b) ((v8){op((a).lo, (b).lo), op((a).hi, (b).hi)})
#define ALL_THREE(op, a, b, c) ((v8){op((a).lo, (b).lo, (c).lo), op((a).hi, (b).hi, (c).hi)})
#define COMPARED(a, b, how)                                                                        \
    ((m8){_mm256_cmp_pd((a).lo, (b).lo, how), _mm256_cmp_pd((a).hi, (b).hi, how)})

INLINE v8 get(const double *p)
{
    return (v8){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}

INLINE void put(double *p, v8 x)
{
    _mm256_storeu_pd(p, x.lo);
    _mm256_storeu_pd(p + 4, x.hi);
}

INLINE v8 all(double x)
{
    return (v8){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}

INLINE v8 add(v8 a, v8 b)
{
    return BOTH(_mm256_add_pd, a, b);
}

INLINE v8 subtract(v8 a, v8 b)
{
    return BOTH(_mm256_sub_pd, a, b);
}

INLINE v8 multiply(v8 a, v8 b)
{
    return BOTH(_mm256_mul_pd, a, b);
}

INLINE v8 divide(v8 a, v8 b)
{
    return BOTH(_mm256_div_pd, a, b);
}

INLINE v8 fused(v8 a, v8 b, v8 c)
{
    return ALL_THREE(_mm256_fmadd_pd, a, b, c);
}

INLINE v8 product_less(v8 a, v8 b, v8 c)
{
    return ALL_THREE(_mm256_fmsub_pd, a, b, c);
}

INLINE v8 size_of(v8 x)
{
    const __m256d sign = _mm256_set1_pd(-0.0);
    return (v8){_mm256_andnot_pd(sign, x.lo), _mm256_andnot_pd(sign, x.hi)};
}

INLINE v8 larger(v8 a, v8 b)
{
    return BOTH(_mm256_max_pd, a, b);
}

INLINE v8 smaller(v8 a, v8 b)
{
    return BOTH(_mm256_min_pd, a, b);
}

INLINE m8 above(v8 a, v8 b)
{
    return COMPARED(a, b, _CMP_GT_OQ);
}

INLINE m8 at_least(v8 a, v8 b)
{
    return COMPARED(a, b, _CMP_GE_OQ);
}

INLINE m8 at_most(v8 a, v8 b)
{
    return COMPARED(a, b, _CMP_LE_OQ);
}

INLINE m8 not_at_least(v8 a, v8 b)
{
    return COMPARED(a, b, _CMP_NGE_UQ);
}

INLINE m8 both(m8 a, m8 b)
{
    return BOTH(_mm256_and_pd, a, b);
}

INLINE v8 only(m8 mask, v8 x)
{
    return both(mask, x);
}

INLINE n8 no_counts(void)
{
    return _mm256_setzero_si256();
}

INLINE n8 count(n8 counter, m8 mask)
{
    counter = _mm256_sub_epi64(counter, _mm256_castpd_si256(mask.lo));
    return _mm256_sub_epi64(counter, _mm256_castpd_si256(mask.hi));
}

INLINE uint64_t counted(n8 counter)
{
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)lane, counter);
    return lane[0] + lane[1] + lane[2] + lane[3];
}

INLINE x8 extreme(double x)
{
    return _mm256_set1_pd(x);
}

INLINE x8 raise_to(x8 most, v8 x)
{
    return _mm256_max_pd(x.hi, _mm256_max_pd(x.lo, most));
}

/* Zeros become NaN, which does not count. */
INLINE __m256d nonzero_4(__m256d x)
{
    return _mm256_or_pd(x, _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ));
}

INLINE x8 raise_to_size(x8 most, v8 x)
{
    return raise_to(most, size_of(x));
}

INLINE x8 lower_to_positive(x8 least, v8 x)
{
    return _mm256_min_pd(nonzero_4(x.hi), _mm256_min_pd(nonzero_4(x.lo), least));
}

INLINE double largest(x8 x)
{
    const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_max_pd(two, _mm_unpackhi_pd(two, two)));
}

INLINE double smallest(x8 x)
{
    const __m128d two = _mm_min_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_min_pd(two, _mm_unpackhi_pd(two, two)));
}

INLINE __m256d times_power_4(__m256d x, __m256d sum)
{
    const __m256i k = _mm256_slli_epi64(_mm256_castpd_si256(sum), 52);
    return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(x), k));
}

INLINE v8 times_power(v8 x, v8 sum)
{
    return BOTH(times_power_4, x, sum);
}

INLINE __m256d unit_of_4(__m256d x, int emin)
{
    /* Comparing upper halves as 32-bit numbers is enough: lower halves are zero. */
    const __m256i field = _mm256_set1_epi64x(0x7FFLL << 52);
    const __m256d none = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ);
    const __m256d one = _mm256_and_pd(none, _mm256_set1_pd(1));
    __m256i e = _mm256_and_si256(_mm256_castpd_si256(x), field);
    e = _mm256_max_epi32(_mm256_or_si256(e, _mm256_castpd_si256(one)),
                         _mm256_set1_epi64x((emin + 1023LL) << 52));
    return _mm256_castsi256_pd(_mm256_sub_epi64(field, e));
}

INLINE v8 unit_of(v8 x, int emin)
{
    return (v8){unit_of_4(x.lo, emin), unit_of_4(x.hi, emin)};
}

INLINE v8 unit_of_normal(v8 x)
{
    const __m256d field = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FFLL << 52));
    return (v8){_mm256_andnot_pd(x.lo, field), _mm256_andnot_pd(x.hi, field)};
}

/* Four stored values as float64. */
INLINE __m256d load4(enum kernel_type type, const void *data, size_t i)
{
    const __m128i *words = (const __m128i *)((const uint16_t *)data + i);
    switch (type) {
    case KERNEL_F32:
        return _mm256_cvtps_pd(_mm_loadu_ps((const float *)data + i));
    case KERNEL_F16:
        return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(words)));
    case KERNEL_BF16: /* a zero below each word makes a float32 of it */
        return _mm256_cvtps_pd(
            _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64(words))));
    default:
        return _mm256_loadu_pd((const double *)data + i);
    }
}

INLINE v8 load8(enum kernel_type type, const void *data, size_t i)
{
    return (v8){load4(type, data, i), load4(type, data, i + 4)};
}

#endif
