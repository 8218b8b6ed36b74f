/* What a comparison gives to a report while its runs are open: the curve of errors along the
 * network, ranks and steps beside each other. */
#define _GNU_SOURCE
#include "task/compare/pages.h"
#include "base/map.h"
#include "task/compare/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    fine = fine && compare_tensors(out, c);
    free(calls);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}
