/* Rounding sketches to what is kept of them. */
#include "format/sketch_kept.h"

#include <math.h>

/* A sum is a multiple of 2^-15, a rest one of 2^-25, a sum of a block one of 2^-23: 16, 12 and 24
 * bits with their signs. */
enum { SUM_BITS = 15, SUM_MOST = 32767, REST_BITS = 25, REST_MOST = 2047, BLOCK_BITS = 23 };

/* The power of two that is to be divided by, so that multiples of 2^-bits up to `largest` fit. */
static int exponent_of(double largest, int bits)
{
    int exponent = 0;
    frexp(largest, &exponent);
    return rint(ldexp(largest, bits - exponent)) < ldexp(1, bits) ? exponent : exponent + 1;
}

/* As a multiple of 2^-bits; never -0. */
static double rounded(double x, int bits)
{
    return rint(ldexp(x, bits)) + 0.0;
}

static double largest_of(const float *sums, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fabs((double)sums[i]) > largest ? fabs((double)sums[i]) : largest;
    return largest;
}

static double limited(double x, double most)
{
    return x < -most - 1 ? -most - 1 : x > most ? most : x;
}

/* Every 64th sum from the j-th on. What they lose together fits into the rest, unless the rest was
 * there before: then the first sum takes some of it. */
static void round_fourth(struct plumb_sketch *sketch, size_t j, int shift)
{
    double whole = ldexp((double)sketch->rest[j], -shift), kept = 0;
    for (size_t i = j; i < PLUMB_SKETCH_SUMS; i += PLUMB_SKETCH_FINE) {
        const double sum = ldexp((double)sketch->sum[i], -shift), code = rounded(sum, SUM_BITS);
        whole += sum;
        kept += code;
        sketch->sum[i] = (float)ldexp(code, -SUM_BITS);
    }
    double rest = whole - ldexp(kept, -SUM_BITS);
    if (fabs(rest) > ldexp(2, -SUM_BITS)) {
        const double first = ldexp((double)sketch->sum[j], SUM_BITS);
        const double moved = limited(first + rounded(rest, SUM_BITS), SUM_MOST) - first;
        sketch->sum[j] = (float)ldexp(first + moved, -SUM_BITS);
        rest -= ldexp(moved, -SUM_BITS);
    }
    sketch->rest[j] = (float)ldexp(limited(rounded(rest, REST_BITS), REST_MOST), -REST_BITS);
}

static void round_blocks(struct plumb_sketch *sketch)
{
    double largest = 0;
    for (unsigned k = 0; k < sketch->axes; k++) {
        const size_t count = (size_t)sketch->axis[k].blocks * PLUMB_SKETCH_FOLD;
        largest = fmax(largest, largest_of(&sketch->axis[k].sum[0][0], count));
    }
    const int shift = exponent_of(largest, BLOCK_BITS);
    sketch->block_exponent = largest > 0 ? sketch->block_exponent + shift : 0;
    for (unsigned k = 0; k < sketch->axes; k++) {
        float *sums = &sketch->axis[k].sum[0][0];
        for (size_t i = 0; i < (size_t)sketch->axis[k].blocks * PLUMB_SKETCH_FOLD; i++)
            sums[i] =
                (float)ldexp(rounded(ldexp((double)sums[i], -shift), BLOCK_BITS), -BLOCK_BITS);
    }
}

void sketch_round(struct plumb_sketch *sketch)
{
    const double largest = largest_of(sketch->sum, PLUMB_SKETCH_SUMS);
    const int shift = exponent_of(largest, SUM_BITS);
    for (size_t j = 0; j < PLUMB_SKETCH_FINE; j++)
        round_fourth(sketch, j, shift);
    sketch->exponent = largest > 0 ? sketch->exponent + shift : 0;
    round_blocks(sketch);
}

/* -- Bytes ------------------------------------------------------------------------------------- */

size_t sketch_bytes(const struct plumb_sketch *sketch)
{
    size_t bytes = SKETCH_SUM_BYTES;
    for (unsigned k = 0; k < sketch->axes; k++)
        bytes += (size_t)sketch->axis[k].blocks * SKETCH_BLOCK_BYTES;
    return bytes;
}

/* Multiples of 2^-bits in so many bytes, the first of which counts least. */
static uint8_t *put_sums(uint8_t *bytes, const float *sums, size_t count, int bits)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned code = (unsigned)(int)ldexpf(sums[i], bits);
        for (int shift = 0; shift < bits; shift += 8)
            *bytes++ = (uint8_t)(code >> shift);
    }
    return bytes;
}

static const uint8_t *take_sums(const uint8_t *bytes, float *sums, size_t count, int bits)
{
    const int minus = 1 << bits;
    for (size_t i = 0; i < count; i++) {
        int code = 0;
        for (int shift = 0; shift < bits; shift += 8)
            code |= *bytes++ << shift;
        sums[i] = ldexpf((float)((code ^ minus) - minus), -bits);
    }
    return bytes;
}

void sketch_to_bytes(const struct plumb_sketch *sketch, uint8_t *bytes)
{
    bytes = put_sums(bytes, sketch->sum, PLUMB_SKETCH_SUMS, SUM_BITS);
    for (size_t j = 0; j < PLUMB_SKETCH_FINE; j += 2) {
        const unsigned low = (unsigned)(int)ldexpf(sketch->rest[j], REST_BITS) & 0xFFF;
        const unsigned high = (unsigned)(int)ldexpf(sketch->rest[j + 1], REST_BITS) & 0xFFF;
        for (unsigned k = 0; k < 3; k++)
            *bytes++ = (uint8_t)((low | high << 12) >> 8 * k);
    }
    for (unsigned k = 0; k < sketch->axes; k++)
        bytes = put_sums(bytes, &sketch->axis[k].sum[0][0],
                         (size_t)sketch->axis[k].blocks * PLUMB_SKETCH_FOLD, BLOCK_BITS);
}

static float rest_of(unsigned code)
{
    return ldexpf((float)((int)((code & 0xFFF) ^ 0x800) - 0x800), -REST_BITS);
}

void sketch_from_bytes(struct plumb_sketch *sketch, const uint8_t *bytes)
{
    bytes = take_sums(bytes, sketch->sum, PLUMB_SKETCH_SUMS, SUM_BITS);
    for (size_t j = 0; j < PLUMB_SKETCH_FINE; j += 2, bytes += 3) {
        const unsigned both = bytes[0] | (unsigned)bytes[1] << 8 | (unsigned)bytes[2] << 16;
        sketch->rest[j] = rest_of(both);
        sketch->rest[j + 1] = rest_of(both >> 12);
    }
    for (unsigned k = 0; k < sketch->axes; k++)
        bytes = take_sums(bytes, &sketch->axis[k].sum[0][0],
                          (size_t)sketch->axis[k].blocks * PLUMB_SKETCH_FOLD, BLOCK_BITS);
}
