/* Numbers to elements. */
#include "exec/values/parts.h"

#include <math.h>
#include <string.h>

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Without branches, so that loops over it become SIMD code. */
static uint16_t half_bits(float x)
{
    uint32_t bits = float_bits(x);
    uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7FFFFFFFu;
    uint32_t odd = bits >> 13 & 1;
    uint32_t normal = (bits - (112u << 23) + 0xFFFu + odd) >> 13;
    /* Adding a half aligns a subnormal's bits with the end of the sum, rounded on the way. */
    uint32_t small = float_bits(bits_float(bits) + 0.5f) - 0x3F000000u;
    int32_t size = (int32_t)bits; /* signed: SSE2 compares nothing else */
    uint32_t code = size < (113 << 23) ? small : normal;
    code = size >= 0x477FF000 ? 0x7C00u : code;
    code = size > 0x7F800000 ? 0x7E00u : code;
    return (uint16_t)(sign | code);
}

static uint16_t bfloat_bits(float x)
{
    uint32_t bits = float_bits(x);
    uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40u;
    return (uint16_t)((int32_t)(bits & 0x7FFFFFFFu) > 0x7F800000 ? quiet : rounded);
}

float values_round_float(enum plumb_dtype dtype, float x)
{
    if (dtype == PLUMB_BF16)
        return bits_float((uint32_t)bfloat_bits(x) << 16);
    if (dtype != PLUMB_F16)
        return x;
    uint32_t code = half_bits(x), size = code & 0x7FFFu;
    float magnitude = size < 0x400    ? (float)size * 0x1p-24f
                      : size > 0x7BFF ? bits_float((size << 13) + (224u << 23))
                                      : bits_float((size << 13) + (112u << 23));
    return code & 0x8000u ? -magnitude : magnitude;
}

static void insert(struct encoder *e, double value, uint8_t code)
{
    unsigned at = e->n;
    while (at && e->value[at - 1] > value)
        at--;
    if (at && e->value[at - 1] == value)
        return; /* the other zero */
    memmove(e->value + at + 1, e->value + at, (e->n - at) * sizeof *e->value);
    memmove(e->code + at + 1, e->code + at, e->n - at);
    e->value[at] = value;
    e->code[at] = code;
    e->n++;
}

void encoder_init(struct encoder *e, enum plumb_dtype dtype)
{
    *e = (struct encoder){.dtype = dtype};
    unsigned bits = plumb_dtype_info(dtype)->bits;
    if (bits > 8)
        return;
    int nan = -1, inf = -1, minus_inf = -1;
    for (unsigned code = 0; code < 1u << bits; code++) {
        uint8_t byte = (uint8_t)code;
        double value;
        plumb_to_f64(dtype, &byte, 0, 1, false, &value);
        if (isnan(value))
            nan = nan < 0 ? (int)code : nan;
        else if (isinf(value))
            *(value > 0 ? &inf : &minus_inf) = (int)code;
        else
            insert(e, value, byte);
    }
    for (unsigned i = 0; i + 1 < e->n; i++) {
        double middle = e->value[i] / 2 + e->value[i + 1] / 2;
        e->limit[i] = e->code[i] & 1 ? nextafter(middle, -INFINITY) : middle;
    }
    e->limit[e->n - 1] = INFINITY;
    e->nan = (uint8_t)(nan < 0 ? e->code[e->n - 1] : nan);
    e->inf = (uint8_t)(inf < 0 ? e->code[e->n - 1] : inf);
    e->minus_inf = (uint8_t)(minus_inf < 0 ? e->code[0] : minus_inf);
}

static uint8_t small_code(const struct encoder *e, double x)
{
    if (isnan(x))
        return e->nan;
    if (isinf(x))
        return x > 0 ? e->inf : e->minus_inf;
    unsigned from = 0, to = e->n - 1;
    while (from < to) {
        unsigned middle = (from + to) / 2;
        if (x <= e->limit[middle])
            to = middle;
        else
            from = middle + 1;
    }
    return e->code[from];
}

static void put_nibble(uint8_t *data, uint64_t at, unsigned code)
{
    unsigned shift = at % 2 ? 4 : 0;
    data[at / 2] = (uint8_t)((data[at / 2] & 0xF0u >> shift) | (code & 15u) << shift);
}

void encoder_put(const struct encoder *e, void *data, uint64_t at, size_t n, const double *x)
{
    switch (e->dtype) {
    case PLUMB_F64:
    case PLUMB_C128:
        memcpy((double *)data + at, x, n * sizeof *x);
        return;
    case PLUMB_F32:
    case PLUMB_C64:
        for (size_t i = 0; i < n; i++)
            ((float *)data + at)[i] = (float)x[i];
        return;
    case PLUMB_F16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)data + at)[i] = half_bits((float)x[i]);
        return;
    case PLUMB_BF16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)data + at)[i] = bfloat_bits((float)x[i]);
        return;
    case PLUMB_F4_E2M1:
        for (size_t i = 0; i < n; i++)
            put_nibble(data, at + i, small_code(e, x[i]));
        return;
    default: {
        uint8_t *out = (uint8_t *)data + at;
        for (size_t i = 0; i < n; i++)
            out[i] = small_code(e, x[i]);
        return;
    }
    }
}

void values_put_floats(enum plumb_dtype dtype, void *data, uint64_t at, size_t n, const float *x)
{
    if (dtype == PLUMB_F32)
        memcpy((float *)data + at, x, n * sizeof *x);
    for (size_t i = 0; i < n && dtype == PLUMB_F16; i++)
        ((uint16_t *)data + at)[i] = half_bits(x[i]);
    for (size_t i = 0; i < n && dtype == PLUMB_BF16; i++)
        ((uint16_t *)data + at)[i] = bfloat_bits(x[i]);
}

void encoder_put_one(const struct encoder *e, void *data, uint64_t at, double number)
{
    encoder_put(e, data, at, 1, &number);
}

void values_put_ints(enum plumb_dtype dtype, void *data, uint64_t at, size_t n,
                     const uint64_t *values)
{
    switch (plumb_dtype_info(dtype)->bits) {
    case 64:
        memcpy((uint64_t *)data + at, values, n * sizeof *values);
        return;
    case 32:
        for (size_t i = 0; i < n; i++)
            ((uint32_t *)data + at)[i] = (uint32_t)values[i];
        return;
    case 16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)data + at)[i] = (uint16_t)values[i];
        return;
    case 8:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)data + at)[i] = (uint8_t)values[i];
        return;
    default:
        for (size_t i = 0; i < n; i++)
            put_nibble(data, at + i, (unsigned)(values[i] & 15));
        return;
    }
}
