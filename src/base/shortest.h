/* Between doubles and decimal numbers: the shortest one that reads back as a given double, and the
 * double that is nearest to one. */
#ifndef BASE_SHORTEST_H
#define BASE_SHORTEST_H

#include <stdbool.h>
#include <stdint.h>

/* digits * 10^exponent. One that is made here has at most 17 digits and does not end in 0. */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* Of all decimals that round to value (finite, above 0) one with the fewest digits, and of those
 * the nearest to value: what Python's repr prints. */
struct decimal shortest_decimal(double value);

/* value (finite, above 0) rounded to `precision` significant digits (1 to 17). */
struct decimal rounded_decimal(double value, int precision);

/* The double nearest to digits * 10^exponent, ties to even. False: 128 bits do not decide it, or it
 * is no normal number; ask strtod. */
bool nearest_double(struct decimal decimal, double *value);

#endif
