/* Sixteen float32 on AVX-512: one register. */
#ifndef METRIC_SINGLES_AVX512_H
#define METRIC_SINGLES_AVX512_H

#include "metric/vec_avx512.h"

typedef __m512 s16;

/* Sixteen stored values; of any type but float64. */
INLINE s16 load16(enum kernel_type type, const void *data, size_t i)
{
    if (type == KERNEL_F32)
        return _mm512_loadu_ps((const float *)data + i);
    const __m256i words = _mm256_loadu_si256((const __m256i *)((const uint16_t *)data + i));
    if (type == KERNEL_F16)
        return _mm512_cvtph_ps(words);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

INLINE s16 all_singles(float x)
{
    return _mm512_set1_ps(x);
}

INLINE s16 add_singles(s16 a, s16 b)
{
    return _mm512_add_ps(a, b);
}

INLINE s16 subtract_singles(s16 a, s16 b)
{
    return _mm512_sub_ps(a, b);
}

INLINE s16 multiply_singles(s16 a, s16 b)
{
    return _mm512_mul_ps(a, b);
}

/* a * b + c, a * b - c, rounded once. */
INLINE s16 fused_singles(s16 a, s16 b, s16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE s16 product_less_singles(s16 a, s16 b, s16 c)
{
    return _mm512_fmsub_ps(a, b, c);
}

/* The larger of two sizes, as integers: those are compared by more parts of a processor. */
INLINE s16 larger_sizes(s16 most, s16 x)
{
    return _mm512_castsi512_ps(
        _mm512_max_epi32(_mm512_castps_si512(most), _mm512_castps_si512(_mm512_abs_ps(x))));
}

INLINE float largest_single(s16 x)
{
    return _mm512_reduce_max_ps(x);
}

/* x * 2^k for sum = 1.5*2^23 + k, where neither is near the ends. */
INLINE s16 singles_times_power(s16 x, s16 sum)
{
    const __m512i k = _mm512_slli_epi32(_mm512_castps_si512(sum), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), k));
}

/* The lower eight plus the upper eight, as float64. */
INLINE v8 folded(s16 x)
{
    return add(_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
               _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
}

#endif
