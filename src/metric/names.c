/* Names for metrics, as columns and standards use them. */
#include "plumb/metric.h"

#include <string.h>

static double share(uint64_t part, const struct plumb_metrics *m)
{
    return m->count ? (double)part / (double)m->count : 1;
}

/* name, title, group, is a count, expression over m */
#define METRICS(X)                                                                                 \
    X(count, "Numbers", PLUMB_G_ERROR, true, (double)m->count)                                     \
    X(cosine, "Cosine", PLUMB_G_ERROR, false, m->cosine)                                           \
    X(one_minus_cosine, "1-Cosine", PLUMB_G_ERROR, false, m->one_minus_cosine)                     \
    X(euclidean, "EucDist", PLUMB_G_ERROR, false, m->euclidean)                                    \
    X(relative_euclidean, "RelEucDist", PLUMB_G_ERROR, false, m->relative_euclidean)               \
    X(rmse, "RMSE", PLUMB_G_ERROR, false, m->rmse)                                                 \
    X(max_abs, "MaxAbsErr", PLUMB_G_ERROR, false, m->max_abs)                                      \
    X(max_abs_index, "MaxAbsErr Index", PLUMB_G_ERROR, true, (double)m->max_abs_index)             \
    X(mean_abs, "MeanAbsErr", PLUMB_G_ABSOLUTE, false, m->mean_abs)                                \
    X(min_abs, "Min Err", PLUMB_G_ABSOLUTE, false, m->min_abs)                                     \
    X(max_rel, "MaxRelativeErr", PLUMB_G_RELATIVE, false, m->max_rel)                              \
    X(mean_rel, "MeanRelativeErr", PLUMB_G_RATIOS, false, m->mean_rel)                             \
    X(rel_below_1e2, "One Hundredth Err Ratio", PLUMB_G_RATIOS, false, share(m->rel_below_1e2, m)) \
    X(rel_below_5e3, "Five Thousandth Err Ratio", PLUMB_G_RELATIVE, false,                         \
      share(m->rel_below_5e3, m))                                                                  \
    X(rel_below_1e3, "One Thousandth Err Ratio", PLUMB_G_RELATIVE, false,                          \
      share(m->rel_below_1e3, m))                                                                  \
    X(rel_below_1e4, "One Ten-thousandth Err Ratio", PLUMB_G_RATIOS, false,                        \
      share(m->rel_below_1e4, m))                                                                  \
    X(close_percent, "IsClose (%)", PLUMB_G_CLOSE, false, 100 * share(m->close, m))                \
    X(not_close, "NotClose", PLUMB_G_CLOSE, true, (double)(m->count - m->close))                   \
    X(greater, "GtNum", PLUMB_G_CLOSE, true, (double)m->greater)                                   \
    X(unequal, "Unequal", PLUMB_G_CLOSE, true, (double)m->unequal)                                 \
    X(integer_differences, "Integer Differences", PLUMB_G_ERROR, true,                             \
      (double)(m->integers ? m->unequal : 0))                                                      \
    X(above, "Target Above", PLUMB_G_CLOSE, true, (double)m->above)                                \
    X(below, "Target Below", PLUMB_G_CLOSE, true, (double)m->below)                                \
    X(error_balance, "Error Balance", PLUMB_G_CLOSE, false, m->error_balance)                      \
    X(abs_over_1e1, "Err > 1e-1", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[0])                  \
    X(abs_over_1e2, "Err > 1e-2", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[1])                  \
    X(abs_over_1e3, "Err > 1e-3", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[2])                  \
    X(abs_over_1e4, "Err > 1e-4", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[3])                  \
    X(abs_over_1e5, "Err > 1e-5", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[4])                  \
    X(abs_over_1e6, "Err > 1e-6", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[5])                  \
    X(abs_over_1e7, "Err > 1e-7", PLUMB_G_ABSOLUTE, true, (double)m->abs_over[6])                  \
    X(max_ulp, "Max ULP", PLUMB_G_ULP, false, m->max_ulp)                                          \
    X(mean_ulp, "Mean ULP", PLUMB_G_ULP, false, m->mean_ulp)                                       \
    X(ulp_over_share, "ULP Over Limit", PLUMB_G_ULP, false,                                        \
      m->count ? (double)m->ulp_over / (double)m->count : 0)                                       \
    X(small, "Small Values", PLUMB_G_SMALL, true, (double)m->small)                                \
    X(small_errors, "Small Value Errors", PLUMB_G_SMALL, true, (double)m->small_errors)            \
    X(nonfinite_mismatch, "NaN/Inf Mismatch", PLUMB_G_ERROR, true, (double)m->nonfinite_mismatch)  \
    X(target_nan, "Target NaN", PLUMB_G_ERROR, true, (double)side_count(m, PLUMB_NAN, true))       \
    X(golden_nan, "Golden NaN", PLUMB_G_ERROR, true, (double)side_count(m, PLUMB_NAN, false))      \
    X(target_pos_inf, "Target +Inf", PLUMB_G_ERROR, true,                                          \
      (double)side_count(m, PLUMB_POS_INF, true))                                                  \
    X(golden_pos_inf, "Golden +Inf", PLUMB_G_ERROR, true,                                          \
      (double)side_count(m, PLUMB_POS_INF, false))                                                 \
    X(target_neg_inf, "Target -Inf", PLUMB_G_ERROR, true,                                          \
      (double)side_count(m, PLUMB_NEG_INF, true))                                                  \
    X(golden_neg_inf, "Golden -Inf", PLUMB_G_ERROR, true,                                          \
      (double)side_count(m, PLUMB_NEG_INF, false))                                                 \
    X(target_min, "Target Min", PLUMB_G_STATS, false, m->target.min)                               \
    X(target_max, "Target Max", PLUMB_G_STATS, false, m->target.max)                               \
    X(target_mean, "Target Mean", PLUMB_G_STATS, false, m->target.mean)                            \
    X(target_std, "Target Std", PLUMB_G_STATS, false, m->target.std)                               \
    X(target_norm, "Target L2norm", PLUMB_G_STATS, false, m->target.norm)                          \
    X(golden_min, "Golden Min", PLUMB_G_STATS, false, m->golden.min)                               \
    X(golden_max, "Golden Max", PLUMB_G_STATS, false, m->golden.max)                               \
    X(golden_mean, "Golden Mean", PLUMB_G_STATS, false, m->golden.mean)                            \
    X(golden_std, "Golden Std", PLUMB_G_STATS, false, m->golden.std)                               \
    X(golden_norm, "Golden L2norm", PLUMB_G_STATS, false, m->golden.norm)                          \
    X(kl, "KL Divergence", PLUMB_G_KL, false, m->kl)                                               \
    X(bits_differ, "Bits Differ", PLUMB_G_BITS, true, (double)m->bits_differ)

#define KNOWN_GROUP(NAME, TITLE, GROUP, COUNT, VALUE)                                              \
    _Static_assert(((GROUP) & ~(PLUMB_G_ALL | PLUMB_G_PRECHECK)) == 0,                             \
                   "a group that update.c knows");
METRICS(KNOWN_GROUP)

static uint64_t side_count(const struct plumb_metrics *m, enum plumb_class class, bool target)
{
    uint64_t n = 0;
    for (int other = 0; other < PLUMB_CLASSES; other++)
        n += target ? m->classes[class][other] : m->classes[other][class];
    return n;
}

#define FUNCTION(name, title, group, integer, expression)                                          \
    static double get_##name(const struct plumb_metrics *m)                                        \
    {                                                                                              \
        return expression;                                                                         \
    }
METRICS(FUNCTION)

#define ROW(name, title, group, integer, expression) {#name, title, group, integer, get_##name},
static const struct plumb_metric_name names[] = {METRICS(ROW){NULL, NULL, 0, false, NULL}};

const struct plumb_metric_name *plumb_metric_names(void)
{
    return names;
}

const struct plumb_metric_name *plumb_metric_find(const char *name)
{
    for (const struct plumb_metric_name *row = names; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}
