/* Bins of sizes, and how often each occurs, on AVX-512. See bins_avx2.h for the idea. */
#ifndef METRIC_BINS_AVX512_H
#define METRIC_BINS_AVX512_H

#include "metric/vec_avx512.h"

/* Sixteen bin numbers, in an order that does not matter. */
INLINE __m512i bins16(const double *x)
{
    const __m512 a = _mm512_castpd_ps(_mm512_abs_pd(_mm512_loadu_pd(x)));
    const __m512 b = _mm512_castpd_ps(_mm512_abs_pd(_mm512_loadu_pd(x + 8)));
    const __m512i lower = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88));
    const __m512i upper = _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xDD));
    __m512i bin = _mm512_sub_epi32(_mm512_srli_epi32(upper, 20),
                                   _mm512_set1_epi32(1023 + HISTOGRAM_LOWEST - 1));
    bin = _mm512_max_epi32(bin, _mm512_set1_epi32(1));
    const __m512i any = _mm512_or_si512(upper, lower);
    const __mmask16 nonzero = _mm512_test_epi32_mask(any, any);
    const __mmask16 number =
        _mm512_mask_cmple_epi32_mask(nonzero, upper, _mm512_set1_epi32(0x7FF00000));
    return _mm512_maskz_min_epi32(number, bin, _mm512_set1_epi32(HISTOGRAM_BINS - 2));
}

static void find_bins(const double *x, size_t n, uint8_t *bin)
{
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        const __m512i low =
            _mm512_or_si512(bins16(x + i), _mm512_slli_epi32(bins16(x + i + 16), 8));
        const __m512i high =
            _mm512_or_si512(bins16(x + i + 32), _mm512_slli_epi32(bins16(x + i + 48), 8));
        _mm512_storeu_si512(bin + i, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
    kernels_c.find_bins(x + i, n - i, bin + i);
}

/* How many of the bytes equal value; n: how many vectors. */
INLINE uint64_t count_byte(const __m512i *vectors, size_t n, unsigned value)
{
    const __m512i wanted = _mm512_set1_epi8((char)value);
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += (uint64_t)__builtin_popcountll(_mm512_cmpeq_epi8_mask(vectors[i], wanted));
    return found;
}

static void count_bins(const uint8_t *bin, size_t n, uint64_t *bins)
{
    enum { VECTORS = 16, WIDE_RANGE = 48, TOP = HISTOGRAM_BINS - 2 };
    if (n != VECTORS * sizeof(__m512i)) {
        kernels_c.count_bins(bin, n, bins);
        return;
    }
    __m512i vectors[VECTORS], low = _mm512_set1_epi8(-1), high = _mm512_setzero_si512();
    const __m512i top = _mm512_set1_epi8((char)TOP);
    for (size_t i = 0; i < VECTORS; i++) {
        const __m512i v = vectors[i] = _mm512_loadu_si512(bin + i * sizeof v);
        high = _mm512_mask_max_epu8(high, _mm512_cmpneq_epi8_mask(v, top), high, v);
        /* Zeros wrap around to the largest byte here, and do not count as low. */
        low = _mm512_min_epu8(low, _mm512_sub_epi8(v, _mm512_set1_epi8(1)));
    }
    uint8_t lows[64], highs[64];
    _mm512_storeu_si512(lows, low);
    _mm512_storeu_si512(highs, high);
    unsigned first = 255, last = 0;
    for (int k = 0; k < 64; k++) {
        first = lows[k] < first ? lows[k] : first;
        last = highs[k] > last ? highs[k] : last;
    }
    first++;
    if (last > first + WIDE_RANGE) {
        kernels_c.count_bins(bin, n, bins);
        return;
    }
    uint64_t found = count_byte(vectors, VECTORS, TOP), zeros = n - found;
    bins[TOP] += found;
    for (unsigned value = first; value <= last; value++) {
        found = count_byte(vectors, VECTORS, value);
        bins[value] += found;
        zeros -= found;
    }
    bins[0] += zeros;
}

#endif
