/* The ways there are to say how far a target value is from a golden one.
 *
 * A rule prepares a block: which pairs count, with what difference and what relative error. The
 * plain rule is the kernels' own; the others follow tools whose numbers plumb reproduces, in their
 * order of rounding, and are scalar. */
#ifndef METRIC_RULE_H
#define METRIC_RULE_H

#include "plumb/metric.h"

struct rule {
    enum plumb_relative_rule which;
    bool single; /* the tool computes in float32 */
    bool half;   /* the tool takes powers of two in float16 */
    double eps;
};

void rule_init(struct rule *rule, enum plumb_relative_rule which, enum plumb_dtype target,
               enum plumb_dtype golden);

/* Changes values before anything else looks at them. */
void rule_values(const struct rule *rule, double *t, double *g, size_t n);

/* Does the rule compare such a pair as two zeros? */
bool rule_takes_as_zero(const struct rule *rule, enum plumb_class t, enum plumb_class g);

/* Fills r, and changes d where the rule masks errors. Only for rules other than the plain one. */
void rule_relative(const struct rule *rule, const double *t, const double *g, size_t n, double *d,
                   double *r);

/* Changes ULP errors where the tool's own arithmetic overflows. */
void rule_ulps(const struct rule *rule, const double *d, const double *g, size_t n, double *u);

/* x rounded to the type in which the tool would hold a difference of the two. */
double rule_own_type(const struct rule *rule, enum plumb_dtype target, enum plumb_dtype golden,
                     double x);

#endif
