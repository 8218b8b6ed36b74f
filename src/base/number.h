/* Numbers as text. Independent of the locale. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include "plumb/style.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMBER_BYTES = 32 }; /* room for any number and its NUL */

/* All digits: the shortest text that reads back as value, laid out like Python's repr. With point,
 * a whole number keeps its ".0". NaN, inf and -inf for what is not finite. Returns the length. */
size_t number_exact(double value, bool point, char text[NUMBER_BYTES]);

/* For people, by style. Returns the length. */
size_t number_shown(double value, enum plumb_style style, char text[NUMBER_BYTES]);

/* In a sentence: so many digits at most, as %g has it, but NaN and inf without a sign of NaN, which
 * printf shows. Returns text. */
const char *number_brief(double value, int digits, char text[NUMBER_BYTES]);

size_t number_integer(int64_t value, char text[NUMBER_BYTES]);

#endif
