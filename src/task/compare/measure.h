/* What a capture would have written down about a payload: its statistics and its checksum. */
#ifndef COMPARE_MEASURE_H
#define COMPARE_MEASURE_H

#include "metric/ends.h"
#include "metric/hash.h"
#include "task/compare/walk.h"
#include "verdict/recorded.h"

/* EXACT: statistics that are not rounded, to compare with those of plumb condense. */
enum {
    MEASURE_STATISTICS = 1,
    MEASURE_CRC = 2,
    MEASURE_XOR = 4,
    MEASURE_EXACT = 8,
    MEASURE_KEPT = 16,     /* what plumb condense would have kept besides */
    MEASURE_SKETCH = 32,   /* with its sketch */
    MEASURE_SKETCH1 = 64,  /* with the sketch that files of form 2 have */
    MEASURE_HASH = 128,    /* with its hash */
    MEASURE_SKETCH2 = 256, /* with the sketch that files of forms 3 and 4 have */
};

struct measured {
    unsigned wanted; /* what of the above; 0: nothing */
    bool done;
    struct plumb_value statistic[PLUMB_STATISTICS]; /* without texts, but for True, False and ... */
    char end[2][ENDS_BYTES];                        /* ... integers that float64 does not hold */
    struct plumb_kept kept;                         /* its dtype in any case */
    struct plumb_sketch *sketch;                    /* malloc, or NULL */
    char checksum[20];                              /* 8 hex digits, or 0x and 16 */
    char hash[HASH_BYTES];                          /* with MEASURE_HASH */
    char *problem;                                  /* malloc: why it could not be read */
};

/* Measures the records of `sides` (those that want something), rounding as a capture does: each in
 * the type of the tensor. sides[i] and out[i] belong together. */
enum plumb_code compare_measure(struct measured *out, const struct walk_side *sides, size_t count,
                                const struct plumb_compare_options *options,
                                struct plumb_error *err);

/* The same for one tensor that is already loaded, on this thread. False when out of memory. */
bool compare_measure_tensor(struct measured *out, const struct plumb_tensor *tensor);

/* What has to be measured of a side with values beside what was kept of the other. */
unsigned compare_measures_kept(const struct plumb_kept *kept);

/* What is known about a side: what was recorded (or NULL), and what was measured where that was
 * wanted. Points into both. */
struct recorded_account compare_account(const struct plumb_recorded *recorded,
                                        const struct measured *measured);

#endif
