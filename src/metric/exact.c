/* Exact sums of float64 values. */
#include "metric/exact.h"

#include <math.h>
#include <string.h>

/* Limbs below those that single values reach. */
enum { BASE = 2 * EXACT_STEP };

void exact_add(struct exact *sum, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned exponent = bits >> 52 & 0x7FF;
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFF;
    if (exponent == 0x7FF) {
        sum->nan |= mantissa != 0;
        sum->positive |= mantissa == 0 && !(bits >> 63);
        sum->negative |= mantissa == 0 && bits >> 63;
        return;
    }
    if (exponent)
        mantissa |= UINT64_C(1) << 52;
    else
        exponent = 1;

    unsigned position = exponent - 1; /* of the mantissa's lowest bit above 2^-1074 */
    int64_t *limb = sum->limb + BASE + position / 32;
    unsigned shift = position % 32;
    uint64_t low = (mantissa & 0xFFFFFFFF) << shift; /* below 2^63 */
    uint64_t high = (mantissa >> 32) << shift;       /* below 2^52 */
    int64_t first = (int64_t)(low & 0xFFFFFFFF);
    int64_t second = (int64_t)((low >> 32) + (high & 0xFFFFFFFF));
    int64_t third = (int64_t)(high >> 32);
    int64_t sign = bits >> 63 ? -1 : 1;
    limb[0] += sign * first;
    limb[1] += sign * second;
    limb[2] += sign * third;

    if (++sum->pending == 1u << 29) {
        struct exact none = {0};
        exact_merge(sum, &none);
    }
}

/* a*b of finite numbers, beyond what float64 holds: one of them is large, and can be scaled. */
static void add_huge_product(struct exact *sum, double a, double b)
{
    struct exact scaled = {0};
    if (fabs(a) > fabs(b))
        exact_add_product(&scaled, a / EXACT_SCALE, b);
    else
        exact_add_product(&scaled, a, b / EXACT_SCALE);
    exact_merge_shifted(sum, &scaled, EXACT_STEP);
}

void exact_add_product(struct exact *sum, double a, double b)
{
    double product = a * b;
    if (isinf(product) && isfinite(a) && isfinite(b)) {
        add_huge_product(sum, a, b);
        return;
    }
    exact_add(sum, product);
    if (isfinite(product)) {
        const double rest = fma(a, b, -product);
        if (rest != 0)
            exact_add(sum, rest);
    }
}

/* Brings all limbs but the top one into 0 .. 2^32-1. */
static void settle(int64_t *limb)
{
    int64_t carry = 0;
    for (int i = 0; i < EXACT_LIMBS - 1; i++) {
        int64_t value = limb[i] + carry;
        carry = value >> 32;
        limb[i] = value & 0xFFFFFFFF;
    }
    limb[EXACT_LIMBS - 1] += carry;
}

static void negate(int64_t *limb)
{
    for (int i = 0; i < EXACT_LIMBS; i++)
        limb[i] = -limb[i];
    settle(limb);
}

void exact_merge(struct exact *sum, const struct exact *other)
{
    exact_merge_shifted(sum, other, 0);
}

void exact_merge_shifted(struct exact *sum, const struct exact *other, int limbs)
{
    int64_t limb[EXACT_LIMBS], sign = 1;
    memcpy(limb, other->limb, sizeof limb);
    settle(limb);
    if (limb[EXACT_LIMBS - 1] < 0) { /* the sign sits at the top, which a shift may drop */
        negate(limb);
        sign = -1;
    }
    settle(sum->limb);
    for (int i = 0; i < EXACT_LIMBS; i++)
        if (i + limbs >= 0 && i + limbs < EXACT_LIMBS)
            sum->limb[i + limbs] += sign * limb[i];
    sum->pending = 2;
    sum->nan |= other->nan;
    sum->positive |= other->positive;
    sum->negative |= other->negative;
}

double exact_round(const struct exact *sum)
{
    return exact_round_shifted(sum, 0);
}

double exact_round_shifted(const struct exact *sum, int limbs)
{
    if (sum->nan || (sum->positive && sum->negative))
        return NAN;
    if (sum->positive || sum->negative)
        return sum->positive ? INFINITY : -INFINITY;

    int64_t limb[EXACT_LIMBS];
    memcpy(limb, sum->limb, sizeof limb);
    settle(limb);
    bool negative = limb[EXACT_LIMBS - 1] < 0;
    if (negative)
        negate(limb);
    int top = EXACT_LIMBS - 1;
    while (top > 0 && limb[top] == 0)
        top--;
    if (limb[top] == 0)
        return 0;

    /* The highest 64 bits, with a sticky bit for the rest, rounded to 53. */
    uint64_t high = (uint64_t)limb[top];
    uint64_t middle = top > 0 ? (uint64_t)limb[top - 1] : 0;
    uint64_t low = top > 1 ? (uint64_t)limb[top - 2] : 0;
    int lead =
        __builtin_clzll(high) - 32; /* leading zeros of a 32-bit limb; the top one fits too */
    uint64_t window = high << 32 | middle;
    uint64_t rest = low << 32;
    if (lead > 0) {
        window = window << lead | low >> (32 - lead);
        rest = low << (32 + lead);
    }
    bool sticky = rest != 0;
    for (int i = top - 3; i >= 0 && !sticky; i--)
        sticky = limb[i] != 0;

    uint64_t mantissa = window >> 11, tail = window & 0x7FF;
    if (tail > 0x400 || (tail == 0x400 && (sticky || (mantissa & 1))))
        mantissa++;
    int exponent = 32 * (top - 1 - BASE + limbs) - 1074 - lead + 11;
    double value = ldexp((double)mantissa, exponent);
    return negative ? -value : value;
}
