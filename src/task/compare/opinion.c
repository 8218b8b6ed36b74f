/* What the calls of the target have to say for themselves: each row that a recorded call gave is
 * held against that call, computed again from the target's own inputs. */
#include "task/compare/compare.h"

#include "base/map.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known of a call in one direction from the rows of the table. */
struct site {
    const struct local_verdict *verdict; /* NULL: plumb did not look at it */
    size_t source; /* the input that is furthest from the golden run; PLUMB_NO_RECORD: none */
    double in;     /* how far that is */
    int64_t terms; /* the longest sum that it may be */
};

struct judging {
    struct comparison *comparison;
    struct site *sites;
    size_t count, capacity;
    struct map index; /* "call/step/rank" to number + 1 */
    struct arena scratch;
};

/* The site of a call, made when it is new; NULL when out of memory. */
static struct site *get_site(struct judging *j, const char *call, const char *ending, int64_t step,
                             int64_t rank)
{
    const char *key =
        arena_printf(&j->scratch, "%s%s/%" PRId64 "/%" PRId64, call, ending, step, rank);
    uint64_t *place = key ? map_put(&j->index, key, strlen(key), NULL) : NULL;
    if (!place)
        return NULL;
    if (*place)
        return &j->sites[*place - 1];
    if (j->count == j->capacity) {
        const size_t capacity = j->capacity ? 2 * j->capacity : 256;
        struct site *sites = realloc(j->sites, capacity * sizeof *sites);
        if (!sites)
            return NULL;
        j->sites = sites;
        j->capacity = capacity;
    }
    *place = j->count + 1;
    j->sites[j->count] = (struct site){.source = PLUMB_NO_RECORD};
    return &j->sites[j->count++];
}

/* ---- The calls ------------------------------------------------------------------------------- */

/* "Functional.linear.0" stands for a forward and a backward, an operator "00004-aten" for one. */
static enum plumb_code take_calls(struct judging *j, struct plumb_error *err)
{
    static const char *const endings[] = {".forward", ".backward"};
    const struct judged_calls *calls = &j->comparison->calls;
    for (size_t i = 0; i < calls->count; i++) {
        const struct judged_call *call = &calls->list[i];
        for (int d = 0; d < 2; d++) {
            struct site *site = get_site(j, call->name, endings[d], call->step, call->rank);
            if (!site)
                return plumb_no_memory(err);
            site->verdict = &call->verdicts[d];
        }
        struct site *site = get_site(j, call->name, "", call->step, call->rank);
        if (!site)
            return plumb_no_memory(err);
        site->verdict = &call->verdicts[0];
    }
    return PLUMB_OK;
}

/* ---- The rows -------------------------------------------------------------------------------- */

/* What follows the name of its call in that of a record: ".output.0"; "" when it is not of one. */
static const char *place_in_call(const struct plumb_record *record)
{
    const size_t length = strlen(record->recorded->api);
    return strncmp(record->name, record->recorded->api, length) == 0 ? record->name + length : "";
}

static bool is_input(const char *place)
{
    static const char *const words[] = {".input.", ".kwargs.", ".parameters.", ".buffers."};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strncmp(place, words[k], strlen(words[k])) == 0)
            return true;
    return false;
}

/* How far a row is from the golden run; NaN: not known. */
static double distance_of(const struct row *row)
{
    return !row->compared ? NAN : isnan(row->distance) ? INFINITY : row->distance;
}

/* Where inputs are far from those of the golden run. */
static enum plumb_code take_inputs(struct judging *j, struct plumb_error *err)
{
    const struct comparison *c = j->comparison;
    for (size_t i = 0; i < c->matching.count; i++) {
        const struct plumb_record *record = compare_record(c, i, 0);
        if (!record || !record->recorded || !record->recorded->api)
            continue;
        struct site *site = get_site(j, record->recorded->api, "", record->step, record->rank);
        if (!site)
            return plumb_no_memory(err);
        const int64_t last = record->ndim ? record->shape[record->ndim - 1] : 1;
        site->terms = last > site->terms ? last : site->terms;
        if (!is_input(place_in_call(record)))
            continue;
        const double away = distance_of(&c->rows[i]);
        if (isnan(away) || (site->source != PLUMB_NO_RECORD && !(away > site->in)))
            continue;
        site->source = i;
        site->in = away;
    }
    return PLUMB_OK;
}

/* What a gradient is made of came in at both ends. */
static const struct site *other_end(struct judging *j, const struct plumb_record *record)
{
    static const char backward[] = ".backward", forward[] = ".forward";
    const char *call = record->recorded->api;
    const size_t length = strlen(call), tail = sizeof backward - 1;
    if (length <= tail || strcmp(call + length - tail, backward) != 0)
        return NULL;
    char *name = arena_copy(&j->scratch, call, length - tail);
    return name ? get_site(j, name, forward, record->step, record->rank) : NULL;
}

static bool is_right(enum plumb_word word)
{
    return word == PLUMB_WORD_SAME || word == PLUMB_WORD_ROUNDING || word == PLUMB_WORD_TIE;
}

/* A call that is right, and still far from the golden run: the inputs were, or the golden run is
 * wrong. False when out of memory. */
static bool explain_distance(struct judging *j, size_t pair, const struct plumb_record *record,
                             const struct site *site, struct opinion *opinion)
{
    struct comparison *c = j->comparison;
    const double out = distance_of(&c->rows[pair]), floor = calls_floor(record->dtype, site->terms);
    if (!(out > 2 * floor))
        return true;
    const struct site here = *site; /* other_end may move it */
    const struct site *there = other_end(j, record);
    const struct site *from = there && there->source != PLUMB_NO_RECORD &&
                                      (here.source == PLUMB_NO_RECORD || there->in > here.in)
                                  ? there
                                  : &here;
    char far[NUMBER_BYTES], near[NUMBER_BYTES];
    number_brief(100 * out, 3, far);
    if (from->source != PLUMB_NO_RECORD && from->in > 0) {
        opinion->why = arena_printf(
            &c->arena, "%s %% from the golden run, since %s is %s %% from it; the call itself: %s",
            far, compare_name(c, from->source), number_brief(100 * from->in, 3, near),
            opinion->why);
        opinion->word = PLUMB_WORD_INHERITED;
    } else if (from->source != PLUMB_NO_RECORD) {
        opinion->why = arena_printf(
            &c->arena, "%s; the golden run is %s %% away from the same inputs: look there",
            opinion->why, far);
    }
    return opinion->why != NULL;
}

static const char *no_call(const struct comparison *c, const struct plumb_record *record)
{
    for (size_t d = 0; d < c->calls.n_dumps; d++) {
        const struct judged_dump *dump = &c->calls.dumps[d];
        if (dump->unreadable && dump->step == record->step && dump->rank == record->rank)
            return dump->unreadable;
    }
    if (strstr(record->recorded->api, "parameters_grad"))
        return "a sum of gradients, and not a recorded call";
    return strncmp(record->recorded->api, "Module.", 7) == 0 ? "a module, and not a recorded call"
                                                             : "not a recorded call";
}

static bool has_results(const struct local_verdict *verdict)
{
    for (const struct local_verdict *r = verdict->next; r; r = r->next)
        if (r->recorded != SIZE_MAX)
            return true;
    return false;
}

/* The verdict on the result that a row holds. */
static void find_result(const struct comparison *c, const struct plumb_record *record,
                        const struct site *site, const char *place, struct opinion *opinion)
{
    const struct local_verdict *verdict = site->verdict;
    *opinion = (struct opinion){.kind = OPINION_GIVEN, .word = PLUMB_WORD_NOT_JUDGED};
    if (!verdict) {
        opinion->why = no_call(c, record);
        return;
    }
    opinion->why = !verdict->seen          ? "plumb cannot compute it from what was recorded"
                   : !has_results(verdict) ? verdict->why
                                           : "plumb computes no such result";
    char *end;
    const size_t number = strtoul(place, &end, 10);
    for (const struct local_verdict *r = verdict->next; r && end != place; r = r->next)
        if (r->recorded == number) {
            opinion->word = r->word;
            opinion->why = r->why;
            opinion->result = r;
        }
}

/* Nothing was given; where something should have been, the call has a verdict on it. */
static bool is_none(const struct plumb_record *record)
{
    return !record->recorded->tensor && !record->recorded->type;
}

/* False when out of memory. */
static bool judge_row(struct judging *j, size_t pair)
{
    static const char output[] = ".output.";
    struct comparison *c = j->comparison;
    struct opinion *opinion = &c->opinions[pair];
    const struct plumb_record *record = compare_record(c, pair, 0);
    if (!record) {
        *opinion = (struct opinion){.kind = OPINION_UNMATCHED, .why = "only in the golden run"};
        return true;
    }
    if (!record->recorded || !record->recorded->api) {
        *opinion = (struct opinion){
            .kind = OPINION_GIVEN, .word = PLUMB_WORD_NOT_JUDGED, .why = "not a recorded call"};
        return true;
    }
    const char *place = place_in_call(record);
    if (is_input(place))
        return true;
    const bool result = strncmp(place, output, sizeof output - 1) == 0;
    const struct site *site = get_site(j, record->recorded->api, "", record->step, record->rank);
    if (!site)
        return false;
    find_result(c, record, site, result ? place + sizeof output - 1 : "", opinion);
    if (!opinion->result && site->verdict && has_results(site->verdict) && is_none(record))
        *opinion = (struct opinion){.kind = OPINION_NONE};
    return !is_right(opinion->word) || explain_distance(j, pair, record, site, opinion);
}

enum plumb_code compare_opinions_ready(struct comparison *comparison, struct plumb_error *err)
{
    const struct plumb_compare_options *options = comparison->options;
    if (options->verdict == PLUMB_BY_RULES)
        return PLUMB_OK;
    snprintf(comparison->judged_by, sizeof comparison->judged_by, "expected %d; seed %llu%s%s",
             PLUMB_EXPECTED_VERSION, (unsigned long long)options->seed,
             options->arithmetic ? "; allowed " : "",
             options->arithmetic ? options->arithmetic : "");
    const enum plumb_code code = plumb_arithmetic_check(options->arithmetic, err);
    return code || !compare_is_dump(comparison->run[0]) ? code : plumb_op_ready(err);
}

/* What is said of each result, for the caller's baseline. */
static enum plumb_code gather(const struct comparison *comparison, struct plumb_error *err)
{
    struct plumb_baseline *found = comparison->options->found;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; found && i < comparison->matching.count && !code; i++) {
        const struct opinion *opinion = &comparison->opinions[i];
        const struct plumb_record *record = compare_record(comparison, i, 0);
        if (opinion->kind != OPINION_GIVEN)
            continue;
        const struct local_verdict *result = opinion->result;
        const struct plumb_deviation is = {.call = record->name,
                                           .step = record->step,
                                           .rank = record->rank,
                                           .word = opinion->word,
                                           .worst = result ? result->worst : 0,
                                           .arithmetic = result ? result->arithmetic : "",
                                           .pattern = result ? result->pattern : ""};
        code = plumb_baseline_add(found, &is, err);
    }
    return code;
}

enum plumb_code compare_opinions(struct comparison *comparison, struct plumb_error *err)
{
    const struct plumb_compare_options *options = comparison->options;
    if (options->verdict == PLUMB_BY_RULES)
        return PLUMB_OK;
    const struct calls_options how = {.crew = options->crew,
                                      .arithmetic = options->arithmetic,
                                      .seed = options->seed,
                                      .threads = options->threads,
                                      .memory = options->memory,
                                      .rank = options->match.rank,
                                      .progress = options->judging,
                                      .progress_context = options->judging_context};
    struct judging j = {.comparison = comparison};
    comparison->opinions = calloc(comparison->matching.count + 1, sizeof *comparison->opinions);
    enum plumb_code code = comparison->opinions
                               ? calls_judge(&comparison->calls, comparison->run[0], &how, err)
                               : plumb_no_memory(err);
    if (!code)
        code = take_calls(&j, err);
    if (!code)
        code = take_inputs(&j, err);
    for (size_t i = 0; i < comparison->matching.count && !code; i++)
        if (!judge_row(&j, i))
            code = plumb_no_memory(err);
    if (!code)
        code = gather(comparison, err);
    map_free(&j.index);
    arena_free(&j.scratch);
    free(j.sites);
    return code;
}

static enum plumb_severity severity_of(const struct opinion *opinion)
{
    if (opinion->kind != OPINION_GIVEN)
        return PLUMB_NORMAL;
    return opinion->word == PLUMB_WORD_FAULT ? PLUMB_FAILED
           : opinion->word == PLUMB_WORD_CHEAPER || opinion->word == PLUMB_WORD_NOT_JUDGED
               ? PLUMB_SUSPICIOUS
               : PLUMB_NORMAL;
}

enum plumb_severity compare_severity(const struct comparison *comparison, size_t pair)
{
    const struct row *row = &comparison->rows[pair];
    const enum plumb_severity rules = row->compared                     ? row->verdict.severity
                                      : compare_fails(comparison, pair) ? PLUMB_FAILED
                                                                        : PLUMB_NORMAL;
    if (!comparison->opinions)
        return rules;
    const enum plumb_severity own = severity_of(&comparison->opinions[pair]);
    return comparison->options->verdict == PLUMB_BY_EXPECTED || own > rules ? own : rules;
}
