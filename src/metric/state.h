/* What a metric state is made of. */
#ifndef METRIC_STATE_H
#define METRIC_STATE_H

#include "metric/exact.h"
#include "metric/kernel.h"
#include "metric/kl.h"
#include "metric/precheck.h"
#include "metric/rule.h"
#include "metric/stats.h"
#include "plumb/metric.h"

/* Sums of products over finite pairs. */
struct error_sums {
    struct exact tg, tt, gg, dd;
};

struct plumb_metric_state {
    struct plumb_metric_spec spec;
    enum plumb_dtype target, golden;
    uint64_t bytes[2]; /* of each whole side, for the checksums */
    struct kernels kernels;
    int direct;                     /* kernel_type that reads both sides as they are, or -1 */
    const struct byte_words *words; /* they are made such by these, or NULL */
    struct rule rule;
    struct all_limits limits; /* that of ULPs where has_ulp */
    bool has_ulp, integers;

    uint64_t classes[PLUMB_CLASSES][PLUMB_CLASSES];
    struct error_sums sums;
    double max_abs;
    uint64_t max_index; /* UINT64_MAX: no pair yet */

    double max_rel;
    uint64_t below_5e3, below_1e3, below_1e2, below_1e4;
    struct exact rel_sum;
    uint64_t close, greater, above, below;
    struct exact abs_sum;
    double min_abs;
    uint64_t abs_over[ABS_LIMITS];
    struct exact ulp_sum;
    double max_ulp;
    uint64_t ulp_over;
    uint64_t small_count, small_errors;
    struct stats_state stats[2];
    struct kl_state kl;
    uint64_t bits_differ;
    uint32_t crc[2];
    struct plumb_histogram histogram[3];
    struct precheck_state precheck;
};

#endif
