/* The vector vocabulary on AVX-512: eight float64 are one register, and masks have their own. */
#ifndef METRIC_VEC_AVX512_H
#define METRIC_VEC_AVX512_H

#include "metric/kernel.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define NO_UNROLL _Pragma("GCC unroll 1")

typedef __m512d v8;  /* eight float64 */
typedef __m512d x8;  /* the largest or smallest so far, in any order */
typedef __m512i n8;  /* counters, in any order */
typedef __mmask8 m8; /* eight conditions */

/* For _mm512_range_pd: the larger of two sizes, without a sign. */
enum { LARGER_SIZE = 0xB };

INLINE v8 get(const double *p)
{
    return _mm512_loadu_pd(p);
}

INLINE void put(double *p, v8 x)
{
    _mm512_storeu_pd(p, x);
}

INLINE v8 all(double x)
{
    return _mm512_set1_pd(x);
}

INLINE v8 add(v8 a, v8 b)
{
    return _mm512_add_pd(a, b);
}

INLINE v8 subtract(v8 a, v8 b)
{
    return _mm512_sub_pd(a, b);
}

INLINE v8 multiply(v8 a, v8 b)
{
    return _mm512_mul_pd(a, b);
}

INLINE v8 divide(v8 a, v8 b)
{
    return _mm512_div_pd(a, b);
}

/* a * b + c, a * b - c, rounded once. */
INLINE v8 fused(v8 a, v8 b, v8 c)
{
    return _mm512_fmadd_pd(a, b, c);
}

INLINE v8 product_less(v8 a, v8 b, v8 c)
{
    return _mm512_fmsub_pd(a, b, c);
}

INLINE v8 size_of(v8 x)
{
    return _mm512_abs_pd(x);
}

/* The second where one is NaN or both are equal. */
INLINE v8 larger(v8 a, v8 b)
{
    return _mm512_max_pd(a, b);
}

INLINE v8 smaller(v8 a, v8 b)
{
    return _mm512_min_pd(a, b);
}

/* Conditions; false for NaN, but for not_at_least. */
INLINE m8 above(v8 a, v8 b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
}

INLINE m8 at_least(v8 a, v8 b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_GE_OQ);
}

INLINE m8 at_most(v8 a, v8 b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
}

INLINE m8 not_at_least(v8 a, v8 b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_NGE_UQ);
}

INLINE m8 both(m8 a, m8 b)
{
    return a & b;
}

/* x where the condition holds, else 0. */
INLINE v8 only(m8 mask, v8 x)
{
    return _mm512_maskz_mov_pd(mask, x);
}

INLINE n8 no_counts(void)
{
    return _mm512_setzero_si512();
}

/* Adds one where the condition holds. */
INLINE n8 count(n8 counter, m8 mask)
{
    return _mm512_mask_sub_epi64(counter, mask, counter, _mm512_set1_epi64(-1));
}

INLINE uint64_t counted(n8 counter)
{
    return (uint64_t)_mm512_reduce_add_epi64(counter);
}

INLINE x8 extreme(double x)
{
    return all(x);
}

/* The larger; a NaN among the new ones does not count. */
INLINE x8 raise_to(x8 most, v8 x)
{
    return _mm512_max_pd(x, most);
}

/* The same of sizes. */
INLINE x8 raise_to_size(x8 most, v8 x)
{
    return _mm512_range_pd(most, x, LARGER_SIZE);
}

/* Only of numbers above 0. */
INLINE x8 lower_to_positive(x8 least, v8 x)
{
    return _mm512_mask_min_pd(least, above(x, all(0)), x, least);
}

INLINE double largest(x8 x)
{
    return _mm512_reduce_max_pd(x);
}

INLINE double smallest(x8 x)
{
    return _mm512_reduce_min_pd(x);
}

/* x * 2^k for sum = 1.5*2^52 + k, where neither is near the ends: k is added to the exponent. */
INLINE v8 times_power(v8 x, v8 sum)
{
    const __m512i k = _mm512_slli_epi64(_mm512_castpd_si512(sum), 52);
    return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(x), k));
}

/* 2^(1 - e), where e is the exponent of x, that of 1 for 0, and at least emin. The exponent field
 * of the one is the complement of the other's. */
INLINE v8 unit_of(v8 x, int emin)
{
    const __m512i field = _mm512_set1_epi64(0x7FFLL << 52);
    const __m512d least = _mm512_castsi512_pd(_mm512_set1_epi64((emin + 1023LL) << 52));
    const __mmask8 any = _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_NEQ_UQ);
    const __m512d y = _mm512_mask_range_pd(all(1), any, x, least, LARGER_SIZE);
    return _mm512_castsi512_pd(_mm512_andnot_si512(_mm512_castpd_si512(y), field));
}

/* The same for numbers that are not smaller than 2^emin. */
INLINE v8 unit_of_normal(v8 x)
{
    const __m512i field = _mm512_set1_epi64(0x7FFLL << 52);
    return _mm512_castsi512_pd(_mm512_andnot_si512(_mm512_castpd_si512(x), field));
}

/* Eight stored values as float64. */
INLINE v8 load8(enum kernel_type type, const void *data, size_t i)
{
    const __m128i *words = (const __m128i *)((const uint16_t *)data + i);
    switch (type) {
    case KERNEL_F32:
        return _mm512_cvtps_pd(_mm256_loadu_ps((const float *)data + i));
    case KERNEL_F16:
        return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(words)));
    case KERNEL_BF16: /* the upper half of a float32 */
        return _mm512_cvtps_pd(_mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(words)), 16)));
    default:
        return get((const double *)data + i);
    }
}

#endif
