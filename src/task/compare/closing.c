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

static void first_names(struct buf *text, const char *side, const struct plumb_run *run)
{
    size_t count = plumb_run_count(run);
    buf_printf(text, "  %s has %zu tensor%s", side, count, count == 1 ? "" : "s");
    for (size_t i = 0; i < count && i < 3; i++) {
        buf_text(text, i ? ", " : ": ");
        utf8_put_clean(text, plumb_run_record(run, i)->name);
    }
    buf_text(text, count > 3 ? ", ...\n" : "\n");
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

/* Nothing, or only part, of the two runs found its partner: what was there, and what would help. */
static void advise(struct buf *text, const struct comparison *comparison)
{
    const struct plumb_matching *matching = &comparison->matching;
    size_t targets = plumb_run_count(comparison->run[0]);
    size_t goldens = plumb_run_count(comparison->run[1]);
    if (matching->matched == 0) {
        buf_text(text, "No name of the target run matches one of the golden run.\n");
        first_names(text, "target", comparison->run[0]);
        first_names(text, "golden", comparison->run[1]);
        for (size_t i = 0; i < matching->count; i++) {
            const struct plumb_pair *pair = &matching->pairs[i];
            if (pair->target == PLUMB_NO_RECORD || pair->nearest == PLUMB_NO_RECORD)
                continue;
            buf_text(text, "  nearest: ");
            utf8_put_clean(text, plumb_run_record(comparison->run[0], pair->target)->name);
            buf_text(text, " ~ ");
            utf8_put_clean(text, plumb_run_record(comparison->run[1], pair->nearest)->name);
            buf_text(text, "\n");
            break;
        }
    }
    enum plumb_pair_mode mode = comparison->options->match.mode;
    buf_text(text, "To pair more: ");
    if (mode == PLUMB_PAIR_AUTO && compare_is_dump(comparison->run[0]) &&
        compare_is_dump(comparison->run[1]))
        buf_text(text, "-fm pairs calls by their order where numbers differ; ");
    else if (mode == PLUMB_PAIR_EXACT)
        buf_text(text, "--match fuzzy bridges other class names, prefixes and call indices; ");
    if (targets == goldens && matching->matched == 0)
        buf_printf(text, "--match order pairs the %zu tensors one by one; ", targets);
    buf_text(text, "--map FILE takes lines 'target name: golden name'.\n");
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
                       const struct comparison *comparison)
{
    size_t alike = 0, groups = 0;
    for (size_t i = 0; i < comparison->matching.count; i++) {
        alike += comparison->matching.pairs[i].how == PLUMB_BY_LIKENESS;
        groups += comparison->matching.pairs[i].how == PLUMB_BY_GROUP;
    }
    if (comparison->options->verdict == PLUMB_BY_EXPECTED)
        buf_text(text, "By the documented rules, which do not decide here: ");
    put_count(text, "", out->compared, "compared");
    if (alike)
        buf_printf(text, " (%zu paired by similar names)", alike);
    if (groups)
        buf_printf(text, " (%zu ends of groups of calls)", groups);
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
static void put_details(struct buf *text, const struct plumb_comparison *out,
                        const struct comparison *comparison)
{
    /* Only values tell how far apart two tensors are. */
    if (comparison->mode == MODE_TENSORS && out->worst_row != PLUMB_NO_RECORD &&
        comparison->rows[out->worst_row].distance != 0) {
        const struct row *row = &comparison->rows[out->worst_row];
        buf_text(text, "; worst: ");
        utf8_put_clean(text, compare_name(comparison, out->worst_row));
        char number[NUMBER_BYTES];
        buf_printf(text, " (relative distance %s)", number_brief(row->distance, 3, number));
    }
    put_row(text, "; first difference: ", comparison, first_difference(out, comparison));
    const size_t first = out->first_failing_row;
    const bool incomparable = first != PLUMB_NO_RECORD && !comparison->rows[first].compared &&
                              comparison->matching.pairs[first].how != PLUMB_UNMATCHED;
    put_row(text, incomparable ? "; first not comparable: " : "; first failure: ", comparison,
            first);
}

enum plumb_code compare_closing(struct plumb_comparison *out, const struct comparison *comparison,
                                struct plumb_error *err)
{
    struct closing_parts parts = {0};
    count_rows(out, comparison);
    if (compare_shards_note(comparison->run[0]))
        buf_text(&parts.advice, compare_shards_note(comparison->run[0]));
    if (out->unmatched)
        advise(&parts.advice, comparison);
    enum plumb_code code = compare_opinion_lines(out, &parts, comparison, err);
    put_counts(&parts.counts, out, comparison);
    put_details(&parts.details, out, comparison);
    put_rule(&parts.rule, comparison);
    const enum plumb_code joined = closing_join(out, &parts, code ? NULL : err);
    code = code ? code : joined;
    return code ? code : note_outcomes(out, comparison, err);
}
