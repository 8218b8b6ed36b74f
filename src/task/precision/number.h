/* Numbers in the cells of pre-check results: read as Python reads them, written as it writes them.
 * Independent of the locale. */
#ifndef PRECISION_NUMBER_H
#define PRECISION_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIXED_BYTES = 336 }; /* the largest double with 14 decimals, a sign and a NUL */

/* A decimal number, inf, infinity or nan in any case, with white space around it; correctly
 * rounded. False when the text is none. */
bool precision_number(const char *text, size_t length, double *value);

/* The same (but for nan) in the way of pandas, which takes 17 digits, leading zeros included, and
 * scales them: numbers of more digits may end one bit beside the nearest. */
bool precision_number_pandas(const char *text, size_t length, double *value);

/* An integer that fits into 64 bits, with white space around it. */
bool precision_integer(const char *text, size_t length, int64_t *value);

/* printf's "%.14f"; nan, inf and -inf as such. Returns the length. */
size_t precision_fixed(double value, char text[FIXED_BYTES]);

#endif
