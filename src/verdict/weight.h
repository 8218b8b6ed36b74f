/* Judging the same weight in two checkpoints, by the rules of the built-in standard `checkpoint`,
 * which the caller loads with standard_load_task. */
#ifndef VERDICT_WEIGHT_H
#define VERDICT_WEIGHT_H

#include "plumb/verdict.h"

struct weight_evidence {
    double cosine;   /* NaN: there are values that are not finite */
    bool has_cosine; /* false: one side is all zero and the other is not */
    double distance; /* |a-b| as a share of |b| */
};

/* What is wrong with the values. The rule is empty when nothing is. */
void weight_judge(const struct plumb_standard *standard, const struct weight_evidence *evidence,
                  struct plumb_verdict *verdict);

/* What is odd about values that pass: integers on one side only, or integers that are not the same
 * on both. Leaves the verdict alone when nothing is. */
void weight_judge_integers(bool one_sided, bool both, double distance,
                           struct plumb_verdict *verdict);

/* The limits, for people. */
double weight_min_cosine(const struct plumb_standard *standard);
double weight_max_distance(const struct plumb_standard *standard);

/* Changes them; NaN leaves one as it is. */
void weight_set_limits(struct plumb_standard *standard, double min_cosine, double max_distance);

#endif
