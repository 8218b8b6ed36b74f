/* Adding numbers to a sketch with AVX2: kernel_c.c says what is added where. */
#ifndef METRIC_SKETCH_AVX2_H
#define METRIC_SKETCH_AVX2_H

#include "metric/kernel.h"
#include "metric/vec_avx2.h"

/* Numbers l to l + 3 of a tile; returns them with their signs, in the order of their sums. order:
 * that of halves of float64. */
INLINE __m256d add_four(const double *x, size_t l, __m256i signs, unsigned place, __m256i order,
                        double *sums)
{
    double *to = sums + ((place ^ l) & ~(size_t)3);
    const __m256i by =
        _mm256_sub_epi64(_mm256_setr_epi64x(63, 62, 61, 60), _mm256_set1_epi64x((long long)l));
    const __m256d sign =
        _mm256_and_pd(_mm256_castsi256_pd(_mm256_sllv_epi64(signs, by)), _mm256_set1_pd(-0.0));
    const __m256d with = _mm256_xor_pd(_mm256_loadu_pd(x + l), sign);
    const __m256d y = _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(with), order));
    _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), y));
    return y;
}

/* The columns from c on, four of eight. */
INLINE __m256d add_columns(const double *x, size_t c, __m256i signs, unsigned place, __m256i order,
                           double *sums)
{
    __m256d pair[4];
    for (size_t k = 0; k < 4; k++)
        pair[k] = _mm256_add_pd(add_four(x, c + 16 * k, signs, place, order, sums),
                                add_four(x, c + 16 * k + 8, signs, place, order, sums));
    return _mm256_add_pd(_mm256_add_pd(pair[0], pair[1]), _mm256_add_pd(pair[2], pair[3]));
}

INLINE void sketch_tile(const double *x, const uint64_t *signs, unsigned place, double *sums,
                        double fold[4])
{
    const __m256i all_signs = _mm256_set1_epi64x((long long)*signs);
    const __m256i order = _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                           _mm256_set1_epi32((int)(place & 3) * 2));
    _mm256_storeu_pd(fold, _mm256_add_pd(add_columns(x, 0, all_signs, place, order, sums),
                                         add_columns(x, 4, all_signs, place, order, sums)));
}

/* Seldom, and not to take registers from the others. */
static __attribute__((noinline)) void sketch_some(const double *x, size_t lane, size_t n,
                                                  const uint64_t *signs, unsigned place,
                                                  double *sums, double fold[4])
{
    double some[KERNEL_SKETCH_TILE] = {0};
    memcpy(some + lane, x, n * sizeof *x);
    sketch_tile(some, signs, place, sums, fold);
}

#include "metric/sketch_tiles.h"

#endif
