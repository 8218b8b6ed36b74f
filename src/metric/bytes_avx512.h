/* Types of one byte as bfloat16, on AVX-512. */
#ifndef METRIC_BYTES_AVX512_H
#define METRIC_BYTES_AVX512_H

#include "metric/bytes.h"
#include "metric/vec_avx512.h"

struct byte_table {
    __m512i quarter[4];
};

INLINE struct byte_table get_table(const uint8_t *table)
{
    struct byte_table result;
    for (int i = 0; i < 4; i++)
        result.quarter[i] = _mm512_loadu_si512(table + 64 * i);
    return result;
}

INLINE __m512i look_up(struct byte_table table, __m512i codes)
{
    const __m512i low = _mm512_permutex2var_epi8(table.quarter[0], codes, table.quarter[1]);
    const __m512i high = _mm512_permutex2var_epi8(table.quarter[2], codes, table.quarter[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(codes), high);
}

static void widen_bytes(const struct byte_words *words, const void *bytes, size_t n, uint16_t *out)
{
    /* So that interleaving, which is done in each quarter, keeps the order. */
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const struct byte_table low = get_table(words->low), high = get_table(words->high);
    const uint8_t *from = bytes;
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        const __m512i codes = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(from + i));
        const __m512i l = look_up(low, codes), h = look_up(high, codes);
        _mm512_storeu_si512(out + i, _mm512_unpacklo_epi8(l, h));
        _mm512_storeu_si512(out + i + 32, _mm512_unpackhi_epi8(l, h));
    }
    kernel_widen_c(words, from + i, n - i, out + i);
}

#endif
