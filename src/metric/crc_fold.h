/* CRC-32 by carry-less multiplications: what all widths of registers share.
 *
 * Bytes are a polynomial, whose remainder is wanted. A part of it that lies D bits before another
 * is multiplied by x^D modulo the CRC polynomial and added to that other: the remainder stays the
 * same. Each half of 128 bits has its own factor, since the halves lie 64 bits apart: x^(D+32) for
 * the lower, x^(D-32) for the upper one. All of it is bit-reflected. */
#ifndef METRIC_CRC_FOLD_H
#define METRIC_CRC_FOLD_H

#include <immintrin.h>
#include <stdint.h>

#ifndef CRC_TARGET
#define CRC_TARGET
#endif

#define CRC_BY_128 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)
#define CRC_BY_512 _mm_set_epi64x(0x1c6e41596, 0x154442bd4)
#define CRC_BY_2048 _mm_set_epi64x(0x1322d1430, 0x11542778a)

/* part * x^D + next, with the factors of D. */
CRC_TARGET static inline __m128i crc_fold(__m128i part, __m128i next, __m128i factors)
{
    const __m128i low = _mm_clmulepi64_si128(part, factors, 0x00);
    const __m128i high = _mm_clmulepi64_si128(part, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* The remainder of 128 bits: two more folds, to 96 and to 64, and Barrett's division of those by
 * the polynomial (0x1db710641) with its reciprocal. */
CRC_TARGET static inline uint32_t crc_remainder(__m128i x)
{
    const __m128i words = _mm_setr_epi32(-1, 0, -1, 0);
    const __m128i division = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, CRC_BY_128, 0x10));
    const __m128i low =
        _mm_clmulepi64_si128(_mm_and_si128(x, words), _mm_cvtsi64_si128(0x163cd6124), 0x00);
    x = _mm_xor_si128(_mm_srli_si128(x, 4), low);
    __m128i times = _mm_clmulepi64_si128(_mm_and_si128(x, words), division, 0x10);
    times = _mm_clmulepi64_si128(_mm_and_si128(times, words), division, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, times), 1);
}

#endif
