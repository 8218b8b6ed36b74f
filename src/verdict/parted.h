/* Have two runs parted at a tensor? Judged while the second one runs, by what was kept of the
 * first. */
#ifndef VERDICT_PARTED_H
#define VERDICT_PARTED_H

#include "plumb/record.h"

enum parted {
    PARTED_EQUAL,   /* the same bytes, by their hash */
    PARTED_NEAR,    /* other bytes, but within the limit */
    PARTED_APART,   /* beyond it */
    PARTED_UNKNOWN, /* too little was kept of the first */
};

/* What one side is: of kept, the sketch and the hash may be missing. */
struct parted_side {
    enum plumb_dtype dtype;
    unsigned rank;
    const int64_t *shape;
    const struct plumb_kept *kept;
    double norm; /* Euclidean, of the finite values; NaN: unknown */
};

/* The relative distance from which on results of a type have parted: 1e-8 for float64, 1e-4 for
 * float32, four units in the last place of 1 for narrower floats, 0 for integers and bool, where
 * every difference counts. */
double parted_limit(enum plumb_dtype dtype);

/* limit: a relative distance; negative: that of the golden type. why: what it was judged by, cut to
 * size. */
enum parted parted_judge(const struct parted_side *target, const struct parted_side *golden,
                         double limit, char *why, size_t size);

#endif
