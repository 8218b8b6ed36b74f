/* The table of element types, and conversions to float64. */
#include "plumb/dtype.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* 8-bit precisions and exponents: sign 1, exponent, mantissa as the name says. HiF8 tapers; its row
 * holds the precision near one. Integers have no limits here. */
static const struct plumb_dtype_info table[] = {
    [PLUMB_BOOL] = {"bool", "BOOL", PLUMB_KIND_BOOL, 8, 0, 0, 0},
    [PLUMB_U8] = {"uint8", "U8", PLUMB_KIND_UINT, 8, 0, 0, 0},
    [PLUMB_U16] = {"uint16", "U16", PLUMB_KIND_UINT, 16, 0, 0, 0},
    [PLUMB_U32] = {"uint32", "U32", PLUMB_KIND_UINT, 32, 0, 0, 0},
    [PLUMB_U64] = {"uint64", "U64", PLUMB_KIND_UINT, 64, 0, 0, 0},
    [PLUMB_I8] = {"int8", "I8", PLUMB_KIND_INT, 8, 0, 0, 0},
    [PLUMB_I16] = {"int16", "I16", PLUMB_KIND_INT, 16, 0, 0, 0},
    [PLUMB_I32] = {"int32", "I32", PLUMB_KIND_INT, 32, 0, 0, 0},
    [PLUMB_I64] = {"int64", "I64", PLUMB_KIND_INT, 64, 0, 0, 0},
    [PLUMB_F16] = {"float16", "F16", PLUMB_KIND_FLOAT, 16, 10, -14, 65504},
    [PLUMB_BF16] = {"bfloat16", "BF16", PLUMB_KIND_FLOAT, 16, 7, -126, 0x1.fep127},
    [PLUMB_F32] = {"float32", "F32", PLUMB_KIND_FLOAT, 32, 23, -126, 0x1.fffffep127},
    [PLUMB_F64] = {"float64", "F64", PLUMB_KIND_FLOAT, 64, 52, -1022, 0x1.fffffffffffffp1023},
    [PLUMB_C64] = {"complex64", "C64", PLUMB_KIND_COMPLEX, 64, 23, -126, 0x1.fffffep127},
    [PLUMB_C128] = {"complex128", NULL, PLUMB_KIND_COMPLEX, 128, 52, -1022, 0x1.fffffffffffffp1023},
    [PLUMB_F8_E4M3FN] = {"float8_e4m3fn", "F8_E4M3", PLUMB_KIND_FLOAT, 8, 3, -6, 448},
    [PLUMB_F8_E5M2] = {"float8_e5m2", "F8_E5M2", PLUMB_KIND_FLOAT, 8, 2, -14, 57344},
    [PLUMB_F8_E4M3FNUZ] = {"float8_e4m3fnuz", NULL, PLUMB_KIND_FLOAT, 8, 3, -7, 240},
    [PLUMB_F8_E5M2FNUZ] = {"float8_e5m2fnuz", NULL, PLUMB_KIND_FLOAT, 8, 2, -15, 57344},
    [PLUMB_F8_E8M0] = {"float8_e8m0fnu", "F8_E8M0", PLUMB_KIND_FLOAT, 8, 0, -127, 0x1p127},
    [PLUMB_HIF8] = {"hifloat8", NULL, PLUMB_KIND_FLOAT, 8, 3, -22, 32768},
    [PLUMB_I4] = {"int4", NULL, PLUMB_KIND_INT, 4, 0, 0, 0},
    [PLUMB_F4_E2M1] = {"float4_e2m1", "F4", PLUMB_KIND_FLOAT, 4, 1, 0, 6},
};
static_assert(sizeof table / sizeof table[0] == PLUMB_DTYPE_COUNT, "a row for each type");

const struct plumb_dtype_info *plumb_dtype_info(enum plumb_dtype dtype)
{
    return &table[dtype];
}

static const struct {
    const char *name;
    enum plumb_dtype dtype;
} aliases[] = {
    {"float", PLUMB_F32},  {"double", PLUMB_F64},
    {"half", PLUMB_F16},   {"long", PLUMB_I64},
    {"int", PLUMB_I32},    {"short", PLUMB_I16},
    {"cfloat", PLUMB_C64}, {"cdouble", PLUMB_C128},
    {"bf16", PLUMB_BF16},  {"float8_e8m0", PLUMB_F8_E8M0},
    {"hif8", PLUMB_HIF8},  {"float4_e2m1fn", PLUMB_F4_E2M1},
};

static bool is_same(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

enum plumb_dtype plumb_dtype_from_name(const char *name)
{
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (unsigned i = 0; i < PLUMB_DTYPE_COUNT; i++)
        if (is_same(name, table[i].name) ||
            (table[i].safetensors && is_same(name, table[i].safetensors)))
            return (enum plumb_dtype)i;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (is_same(name, aliases[i].name))
            return aliases[i].dtype;
    return PLUMB_DTYPE_COUNT;
}

bool plumb_dtype_bytes(enum plumb_dtype dtype, uint64_t count, uint64_t *bytes)
{
    if (table[dtype].bits == 4) {
        *bytes = count / 2 + count % 2;
        return true;
    }
    return !__builtin_mul_overflow(count, table[dtype].bits / 8u, bytes);
}

/* A float of one sign bit, `ebits` exponent and `mbits` mantissa bits, specials not interpreted. */
static double decode_float(unsigned code, unsigned ebits, unsigned mbits, int bias)
{
    unsigned mantissa = code & ((1u << mbits) - 1);
    unsigned exponent = (code >> mbits) & ((1u << ebits) - 1);
    double magnitude =
        exponent ? ldexp((double)(mantissa + (1u << mbits)), (int)exponent - bias - (int)mbits)
                 : ldexp((double)mantissa, 1 - bias - (int)mbits);
    return code >> (ebits + mbits) & 1 ? -magnitude : magnitude;
}

/* All exponent bits set: infinity or NaN, as IEEE 754 has it. */
static double decode_ieee(unsigned code, unsigned ebits, unsigned mbits, int bias)
{
    unsigned top = ((1u << ebits) - 1) << mbits;
    if ((code & top) != top)
        return decode_float(code, ebits, mbits, bias);
    if (code & ((1u << mbits) - 1))
        return NAN;
    return code >> (ebits + mbits) & 1 ? -INFINITY : INFINITY;
}

/* A prefix code says how many exponent bits follow; the rest is mantissa. */
static double decode_hif8(unsigned code)
{
    if (code == 0x80)
        return NAN;
    double sign = code & 0x80 ? -1 : 1;
    unsigned body = code & 0x7F;
    if (body == 0x6F)
        return sign * INFINITY;
    if (body >> 3 == 0) /* 0000: no exponent field, a power of two */
        return body ? sign * ldexp(1, (int)(body & 7) - 23) : sign * 0.0;

    unsigned width, prefix; /* of the exponent field and of the prefix */
    if (body >> 5) {
        width = (body >> 5) + 1;
        prefix = 2;
    } else {
        width = body >> 4;
        prefix = width ? 3 : 4;
    }
    unsigned mbits = 7 - prefix - width;
    int exponent = 0;
    if (width) {
        unsigned field = (body >> mbits) & ((1u << width) - 1);
        unsigned half = 1u << (width - 1); /* the field's sign bit, and the implied leading one */
        exponent = (int)(half + (field & (half - 1)));
        if (field & half)
            exponent = -exponent;
    }
    unsigned mantissa = body & ((1u << mbits) - 1);
    return sign * ldexp((double)(mantissa + (1u << mbits)), exponent - (int)mbits);
}

static double decode_small(enum plumb_dtype dtype, unsigned code)
{
    switch (dtype) {
    case PLUMB_F8_E4M3FN:
        return (code & 0x7F) == 0x7F ? NAN : decode_float(code, 4, 3, 7);
    case PLUMB_F8_E5M2:
        return decode_ieee(code, 5, 2, 15);
    case PLUMB_F8_E4M3FNUZ:
        return code == 0x80 ? NAN : decode_float(code, 4, 3, 8);
    case PLUMB_F8_E5M2FNUZ:
        return code == 0x80 ? NAN : decode_float(code, 5, 2, 16);
    case PLUMB_F8_E8M0:
        return code == 0xFF ? NAN : ldexp(1, (int)code - 127);
    case PLUMB_HIF8:
        return decode_hif8(code);
    case PLUMB_I4:
        return (double)((int)(code ^ 8) - 8);
    default: /* PLUMB_F4_E2M1 */
        return decode_float(code, 2, 1, 1);
    }
}

/* Types of at most 8 bits, the last of all: what their codes mean is worked out once. */
enum { SMALL_TYPES = PLUMB_DTYPE_COUNT - PLUMB_F8_E4M3FN };
static_assert(PLUMB_F4_E2M1 == PLUMB_DTYPE_COUNT - 1, "small types are the last");
static double small_values[SMALL_TYPES][256];

static void decode_all_small(void)
{
    for (unsigned type = 0; type < SMALL_TYPES; type++) {
        const enum plumb_dtype dtype = (enum plumb_dtype)(PLUMB_F8_E4M3FN + type);
        for (unsigned code = 0; code < 1u << table[dtype].bits; code++)
            small_values[type][code] = decode_small(dtype, code);
    }
}

static const double *values_of_small(enum plumb_dtype dtype)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, decode_all_small);
    return small_values[dtype - PLUMB_F8_E4M3FN];
}

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double half_to_f64(uint16_t code)
{
    uint32_t exponent = (code >> 10) & 31u, mantissa = code & 1023u;
    uint32_t sign = (uint32_t)(code & 0x8000u) << 16;
    if (exponent == 0) {
        double magnitude = (double)mantissa * 0x1p-24;
        return sign ? -magnitude : magnitude;
    }
    uint32_t wide = exponent == 31 ? 0x7F800000u : (exponent + 112) << 23;
    return (double)float_from_bits(sign | wide | mantissa << 13);
}

/* Elements of one fixed width: load with memcpy (no alignment is promised), swap, convert. */
#define CONVERT(type, swapped, expression)                                                         \
    do {                                                                                           \
        const unsigned char *from = (const unsigned char *)data + first * sizeof(type);            \
        for (size_t i = 0; i < count; i++) {                                                       \
            type x;                                                                                \
            memcpy(&x, from + i * sizeof x, sizeof x);                                             \
            if (swap)                                                                              \
                x = (type)swapped(x);                                                              \
            out[i] = (double)(expression);                                                         \
        }                                                                                          \
    } while (0)
#define SAME(x) (x)

static double f64_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void plumb_to_f64(enum plumb_dtype dtype, const void *data, uint64_t first, size_t count, bool swap,
                  double *out)
{
    switch (dtype) {
    case PLUMB_BOOL:
        CONVERT(uint8_t, SAME, x != 0);
        return;
    case PLUMB_U8:
        CONVERT(uint8_t, SAME, x);
        return;
    case PLUMB_U16:
        CONVERT(uint16_t, __builtin_bswap16, x);
        return;
    case PLUMB_U32:
        CONVERT(uint32_t, __builtin_bswap32, x);
        return;
    case PLUMB_U64:
        CONVERT(uint64_t, __builtin_bswap64, x);
        return;
    case PLUMB_I8:
        CONVERT(int8_t, SAME, x);
        return;
    case PLUMB_I16:
        CONVERT(uint16_t, __builtin_bswap16, (int16_t)x);
        return;
    case PLUMB_I32:
        CONVERT(uint32_t, __builtin_bswap32, (int32_t)x);
        return;
    case PLUMB_I64:
        CONVERT(uint64_t, __builtin_bswap64, (int64_t)x);
        return;
    case PLUMB_F16:
        CONVERT(uint16_t, __builtin_bswap16, half_to_f64(x));
        return;
    case PLUMB_BF16:
        CONVERT(uint16_t, __builtin_bswap16, float_from_bits((uint32_t)x << 16));
        return;
    case PLUMB_F32:
    case PLUMB_C64:
        CONVERT(uint32_t, __builtin_bswap32, float_from_bits(x));
        return;
    case PLUMB_F64:
    case PLUMB_C128:
        CONVERT(uint64_t, __builtin_bswap64, f64_from_bits(x));
        return;
    case PLUMB_I4:
    case PLUMB_F4_E2M1: {
        const uint8_t *from = data;
        const double *values = values_of_small(dtype);
        for (size_t i = 0; i < count; i++) {
            uint64_t at = first + i;
            unsigned byte = from[at / 2];
            out[i] = values[at % 2 ? byte >> 4 : byte & 15u];
        }
        return;
    }
    default: {
        const uint8_t *from = (const uint8_t *)data + first;
        const double *values = values_of_small(dtype);
        for (size_t i = 0; i < count; i++)
            out[i] = values[from[i]];
        return;
    }
    }
}

/* HiF8 loses mantissa bits as the exponent grows, and below 2^-15 holds powers of two only. */
static int hif8_precision(int exponent)
{
    int size = exponent < 0 ? -exponent : exponent;
    return size <= 3 ? 3 : size <= 7 ? 2 : size <= 15 ? 1 : 0;
}

double plumb_round_to(enum plumb_dtype dtype, double value)
{
    const struct plumb_dtype_info *info = &table[dtype];
    if (info->precision == 52 || isnan(value))
        return value;
    if (info->precision == 23 && fabs(value) >= 0x1p-126) /* others a caller may have flushed */
        return (double)(float)value;
    bool unsigned_type = dtype == PLUMB_F8_E8M0;
    if (unsigned_type && (value < 0 || isinf(value)))
        return NAN;
    if (value == 0 && unsigned_type)
        return 0x1p-127;

    double rounded = value;
    if (!isinf(value) && value != 0) {
        int exponent = ilogb(value);
        if (exponent < info->emin)
            exponent = info->emin;
        int precision = dtype == PLUMB_HIF8 ? hif8_precision(exponent) : info->precision;
        double quantum = ldexp(1, exponent - precision);
        rounded = nearbyint(value / quantum) * quantum;
        if (unsigned_type && rounded == 0)
            rounded = 0x1p-127;
    }
    bool one_zero = dtype == PLUMB_F8_E4M3FNUZ || dtype == PLUMB_F8_E5M2FNUZ || dtype == PLUMB_HIF8;
    if (rounded == 0 && one_zero)
        return 0;
    if (fabs(rounded) <= info->max_finite)
        return rounded;
    bool has_infinity = dtype == PLUMB_F16 || dtype == PLUMB_BF16 || dtype == PLUMB_F32 ||
                        dtype == PLUMB_C64 || dtype == PLUMB_F8_E5M2 || dtype == PLUMB_HIF8;
    return has_infinity ? copysign(INFINITY, value) : NAN;
}
