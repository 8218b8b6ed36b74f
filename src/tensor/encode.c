/* The other way: float64 to stored elements. */
#include "plumb/dtype.h"

#include <math.h>
#include <string.h>

static uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A value that the type already holds exactly, as its bits: sign, ebits of exponent, mbits
 * below. */
static unsigned float_code(double value, unsigned ebits, unsigned mbits)
{
    const int bias = (1 << (ebits - 1)) - 1;
    const unsigned sign = (unsigned)(signbit(value) != 0) << (ebits + mbits);
    const unsigned top = ((1U << ebits) - 1) << mbits;
    if (isnan(value))
        return sign | top | 1U << (mbits - 1);
    if (isinf(value))
        return sign | top;
    double size = fabs(value);
    if (size < ldexp(1, 1 - bias))
        return sign | (unsigned)ldexp(size, bias - 1 + (int)mbits);
    const uint64_t bits = f64_bits(size);
    const unsigned exponent = (unsigned)((int)(bits >> 52) - 1023 + bias);
    return sign | exponent << mbits | (unsigned)((bits >> (52 - mbits)) & ((1U << mbits) - 1));
}

/* 8-bit floats have no common layout: the code is looked up. */
static void store_small(enum plumb_dtype dtype, const double *in, size_t count, uint8_t *out)
{
    uint8_t codes[256];
    double values[256];
    for (unsigned c = 0; c < 256; c++)
        codes[c] = (uint8_t)c;
    plumb_to_f64(dtype, codes, 0, 256, false, values);
    for (size_t k = 0; k < count; k++) {
        const double v = plumb_round_to(dtype, in[k]);
        unsigned c = 0;
        while (c < 255 && !(isnan(v) ? isnan(values[c]) : f64_bits(v) == f64_bits(values[c])))
            c++;
        /* Types without -0 or NaN give what is nearest to them. */
        if (c == 255 && f64_bits(v) != f64_bits(values[255]) && v == 0)
            for (c = 0; c < 255 && values[c] != 0;)
                c++;
        out[k] = (uint8_t)c;
    }
}

static int64_t to_int(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63 || value < -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

void plumb_from_f64(enum plumb_dtype dtype, const double *in, size_t count, void *out)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    uint8_t *bytes = out;
    if (info->kind == PLUMB_KIND_FLOAT && info->bits == 8) {
        store_small(dtype, in, count, bytes);
        return;
    }
    const size_t size = info->bits / 8;
    for (size_t k = 0; k < count; k++, bytes += size) {
        if (dtype == PLUMB_F64) {
            memcpy(bytes, &in[k], size);
        } else if (dtype == PLUMB_F32) {
            const float value = (float)in[k];
            memcpy(bytes, &value, size);
        } else if (info->kind == PLUMB_KIND_FLOAT) {
            const double value = plumb_round_to(dtype, in[k]);
            const uint16_t code = (uint16_t)float_code(value, dtype == PLUMB_F16 ? 5 : 8,
                                                       dtype == PLUMB_F16 ? 10 : 7);
            memcpy(bytes, &code, size);
        } else {
            /* Little end first: the low bytes are the wrapped value. */
            const int64_t value =
                info->kind == PLUMB_KIND_BOOL ? in[k] != 0 || isnan(in[k]) : to_int(in[k]);
            memcpy(bytes, &value, size);
        }
    }
}
