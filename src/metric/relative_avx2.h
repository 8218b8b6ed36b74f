/* The hottest kernel, on AVX2 in steps of four values: its sums then just fit into the
 * registers. */
#ifndef METRIC_RELATIVE_AVX2_H
#define METRIC_RELATIVE_AVX2_H

#include "metric/vec_avx2.h"

struct half_sums {
    __m256d tg, tt, gg, dd;
};

struct half_counts {
    __m256d max, max_ratio;
    __m256i below; /* 5e-3 in the lower, 1e-3 in the upper 32 bits of each lane */
};

INLINE __m256d add_product_4(enum kernel_type type, __m256d sum, __m256d a, __m256d b)
{
    return type == KERNEL_F64 ? _mm256_add_pd(sum, _mm256_mul_pd(a, b))
                              : _mm256_fmadd_pd(a, b, sum);
}

INLINE __m256i count_below_4(__m256i counter, __m256d r)
{
    const __m256d low = _mm256_cmp_pd(r, _mm256_set1_pd(5e-3), _CMP_NGE_UQ);
    const __m256d high = _mm256_cmp_pd(r, _mm256_set1_pd(1e-3), _CMP_NGE_UQ);
    return _mm256_sub_epi32(
        counter, _mm256_blend_epi32(_mm256_castpd_si256(low), _mm256_castpd_si256(high), 0xAA));
}

INLINE void add_half(enum kernel_type type, __m256d x, __m256d y, struct half_sums *s,
                     struct half_counts *c)
{
    const __m256d sign = _mm256_set1_pd(-0.0), d = _mm256_sub_pd(x, y);
    s->tg = add_product_4(type, s->tg, x, y);
    s->tt = add_product_4(type, s->tt, x, x);
    s->gg = add_product_4(type, s->gg, y, y);
    s->dd = add_product_4(KERNEL_F64, s->dd, d, d);
    const __m256d size = _mm256_andnot_pd(sign, d);
    const __m256d r = _mm256_div_pd(size, _mm256_andnot_pd(sign, y));
    c->max = _mm256_max_pd(size, c->max);
    c->max_ratio = _mm256_max_pd(r, c->max_ratio);
    c->below = count_below_4(c->below, r);
}

INLINE void relative_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                            struct error_lanes *errors, struct relative_counts *relatives)
{
    const v8 tg = get(errors->tg), tt = get(errors->tt), gg = get(errors->gg), dd = get(errors->dd);
    struct half_sums low = {tg.lo, tt.lo, gg.lo, dd.lo}, high = {tg.hi, tt.hi, gg.hi, dd.hi};
    struct half_counts counts = {extreme(errors->max), extreme(relatives->max), no_counts()};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        add_half(type, load4(type, t, i), load4(type, g, i), &low, &counts);
        __asm__ volatile("" ::: "memory"); /* loading the next early would take more registers */
        add_half(type, load4(type, t, i + 4), load4(type, g, i + 4), &high, &counts);
    }
    put(errors->tg, (v8){low.tg, high.tg});
    put(errors->tt, (v8){low.tt, high.tt});
    put(errors->gg, (v8){low.gg, high.gg});
    put(errors->dd, (v8){low.dd, high.dd});
    errors->max = largest(counts.max);
    relatives->max = largest(counts.max_ratio);
    relatives->below_5e3 += counted(_mm256_and_si256(counts.below, _mm256_set1_epi64x(UINT32_MAX)));
    relatives->below_1e3 += counted(_mm256_srli_epi64(counts.below, 32));
    if (i < n)
        kernels_c.pair_relative[type](element(type, t, i), element(type, g, i), n - i, errors,
                                      relatives);
}

#endif
