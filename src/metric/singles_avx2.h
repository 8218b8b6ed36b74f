/* Sixteen float32 on AVX2: two registers. See singles_avx512.h for what each word means. */
#ifndef METRIC_SINGLES_AVX2_H
#define METRIC_SINGLES_AVX2_H

#include "metric/floats_x86.h"

typedef struct {
    __m256 lo, hi;
} s16;

INLINE s16 load16(enum kernel_type type, const void *data, size_t i)
{
    return (s16){floats8(type, data, i), floats8(type, data, i + 8)};
}

INLINE s16 all_singles(float x)
{
    return (s16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

INLINE s16 add_singles(s16 a, s16 b)
{
    return (s16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

INLINE s16 subtract_singles(s16 a, s16 b)
{
    return (s16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}

INLINE s16 multiply_singles(s16 a, s16 b)
{
    return (s16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

INLINE s16 fused_singles(s16 a, s16 b, s16 c)
{
    return (s16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

INLINE s16 product_less_singles(s16 a, s16 b, s16 c)
{
    return (s16){_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}

INLINE __m256 larger_sizes_8(__m256 most, __m256 x)
{
    return _mm256_castsi256_ps(
        _mm256_max_epi32(_mm256_castps_si256(most), _mm256_castps_si256(float_sizes(x))));
}

INLINE s16 larger_sizes(s16 most, s16 x)
{
    return (s16){larger_sizes_8(most.lo, x.lo), larger_sizes_8(most.hi, x.hi)};
}

INLINE float largest_single(s16 x)
{
    const __m256 most = _mm256_max_ps(x.lo, x.hi);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

INLINE __m256 times_power_8(__m256 x, __m256 sum)
{
    const __m256i k = _mm256_slli_epi32(_mm256_castps_si256(sum), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), k));
}

INLINE s16 singles_times_power(s16 x, s16 sum)
{
    return (s16){times_power_8(x.lo, sum.lo), times_power_8(x.hi, sum.hi)};
}

INLINE v8 wide_8(__m256 x)
{
    return (v8){_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}

INLINE v8 folded(s16 x)
{
    return add(wide_8(x.lo), wide_8(x.hi));
}

#endif
