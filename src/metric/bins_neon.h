/* Bins of sizes on 64-bit ARM; counting them is left to plain C. */
#ifndef METRIC_BINS_NEON_H
#define METRIC_BINS_NEON_H

#include "metric/vec_neon.h"

/* Two bin numbers; see find_bins() of kernel_c.c. */
INLINE uint32x2_t bins2(float64x2_t x)
{
    const float64x2_t size = vabsq_f64(x);
    const uint32x2_t e = vmovn_u64(vshrq_n_u64(vreinterpretq_u64_f64(size), 52));
    const uint32x2_t first = vdup_n_u32(1023 + HISTOGRAM_LOWEST);
    uint32x2_t bin = vsub_u32(vmax_u32(e, first), vsub_u32(first, vdup_n_u32(1)));
    bin = vmin_u32(bin, vdup_n_u32(HISTOGRAM_BINS - 2));
    return vand_u32(bin, vmovn_u64(vcgtzq_f64(size))); /* neither zero nor NaN */
}

static void find_bins(const double *x, size_t n, uint8_t *bin)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const v8 some = get(x + i);
        const uint16x4_t low = vmovn_u32(vcombine_u32(bins2(some.part[0]), bins2(some.part[1])));
        const uint16x4_t high = vmovn_u32(vcombine_u32(bins2(some.part[2]), bins2(some.part[3])));
        vst1_u8(bin + i, vmovn_u16(vcombine_u16(low, high)));
    }
    kernels_c.find_bins(x + i, n - i, bin + i);
}

/* Sixteen classes. */
typedef struct {
    uint16x8_t part[2];
} c16;

INLINE uint32x4_t uppers(float64x2_t a, float64x2_t b)
{
    return vuzp2q_u32(vreinterpretq_u32_f64(a), vreinterpretq_u32_f64(b));
}

INLINE uint32x4_t bin4(uint32x4_t upper, int power)
{
    const int lowest = 1023 + HISTOGRAM_LOWEST - 1 - power;
    return vsubq_u32(vshrq_n_u32(upper, 20), vdupq_n_u32((uint32_t)lowest));
}

/* Entry i of a table of eight, for each of four places. */
INLINE uint32x4_t entries(const uint32_t *table, uint32x4_t i)
{
    const uint8_t *bytes = (const uint8_t *)table;
    const uint8x16x2_t both = {{vld1q_u8(bytes), vld1q_u8(bytes + 16)}};
    const uint32x4_t at = vmlaq_n_u32(vdupq_n_u32(0x03020100), i, 0x04040404);
    return vreinterpretq_u32_u8(vqtbl2q_u8(both, vreinterpretq_u8_u32(at)));
}

INLINE uint32x4_t class4(float64x2_t a, float64x2_t b, const struct size_classes *sizes)
{
    const uint32x4_t x = uppers(a, b);
    const uint32x4_t lower = vuzp1q_u32(vreinterpretq_u32_f64(a), vreinterpretq_u32_f64(b));
    const uint32x4_t e =
        vminq_u32(vqsubq_u32(vshrq_n_u32(x, 21), vdupq_n_u32(sizes->first / 2)), vdupq_n_u32(15));
    const uint32x4_t passed = vreinterpretq_u32_u8(
        vqtbl1q_u8(vld1q_u8(sizes->place), vreinterpretq_u8_u32(e))); /* the first place is 0 */
    const uint32x4_t limit = entries(sizes->limit_upper, passed);
    const uint32x4_t more =
        vandq_u32(vceqq_u32(x, limit), vcgtq_u32(lower, entries(sizes->limit_lower, passed)));
    return vsubq_u32(vaddq_u32(bin4(x, 0), passed), vorrq_u32(vcgtq_u32(x, limit), more));
}

/* Eight numbers as 16-bit words; below 0 becomes 0. */
INLINE uint16x8_t words(uint32x4_t low, uint32x4_t high)
{
    return vcombine_u16(vqmovun_s32(vreinterpretq_s32_u32(low)),
                        vqmovun_s32(vreinterpretq_s32_u32(high)));
}

/* See struct size_classes. A size is 0, or one that has a bin of its own. */
INLINE c16 class16(v8 a, v8 b, const struct size_classes *sizes)
{
    return (c16){{words(class4(a.part[0], a.part[1], sizes), class4(a.part[2], a.part[3], sizes)),
                  words(class4(b.part[0], b.part[1], sizes), class4(b.part[2], b.part[3], sizes))}};
}

/* Bins of sizes times a power of two. */
INLINE c16 bin16(v8 a, v8 b, int power)
{
    return (c16){{words(bin4(uppers(a.part[0], a.part[1]), power),
                        bin4(uppers(a.part[2], a.part[3]), power)),
                  words(bin4(uppers(b.part[0], b.part[1]), power),
                        bin4(uppers(b.part[2], b.part[3]), power))}};
}

/* 64 classes as bytes; above top becomes top. */
INLINE void put_classes(uint8_t *to, const c16 x[4], uint8_t top)
{
    for (int k = 0; k < 4; k++)
        vst1q_u8(to + 16 * k,
                 vminq_u8(vcombine_u8(vqmovn_u16(x[k].part[0]), vqmovn_u16(x[k].part[1])),
                          vdupq_n_u8(top)));
}

static void count_bins(const uint8_t *bin, size_t n, uint8_t top, uint64_t *bins)
{
    kernels_c.count_bins(bin, n, top, bins);
}

#endif
