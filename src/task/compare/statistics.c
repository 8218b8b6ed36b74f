/* The verdict on a pair of which both sides are known by what was written down about them. */
#define _GNU_SOURCE
#include "base/number.h"
#include "metric/sketch.h"
#include "task/compare/compare.h"
#include "task/compare/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[PLUMB_STATISTICS] = {"Max", "Min", "Mean", "Norm"};

enum checksums { CHECKSUMS_UNKNOWN, CHECKSUMS_EQUAL, CHECKSUMS_DIFFER };

/* What was found so far. */
struct finding {
    unsigned compared, blind; /* statistics that tell something, and those that do not */
    bool other_ends;          /* Max or Min is not the same */
    const char *one_sided;    /* a statistic that only one side has */
    const char *what;         /* the worst of those compared, and its values */
    struct plumb_value worst[2];
    double relative;
    const char *relative_to; /* what the difference was divided by, if not by the golden value */
    bool sketched;
    double distance, at_least; /* relative, estimated; and what it surely is */
};

void compare_decide(struct row *row, enum plumb_severity severity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    row->compared = true;
    row->verdict.severity = severity;
    vsnprintf(row->verdict.rule, sizeof row->verdict.rule, format, args);
    va_end(args);
}

static const char *value_text(const struct plumb_value *value, char text[NUMBER_BYTES])
{
    if (value->text && !isnan(value->number))
        return value->text;
    return number_brief(value->number, 7, text);
}

/* Some captures write what is not finite as text. */
static struct plumb_value value_of(const struct plumb_value *written)
{
    static const struct {
        const char *word;
        double number;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
    bool word = written->kind == PLUMB_VALUE_WORD && written->text;
    bool negative = word && *written->text == '-';
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(written->text + negative, words[i].word) == 0)
            return (struct plumb_value){.kind = PLUMB_VALUE_NUMBER,
                                        .number = negative ? -words[i].number : words[i].number};
    return *written;
}

/* True and False stand for 1 and 0 where the other side has a number. */
static bool as_number(const struct plumb_value *value, double *number)
{
    *number = value->number;
    if (value->kind == PLUMB_VALUE_NUMBER)
        return true;
    bool is_true = value->text && strcmp(value->text, "True") == 0;
    *number = is_true;
    return is_true || (value->text && strcmp(value->text, "False") == 0);
}

/* Integers that float64 may not hold: the difference of what was written down. */
static bool difference_of_integers(const struct plumb_value *target,
                                   const struct plumb_value *golden, double *difference)
{
    const struct plumb_value *values[2] = {target, golden};
    bool negative[2];
    uint64_t size[2];
    for (int i = 0; i < 2; i++) {
        const char *text = values[i]->text;
        if (!text || fabs(values[i]->number) > 0x1p64)
            return false;
        negative[i] = *text == '-';
        text += negative[i];
        if (!*text || text[strspn(text, "0123456789")])
            return false;
        errno = 0;
        size[i] = strtoull(text, NULL, 10);
        if (errno)
            return false;
    }
    if (negative[0] != negative[1]) {
        *difference = target->number - golden->number;
        return true;
    }
    bool less = size[0] < size[1];
    double apart = (double)(less ? size[1] - size[0] : size[0] - size[1]);
    *difference = less != negative[0] ? -apart : apart;
    return true;
}

static struct difference difference_of(const struct plumb_value *target,
                                       const struct plumb_value *golden)
{
    double t, g;
    if (target->kind == PLUMB_VALUE_NONE || golden->kind == PLUMB_VALUE_NONE)
        return (struct difference){.kind = DIFFERENCE_NONE};
    if (!as_number(target, &t) || !as_number(golden, &g)) {
        bool same = target->text && golden->text && strcmp(target->text, golden->text) == 0;
        return (struct difference){same ? DIFFERENCE_NUMBER : DIFFERENCE_WORD, 0,
                                   same ? 0 : INFINITY};
    }
    double apart = t - g;
    bool same = t == g || (isnan(t) && isnan(g));
    if ((fabs(t) >= 0x1p53 || fabs(g) >= 0x1p53) && difference_of_integers(target, golden, &apart))
        same = apart == 0;
    if (same)
        return (struct difference){DIFFERENCE_NUMBER, 0, 0};
    if (isnan(t) || isnan(g))
        return (struct difference){DIFFERENCE_NUMBER, NAN, NAN};
    double relative = isinf(t) || isinf(g) || g == 0 ? INFINITY : fabs(apart / g);
    return (struct difference){DIFFERENCE_NUMBER, apart, relative};
}

/* NaN is worse than everything. */
static bool worse(double a, double b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

static bool is_infinite_or_nan(const struct plumb_value *value)
{
    return value->kind == PLUMB_VALUE_NUMBER && !isfinite(value->number);
}

/* How many of the elements the golden statistics are about; 0 when that is not known. */
static uint64_t golden_count(const struct evidence *evidence, bool finite)
{
    const struct plumb_kept *kept = evidence->side[1].kept;
    uint64_t rest = evidence->count;
    if (!finite)
        return rest;
    const uint64_t odd[] = {kept->nan, kept->pos_inf, kept->neg_inf};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        rest = odd[i] < rest ? rest - odd[i] : 0;
    return rest;
}

static bool is_finite(const struct plumb_value *value)
{
    return value && value->kind == PLUMB_VALUE_NUMBER && isfinite(value->number);
}

/* norm / sqrt(n) of the golden values, or what the deviation says about it; 0 when neither is
 * known. */
static double golden_size(const struct evidence *evidence, bool finite)
{
    const struct account *golden = &evidence->side[1];
    const struct plumb_value *statistic = finite ? golden->kept->finite : golden->statistic;
    const struct plumb_value *norm = &statistic[PLUMB_STATISTIC_NORM];
    const struct plumb_value *mean = &statistic[PLUMB_STATISTIC_MEAN];
    uint64_t count = golden_count(evidence, finite);
    if (is_finite(norm) && count)
        return fabs(norm->number) / sqrt((double)count);
    if (!finite && is_finite(golden->deviation) && is_finite(mean))
        return hypot(mean->number, golden->deviation->number);
    return 0;
}

/* A mean that is small beside the values is what is left when they cancel: their size says what a
 * difference is worth. */
static void judge_mean(const struct evidence *evidence, bool finite, double mean,
                       struct difference *difference, const char **relative_to)
{
    const double small = 0.1;
    double size = golden_size(evidence, finite);
    if (!(fabs(mean) < small * size) || !isfinite(difference->absolute) ||
        difference->kind != DIFFERENCE_NUMBER)
        return;
    double relative = fabs(difference->absolute) / size;
    if (!(relative < difference->relative))
        return;
    difference->relative = relative;
    *relative_to = "norm/sqrt(n)";
}

static void look_at(struct finding *finding, const struct evidence *evidence, int which,
                    struct difference difference)
{
    const struct account *target = &evidence->side[0], *golden = &evidence->side[1];
    struct plumb_value t = value_of(&target->statistic[which]);
    struct plumb_value g = value_of(&golden->statistic[which]);
    const char *relative_to = NULL;
    /* The same on both sides, and it says nothing about the values beside it. */
    bool finite = is_infinite_or_nan(&t) && is_infinite_or_nan(&g) && difference.absolute == 0;
    if (finite) {
        bool known = target->kept && golden->kept;
        if (known) {
            t = target->kept->finite[which];
            g = golden->kept->finite[which];
        }
        if (!known || t.kind == PLUMB_VALUE_NONE || g.kind == PLUMB_VALUE_NONE) {
            finding->blind++;
            return;
        }
        difference = difference_of(&t, &g);
    }
    if (which == PLUMB_STATISTIC_MAX || which == PLUMB_STATISTIC_MIN)
        finding->other_ends = finding->other_ends || difference.relative != 0;
    if (which == PLUMB_STATISTIC_MEAN)
        judge_mean(evidence, finite, g.number, &difference, &relative_to);
    if (!finding->compared++ || worse(difference.relative, finding->relative)) {
        finding->what = names[which];
        finding->worst[0] = t;
        finding->worst[1] = g;
        finding->relative = difference.relative;
        finding->relative_to = relative_to;
    }
}

/* There are elements, but not one that sketches and statistics of finite values could be about. */
static bool nothing_finite(const struct evidence *evidence)
{
    return evidence->side[1].kept && evidence->count && !golden_count(evidence, true);
}

static void look_at_sketches(struct finding *finding, const struct evidence *evidence)
{
    const struct plumb_kept *t = evidence->side[0].kept, *g = evidence->side[1].kept;
    /* Those of tensors without finite values are all zero, and tell nothing. */
    if (!t || !g || !t->sketch || !g->sketch || nothing_finite(evidence))
        return;
    const struct plumb_value *norm = &g->finite[PLUMB_STATISTIC_NORM];
    if (norm->kind != PLUMB_VALUE_NUMBER)
        norm = &evidence->side[1].statistic[PLUMB_STATISTIC_NORM];
    bool known = is_finite(norm);
    finding->sketched = true;
    finding->distance = sketch_distance(t->sketch, g->sketch, known ? fabs(norm->number) : NAN);
    finding->at_least = finding->distance / (known ? SKETCH_EXCESS : SKETCH_EXCESS_OF_RATIO);
}

static struct finding look(const struct evidence *evidence, struct difference *differences)
{
    const struct account *target = &evidence->side[0], *golden = &evidence->side[1];
    struct finding finding = {0};
    for (int i = 0; i < PLUMB_STATISTICS; i++) {
        struct plumb_value t = value_of(&target->statistic[i]);
        struct plumb_value g = value_of(&golden->statistic[i]);
        differences[i] = difference_of(&t, &g);
        if (differences[i].kind != DIFFERENCE_NONE)
            look_at(&finding, evidence, i, differences[i]);
        /* Captures give Mean and Norm for some types only, condense what it is told to keep. */
        else if (i <= PLUMB_STATISTIC_MIN && t.kind != g.kind && !target->exact && !golden->exact)
            finding.one_sided = names[i];
    }
    look_at_sketches(&finding, evidence);
    return finding;
}

static enum checksums compare_checksums(const struct evidence *evidence, const char *sums[2])
{
    bool kept = evidence->side[0].kept && evidence->side[1].kept;
    enum plumb_dtype dtype[2]; /* equal values of different types have different bits */
    for (int i = 0; i < 2; i++) {
        const struct account *side = &evidence->side[i];
        sums[i] = kept ? side->kept->crc32 : side->checksum;
        dtype[i] = kept ? side->kept->dtype : side->dtype;
    }
    if (!sums[0] || !sums[1] || dtype[0] != dtype[1] || dtype[0] == PLUMB_DTYPE_COUNT ||
        compare_is_xor(sums[0]) != compare_is_xor(sums[1]))
        return CHECKSUMS_UNKNOWN;
    return strcasecmp(sums[0], sums[1]) == 0 ? CHECKSUMS_EQUAL : CHECKSUMS_DIFFER;
}

/* True when the numbers of NaN and infinities are known, and not the same. */
static bool judge_counts(struct row *row, const struct evidence *evidence)
{
    const struct plumb_kept *t = evidence->side[0].kept, *g = evidence->side[1].kept;
    if (!t || !g)
        return false;
    const struct {
        const char *word;
        uint64_t target, golden;
    } counts[] = {{"NaN", t->nan, g->nan},
                  {"infinite", t->pos_inf, g->pos_inf},
                  {"-infinite", t->neg_inf, g->neg_inf}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i].target == counts[i].golden)
            continue;
        compare_decide(
            row, PLUMB_FAILED, "%" PRIu64 " %s value%s, but %" PRIu64 " in the golden tensor",
            counts[i].target, counts[i].word, counts[i].target == 1 ? "" : "s", counts[i].golden);
        return true;
    }
    return false;
}

static void judge_worst(struct row *row, const struct finding *finding, double limit,
                        enum plumb_severity severity)
{
    char a[NUMBER_BYTES], b[NUMBER_BYTES];
    const char *t = value_text(&finding->worst[0], a), *g = value_text(&finding->worst[1], b);
    if (!(finding->compared && !(finding->relative < limit)))
        compare_decide(row, severity,
                       "relative distance %.4g%% by the sketches, at least %.4g%% >= %.4g%%",
                       finding->distance * 100, finding->at_least * 100, limit * 100);
    else if (isnan(finding->relative))
        compare_decide(row, severity, "%s %s against %s: NaN on one side only", finding->what, t,
                       g);
    else if (finding->relative_to)
        compare_decide(row, severity, "%s %s against %s: difference %.4g%% of %s >= %.4g%%",
                       finding->what, t, g, finding->relative * 100, finding->relative_to,
                       limit * 100);
    else
        compare_decide(row, severity, "%s %s against %s: relative difference %.4g%% >= %.4g%%",
                       finding->what, t, g, finding->relative * 100, limit * 100);
}

static bool reaches(const struct finding *finding, double limit)
{
    return (finding->compared && !(finding->relative < limit)) ||
           (finding->sketched && finding->at_least >= limit);
}

static void leave_unjudged(struct row *row, const char *why)
{
    row->unjudged = true;
    compare_decide(row, PLUMB_SUSPICIOUS, "not judged: %s", why);
}

/* Another order of the same values leads to sums that are rounded differently: that is no
 * difference of statistics. A sketch would have seen the order. */
static bool differs_by_rounding(const struct finding *finding, double largest)
{
    const double rounding = 1e-13;
    return largest == 0 || (!finding->sketched && largest < rounding);
}

/* What is left when nothing is too far off. */
static void judge_rest(struct row *row, const struct evidence *evidence,
                       const struct finding *finding)
{
    const char *sums[2];
    enum checksums checksums = compare_checksums(evidence, sums);
    const struct plumb_kept *t = evidence->side[0].kept, *g = evidence->side[1].kept;
    bool by_sketch = finding->sketched && finding->distance >= finding->relative;
    double largest = by_sketch ? finding->distance : finding->relative;
    const char *what = by_sketch ? "distance" : finding->what;
    bool same = checksums == CHECKSUMS_EQUAL && largest == 0;
    bool nan = t && g && g->nan, blind = finding->blind && !finding->sketched;
    if (same) {
        compare_decide(row, nan || blind ? PLUMB_SUSPICIOUS : PLUMB_NORMAL,
                       "%sthe checksums are equal",
                       nan || blind ? "NaN or infinite on both sides; " : "");
    } else if (!finding->compared && !finding->sketched) {
        leave_unjudged(row, "NaN or infinite on both sides, which says nothing about the rest");
    } else if (checksums == CHECKSUMS_DIFFER && differs_by_rounding(finding, largest)) {
        leave_unjudged(row, "the statistics are equal, but the checksums differ");
    } else if (nan || blind) {
        compare_decide(row, PLUMB_SUSPICIOUS,
                       "NaN or infinite on both sides; what is not differs by %.4g%% (%s)",
                       largest * 100, what);
    } else if (evidence->integers && (checksums == CHECKSUMS_DIFFER || finding->other_ends)) {
        compare_decide(row, PLUMB_SUSPICIOUS, "integers that are not the same: %.4g%% (%s)",
                       largest * 100, what);
    } else {
        compare_decide(row, PLUMB_NORMAL, "largest relative difference %.4g%% < %.4g%% (%s)",
                       largest * 100, evidence->limit * 100, what);
    }
}

void compare_judge_checksums(struct row *row, const char *target, const char *golden)
{
    bool same = strcasecmp(target, golden) == 0;
    row->distance = same ? 0 : INFINITY;
    row->max_rel = row->distance;
    if (same)
        compare_decide(row, PLUMB_NORMAL, "the checksums are equal");
    else if (compare_is_xor(target) != compare_is_xor(golden))
        compare_decide(row, PLUMB_FAILED, "checksums of different kinds: %.40s against %.40s",
                       target, golden);
    else
        compare_decide(row, PLUMB_FAILED, "the checksums differ: %.40s against %.40s", target,
                       golden);
}

/* The checksums are all that both sides have. */
static void judge_without_statistics(struct row *row, const struct evidence *evidence)
{
    const char *sums[2];
    switch (compare_checksums(evidence, sums)) {
    case CHECKSUMS_UNKNOWN:
        if (nothing_finite(evidence)) {
            leave_unjudged(row, "NaN or infinite on both sides, which says nothing about the rest");
            break;
        }
        row->problem = strdup(sums[0] && sums[1]
                                  ? "the types differ, so that checksums cannot be compared"
                                  : "neither a statistic nor a checksum is there on both sides");
        break;
    case CHECKSUMS_EQUAL:
    case CHECKSUMS_DIFFER:
        compare_judge_checksums(row, sums[0], sums[1]);
    }
}

void compare_judge_statistics(struct row *row, const struct evidence *evidence,
                              struct difference *differences)
{
    double limit = evidence->limit;
    struct finding finding = look(evidence, differences);
    row->has_differences = finding.compared || finding.blind;
    row->distance = finding.sketched ? finding.distance : finding.relative;
    const struct difference *norm = &differences[PLUMB_STATISTIC_NORM];
    row->max_rel = norm->kind == DIFFERENCE_NUMBER ? norm->relative : finding.relative;
    if (judge_counts(row, evidence)) {
        row->distance = row->max_rel = INFINITY;
        return;
    }
    if (!row->has_differences && !finding.sketched)
        judge_without_statistics(row, evidence);
    else if (finding.one_sided)
        compare_decide(row, PLUMB_FAILED, "%s was recorded on one side only", finding.one_sided);
    else if (reaches(&finding, limit))
        judge_worst(row, &finding, limit, PLUMB_FAILED);
    else if (reaches(&finding, limit / 10))
        judge_worst(row, &finding, limit / 10, PLUMB_SUSPICIOUS);
    else
        judge_rest(row, evidence, &finding);
}
