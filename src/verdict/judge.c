/* Judging the metrics of a pair of tensors by the rules of a standard. */
#include "base/plain.h"
#include "verdict/decide.h"
#include "verdict/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define KINDS_SHOWN 2 /* kinds of NaN and infinity mismatches that a verdict names */

/* The sign of what is true when a rule is broken: "max_abs 0.02 > 0.01". */
static const char *const broken_sign[] = {">=", ">", "<=", "<", "!=", "=="};
_Static_assert(sizeof broken_sign / sizeof *broken_sign == STANDARD_RELATIONS, "a sign each");

bool standard_is_met(const struct standard_rule *rule, double value)
{
    if (isnan(value))
        return false;
    switch (rule->relation) {
    case STANDARD_LT:
        return value < rule->limit;
    case STANDARD_LE:
        return value <= rule->limit;
    case STANDARD_GT:
        return value > rule->limit;
    case STANDARD_GE:
        return value >= rule->limit;
    case STANDARD_EQ:
        return value == rule->limit;
    case STANDARD_NE:
        return value != rule->limit;
    case STANDARD_RELATIONS:
        break;
    }
    return false;
}

static void explain(struct plumb_verdict *verdict, const struct standard_rule *rule, double value)
{
    const char *name = rule->metric->name, *wanted = standard_sign[rule->relation];
    if (isnan(value)) {
        plain_print(verdict->rule, sizeof verdict->rule, "%s is NaN, needs %s %.7g", name, wanted,
                    rule->limit);
        return;
    }
    char number[32], limit[32];
    plain_print(number, sizeof number, "%.7g", value);
    plain_print(limit, sizeof limit, "%.7g", rule->limit);
    /* "0.01 > 0.01" would look like a mistake. */
    if (value != rule->limit && strcmp(number, limit) == 0) {
        plain_print(number, sizeof number, "%.17g", value);
        plain_print(limit, sizeof limit, "%.17g", rule->limit);
    }
    const char *sign = standard_is_met(rule, value) ? wanted : broken_sign[rule->relation];
    plain_print(verdict->rule, sizeof verdict->rule, "%s %s %s %s", name, number, sign, limit);
}

static void append(struct plumb_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct plumb_verdict *verdict, const char *format, ...)
{
    size_t used = strlen(verdict->rule);
    va_list args;
    va_start(args, format);
    plain_vprint(verdict->rule + used, sizeof verdict->rule - used, format, args);
    va_end(args);
}

/* "3 values are NaN or infinite on one side only (2 NaN against finite, 1 finite against -inf)". */
static void explain_nonfinite(struct plumb_verdict *verdict, const struct plumb_metrics *metrics)
{
    static const char *const word[] = {"finite", "inf", "-inf", "NaN"};
    _Static_assert(sizeof word / sizeof *word == PLUMB_CLASSES, "a word each");
    uint64_t one_sided = 0, count = metrics->nonfinite_mismatch;
    for (int class = PLUMB_FINITE + 1; class < PLUMB_CLASSES; class ++)
        one_sided += metrics->classes[class][PLUMB_FINITE] + metrics->classes[PLUMB_FINITE][class];
    append(verdict, "%" PRIu64 " value%s NaN or infinite %s", count, count == 1 ? " is" : "s are",
           one_sided == count ? "on one side only" : "and not the same on both sides");

    int kinds = 0;
    for (int t = 0; t < PLUMB_CLASSES; t++)
        for (int g = 0; g < PLUMB_CLASSES; g++)
            if (t != g && metrics->classes[t][g] > 0 && kinds++ < KINDS_SHOWN)
                append(verdict, "%s%" PRIu64 " %s against %s", kinds == 1 ? " (" : ", ",
                       metrics->classes[t][g], word[t], word[g]);
    if (kinds > 0)
        append(verdict, kinds > KINDS_SHOWN ? ", ...)" : ")");
}

/* The first rule of that severity that is not met, or NULL; *first is the first one there is. */
static const struct standard_rule *find_broken(const struct standard_rule *rule,
                                               enum plumb_severity severity,
                                               const struct plumb_metrics *metrics,
                                               const struct standard_rule **first)
{
    for (; rule; rule = rule->next) {
        if (!rule->metric || rule->severity != severity)
            continue;
        if (!*first)
            *first = rule;
        if (!standard_is_met(rule, rule->metric->value(metrics)))
            return rule;
    }
    return NULL;
}

void plumb_standard_judge(const struct plumb_standard *standard,
                          const struct plumb_metrics *metrics, struct plumb_verdict *verdict)
{
    *verdict = (struct plumb_verdict){.severity = PLUMB_NORMAL};
    if (metrics->count == 0) {
        plain_print(verdict->rule, sizeof verdict->rule, "both sides are empty");
        return;
    }
    if (metrics->nonfinite_mismatch > 0) {
        verdict->severity = PLUMB_FAILED;
        verdict->nonfinite = true;
        explain_nonfinite(verdict, metrics);
        return;
    }

    const struct standard_rule *met = NULL;
    const struct standard_rule *broken = find_broken(standard->rules, PLUMB_FAILED, metrics, &met);
    if (!broken)
        broken = find_broken(standard->rules, PLUMB_SUSPICIOUS, metrics, &met);
    if (broken) {
        verdict->severity = broken->severity;
        explain(verdict, broken, broken->metric->value(metrics));
        return;
    }

    uint64_t both_nan = metrics->classes[PLUMB_NAN][PLUMB_NAN];
    if (both_nan > 0) {
        verdict->severity = PLUMB_SUSPICIOUS;
        plain_print(verdict->rule, sizeof verdict->rule, "NaN on both sides at %" PRIu64 " place%s",
                    both_nan, both_nan == 1 ? "" : "s");
    } else if (met) {
        explain(verdict, met, met->metric->value(metrics));
    }
}

void standard_judge_jump(const struct plumb_standard *standard, double output, double input,
                         struct plumb_verdict *verdict)
{
    double limit = plumb_standard_jump(standard);
    /* Exact inputs say nothing: the first rounding has to happen somewhere. */
    if (verdict->severity != PLUMB_NORMAL || !(limit > 0) || !(input > 0) ||
        !(output / input > limit))
        return;
    verdict_decide(verdict, PLUMB_SUSPICIOUS,
                   "jump %.3g > %.3g: max_rel %.3g from inputs with %.3g", output / input, limit,
                   output, input);
}
