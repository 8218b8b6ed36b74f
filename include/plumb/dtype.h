/* Element types: one table with names, sizes and numeric limits, and exact conversions.
 *
 * All functions are pure and thread-safe. */
#ifndef PLUMB_DTYPE_H
#define PLUMB_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_dtype {
    PLUMB_BOOL,
    PLUMB_U8,
    PLUMB_U16,
    PLUMB_U32,
    PLUMB_U64,
    PLUMB_I8,
    PLUMB_I16,
    PLUMB_I32,
    PLUMB_I64,
    PLUMB_F16,
    PLUMB_BF16,
    PLUMB_F32,
    PLUMB_F64,
    PLUMB_C64,
    PLUMB_C128,
    PLUMB_F8_E4M3FN,
    PLUMB_F8_E5M2,
    PLUMB_F8_E4M3FNUZ,
    PLUMB_F8_E5M2FNUZ,
    PLUMB_F8_E8M0,
    PLUMB_HIF8,
    PLUMB_I4,      /* two to a byte, low nibble first */
    PLUMB_F4_E2M1, /* two to a byte, low nibble first */
    PLUMB_DTYPE_COUNT
};

enum plumb_kind {
    PLUMB_KIND_BOOL,
    PLUMB_KIND_UINT,
    PLUMB_KIND_INT,
    PLUMB_KIND_FLOAT,
    PLUMB_KIND_COMPLEX
};

struct plumb_dtype_info {
    const char *name;        /* "float32"; torch's name without "torch." where torch has the type */
    const char *safetensors; /* "F32", or NULL when the format has no such type */
    enum plumb_kind kind;
    uint8_t bits; /* of one element: 4, 8, 16, 32, 64, 128 */
    int8_t
        precision; /* stored mantissa bits of a float (23 for float32); of one part of a complex */
    int16_t emin;  /* smallest normal exponent of a float */
    double max_finite; /* largest finite value of a float */
};

/* The table's row; dtype must be below PLUMB_DTYPE_COUNT. */
const struct plumb_dtype_info *plumb_dtype_info(enum plumb_dtype dtype);

/* Looks a name up: "float32", "torch.float32", "torch.float", "half", "F32", "bfloat16", ...
 * Returns PLUMB_DTYPE_COUNT when there is none. */
enum plumb_dtype plumb_dtype_from_name(const char *name);

/* Bytes that count elements take (half a byte each for packed types, rounded up).
 * Returns false on overflow. */
bool plumb_dtype_bytes(enum plumb_dtype dtype, uint64_t count, uint64_t *bytes);

/* Real numbers an element holds: 2 for complex types, else 1. */
static inline unsigned plumb_dtype_parts(enum plumb_dtype dtype)
{
    return dtype == PLUMB_C64 || dtype == PLUMB_C128 ? 2 : 1;
}

/* Converts count real numbers, starting with number `first` of the packed array at data, to
 * float64. Exact, but for 64-bit integers above 2^53, which are rounded to nearest even. A complex
 * element counts as two numbers, real part first. data needs no alignment. With swap, elements are
 * stored in the other byte order. */
void plumb_to_f64(enum plumb_dtype dtype, const void *data, uint64_t first, size_t count, bool swap,
                  double *out);

/* Rounds a float64 to the nearest value of the type, ties to even, and returns it as float64.
 * Overflow gives infinity, or NaN where the type has none. Float types only. */
double plumb_round_to(enum plumb_dtype dtype, double value);

/* Stores count numbers at out (no alignment needed) as elements of the type: floats rounded to
 * nearest even, integers truncated and wrapped (NaN: 0), bool: not zero. Not for complex and packed
 * 4-bit types. */
void plumb_from_f64(enum plumb_dtype dtype, const double *in, size_t count, void *out);

#ifdef __cplusplus
}
#endif
#endif
