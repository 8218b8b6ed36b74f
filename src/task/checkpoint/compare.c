/* From two checkpoints to a table. */
#include "task/checkpoint/pairs.h"

#include "base/buf.h"
#include "base/number.h"
#include "base/output.h"
#include "base/utf8.h"
#include "verdict/rules.h"
#include "verdict/weight.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, SHAPE, NUMEL, L2, COS, RESULT, MESSAGE, COLUMNS };

static const struct plumb_column columns[] = {
    [NAME] = {"Name", PLUMB_STYLE_TEXT, true, true},
    [SHAPE] = {"Shape", PLUMB_STYLE_TEXT, true, false},
    [NUMEL] = {"Numel", PLUMB_STYLE_TEXT, false, false},
    [L2] = {"l2", PLUMB_STYLE_DIGITS, false, false},
    [COS] = {"cos", PLUMB_STYLE_NUMBER, false, false},
    [RESULT] = {"Result", PLUMB_STYLE_TEXT, true, false},
    [MESSAGE] = {"Err_message", PLUMB_STYLE_TEXT, true, true},
};
_Static_assert(sizeof columns / sizeof *columns == COLUMNS, "a title for each column");

void plumb_checkpoint_options_init(struct plumb_checkpoint_options *options)
{
    *options = (struct plumb_checkpoint_options){.min_cosine = NAN, .max_distance = NAN};
}

/* What weights are judged by. */
struct judge {
    struct plumb_standard *standard;
    const struct checkpoint_profile *rules;
};

static bool put_sizes(struct plumb_table *table, const struct pair *pair)
{
    char shape[2][512], text[1100];
    const struct checkpoint_weight *side[2] = {pair->side[0], pair->side[1]};
    for (int i = 0; i < 2; i++) {
        if (side[i] && side[i]->problem)
            side[i] = NULL;
        if (side[i])
            plumb_dims_text(side[i]->ndim, side[i]->shape, shape[i], sizeof shape[i]);
    }
    if (!side[0] && !side[1])
        return true;
    if (side[0] && side[1] && pair->state == PAIR_SHAPES)
        snprintf(text, sizeof text, "%s / %s", shape[0], shape[1]);
    else
        snprintf(text, sizeof text, "%s", side[0] ? shape[0] : shape[1]);
    if (!plumb_table_text(table, SHAPE, text))
        return false;
    if (side[0] && side[1] && side[0]->elements != side[1]->elements) {
        snprintf(text, sizeof text, "%" PRIu64 " / %" PRIu64, side[0]->elements, side[1]->elements);
        return plumb_table_text(table, NUMEL, text);
    }
    plumb_table_int(table, NUMEL, (int64_t)(side[0] ? side[0] : side[1])->elements);
    return true;
}

/* Weights without elements agree, unless the rules judge nothing, too. */
static void judge_values(const struct pair *pair, const struct judge *judge,
                         struct plumb_verdict *verdict)
{
    const struct weight_evidence evidence = {
        .cosine = pair->cosine, .has_cosine = pair->has_cosine, .distance = pair->distance};
    if (pair->side[0]->elements || judge->rules->judges_nothing)
        weight_judge(judge->standard, &evidence, verdict);
    if (verdict->severity == PLUMB_NORMAL && !judge->rules->any_kind)
        weight_judge_integers(pair->kinds, pair->integers, pair->distance, verdict);
}

/* Severity of the pair, and what is wrong or odd about it; "" when nothing is. */
static enum plumb_severity judge_pair(const struct pair *pair, const struct pairs *pairs,
                                      const struct judge *judge, char *why, size_t size)
{
    struct plumb_verdict verdict = {.severity = PLUMB_FAILED};
    switch (pair->state) {
    case PAIR_ALONE:
        snprintf(why, size, "only in %s", pairs->ckpt[pair->side[0] ? 0 : 1].path);
        break;
    case PAIR_SHAPES:
        snprintf(why, size, "the shapes differ");
        break;
    case PAIR_UNREADABLE:
        plumb_error_text(&pair->error, why, size);
        break;
    case PAIR_COMPARED:
        verdict.severity = PLUMB_NORMAL;
        judge_values(pair, judge, &verdict);
        snprintf(why, size, "%s", verdict.rule);
    }
    if (pair->copies) {
        size_t used = strlen(why);
        snprintf(why + used, size - used, "%sthe copy in %s differs", used ? "; " : "",
                 pair->copies);
    }
    if (pair->copies && verdict.severity == PLUMB_NORMAL)
        verdict.severity = PLUMB_SUSPICIOUS;
    return verdict.severity;
}

static bool add_pair(struct plumb_checkpoint_comparison *out, const struct pair *pair,
                     const struct pairs *pairs, const struct judge *judge)
{
    char why[1200];
    enum plumb_severity severity = judge_pair(pair, pairs, judge, why, sizeof why);
    bool failed = severity == PLUMB_FAILED, compared = pair->state == PAIR_COMPARED;
    out->compared += compared;
    out->passed += compared && !failed;
    out->failed += compared && failed;
    out->suspicious += severity == PLUMB_SUSPICIOUS;
    out->alone += pair->state == PAIR_ALONE;
    out->unreadable += pair->state == PAIR_UNREADABLE || pair->state == PAIR_SHAPES;

    struct plumb_table *table = out->table;
    if (!plumb_table_add_row(table, severity) || !plumb_table_text(table, NAME, pair_name(pair)) ||
        !put_sizes(table, pair) || !plumb_table_text(table, RESULT, failed ? "FAIL" : "PASS") ||
        !plumb_table_text(table, MESSAGE, why))
        return false;
    if (compared)
        plumb_table_real(table, L2, pair->l2);
    if (compared && pair->has_cosine)
        plumb_table_real(table, COS, pair->cosine);
    return true;
}

static bool add_faults(struct plumb_checkpoint_comparison *out, const struct checkpoint *ckpt)
{
    for (size_t i = 0; i < ckpt->fault_count; i++) {
        struct buf name = {0};
        buf_printf(&name, "%s/%s", ckpt->path, ckpt->faults[i].name);
        bool done = !name.failed && plumb_table_add_row(out->table, PLUMB_FAILED) &&
                    plumb_table_text(out->table, NAME, name.data) &&
                    plumb_table_text(out->table, RESULT, "FAIL") &&
                    plumb_table_text(out->table, MESSAGE, ckpt->faults[i].what);
        buf_free(&name);
        if (!done)
            return false;
        out->unreadable++;
    }
    return true;
}

static const struct pair *worst(const struct pairs *pairs)
{
    const struct pair *found = NULL;
    for (size_t i = 0; i < pairs->count; i++) {
        const struct pair *pair = &pairs->list[i];
        if (pair->state != PAIR_COMPARED || pair->distance == 0 ||
            (found && (isnan(found->distance) ||
                       !(isnan(pair->distance) || pair->distance > found->distance))))
            continue;
        found = pair;
    }
    return found;
}

static enum plumb_code close_up(struct plumb_checkpoint_comparison *out, const struct pairs *pairs,
                                const struct judge *judge, struct plumb_error *err)
{
    struct buf text = {0};
    size_t alone[2] = {0, 0};
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->list[i].state == PAIR_ALONE)
            alone[pairs->list[i].side[0] ? 0 : 1]++;
    buf_printf(&text, "%zu compared: %zu pass", out->compared, out->passed);
    if (out->suspicious)
        buf_printf(&text, " (%zu suspicious)", out->suspicious);
    buf_printf(&text, ", %zu fail; ", out->failed);
    if (out->alone)
        buf_printf(&text, "%zu only in the first, %zu only in the second", alone[0], alone[1]);
    else
        buf_text(&text, "the same names in both");
    if (out->unreadable)
        buf_printf(&text, ", %zu not comparable", out->unreadable);
    const struct pair *most = worst(pairs);
    if (most) {
        buf_text(&text, "; worst: ");
        utf8_put_clean(&text, pair_name(most));
        char number[NUMBER_BYTES];
        buf_printf(&text, " (relative distance %s)", number_brief(most->distance, 3, number));
    }
    buf_printf(&text, "; passes with cos >= %g and a distance <= %g of the norm\n",
               weight_min_cosine(judge->standard), weight_max_distance(judge->standard));
    if (text.failed) {
        buf_free(&text);
        return plumb_no_memory(err);
    }
    out->closing = text.data;
    return PLUMB_OK;
}

static enum plumb_code report(struct plumb_checkpoint_comparison *out, const struct pairs *pairs,
                              const struct judge *judge, struct plumb_error *err)
{
    out->table = plumb_table_new(columns, COLUMNS);
    bool done = out->table;
    for (size_t i = 0; i < pairs->count && done; i++)
        done = add_pair(out, &pairs->list[i], pairs, judge);
    for (int i = 0; i < 2 && done; i++)
        done = add_faults(out, &pairs->ckpt[i]);
    if (done)
        out->json = pairs_json(pairs);
    if (!out->json)
        return plumb_no_memory(err);
    return close_up(out, pairs, judge, err);
}

enum plumb_code plumb_checkpoint_compare(struct plumb_checkpoint_comparison *out, const char *first,
                                         const char *second,
                                         const struct plumb_checkpoint_options *options,
                                         struct plumb_error *err)
{
    static const struct checkpoint_profile usual = {0};
    const struct checkpoint_profile *rules =
        options->rules && options->rules->checkpoint ? options->rules->checkpoint : &usual;
    struct pairs pairs = {0};
    *out = (struct plumb_checkpoint_comparison){0};
    enum plumb_code code = checkpoint_open(&pairs.ckpt[0], first, rules, err);
    if (code)
        return code;
    code = checkpoint_open(&pairs.ckpt[1], second, rules, err);
    if (code) {
        checkpoint_close(&pairs.ckpt[0]);
        return code;
    }
    struct judge judge = {.rules = rules};
    code = standard_load_task(&judge.standard, "checkpoint", err);
    if (!code) {
        weight_set_limits(judge.standard, options->min_cosine, options->max_distance);
        code = pairs_match(&pairs, err);
    }
    if (!code)
        code = pairs_compare(&pairs, options, err);
    if (!code)
        code = report(out, &pairs, &judge, err);
    if (code)
        plumb_checkpoint_free(out);
    plumb_standard_free(judge.standard);
    free(pairs.list);
    checkpoint_close(&pairs.ckpt[1]);
    checkpoint_close(&pairs.ckpt[0]);
    return code;
}

void plumb_checkpoint_free(struct plumb_checkpoint_comparison *comparison)
{
    plumb_table_free(comparison->table);
    free(comparison->closing);
    free(comparison->json);
    *comparison = (struct plumb_checkpoint_comparison){0};
}

enum plumb_code plumb_checkpoint_save(const struct plumb_checkpoint_comparison *comparison,
                                      const char *path, struct plumb_error *err)
{
    struct output out = {0};
    enum plumb_code code = output_open(&out, path, err);
    if (!code)
        code = output_bytes(&out, comparison->json, strlen(comparison->json), err);
    if (!code)
        code = output_bytes(&out, "\n", 1, err);
    if (code) {
        output_discard(&out);
        plumb_error_in_file(err, path);
        return code;
    }
    return output_commit(&out, true, err);
}
