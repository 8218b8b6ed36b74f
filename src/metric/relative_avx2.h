/* The hottest kernel on AVX2. */
#ifndef METRIC_RELATIVE_AVX2_H
#define METRIC_RELATIVE_AVX2_H

#include "metric/vec_avx2.h"

#include "metric/relative_x86.h"

/* Of a multiple of sixteen pairs. Apart from the sums, for which there are just enough registers.
 */
INLINE void ratio_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                         struct relative_counts *out)
{
    struct relative_counts counts = *out;
    f8 most = all_floats(nearly(type, counts.max));
    for (size_t i = 0; i < n; i += 16) {
        const struct left a = left_of(floats8(type, t, i), floats8(type, g, i), most);
        const struct left b = left_of(floats8(type, t, i + 8), floats8(type, g, i + 8), most);
        count_left(a, b, &counts);
        if (may_be_largest(a, b)) {
            counts.max = raise_ratio(type, t, g, i, counts.max);
            most = all_floats(nearly(type, counts.max));
        }
    }
    *out = counts;
}

struct half_sums {
    __m256d tg, tt, gg, dd;
};

INLINE __m256d add_half(enum kernel_type type, const void *t, const void *g, size_t i, __m256d max,
                        struct half_sums *s)
{
    const __m256d x = load4(type, t, i), y = load4(type, g, i), d = _mm256_sub_pd(x, y);
    s->tg = _mm256_fmadd_pd(x, y, s->tg);
    s->tt = _mm256_fmadd_pd(x, x, s->tt);
    s->gg = _mm256_fmadd_pd(y, y, s->gg);
    s->dd = _mm256_add_pd(s->dd, _mm256_mul_pd(d, d));
    return _mm256_max_pd(_mm256_andnot_pd(_mm256_set1_pd(-0.0), d), max);
}

/* error_kernel in steps of four values: its sums then just fit into the registers. */
INLINE void error_halves(enum kernel_type type, const void *t, const void *g, size_t n,
                         struct error_lanes *errors)
{
    const v8 tg = get(errors->tg), tt = get(errors->tt), gg = get(errors->gg), dd = get(errors->dd);
    struct half_sums low = {tg.lo, tt.lo, gg.lo, dd.lo}, high = {tg.hi, tt.hi, gg.hi, dd.hi};
    __m256d max = extreme(errors->max);
    for (size_t i = 0; i < n; i += 8) {
        max = add_half(type, t, g, i, max, &low);
        __asm__ volatile("" ::: "memory"); /* loading the next early would take more registers */
        max = add_half(type, t, g, i + 4, max, &high);
    }
    put(errors->tg, (v8){low.tg, high.tg});
    put(errors->tt, (v8){low.tt, high.tt});
    put(errors->gg, (v8){low.gg, high.gg});
    put(errors->dd, (v8){low.dd, high.dd});
    errors->max = largest(max);
}

INLINE void relative_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                            struct error_lanes *errors, struct relative_counts *relatives)
{
    const size_t whole = n / 16 * 16;
    if (type == KERNEL_F64) {
        quotient_kernel(type, t, g, n, errors, relatives);
        return;
    }
    error_halves(type, t, g, whole, errors);
    ratio_kernel(type, t, g, whole, relatives);
    if (whole < n)
        kernels_c.pair_relative[type](element(type, t, whole), element(type, g, whole), n - whole,
                                      errors, relatives);
}

#endif
