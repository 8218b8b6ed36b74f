/* The least and the greatest of 64-bit integers. */
#include "metric/ends.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t flip_of(enum plumb_dtype dtype)
{
    return dtype == PLUMB_I64 ? UINT64_C(1) << 63 : 0;
}

void ends_add(struct ends *ends, enum plumb_dtype dtype, const void *elements, size_t n)
{
    const unsigned char *from = elements;
    if ((dtype != PLUMB_I64 && dtype != PLUMB_U64) || !n)
        return;
    struct ends more = {.dtype = dtype, .any = true, .min = UINT64_MAX};
    for (size_t i = 0; i < n; i++) {
        uint64_t x;
        memcpy(&x, from + i * sizeof x, sizeof x);
        x ^= flip_of(dtype);
        more.min = x < more.min ? x : more.min;
        more.max = x > more.max ? x : more.max;
    }
    ends_merge(ends, &more);
}

void ends_merge(struct ends *ends, const struct ends *other)
{
    if (!other->any)
        return;
    if (!ends->any)
        *ends = *other;
    ends->min = other->min < ends->min ? other->min : ends->min;
    ends->max = other->max > ends->max ? other->max : ends->max;
}

bool ends_needed(const struct ends *ends)
{
    uint64_t zero = flip_of(ends->dtype), exact = UINT64_C(1) << 53;
    return ends->any && (ends->max >= zero + exact || (zero && ends->min <= zero - exact));
}

uint64_t ends_min(const struct ends *ends)
{
    return ends->min ^ flip_of(ends->dtype);
}

uint64_t ends_max(const struct ends *ends)
{
    return ends->max ^ flip_of(ends->dtype);
}

void ends_text(enum plumb_dtype dtype, uint64_t bits, char text[ENDS_BYTES])
{
    if (dtype == PLUMB_I64)
        snprintf(text, ENDS_BYTES, "%" PRId64, (int64_t)bits);
    else
        snprintf(text, ENDS_BYTES, "%" PRIu64, bits);
}
