/* The verdict on a pair of which both sides are known by what was written down about them. */
#include "base/number.h"
#include "metric/sketch.h"
#include "verdict/decide.h"
#include "verdict/recorded.h"
#include "verdict/rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[PLUMB_STATISTICS] = {"Max", "Min", "Mean", "Norm"};

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
    int versions[2];           /* of sketches that cannot be compared; 0: none */
    double distance, at_least; /* relative, estimated; and what it surely is */
    double error;              /* the standard error of the estimate */
};

static const char *value_text(const struct plumb_value *value, char text[NUMBER_BYTES])
{
    if (value->text && !isnan(value->number))
        return value->text;
    if (value->written && !isnan(value->number)) {
        number_exact(value->number, true, text);
        return text;
    }
    return number_brief(value->number, 7, text);
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
static uint64_t golden_count(const struct recorded_evidence *evidence, bool finite)
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
static double golden_size(const struct recorded_evidence *evidence, bool finite)
{
    const struct recorded_account *golden = &evidence->side[1];
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
static void judge_mean(const struct recorded_evidence *evidence, bool finite, double mean,
                       struct recorded_difference *difference, const char **relative_to)
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

static void look_at(struct finding *finding, const struct recorded_evidence *evidence, int which,
                    struct recorded_difference difference)
{
    const struct recorded_account *target = &evidence->side[0], *golden = &evidence->side[1];
    struct plumb_value t = recorded_value(&target->statistic[which]);
    struct plumb_value g = recorded_value(&golden->statistic[which]);
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
        difference = recorded_difference(&t, &g);
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
static bool nothing_finite(const struct recorded_evidence *evidence)
{
    return evidence->side[1].kept && evidence->count && !golden_count(evidence, true);
}

static void look_at_sketches(struct finding *finding, const struct recorded_evidence *evidence)
{
    const struct plumb_kept *t = evidence->side[0].kept, *g = evidence->side[1].kept;
    /* Those of tensors without finite values are all zero, and tell nothing. */
    if (!t || !g || !t->sketch || !g->sketch || nothing_finite(evidence))
        return;
    if (t->sketch->version != g->sketch->version) {
        finding->versions[0] = t->sketch->version;
        finding->versions[1] = g->sketch->version;
        return;
    }
    const struct plumb_value *norm = &g->finite[PLUMB_STATISTIC_NORM];
    if (norm->kind != PLUMB_VALUE_NUMBER)
        norm = &evidence->side[1].statistic[PLUMB_STATISTIC_NORM];
    bool known = is_finite(norm);
    finding->sketched = true;
    const struct sketch_estimate estimate =
        sketch_distance(t->sketch, g->sketch, known ? fabs(norm->number) : NAN);
    finding->distance = estimate.distance;
    finding->at_least = estimate.at_least;
    finding->error = estimate.error;
}

static void set_estimate(struct recorded_estimate *out, const struct recorded_evidence *evidence,
                         const struct finding *finding)
{
    if (!finding->sketched)
        return;
    const struct plumb_sketch *t = evidence->side[0].kept->sketch;
    const struct plumb_sketch *g = evidence->side[1].kept->sketch;
    const struct sketch_scale scale = sketch_scale(t, g);
    *out = (struct recorded_estimate){.there = true,
                                      .distance = finding->distance,
                                      .error = finding->error,
                                      .scale = scale.factor,
                                      .scale_error = scale.error,
                                      .left = scale.left};
    sketch_where(t, g, out->where, sizeof out->where);
}

static struct finding look(const struct recorded_evidence *evidence,
                           struct recorded_difference *differences)
{
    const struct recorded_account *target = &evidence->side[0], *golden = &evidence->side[1];
    struct finding finding = {0};
    for (int i = 0; i < PLUMB_STATISTICS; i++) {
        struct plumb_value t = recorded_value(&target->statistic[i]);
        struct plumb_value g = recorded_value(&golden->statistic[i]);
        differences[i] = recorded_difference(&t, &g);
        if (differences[i].kind != DIFFERENCE_NONE)
            look_at(&finding, evidence, i, differences[i]);
        /* Captures give Mean and Norm for some types only, condense what it is told to keep. */
        else if (i <= PLUMB_STATISTIC_MIN && t.kind != g.kind && !target->exact && !golden->exact)
            finding.one_sided = names[i];
    }
    look_at_sketches(&finding, evidence);
    return finding;
}

/* Hashes of 128 bits where both sides have them. */
static bool have_hashes(const struct recorded_evidence *evidence)
{
    const struct plumb_kept *t = evidence->side[0].kept, *g = evidence->side[1].kept;
    return t && g && t->hash && g->hash;
}

static enum recorded_checksums compare_checksums(const struct recorded_evidence *evidence,
                                                 const char *sums[2])
{
    bool kept = evidence->side[0].kept && evidence->side[1].kept, hashes = have_hashes(evidence);
    enum plumb_dtype dtypes[2];
    for (int i = 0; i < 2; i++) {
        const struct recorded_account *side = &evidence->side[i];
        sums[i] = hashes ? side->kept->hash : kept ? side->kept->crc32 : side->checksum;
        dtypes[i] = kept ? side->kept->dtype : side->dtype;
    }
    return recorded_compare_checksums(sums, dtypes);
}

/* True when the numbers of NaN and infinities are known, and not the same. */
static bool judge_counts(struct plumb_verdict *verdict, const struct recorded_evidence *evidence)
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
        verdict_decide(
            verdict, PLUMB_FAILED, "%" PRIu64 " %s value%s, but %" PRIu64 " in the golden tensor",
            counts[i].target, counts[i].word, counts[i].target == 1 ? "" : "s", counts[i].golden);
        verdict->nonfinite = true;
        return true;
    }
    return false;
}

/* Is a recorded statistic, or else the sketches, beyond the limit? What a sketch cannot tell (NaN)
 * breaks no rule. */
static bool statistic_breaks(const struct finding *finding, const struct standard_rule *rule)
{
    return finding->compared && !standard_is_met(rule, finding->relative);
}

static bool breaks(const struct finding *finding, const struct standard_rule *rule)
{
    return statistic_breaks(finding, rule) || (finding->sketched && !isnan(finding->at_least) &&
                                               !standard_is_met(rule, finding->at_least));
}

static void judge_worst(struct plumb_verdict *verdict, const struct finding *finding,
                        const struct standard_rule *rule)
{
    char a[NUMBER_BYTES], b[NUMBER_BYTES];
    const char *t = value_text(&finding->worst[0], a), *g = value_text(&finding->worst[1], b);
    char c[NUMBER_BYTES], d[NUMBER_BYTES];
    const double limit = rule->limit * 100, relative = finding->relative * 100;
    if (!statistic_breaks(finding, rule))
        verdict_decide(
            verdict, rule->severity,
            "relative distance %.4g%% (estimate, standard error %.2g%%) by the sketches, at "
            "least %.4g%% >= %.4g%%",
            finding->distance * 100, finding->error * 100, finding->at_least * 100, limit);
    else if (isnan(relative))
        verdict_decide(verdict, rule->severity, "%s %s against %s: NaN on one side only",
                       finding->what, t, g);
    else {
        const char *const pieces[] = {finding->what,
                                      " ",
                                      t,
                                      " against ",
                                      g,
                                      finding->relative_to ? ": difference "
                                                           : ": relative difference ",
                                      number_brief(relative, 4, c),
                                      finding->relative_to ? "% of " : "%",
                                      finding->relative_to ? finding->relative_to : "",
                                      " >= ",
                                      number_brief(limit, 4, d),
                                      "%"};
        verdict_join(verdict, rule->severity, pieces, sizeof pieces / sizeof *pieces);
    }
    verdict->nonfinite =
        statistic_breaks(finding, rule) &&
        is_infinite_or_nan(&finding->worst[0]) != is_infinite_or_nan(&finding->worst[1]);
}

/* Another order of the same values leads to sums that are rounded differently: that is no
 * difference of statistics. A sketch would have seen the order. */
static bool differs_by_rounding(const struct finding *finding, double largest)
{
    const double rounding = 1e-13;
    return largest == 0 || (!finding->sketched && largest < rounding);
}

/* What is left when nothing is too far off. */
static void judge_rest(struct plumb_verdict *verdict, const struct recorded_evidence *evidence,
                       const struct finding *finding, double limit)
{
    const char *sums[2];
    enum recorded_checksums checksums = compare_checksums(evidence, sums);
    const struct plumb_kept *t = evidence->side[0].kept, *g = evidence->side[1].kept;
    bool by_sketch = finding->sketched && finding->distance >= finding->relative;
    double largest = by_sketch ? finding->distance : finding->relative;
    const char *what = by_sketch ? "distance" : finding->what;
    bool same = checksums == CHECKSUMS_EQUAL && largest == 0;
    bool nan = t && g && g->nan, blind = finding->blind && !finding->sketched;
    if (same) {
        verdict_decide(verdict, nan || blind ? PLUMB_SUSPICIOUS : PLUMB_NORMAL,
                       "%sthe %s are equal", nan || blind ? "NaN or infinite on both sides; " : "",
                       have_hashes(evidence) ? "hashes of all bytes" : "checksums");
    } else if (!finding->compared && !finding->sketched) {
        verdict_leave(verdict, "NaN or infinite on both sides, which says nothing about the rest");
    } else if (checksums == CHECKSUMS_DIFFER && differs_by_rounding(finding, largest)) {
        verdict_leave(verdict, have_hashes(evidence)
                                   ? "the statistics are equal, but the hashes differ"
                                   : "the statistics are equal, but the checksums differ");
    } else if (nan || blind) {
        verdict_decide(verdict, PLUMB_SUSPICIOUS,
                       "NaN or infinite on both sides; what is not differs by %.4g%% (%s)",
                       largest * 100, what);
    } else if (evidence->integers && (checksums == CHECKSUMS_DIFFER || finding->other_ends)) {
        verdict_decide(verdict, PLUMB_SUSPICIOUS, "integers that are not the same: %.4g%% (%s)",
                       largest * 100, what);
    } else {
        char more[80] = "";
        if (finding->versions[0])
            snprintf(more, sizeof more,
                     "; sketches of versions %d and %d, which cannot be compared",
                     finding->versions[0], finding->versions[1]);
        verdict_decide(verdict, PLUMB_NORMAL, "largest relative difference %.4g%% < %.4g%% (%s)%s",
                       largest * 100, limit * 100, what, more);
    }
}

/* The checksums are all that both sides have. */
static void judge_without_statistics(const struct recorded_evidence *evidence,
                                     struct recorded_judgement *out)
{
    const char *sums[2];
    if (compare_checksums(evidence, sums) != CHECKSUMS_UNKNOWN)
        recorded_judge_checksums(sums[0], sums[1], out);
    else if (nothing_finite(evidence))
        verdict_leave(&out->verdict,
                      "NaN or infinite on both sides, which says nothing about the rest");
    else
        out->problem = sums[0] && sums[1]
                           ? "the types differ, so that checksums cannot be compared"
                           : "neither a statistic nor a checksum is there on both sides";
}

void recorded_judge_statistics(const struct plumb_standard *standard,
                               const struct recorded_evidence *evidence,
                               struct recorded_judgement *out)
{
    const struct standard_rule *require =
        standard_find_rule(standard, RULE_STATISTICS, PLUMB_FAILED);
    const struct standard_rule *expect =
        standard_find_rule(standard, RULE_STATISTICS, PLUMB_SUSPICIOUS);
    *out = (struct recorded_judgement){0};
    struct finding finding = look(evidence, out->difference);
    const struct recorded_difference *norm = &out->difference[PLUMB_STATISTIC_NORM];
    out->has_differences = finding.compared || finding.blind;
    out->distance = finding.sketched ? finding.distance : finding.relative;
    set_estimate(&out->estimate, evidence, &finding);
    out->max_rel = norm->kind == DIFFERENCE_NUMBER ? norm->relative : finding.relative;
    if (judge_counts(&out->verdict, evidence))
        out->distance = out->max_rel = INFINITY;
    else if (!out->has_differences && !finding.sketched)
        judge_without_statistics(evidence, out);
    else if (finding.one_sided)
        verdict_decide(&out->verdict, PLUMB_FAILED, "%s was recorded on one side only",
                       finding.one_sided);
    else if (breaks(&finding, require))
        judge_worst(&out->verdict, &finding, require);
    else if (breaks(&finding, expect))
        judge_worst(&out->verdict, &finding, expect);
    else
        judge_rest(&out->verdict, evidence, &finding, require->limit);
}

double recorded_limit(const struct plumb_standard *standard)
{
    return standard_find_rule(standard, RULE_STATISTICS, PLUMB_FAILED)->limit;
}

void recorded_set_limit(struct plumb_standard *standard, double limit)
{
    const double before = recorded_limit(standard);
    for (struct standard_rule *rule = standard->rules; rule; rule = rule->next)
        if (strcmp(rule->name, RULE_STATISTICS) == 0)
            rule->limit = limit / (before / rule->limit);
}
