/* Adding numbers to a sketch with AVX2: kernel_c.c says what is added where. */
#ifndef METRIC_SKETCH_AVX2_H
#define METRIC_SKETCH_AVX2_H

#include "metric/kernel.h"
#include "metric/vec_avx2.h"

/* Rotations of four lanes, as 32-bit halves: lane (j - by) mod 4 goes to lane j. */
static const int rotations[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                    {6, 7, 0, 1, 2, 3, 4, 5},
                                    {4, 5, 6, 7, 0, 1, 2, 3},
                                    {2, 3, 4, 5, 6, 7, 0, 1}};

INLINE __m256d sketch_group(enum kernel_type type, const void *data, uint64_t group, double *sums,
                            __m256d fold)
{
    const uint64_t word = kernel_sketch_word(group);
    double *start = sums + (word & 255);
    const __m256i all_signs = _mm256_set1_epi64x((long long)word);
    const __m256d sign = _mm256_set1_pd(-0.0);
    __m256d y[4];
    for (int v = 0; v < 4; v++) {
        const __m256i by =
            _mm256_sub_epi64(_mm256_setr_epi64x(55, 54, 53, 52), _mm256_set1_epi64x(4LL * v));
        const __m256i bits = _mm256_sllv_epi64(all_signs, by);
        y[v] = _mm256_xor_pd(load4(type, data, 4 * (size_t)v),
                             _mm256_and_pd(_mm256_castsi256_pd(bits), sign));
        _mm256_storeu_pd(start + 4 * v, _mm256_add_pd(_mm256_loadu_pd(start + 4 * v), y[v]));
    }
    const __m256d four = _mm256_add_pd(_mm256_add_pd(y[0], y[1]), _mm256_add_pd(y[2], y[3]));
    const __m256i by = _mm256_loadu_si256((const __m256i *)rotations[word & 3]);
    return _mm256_add_pd(fold,
                         _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(four), by)));
}

INLINE void sketch_kernel(enum kernel_type type, const void *data, size_t n, uint64_t first,
                          double *sums, double fold[4])
{
    enum { GROUP = KERNEL_SKETCH_GROUP };
    __m256d folded = _mm256_loadu_pd(fold);
    while (n) {
        const size_t lane = first % GROUP, m = n < GROUP - lane ? n : GROUP - lane;
        if (m == GROUP) {
            folded = sketch_group(type, data, first / GROUP, sums, folded);
        } else {
            double group[GROUP] = {0};
            load_kernel(type, data, m, group + lane);
            folded = sketch_group(KERNEL_F64, group, first / GROUP, sums, folded);
        }
        first += m;
        data = element(type, data, m);
        n -= m;
    }
    _mm256_storeu_pd(fold, folded);
}

#endif
