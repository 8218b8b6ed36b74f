/* Types of one byte, for kernels that read bfloat16, which has all of their values. */
#ifndef METRIC_BYTES_H
#define METRIC_BYTES_H

#include "plumb/dtype.h"

#include <stdint.h>

/* The bfloat16 of each code, also apart in bytes. */
struct byte_words {
    uint16_t word[256];
    uint8_t low[256], high[256];
};

/* NULL for types of another width. */
const struct byte_words *bytes_words(enum plumb_dtype dtype);

#endif
