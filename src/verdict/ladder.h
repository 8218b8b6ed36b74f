/* The steps that lead from cosine, largest error and dual ratios to a status; the same under both
 * rule sets, which differ in how the numbers were had and in which of them are shown. */
#ifndef VERDICT_LADDER_H
#define VERDICT_LADDER_H

#include "verdict/precheck.h"

/* Why there is no cosine, or that there is one. */
enum cosine_case {
    COSINE_GIVEN,
    COSINE_ONE_ELEMENT,
    COSINE_BOTH_ZERO,
    COSINE_DEVICE_ZERO,
    COSINE_BENCH_ZERO,
    COSINE_NAN
};

#define COSINE_ZERO 0x1p-52 /* a side whose values are all up to this counts as zero */

/* counts: elements; device_zero, bench_zero: all of the side's values are that small. */
enum cosine_case cosine_case(uint64_t count, bool device_zero, bool bench_zero, double cosine);

struct ladder {
    const struct standard_set *rules;
    bool half; /* float16, bfloat16 and narrower: dual-100 and dual-1000 decide */
    enum cosine_case which;
    double cosine, max_abs;
    double most; /* no value is above it of the sides that count as zero, where that is known */
    double dual[DUALS]; /* shares of elements with a relative error below the limit */
};

extern const double ladder_limit[DUALS]; /* 0.01, 0.001, 0.0001: of the relative errors */

enum ladder_step {
    STEP_COSINE,    /* ended there: error */
    STEP_MAX_ABS,   /* pass */
    STEP_DUAL_100,  /* error */
    STEP_DUAL_1000, /* half: pass or warning; else error */
    STEP_DUAL_10000 /* pass or warning */
};

/* Sets status and message of the row and says where the way ended. False: out of memory. */
bool ladder_climb(const struct ladder *ladder, struct arena *arena, struct details_row *row,
                  enum ladder_step *end);

#endif
