/* Rows that are compared by what was written down: statistics, checksums, values of arguments. */
#define _GNU_SOURCE
#include "compare/compare.h"
#include "compare/measure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[PLUMB_STATISTICS] = {"Max", "Min", "Mean", "Norm"};

static void decide(struct row *row, enum plumb_severity severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void decide(struct row *row, enum plumb_severity severity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    row->compared = true;
    row->verdict.severity = severity;
    vsnprintf(row->verdict.rule, sizeof row->verdict.rule, format, args);
    va_end(args);
}

static const char *value_text(const struct plumb_value *value, char text[40])
{
    if (value->text)
        return value->text;
    snprintf(text, 40, "%.7g", value->number);
    return text;
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
    if (t == g || (isnan(t) && isnan(g)))
        return (struct difference){DIFFERENCE_NUMBER, 0, 0};
    if (isnan(t) || isnan(g))
        return (struct difference){DIFFERENCE_NUMBER, NAN, NAN};
    double relative = isinf(t) || isinf(g) || g == 0 ? INFINITY : fabs((t - g) / g);
    return (struct difference){DIFFERENCE_NUMBER, t - g, relative};
}

/* NaN is worse than everything. */
static bool worse(double a, double b)
{
    return isnan(a) ? !isnan(b) : a > b;
}

void compare_judge_statistics(const struct comparison *comparison, struct row *row,
                              const struct plumb_value *target, const struct plumb_value *golden,
                              struct difference *differences)
{
    double limit = comparison->stat_limit, worst = 0;
    int found = -1, compared = 0;
    const char *one_sided = NULL;
    for (int i = 0; i < PLUMB_STATISTICS; i++) {
        differences[i] = difference_of(&target[i], &golden[i]);
        if (differences[i].kind == DIFFERENCE_NONE) {
            /* Captures give Mean and Norm for some types only. */
            if (i <= PLUMB_STATISTIC_MIN && target[i].kind != golden[i].kind)
                one_sided = names[i];
            continue;
        }
        compared++;
        if (found < 0 || worse(differences[i].relative, worst)) {
            worst = differences[i].relative;
            found = i;
        }
    }
    if (!compared) {
        row->problem = strdup("no statistic is there on both sides");
        return;
    }
    row->has_differences = true;
    row->distance = worst;
    const struct difference *norm = &differences[PLUMB_STATISTIC_NORM];
    row->max_rel = norm->kind == DIFFERENCE_NUMBER ? norm->relative : worst;
    char a[40], b[40];
    const char *t = value_text(&target[found], a), *g = value_text(&golden[found], b);
    if (one_sided)
        decide(row, PLUMB_FAILED, "%s was recorded on one side only", one_sided);
    else if (!(worst < limit))
        decide(row, PLUMB_FAILED, "%s %s against %s: relative difference %.4g%% >= %.4g%%",
               names[found], t, g, worst * 100, limit * 100);
    else if (worst >= limit / 10)
        decide(row, PLUMB_SUSPICIOUS, "%s %s against %s: relative difference %.4g%% >= %.4g%%",
               names[found], t, g, worst * 100, limit * 10);
    else
        decide(row, PLUMB_NORMAL, "largest relative difference %.4g%% < %.4g%% (%s)", worst * 100,
               limit * 100, names[found]);
}

static void judge_checksums(struct row *row)
{
    const char *t = row->checksum[0], *g = row->checksum[1];
    bool same = strcasecmp(t, g) == 0;
    row->distance = same ? 0 : INFINITY;
    row->max_rel = row->distance;
    if (same)
        decide(row, PLUMB_NORMAL, "the checksums are equal");
    else if (compare_is_xor(t) != compare_is_xor(g))
        decide(row, PLUMB_FAILED, "checksums of different kinds: %.40s against %.40s", t, g);
    else
        decide(row, PLUMB_FAILED, "the checksums differ: %.40s against %.40s", t, g);
}

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
        decide(row, PLUMB_NORMAL, "the same argument: %.100s", t);
    else if (is_device(target) && is_device(golden))
        decide(row, PLUMB_NORMAL, "devices, not compared: %.50s against %.50s", t, g);
    else if (numbers && a == b)
        decide(row, PLUMB_NORMAL, "equal arguments: %.50s and %.50s", t, g);
    else if (numbers && fabs(a - b) <= 1e-6 * fabs(b)) /* a constant, once rounded to float32 */
        decide(row, PLUMB_SUSPICIOUS, "arguments that nearly agree: %.50s against %.50s", t, g);
    else
        decide(row, PLUMB_FAILED, "the arguments differ: %.60s against %.60s", t, g);
}

/* What has to be computed from payloads because it was not written down. */
static void order_measures(const struct comparison *comparison, struct measured *measured,
                           struct walk_side *sides)
{
    for (size_t i = 0; i < comparison->matching.count; i++) {
        const struct row *row = &comparison->rows[i];
        if (row->basis != BY_STATISTICS && row->basis != BY_CHECKSUM)
            continue;
        const struct plumb_pair *pair = &comparison->matching.pairs[i];
        for (int side = 0; side < 2; side++) {
            const struct plumb_recorded *here = compare_record(comparison, i, side)->recorded;
            const struct plumb_recorded *there = compare_record(comparison, i, !side)->recorded;
            sides[2 * i + (size_t)side] =
                (struct walk_side){comparison->run[side], side ? pair->golden : pair->target};
            struct measured *wanted = &measured[2 * i + (size_t)side];
            bool any = false;
            for (int k = 0; here && k < PLUMB_STATISTICS; k++)
                any = any || here->statistic[k].kind != PLUMB_VALUE_NONE;
            if (row->basis == BY_STATISTICS && !any)
                wanted->wanted = MEASURE_STATISTICS | (there && there->exact ? MEASURE_EXACT : 0);
            if (row->basis == BY_CHECKSUM && (!here || !here->checksum))
                wanted->wanted = there && there->checksum && compare_is_xor(there->checksum)
                                     ? MEASURE_XOR
                                     : MEASURE_CRC;
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
        const struct plumb_value *values[2];
        for (int side = 0; side < 2; side++)
            values[side] =
                measured[side].wanted ? measured[side].statistic : recorded[side]->statistic;
        compare_judge_statistics(comparison, row, values[0], values[1],
                                 &comparison->differences[pair * PLUMB_STATISTICS]);
        return;
    }
    for (int side = 0; side < 2; side++) {
        const char *text =
            measured[side].wanted ? measured[side].checksum : recorded[side]->checksum;
        row->checksum[side] = strdup(text);
        if (!row->checksum[side])
            return; /* without a problem: out of memory */
    }
    judge_checksums(row);
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
        code = plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
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
    for (size_t i = 0; measured && i < 2 * count; i++)
        free(measured[i].problem);
    free(measured);
    free(sides);
    return code;
}
