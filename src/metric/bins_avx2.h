/* Bins of sizes, and how often each occurs, on AVX2. */
#ifndef METRIC_BINS_AVX2_H
#define METRIC_BINS_AVX2_H

#include "metric/vec_avx2.h"

/* Eight bin numbers, in an order that does not matter; see find_bins() of kernel_c.c. The upper
 * halves of the float64 values tell the bin, the lower ones are needed to know zero. */
INLINE __m256i bins8(const double *x)
{
    __m256 a = _mm256_castpd_ps(_mm256_loadu_pd(x)), b = _mm256_castpd_ps(_mm256_loadu_pd(x + 4));
    __m256i lower = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    __m256i upper = _mm256_and_si256(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD)),
                                     _mm256_set1_epi32(0x7FFFFFFF));
    __m256i bin = _mm256_sub_epi32(_mm256_srli_epi32(upper, 20),
                                   _mm256_set1_epi32(1023 + HISTOGRAM_LOWEST - 1));
    bin = _mm256_max_epi32(bin, _mm256_set1_epi32(1));
    bin = _mm256_min_epi32(bin, _mm256_set1_epi32(HISTOGRAM_BINS - 2));
    __m256i zero = _mm256_cmpeq_epi32(_mm256_or_si256(upper, lower), _mm256_setzero_si256());
    __m256i nan = _mm256_cmpgt_epi32(upper, _mm256_set1_epi32(0x7FF00000));
    return _mm256_andnot_si256(_mm256_or_si256(zero, nan), bin);
}

/* 32 of them as bytes: each 32-bit number is shifted to a byte of its own, and four put
 * together. */
INLINE __m256i bins32(const double *x)
{
    __m256i low = _mm256_or_si256(bins8(x), _mm256_slli_epi32(bins8(x + 8), 8));
    __m256i high = _mm256_or_si256(bins8(x + 16), _mm256_slli_epi32(bins8(x + 24), 8));
    return _mm256_or_si256(low, _mm256_slli_epi32(high, 16));
}

static void find_bins(const double *x, size_t n, uint8_t *bin)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        _mm256_storeu_si256((__m256i *)(bin + i), bins32(x + i));
    kernels_c.find_bins(x + i, n - i, bin + i);
}

typedef __m256i c16; /* sixteen classes as 16-bit words, not yet between the ends */

/* One half of each of eight sizes, in an order that does not matter. */
INLINE __m256i lowers(v8 x)
{
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castpd_ps(x.lo), _mm256_castpd_ps(x.hi), 0x88));
}

INLINE __m256i uppers(v8 x)
{
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castpd_ps(x.lo), _mm256_castpd_ps(x.hi), 0xDD));
}

INLINE __m256i bin8(__m256i upper, int power)
{
    return _mm256_sub_epi32(_mm256_srli_epi32(upper, 20),
                            _mm256_set1_epi32(1023 + HISTOGRAM_LOWEST - 1 - power));
}

INLINE __m256i class8(v8 size, const struct size_classes *sizes)
{
    const __m256i x = uppers(size);
    const __m256i places =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)sizes->place));
    __m256i e =
        _mm256_subs_epu16(_mm256_srli_epi32(x, 21), _mm256_set1_epi32((int)(sizes->first / 2)));
    e = _mm256_min_epu32(e, _mm256_set1_epi32(15));
    const __m256i passed = _mm256_shuffle_epi8(places, e); /* the first place is 0 */
    const __m256i limit = _mm256_permutevar8x32_epi32(
        _mm256_loadu_si256((const __m256i *)sizes->limit_upper), passed);
    const __m256i equal = _mm256_cmpeq_epi32(x, limit);
    __m256i above = _mm256_cmpgt_epi32(x, limit);
    if (__builtin_expect(!_mm256_testz_si256(equal, equal), 0)) {
        const __m256i lower = lowers(size),
                      most = _mm256_permutevar8x32_epi32(
                          _mm256_loadu_si256((const __m256i *)sizes->limit_lower), passed);
        const __m256i less = _mm256_cmpeq_epi32(_mm256_min_epu32(lower, most), lower);
        above = _mm256_or_si256(above, _mm256_andnot_si256(less, equal));
    }
    return _mm256_sub_epi32(_mm256_add_epi32(bin8(x, 0), passed), above);
}

/* See struct size_classes. A size is 0, or one that has a bin of its own. */
INLINE c16 class16(v8 a, v8 b, const struct size_classes *sizes)
{
    return _mm256_packus_epi32(class8(a, sizes), class8(b, sizes));
}

/* Bins of sizes times a power of two. */
INLINE c16 bin16(v8 a, v8 b, int power)
{
    return _mm256_packus_epi32(bin8(uppers(a), power), bin8(uppers(b), power));
}

/* 64 classes as bytes; above top becomes top. */
INLINE void put_classes(uint8_t *to, const c16 x[4], uint8_t top)
{
    const __m256i most = _mm256_set1_epi8((char)top);
    for (int half = 0; half < 2; half++) {
        const __m256i bytes = _mm256_packus_epi16(x[2 * half], x[2 * half + 1]);
        _mm256_storeu_si256((__m256i *)to + half, _mm256_min_epu8(bytes, most));
    }
}

INLINE unsigned largest_byte(__m256i bytes)
{
    __m128i m = _mm_max_epu8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    /* The smallest 16-bit word of the complement, once each holds the larger of its two bytes. */
    m = _mm_max_epu8(m, _mm_srli_epi16(m, 8));
    m = _mm_minpos_epu16(
        _mm_xor_si128(_mm_and_si128(m, _mm_set1_epi16(0xFF)), _mm_set1_epi16(0xFF)));
    return 0xFFu - (unsigned)_mm_extract_epi16(m, 0);
}

/* How many of the bytes equal value, value + 1, ... value + 3; at most 255 vectors. */
INLINE void count_bytes(const __m256i *vectors, size_t n, unsigned value, uint64_t found[4])
{
    __m256i wanted[4], sums[4];
    for (int k = 0; k < 4; k++) {
        wanted[k] = _mm256_set1_epi8((char)(value + (unsigned)k));
        sums[k] = _mm256_setzero_si256();
    }
    for (size_t i = 0; i < n; i++) {
        const __m256i v = _mm256_loadu_si256(vectors + i);
        for (int k = 0; k < 4; k++)
            sums[k] = _mm256_sub_epi8(sums[k], _mm256_cmpeq_epi8(v, wanted[k]));
    }
    for (int k = 0; k < 4; k++) {
        uint64_t part[4];
        _mm256_storeu_si256((__m256i *)part, _mm256_sad_epu8(sums[k], _mm256_setzero_si256()));
        found[k] = part[0] + part[1] + part[2] + part[3];
    }
}

/* Errors of one block seldom span more than some twenty powers of two, no error and an infinite one
 * apart. So each bin in the range that occurs is counted by comparing all bytes with it: faster
 * than incrementing counters, which wait for each other. */
static void count_bins(const uint8_t *bin, size_t n, uint8_t top, uint64_t *bins)
{
    enum { MOST_VECTORS = 32, WIDE_RANGE = 40 };
    const __m256i *vectors = (const __m256i *)bin, tops = _mm256_set1_epi8((char)top);
    __m256i low = _mm256_set1_epi8(-1), high = _mm256_setzero_si256();
    size_t used = 0;
    for (; used < n / 32 && used < MOST_VECTORS; used++) {
        const __m256i v = _mm256_loadu_si256(vectors + used);
        high = _mm256_max_epu8(high, _mm256_andnot_si256(_mm256_cmpeq_epi8(v, tops), v));
        /* Zeros wrap around to the largest byte here, and do not count as low. */
        low = _mm256_min_epu8(low, _mm256_sub_epi8(v, _mm256_set1_epi8(1)));
    }
    unsigned last = largest_byte(high);
    unsigned first = 256 - largest_byte(_mm256_xor_si256(low, _mm256_set1_epi8(-1)));
    if (last > first + WIDE_RANGE)
        used = 0;
    if (used) {
        uint64_t zeros = used * 32, found[4];
        count_bytes(vectors, used, top, found); /* nothing is above */
        bins[top] += found[0];
        zeros -= found[0];
        for (unsigned value = first; value <= last; value += 4) {
            count_bytes(vectors, used, value, found);
            for (unsigned k = 0; k < 4 && value + k <= last; k++) {
                bins[value + k] += found[k];
                zeros -= found[k];
            }
        }
        bins[0] += zeros;
    }
    kernels_c.count_bins(bin + used * 32, n - used * 32, top, bins);
}

#endif
