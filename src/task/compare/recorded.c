/* Rows that are compared by what was written down: statistics, checksums, values of arguments. */
#define _GNU_SOURCE
#include "task/compare/compare.h"
#include "task/compare/measure.h"

#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has to be computed from the payload of a side because it was not written down. */
static unsigned measures_of(enum basis basis, const struct plumb_record *record,
                            const struct plumb_recorded *there)
{
    const struct plumb_recorded *here = record->recorded;
    unsigned wanted = 0;
    if (basis == BY_CHECKSUM && !(here && here->checksum))
        return there && there->checksum && recorded_is_xor(there->checksum) ? MEASURE_XOR
                                                                            : MEASURE_CRC;
    if (basis != BY_STATISTICS || record->absent)
        return 0;
    if (!here || !plumb_recorded_has_statistics(here))
        wanted = MEASURE_STATISTICS | (there && there->exact ? MEASURE_EXACT : 0);
    if (plumb_recorded_kept(there) && !plumb_recorded_kept(here))
        wanted |= compare_measures_kept(plumb_recorded_kept(there));
    else if (there && there->checksum && !(here && here->checksum))
        wanted |= recorded_is_xor(there->checksum) ? MEASURE_XOR : MEASURE_CRC;
    return wanted;
}

/* What has to be measured of a side of a pair. */
static unsigned wanted_of(const struct comparison *comparison, size_t pair, int side)
{
    const enum basis basis = comparison->rows[pair].basis;
    if (basis != BY_STATISTICS && basis != BY_CHECKSUM)
        return 0;
    return measures_of(basis, compare_record(comparison, pair, side),
                       compare_record(comparison, pair, !side)->recorded);
}

/* Nothing, where both sides are dumps of statistics: then there are no places for what is. */
static bool wants_measures(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->matching.count; i++)
        if (wanted_of(comparison, i, 0) || wanted_of(comparison, i, 1))
            return true;
    return false;
}

static void order_measures(const struct comparison *comparison, struct measured *measured,
                           struct walk_side *sides)
{
    for (size_t i = 0; i < comparison->matching.count; i++) {
        const struct plumb_pair *pair = &comparison->matching.pairs[i];
        for (int side = 0; side < 2; side++) {
            const size_t place = 2 * i + (size_t)side;
            measured[place].wanted = wanted_of(comparison, i, side);
            if (measured[place].wanted)
                sides[place] =
                    (struct walk_side){comparison->run[side], side ? pair->golden : pair->target};
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

enum { ROWS_A_TASK = 2048 };

struct judging {
    struct comparison *comparison;
    struct measured *measured;
    bool each; /* every side has a place of its own among them */
};

/* Each row is judged by itself. */
static void judge_rows(void *context, size_t task, unsigned thread)
{
    const struct judging *judging = context;
    struct comparison *comparison = judging->comparison;
    (void)thread;
    for (size_t i = task * ROWS_A_TASK;
         i < (task + 1) * ROWS_A_TASK && i < comparison->matching.count; i++) {
        struct row *row = &comparison->rows[i];
        if (row->basis == BY_NOTHING)
            continue;
        if (row->basis != BY_TENSOR)
            judge_row(comparison, i, &judging->measured[judging->each ? 2 * i : 0]);
        explain_basis(comparison, row);
        const struct plumb_record *target = compare_record(comparison, i, 0);
        if (row->compared && target->recorded)
            recorded_judge_gradient(target, compare_record(comparison, i, 1), &row->verdict);
    }
}

enum plumb_code compare_recorded(struct comparison *comparison, struct plumb_error *err)
{
    const size_t count = comparison->matching.count;
    const size_t places = wants_measures(comparison) ? 2 * count : 0;
    struct measured *measured = calloc(places + 2, sizeof *measured);
    struct walk_side *sides = calloc(places + 2, sizeof *sides);
    comparison->differences = arena_array(&comparison->arena, count * PLUMB_STATISTICS + 1,
                                          sizeof *comparison->differences);
    enum plumb_code code = PLUMB_OK;
    if (!measured || !sides || !comparison->differences) {
        code = plumb_no_memory(err);
        goto out;
    }
    if (places) {
        order_measures(comparison, measured, sides);
        code = compare_measure(measured, sides, places, comparison->options, err);
    }
    struct judging judging = {comparison, measured, places != 0};
    if (!code)
        pool_run(comparison->options->threads ? comparison->options->threads
                                              : pool_default_threads(),
                 (count + ROWS_A_TASK - 1) / ROWS_A_TASK, judge_rows, &judging);
out:
    for (size_t i = 0; measured && i < places; i++) {
        free(measured[i].problem);
        free(measured[i].sketch);
    }
    free(measured);
    free(sides);
    return code;
}
