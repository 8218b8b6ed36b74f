/* The ways there are to say how far a target value is from a golden one. */
#include "metric/rule.h"

#include <math.h>

static bool at_most_single(enum plumb_dtype dtype)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    return info->kind == PLUMB_KIND_FLOAT && info->bits <= 32;
}

void rule_init(struct rule *rule, enum plumb_relative_rule which, enum plumb_dtype target,
               enum plumb_dtype golden)
{
    *rule = (struct rule){.which = which};
    bool single = at_most_single(target) && at_most_single(golden);
    switch (which) {
    case PLUMB_REL_PLAIN:
        break;
    case PLUMB_REL_TORCHAIR:
        rule->single = true;
        rule->eps = 0x1p-23;
        break;
    case PLUMB_REL_GENERAL:
        rule->single = single;
        rule->eps = single ? 0x1p-23 : 0x1p-52;
        break;
    case PLUMB_REL_PRECHECK:
        rule->single = single || target == PLUMB_BF16; /* bfloat16 makes float32 of both sides */
        rule->half = golden == PLUMB_F16;
        rule->eps = target == PLUMB_BF16   ? 0x1p-8
                    : golden == PLUMB_F16  ? 0x1p-10
                    : golden == PLUMB_BF16 ? 0x1p-7
                    : golden == PLUMB_F32  ? 0x1p-23
                                           : 0x1p-52;
        break;
    }
}

/* The tool's own precision: float32 where it computes in that. A float64 operation on float32
 * values, rounded to float32, is the float32 operation. */
static double rounded(const struct rule *rule, double x)
{
    return rule->single ? (double)(float)x : x;
}

void rule_values(const struct rule *rule, double *t, double *g, size_t n)
{
    bool single =
        rule->which == PLUMB_REL_TORCHAIR || (rule->which == PLUMB_REL_PRECHECK && rule->single);
    if (!single)
        return;
    for (size_t i = 0; i < n; i++) {
        t[i] = (double)(float)t[i];
        g[i] = (double)(float)g[i];
    }
}

bool rule_takes_as_zero(const struct rule *rule, enum plumb_class t, enum plumb_class g)
{
    if (rule->which != PLUMB_REL_GENERAL || t == PLUMB_FINITE || g == PLUMB_FINITE)
        return false;
    return (t == PLUMB_NAN) == (g == PLUMB_NAN); /* the sign of an infinity does not matter there */
}

void rule_relative(const struct rule *rule, const double *t, const double *g, size_t n, double *d,
                   double *r)
{
    double eps = rule->eps;
    for (size_t i = 0; i < n; i++) {
        double size = rounded(rule, fabs(d[i]));
        if (rule->which == PLUMB_REL_TORCHAIR) {
            bool masked = !(fabs(g[i]) > eps);
            d[i] = masked ? 0 : rounded(rule, d[i]);
            r[i] = masked ? 0 : fabs(rounded(rule, rounded(rule, t[i] / g[i]) - 1));
        } else if (rule->which == PLUMB_REL_GENERAL) {
            double base = g[i];
            if (base == 0) {
                base = eps;
                size = fabs(rounded(rule, rounded(rule, t[i] + eps) - eps));
            }
            r[i] = rounded(rule, size / fabs(base));
        } else {
            r[i] = rounded(rule, size / rounded(rule, fabs(g[i]) + eps));
        }
    }
}

/* The tool takes 2^(10 - e) in float16 when the golden side is that: from 2^16 on it is
 * infinite. */
void rule_ulps(const struct rule *rule, const double *d, const double *g, size_t n, double *u)
{
    if (!rule->half)
        return;
    for (size_t i = 0; i < n; i++)
        if (g[i] != 0 && fabs(g[i]) < 0x1p-5)
            u[i] = d[i] == 0 ? NAN : INFINITY;
}

double rule_own_type(const struct rule *rule, enum plumb_dtype target, enum plumb_dtype golden,
                     double x)
{
    if (target == PLUMB_F16 && golden == PLUMB_F16)
        return plumb_round_to(PLUMB_F16, x);
    return rounded(rule, x);
}
