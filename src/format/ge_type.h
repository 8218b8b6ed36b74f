/* The element types of GE dumps, as data. */
#ifndef FORMAT_GE_TYPE_H
#define FORMAT_GE_TYPE_H

#include "plumb/dtype.h"

/* How elements are stored. */
enum ge_storage {
    GE_AS_IS,    /* exactly a type of plumb: can be mapped */
    GE_BYTES,    /* no type was recorded: `size` single bytes */
    GE_BITS,     /* one bit each, most significant first */
    GE_PAIRS,    /* two bits each, least significant first */
    GE_E1M2,     /* four-bit floats with one exponent bit, low half first */
    GE_HALVES,   /* complex numbers of two float16 */
    GE_NO_VALUE, /* nothing plumb could compare */
};

struct ge_type {
    const char *name; /* "FLOAT16" */
    enum ge_storage storage;
    enum plumb_dtype dtype; /* of the values once decoded */
};

/* The row of a type, or NULL for a number that nobody knows. */
const struct ge_type *ge_type_find(int32_t type);

/* The dump's number for one of GE's runtime, which the nano container uses; -1 when there is
 * none. */
int32_t ge_type_of_runtime(int32_t runtime);

#endif
