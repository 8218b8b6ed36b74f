/* How the hottest kernel does without a division, on AVX2 and AVX-512, for all types but float64.
 *
 * What relative errors are compared with needs no quotient: r < 1/200 is 200|d| < |g|, whose sides
 * are float32, many in a register. Where r is near 1/200 or 1/1000, t and g lie so close that
 * their difference is exact, so that a fused operation has the right sign: negative, or the two are
 * equal. And no other quotient of such numbers, which have 24 bits, rounds to a limit in float64.
 * Where |g| is 0, the smallest number stands for it: r is below the limits if |d| is 0 too, and
 * above them if not.
 *
 * A quotient is computed where it may be the largest so far. */
#ifndef METRIC_RELATIVE_X86_H
#define METRIC_RELATIVE_X86_H

#include <float.h>

/* What quotients are compared with, to see whether one may be the largest so far: a little less
 * than that, for what is rounded away from |d| and |g|. Quotients of float16 below 1/4 and of
 * bfloat16 below 7/8 are of exact differences, and lie 2^-21 apart: a little more, so that one that
 * comes again and again is let go. */
INLINE float nearly(enum kernel_type type, double max)
{
    const double apart = type == KERNEL_BF16 ? 0.875 : type == KERNEL_F16 ? 0.25 : 0;
    const bool exact = max < apart;
    const double near = max * (exact ? 1 + 0x1p-22 : 1 - 0x1p-12);
    return near > FLT_MAX ? FLT_MAX : (float)near;
}

/* What is left of the limits, negative where r is below, and of the largest quotient so far,
 * negative where it may not be that any more. */
struct left {
    f8 of_5e3, of_1e3, of_max;
};

INLINE struct left left_of(f8 t, f8 g, f8 most)
{
    const f8 d = float_sizes(_mm256_sub_ps(t, g));
    const f8 size = float_sizes(g), positive = larger_floats(size, all_floats(FLT_TRUE_MIN));
    return (struct left){_mm256_fmsub_ps(all_floats(200), d, positive),
                         _mm256_fmsub_ps(all_floats(1000), d, positive),
                         _mm256_fmsub_ps(most, size, d)};
}

/* Counts the signs of the limits of sixteen pairs: bytes have, by turns, four of one and four of
 * the other. */
INLINE void count_left(struct left a, struct left b, struct relative_counts *out)
{
    const __m256i low =
        _mm256_packs_epi32(_mm256_castps_si256(a.of_5e3), _mm256_castps_si256(a.of_1e3));
    const __m256i high =
        _mm256_packs_epi32(_mm256_castps_si256(b.of_5e3), _mm256_castps_si256(b.of_1e3));
    const unsigned below = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(low, high));
    out->below_5e3 += (uint64_t)_mm_popcnt_u32(below & 0x0f0f0f0f);
    out->below_1e3 += (uint64_t)_mm_popcnt_u32(below & 0xf0f0f0f0);
}

INLINE bool may_be_largest(struct left a, struct left b)
{
    return __builtin_expect(_mm256_movemask_ps(_mm256_or_ps(a.of_max, b.of_max)), 0);
}

/* The larger of max and the quotients of sixteen pairs. */
INLINE double raise_ratio(enum kernel_type type, const void *t, const void *g, size_t i, double max)
{
    x8 most = extreme(max);
    for (size_t half = 0; half < 16; half += 8) {
        const v8 y = load8(type, g, i + half), d = subtract(load8(type, t, i + half), y);
        most = raise_to(most, divide(size_of(d), size_of(y)));
    }
    return largest(most);
}

#endif
