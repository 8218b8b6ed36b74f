/* Eight pieces of the hash side by side on AVX-512, and their CRC-32: hash.c says what is mixed.
 * The CRC takes multipliers that the hash does not, and next to no time beside it. */
#ifndef METRIC_HASH_AVX512_H
#define METRIC_HASH_AVX512_H

#include "metric/crc_avx512.h"
#include "metric/hash.h"
#include "metric/vec_avx512.h"

/* Row i becomes column i: word w of the eight pieces is words[w] then. */
INLINE void transpose(__m512i words[8])
{
    __m512i pairs[8], fours[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_epi64(words[i], words[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi64(words[i], words[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            fours[i + k] = _mm512_shuffle_i64x2(pairs[i + k], pairs[i + k + 2], 0x88);
            fours[i + k + 2] = _mm512_shuffle_i64x2(pairs[i + k], pairs[i + k + 2], 0xdd);
        }
    for (int k = 0; k < 4; k++) {
        words[k] = _mm512_shuffle_i64x2(fours[k], fours[k + 4], 0x88);
        words[k + 4] = _mm512_shuffle_i64x2(fours[k], fours[k + 4], 0xdd);
    }
}

INLINE __m512i times_five_and(__m512i x, long long more)
{
    return _mm512_add_epi64(_mm512_add_epi64(x, _mm512_slli_epi64(x, 2)), _mm512_set1_epi64(more));
}

INLINE void mix_eight(__m512i h[2], __m512i a, __m512i b)
{
    const __m512i c1 = _mm512_set1_epi64((long long)HASH_C1);
    const __m512i c2 = _mm512_set1_epi64((long long)HASH_C2);
    a = _mm512_mullo_epi64(_mm512_rol_epi64(_mm512_mullo_epi64(a, c1), 31), c2);
    b = _mm512_mullo_epi64(_mm512_rol_epi64(_mm512_mullo_epi64(b, c2), 33), c1);
    h[0] = _mm512_rol_epi64(_mm512_xor_si512(h[0], a), 27);
    h[0] = times_five_and(_mm512_add_epi64(h[0], h[1]), HASH_ADD1);
    h[1] = _mm512_rol_epi64(_mm512_xor_si512(h[1], b), 31);
    h[1] = times_five_and(_mm512_add_epi64(h[1], h[0]), HASH_ADD2);
}

INLINE __m512i scramble(__m512i x)
{
    const __m512i first = _mm512_set1_epi64((long long)HASH_SCRAMBLE1);
    const __m512i second = _mm512_set1_epi64((long long)HASH_SCRAMBLE2);
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 33)), first);
    x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64(x, 33)), second);
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 33));
}

static uint32_t hash_of_eight(const void *data, uint64_t piece, struct hash *hash, uint32_t crc)
{
    const unsigned char *bytes = data;
    const __m512i seeds = _mm512_add_epi64(_mm512_set1_epi64((long long)piece),
                                           _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i by_512 = _mm512_broadcast_i32x4(CRC_BY_512);
    const __m512i by_piece = _mm512_broadcast_i32x4(CRC_BY_PIECE);
    __m512i h[2] = {seeds, seeds}, part[HASH_SIDE];
    for (size_t k = 0; k < HASH_SIDE; k++)
        part[k] = _mm512_setzero_si512();
    for (size_t at = 0; at < HASH_PIECE; at += 64) {
        __m512i words[8];
        for (size_t k = 0; k < 8; k++) {
            words[k] = _mm512_loadu_si512(bytes + k * HASH_PIECE + at);
            part[k] = crc_fold_512(part[k], words[k], by_512);
            /* The next eight are loaded meanwhile, if there are any: this takes longest, and they
             * come from the cache then for whatever reads them first. */
            __builtin_prefetch(bytes + (k + HASH_SIDE) * HASH_PIECE + at, 0, 2);
        }
        if (!at)
            part[0] = _mm512_xor_si512(part[0], crc_begin(crc));
        transpose(words);
        for (size_t k = 0; k < 8; k += 2)
            mix_eight(h, words[k], words[k + 1]);
    }
    for (size_t k = 1; k < HASH_SIDE; k++)
        part[k] = crc_fold_512(part[k - 1], part[k], by_piece);
    const __m512i size = _mm512_set1_epi64(HASH_PIECE);
    __m512i a = _mm512_xor_si512(h[0], size), b = _mm512_xor_si512(h[1], size);
    a = _mm512_add_epi64(a, b);
    b = _mm512_add_epi64(b, a);
    a = scramble(a);
    b = scramble(b);
    a = _mm512_add_epi64(a, b);
    uint64_t sums[16]; /* added one by one: the compiler's own sum is of numbers with a sign */
    _mm512_storeu_si512(sums, a);
    _mm512_storeu_si512(sums + 8, _mm512_add_epi64(b, a));
    for (size_t k = 0; k < 8; k++) {
        hash->word[0] += sums[k];
        hash->word[1] += sums[k + 8];
    }
    return crc_of_512(part[HASH_SIDE - 1]);
}

#endif
