/* Whole blocks for statistics and sketches on AVX-512: kernel_ranges.h says what is done.
 *
 * Pipes that add and compare have more to do than those that multiply: x * 1 + y is used for x + y.
 *
 * The least and the greatest value are found among the bits as they are stored, as integers, of
 * which there are more in a register than float64, and which more pipes compare. With the sign in
 * the top bit, the greatest signed integer is the greatest value unless all have the sign; the
 * greatest unsigned one is the least value unless none has it; and the least unsigned one is what
 * is wanted where these are not. */
#ifndef METRIC_RANGES_AVX512_H
#define METRIC_RANGES_AVX512_H

#include "metric/kernel.h"
#include "metric/vec_avx512.h"
#include "plumb/metric.h"

struct bits_range {
    __m512i most, farthest, least; /* signed, unsigned, unsigned */
};

INLINE struct bits_range bits_of_nothing(enum kernel_type type)
{
    const __m512i most = type == KERNEL_F64   ? _mm512_set1_epi64(INT64_MIN)
                         : type == KERNEL_F32 ? _mm512_set1_epi32(INT32_MIN)
                                              : _mm512_set1_epi16(INT16_MIN);
    return (struct bits_range){most, _mm512_setzero_si512(), _mm512_set1_epi8(-1)};
}

INLINE struct bits_range join_bits(enum kernel_type type, struct bits_range a, struct bits_range b)
{
    switch (type) {
    case KERNEL_F64:
        return (struct bits_range){_mm512_max_epi64(a.most, b.most),
                                   _mm512_max_epu64(a.farthest, b.farthest),
                                   _mm512_min_epu64(a.least, b.least)};
    case KERNEL_F32:
        return (struct bits_range){_mm512_max_epi32(a.most, b.most),
                                   _mm512_max_epu32(a.farthest, b.farthest),
                                   _mm512_min_epu32(a.least, b.least)};
    default:
        return (struct bits_range){_mm512_max_epi16(a.most, b.most),
                                   _mm512_max_epu16(a.farthest, b.farthest),
                                   _mm512_min_epu16(a.least, b.least)};
    }
}

/* As bits of float64, in eight lanes: their order is the same. */
INLINE struct bits_range widen_bits(enum kernel_type type, struct bits_range r)
{
    struct {
        __m512i most, farthest, least;
    } stored = {r.most, r.farthest, r.least};
    struct bits_range all8 = bits_of_nothing(KERNEL_F64);
    for (size_t i = 0; i < 64 / kernel_width(type); i += 8) {
        const struct bits_range part = {_mm512_castpd_si512(load8(type, &stored.most, i)),
                                        _mm512_castpd_si512(load8(type, &stored.farthest, i)),
                                        _mm512_castpd_si512(load8(type, &stored.least, i))};
        all8 = join_bits(KERNEL_F64, all8, part);
    }
    return all8;
}

/* False when a lane has 0 and -0, and the bits do not tell which of them was first: an end is 0
 * then, and there is the other one, too, or may be. */
INLINE bool set_ends(struct bits_range r, struct range_lanes *out)
{
    const __m512i minus_zero = _mm512_set1_epi64(INT64_MIN);
    const __mmask8 any_minus = _mm512_movepi64_mask(r.farthest);
    const __mmask8 all_minus = _mm512_movepi64_mask(r.most);
    const __mmask8 both_least =
        _mm512_testn_epi64_mask(r.least, r.least) & _mm512_cmpeq_epi64_mask(r.farthest, minus_zero);
    const __mmask8 both_most = _mm512_testn_epi64_mask(r.most, r.most) & any_minus;
    put(out->min, _mm512_castsi512_pd(_mm512_mask_mov_epi64(r.least, any_minus, r.farthest)));
    put(out->max, _mm512_castsi512_pd(_mm512_mask_mov_epi64(r.most, all_minus, r.least)));
    return !(both_least | both_most);
}

INLINE bool all_finite(v8 x)
{
    enum { NAN_OR_INFINITE = 0x99 };
    return !_mm512_fpclass_pd_mask(x, NAN_OR_INFINITE);
}

INLINE v8 add_by_one(v8 sum, v8 x)
{
    return fused(x, all(1), sum);
}

INLINE void ask_ahead(const void *at)
{
    __builtin_prefetch((const char *)at + KERNEL_AHEAD, 0, 2);
}

INLINE void ranges_wide(const double *x, struct range_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    struct range8 r[SIDE_BY_SIDE];
    for (size_t b = 0; b < SIDE_BY_SIDE; b++)
        r[b] = (struct range8){all(0), all(INFINITY), all(-INFINITY)};
    for (size_t i = 0; i < N; i += 8)
        for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
            const v8 y = get(x + b * N + i);
            ask_ahead(x + b * N + i);
            r[b] =
                (struct range8){add_by_one(r[b].sum, y), smaller(y, r[b].min), larger(y, r[b].max)};
        }
    for (size_t b = 0; b < SIDE_BY_SIDE; b++)
        put_range(&out[b], r[b]);
}

INLINE void ranges_narrow(enum kernel_type type, const void *data, double *wide,
                          struct range_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    const size_t step = 64 / kernel_width(type);
    struct bits_range bits[SIDE_BY_SIDE];
    v8 sum[SIDE_BY_SIDE];
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        bits[b] = bits_of_nothing(type);
        sum[b] = all(0);
    }
    for (size_t i = 0; i < N; i += step)
        for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
            const void *at = element(type, data, b * N + i);
            const __m512i x = _mm512_loadu_si512(at);
            ask_ahead(at);
            bits[b] = join_bits(type, bits[b], (struct bits_range){x, x, x});
            for (size_t k = 0; k < step; k += 8) {
                const v8 y = load8(type, at, k);
                put(wide + b * N + i + k, y);
                sum[b] = add_by_one(sum[b], y);
            }
        }
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        put(out[b].sum, sum[b]);
        if (all_finite(sum[b]) && set_ends(widen_bits(type, bits[b]), &out[b]))
            continue;
        out[b] = range_of_nothing();
        range(wide + b * N, N, &out[b]);
    }
}

INLINE void ranges_kernel(enum kernel_type type, const void *data, double *wide,
                          struct range_lanes *out)
{
    if (type == KERNEL_F64)
        ranges_wide(data, out);
    else
        ranges_narrow(type, data, wide, out);
}

static void centres(const double *wide, const double *middle, struct centre_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    struct centre8 r[SIDE_BY_SIDE];
    for (size_t b = 0; b < SIDE_BY_SIDE; b++)
        r[b] = (struct centre8){all(0), all(0)};
    for (size_t i = 0; i < N; i += 8)
        for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
            v8 x = get(wide + b * N + i);
            __asm__("" : "+v"(x)); /* in a register, or each factor 1 would be copied first */
            const v8 deviation = product_less(x, all(1), all(middle[b]));
            r[b].sum = add(r[b].sum, deviation);
            r[b].squares = add(r[b].squares, multiply(deviation, deviation));
        }
    for (size_t b = 0; b < SIDE_BY_SIDE; b++)
        put_centre(&out[b], r[b]);
}

#endif
