/* Classes of sizes. */
#include "metric/classes.h"

static uint32_t upper_half(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint32_t)(bits >> 32);
}

/* The greatest lower half with which a size beside the limit does not pass it. */
static uint32_t lower_half(double limit, bool reached)
{
    uint64_t bits;
    memcpy(&bits, &limit, sizeof bits);
    return (uint32_t)bits - reached;
}

/* A step moves the exponent field to the bin, past the limits below, and lets the 20 bits of the
 * mantissa carry into it from a limit's own on. Where there is no limit mantissas of ones carry,
 * and are always taken back: there must be some, and these are rare. */
static void find_steps(struct size_classes *sizes)
{
    const uint32_t one = UINT32_C(1) << 20, lowest = 1023 + HISTOGRAM_LOWEST - 1;
    int passed = 0;
    sizes->first = (upper_half(sizes->limit[0]) >> 20) - 1;
    for (uint32_t i = 0; i < CLASS_STEPS; i++) {
        const double limit = passed < sizes->limits ? sizes->limit[passed] : INFINITY;
        const bool here = upper_half(limit) >> 20 == sizes->first + i;
        const uint32_t carry = here ? one - upper_half(limit) % one : 1;
        sizes->step[i] = ((uint32_t)passed - lowest) * one + carry;
        sizes->lower[i] = here ? lower_half(limit, sizes->reached) : UINT32_MAX;
        passed += here;
    }
}

static void find_places(struct size_classes *sizes)
{
    int passed = 0;
    for (uint32_t i = 0; i < sizeof sizes->place; i++) {
        sizes->place[i] = (uint8_t)passed;
        passed += passed < sizes->limits &&
                  upper_half(sizes->limit[passed]) >> 21 == sizes->first / 2 + i;
    }
    for (int k = 0; k <= CLASS_LIMITS; k++) {
        const bool any = k < sizes->limits;
        sizes->limit_upper[k] = any ? upper_half(sizes->limit[k]) : INT32_MAX;
        sizes->limit_lower[k] = any ? lower_half(sizes->limit[k], sizes->reached) : 0;
    }
}

/* As find_steps, but nothing has to be taken back: a limit is rounded down to a float32, and what
 * is above it is above the limit. */
static void find_short_steps(struct size_classes *sizes)
{
    const uint32_t one = UINT32_C(1) << 23, lowest = 127 + HISTOGRAM_LOWEST - 1;
    int passed = 0;
    sizes->short_first = sizes->first - 1023 + 127;
    for (uint32_t i = 0; i < CLASS_STEPS; i++) {
        const double limit = passed < sizes->limits ? sizes->limit[passed] : INFINITY;
        const bool here = upper_half(limit) >> 20 == sizes->first + i;
        uint64_t bits;
        memcpy(&bits, &limit, sizeof bits);
        const uint32_t mantissa = (uint32_t)(bits >> 29) % one;
        sizes->short_step[i] = ((uint32_t)passed - lowest) * one + (here ? one - mantissa - 1 : 0);
        passed += here;
    }
}

static void find_quotient_steps(struct size_classes *sizes)
{
    int passed = 0;
    for (int k = 1 - QUOTIENT_STEPS; k <= 0; k++) {
        const double limit = passed < sizes->limits ? sizes->limit[passed] : INFINITY;
        const bool here = limit < ldexp(1, k + 1);
        const unsigned i = (unsigned)k % QUOTIENT_STEPS;
        passed += here;
        /* Where there is no limit a product of 0 is below, and one more is taken back. */
        sizes->quotient_factor[i] = here ? (float)rint(1 / limit) : 0;
        sizes->quotient_class[i] = (uint32_t)(passed + !here - HISTOGRAM_LOWEST + 1);
    }
}

struct size_classes abs_classes(void)
{
    struct size_classes sizes = {.limits = ABS_LIMITS};
    for (int k = 0; k < ABS_LIMITS; k++)
        sizes.limit[k] = kernel_abs_limits[ABS_LIMITS - 1 - k];
    find_steps(&sizes);
    find_places(&sizes);
    find_short_steps(&sizes);
    return sizes;
}

struct size_classes ratio_classes(void)
{
    struct size_classes sizes = {.limit = {1e-4, 1e-3, 5e-3, 1e-2}, .limits = 4, .reached = true};
    find_steps(&sizes);
    find_places(&sizes);
    find_quotient_steps(&sizes);
    return sizes;
}

void classes_unfold(const struct size_classes *sizes, const uint64_t counts[CLASSES],
                    uint64_t bins[HISTOGRAM_BINS], uint64_t passed[CLASS_LIMITS])
{
    int limits = 0; /* passed by the class at hand */
    for (int class = 0; class <= top_class(sizes->limits); class ++) {
        /* A class is the first above a limit when the one below is in the limit's own bin. */
        if (limits < sizes->limits && class == (int)kernel_bin(sizes->limit[limits]) + limits + 1)
            limits++;
        bins[class - limits] += counts[class];
        for (int k = 0; k < limits; k++)
            passed[k] += counts[class];
    }
}
