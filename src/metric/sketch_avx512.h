/* Adding numbers to a sketch with AVX-512: kernel_c.c says what is added where. */
#ifndef METRIC_SKETCH_AVX512_H
#define METRIC_SKETCH_AVX512_H

#include "metric/kernel.h"
#include "metric/vec_avx512.h"

/* Rotations of four lanes: lane (j - by) mod 4 goes to lane j. */
static const long long rotations[4][4] = {{0, 1, 2, 3}, {3, 0, 1, 2}, {2, 3, 0, 1}, {1, 2, 3, 0}};

INLINE void add_to(double *sums, __m512d y)
{
    _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), y));
}

INLINE __m512d with_signs(__m512d x, uint64_t signs)
{
    const __m512i bits = _mm512_castpd_si512(x);
    const __m512i sign = _mm512_set1_epi64((long long)(UINT64_C(1) << 63));
    return _mm512_castsi512_pd(_mm512_mask_xor_epi64(bits, (__mmask8)signs, bits, sign));
}

INLINE __m256d sketch_group(__m512d low, __m512d high, uint64_t group, double *sums, __m256d fold)
{
    const uint64_t word = kernel_sketch_word(group);
    double *start = sums + (word & 255);
    low = with_signs(low, word >> 8);
    high = with_signs(high, word >> 16);
    add_to(start, low);
    add_to(start + 8, high);
    const __m256d four =
        _mm256_add_pd(_mm256_add_pd(_mm512_castpd512_pd256(low), _mm512_extractf64x4_pd(low, 1)),
                      _mm256_add_pd(_mm512_castpd512_pd256(high), _mm512_extractf64x4_pd(high, 1)));
    const __m256i by = _mm256_loadu_si256((const __m256i *)rotations[word & 3]);
    return _mm256_add_pd(fold, _mm256_permutexvar_pd(by, four));
}

/* The m numbers from lane `lane` on; those of the other lanes, which are not there, are 0. */
INLINE void load_some(enum kernel_type type, const void *data, size_t lane, size_t m, __m512d *low,
                      __m512d *high)
{
    if (type == KERNEL_F64) {
        const unsigned there = ((1u << m) - 1) << lane;
        const size_t in_low = lane < 8 ? (m < 8 - lane ? m : 8 - lane) : 0;
        *low = _mm512_maskz_expandloadu_pd((__mmask8)there, data);
        *high = _mm512_maskz_expandloadu_pd((__mmask8)(there >> 8), (const double *)data + in_low);
    } else {
        double group[KERNEL_SKETCH_GROUP] = {0};
        load_kernel(type, data, m, group + lane);
        *low = get(group);
        *high = get(group + 8);
    }
}

INLINE void sketch_kernel(enum kernel_type type, const void *data, size_t n, uint64_t first,
                          double *sums, double fold[4])
{
    enum { GROUP = KERNEL_SKETCH_GROUP };
    __m256d folded = _mm256_loadu_pd(fold);
    while (n) {
        const size_t lane = first % GROUP, m = n < GROUP - lane ? n : GROUP - lane;
        __m512d low, high;
        if (m == GROUP) {
            low = load8(type, data, 0);
            high = load8(type, data, 8);
        } else {
            load_some(type, data, lane, m, &low, &high);
        }
        folded = sketch_group(low, high, first / GROUP, sums, folded);
        first += m;
        data = element(type, data, m);
        n -= m;
    }
    _mm256_storeu_pd(fold, folded);
}

#endif
