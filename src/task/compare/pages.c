/* What a comparison gives to a report while its runs are open: the curve of errors along the
 * network, ranks and steps beside each other, and the worst tensors, each on a page of its own. */
#define _GNU_SOURCE
#include "task/compare/pages.h"
#include "base/map.h"
#include "base/pool.h"
#include "task/compare/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAGES = 200 };

/* ---- Calls ----------------------------------------------------------------------------------- */

static const struct plumb_record *record_of(const struct comparison *c, size_t pair)
{
    const struct plumb_record *target = compare_record(c, pair, 0);
    return target ? target : compare_record(c, pair, 1);
}

/* How many bytes of its name are the call's: "conv.Conv2d.0.forward" of a capture's
 * "conv.Conv2d.0.forward_output.0"; 0: nothing tells. */
static size_t call_length(const char *name)
{
    static const char *const words[] = {".forward_", ".backward_"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const char *word = strstr(name, words[k]);
        if (word)
            return (size_t)(word - name) + strlen(words[k]) - 1;
    }
    return 0;
}

static const char *call_of(struct comparison *c, const struct plumb_record *record)
{
    if (record->recorded && record->recorded->api)
        return record->recorded->api;
    const size_t length = call_length(record->name);
    return length ? arena_copy(&c->arena, record->name, length) : record->name;
}

static const char *module_of(struct comparison *c, const struct plumb_record *record)
{
    char text[1024];
    const char *module = compare_module(record, text, sizeof text);
    return arena_copy(&c->arena, module, strlen(module));
}

/* What came out of a call, as opposed to what went in. */
static bool is_result(const struct plumb_record *record)
{
    return !strstr(record->name, ".input.") && !strstr(record->name, "_input.") &&
           !strstr(record->name, "_params.");
}

/* One rounding of the type, relative to the number. */
static double unit_of(const struct plumb_record *record)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(record->dtype);
    return info->kind == PLUMB_KIND_FLOAT || info->kind == PLUMB_KIND_COMPLEX
               ? ldexp(1, -(int)info->precision - 1)
               : NAN;
}

static double larger(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static void take_row(struct plumb_report_call *call, const struct comparison *c,
                     const struct plumb_comparison *out, size_t pair)
{
    const struct row *row = &c->rows[pair];
    const enum plumb_mood mood = plumb_trouble_mood(out->outcomes[pair].trouble);
    const struct opinion *own = c->opinions ? &c->opinions[pair] : NULL;
    if (row->compared && is_result(record_of(c, pair)))
        call->total = larger(call->total, row->distance);
    if (own && own->kind == OPINION_GIVEN && own->result) {
        call->local = larger(call->local, own->result->worst);
        call->limit = own->result->limit;
    }
    if (mood < call->mood || call->row < 0) {
        call->mood = mood;
        call->row = (int32_t)pair;
        /* What nobody judged may still be beyond a limit. */
        const bool judged = own && own->kind == OPINION_GIVEN && own->word != PLUMB_WORD_NOT_JUDGED;
        call->word =
            judged ? plumb_word_text(own->word) : compare_mood_word(out->outcomes[pair].trouble);
    }
}

/* The calls of all rows, in their order. NULL when out of memory. */
static struct plumb_report_call *find_calls(struct comparison *c,
                                            const struct plumb_comparison *out, size_t *count)
{
    struct plumb_report_call *calls = calloc(c->matching.count + 1, sizeof *calls);
    const struct plumb_record *before = NULL;
    size_t n = 0, in_run = 0;
    for (size_t pair = 0; calls && pair < c->matching.count; pair++) {
        const struct plumb_record *record = record_of(c, pair);
        const bool other = before && (before->rank != record->rank || before->step != record->step);
        const char *name = call_of(c, record);
        in_run = other ? 0 : in_run;
        if (!n || other || !name || strcmp(name, calls[n - 1].name) != 0)
            calls[n++] =
                (struct plumb_report_call){.name = name ? name : record->name,
                                           .module = module_of(c, record),
                                           .back = strstr(record->name, ".backward") ||
                                                   strstr(record->name, "parameters_grad"),
                                           .rank = (int32_t)record->rank,
                                           .step = (int32_t)record->step,
                                           .total = NAN,
                                           .local = NAN,
                                           .limit = NAN,
                                           .band = unit_of(record) * sqrt((double)++in_run),
                                           .mood = PLUMB_MOOD_GOOD,
                                           .row = -1};
        take_row(&calls[n - 1], c, out, pair);
        before = record;
    }
    *count = n;
    return calls;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

struct chosen {
    size_t pair;
    enum plumb_trouble trouble;
    double distance;
    struct plumb_detail detail;
    bool measured;
};

/* The worst first. */
static int compare_chosen(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    if (x->trouble != y->trouble)
        return x->trouble < y->trouble ? -1 : 1;
    if (isnan(x->distance) != isnan(y->distance))
        return isnan(x->distance) ? -1 : 1;
    if (x->distance != y->distance)
        return x->distance > y->distance ? -1 : 1;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static int compare_places(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static struct chosen *choose(const struct comparison *c, const struct plumb_comparison *out,
                             size_t *count)
{
    struct chosen *chosen = calloc(c->matching.count + 1, sizeof *chosen);
    size_t n = 0;
    for (size_t i = 0; chosen && i < c->matching.count; i++) {
        const enum plumb_trouble trouble = out->outcomes[i].trouble;
        const enum plumb_mood mood = plumb_trouble_mood(trouble);
        if (c->rows[i].compared && c->rows[i].basis == BY_TENSOR &&
            (mood == PLUMB_MOOD_BAD || mood == PLUMB_MOOD_DOUBT))
            chosen[n++] =
                (struct chosen){.pair = i, .trouble = trouble, .distance = c->rows[i].distance};
    }
    if (chosen)
        qsort(chosen, n, sizeof *chosen, compare_chosen);
    *count = n < MOST_PAGES ? n : MOST_PAGES;
    if (chosen)
        qsort(chosen, *count, sizeof *chosen, compare_places);
    return chosen;
}

struct measuring {
    const struct comparison *comparison;
    struct chosen *chosen;
};

/* What cannot be read any more has no page. */
static void measure(void *context, size_t number, unsigned thread)
{
    (void)thread;
    const struct measuring *m = context;
    struct chosen *is = &m->chosen[number];
    const struct plumb_pair *pair = &m->comparison->matching.pairs[is->pair];
    const size_t records[] = {pair->target, pair->golden};
    struct plumb_payload payload[2] = {0};
    struct plumb_file_guard guard[2];
    enum plumb_code code = PLUMB_OK;
    for (int side = 0; side < 2 && !code; side++)
        code = plumb_run_load(m->comparison->run[side], records[side], &payload[side], NULL);
    if (!code) {
        plumb_file_guard_enter(&guard[0], &payload[0].file);
        plumb_file_guard_enter(&guard[1], &payload[1].file);
        code = plumb_detail_measure(&is->detail, &payload[0].tensor, &payload[1].tensor, NULL);
        const bool shrank = plumb_file_guard_leave(&guard[1]) | plumb_file_guard_leave(&guard[0]);
        is->measured = !code && !shrank;
        if (shrank)
            plumb_detail_free(&is->detail);
    }
    plumb_payload_release(&payload[0]);
    plumb_payload_release(&payload[1]);
}

static int32_t put_tensor(struct plumb_report *report, struct comparison *c,
                          const struct chosen *is)
{
    const struct plumb_record *target = compare_record(c, is->pair, 0),
                              *golden = compare_record(c, is->pair, 1);
    const struct opinion *own = c->opinions ? &c->opinions[is->pair] : NULL;
    const char *facts[16], *dtypes[2] = {compare_dtype(target), compare_dtype(golden)};
    char reason[1024], module[1024];
    size_t n = 0;
    facts[n++] = "rule";
    facts[n++] = compare_reason(c, is->pair, reason, sizeof reason);
    if (own && own->kind == OPINION_GIVEN) {
        facts[n++] = "verdict";
        facts[n++] = plumb_word_text(own->word);
        facts[n++] = "why";
        facts[n++] = own->why ? own->why : "";
        if (own->result && own->result->pattern && *own->result->pattern) {
            facts[n++] = "pattern";
            facts[n++] = own->result->pattern;
        }
    }
    if (*compare_module(target, module, sizeof module)) {
        facts[n++] = "module";
        facts[n++] = compare_module(target, module, sizeof module);
    }
    facts[n++] = "target file";
    facts[n++] = target->path;
    facts[n++] = "golden file";
    facts[n++] = golden->path;
    facts[n] = NULL;
    return plumb_report_tensor(
        report, &(struct plumb_report_tensor){
                    .name = compare_name(c, is->pair),
                    .row = (int32_t)is->pair,
                    .mood = plumb_trouble_mood(is->trouble),
                    .dtypes = {dtypes[0] ? dtypes[0] : "", dtypes[1] ? dtypes[1] : ""},
                    .facts = facts,
                    .stack = target->recorded ? target->recorded->stack : NULL,
                    .detail = &is->detail});
}

static bool put_tensors(struct plumb_report *report, struct comparison *c,
                        struct plumb_comparison *out)
{
    size_t count;
    struct chosen *chosen = choose(c, out, &count);
    out->pages = malloc((c->matching.count + 1) * sizeof *out->pages);
    if (!chosen || !out->pages) {
        free(chosen);
        return false;
    }
    for (size_t i = 0; i < c->matching.count; i++)
        out->pages[i] = -1;
    struct measuring m = {c, chosen};
    pool_run(c->options->threads ? c->options->threads : pool_default_threads(), count, measure,
             &m);
    for (size_t k = 0; k < count; k++) {
        if (chosen[k].measured)
            out->pages[chosen[k].pair] = put_tensor(report, c, &chosen[k]);
        plumb_detail_free(&chosen[k].detail);
    }
    free(chosen);
    return true;
}

enum plumb_code compare_pages(struct plumb_comparison *out, struct comparison *c,
                              struct plumb_error *err)
{
    struct plumb_report *report = c->options->report;
    size_t count;
    if (!report)
        return PLUMB_OK;
    struct plumb_report_call *calls = find_calls(c, out, &count);
    bool fine = calls != NULL;
    if (fine)
        plumb_report_network(report, calls, count);
    if (fine) {
        plumb_report_call_grid(report, calls, count, PLUMB_GRID_RANKS, PLUMB_GRID_DISTANCE);
        plumb_report_call_grid(report, calls, count, PLUMB_GRID_STEPS, PLUMB_GRID_DISTANCE);
    }
    fine = fine && put_tensors(report, c, out);
    free(calls);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}
