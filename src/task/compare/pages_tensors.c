/* The worst tensors of a comparison, each on a page of its own.
 *
 * They are read a second time. Which ones are the worst is known when all have been compared, and
 * keeping what a page needs of every tensor that fails takes longer (docs/REPORT.md). */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/pool.h"
#include "task/compare/compare.h"
#include "task/compare/pages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAGES = 200 };

/* ---- Which ones ------------------------------------------------------------------------------ */

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
                             size_t *count, size_t *flagged)
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
    *flagged = n;
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

/* ---- Pages ----------------------------------------------------------------------------------- */

static int32_t put_tensor(struct plumb_report *report, struct comparison *c,
                          const struct chosen *is, bool *led)
{
    const struct plumb_record *target = compare_record(c, is->pair, 0),
                              *golden = compare_record(c, is->pair, 1);
    const struct opinion *own = c->opinions ? &c->opinions[is->pair] : NULL;
    const char *facts[20], *dtypes[2] = {compare_dtype(target), compare_dtype(golden)};
    char reason[1024], module[1024];
    struct buf arguments = {0}, command = {0};
    size_t n = 0;
    pages_arguments(&arguments, c->run[0], c->matching.pairs[is->pair].target);
    pages_command(&command, c->run[0], target);
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
    if (arguments.data) {
        facts[n++] = "arguments";
        facts[n++] = arguments.data;
    }
    facts[n++] = "target file";
    facts[n++] = target->path;
    facts[n++] = "golden file";
    facts[n++] = golden->path;
    facts[n] = NULL;
    const char *commands[] = {command.data, NULL};
    if (command.data && is->trouble == PLUMB_TROUBLE_FAULT && !*led) {
        plumb_report_next(report, command.data);
        *led = true;
    }
    const int32_t page = plumb_report_tensor(
        report, &(struct plumb_report_tensor){
                    .name = compare_name(c, is->pair),
                    .row = (int32_t)is->pair,
                    .mood = plumb_trouble_mood(is->trouble),
                    .dtypes = {dtypes[0] ? dtypes[0] : "", dtypes[1] ? dtypes[1] : ""},
                    .facts = facts,
                    .stack = plumb_recorded_stack(target->recorded),
                    .commands = commands,
                    .detail = &is->detail});
    buf_free(&arguments);
    buf_free(&command);
    return page;
}

/* What has no page is counted. */
static void tell_others(struct plumb_report *report, size_t flagged, size_t told)
{
    struct buf line = {0};
    buf_printf(&line, "%zu of %zu failing or suspicious tensors have a page: at most %d, the worst",
               told, flagged, MOST_PAGES);
    if (told < flagged && line.data)
        plumb_report_note(report, line.data);
    buf_free(&line);
}

bool compare_tensors(struct plumb_comparison *out, struct comparison *c)
{
    struct plumb_report *report = c->options->report;
    size_t count, flagged, told = 0;
    bool led = false; /* to the first call that is wrong by itself */
    struct chosen *chosen = choose(c, out, &count, &flagged);
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
            out->pages[chosen[k].pair] = put_tensor(report, c, &chosen[k], &led);
        told += chosen[k].measured;
        plumb_detail_free(&chosen[k].detail);
    }
    tell_others(report, flagged, told);
    free(chosen);
    return true;
}
