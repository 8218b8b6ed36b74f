/* Eight float32 on 64-bit ARM: what the hottest loops find without float64. */
#ifndef METRIC_FLOATS_NEON_H
#define METRIC_FLOATS_NEON_H

typedef struct {
    float32x4_t low, high;
} f8;

/* Eight stored values; of any type but float64. No alignment is promised. */
INLINE f8 floats8(enum kernel_type type, const void *data, size_t i)
{
    const uint8_t *words = (const uint8_t *)data + 2 * i, *singles = (const uint8_t *)data + 4 * i;
    switch (type) {
    case KERNEL_F16: {
        const float16x8_t some = vreinterpretq_f16_u8(vld1q_u8(words));
        return (f8){vcvt_f32_f16(vget_low_f16(some)), vcvt_high_f32_f16(some)};
    }
    case KERNEL_BF16: { /* the upper half of a float32 */
        const uint16x8_t some = vreinterpretq_u16_u8(vld1q_u8(words));
        return (f8){vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(some), 16)),
                    vreinterpretq_f32_u32(vshll_high_n_u16(some, 16))};
    }
    default:
        return (f8){vreinterpretq_f32_u8(vld1q_u8(singles)),
                    vreinterpretq_f32_u8(vld1q_u8(singles + 16))};
    }
}

INLINE f8 all_floats(float x)
{
    return (f8){vdupq_n_f32(x), vdupq_n_f32(x)};
}

/* The second where one is NaN or both are equal. */
INLINE f8 smaller_floats(f8 a, f8 b)
{
    return (f8){vbslq_f32(vcltq_f32(a.low, b.low), a.low, b.low),
                vbslq_f32(vcltq_f32(a.high, b.high), a.high, b.high)};
}

INLINE f8 larger_floats(f8 a, f8 b)
{
    return (f8){vbslq_f32(vcgtq_f32(a.low, b.low), a.low, b.low),
                vbslq_f32(vcgtq_f32(a.high, b.high), a.high, b.high)};
}

INLINE f8 float_sizes(f8 x)
{
    return (f8){vabsq_f32(x.low), vabsq_f32(x.high)};
}

INLINE void put_floats(double *to, f8 x)
{
    put(to, widen(x.low, x.high));
}

#endif
