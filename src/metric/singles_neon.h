/* Sixteen float32 on 64-bit ARM: four registers. See singles_avx512.h for what each word means. */
#ifndef METRIC_SINGLES_NEON_H
#define METRIC_SINGLES_NEON_H

#include "metric/floats_neon.h"

typedef struct {
    float32x4_t part[4];
} s16;

#define ALL_SINGLES(operation) ((s16){{operation(0), operation(1), operation(2), operation(3)}})

INLINE s16 load16(enum kernel_type type, const void *data, size_t i)
{
    const f8 low = floats8(type, data, i), high = floats8(type, data, i + 8);
    return (s16){{low.low, low.high, high.low, high.high}};
}

INLINE s16 all_singles(float x)
{
#define PART(k) vdupq_n_f32(x)
    return ALL_SINGLES(PART);
#undef PART
}

INLINE s16 add_singles(s16 a, s16 b)
{
#define PART(k) vaddq_f32(a.part[k], b.part[k])
    return ALL_SINGLES(PART);
#undef PART
}

INLINE s16 subtract_singles(s16 a, s16 b)
{
#define PART(k) vsubq_f32(a.part[k], b.part[k])
    return ALL_SINGLES(PART);
#undef PART
}

INLINE s16 multiply_singles(s16 a, s16 b)
{
#define PART(k) vmulq_f32(a.part[k], b.part[k])
    return ALL_SINGLES(PART);
#undef PART
}

INLINE s16 fused_singles(s16 a, s16 b, s16 c)
{
#define PART(k) vfmaq_f32(c.part[k], a.part[k], b.part[k])
    return ALL_SINGLES(PART);
#undef PART
}

INLINE s16 product_less_singles(s16 a, s16 b, s16 c)
{
#define PART(k) vfmaq_f32(vnegq_f32(c.part[k]), a.part[k], b.part[k])
    return ALL_SINGLES(PART);
#undef PART
}

INLINE s16 larger_sizes(s16 most, s16 x)
{
#define PART(k) vmaxq_f32(most.part[k], vabsq_f32(x.part[k]))
    return ALL_SINGLES(PART);
#undef PART
}

INLINE float largest_single(s16 x)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.part[0], x.part[1]), vmaxq_f32(x.part[2], x.part[3])));
}

INLINE s16 singles_times_power(s16 x, s16 sum)
{
#define PART(k)                                                                                    \
    vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x.part[k]),                              \
                                    vshlq_n_s32(vreinterpretq_s32_f32(sum.part[k]), 23)))
    return ALL_SINGLES(PART);
#undef PART
}

INLINE v8 folded(s16 x)
{
    return add(widen(x.part[0], x.part[1]), widen(x.part[2], x.part[3]));
}

#endif
