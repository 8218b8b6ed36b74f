/* Values that operators get wrong. A row (the last dimension) is cut into stretches, and each
 * gets a pattern; in tensors of many rows every second row has one pattern throughout, so that
 * sums along it meet nothing else. All values respect the limits, unless the operator takes any
 * number. */
#include "exec/values/parts.h"

#include <math.h>

enum { STRETCH = 16, MANY_ROWS = 8 };

enum pattern {
    PATTERN_UNIFORM,
    PATTERN_CANCEL, /* neighbours that add up to almost nothing */
    PATTERN_WIDE,   /* magnitudes spread evenly over many powers of two */
    PATTERN_TINY,   /* subnormals */
    PATTERN_EDGE,   /* the limits; where all is allowed, the largest values, infinities and NaN */
    PATTERN_ZERO,   /* zeros of both signs between ordinary values */
    PATTERN_HALF,   /* x.5, where rounding has ties */
    PATTERN_REPEAT, /* three values again and again: ties of sort, max and the like */
    PATTERNS
};

/* What the values of a tensor have in common. */
struct shape_of_values {
    const struct fill *fill;
    double lo, hi;
    double largest, tiniest, eps; /* of the type */
    int top, bottom;              /* exponents of the largest magnitude and of the smallest */
    int precision;
};

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

static double between(double lo, double hi, double u)
{
    return lo == hi ? lo : lo * (1 - u) + hi * u;
}

static double signed_by(uint64_t bits, double magnitude)
{
    return bits & 1 ? -magnitude : magnitude;
}

/* Number `at` of a pair: x or -x(1 + k eps); where the limits have one sign, x(1 + k eps). */
static double cancel(const struct shape_of_values *s, uint64_t at)
{
    uint64_t bits = value_bits(s->fill->key, at / 2 * 2);
    bool mixed = s->lo < 0 && s->hi > 0;
    double bound = s->hi < -s->lo ? s->hi : -s->lo;
    double x = mixed ? between(-bound, bound, unit(bits)) : between(s->lo, s->hi, unit(bits));
    if (at % 2 == 0)
        return x;
    double other = x * (1 + (double)(bits & 3) * s->eps);
    return mixed ? -other : other;
}

static double wide(const struct shape_of_values *s, uint64_t bits)
{
    int exponent = s->bottom + (int)(bits >> 40) % (s->top - s->bottom + 1);
    double magnitude = ldexp(1 + (double)(bits >> 8 & 0xFFFFFFFFu) * 0x1p-32, exponent);
    double x = signed_by(bits, magnitude);
    return x < s->lo || x > s->hi ? -x : x;
}

static double edge(const struct shape_of_values *s, uint64_t bits)
{
    if (!s->fill->specials)
        return bits & 1 ? s->lo : s->hi;
    switch (bits >> 1 & 7) {
    case 0:
        return NAN;
    case 1:
        return signed_by(bits, INFINITY);
    case 2:
        return signed_by(bits, ldexp(s->tiniest, s->precision)); /* the smallest normal one */
    case 3:
    case 4:
        return signed_by(bits, s->largest);
    default:
        return bits & 1 ? s->lo : s->hi;
    }
}

static double number(const struct shape_of_values *s, enum pattern pattern, uint64_t at,
                     uint64_t stretch)
{
    uint64_t bits = value_bits(s->fill->key, at);
    switch (pattern) {
    case PATTERN_CANCEL:
        return cancel(s, at);
    case PATTERN_WIDE:
        return wide(s, bits);
    case PATTERN_TINY:
        return signed_by(bits,
                         s->tiniest * (double)(1 + (bits >> 12) % ((uint64_t)1 << s->precision)));
    case PATTERN_EDGE:
        return edge(s, bits);
    case PATTERN_ZERO:
        return bits & 2 ? signed_by(bits, 0) : between(s->lo, s->hi, unit(bits));
    case PATTERN_HALF:
        return floor(between(s->lo, s->hi, unit(bits))) + 0.5;
    case PATTERN_REPEAT:
        return between(s->lo, s->hi, unit(value_bits(~s->fill->key, 3 * stretch + bits % 3)));
    default:
        return between(s->lo, s->hi, unit(bits));
    }
}

static uint64_t integer(const struct fill *fill, enum pattern pattern, uint64_t at,
                        uint64_t stretch)
{
    uint64_t bits = value_bits(fill->key, at);
    uint64_t first = fill->limits.first, span = fill->limits.span;
    uint64_t nearby = bits >> 2 & (span > 1 ? 1 : 0);
    if (pattern == PATTERN_EDGE || pattern == PATTERN_WIDE)
        return bits & 1 ? first + nearby : first + span - nearby;
    if ((pattern == PATTERN_ZERO || pattern == PATTERN_TINY) && bits & 2 && 0 - first <= span)
        return 0;
    if (pattern == PATTERN_REPEAT || pattern == PATTERN_HALF)
        bits = value_bits(~fill->key, 3 * stretch + bits % 3);
    return span == UINT64_MAX ? bits : first + bits % (span + 1);
}

static int exponent_of(double x)
{
    return x != 0 && isfinite(x) ? ilogb(x) : 0;
}

static struct shape_of_values shape_of_values(const struct fill *fill)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(fill->dtype);
    double lo = fill->limits.lo, hi = fill->limits.hi;
    double big = hi > -lo ? hi : -lo;
    struct shape_of_values s = {
        .fill = fill,
        .lo = lo,
        .hi = hi,
        .largest = info->max_finite,
        .tiniest = ldexp(1, info->emin - info->precision),
        .eps = ldexp(1, -info->precision),
        .top = exponent_of(big),
        .precision = info->precision,
    };
    double small = lo > 0 ? lo : hi < 0 ? -hi : 0;
    s.bottom = small > 0 ? exponent_of(small) : s.top - 60;
    if (s.bottom < info->emin)
        s.bottom = s.top < info->emin ? s.top : info->emin;
    return s;
}

void fill_adversarial(const struct fill *fill, const struct encoder *encoder)
{
    enum plumb_kind kind = plumb_dtype_info(fill->dtype)->kind;
    bool is_float = kind == PLUMB_KIND_FLOAT;
    if (kind == PLUMB_KIND_COMPLEX || kind == PLUMB_KIND_BOOL ||
        (is_float && isinf(fill->limits.lo))) {
        fill_uniform(fill, encoder);
        return;
    }
    struct shape_of_values s = {0};
    if (is_float)
        s = shape_of_values(fill);
    uint64_t row_size = fill->row > 1 ? fill->row : fill->count;
    bool many = fill->count / row_size >= MANY_ROWS;
    double numbers[STRETCH];
    uint64_t integers[STRETCH];
    for (uint64_t start = 0, stretch = 0; start < fill->count; stretch++) {
        uint64_t row = start / row_size, end = (row + 1) * row_size;
        size_t n = end - start < STRETCH ? (size_t)(end - start) : STRETCH;
        bool whole_row = many && row % 2;
        uint64_t unit_of_pattern = whole_row ? row : stretch;
        uint64_t choice = value_bits(fill->key ^ (whole_row ? 0x5555u : 0xAAAAu), unit_of_pattern);
        enum pattern pattern = (enum pattern)(choice % PATTERNS);
        for (size_t i = 0; i < n; i++) {
            /* Pairs are counted from the row's start. */
            uint64_t at = row * (row_size + row_size % 2) + (start - row * row_size) + i;
            if (is_float) {
                double x = number(&s, pattern, at, unit_of_pattern);
                bool free = pattern == PATTERN_EDGE && fill->specials;
                numbers[i] = free ? x : x < s.lo ? s.lo : x > s.hi ? s.hi : x;
            } else {
                integers[i] = integer(fill, pattern, at, unit_of_pattern);
            }
        }
        if (is_float)
            encoder_put(encoder, fill->data, start, n, numbers);
        else
            values_put_ints(fill->dtype, fill->data, start, n, integers);
        start += n;
    }
}
