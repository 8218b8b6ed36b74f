/* The least and the greatest of 64-bit integers, which float64 does not hold from 2^53 on. */
#ifndef METRIC_ENDS_H
#define METRIC_ENDS_H

#include "plumb/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is the ends of nothing. */
struct ends {
    enum plumb_dtype dtype;
    bool any;
    uint64_t min, max; /* moved so that unsigned numbers order as the type does */
};

enum { ENDS_BYTES = 24 }; /* room for any of them as text */

/* Adds n dense elements. Does nothing for other types. */
void ends_add(struct ends *ends, enum plumb_dtype dtype, const void *elements, size_t n);
void ends_merge(struct ends *ends, const struct ends *other);

/* Is one of them 2^53 or more in size? */
bool ends_needed(const struct ends *ends);

/* Their bits, as the type has them. */
uint64_t ends_min(const struct ends *ends);
uint64_t ends_max(const struct ends *ends);

/* All digits. */
void ends_text(enum plumb_dtype dtype, uint64_t bits, char text[ENDS_BYTES]);

#endif
