/* Rounding sketches to what is kept of them. */
#include "format/sketch_kept.h"

#include <math.h>

const struct sketch_digits *sketch_digits(int version)
{
    static const struct sketch_digits now = {.sum = 10,
                                             .rest = 22,
                                             .block = 19,
                                             .rest_bits = 14,
                                             .fold = 2,
                                             .down = true,
                                             .exponents = true};
    static const struct sketch_digits old = {
        .sum = 15, .rest = 25, .block = 23, .rest_bits = 12, .fold = 4};
    return version == 2 ? &old : &now;
}

/* -- Blocks ------------------------------------------------------------------------------------ */

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

void sketch_divide(struct plumb_sketch *sketch, enum plumb_dtype dtype, unsigned rank,
                   const int64_t *shape)
{
    enum { LEAST_RUN = 64 };
    struct plumb_sketch_axis found[PLUMB_SKETCH_AXES];
    unsigned count = 0;
    uint64_t inner = plumb_dtype_parts(dtype);
    sketch->axes = 0;
    for (unsigned i = rank; i-- && count < PLUMB_SKETCH_AXES;) {
        const uint64_t size = (uint64_t)shape[i];
        if (!size)
            return;
        uint64_t blocks = size * inner / LEAST_RUN;
        blocks = blocks > PLUMB_SKETCH_BLOCKS ? PLUMB_SKETCH_BLOCKS : blocks ? blocks : 1;
        uint64_t length = divide_up(size, blocks < size ? blocks : size);
        if (sketch->version != 2 && inner == 1 && size % LEAST_RUN == 0) /* rows of whole tiles */
            length = divide_up(length, LEAST_RUN) * LEAST_RUN;
        blocks = divide_up(size, length);
        if (blocks > 1)
            found[count++] = (struct plumb_sketch_axis){
                .axis = i, .blocks = (unsigned)blocks, .size = size, .length = length};
        inner *= size;
    }
    for (unsigned k = 0; k < count; k++)
        sketch->axis[k] = found[count - 1 - k];
    sketch->axes = count;
}

/* -- Rounding ---------------------------------------------------------------------------------- */

/* The power of two that is to be divided by, so that multiples of 2^-bits up to `largest` fit. */
static int exponent_of(double largest, int bits)
{
    int exponent = 0;
    frexp(largest, &exponent);
    return rint(ldexp(largest, bits - exponent)) < ldexp(1, bits) ? exponent : exponent + 1;
}

static double limited(double x, double most)
{
    return x < -most - 1 ? -most - 1 : x > most ? most : x;
}

/* Every 64th sum from the j-th on, in steps, which are 1 / scale of what they are. What they lose
 * together fits into the rest, unless the rest was there before: then the first sum takes some of
 * it. Zeros are never -0. */
static void round_fourth(struct plumb_sketch *sketch, const struct sketch_digits *digits, size_t j,
                         double scale)
{
    const double steps = (double)(1 << digits->sum), fine = (double)(1 << digits->rest);
    double whole = (double)sketch->rest[j] * scale, kept = 0;
    for (size_t i = j; i < PLUMB_SKETCH_SUMS; i += PLUMB_SKETCH_FINE) {
        const double sum = (double)sketch->sum[i] * scale, code = rint(sum) + 0.0;
        whole += sum;
        kept += code;
        sketch->sum[i] = (float)(code / steps);
    }
    double rest = whole - kept;
    if (fabs(rest) > 2) {
        const double first = (double)sketch->sum[j] * steps;
        const double moved = limited(first + rint(rest), steps - 1) - first;
        sketch->sum[j] = (float)((first + moved) / steps);
        rest -= moved;
    }
    const double most = (double)(1 << (digits->rest_bits - 1)) - 1;
    sketch->rest[j] = (float)(limited(rint(rest / steps * fine) + 0.0, most) / fine);
}

static void round_sums(struct plumb_sketch *sketch, const struct sketch_digits *digits)
{
    double largest = 0; /* not by fmax, at which gcc 12 for ARM breaks down */
    for (size_t i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        const double size = fabs((double)sketch->sum[i]);
        largest = size > largest ? size : largest;
    }
    const int shift = exponent_of(largest, digits->sum);
    const double scale = ldexp(1, digits->sum - shift);
    for (size_t j = 0; j < PLUMB_SKETCH_FINE; j++)
        round_fourth(sketch, digits, j, scale);
    sketch->exponent = largest > 0 ? sketch->exponent + shift : 0;
}

/* The same for sums that are rounded down: -1 fits, 1 does not. */
static int exponent_down(double least, double largest)
{
    int below = 0, above = 0;
    const bool power = frexp(least, &below) == -0.5;
    frexp(largest, &above);
    below -= power;
    return largest > 0 && (above > below || !(least < 0)) ? above : below;
}

static void round_blocks(struct plumb_sketch *sketch, const struct sketch_digits *digits)
{
    double least = 0, largest = 0;
    for (unsigned k = 0; k < sketch->axes; k++)
        for (unsigned b = 0; b < sketch->axis[k].blocks; b++)
            for (unsigned j = 0; j < digits->fold; j++) {
                least = fmin(least, (double)sketch->axis[k].sum[b][j]);
                largest = fmax(largest, (double)sketch->axis[k].sum[b][j]);
            }
    const int shift = digits->down ? exponent_down(least, largest)
                                   : exponent_of(fmax(-least, largest), digits->block);
    sketch->block_exponent = least < 0 || largest > 0 ? sketch->block_exponent + shift : 0;
    for (unsigned k = 0; k < sketch->axes; k++)
        for (unsigned b = 0; b < sketch->axis[k].blocks; b++)
            for (unsigned j = 0; j < digits->fold; j++) {
                const double sum = ldexp((double)sketch->axis[k].sum[b][j], digits->block - shift);
                sketch->axis[k].sum[b][j] =
                    (float)ldexp((digits->down ? floor(sum) : rint(sum)) + 0.0, -digits->block);
            }
}

void sketch_round(struct plumb_sketch *sketch)
{
    const struct sketch_digits *digits = sketch_digits(sketch->version);
    round_sums(sketch, digits);
    round_blocks(sketch, digits);
}

/* -- Bytes ------------------------------------------------------------------------------------- */

/* Integers of any number of bits, one after the other; the first bit of a byte counts least. */
struct bits {
    uint8_t *bytes;
    uint64_t at;
    unsigned have; /* bits in at, below 8 between calls */
};

static void put_bits(struct bits *out, int value, int count)
{
    out->at |= ((uint64_t)(unsigned)value & ((UINT64_C(1) << count) - 1)) << out->have;
    for (out->have += (unsigned)count; out->have >= 8; out->have -= 8) {
        *out->bytes++ = (uint8_t)out->at;
        out->at >>= 8;
    }
}

struct taken {
    const uint8_t *bytes;
    uint64_t at;
    unsigned have;
};

static int take_bits(struct taken *in, int count)
{
    for (; in->have < (unsigned)count; in->have += 8)
        in->at |= (uint64_t)*in->bytes++ << in->have;
    const int minus = 1 << (count - 1), value = (int)(in->at & ((UINT64_C(1) << count) - 1));
    in->at >>= count;
    in->have -= (unsigned)count;
    return (value ^ minus) - minus;
}

size_t sketch_bytes(const struct plumb_sketch *sketch)
{
    const struct sketch_digits *digits = sketch_digits(sketch->version);
    size_t blocks = 0;
    for (unsigned k = 0; k < sketch->axes; k++)
        blocks += sketch->axis[k].blocks;
    const size_t bits = PLUMB_SKETCH_SUMS * (size_t)(digits->sum + 1) +
                        PLUMB_SKETCH_FINE * (size_t)digits->rest_bits +
                        blocks * digits->fold * (size_t)(digits->block + 1);
    return (bits + 31) / 32 * 4 + (digits->exponents ? 4 : 0);
}

static void put_sums(struct bits *out, const float *sums, size_t count, int digits, int bits)
{
    for (size_t i = 0; i < count; i++)
        put_bits(out, (int)(sums[i] * (float)(1 << digits)), bits);
}

static void take_sums(struct taken *in, float *sums, size_t count, int digits, int bits)
{
    for (size_t i = 0; i < count; i++)
        sums[i] = (float)take_bits(in, bits) / (float)(1 << digits);
}

void sketch_to_bytes(const struct plumb_sketch *sketch, uint8_t *bytes)
{
    const struct sketch_digits *digits = sketch_digits(sketch->version);
    struct bits out = {.bytes = bytes};
    if (digits->exponents) {
        put_bits(&out, sketch->exponent, 16);
        put_bits(&out, sketch->block_exponent, 16);
    }
    put_sums(&out, sketch->sum, PLUMB_SKETCH_SUMS, digits->sum, digits->sum + 1);
    put_sums(&out, sketch->rest, PLUMB_SKETCH_FINE, digits->rest, digits->rest_bits);
    for (unsigned k = 0; k < sketch->axes; k++)
        for (unsigned b = 0; b < sketch->axis[k].blocks; b++)
            put_sums(&out, sketch->axis[k].sum[b], digits->fold, digits->block, digits->block + 1);
    while (out.bytes < bytes + sketch_bytes(sketch))
        put_bits(&out, 0, 8);
}

void sketch_from_bytes(struct plumb_sketch *sketch, const uint8_t *bytes)
{
    const struct sketch_digits *digits = sketch_digits(sketch->version);
    struct taken in = {.bytes = bytes};
    if (digits->exponents) {
        sketch->exponent = take_bits(&in, 16);
        sketch->block_exponent = take_bits(&in, 16);
    }
    take_sums(&in, sketch->sum, PLUMB_SKETCH_SUMS, digits->sum, digits->sum + 1);
    take_sums(&in, sketch->rest, PLUMB_SKETCH_FINE, digits->rest, digits->rest_bits);
    for (unsigned k = 0; k < sketch->axes; k++)
        for (unsigned b = 0; b < sketch->axis[k].blocks; b++)
            take_sums(&in, sketch->axis[k].sum[b], digits->fold, digits->block, digits->block + 1);
}
