/* The hottest kernel for 16-bit types, on AVX-512, without its division.
 *
 * What relative errors are compared with needs no quotient: r >= c is |d| >= c|g|, whose sides are
 * float32, sixteen in a register. Where r is near 1/200 or 1/1000, t and g lie so close that their
 * difference is exact, and a multiple of half a unit in the last place of g. So 200|d| and 1000|d|,
 * in such units, are integers, as is |g|, which is below 2^11: unless r is the limit, it is away
 * from it by more than one part in 2^11, and any number within that below the limit does as c.
 *
 * A quotient is computed where it may be the largest so far. */
#ifndef METRIC_RELATIVE_AVX512_H
#define METRIC_RELATIVE_AVX512_H

#include "metric/vec_avx512.h"

#include <float.h>

#define HALF_BELOW(limit) ((float)((limit) * (1 - 0x1p-13)))

INLINE __m512 load16(enum kernel_type type, const void *data, size_t i)
{
    const __m256i words = _mm256_loadu_si256((const __m256i *)((const uint16_t *)data + i));
    if (type == KERNEL_F16)
        return _mm512_cvtph_ps(words);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

/* As float64: the upper half by way of memory, from which it is converted as it is loaded. */
struct v16 {
    v8 half[2];
};

INLINE struct v16 wide16(__m512 x)
{
    float room[16];
    _mm512_storeu_ps(room, x);
    __asm__("" : "+m"(room)); /* else the compiler takes x apart, which is slower */
    return (struct v16){{_mm512_cvtps_pd(_mm512_castps512_ps256(x)), load8(KERNEL_F32, room, 8)}};
}

/* Adds one where |d| > c|g|: the sign of a difference that is zero only for two zeros. */
INLINE __m512i count_larger(__m512i counter, __m512 d, __m512 g, float c)
{
    const __m512 room = _mm512_fmsub_ps(_mm512_set1_ps(c), g, d);
    return _mm512_add_epi32(counter, _mm512_srli_epi32(_mm512_castps_si512(room), 31));
}

/* Below the largest quotient so far, by enough for what is rounded away from |d| and |g|. */
INLINE __m512 less_than(double max)
{
    return _mm512_set1_ps(max > FLT_MAX && max < INFINITY ? FLT_MAX : (float)(max * (1 - 0x1p-12)));
}

INLINE void half_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                        struct error_lanes *errors, struct relative_counts *relatives)
{
    struct errors8 e = get_error(errors);
    __m512i over_5e3 = _mm512_setzero_si512(), over_1e3 = over_5e3;
    __m512 most = less_than(relatives->max);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512 x = load16(type, t, i), y = load16(type, g, i);
        const __m512 d = _mm512_abs_ps(_mm512_sub_ps(x, y)), size = _mm512_abs_ps(y);
        const struct v16 wide_t = wide16(x), wide_g = wide16(y);
        over_5e3 = count_larger(over_5e3, d, size, HALF_BELOW(5e-3));
        over_1e3 = count_larger(over_1e3, d, size, HALF_BELOW(1e-3));
        v8 difference[2];
        for (int half = 0; half < 2; half++) {
            difference[half] = subtract(wide_t.half[half], wide_g.half[half]);
            e = add_error(type, e, wide_t.half[half], wide_g.half[half], difference[half]);
        }
        const __m512 room = _mm512_fmsub_ps(most, size, d);
        if (__builtin_expect(_mm512_cmp_ps_mask(room, _mm512_setzero_ps(), _CMP_LT_OQ), 0)) {
            x8 max = extreme(relatives->max);
            for (int half = 0; half < 2; half++)
                max = raise_to(max, divide(size_of(difference[half]), size_of(wide_g.half[half])));
            relatives->max = largest(max);
            most = less_than(relatives->max);
        }
    }
    put_error(errors, e);
    relatives->below_5e3 += i - (size_t)_mm512_reduce_add_epi32(over_5e3);
    relatives->below_1e3 += i - (size_t)_mm512_reduce_add_epi32(over_1e3);
    if (i < n)
        kernels_c.pair_relative[type](element(type, t, i), element(type, g, i), n - i, errors,
                                      relatives);
}

INLINE void relative_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                            struct error_lanes *errors, struct relative_counts *relatives)
{
    if (type == KERNEL_F16 || type == KERNEL_BF16)
        half_kernel(type, t, g, n, errors, relatives);
    else
        quotient_kernel(type, t, g, n, errors, relatives);
}

#endif
