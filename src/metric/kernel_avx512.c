/* The kernels for AVX-512: those that gain by it. All eight lanes are one register, of which there are
 * enough for the sums of four blocks. */
#include "metric/kernel.h"
#include "plumb/metric.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

_Static_assert(SIDE_BY_SIDE == 4 && LANES == 8, "the loops are written for these");

/* Eight stored values as float64. */
INLINE __m512d load8(enum kernel_type type, const void *data, size_t i)
{
    const __m128i *words = (const __m128i *)((const uint16_t *)data + i);
    switch (type) {
    case KERNEL_F32:
        return _mm512_cvtps_pd(_mm256_loadu_ps((const float *)data + i));
    case KERNEL_F16:
        return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(words)));
    case KERNEL_BF16: /* the upper half of a float32 */
        return _mm512_cvtps_pd(_mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(words)), 16)));
    default:
        return _mm512_loadu_pd((const double *)data + i);
    }
}

struct range8 {
    __m512d sum, min, max;
};

INLINE struct range8 add_range(struct range8 r, __m512d x)
{
    return (struct range8){_mm512_add_pd(r.sum, x), _mm512_min_pd(x, r.min),
                           _mm512_max_pd(x, r.max)};
}

INLINE void put_range(struct range_lanes *out, struct range8 r)
{
    _mm512_storeu_pd(out->sum, r.sum);
    _mm512_storeu_pd(out->min, r.min);
    _mm512_storeu_pd(out->max, r.max);
}

INLINE void ranges_kernel(enum kernel_type type, const void *data, struct range_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    struct range8 a = {_mm512_setzero_pd(), _mm512_set1_pd(INFINITY), _mm512_set1_pd(-INFINITY)};
    struct range8 b = a, c = a, d = a;
    for (size_t i = 0; i < N; i += 8) {
        a = add_range(a, load8(type, data, i));
        b = add_range(b, load8(type, data, N + i));
        c = add_range(c, load8(type, data, 2 * N + i));
        d = add_range(d, load8(type, data, 3 * N + i));
    }
    put_range(&out[0], a);
    put_range(&out[1], b);
    put_range(&out[2], c);
    put_range(&out[3], d);
}

struct centre8 {
    __m512d sum, squares;
};

/* Product and sum are rounded apart, as in plain C. */
INLINE struct centre8 add_centre(struct centre8 r, __m512d x, __m512d middle)
{
    __m512d deviation = _mm512_sub_pd(x, middle);
    return (struct centre8){_mm512_add_pd(r.sum, deviation),
                            _mm512_add_pd(r.squares, _mm512_mul_pd(deviation, deviation))};
}

INLINE void put_centre(struct centre_lanes *out, struct centre8 r)
{
    _mm512_storeu_pd(out->sum, r.sum);
    _mm512_storeu_pd(out->squares, r.squares);
}

INLINE void centres_kernel(enum kernel_type type, const void *data, const double *middle,
                           struct centre_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    struct centre8 a = {_mm512_setzero_pd(), _mm512_setzero_pd()}, b = a, c = a, d = a;
    const __m512d ma = _mm512_set1_pd(middle[0]), mb = _mm512_set1_pd(middle[1]);
    const __m512d mc = _mm512_set1_pd(middle[2]), md = _mm512_set1_pd(middle[3]);
    for (size_t i = 0; i < N; i += 8) {
        a = add_centre(a, load8(type, data, i), ma);
        b = add_centre(b, load8(type, data, N + i), mb);
        c = add_centre(c, load8(type, data, 2 * N + i), mc);
        d = add_centre(d, load8(type, data, 3 * N + i), md);
    }
    put_centre(&out[0], a);
    put_centre(&out[1], b);
    put_centre(&out[2], c);
    put_centre(&out[3], d);
}

KERNEL_STATISTICS(f64, KERNEL_F64)
KERNEL_STATISTICS(f32, KERNEL_F32)
KERNEL_STATISTICS(f16, KERNEL_F16)
KERNEL_STATISTICS(bf16, KERNEL_BF16)

#define ENTRIES(name)                                                                              \
    table->name[KERNEL_F64] = name##_f64;                                                          \
    table->name[KERNEL_F32] = name##_f32;                                                          \
    table->name[KERNEL_F16] = name##_f16;                                                          \
    table->name[KERNEL_BF16] = name##_bf16

void kernels_avx512(struct kernels *table)
{
    table->name = "avx512";
    ENTRIES(ranges);
    ENTRIES(centres);
}
