/* From recorded statistics to the values that a tensor may have. */
#include "exec/values/parts.h"

#include <math.h>

static bool is_number(const struct case_limit *limit)
{
    return limit->kind == LIMIT_INT || limit->kind == LIMIT_FLOAT || limit->kind == LIMIT_BOOL;
}

static bool is_given(const struct case_limit *limit)
{
    return limit->kind != LIMIT_ABSENT && limit->kind != LIMIT_NULL;
}

/* The finite statistic where there is one. */
static const struct case_limit *either(const struct case_limit *finite,
                                       const struct case_limit *limit)
{
    return is_given(finite) ? finite : limit;
}

/* ---- Floats ---------------------------------------------------------------------------------- */

/* The type of a complex number's parts. */
static enum plumb_dtype part_of(enum plumb_dtype dtype)
{
    return dtype == PLUMB_C64 ? PLUMB_F32 : dtype == PLUMB_C128 ? PLUMB_F64 : dtype;
}

/* The neighbour of a value of the type, on the way to `towards`. */
static double neighbour(enum plumb_dtype dtype, const struct encoder *e, double value,
                        double towards)
{
    if (dtype == PLUMB_F64)
        return nextafter(value, towards);
    if (dtype == PLUMB_F32)
        return (double)nextafterf((float)value, (float)towards);
    if (e->n) {
        unsigned at = 0;
        while (at < e->n - 1 && e->value[at] < value)
            at++;
        if (towards > value)
            return at < e->n - 1 ? e->value[at + 1] : INFINITY;
        return at ? e->value[at - 1] : -INFINITY;
    }
    /* float16, bfloat16: codes of one sign are ordered as their values. */
    if (value == 0)
        return copysign(
            ldexp(1, plumb_dtype_info(dtype)->emin - plumb_dtype_info(dtype)->precision), towards);
    uint16_t code;
    encoder_put_one(e, &code, 0, value);
    code = (uint16_t)(code + ((value < towards) == (value > 0) ? 1 : -1));
    double next;
    plumb_to_f64(dtype, &code, 0, 1, false, &next);
    return next;
}

/* The nearest value of the type that is not beyond the limit. */
static double inwards(enum plumb_dtype dtype, const struct encoder *e, double limit, int sign)
{
    double rounded = plumb_round_to(dtype, limit);
    double max = plumb_dtype_info(dtype)->max_finite;
    if (isnan(rounded) || isinf(rounded)) {
        double least = e->n ? e->value[0] : -max;
        rounded = limit > 0 ? max : least;
    }
    if (sign > 0 ? rounded < limit : rounded > limit)
        rounded = neighbour(dtype, e, rounded, copysign(INFINITY, sign));
    return rounded;
}

static enum plumb_code float_limits(const struct case_tensor *t, enum plumb_dtype dtype,
                                    struct value_limits *out, struct plumb_error *err)
{
    double min = is_number(&t->min) ? t->min.number : NAN;
    double max = is_number(&t->max) ? t->max.number : NAN;
    bool nan = (is_number(&t->min) && isnan(min)) || (is_number(&t->max) && isnan(max));
    bool complex = plumb_dtype_parts(dtype) == 2;
    *out = (struct value_limits){.nan = nan, .inf = max > 0 && isinf(max)};
    out->minus_inf = min < 0 && isinf(min) && !complex;
    if (min > 0 && isinf(min))
        max = min; /* nothing but infinity */
    if (isinf(max) && (max < 0 || min == max)) {
        out->lo = out->hi = max;
        return PLUMB_OK;
    }

    const struct case_limit *low = either(&t->min_finite, &t->min);
    const struct case_limit *high = either(&t->max_finite, &t->max);
    bool has_lo = is_number(low) && isfinite(low->number);
    bool has_hi = is_number(high) && isfinite(high->number);
    double lo = has_lo ? low->number : complex ? 0 : -1;
    double hi = has_hi ? high->number : 1;
    if (!has_lo && hi < lo)
        lo = 2 * hi;
    if (!has_hi && lo > hi)
        hi = 2 * lo;
    /* The finite ones cannot be beyond the others. */
    lo = isfinite(min) && lo < min ? min : lo;
    hi = isfinite(max) && hi > max ? max : hi;
    if (complex && lo < 0)
        lo = 0;
    if (lo > hi)
        return plumb_fail(err, PLUMB_E_FORMAT, "its Min %.17g is above its Max %.17g", lo, hi);

    enum plumb_dtype part = part_of(dtype);
    struct encoder e;
    encoder_init(&e, part);
    out->lo = inwards(part, &e, lo, 1);
    out->hi = inwards(part, &e, hi, -1);
    if (isinf(out->lo) || isinf(out->hi))
        return plumb_fail(err, PLUMB_E_FORMAT, "%s has no values from %.17g to %.17g",
                          plumb_dtype_info(dtype)->name, lo, hi);
    if (out->lo > out->hi) { /* between two values of the type */
        double down = out->hi, up = out->lo;
        out->lo = lo - down <= up - lo ? down : up;
        out->hi = hi - down < up - hi ? down : up;
    }
    return PLUMB_OK;
}

/* ---- Integers -------------------------------------------------------------------------------- */

/* Limits of the type, as float64 and as the bits of a 64-bit integer. */
struct int_type {
    double min, max; /* both rounded towards zero where float64 does not have them */
    uint64_t first, last;
};

static struct int_type int_type(enum plumb_dtype dtype)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    if (info->kind == PLUMB_KIND_BOOL)
        return (struct int_type){0, 1, 0, 1};
    bool is_signed = info->kind == PLUMB_KIND_INT;
    unsigned bits = info->bits - (is_signed ? 1u : 0u);
    uint64_t last = UINT64_MAX >> (64 - bits);
    uint64_t first = is_signed ? ~last : 0;
    double max = bits > 53 ? ldexp(1, (int)bits) - ldexp(1, (int)bits - 53) : (double)last;
    return (struct int_type){is_signed ? -ldexp(1, (int)bits) : 0, max, first, last};
}

/* A limit as the bits of a 64-bit integer, cut to the type. sign: which way to round. */
static uint64_t int_limit(const struct case_limit *limit, const struct int_type *type, int sign)
{
    bool fits = limit->kind != LIMIT_FLOAT && fabs(limit->number) < 0x1p63;
    if (fits) {
        int64_t value = limit->integer;
        if (value < 0)
            return type->first == 0 ? 0 : (double)value < type->min ? type->first : (uint64_t)value;
        return (uint64_t)value > type->last ? type->last : (uint64_t)value;
    }
    double value = sign > 0 ? ceil(limit->number) : floor(limit->number);
    if (value < type->min)
        return type->first;
    if (value > type->max)
        return type->last;
    return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static enum plumb_code int_limits(const struct case_tensor *t, enum plumb_dtype dtype,
                                  struct value_limits *out, struct plumb_error *err)
{
    static const struct case_limit zero = {LIMIT_INT, 0, 0}, one = {LIMIT_INT, 1, 1};
    const struct case_limit *low = either(&t->min_finite, &t->min);
    const struct case_limit *high = either(&t->max_finite, &t->max);
    if (!is_given(low))
        low = is_given(high) && high->number < 0 ? high : &zero;
    if (!is_given(high))
        high = low->number > 1 ? low : &one;
    if (!isfinite(low->number) || !isfinite(high->number))
        return plumb_fail(err, PLUMB_E_FORMAT, "%s values cannot be from %g to %g",
                          plumb_dtype_info(dtype)->name, low->number, high->number);
    struct int_type type = int_type(dtype);
    bool outside = high->number < type.min || low->number > type.max;
    uint64_t first = int_limit(low, &type, 1), last = int_limit(high, &type, -1);
    /* Shifted by the type's first value they are ordered as unsigned numbers. */
    if (outside || first - type.first > last - type.first)
        return plumb_fail(err, PLUMB_E_FORMAT, "%s has no values from %.17g to %.17g",
                          plumb_dtype_info(dtype)->name, low->number, high->number);
    *out = (struct value_limits){.first = first, .span = last - first};
    return PLUMB_OK;
}

enum plumb_code values_limits(const struct case_tensor *tensor, enum plumb_dtype dtype,
                              struct value_limits *out, struct plumb_error *err)
{
    const struct case_limit *all[] = {&tensor->min, &tensor->max, &tensor->min_finite,
                                      &tensor->max_finite};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is_given(all[i]) && !is_number(all[i]))
            return plumb_fail(err, PLUMB_E_FORMAT, "a recorded limit (Max, Min) is no number");
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    if (kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX)
        return float_limits(tensor, dtype, out, err);
    return int_limits(tensor, dtype, out, err);
}
