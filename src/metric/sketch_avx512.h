/* Adding numbers to a sketch with AVX-512: kernel_c.c says what is added where. */
#ifndef METRIC_SKETCH_AVX512_H
#define METRIC_SKETCH_AVX512_H

#include "metric/kernel.h"
#include "metric/vec_avx512.h"

/* Eight numbers with their signs, one byte of which is read straight into a mask: by way of other
 * registers it would take the pipes that add. */
INLINE __m512d with_signs(__m512d x, const uint8_t *signs)
{
    const __m512i bits = _mm512_castpd_si512(x);
    const __m512i sign = _mm512_set1_epi64(INT64_MIN);
    __mmask8 minus;
    __asm__("kmovb %1, %0" : "=k"(minus) : "m"(*signs));
    return _mm512_castsi512_pd(_mm512_mask_xor_epi64(bits, minus, bits, sign));
}

/* Which numbers of a tile are there: all, which needs no masks, or those whose bit is set. */
struct present {
    bool all;
    uint64_t bits;
};

/* Numbers l to l + 7 of a tile, in the order of their sums. */
INLINE __m512d add_eight(const double *x, size_t l, struct present there, const uint64_t *signs,
                         unsigned place, double *sums)
{
    const __m512i order =
        _mm512_xor_si512(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(place & 7));
    double *to = sums + ((place ^ l) & ~(size_t)7);
    const __m512d numbers =
        there.all ? get(x + l) : _mm512_maskz_loadu_pd((__mmask8)(there.bits >> l), x + l);
    const __m512d y =
        _mm512_permutexvar_pd(order, with_signs(numbers, (const uint8_t *)signs + l / 8));
    put(to, add(get(to), y));
    return y;
}

INLINE void sketch_present(const double *x, struct present there, const uint64_t *signs,
                           unsigned place, double *sums, double fold[4])
{
    __m512d pair[4];
    for (size_t k = 0; k < 4; k++)
        pair[k] = add(add_eight(x, 16 * k, there, signs, place, sums),
                      add_eight(x, 16 * k + 8, there, signs, place, sums));
    const __m512d column = add(add(pair[0], pair[1]), add(pair[2], pair[3]));
    _mm256_storeu_pd(
        fold, _mm256_add_pd(_mm512_castpd512_pd256(column), _mm512_extractf64x4_pd(column, 1)));
}

INLINE void sketch_tile(const double *x, const uint64_t *signs, unsigned place, double *sums,
                        double fold[4])
{
    sketch_present(x, (struct present){.all = true}, signs, place, sums, fold);
}

/* Seldom, and not to take registers from the others. */
static __attribute__((noinline)) void sketch_some(const double *x, size_t lane, size_t n,
                                                  const uint64_t *signs, unsigned place,
                                                  double *sums, double fold[4])
{
    /* Where the tile would begin: what is not there is not read. */
    const double *start = (const double *)((uintptr_t)x - lane * sizeof *x);
    const struct present there = {.bits = ((UINT64_C(1) << n) - 1) << lane};
    sketch_present(start, there, signs, place, sums, fold);
}

#include "metric/sketch_tiles.h"

#endif
