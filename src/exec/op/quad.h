/* IEEE binary128, 113 bits: the same numbers on every machine, where long double is 53, 64 or 113
 * bits wide. Computed in software by the compiler's library; its functions are those of glibc.
 *
 * Where long double is this type, it is that. Elsewhere it is __float128, which gcc and clang both
 * have; functions are declared here, since the headers of glibc hide them from clang. */
#ifndef OP_QUAD_H
#define OP_QUAD_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#if LDBL_MANT_DIG == 113
typedef long double quad;
#define QUAD_C(x) x##L
#define QUAD_FN(name) name##l
#define QUAD_FN_R(name) name##l_r
#elif defined __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#define QUAD_C(x) (__extension__ x##Q)
#define QUAD_FN(name) name##f128
#define QUAD_FN_R(name) name##f128_r
#else
#error "this compiler has no IEEE binary128 type"
#endif

/* A constant has to be written with 36 digits to be the nearest number: QUAD_C(0.1). */
#define QUAD_EPS QUAD_C(0x1p-112)
#define QUAD_MAX QUAD_C(0x1.ffffffffffffffffffffffffffffp+16383)

/* clang-format off */
#define QUAD_UNARY(F)                                                                              \
    F(exp) F(exp2) F(expm1) F(log) F(log2) F(log10) F(log1p) F(sqrt)                               \
    F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh)                           \
    F(asinh) F(acosh) F(atanh) F(erf) F(erfc) F(floor) F(ceil) F(trunc) F(rint) F(round)           \
    F(j0) F(j1) F(y0) F(y1)
#define QUAD_BINARY(F) F(pow) F(atan2) F(hypot) F(fmod) F(remainder)
/* clang-format on */

/* quad_exp(x) and so on: a function of libm. */
#define QUAD_DECLARE(name)                                                                         \
    quad QUAD_FN(name)(quad x);                                                                    \
    static inline quad quad_##name(quad x)                                                         \
    {                                                                                              \
        return QUAD_FN(name)(x);                                                                   \
    }
QUAD_UNARY(QUAD_DECLARE)
#undef QUAD_DECLARE

#define QUAD_DECLARE(name)                                                                         \
    quad QUAD_FN(name)(quad x, quad y);                                                            \
    static inline quad quad_##name(quad x, quad y)                                                 \
    {                                                                                              \
        return QUAD_FN(name)(x, y);                                                                \
    }
QUAD_BINARY(QUAD_DECLARE)
#undef QUAD_DECLARE

quad QUAD_FN(fma)(quad x, quad y, quad z);
quad QUAD_FN(ldexp)(quad x, int n);
quad QUAD_FN(frexp)(quad x, int *n);
quad QUAD_FN_R(lgamma)(quad x, int *sign);

static inline quad quad_fma(quad x, quad y, quad z)
{
    return QUAD_FN(fma)(x, y, z);
}

static inline quad quad_ldexp(quad x, int n)
{
    return QUAD_FN(ldexp)(x, n);
}

static inline quad quad_frexp(quad x, int *n)
{
    return QUAD_FN(frexp)(x, n);
}

static inline quad quad_lgamma(quad x)
{
    int sign;
    return QUAD_FN_R(lgamma)(x, &sign);
}

/* ---- The bits of a number: cheaper than arithmetic ------------------------------------------- */

/* high: sign, 15 bits of exponent, 48 of the mantissa */
struct quad_bits {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t low, high;
#else
    uint64_t high, low;
#endif
};

#define QUAD_SIGN 0x8000000000000000U
#define QUAD_INFINITE 0x7fff000000000000U

static inline struct quad_bits quad_to_bits(quad x)
{
    struct quad_bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline quad quad_from_bits(struct quad_bits bits)
{
    quad x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline quad quad_fabs(quad x)
{
    struct quad_bits bits = quad_to_bits(x);
    bits.high &= ~QUAD_SIGN;
    return quad_from_bits(bits);
}

static inline quad quad_copysign(quad size, quad sign)
{
    struct quad_bits bits = quad_to_bits(size);
    bits.high = (bits.high & ~QUAD_SIGN) | (quad_to_bits(sign).high & QUAD_SIGN);
    return quad_from_bits(bits);
}

static inline int quad_signbit(quad x)
{
    return (quad_to_bits(x).high & QUAD_SIGN) != 0;
}

static inline int quad_isfinite(quad x)
{
    return (quad_to_bits(x).high & QUAD_INFINITE) != QUAD_INFINITE;
}

static inline int quad_isinf(quad x)
{
    const struct quad_bits bits = quad_to_bits(x);
    return (bits.high & ~QUAD_SIGN) == QUAD_INFINITE && bits.low == 0;
}

static inline int quad_isnan(quad x)
{
    return !quad_isfinite(x) && !quad_isinf(x);
}

/* The number, where one is NaN. */
static inline quad quad_fmax(quad x, quad y)
{
    return quad_isnan(x) || x < y ? y : x;
}

static inline quad quad_fmin(quad x, quad y)
{
    return quad_isnan(x) || x > y ? y : x;
}

#endif
