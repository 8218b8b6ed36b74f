/* One element of what an exchange gave: what it should be, and how far off it may be. */
#include "task/blame/exchanged_parts.h"

#include <float.h>
#include <math.h>

void terms_add(struct terms *t, enum exchanged_op op, double x, bool first)
{
    t->nan |= isnan(x);
    t->plus |= isinf(x) && x > 0;
    t->minus |= isinf(x) && x < 0;
    if (first) {
        t->sum = x;
        t->least = t->most = x;
    } else {
        t->sum = op == EXCHANGED_PRODUCT ? t->sum * x : t->sum + x;
        t->least = fmin(t->least, x);
        t->most = fmax(t->most, x);
    }
    t->absolute += fabsl((long double)x);
    t->squares += (long double)x * x;
}

double terms_expected(const struct terms *t, enum exchanged_op op, size_t n)
{
    return op == EXCHANGED_MIN    ? t->least
           : op == EXCHANGED_MAX  ? t->most
           : op == EXCHANGED_MEAN ? (double)(t->sum / (long double)n)
                                  : (double)t->sum;
}

/* How far off a sum of n terms in this type may be, whatever the order: at most a rounding of every
 * partial sum, and where there are many of them 8 standard deviations of what those make together.
 * What is smaller than the smallest normal numbers may be flushed to zero. */
static double allowance(const struct terms *t, enum exchanged_op op, size_t n,
                        const struct plumb_dtype_info *type)
{
    const double u = ldexp(1, -type->precision - 1), count = (double)n;
    const double scale = op == EXCHANGED_MEAN ? 1 / count : 1;
    const double tiny = count * ldexp(1, type->emin);
    if (op == EXCHANGED_PRODUCT)
        return count * u * fabs((double)t->sum) + tiny;
    const double steps = op == EXCHANGED_MEAN ? count + 2 : count - 1;
    const double most = steps * u * (double)t->absolute * scale;
    const double typical = fmax(fabs((double)t->sum), sqrt((double)t->squares)) * scale;
    const double many = EXCHANGED_LIMIT * u / sqrt(3) * sqrt(steps) * typical;
    return (n > 8 && many < most ? many : most) * (1 + 0x1p-20) + tiny;
}

double terms_excess(const struct terms *t, enum exchanged_op op, size_t n, double got,
                    enum plumb_dtype dtype)
{
    const struct plumb_dtype_info *type = plumb_dtype_info(dtype);
    const double expected = terms_expected(t, op, n);
    if (op == EXCHANGED_COPY || op == EXCHANGED_MIN || op == EXCHANGED_MAX) {
        if (t->nan)
            return op == EXCHANGED_COPY ? (isnan(got) ? 0 : INFINITY) : NAN;
        return got == expected ? 0 : INFINITY;
    }
    if (type->kind != PLUMB_KIND_FLOAT && type->kind != PLUMB_KIND_COMPLEX) {
        const long double most = ldexpl(1, type->bits - (type->kind == PLUMB_KIND_INT));
        if (op != EXCHANGED_SUM || t->absolute >= most || t->absolute > 0x1p53L)
            return NAN;
        return got == expected ? 0 : INFINITY;
    }
    const double largest = type->max_finite > 0 ? type->max_finite : DBL_MAX;
    if (t->nan || (t->plus && t->minus))
        return isnan(got) ? 0 : INFINITY;
    if (op == EXCHANGED_PRODUCT && (t->plus || t->minus))
        return NAN;
    if (t->plus || t->minus)
        return got == (t->plus ? INFINITY : -INFINITY) ? 0 : INFINITY;
    if (!isfinite(got)) /* partial sums may overflow */
        return t->absolute > (long double)largest / 2 || op == EXCHANGED_PRODUCT ? NAN : INFINITY;
    return EXCHANGED_LIMIT * fabs(got - expected) / allowance(t, op, n, type);
}
