/* The metrics engine: everything plumb can say about a pair of tensors, from one pass over both.
 *
 * A state collects parts of a pair in any order; states of parts that were cut at multiples of
 * PLUMB_METRIC_BLOCK numbers can be added up. Sums are float64 within a block, in fixed lanes, and
 * exact across blocks, so the result is the same to the last bit for any number of threads, any
 * SIMD level and any such cut.
 *
 * Which pairs count. A pair whose two values are finite enters the errors. Equal infinities and two
 * NaNs are equal: no error, but `equal` is false for two NaNs unless equal_nan is set. Any other
 * pair with a NaN makes an error metric NaN; any other pair with an infinity makes it infinite.
 * Complex tensors are compared part by part, as if twice as long.
 *
 * A state belongs to one thread at a time; different states are independent. */
#ifndef PLUMB_METRIC_H
#define PLUMB_METRIC_H

#include "plumb/cpu.h"
#include "plumb/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_METRIC_BLOCK 1024

/* Groups of metrics that are computed together. PLUMB_G_ERROR always is. */
enum plumb_group {
    PLUMB_G_ERROR = 1 << 0,    /* cosine, distances, largest absolute error */
    PLUMB_G_RELATIVE = 1 << 1, /* largest relative error, shares below 5e-3 and 1e-3 */
    PLUMB_G_RATIOS = 1 << 2,   /* mean relative error, shares below 1e-2 and 1e-4 */
    PLUMB_G_CLOSE = 1 << 3,    /* IsClose, GtNum, unequal values, error balance */
    PLUMB_G_ABSOLUTE = 1 << 4, /* mean and smallest absolute error, counts over 1e-1 .. 1e-7 */
    PLUMB_G_ULP = 1 << 5,
    PLUMB_G_STATS = 1 << 6, /* min, max, mean, std, norm of each side */
    PLUMB_G_SMALL = 1 << 7, /* small golden values, and those of them with an error */
    PLUMB_G_KL = 1 << 8,
    PLUMB_G_BITS = 1 << 9, /* elements whose stored bits differ */
    PLUMB_G_CRC = 1 << 10,
    PLUMB_G_HISTOGRAM = 1 << 11,
    PLUMB_G_ALL = (1 << 12) - 1,
    PLUMB_G_PRECHECK = 1 << 12, /* the pre-check's masked metrics; not part of ALL */
};

/* What a relative error is. */
enum plumb_relative_rule {
    PLUMB_REL_PLAIN,    /* |t-g|/|g|; 0 when both are zero, infinite when only g is */
    PLUMB_REL_TORCHAIR, /* float32 |t/g-1| where |g| > 2^-23, else 0; masks absolute errors too */
    PLUMB_REL_GENERAL,  /* eps is added to both where g is zero; squeezed inf/NaN count as 0 */
    PLUMB_REL_PRECHECK, /* |t-g|/(|g|+eps), eps by the pair's types */
};

struct plumb_metric_spec {
    unsigned groups;
    enum plumb_relative_rule relative;
    double rtol, atol;    /* IsClose: |t-g| <= atol + rtol*|g| */
    double gt;            /* GtNum counts |t-g| > gt */
    bool equal_nan;       /* two NaNs count as close and equal */
    double ulp_threshold; /* 0: 32 for float32 and float64, else 1 */
    double small,
        small_atol;    /* pre-check: small-value limit and tolerance; 0: by the target's type */
    double small_rtol; /* and the tolerance of the others in the absolute-threshold rates */
};

/* The defaults: errors only, plain rule, rtol 1e-3, atol 1e-5, gt 0, equal_nan. */
void plumb_metric_spec_init(struct plumb_metric_spec *spec);

enum plumb_class { PLUMB_FINITE, PLUMB_POS_INF, PLUMB_NEG_INF, PLUMB_NAN, PLUMB_CLASSES };

/* One side's statistics. NaN spreads; an infinity shows. Std is the sample deviation (n-1). */
struct plumb_stats {
    uint64_t count, nan, pos_inf, neg_inf;
    double min, max, mean, std, norm;
    double finite_min, finite_max; /* of the finite values only; NaN when there are none */
};

#define PLUMB_HISTOGRAM_BINS 130 /* 0: no error; 1 .. 128: from 2^(bin-97); 129: not finite */

struct plumb_histogram {
    uint64_t bin[PLUMB_HISTOGRAM_BINS];
};

/* All results. Fields of groups that were not asked for are NaN or 0. */
struct plumb_metrics {
    uint64_t count;                                 /* numbers compared */
    uint64_t classes[PLUMB_CLASSES][PLUMB_CLASSES]; /* [target][golden] */
    uint64_t nonfinite_mismatch;                    /* pairs whose classes differ */

    double cosine, one_minus_cosine;
    double euclidean, relative_euclidean, rmse;
    double max_abs, mean_abs, min_abs; /* min_abs: the smallest error that is not zero */
    uint64_t max_abs_index; /* number (not element) in C order; count when there is none */

    double max_rel, mean_rel;
    uint64_t rel_below_1e2, rel_below_5e3, rel_below_1e3, rel_below_1e4;

    uint64_t close, greater, unequal; /* unequal: -0 equals 0 */
    bool integers;         /* both sides are integers or bool; unequal is then always there */
    uint64_t above, below; /* target > golden, target < golden */
    double error_balance;  /* |above - below| / count */
    uint64_t abs_over[7];  /* absolute error > 1e-1 .. 1e-7 */

    double max_ulp, mean_ulp;
    uint64_t ulp_over;

    struct plumb_stats target, golden;
    uint64_t small, small_errors; /* |golden| <= limit; those with an error over the tolerance */
    double kl;
    uint64_t bits_differ; /* elements whose stored bits differ; all of them when dtypes differ */
    uint32_t target_crc, golden_crc;
    struct plumb_histogram abs_histogram, rel_histogram, ulp_histogram;

    /* Pre-check (precheck group); rates are 0 when their denominator is. */
    double precheck_rmse, small_error_rate, precheck_balance;
    double precheck_max_rel, precheck_mean_rel;
    double inf_nan_error_rate, rel_error_rate, abs_error_rate; /* absolute threshold standard */
    double acc_inf_nan_error_rate, acc_rel_error_rate, acc_abs_error_rate; /* accumulative error */
};

struct plumb_metric_state;

/* A state for pairs of the two types with `count` elements in all. Returns NULL when out of
 * memory. */
struct plumb_metric_state *plumb_metric_new(const struct plumb_metric_spec *spec,
                                            enum plumb_dtype target, enum plumb_dtype golden,
                                            uint64_t count);
void plumb_metric_free(struct plumb_metric_state *state);

/* Adds elements [first, first+count) of the pair; count may exceed what is left. first must be a
 * multiple of PLUMB_METRIC_BLOCK. */
void plumb_metric_update(struct plumb_metric_state *state, const struct plumb_tensor *target,
                         const struct plumb_tensor *golden, uint64_t first, uint64_t count);

/* Adds the parts that `other` saw to `state`; both were made with the same arguments. */
void plumb_metric_merge(struct plumb_metric_state *state, const struct plumb_metric_state *other);

void plumb_metric_finish(const struct plumb_metric_state *state, struct plumb_metrics *out);

/* The whole pair at once, on one thread. PLUMB_E_ARG when the element counts differ. */
enum plumb_code plumb_metric_pair(const struct plumb_metric_spec *spec,
                                  const struct plumb_tensor *target,
                                  const struct plumb_tensor *golden, struct plumb_metrics *out,
                                  struct plumb_error *err);

/* Statistics of one tensor, on one thread. */
void plumb_tensor_stats(const struct plumb_tensor *tensor, struct plumb_stats *out);

/* Named values: what columns and standards refer to. */
struct plumb_metric_name {
    const char *name;  /* "max_abs" */
    const char *title; /* "MaxAbsErr" */
    unsigned group;    /* what must be computed for it */
    bool integer;      /* a count */
    double (*value)(const struct plumb_metrics *metrics);
};

/* The named value, or NULL. The table ends with a row whose name is NULL. */
const struct plumb_metric_name *plumb_metric_find(const char *name);
const struct plumb_metric_name *plumb_metric_names(void);

#ifdef __cplusplus
}
#endif
#endif
