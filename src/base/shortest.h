/* The shortest decimal number that reads back as a given double. */
#ifndef BASE_SHORTEST_H
#define BASE_SHORTEST_H

#include <stdint.h>

/* value is digits * 10^exponent; digits has at most 17 digits and does not end in 0. */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* Of all decimals that round to value (finite, above 0) one with the fewest digits, and of those
 * the nearest to value: what Python's repr prints. */
struct decimal shortest_decimal(double value);

/* value (finite, above 0) rounded to `precision` significant digits (1 to 17). */
struct decimal rounded_decimal(double value, int precision);

#endif
