/* Uniform and normal values whose every element depends on the key and its index alone.
 *
 * Only arithmetic that IEEE 754 defines to the last bit is used, no sin, cos or log of a
 * library, so that two machines that check the same dump feed their devices the same bytes. */
#include "exec/values/parts.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 }; /* even: two numbers share 64 bits */

uint64_t value_key(uint64_t seed, const char *call, const char *position)
{
    const char *const parts[] = {call, ".", position};
    uint64_t hash = value_bits(seed, 0);
    for (size_t i = 0; i < 3; i++)
        for (const char *p = parts[i]; *p; p++)
            hash = (hash ^ (unsigned char)*p) * 0x100000001B3u;
    return value_bits(hash, 0);
}

uint32_t value_draw(struct value_draws *draws)
{
    if (draws->mt)
        return mt19937_next(draws->mt);
    uint64_t index = draws->next++;
    return (uint32_t)(value_bits(draws->key, index / 2) >> 32 * (index % 2));
}

/* The 32-bit draws [first, first+n); first is even. */
static void draw32(uint64_t key, uint64_t first, size_t n, uint32_t *out)
{
    for (size_t i = 0; i < n / 2; i++) {
        uint64_t bits = value_bits(key, first / 2 + i);
        out[2 * i] = (uint32_t)bits;
        out[2 * i + 1] = (uint32_t)(bits >> 32);
    }
    if (n % 2)
        out[n - 1] = (uint32_t)value_bits(key, first / 2 + n / 2);
}

/* Numbers from [0, 1): 53 bits of them for float64, else 32. */
static void draw_unit(const struct fill *fill, uint64_t first, size_t n, double *out)
{
    if (plumb_dtype_info(fill->dtype)->precision == 52) {
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = value_bits(fill->key, first + i) >> 12 | 0x3FF0000000000000u;
            memcpy(&out[i], &bits, sizeof bits);
            out[i] -= 1;
        }
        return;
    }
    uint32_t bits[BLOCK];
    draw32(fill->key, first, n, bits);
    for (size_t i = 0; i < n; i++)
        out[i] = (double)(int32_t)bits[i] * 0x1p-32 + 0.5; /* signed: there is an instruction */
}

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* ---- Complex --------------------------------------------------------------------------------- */

/* A point of the unit circle: a rational one of an eighth, put into one of the eight. Not quite
 * evenly spread, and no worse for it. */
static void direction(uint64_t bits, double *re, double *im)
{
    double t = (double)(bits >> 12) * 0x1p-52 * 0.41421356237309503;
    double a = (1 - t * t) / (1 + t * t), b = 2 * t / (1 + t * t);
    *re = bits & 1 ? a : b;
    *im = bits & 1 ? b : a;
    *re = bits & 2 ? -*re : *re;
    *im = bits & 4 ? -*im : *im;
}

static void fill_complex(const struct fill *fill, const struct encoder *encoder)
{
    /* Far enough inside that rounding the parts does not lead out. */
    double lo = fill->limits.lo, hi = fill->limits.hi;
    double eps = ldexp(4, -plumb_dtype_info(fill->dtype)->precision);
    bool thin = lo * (1 + eps) > hi * (1 - eps) || isinf(lo);
    for (uint64_t i = 0; i < fill->count; i++) {
        uint64_t bits = value_bits(fill->key, 2 * i);
        double u = (double)(value_bits(fill->key, 2 * i + 1) >> 11) * 0x1p-53;
        double part[2];
        if (thin) {
            part[bits & 1] = bits & 2 ? -lo : lo;
            part[~bits & 1] = 0;
        } else {
            direction(bits, &part[0], &part[1]);
            double size = lo * (1 + eps) * (1 - u) + hi * (1 - eps) * u;
            part[0] *= size;
            part[1] *= size;
        }
        encoder_put(encoder, fill->data, 2 * i, 2, part);
    }
}

/* ---- Integers -------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

static void uniform_ints(const struct fill *fill)
{
    uint64_t first = fill->limits.first, span = fill->limits.span;
    uint64_t values[BLOCK];
    uint32_t bits[BLOCK];
    for (uint64_t at = 0; at < fill->count; at += BLOCK) {
        size_t n = fill->count - at < BLOCK ? (size_t)(fill->count - at) : BLOCK;
        if (span <= UINT32_MAX) {
            draw32(fill->key, at, n, bits);
            for (size_t i = 0; i < n; i++)
                values[i] = first + ((bits[i] * (span + 1)) >> 32);
        } else {
            for (size_t i = 0; i < n; i++) {
                wide product = (wide)value_bits(fill->key, at + i) * ((wide)span + 1);
                values[i] = first + (uint64_t)(product >> 64);
            }
        }
        values_put_ints(fill->dtype, fill->data, at, n, values);
    }
}

/* float32 and narrower, in float32: twice as many at once. */
static void uniform_floats(const struct fill *fill)
{
    float lo = (float)fill->limits.lo, hi = (float)fill->limits.hi, values[BLOCK];
    uint32_t bits[BLOCK];
    for (uint64_t at = 0; at < fill->count; at += BLOCK) {
        size_t n = fill->count - at < BLOCK ? (size_t)(fill->count - at) : BLOCK;
        draw32(fill->key, at, n, bits);
        for (size_t i = 0; i < n; i++) {
            float unit = (float)(int32_t)(bits[i] >> 8) * 0x1p-24f;
            float x = lo * (1 - unit) + hi * unit; /* hi - lo might overflow */
            x = x < lo ? lo : x;
            values[i] = x > hi ? hi : x;
        }
        values_put_floats(fill->dtype, fill->data, at, n, values);
    }
}

static void fill_constant(const struct fill *fill, const struct encoder *encoder)
{
    for (uint64_t i = 0; i < fill->count; i++)
        encoder_put_one(encoder, fill->data, i, fill->limits.lo);
}

void fill_uniform(const struct fill *fill, const struct encoder *encoder)
{
    enum plumb_kind kind = plumb_dtype_info(fill->dtype)->kind;
    if (kind == PLUMB_KIND_COMPLEX) {
        fill_complex(fill, encoder);
        return;
    }
    if (kind != PLUMB_KIND_FLOAT) {
        uniform_ints(fill);
        return;
    }
    double lo = fill->limits.lo, hi = fill->limits.hi, unit[BLOCK];
    if (lo == hi) {
        fill_constant(fill, encoder);
        return;
    }
    if (fill->dtype == PLUMB_F32 || fill->dtype == PLUMB_F16 || fill->dtype == PLUMB_BF16) {
        uniform_floats(fill);
        return;
    }
    for (uint64_t at = 0; at < fill->count; at += BLOCK) {
        size_t n = fill->count - at < BLOCK ? (size_t)(fill->count - at) : BLOCK;
        draw_unit(fill, at, n, unit);
        for (size_t i = 0; i < n; i++)
            unit[i] = clamp(lo * (1 - unit[i]) + hi * unit[i], lo, hi);
        encoder_put(encoder, fill->data, at, n, unit);
    }
}

/* ---- Normal ---------------------------------------------------------------------------------- */

/* Natural logarithm of a normal number below one, to about 1e-14. */
static double logarithm(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    memcpy(&x, &bits, sizeof bits);
    if (x > 1.4142135623730951) {
        x /= 2;
        exponent++;
    }
    double s = (x - 1) / (x + 1), square = s * s, sum = 0;
    for (int k = 19; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return exponent * 0.6931471805599453 + 2 * s * sum;
}

/* The number that a standard normal variable is below with probability p: P. J. Acklam's rational
 * approximation, good to 1.2e-9 of the value. */
static double quantile(double p)
{
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                               -2.759285104469687e+02, 1.383577518672690e+02,
                               -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                               -1.556989798598866e+02, 6.680131188771972e+01,
                               -1.328068155288572e+01, 1};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                               -2.400758277161838e+00, -2.549732539343734e+00,
                               4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00, 1};
    double tail = p < 0.5 ? p : 1 - p;
    double top = 0, bottom = 0;
    if (tail < 0.02425) {
        double q = sqrt(-2 * logarithm(tail));
        for (int i = 0; i < 6; i++)
            top = top * q + c[i];
        for (int i = 0; i < 5; i++)
            bottom = bottom * q + d[i];
        return p < 0.5 ? top / bottom : -top / bottom;
    }
    double q = p - 0.5, r = q * q;
    for (int i = 0; i < 6; i++) {
        top = top * r + a[i];
        bottom = bottom * r + b[i];
    }
    return q * top / bottom;
}

/* The limits are six standard deviations apart; what is beyond is put on them. */
void fill_normal(const struct fill *fill, const struct encoder *encoder)
{
    enum plumb_kind kind = plumb_dtype_info(fill->dtype)->kind;
    if (kind == PLUMB_KIND_COMPLEX || kind == PLUMB_KIND_BOOL) {
        fill_uniform(fill, encoder);
        return;
    }
    double lo = fill->limits.lo, hi = fill->limits.hi, unit[BLOCK];
    uint64_t values[BLOCK], span = fill->limits.span;
    for (uint64_t at = 0; at < fill->count; at += BLOCK) {
        size_t n = fill->count - at < BLOCK ? (size_t)(fill->count - at) : BLOCK;
        draw_unit(fill, at, n, unit);
        for (size_t i = 0; i < n; i++)
            unit[i] = clamp(0.5 + quantile(unit[i] + 0x1p-54) / 6, 0, 1);
        if (kind == PLUMB_KIND_FLOAT) {
            for (size_t i = 0; i < n; i++)
                unit[i] = lo == hi ? lo : clamp(lo * (1 - unit[i]) + hi * unit[i], lo, hi);
            encoder_put(encoder, fill->data, at, n, unit);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            double steps = floor(unit[i] * (double)span + 0.5);
            values[i] = fill->limits.first + (steps >= (double)span ? span : (uint64_t)steps);
        }
        values_put_ints(fill->dtype, fill->data, at, n, values);
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void put_ends(const struct fill *fill, const struct encoder *encoder)
{
    const struct value_limits *limits = &fill->limits;
    uint64_t last = fill->count - 1;
    unsigned parts = plumb_dtype_parts(fill->dtype);
    enum plumb_kind kind = plumb_dtype_info(fill->dtype)->kind;
    if (kind == PLUMB_KIND_BOOL)
        return;
    if (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX) {
        uint64_t end = limits->first + limits->span;
        values_put_ints(fill->dtype, fill->data, 0, 1, &limits->first);
        values_put_ints(fill->dtype, fill->data, last, 1, &end);
        return;
    }
    double low[2] = {limits->minus_inf ? -INFINITY : limits->lo, 0};
    double high[2] = {limits->inf ? INFINITY : limits->hi, 0};
    double nan[2] = {NAN, 0};
    encoder_put(encoder, fill->data, 0, parts, low);
    encoder_put(encoder, fill->data, last * parts, parts, high);
    if (limits->nan)
        encoder_put(encoder, fill->data, last >= 2 ? parts : 0, parts, nan);
}

void fill_values(const struct fill *fill, enum input_kind inputs)
{
    struct encoder encoder;
    encoder_init(&encoder, fill->dtype);
    if (inputs == INPUTS_ADVERSARIAL)
        fill_adversarial(fill, &encoder);
    else if (inputs == INPUTS_NORMAL)
        fill_normal(fill, &encoder);
    else
        fill_uniform(fill, &encoder);
    put_ends(fill, &encoder);
}
