/* Rows that are compared by what was written down: statistics, checksums, values of arguments. */
#define _GNU_SOURCE
#include "task/compare/compare.h"
#include "task/compare/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has to be computed from the payload of a side because it was not written down. */
static unsigned measures_of(enum basis basis, const struct plumb_record *record,
                            const struct plumb_recorded *there)
{
    const struct plumb_recorded *here = record->recorded;
    unsigned wanted = 0;
    bool any = false;
    for (int k = 0; here && k < PLUMB_STATISTICS; k++)
        any = any || here->statistic[k].kind != PLUMB_VALUE_NONE;
    if (basis == BY_CHECKSUM && !(here && here->checksum))
        return there && there->checksum && recorded_is_xor(there->checksum) ? MEASURE_XOR
                                                                            : MEASURE_CRC;
    if (basis != BY_STATISTICS || record->absent)
        return 0;
    if (!any)
        wanted = MEASURE_STATISTICS | (there && there->exact ? MEASURE_EXACT : 0);
    if (there && there->kept && !(here && here->kept))
        wanted |= compare_measures_kept(there->kept);
    else if (there && there->checksum && !(here && here->checksum))
        wanted |= recorded_is_xor(there->checksum) ? MEASURE_XOR : MEASURE_CRC;
    return wanted;
}

static void order_measures(const struct comparison *comparison, struct measured *measured,
                           struct walk_side *sides)
{
    for (size_t i = 0; i < comparison->matching.count; i++) {
        enum basis basis = comparison->rows[i].basis;
        const struct plumb_pair *pair = &comparison->matching.pairs[i];
        if (basis != BY_STATISTICS && basis != BY_CHECKSUM)
            continue;
        for (int side = 0; side < 2; side++) {
            sides[2 * i + (size_t)side] =
                (struct walk_side){comparison->run[side], side ? pair->golden : pair->target};
            measured[2 * i + (size_t)side].wanted =
                measures_of(basis, compare_record(comparison, i, side),
                            compare_record(comparison, i, !side)->recorded);
        }
    }
}

static bool take_problem(struct row *row, struct measured *measured)
{
    for (int side = 0; side < 2; side++) {
        if (!measured[side].wanted || measured[side].done)
            continue;
        row->problem = measured[side].problem;
        measured[side].problem = NULL;
        return true;
    }
    return false;
}

static struct recorded_evidence evidence_of(const struct comparison *comparison, size_t pair,
                                            const struct measured *measured)
{
    const struct plumb_record *target = compare_record(comparison, pair, 0);
    const struct plumb_record *golden = compare_record(comparison, pair, 1);
    return (struct recorded_evidence){
        .side = {compare_account(target->recorded, &measured[0]),
                 compare_account(golden->recorded, &measured[1])},
        .count = golden->count ? golden->count : target->count,
        .integers = strchr("ib", compare_kind(golden)),
    };
}

static void take_judgement(struct row *row, const struct recorded_judgement *judgement)
{
    row->compared = !judgement->problem;
    row->has_differences = judgement->has_differences;
    row->verdict = judgement->verdict;
    row->distance = judgement->distance;
    row->max_rel = judgement->max_rel;
    if (judgement->estimate.there) {
        row->estimate = malloc(sizeof *row->estimate);
        row->compared = row->compared && row->estimate; /* without a problem: out of memory */
        if (row->estimate)
            *row->estimate = judgement->estimate;
    }
    if (judgement->problem) {
        row->problem = strdup(judgement->problem);
        row->obstacle = PLUMB_TROUBLE_INCOMPARABLE;
    }
}

static void judge_statistics(struct comparison *comparison, size_t pair,
                             const struct measured *measured)
{
    struct recorded_evidence evidence = evidence_of(comparison, pair, measured);
    struct recorded_judgement judgement;
    recorded_judge_statistics(comparison->standards.recorded, &evidence, &judgement);
    take_judgement(&comparison->rows[pair], &judgement);
    memcpy(&comparison->differences[pair * PLUMB_STATISTICS], judgement.difference,
           sizeof judgement.difference);
}

static void judge_checksums(struct row *row, const struct plumb_recorded *const recorded[2],
                            const struct measured *measured)
{
    struct recorded_judgement judgement = {0};
    for (int side = 0; side < 2; side++) {
        const char *text =
            measured[side].wanted ? measured[side].checksum : recorded[side]->checksum;
        row->checksum[side] = strdup(text);
        if (!row->checksum[side])
            return; /* without a problem: out of memory */
    }
    recorded_judge_checksums(row->checksum[0], row->checksum[1], &judgement);
    take_judgement(row, &judgement);
}

static void judge_row(struct comparison *comparison, size_t pair, struct measured *measured)
{
    struct row *row = &comparison->rows[pair];
    const struct plumb_recorded *recorded[2] = {compare_record(comparison, pair, 0)->recorded,
                                                compare_record(comparison, pair, 1)->recorded};
    if (row->basis == BY_VALUE) {
        row->compared = true;
        recorded_judge_argument(comparison->standards.recorded, recorded[0], recorded[1],
                                &row->verdict);
    } else if (!take_problem(row, measured)) {
        if (row->basis == BY_STATISTICS)
            judge_statistics(comparison, pair, measured);
        else
            judge_checksums(row, recorded, measured);
    }
}

/* Who expected numbers of another kind is told why there are none. */
static void explain_basis(const struct comparison *comparison, struct row *row)
{
    static const enum basis usual[] = {[MODE_TENSORS] = BY_TENSOR,
                                       [MODE_STATISTICS] = BY_STATISTICS,
                                       [MODE_CHECKSUMS] = BY_CHECKSUM};
    if (!row->compared || row->basis == usual[comparison->mode] || row->basis == BY_VALUE)
        return;
    struct plumb_verdict verdict = row->verdict;
    const char *word = row->basis == BY_STATISTICS ? "by statistics"
                       : row->basis == BY_CHECKSUM ? "by checksum"
                                                   : "by data";
    snprintf(row->verdict.rule, sizeof row->verdict.rule, "%s: %.140s", word, verdict.rule);
}

enum plumb_code compare_recorded(struct comparison *comparison, struct plumb_error *err)
{
    size_t count = comparison->matching.count;
    struct measured *measured = calloc(2 * count + 1, sizeof *measured);
    struct walk_side *sides = calloc(2 * count + 1, sizeof *sides);
    comparison->differences = calloc(count * PLUMB_STATISTICS + 1, sizeof *comparison->differences);
    enum plumb_code code = PLUMB_OK;
    if (!measured || !sides || !comparison->differences) {
        code = plumb_no_memory(err);
        goto out;
    }
    order_measures(comparison, measured, sides);
    code = compare_measure(measured, sides, 2 * count, comparison->options, err);
    for (size_t i = 0; i < count && !code; i++) {
        struct row *row = &comparison->rows[i];
        if (row->basis == BY_NOTHING)
            continue;
        if (row->basis != BY_TENSOR)
            judge_row(comparison, i, &measured[2 * i]);
        explain_basis(comparison, row);
        const struct plumb_record *target = compare_record(comparison, i, 0);
        if (row->compared && target->recorded)
            recorded_judge_gradient(target, compare_record(comparison, i, 1), &row->verdict);
    }
out:
    for (size_t i = 0; measured && i < 2 * count; i++) {
        free(measured[i].problem);
        free(measured[i].sketch);
    }
    free(measured);
    free(sides);
    return code;
}
