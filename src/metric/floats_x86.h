/* Eight float32 on AVX2 and AVX-512: what the hottest loops find without float64. */
#ifndef METRIC_FLOATS_X86_H
#define METRIC_FLOATS_X86_H

typedef __m256 f8;

/* Eight stored values; of any type but float64. */
INLINE f8 floats8(enum kernel_type type, const void *data, size_t i)
{
    const __m128i *words = (const __m128i *)((const uint16_t *)data + i);
    switch (type) {
    case KERNEL_F16:
        return _mm256_cvtph_ps(_mm_loadu_si128(words));
    case KERNEL_BF16: /* the upper half of a float32 */
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(words)), 16));
    default:
        return _mm256_loadu_ps((const float *)data + i);
    }
}

INLINE f8 all_floats(float x)
{
    return _mm256_set1_ps(x);
}

/* The second where one is NaN or both are equal. */
INLINE f8 smaller_floats(f8 a, f8 b)
{
    return _mm256_min_ps(a, b);
}

INLINE f8 larger_floats(f8 a, f8 b)
{
    return _mm256_max_ps(a, b);
}

INLINE f8 float_sizes(f8 x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

INLINE void put_floats(double *to, f8 x)
{
    _mm256_storeu_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    _mm256_storeu_pd(to + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
}

#endif
