/* CRC-32 on AVX-512, with carry-less multiplications of four parts of 512 bits side by side: see
 * crc_fold.h. */
#ifndef METRIC_CRC_AVX512_H
#define METRIC_CRC_AVX512_H

#include "metric/crc_fold.h"

#include <libdeflate.h>
#include <stddef.h>

#define CRC_BY_PIECE _mm_set_epi64x(0x1b3b1a484, 0x05ad8a92c) /* 4096 bytes */

static inline __m512i crc_fold_512(__m512i part, __m512i next, __m512i factors)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(part, factors, 0x00),
                                     _mm512_clmulepi64_epi128(part, factors, 0x11), next, 0x96);
}

/* The CRC that 512 bits leave. */
static inline uint32_t crc_of_512(__m512i last)
{
    __m128i rest = _mm512_extracti32x4_epi32(last, 0);
    rest = crc_fold(rest, _mm512_extracti32x4_epi32(last, 1), CRC_BY_128);
    rest = crc_fold(rest, _mm512_extracti32x4_epi32(last, 2), CRC_BY_128);
    rest = crc_fold(rest, _mm512_extracti32x4_epi32(last, 3), CRC_BY_128);
    return ~crc_remainder(rest);
}

/* What the CRC so far adds to the first bits behind it. */
static inline __m512i crc_begin(uint32_t crc)
{
    return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
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
    part[0] = _mm512_xor_si512(part[0], crc_begin(crc));
    for (p += PARTS, n -= STEP; n >= STEP; p += PARTS, n -= STEP)
        for (int k = 0; k < PARTS; k++)
            part[k] = crc_fold_512(part[k], _mm512_loadu_si512(p + k), by_2048);
    for (int k = 1; k < PARTS; k++)
        part[k] = crc_fold_512(part[k - 1], part[k], by_512);
    crc = crc_of_512(part[PARTS - 1]);
    return n ? libdeflate_crc32(crc, p, n) : crc;
}

#endif
