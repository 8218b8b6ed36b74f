/* Rows that are compared by what was written down: statistics, checksums, values of arguments. */
#define _GNU_SOURCE
#include "run/dtype.h"
#include "task/compare/compare.h"
#include "task/compare/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_device(const struct plumb_recorded *recorded)
{
    static const char *const words[] = {"npu", "cpu", "cuda", "xpu", "gpu"};
    if (recorded->type && strcmp(recorded->type, "torch.device") == 0)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(recorded->value, words[i], length) == 0 &&
            (!recorded->value[length] || recorded->value[length] == ':'))
            return true;
    }
    return false;
}

static void judge_value(struct row *row, const struct plumb_recorded *target,
                        const struct plumb_recorded *golden)
{
    const char *t = target->value ? target->value : "None";
    const char *g = golden->value ? golden->value : "None";
    char *end[2];
    double a = strtod(t, &end[0]), b = strtod(g, &end[1]);
    bool numbers = end[0] != t && !*end[0] && end[1] != g && !*end[1];
    if (strcmp(t, g) == 0)
        compare_decide(row, PLUMB_NORMAL, "the same argument: %.100s", t);
    else if (is_device(target) && is_device(golden))
        compare_decide(row, PLUMB_NORMAL, "devices, not compared: %.50s against %.50s", t, g);
    else if (numbers && a == b)
        compare_decide(row, PLUMB_NORMAL, "equal arguments: %.50s and %.50s", t, g);
    else if (numbers && fabs(a - b) <= 1e-6 * fabs(b)) /* a constant, once rounded to float32 */
        compare_decide(row, PLUMB_SUSPICIOUS, "arguments that nearly agree: %.50s against %.50s", t,
                       g);
    else
        compare_decide(row, PLUMB_FAILED, "the arguments differ: %.60s against %.60s", t, g);
}

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
        return there && there->checksum && compare_is_xor(there->checksum) ? MEASURE_XOR
                                                                           : MEASURE_CRC;
    if (basis != BY_STATISTICS || record->absent)
        return 0;
    if (!any)
        wanted = MEASURE_STATISTICS | (there && there->exact ? MEASURE_EXACT : 0);
    if (there && there->kept && !(here && here->kept))
        wanted |= MEASURE_KEPT | (there->kept->sketch ? MEASURE_SKETCH : 0);
    else if (there && there->checksum && !(here && here->checksum))
        wanted |= compare_is_xor(there->checksum) ? MEASURE_XOR : MEASURE_CRC;
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

static struct account account_of(const struct plumb_recorded *recorded,
                                 const struct measured *measured)
{
    bool fresh = measured->wanted & MEASURE_STATISTICS;
    struct account account = {
        .statistic = fresh ? measured->statistic : recorded->statistic,
        .kept = measured->wanted & MEASURE_KEPT ? &measured->kept : NULL,
        .exact = fresh ? measured->wanted & MEASURE_EXACT : recorded->exact,
    };
    if (measured->wanted & (MEASURE_CRC | MEASURE_XOR)) {
        account.checksum = measured->checksum;
        account.dtype = measured->kept.dtype;
    }
    if (!recorded)
        return account;
    account.deviation = &recorded->deviation;
    if (recorded->kept)
        account.kept = recorded->kept;
    if (recorded->checksum) {
        account.checksum = recorded->checksum;
        account.dtype = recorded->dtype ? run_dtype(recorded->dtype) : PLUMB_DTYPE_COUNT;
    }
    return account;
}

static void judge_statistics(struct comparison *comparison, size_t pair,
                             const struct measured *measured)
{
    const struct plumb_record *target = compare_record(comparison, pair, 0);
    const struct plumb_record *golden = compare_record(comparison, pair, 1);
    struct evidence evidence = {
        .side = {account_of(target->recorded, &measured[0]),
                 account_of(golden->recorded, &measured[1])},
        .count = golden->count ? golden->count : target->count,
        .integers = strchr("ib", compare_kind(golden)),
        .limit = comparison->stat_limit,
    };
    compare_judge_statistics(&comparison->rows[pair], &evidence,
                             &comparison->differences[pair * PLUMB_STATISTICS]);
}

static void judge_row(struct comparison *comparison, size_t pair, struct measured *measured)
{
    struct row *row = &comparison->rows[pair];
    const struct plumb_recorded *recorded[2] = {compare_record(comparison, pair, 0)->recorded,
                                                compare_record(comparison, pair, 1)->recorded};
    if (row->basis == BY_VALUE) {
        judge_value(row, recorded[0], recorded[1]);
        return;
    }
    if (take_problem(row, measured))
        return;
    if (row->basis == BY_STATISTICS) {
        judge_statistics(comparison, pair, measured);
        return;
    }
    for (int side = 0; side < 2; side++) {
        const char *text =
            measured[side].wanted ? measured[side].checksum : recorded[side]->checksum;
        row->checksum[side] = strdup(text);
        if (!row->checksum[side])
            return; /* without a problem: out of memory */
    }
    compare_judge_checksums(row, row->checksum[0], row->checksum[1]);
}

/* A gradient that one side does not ask for will be missing later. */
static void check_gradient(const struct comparison *comparison, size_t pair)
{
    struct row *row = &comparison->rows[pair];
    const struct plumb_record *target = compare_record(comparison, pair, 0);
    const struct plumb_record *golden = compare_record(comparison, pair, 1);
    if (!row->compared || row->verdict.severity != PLUMB_NORMAL || !target->recorded ||
        target->requires_grad < 0 || golden->requires_grad < 0 ||
        target->requires_grad == golden->requires_grad)
        return;
    row->verdict.severity = PLUMB_SUSPICIOUS;
    snprintf(row->verdict.rule, sizeof row->verdict.rule, "requires_grad is %s, in the golden %s",
             target->requires_grad ? "True" : "False", golden->requires_grad ? "True" : "False");
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
        check_gradient(comparison, i);
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
