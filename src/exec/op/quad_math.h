/* What <tgmath.h> is to the other types: exp(x) of binary128 is quad_exp(x), that of anything else
 * the function of double. <tgmath.h> itself knows __float128 with some compilers only. */
#ifndef OP_QUAD_MATH_H
#define OP_QUAD_MATH_H

#include "exec/op/quad_exp.h"

#include <math.h>

static inline int double_isfinite(double x)
{
    return isfinite(x);
}

static inline int double_isinf(double x)
{
    return isinf(x);
}

static inline int double_isnan(double x)
{
    return isnan(x);
}

static inline int double_signbit(double x)
{
    return signbit(x);
}

#undef isfinite
#undef isinf
#undef isnan
#undef signbit

/* clang-format off */
#define QUAD_PICK(x, own, other) _Generic((x), quad: own, default: other)
/* clang-format on */

#define isfinite(x) QUAD_PICK(x, quad_isfinite, double_isfinite)(x)
#define isinf(x) QUAD_PICK(x, quad_isinf, double_isinf)(x)
#define isnan(x) QUAD_PICK(x, quad_isnan, double_isnan)(x)
#define signbit(x) QUAD_PICK(x, quad_signbit, double_signbit)(x)

#define exp(x) QUAD_PICK(x, quad_fast_exp, exp)(x)
#define exp2(x) QUAD_PICK(x, quad_exp2, exp2)(x)
#define expm1(x) QUAD_PICK(x, quad_expm1, expm1)(x)
#define log(x) QUAD_PICK(x, quad_log, log)(x)
#define log2(x) QUAD_PICK(x, quad_log2, log2)(x)
#define log10(x) QUAD_PICK(x, quad_log10, log10)(x)
#define log1p(x) QUAD_PICK(x, quad_log1p, log1p)(x)
#define sqrt(x) QUAD_PICK(x, quad_sqrt, sqrt)(x)
#define sin(x) QUAD_PICK(x, quad_sin, sin)(x)
#define cos(x) QUAD_PICK(x, quad_cos, cos)(x)
#define tan(x) QUAD_PICK(x, quad_tan, tan)(x)
#define asin(x) QUAD_PICK(x, quad_asin, asin)(x)
#define acos(x) QUAD_PICK(x, quad_acos, acos)(x)
#define atan(x) QUAD_PICK(x, quad_atan, atan)(x)
#define sinh(x) QUAD_PICK(x, quad_sinh, sinh)(x)
#define cosh(x) QUAD_PICK(x, quad_cosh, cosh)(x)
#define tanh(x) QUAD_PICK(x, quad_tanh, tanh)(x)
#define asinh(x) QUAD_PICK(x, quad_asinh, asinh)(x)
#define acosh(x) QUAD_PICK(x, quad_acosh, acosh)(x)
#define atanh(x) QUAD_PICK(x, quad_atanh, atanh)(x)
#define erf(x) QUAD_PICK(x, quad_erf, erf)(x)
#define erfc(x) QUAD_PICK(x, quad_erfc, erfc)(x)
#define floor(x) QUAD_PICK(x, quad_floor, floor)(x)
#define ceil(x) QUAD_PICK(x, quad_ceil, ceil)(x)
#define trunc(x) QUAD_PICK(x, quad_trunc, trunc)(x)
#define rint(x) QUAD_PICK(x, quad_rint, rint)(x)
#define round(x) QUAD_PICK(x, quad_round, round)(x)
#define fabs(x) QUAD_PICK(x, quad_fabs, fabs)(x)

#define pow(x, y) QUAD_PICK((x) + (y), quad_pow, pow)(x, y)
#define atan2(x, y) QUAD_PICK((x) + (y), quad_atan2, atan2)(x, y)
#define hypot(x, y) QUAD_PICK((x) + (y), quad_hypot, hypot)(x, y)
#define fmod(x, y) QUAD_PICK((x) + (y), quad_fmod, fmod)(x, y)
#define remainder(x, y) QUAD_PICK((x) + (y), quad_remainder, remainder)(x, y)
#define copysign(x, y) QUAD_PICK((x) + (y), quad_copysign, copysign)(x, y)
#define fmax(x, y) QUAD_PICK((x) + (y), quad_fmax, fmax)(x, y)
#define fmin(x, y) QUAD_PICK((x) + (y), quad_fmin, fmin)(x, y)

#define fma(x, y, z) QUAD_PICK((x) + (y) + (z), quad_fma, fma)(x, y, z)
#define ldexp(x, n) QUAD_PICK(x, quad_ldexp, ldexp)(x, n)
#define frexp(x, n) QUAD_PICK(x, quad_frexp, frexp)(x, n)

#endif
