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

static void count_bins(const uint8_t *bin, size_t n, uint64_t *bins)
{
    kernels_c.count_bins(bin, n, bins);
}

#endif
