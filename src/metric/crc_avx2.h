/* CRC-32 for processors with AVX2 that multiply without carries in 256 bits, as those since Zen 3
 * and Alder Lake do; eight parts side by side: see crc_fold.h. */
#ifndef METRIC_CRC_AVX2_H
#define METRIC_CRC_AVX2_H

#define CRC_TARGET __attribute__((target("avx2,pclmul,vpclmulqdq")))

#include "metric/crc_fold.h"

#include <libdeflate.h>
#include <stddef.h>

CRC_TARGET static inline __m256i crc_fold_256(__m256i part, __m256i next, __m128i by)
{
    const __m256i factors = _mm256_broadcastsi128_si256(by);
    const __m256i low = _mm256_clmulepi64_epi128(part, factors, 0x00);
    const __m256i high = _mm256_clmulepi64_epi128(part, factors, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

CRC_TARGET static uint32_t crc32_wide(uint32_t crc, const void *data, size_t n)
{
    enum { PARTS = 8, STEP = PARTS * sizeof(__m256i) };
    const __m256i *p = data;
    if (n < STEP)
        return libdeflate_crc32(crc, data, n);
    __m256i part[PARTS];
    for (int k = 0; k < PARTS; k++)
        part[k] = _mm256_loadu_si256(p + k);
    part[0] = _mm256_xor_si256(part[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)~crc)));
    for (p += PARTS, n -= STEP; n >= STEP; p += PARTS, n -= STEP)
        for (int k = 0; k < PARTS; k++)
            part[k] = crc_fold_256(part[k], _mm256_loadu_si256(p + k), CRC_BY_2048);
    for (int k = 2; k < PARTS; k++)
        part[k] = crc_fold_256(part[k - 2], part[k], CRC_BY_512);
    __m128i rest = _mm256_castsi256_si128(part[PARTS - 2]);
    rest = crc_fold(rest, _mm256_extracti128_si256(part[PARTS - 2], 1), CRC_BY_128);
    rest = crc_fold(rest, _mm256_castsi256_si128(part[PARTS - 1]), CRC_BY_128);
    rest = crc_fold(rest, _mm256_extracti128_si256(part[PARTS - 1], 1), CRC_BY_128);
    crc = ~crc_remainder(rest);
    return n ? libdeflate_crc32(crc, p, n) : crc;
}

#endif
