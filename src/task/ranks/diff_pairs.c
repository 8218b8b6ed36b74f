/* Which APIs differ. */
#define _GNU_SOURCE
#include "task/ranks/diff.h"

#include "base/number.h"
#include "verdict/recorded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT 50.0 /* per cent */

static const char *const relative_names[DUMP_STATISTICS_COUNT] = {
    "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"};

enum plumb_code diff_open(struct diff *diff, const struct plumb_general_place *place,
                          const struct plumb_analyze_options *options,
                          const struct ranks_rules *rules, struct plumb_error *err)
{
    static const struct plumb_general_options by_name = {0};
    *diff = (struct diff){.rules = rules};
    struct general *general = &diff->general;
    general->options = options->pairing ? options->pairing : &by_name;
    enum plumb_code code = dump_open(&general->target, place->target, err);
    if (!code) {
        code = dump_open(&general->golden, place->golden, err);
        if (code)
            dump_close(&general->target);
    }
    if (code)
        return code;
    diff->checksums = general->target.task == DUMP_MD5 && general->golden.task == DUMP_MD5;
    const char *stack = arena_printf(&general->arena, "%s/stack.json", general->target.folder);
    diff->stacks = stack && access(stack, F_OK) == 0;
    code = stack ? general_match(general, err) : plumb_no_memory(err);
    if (code)
        diff_close(diff);
    else if (!diff->checksums)
        general_differences(general);
    return code;
}

void diff_close(struct diff *diff)
{
    free(diff->general.pairs);
    free(diff->general.mapping);
    arena_free(&diff->general.arena);
    dump_close(&diff->general.golden);
    dump_close(&diff->general.target);
    *diff = (struct diff){0};
}

static bool is_named(const char *name)
{
    unsigned dots = 0;
    for (; *name; name++)
        dots += *name == '.';
    return dots >= 3;
}

bool diff_next(const struct diff *diff, struct diff_api *at)
{
    const struct general *general = &diff->general;
    do {
        at->from = at->to;
        if (at->from == general->count)
            return false;
        size_t api = general->target.rows[general->pairs[at->from].target].api;
        while (at->to < general->count &&
               general->target.rows[general->pairs[at->to].target].api == api)
            at->to++;
        at->api = &general->target.apis[api];
    } while (!is_named(at->api->name)); /* what has no direction and number is no call */
    return true;
}

const char *diff_state(const struct dump_row *row)
{
    static const char *const states[] = {[DUMP_INPUT] = "input",
                                         [DUMP_PARAMETERS] = "parameters",
                                         [DUMP_OUTPUT] = "output",
                                         [DUMP_GRADIENTS] = "parameters_grad",
                                         [DUMP_BUFFERS] = "buffers"};
    if (row->section == DUMP_INPUT && strstr(row->name, ".kwargs."))
        return "kwargs";
    return states[row->section];
}

/* The softmax sums' seeds and offsets of the fused attention, which need not agree. */
static bool is_unimportant(const char *name, size_t output)
{
    const char *op = strstr(name, ".npu_fusion_attention.");
    return op && (output == 4 || output == 5);
}

static double magnitude(const struct dump_row *row)
{
    double max = row->statistic[DUMP_MAX].kind == DUMP_NUMBER ? row->statistic[DUMP_MAX].number : 0;
    double min = row->statistic[DUMP_MIN].kind == DUMP_NUMBER ? row->statistic[DUMP_MIN].number : 0;
    return fmax(fabs(max), fabs(min));
}

/* Words are no number above the limit. But NaN and infinity on one side only are a difference, and
 * so is something large where there should be a zero. */
static bool word_differs(const struct diff *diff, const struct general_pair *pair, size_t statistic)
{
    const char *word = pair->value[GENERAL_RELATIVE + statistic].word;
    const struct dump_row *target = &diff->general.target.rows[pair->target];
    if (diff->rules->numbers_only || pair->golden == GENERAL_NONE || strcmp(word, "0") == 0 ||
        strcmp(word, "N/A") == 0)
        return false;
    const struct dump_row *golden = &diff->general.golden.rows[pair->golden];
    const struct dump_value *mine = &target->statistic[statistic];
    const struct dump_value *right = &golden->statistic[statistic];
    if (mine->kind == DUMP_NUMBER && right->kind == DUMP_NUMBER && right->number == 0 &&
        isfinite(mine->number))
        return fabs(mine->number) > LIMIT / 100 * magnitude(golden);
    return !(mine->kind == DUMP_WORD && right->kind == DUMP_WORD &&
             recorded_hides(mine->text, right->text));
}

static bool statistics_differ(const struct diff *diff, const struct general_pair *pair, char *words,
                              size_t size)
{
    for (size_t i = 0; i < DUMP_STATISTICS_COUNT; i++) {
        const struct general_value *value = &pair->value[GENERAL_RELATIVE + i];
        char number[NUMBER_BYTES];
        if (value->kind == GENERAL_PERCENT && value->number > LIMIT) {
            number_shown(value->number, PLUMB_STYLE_DIGITS, number);
            snprintf(words, size, "%s %s%%", relative_names[i], number);
            return true;
        }
        if (value->kind == GENERAL_WORD && word_differs(diff, pair, i)) {
            snprintf(words, size, "%s %s", relative_names[i], value->word);
            return true;
        }
    }
    return false;
}

static bool pair_differs(const struct diff *diff, const struct general_pair *pair, char *words,
                         size_t size)
{
    if (pair->golden == GENERAL_NONE)
        return false;
    const struct dump_row *target = &diff->general.target.rows[pair->target];
    const struct dump_row *golden = &diff->general.golden.rows[pair->golden];
    if (diff->checksums) {
        char mine[GENERAL_CRC_BYTES], theirs[GENERAL_CRC_BYTES];
        const char *left = general_checksum(target, mine),
                   *right = general_checksum(golden, theirs);
        snprintf(words, size, "checksum %s, golden %s", left, right);
        return strcmp(left, right) != 0;
    }
    if (statistics_differ(diff, pair, words, size))
        return true;
    snprintf(words, size, "shape %s, golden %s", target->shape, golden->shape);
    return !diff->rules->numbers_only && strcmp(target->shape, golden->shape) != 0;
}

bool diff_find(const struct diff *diff, const struct diff_api *api, size_t *from, char *words,
               size_t size)
{
    size_t output = 0;
    for (size_t i = api->from; i < api->to; i++) {
        const struct general_pair *pair = &diff->general.pairs[i];
        const struct dump_row *row = &diff->general.target.rows[pair->target];
        if (row->section != DUMP_OUTPUT)
            continue;
        if (i >= *from && !is_unimportant(api->api->name, output) &&
            pair_differs(diff, pair, words, size)) {
            *from = i + 1;
            return true;
        }
        output++;
    }
    return false;
}

bool diff_in_input(const struct diff *diff, const struct diff_api *api)
{
    char words[256];
    for (size_t i = api->from; i < api->to; i++) {
        const struct general_pair *pair = &diff->general.pairs[i];
        if (diff->general.target.rows[pair->target].section == DUMP_INPUT &&
            pair_differs(diff, pair, words, sizeof words))
            return true;
    }
    return false;
}
