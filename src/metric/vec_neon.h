/* The vector vocabulary on 64-bit ARM: eight float64 are four registers. See vec_avx512.h for what
 * each word means. */
#ifndef METRIC_VEC_NEON_H
#define METRIC_VEC_NEON_H

#include "metric/kernel.h"

#include <arm_neon.h>

#define INLINE static inline __attribute__((always_inline))
#define NO_UNROLL _Pragma("GCC unroll 1")

typedef struct {
    float64x2_t part[4];
} v8;

typedef struct {
    uint64x2_t part[4];
} m8;

typedef float64x2_t x8;
typedef uint64x2_t n8;

/* An operation on parts becomes one on the whole. */
#define ALL_PARTS(type, operation)                                                                 \
    ((type){{operation(0), operation(1), operation(2), operation(3)}})

INLINE v8 get(const double *p)
{
#define PART(k) vld1q_f64(p + 2 * (k))
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE void put(double *p, v8 x)
{
    for (int k = 0; k < 4; k++)
        vst1q_f64(p + 2 * k, x.part[k]);
}

INLINE v8 all(double x)
{
#define PART(k) vdupq_n_f64(x)
    return ALL_PARTS(v8, PART);
#undef PART
}

#define TWO_OPERANDS(type, name, instruction)                                                      \
    INLINE type name(v8 a, v8 b)                                                                   \
    {                                                                                              \
        return (type){{instruction(a.part[0], b.part[0]), instruction(a.part[1], b.part[1]),       \
                       instruction(a.part[2], b.part[2]), instruction(a.part[3], b.part[3])}};     \
    }

/* The instructions for the larger and the smaller treat NaN and zeros in their own way. */
INLINE float64x2_t larger_2(float64x2_t a, float64x2_t b)
{
    return vbslq_f64(vcgtq_f64(a, b), a, b);
}

INLINE float64x2_t smaller_2(float64x2_t a, float64x2_t b)
{
    return vbslq_f64(vcltq_f64(a, b), a, b);
}

INLINE uint64x2_t not_at_least_2(float64x2_t a, float64x2_t b)
{
    return veorq_u64(vcgeq_f64(a, b), vdupq_n_u64(UINT64_MAX));
}

TWO_OPERANDS(v8, add, vaddq_f64)
TWO_OPERANDS(v8, subtract, vsubq_f64)
TWO_OPERANDS(v8, multiply, vmulq_f64)
TWO_OPERANDS(v8, divide, vdivq_f64)
TWO_OPERANDS(v8, larger, larger_2)
TWO_OPERANDS(v8, smaller, smaller_2)
TWO_OPERANDS(m8, above, vcgtq_f64)
TWO_OPERANDS(m8, at_least, vcgeq_f64)
TWO_OPERANDS(m8, at_most, vcleq_f64)
TWO_OPERANDS(m8, not_at_least, not_at_least_2)

INLINE v8 fused(v8 a, v8 b, v8 c)
{
#define PART(k) vfmaq_f64(c.part[k], a.part[k], b.part[k])
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE v8 product_less(v8 a, v8 b, v8 c)
{
#define PART(k) vfmaq_f64(vnegq_f64(c.part[k]), a.part[k], b.part[k])
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE v8 size_of(v8 x)
{
#define PART(k) vabsq_f64(x.part[k])
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE m8 both(m8 a, m8 b)
{
#define PART(k) vandq_u64(a.part[k], b.part[k])
    return ALL_PARTS(m8, PART);
#undef PART
}

INLINE v8 only(m8 mask, v8 x)
{
#define PART(k) vbslq_f64(mask.part[k], x.part[k], vdupq_n_f64(0))
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE n8 no_counts(void)
{
    return vdupq_n_u64(0);
}

INLINE n8 count(n8 counter, m8 mask)
{
    const uint64x2_t low = vaddq_u64(mask.part[0], mask.part[1]);
    return vsubq_u64(counter, vaddq_u64(low, vaddq_u64(mask.part[2], mask.part[3])));
}

INLINE uint64_t counted(n8 counter)
{
    return vaddvq_u64(counter);
}

INLINE x8 extreme(double x)
{
    return vdupq_n_f64(x);
}

INLINE x8 raise_to(x8 most, v8 x)
{
    for (int k = 0; k < 4; k++)
        most = larger_2(x.part[k], most);
    return most;
}

INLINE x8 raise_to_size(x8 most, v8 x)
{
    return raise_to(most, size_of(x));
}

INLINE x8 lower_to_positive(x8 least, v8 x)
{
    for (int k = 0; k < 4; k++) {
        const uint64x2_t lower = vandq_u64(vcltq_f64(x.part[k], least), vcgtzq_f64(x.part[k]));
        least = vbslq_f64(lower, x.part[k], least);
    }
    return least;
}

INLINE double largest(x8 x)
{
    return vmaxvq_f64(x);
}

INLINE double smallest(x8 x)
{
    return vminvq_f64(x);
}

INLINE v8 times_power(v8 x, v8 sum)
{
#define PART(k)                                                                                    \
    vreinterpretq_f64_u64(vaddq_u64(vreinterpretq_u64_f64(x.part[k]),                              \
                                    vshlq_n_u64(vreinterpretq_u64_f64(sum.part[k]), 52)))
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE float64x2_t unit_of_2(float64x2_t x, int emin)
{
    const uint64x2_t field = vdupq_n_u64(UINT64_C(0x7FF) << 52);
    const uint64x2_t least = vdupq_n_u64((uint64_t)(emin + 1023) << 52);
    const uint64x2_t one = vdupq_n_u64(UINT64_C(1023) << 52);
    uint64x2_t e = vbslq_u64(vceqzq_f64(x), one, vandq_u64(vreinterpretq_u64_f64(x), field));
    e = vbslq_u64(vcgtq_u64(e, least), e, least);
    return vreinterpretq_f64_u64(vsubq_u64(field, e));
}

INLINE v8 unit_of(v8 x, int emin)
{
#define PART(k) unit_of_2(x.part[k], emin)
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE v8 unit_of_normal(v8 x)
{
#define PART(k)                                                                                    \
    vreinterpretq_f64_u64(                                                                         \
        vbicq_u64(vdupq_n_u64(UINT64_C(0x7FF) << 52), vreinterpretq_u64_f64(x.part[k])))
    return ALL_PARTS(v8, PART);
#undef PART
}

INLINE v8 widen(float32x4_t low, float32x4_t high)
{
    return (v8){{vcvt_f64_f32(vget_low_f32(low)), vcvt_high_f64_f32(low),
                 vcvt_f64_f32(vget_low_f32(high)), vcvt_high_f64_f32(high)}};
}

INLINE v8 load8(enum kernel_type type, const void *data, size_t i)
{
    /* By bytes: no alignment is promised. */
    const uint8_t *words = (const uint8_t *)data + 2 * i, *singles = (const uint8_t *)data + 4 * i;
    switch (type) {
    case KERNEL_F32:
        return widen(vreinterpretq_f32_u8(vld1q_u8(singles)),
                     vreinterpretq_f32_u8(vld1q_u8(singles + 16)));
    case KERNEL_F16: {
        const float16x8_t some = vreinterpretq_f16_u8(vld1q_u8(words));
        return widen(vcvt_f32_f16(vget_low_f16(some)), vcvt_high_f32_f16(some));
    }
    case KERNEL_BF16: { /* the upper half of a float32 */
        const uint16x8_t some = vreinterpretq_u16_u8(vld1q_u8(words));
        return widen(vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(some), 16)),
                     vreinterpretq_f32_u32(vshll_high_n_u16(some, 16)));
    }
    default: {
        const uint8_t *bytes = (const uint8_t *)data + 8 * i;
#define PART(k) vreinterpretq_f64_u8(vld1q_u8(bytes + 16 * (k)))
        return ALL_PARTS(v8, PART);
#undef PART
    }
    }
}

#endif
