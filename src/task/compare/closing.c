/* The line that sums a comparison up, and what to do when names did not match. */
#include "base/buf.h"
#include "base/number.h"
#include "base/utf8.h"
#include "task/compare/compare.h"
#include "task/compare/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NaN is the worst there is. */
static bool worse(double a, double b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

static void count_rows(struct plumb_comparison *out, const struct comparison *comparison)
{
    out->worst_row = out->first_failing_row = PLUMB_NO_RECORD;
    out->verdict = comparison->options->verdict;
    for (size_t i = 0; i < comparison->matching.count; i++) {
        const struct row *row = &comparison->rows[i];
        bool failed = compare_fails(comparison, i);
        out->bad += compare_severity(comparison, i) == PLUMB_FAILED;
        if (failed && out->first_failing_row == PLUMB_NO_RECORD)
            out->first_failing_row = i;
        if (!row->compared) {
            const struct plumb_pair *pair = &comparison->matching.pairs[i];
            *(pair->covered                  ? &out->covered
              : pair->how == PLUMB_UNMATCHED ? &out->unmatched
                                             : &out->unreadable) += 1;
            continue;
        }
        out->compared++;
        out->failed += failed;
        out->unjudged += row->verdict.unjudged;
        out->uninitialised += row->uninitialised;
        out->passed += !failed && !row->verdict.unjudged;
        out->suspicious += row->verdict.severity == PLUMB_SUSPICIOUS && !row->verdict.unjudged;
        if (out->worst_row == PLUMB_NO_RECORD ||
            worse(row->distance, comparison->rows[out->worst_row].distance))
            out->worst_row = i;
    }
}

static void put_count(struct buf *text, const char *gap, size_t count, const char *what)
{
    buf_printf(text, "%s%zu %s", gap, count, what);
}

bool compare_is_dump(const struct plumb_run *run)
{
    return strcmp(plumb_run_kind(run), "dump") == 0;
}

/* What the verdicts came from. */
static void put_rule(struct buf *text, const struct comparison *comparison)
{
    if (comparison->mode == MODE_STATISTICS)
        buf_printf(text, "; rule: statistics differ by less than %g%%\n",
                   recorded_limit(comparison->standards.recorded) * 100);
    else if (comparison->mode == MODE_CHECKSUMS)
        buf_text(text, "; rule: checksums are equal\n");
    else
        buf_printf(text, "; standard: %s\n", plumb_standard_name(comparison->standards.values));
}

/* Dumps are in the order of execution: the row where the two sides begin to part, when something
 * was odd before the first failure. */
static size_t first_difference(const struct plumb_comparison *out,
                               const struct comparison *comparison)
{
    if (!compare_is_dump(comparison->run[0]))
        return PLUMB_NO_RECORD;
    for (size_t i = 0; i < comparison->matching.count && i < out->first_failing_row; i++)
        if (comparison->rows[i].compared &&
            comparison->rows[i].verdict.severity == PLUMB_SUSPICIOUS)
            return i;
    return PLUMB_NO_RECORD;
}

static void put_row(struct buf *text, const char *what, const struct comparison *comparison,
                    size_t row)
{
    char reason[1024];
    if (row == PLUMB_NO_RECORD)
        return;
    buf_text(text, what);
    utf8_put_clean(text, compare_name(comparison, row));
    buf_text(text, " (");
    utf8_put_clean(text, compare_reason(comparison, row, reason, sizeof reason));
    if (comparison->rows[row].parts)
        buf_printf(text, "; %s", comparison->rows[row].parts);
    buf_text(text, ")");
}

enum { FIRST_NAMES = 3 };

void advice_free(struct advice *advice)
{
    buf_free(&advice->first[0]);
    buf_free(&advice->first[1]);
    buf_free(&advice->nearest);
}

void advice_add(struct advice *advice, int side, const struct plumb_run *run)
{
    const size_t before = advice->count[side], count = plumb_run_count(run);
    for (size_t i = 0; i < count && before + i < FIRST_NAMES; i++) {
        buf_text(&advice->first[side], before + i ? ", " : ": ");
        utf8_put_clean(&advice->first[side], plumb_run_record(run, i)->name);
    }
    advice->count[side] += count;
}

void advice_near(struct advice *advice, const char *target, const char *golden)
{
    if (advice->nearest.size)
        return;
    utf8_put_clean(&advice->nearest, target);
    buf_text(&advice->nearest, " ~ ");
    utf8_put_clean(&advice->nearest, golden);
}

static void put_first(struct buf *text, const char *side, const struct advice *advice, int which)
{
    const size_t count = advice->count[which];
    buf_printf(text, "  %s has %zu tensor%s", side, count, count == 1 ? "" : "s");
    buf_append(text, advice->first[which].data, advice->first[which].size);
    buf_text(text, count > FIRST_NAMES ? ", ...\n" : "\n");
}

/* Nothing, or only part, of the two runs found its partner: what was there, and what would help. */
static void put_advice(struct buf *text, const struct advice *advice)
{
    if (advice->matched == 0) {
        buf_text(text, "No name of the target run matches one of the golden run.\n");
        put_first(text, "target", advice, 0);
        put_first(text, "golden", advice, 1);
        if (advice->nearest.size) {
            buf_text(text, "  nearest: ");
            buf_append(text, advice->nearest.data, advice->nearest.size);
            buf_text(text, "\n");
        }
    }
    buf_text(text, "To pair more: ");
    if (advice->mode == PLUMB_PAIR_AUTO && advice->dumps)
        buf_text(text, "-fm pairs calls by their order where numbers differ; ");
    else if (advice->mode == PLUMB_PAIR_EXACT)
        buf_text(text, "--match fuzzy bridges other class names, prefixes and call indices; ");
    if (advice->count[0] == advice->count[1] && advice->matched == 0)
        buf_printf(text, "--match order pairs the %zu tensors one by one; ", advice->count[0]);
    buf_text(text, "--map FILE takes lines 'target name: golden name'.\n");
    text->failed = text->failed || advice->first[0].failed || advice->first[1].failed ||
                   advice->nearest.failed;
}

static void advise(struct buf *text, const struct comparison *comparison)
{
    const struct plumb_matching *matching = &comparison->matching;
    struct advice advice = {.matched = matching->matched,
                            .mode = comparison->options->match.mode,
                            .dumps = compare_is_dump(comparison->run[0]) &&
                                     compare_is_dump(comparison->run[1])};
    for (int side = 0; side < 2; side++)
        advice_add(&advice, side, comparison->run[side]);
    for (size_t i = 0; i < matching->count && !advice.nearest.size; i++) {
        const struct plumb_pair *pair = &matching->pairs[i];
        if (pair->target != PLUMB_NO_RECORD && pair->nearest != PLUMB_NO_RECORD)
            advice_near(&advice, plumb_run_record(comparison->run[0], pair->target)->name,
                        plumb_run_record(comparison->run[1], pair->nearest)->name);
    }
    put_advice(text, &advice);
    advice_free(&advice);
}

static enum plumb_trouble trouble_by_rules(const struct comparison *comparison, size_t pair)
{
    const struct row *row = &comparison->rows[pair];
    if (row->compared)
        return outcome_of(&row->verdict);
    if (comparison->matching.pairs[pair].covered)
        return PLUMB_TROUBLE_NONE;
    if (comparison->matching.pairs[pair].how != PLUMB_UNMATCHED)
        return row->obstacle;
    return comparison->matching.pairs[pair].target == PLUMB_NO_RECORD ? PLUMB_TROUBLE_ONLY_GOLDEN
                                                                      : PLUMB_TROUBLE_ONLY_TARGET;
}

static enum plumb_trouble trouble_of(const struct comparison *comparison, size_t pair)
{
    const enum plumb_trouble rules = trouble_by_rules(comparison, pair);
    const enum plumb_trouble own = compare_opinion_trouble(comparison, pair);
    if (comparison->options->verdict == PLUMB_BY_EXPECTED && rules != PLUMB_TROUBLE_ONLY_TARGET &&
        rules != PLUMB_TROUBLE_ONLY_GOLDEN)
        return own;
    return own < rules ? own : rules;
}

/* The first in the order of execution, not of the table. */
static enum plumb_code note_first_fault(struct plumb_comparison *out,
                                        const struct comparison *comparison,
                                        struct plumb_error *err)
{
    struct plumb_trouble_rows *faults = &out->troubles[PLUMB_TROUBLE_FAULT];
    if (!faults->count)
        return PLUMB_OK;
    struct buf text = {0};
    compare_put_opinion(&text, "", comparison, out->first_fault_row, false);
    free(faults->text);
    faults->text = text.data;
    faults->first = out->first_fault_row;
    return text.failed ? plumb_no_memory(err) : PLUMB_OK;
}

static enum plumb_code note_outcomes(struct plumb_comparison *out,
                                     const struct comparison *comparison, struct plumb_error *err)
{
    out->outcomes = calloc(comparison->matching.count + 1, sizeof *out->outcomes);
    out->spare = layout_spare(&comparison->layout, comparison->options->verdict);
    if (!out->outcomes || !out->spare)
        return plumb_no_memory(err);
    for (size_t i = 0; i < comparison->matching.count; i++) {
        const struct row *row = &comparison->rows[i];
        struct plumb_outcome outcome = {trouble_of(comparison, i),
                                        row->compared ? row->distance : 0};
        if (!outcome_note(out, i, outcome))
            continue;
        struct buf text = {0};
        if (outcome.trouble == compare_opinion_trouble(comparison, i))
            compare_put_opinion(&text, "", comparison, i, true);
        else
            put_row(&text, "", comparison, i);
        out->troubles[outcome.trouble].text = text.data;
        if (text.failed)
            return plumb_no_memory(err);
    }
    return note_first_fault(out, comparison, err);
}

static void put_counts(struct buf *text, const struct plumb_comparison *out,
                       const struct closing_facts *facts)
{
    if (out->verdict == PLUMB_BY_EXPECTED)
        buf_text(text, "By the documented rules, which do not decide here: ");
    put_count(text, "", out->compared, "compared");
    if (facts->alike)
        buf_printf(text, " (%zu paired by similar names)", facts->alike);
    if (facts->groups)
        buf_printf(text, " (%zu ends of groups of calls)", facts->groups);
    buf_text(text, ": ");
    put_count(text, "", out->passed, "pass");
    if (out->suspicious)
        buf_printf(text, " (%zu suspicious)", out->suspicious);
    put_count(text, ", ", out->failed, "fail");
    if (out->unjudged > out->uninitialised)
        put_count(text, ", ", out->unjudged - out->uninitialised, "suspicious and not judged");
    if (out->uninitialised)
        put_count(text, ", ", out->uninitialised, "not judged: uninitialised");
    put_count(text, "; ", out->unmatched, "unmatched");
    if (out->covered)
        put_count(text, ", ", out->covered, "inside such groups or whole modules");
    if (out->unreadable)
        put_count(text, ", ", out->unreadable, "not comparable");
}

/* The rows that are worst and first. */
static void put_details(struct buf *text, const struct closing_facts *facts)
{
    /* Only values tell how far apart two tensors are. */
    if (facts->mode == MODE_TENSORS && facts->any && facts->distance != 0) {
        char number[NUMBER_BYTES];
        buf_text(text, "; worst: ");
        buf_append(text, facts->worst.data, facts->worst.size);
        buf_printf(text, " (relative distance %s)", number_brief(facts->distance, 3, number));
    }
    buf_append(text, facts->difference.data, facts->difference.size);
    buf_append(text, facts->failure.data, facts->failure.size);
}

static void find_facts(struct closing_facts *facts, const struct plumb_comparison *out,
                       const struct comparison *comparison)
{
    const size_t first = out->first_failing_row;
    const bool incomparable = first != PLUMB_NO_RECORD && !comparison->rows[first].compared &&
                              comparison->matching.pairs[first].how != PLUMB_UNMATCHED;
    *facts =
        (struct closing_facts){.mode = comparison->mode, .any = out->worst_row != PLUMB_NO_RECORD};
    for (size_t i = 0; i < comparison->matching.count; i++) {
        facts->alike += comparison->matching.pairs[i].how == PLUMB_BY_LIKENESS;
        facts->groups += comparison->matching.pairs[i].how == PLUMB_BY_GROUP;
    }
    if (facts->any) {
        facts->distance = comparison->rows[out->worst_row].distance;
        utf8_put_clean(&facts->worst, compare_name(comparison, out->worst_row));
    }
    put_row(&facts->difference, "; first difference: ", comparison,
            first_difference(out, comparison));
    put_row(&facts->failure,
            incomparable ? "; first not comparable: " : "; first failure: ", comparison, first);
    put_rule(&facts->rule, comparison);
}

void closing_facts_free(struct closing_facts *facts)
{
    buf_free(&facts->worst);
    buf_free(&facts->difference);
    buf_free(&facts->failure);
    buf_free(&facts->rule);
}

static void take(struct buf *to, struct buf *from)
{
    buf_free(to);
    *to = *from;
    *from = (struct buf){0};
}

void closing_add(struct plumb_comparison *sum, struct closing_facts *facts,
                 const struct plumb_comparison *next, struct closing_facts *more)
{
    sum->compared += next->compared;
    sum->passed += next->passed;
    sum->suspicious += next->suspicious;
    sum->failed += next->failed;
    sum->unjudged += next->unjudged;
    sum->uninitialised += next->uninitialised;
    sum->unmatched += next->unmatched;
    sum->covered += next->covered;
    sum->unreadable += next->unreadable;
    sum->bad += next->bad;
    facts->alike += more->alike;
    facts->groups += more->groups;
    if (more->any && (!facts->any || worse(more->distance, facts->distance))) {
        facts->distance = more->distance;
        take(&facts->worst, &more->worst);
    }
    facts->any = facts->any || more->any;
    if (!facts->failure.size && !facts->difference.size)
        take(&facts->difference, &more->difference);
    if (!facts->failure.size)
        take(&facts->failure, &more->failure);
    if (!facts->rule.size)
        take(&facts->rule, &more->rule);
}

static void put_facts(struct closing_parts *parts, const struct plumb_comparison *out,
                      const struct closing_facts *facts)
{
    put_counts(&parts->counts, out, facts);
    put_details(&parts->details, facts);
    buf_append(&parts->rule, facts->rule.data, facts->rule.size);
    parts->rule.failed = parts->rule.failed || facts->worst.failed || facts->difference.failed ||
                         facts->failure.failed || facts->rule.failed;
}

enum plumb_code closing_end(struct plumb_comparison *sum, const struct closing_facts *facts,
                            const struct advice *advice, struct plumb_error *err)
{
    struct closing_parts parts = {0};
    if (sum->unmatched)
        put_advice(&parts.advice, advice);
    put_facts(&parts, sum, facts);
    return closing_join(sum, &parts, err);
}

enum plumb_code compare_closing(struct plumb_comparison *out, struct closing_facts *facts,
                                const struct comparison *comparison, struct plumb_error *err)
{
    struct closing_parts parts = {0};
    count_rows(out, comparison);
    find_facts(facts, out, comparison);
    if (compare_shards_note(comparison->run[0]))
        buf_text(&parts.advice, compare_shards_note(comparison->run[0]));
    if (out->unmatched && !comparison->part)
        advise(&parts.advice, comparison);
    enum plumb_code code = compare_opinion_lines(out, &parts, comparison, err);
    put_facts(&parts, out, facts);
    const enum plumb_code joined = closing_join(out, &parts, code ? NULL : err);
    code = code ? code : joined;
    return code ? code : note_outcomes(out, comparison, err);
}
