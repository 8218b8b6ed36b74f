/* The number type that operators compute in. Every file of this room but blas.c and registry.c
 * is compiled once for each: float for devices, double for the reference, IEEE binary128 for the
 * reference of float64. OP_REAL says which (32, 64 or 128). Float and double have a second copy
 * for processors with AVX2 (OP_AVX2), of the same results to the last bit: the compiler may use
 * wider vectors, but neither reorder nor fuse. Names that must differ between the copies go
 * through OP_SYM. */
#ifndef OP_REAL_H
#define OP_REAL_H

#include <float.h>

#if OP_REAL == 32
#include <tgmath.h>
typedef float real;
#ifdef OP_AVX2
#define OP_SYM(name) name##_f32_avx2
#else
#define OP_SYM(name) name##_f32
#endif
#define REAL_C(x) x##F
#define REAL_EPS FLT_EPSILON
#define REAL_MAX FLT_MAX
#elif OP_REAL == 64
#include <tgmath.h>
typedef double real;
#ifdef OP_AVX2
#define OP_SYM(name) name##_f64_avx2
#else
#define OP_SYM(name) name##_f64
#endif
#define REAL_C(x) x
#define REAL_EPS DBL_EPSILON
#define REAL_MAX DBL_MAX
#elif OP_REAL == 128
#include "exec/op/quad_math.h"
typedef quad real;
#define OP_SYM(name) name##_f128
#define REAL_C(x) QUAD_C(x)
#define REAL_EPS QUAD_EPS
#define REAL_MAX QUAD_MAX
#else
#error "OP_REAL must be 32, 64 or 128"
#endif

/* How exact real_sum() and real_dot() are: those of binary128 add up pairs of doubles. */
#if OP_REAL == 128
#define REAL_SUM_EPS QUAD_C(0x1p-96)
#else
#define REAL_SUM_EPS REAL_EPS
#endif

/* A number of the type. What is not an integer, nor a short binary fraction, is written
 * REAL_C(0.1), with 36 digits where there are so many: then it is the nearest one of each type. */
#define R(x) ((real)(x))

#endif
