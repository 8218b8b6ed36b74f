/* CRC-32 on AVX-512, with carry-less multiplications of four parts of 512 bits side by side.
 *
 * Bytes are a polynomial, whose remainder is wanted. A part of it that lies D bits before another
 * is multiplied by x^D modulo the CRC polynomial and added to that other: the remainder stays the
 * same. Each half of 128 bits has its own factor, since the halves lie 64 bits apart: x^(D+32) for
 * the lower, x^(D-32) for the upper one. All of it is bit-reflected. */
#ifndef METRIC_CRC_AVX512_H
#define METRIC_CRC_AVX512_H

#include <immintrin.h>
#include <libdeflate.h>
#include <stddef.h>
#include <stdint.h>

#define CRC_BY_128 _mm_set_epi64x(0x0ccaa009e, 0x1751997d0)
#define CRC_BY_512 _mm_set_epi64x(0x1c6e41596, 0x154442bd4)
#define CRC_BY_2048 _mm_set_epi64x(0x1322d1430, 0x11542778a)

/* part * x^D + next, with the factors of D. */
static inline __m128i crc_fold(__m128i part, __m128i next, __m128i factors)
{
    const __m128i low = _mm_clmulepi64_si128(part, factors, 0x00);
    const __m128i high = _mm_clmulepi64_si128(part, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* The remainder of 128 bits: two more folds, to 96 and to 64, and Barrett's division of those by
 * the polynomial (0x1db710641) with its reciprocal. */
static inline uint32_t crc_remainder(__m128i x)
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

static inline __m512i crc_fold_512(__m512i part, __m512i next, __m512i factors)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(part, factors, 0x00),
                                     _mm512_clmulepi64_epi128(part, factors, 0x11), next, 0x96);
}

static uint32_t crc32_of(uint32_t crc, const void *data, size_t n)
{
    enum { PARTS = 4, STEP = PARTS * sizeof(__m512i) };
    const __m512i by_512 = _mm512_broadcast_i32x4(CRC_BY_512);
    const __m512i by_2048 = _mm512_broadcast_i32x4(CRC_BY_2048);
    const __m512i *p = data;
    if (n < STEP)
        return libdeflate_crc32(crc, data, n);
    __m512i part[PARTS];
    for (int k = 0; k < PARTS; k++)
        part[k] = _mm512_loadu_si512(p + k);
    part[0] = _mm512_xor_si512(part[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
    for (p += PARTS, n -= STEP; n >= STEP; p += PARTS, n -= STEP)
        for (int k = 0; k < PARTS; k++)
            part[k] = crc_fold_512(part[k], _mm512_loadu_si512(p + k), by_2048);
    for (int k = 1; k < PARTS; k++)
        part[k] = crc_fold_512(part[k - 1], part[k], by_512);
    const __m512i last = part[PARTS - 1];
    __m128i rest = _mm512_extracti32x4_epi32(last, 0);
    rest = crc_fold(rest, _mm512_extracti32x4_epi32(last, 1), CRC_BY_128);
    rest = crc_fold(rest, _mm512_extracti32x4_epi32(last, 2), CRC_BY_128);
    rest = crc_fold(rest, _mm512_extracti32x4_epi32(last, 3), CRC_BY_128);
    crc = ~crc_remainder(rest);
    return n ? libdeflate_crc32(crc, p, n) : crc;
}

#endif
