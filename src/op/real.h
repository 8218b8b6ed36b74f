/* The number type that operators compute in. Every file of this room but blas.c and registry.c
 * is compiled once for each: float for devices, double for the reference, long double for the
 * reference of float64. OP_REAL says which (32, 64 or 80). Float and double have a second copy
 * for processors with AVX2 (OP_AVX2), of the same results to the last bit: the compiler may use
 * wider vectors, but neither reorder nor fuse. Names that must differ between the copies go
 * through OP_SYM. */
#ifndef OP_REAL_H
#define OP_REAL_H

#include <float.h>
#include <tgmath.h>

#if OP_REAL == 32
typedef float real;
#ifdef OP_AVX2
#define OP_SYM(name) name##_f32_avx2
#else
#define OP_SYM(name) name##_f32
#endif
#define REAL_EPS FLT_EPSILON
#define REAL_MAX FLT_MAX
#elif OP_REAL == 64
typedef double real;
#ifdef OP_AVX2
#define OP_SYM(name) name##_f64_avx2
#else
#define OP_SYM(name) name##_f64
#endif
#define REAL_EPS DBL_EPSILON
#define REAL_MAX DBL_MAX
#elif OP_REAL == 80
typedef long double real;
#define OP_SYM(name) name##_f80
#define REAL_EPS LDBL_EPSILON
#define REAL_MAX LDBL_MAX
#else
#error "OP_REAL must be 32, 64 or 80"
#endif

/* A constant of the type; write enough digits for long double: R(0.70710678118654752440L). */
#define R(x) ((real)(x))

#endif
