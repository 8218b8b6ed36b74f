/* Result and Err_message: the origin's rules, applied API by API. */
#include "msprobe/compare.h"

#include <math.h>
#include <string.h>

/* The rows of one API of the target. */
struct group {
    struct general *general;
    struct general_pair *pairs;
    size_t count;
    bool outputs_only; /* inputs of these are buffers that may hold anything */
};

static const struct {
    bool error; /* else a warning */
    const char *message;
} rules[GENERAL_RULES] = {
    [RULE_OVERFLOW] = {true, "the maximum or minimum is NaN or infinite, the bench's is not"},
    [RULE_RATIO] = {true, "inputs agree within 1/1000 almost everywhere, outputs almost nowhere"},
    [RULE_NORM] = {true,
                   "the L2 norm is off by more than 50%, those of the inputs by less than 10%"},
    [RULE_GRAD] = {true, "requires_grad differs"},
    [RULE_SCALAR] = {true, "the argument has another value"},
    [RULE_DTYPE] = {true, "the dtype differs"},
    [RULE_SHAPE] = {true, "the shape differs"},
    [RULE_NORM_GROWS] = {false, "the L2 norm error of the outputs is ten times that of the inputs"},
    [RULE_COSINE] = {false, "inputs point the same way, outputs do not: cosine falls by over 0.1"},
    [RULE_CHECKSUM] = {true, "the checksum differs"},
    [RULE_NO_CHECKSUM] = {false, "there is no checksum to compare with"},
};

const char *general_message(enum general_rule rule)
{
    return rules[rule].message;
}

enum plumb_severity general_severity(const struct general_pair *pair)
{
    enum plumb_severity severity = PLUMB_NORMAL;
    for (unsigned i = 0; i < GENERAL_RULES; i++)
        if (pair->found & 1U << i && severity < PLUMB_FAILED)
            severity = rules[i].error ? PLUMB_FAILED : PLUMB_SUSPICIOUS;
    return severity;
}

static void found(struct general_pair *pair, enum general_rule rule)
{
    pair->found |= (uint16_t)(1U << rule);
}

static const struct dump_row *target_of(const struct group *group, size_t i)
{
    return &group->general->target.rows[group->pairs[i].target];
}

static const struct dump_row *golden_of(const struct group *group, size_t i)
{
    size_t row = group->pairs[i].golden;
    return row == GENERAL_NONE ? NULL : &group->general->golden.rows[row];
}

static bool is_output(const struct group *group, size_t i)
{
    return strstr(target_of(group, i)->name, ".output.") != NULL;
}

static bool is_finite(const struct dump_value *value)
{
    return value->kind != DUMP_NUMBER || isfinite(value->number);
}

static bool texts_differ(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") != 0;
}

static bool values_differ(const struct dump_value *a, const struct dump_value *b)
{
    char left[NUMBER_BYTES], right[NUMBER_BYTES];
    return texts_differ(dump_value_text(a, left), dump_value_text(b, right));
}

/* Rules that look at one row. */
static void judge_row(struct group *group, size_t i)
{
    struct general_pair *pair = &group->pairs[i];
    const struct dump_row *target = target_of(group, i), *golden = golden_of(group, i);
    if (!golden)
        return;
    if (is_finite(&golden->statistic[DUMP_MAX]) && is_finite(&golden->statistic[DUMP_MIN]) &&
        !(is_finite(&target->statistic[DUMP_MAX]) && is_finite(&target->statistic[DUMP_MIN])))
        found(pair, RULE_OVERFLOW);
    if (texts_differ(target->requires_grad, golden->requires_grad))
        found(pair, RULE_GRAD);
    if (!group->outputs_only && !is_output(group, i) && strstr(target->dtype, "class") &&
        strstr(golden->dtype, "class") && strcmp(target->shape, "[]") == 0 &&
        strcmp(golden->shape, "[]") == 0 &&
        values_differ(&target->statistic[DUMP_MAX], &golden->statistic[DUMP_MAX]))
        found(pair, RULE_SCALAR);
    if (texts_differ(target->dtype, golden->dtype) && !strstr(golden->name, "qkv") &&
        !strstr(golden->name, "gate_up"))
        found(pair, RULE_DTYPE);
    if (texts_differ(target->shape, golden->shape))
        found(pair, RULE_SHAPE);
}

/* The smallest or largest number of a column over the inputs or the outputs; words are skipped. */
static double extreme(const struct group *group, bool outputs, size_t column, bool largest)
{
    double best = largest ? 0.0 : 1.0;
    bool any = false;
    for (size_t i = 0; i < group->count; i++) {
        const struct general_value *value = &group->pairs[i].value[column];
        if (is_output(group, i) != outputs || value->kind == GENERAL_WORD || isnan(value->number))
            continue;
        double x = value->kind == GENERAL_PERCENT ? value->number / 100 : value->number;
        if (!any || (largest ? x > best : x < best))
            best = x;
        any = true;
    }
    return best;
}

static double norm_error(const struct general_value *value)
{
    if (value->kind == GENERAL_PERCENT)
        return value->number / 100;
    if (value->kind == GENERAL_WORD &&
        (strcmp(value->word, "inf") == 0 || strcmp(value->word, "-inf") == 0))
        return INFINITY;
    return 0;
}

static void judge_tensors(struct group *group, struct general_pair *first_output)
{
    double in = extreme(group, false, GENERAL_1E3, false);
    double out = extreme(group, true, GENERAL_1E3, false);
    if (in > 0.9 && out < 0.1)
        found(first_output, RULE_RATIO);
    in = extreme(group, false, GENERAL_COSINE, false);
    out = extreme(group, true, GENERAL_COSINE, false);
    if (in > 0.9 && in - out > 0.1)
        found(first_output, RULE_COSINE);
}

static void judge_statistics(struct group *group, struct general_pair *first_output)
{
    const size_t norm = GENERAL_RELATIVE + DUMP_NORM;
    double in = extreme(group, false, norm, true), out = extreme(group, true, norm, true);
    for (size_t i = 0; i < group->count; i++)
        if (is_output(group, i) && in < 0.1 && norm_error(&group->pairs[i].value[norm]) > 0.5)
            found(&group->pairs[i], RULE_NORM);
    if (in == 0 ? out > 0.1 : out / in > 10)
        found(first_output, RULE_NORM_GROWS);
}

static bool named(const char *name, size_t length, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == length && memcmp(name, list[i], length) == 0)
            return true;
    return false;
}

/* The second field of the first input row's name. */
static const char *short_name(const struct group *group, size_t *length)
{
    for (size_t i = 0; i < group->count; i++) {
        if (is_output(group, i))
            continue;
        const char *dot = strchr(target_of(group, i)->name, '.');
        if (!dot)
            break;
        *length = strcspn(dot + 1, ".");
        return dot + 1;
    }
    *length = 0;
    return "";
}

static void judge_checksum(const struct general *general, struct general_pair *pair)
{
    char texts[2][GENERAL_CRC_BYTES];
    const struct dump_row *golden =
        pair->golden == GENERAL_NONE ? NULL : &general->golden.rows[pair->golden];
    const char *t = general_checksum(&general->target.rows[pair->target], texts[0]);
    const char *g = golden ? general_checksum(golden, texts[1]) : "N/A";
    if (strcmp(t, g) == 0)
        return;
    bool missing = strcmp(t, "N/A") == 0 || strcmp(g, "N/A") == 0 || !*t || !*g ||
                   strcmp(t, "nan") == 0 || strcmp(g, "nan") == 0;
    found(pair, missing ? RULE_NO_CHECKSUM : RULE_CHECKSUM);
}

static void judge_group(struct group *group)
{
    /* Their results are memory that nobody has written yet, or only change where it lives. */
    static const char *const ignored[] = {"empty",     "empty_like",        "numpy",
                                          "to",        "__setitem__",       "empty_with_format",
                                          "new_empty", "new_empty_strided", "empty_strided"};
    static const char *const buffers[] = {"_reduce_scatter_base", "_all_gather_base",
                                          "all_to_all_single", "batch_isend_irecv"};
    size_t length;
    const char *name = short_name(group, &length);
    if (named(name, length, ignored, sizeof ignored / sizeof ignored[0]))
        return;
    group->outputs_only = named(name, length, buffers, sizeof buffers / sizeof buffers[0]);

    struct general_pair *first_output = NULL;
    for (size_t i = 0; i < group->count; i++) {
        bool output = is_output(group, i);
        if (output && !first_output)
            first_output = &group->pairs[i];
        if (!output && group->outputs_only)
            continue;
        if (group->general->target.task == DUMP_MD5)
            judge_checksum(group->general, &group->pairs[i]);
        else
            judge_row(group, i);
    }
    if (!first_output || group->outputs_only)
        return;
    if (group->general->target.task == DUMP_TENSOR)
        judge_tensors(group, first_output);
    else if (group->general->target.task == DUMP_STATISTICS)
        judge_statistics(group, first_output);
}

void general_judge(struct general *general)
{
    for (size_t i = 0; i < general->count;) {
        struct group group = {.general = general, .pairs = &general->pairs[i]};
        size_t api = general->target.rows[general->pairs[i].target].api;
        while (i < general->count && general->target.rows[general->pairs[i].target].api == api)
            i++, group.count++;
        judge_group(&group);
    }
}
