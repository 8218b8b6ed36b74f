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

/* Rotations of four lanes: lane (j - by) mod 4 goes to lane j. */
static const long long rotations[4][4] = {{0, 1, 2, 3}, {3, 0, 1, 2}, {2, 3, 0, 1}, {1, 2, 3, 0}};

INLINE void add_to(double *sums, __m512d y)
{
    _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), y));
}

INLINE __m512d with_signs(__m512d x, uint64_t signs)
{
    const __m512i bits = _mm512_castpd_si512(x);
    const __m512i sign = _mm512_set1_epi64((long long)(UINT64_C(1) << 63));
    return _mm512_castsi512_pd(_mm512_mask_xor_epi64(bits, (__mmask8)signs, bits, sign));
}

INLINE __m256d sketch_group(__m512d low, __m512d high, uint64_t group, double *sums, __m256d fold)
{
    const uint64_t word = kernel_sketch_word(group);
    double *start = sums + (word & 255);
    low = with_signs(low, word >> 8);
    high = with_signs(high, word >> 16);
    add_to(start, low);
    add_to(start + 8, high);
    const __m256d four =
        _mm256_add_pd(_mm256_add_pd(_mm512_castpd512_pd256(low), _mm512_extractf64x4_pd(low, 1)),
                      _mm256_add_pd(_mm512_castpd512_pd256(high), _mm512_extractf64x4_pd(high, 1)));
    const __m256i by = _mm256_loadu_si256((const __m256i *)rotations[word & 3]);
    return _mm256_add_pd(fold, _mm256_permutexvar_pd(by, four));
}

static void sketch(const double *x, size_t n, uint64_t first, double *sums, double fold[4])
{
    enum { GROUP = KERNEL_SKETCH_GROUP };
    __m256d folded = _mm256_loadu_pd(fold);
    while (n) {
        const size_t lane = first % GROUP, m = n < GROUP - lane ? n : GROUP - lane;
        __m512d low, high;
        if (m == GROUP) {
            low = _mm512_loadu_pd(x);
            high = _mm512_loadu_pd(x + 8);
        } else { /* lanes of numbers that are not there are 0 */
            const unsigned there = ((1u << m) - 1) << lane;
            const size_t in_low = lane < 8 ? (m < 8 - lane ? m : 8 - lane) : 0;
            low = _mm512_maskz_expandloadu_pd((__mmask8)there, x);
            high = _mm512_maskz_expandloadu_pd((__mmask8)(there >> 8), x + in_low);
        }
        folded = sketch_group(low, high, first / GROUP, sums, folded);
        first += m;
        x += m;
        n -= m;
    }
    _mm256_storeu_pd(fold, folded);
}

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
    table->sketch = sketch;
}
