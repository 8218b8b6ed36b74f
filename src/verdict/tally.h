/* One pass over a pair of floats by the documented rules: everything that its row needs. */
#ifndef VERDICT_TALLY_H
#define VERDICT_TALLY_H

#include "metric/dense.h"
#include "metric/exact.h"
#include "plumb/metric.h"
#include "verdict/ladder.h"
#include "verdict/precheck_parts.h"

enum { TALLY_BLOCK = PLUMB_METRIC_BLOCK };

/* The device's type as far as rounding to it goes. */
struct tally_grid {
    double smallest; /* normal power of two */
    double factor;   /* of a power of two: adding their product rounds to the type's last digit */
    double max;
};

struct tally {
    enum plumb_dtype part; /* the device's type, or that of the parts of its complex type */
    double eps;
    struct tally_grid grid;
    const struct standard_limits *limits;
    struct kernels kernels;
    bool zero_signs; /* -0 is not 0 */
    struct plumb_metric_state *engine;

    uint64_t count;                 /* numbers */
    uint64_t equal, unlike;         /* not finite: the same on both sides, or not */
    bool unlike_nan;                /* a NaN was among the unlike */
    double zero;                    /* values up to this are as good as zero */
    bool device_big, bench_big;     /* has others */
    double device_most, bench_most; /* largest size of a side that has none */
    uint64_t under[DUALS], differ, above, below;
    uint64_t small, small_errors, absolute_errors, normal, normal_errors;
    struct exact squares, rel;
    double max_rel;
    double max_ulp; /* of 8-bit floats, as the two below */
    uint64_t ulp_over;
    struct exact ulp;

    double d[TALLY_BLOCK], b[TALLY_BLOCK], diff[TALLY_BLOCK], den[TALLY_BLOCK], r[TALLY_BLOCK],
        rounded[TALLY_BLOCK];
};

/* A tally of all zero bytes is empty. PLUMB_E_NOMEM. */
enum plumb_code tally_pair(struct tally *tally, const struct judge_pair *pair);
void tally_destroy(struct tally *tally);

#endif
