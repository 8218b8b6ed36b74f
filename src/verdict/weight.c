/* The verdict on the same weight in two checkpoints. */
#include "verdict/weight.h"

#include "base/number.h"
#include "verdict/decide.h"
#include "verdict/rules.h"

#include <math.h>

#define COSINE "cosine"
#define DISTANCE "relative_euclidean"

/* The standard is built in, so that both rules are there. */
static const struct standard_rule *rule_on(const struct plumb_standard *standard, const char *name)
{
    return standard_find_rule(standard, name, PLUMB_FAILED);
}

void weight_judge(const struct plumb_standard *standard, const struct weight_evidence *evidence,
                  struct plumb_verdict *verdict)
{
    const struct standard_rule *cosine = rule_on(standard, COSINE);
    const struct standard_rule *distance = rule_on(standard, DISTANCE);
    char number[NUMBER_BYTES];
    *verdict = (struct plumb_verdict){.severity = PLUMB_NORMAL};
    if (isnan(evidence->cosine))
        verdict_decide(verdict, PLUMB_FAILED, "there are values that are not finite");
    else if (!evidence->has_cosine)
        verdict_decide(verdict, PLUMB_FAILED, "one side is all zero");
    else if (!standard_is_met(cosine, evidence->cosine))
        verdict_decide(verdict, PLUMB_FAILED, "cos %.7g is below %g", evidence->cosine,
                       cosine->limit);
    else if (!standard_is_met(distance, evidence->distance))
        verdict_decide(verdict, PLUMB_FAILED, "l2 is %s of the norm of the second, above %g",
                       number_brief(evidence->distance, 4, number), distance->limit);
}

void weight_judge_integers(bool one_sided, bool both, double distance,
                           struct plumb_verdict *verdict)
{
    if (one_sided)
        verdict_decide(verdict, PLUMB_SUSPICIOUS, "integers on one side only");
    else if (both && distance > 0)
        verdict_decide(verdict, PLUMB_SUSPICIOUS, "integers that are not the same");
}

double weight_min_cosine(const struct plumb_standard *standard)
{
    return rule_on(standard, COSINE)->limit;
}

double weight_max_distance(const struct plumb_standard *standard)
{
    return rule_on(standard, DISTANCE)->limit;
}

void weight_set_limits(struct plumb_standard *standard, double min_cosine, double max_distance)
{
    if (!isnan(min_cosine))
        standard_set_limit(standard, COSINE, min_cosine);
    if (!isnan(max_distance))
        standard_set_limit(standard, DISTANCE, max_distance);
}
