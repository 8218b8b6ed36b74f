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

typedef __m512i c16; /* sixteen classes, not yet between the ends */

/* One half of each of sixteen sizes, in an order that does not matter. */
INLINE __m512i lowers(v8 a, v8 b)
{
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castpd_ps(a), _mm512_castpd_ps(b), 0x88));
}

INLINE __m512i uppers(v8 a, v8 b)
{
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castpd_ps(a), _mm512_castpd_ps(b), 0xDD));
}

INLINE __m512i entries(const void *table, __m512i place)
{
    return _mm512_permutex2var_epi32(_mm512_loadu_si512(table), place,
                                     _mm512_loadu_si512((const __m512i *)table + 1));
}

/* See struct size_classes. A size is 0, or one that has a bin of its own. */
INLINE c16 class16(v8 a, v8 b, const struct size_classes *sizes)
{
    const __m512i x = uppers(a, b), first = _mm512_set1_epi32((int)sizes->first);
    const __m512i place = _mm512_min_epu32(_mm512_subs_epu16(_mm512_srli_epi32(x, 20), first),
                                           _mm512_set1_epi32(CLASS_STEPS - 1));
    __m512i sum = _mm512_add_epi32(x, entries(sizes->step, place));
    const __mmask16 open = _mm512_testn_epi32_mask(sum, _mm512_set1_epi32((1 << 20) - 1));
    if (__builtin_expect(open, 0)) {
        const __m512i lower = entries(sizes->lower, place);
        const __mmask16 less = _mm512_mask_cmple_epu32_mask(open, lowers(a, b), lower);
        sum = _mm512_mask_sub_epi32(sum, less, sum, _mm512_set1_epi32(1));
    }
    return _mm512_srai_epi32(sum, 20);
}

/* Bins of sizes times a power of two. */
INLINE c16 bin16(v8 a, v8 b, int power)
{
    return _mm512_sub_epi32(_mm512_srli_epi32(uppers(a, b), 20),
                            _mm512_set1_epi32(1023 + HISTOGRAM_LOWEST - 1 - power));
}

/* 64 classes as bytes: below 0 becomes 0, above top becomes top. */
INLINE void put_classes(uint8_t *to, const c16 x[4], uint8_t top)
{
    const __m512i words = _mm512_packus_epi32(x[0], x[1]), more = _mm512_packus_epi32(x[2], x[3]);
    _mm512_storeu_si512(
        to, _mm512_min_epu8(_mm512_packus_epi16(words, more), _mm512_set1_epi8((char)top)));
}

INLINE unsigned largest_byte(__m512i bytes)
{
    const __m256i half =
        _mm256_max_epu8(_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64(bytes, 1));
    __m128i m = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    /* The smallest 16-bit word of the complement, once each holds the larger of its two bytes. */
    m = _mm_max_epu8(m, _mm_srli_epi16(m, 8));
    m = _mm_minpos_epu16(_mm_andnot_si128(m, _mm_set1_epi16(0xFF)));
    return 0xFFu - (unsigned)_mm_extract_epi16(m, 0);
}

enum { VECTORS = PLUMB_METRIC_BLOCK / 64 }; /* of bytes, for a whole block */

/* Three bits of each place become a sum of two bits. */
INLINE __m512i add_bits(__m512i a, __m512i b, __m512i c, __m512i *carry)
{
    *carry = _mm512_ternarylogic_epi64(a, b, c, 0xE8);
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

/* Adds up n vectors bit by bit: returns the bits of value 1, those of value 2 are in n / 2 others.
 * n is a constant, or the vectors go by way of memory. */
INLINE __m512i add_level(const __m512i *x, int n, __m512i *carry)
{
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < n; i += 2)
        sum = add_bits(x[i], x[i + 1], sum, &carry[i / 2]);
    return sum;
}

/* Adds up VECTORS vectors bit by bit: weight[k] has the bits of value 2^k. */
INLINE void add_vectors(const __m512i *x, __m512i weight[5])
{
    __m512i twos[VECTORS / 2], fours[VECTORS / 4], eights[VECTORS / 8];
    weight[0] = add_level(x, VECTORS, twos);
    weight[1] = add_level(twos, VECTORS / 2, fours);
    weight[2] = add_level(fours, VECTORS / 4, eights);
    weight[3] = add_level(eights, VECTORS / 8, &weight[4]);
}

/* How many bytes have bit 0, bit 1, ... bit 7 set. */
INLINE __m128i count_columns(const __m512i *x)
{
    const __m512i identity = _mm512_set1_epi64((long long)0x8040201008040201);
    __m512i weight[5], sum = _mm512_setzero_si512();
    add_vectors(x, weight);
    for (int k = 4; k >= 0; k--) {
        /* Byte i becomes bit i of eight bytes. */
        const __m512i columns = _mm512_gf2p8affine_epi64_epi8(identity, weight[k], 0);
        sum = _mm512_add_epi8(_mm512_add_epi8(sum, sum), _mm512_popcnt_epi8(columns));
    }
    const __m512i words = _mm512_add_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(sum)),
                                           _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(sum, 1)));
    const __m256i half =
        _mm256_add_epi16(_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64(words, 1));
    return _mm_add_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Bytes other than top, which are counted: their largest, and how many there are of top. */
INLINE __m512i without_top(const __m512i *x, uint8_t top, uint64_t *tops)
{
    __m512i high = _mm512_setzero_si512();
    for (int i = 0; i < VECTORS; i++) {
        const __mmask64 is_top = _mm512_cmpeq_epi8_mask(x[i], _mm512_set1_epi8((char)top));
        *tops += (uint64_t)_mm_popcnt_u64(is_top);
        high = _mm512_mask_max_epu8(high, ~is_top, high, x[i]);
    }
    return high;
}

/* Eight bins at a time: a bin becomes one bit of a byte, and the bits are added up by columns. The
 * range that occurs seldom takes more than four such rounds. */
static void count_bins(const uint8_t *bin, size_t n, uint8_t top, uint64_t *bins)
{
    static const uint8_t one_bit[128 + 8 + 128] = {[128] = 1, 2, 4, 8, 16, 32, 64, 128};
    if (n != PLUMB_METRIC_BLOCK) {
        kernels_c.count_bins(bin, n, top, bins);
        return;
    }
    __m512i x[VECTORS], bits[VECTORS], low = _mm512_setzero_si512(), high = low, found = low;
    uint64_t tops = 0;
    for (int i = 0; i < VECTORS; i++) {
        x[i] = _mm512_loadu_si512(bin + i * 64);
        high = _mm512_max_epu8(high, x[i]);
        low = _mm512_max_epu8(low, _mm512_sub_epi8(_mm512_setzero_si512(), x[i])); /* 0 stays 0 */
    }
    const unsigned first = 256 - largest_byte(low);
    unsigned last = largest_byte(high);
    if (last == top)
        last = largest_byte(without_top(x, top, &tops));
    if (first < 8 || last >= 128) { /* tables have 128 places: 128 and more would be 0 and more */
        kernels_c.count_bins(bin, n, top, bins);
        return;
    }
    for (unsigned value = first; value <= last; value += 8) {
        const __m512i table[2] = {_mm512_loadu_si512(one_bit + 128 - value),
                                  _mm512_loadu_si512(one_bit + 192 - value)};
        for (int i = 0; i < VECTORS; i++)
            bits[i] = _mm512_permutex2var_epi8(table[0], x[i], table[1]);
        const __mmask8 wanted = (__mmask8)(0xFF >> (value + 7 > last ? value + 7 - last : 0));
        const __m512i count = _mm512_maskz_cvtepu16_epi64(wanted, count_columns(bits));
        const __m512i sum = _mm512_maskz_loadu_epi64(wanted, bins + value);
        _mm512_mask_storeu_epi64(bins + value, wanted, _mm512_add_epi64(sum, count));
        found = _mm512_add_epi64(found, count);
    }
    bins[top] += tops;
    bins[0] += n - (uint64_t)_mm512_reduce_add_epi64(found) - tops;
}

#endif
