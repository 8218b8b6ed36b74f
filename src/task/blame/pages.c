/* Looks as pages of a report. */
#define _GNU_SOURCE
#include "task/blame/looks.h"

#include <stdlib.h>

static bool is_flagged(const struct site *site)
{
    return site->is.word == PLUMB_WORD_FAULT || site->is.word == PLUMB_WORD_CHEAPER ||
           site->jumps || site->doubtful;
}

/* In the order of the run; of a call the worst result first. */
static int compare_looks(const void *a, const void *b)
{
    const struct look *x = *(const struct look *const *)a, *y = *(const struct look *const *)b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    const unsigned p = plumb_word_severity(x->word), q = plumb_word_severity(y->word);
    return p != q ? (p > q ? -1 : 1) : x->worst != y->worst ? (x->worst > y->worst ? -1 : 1) : 0;
}

static size_t add_fact(const char **facts, size_t n, const char *label, const char *value)
{
    if (!value || !*value)
        return n;
    facts[n] = label;
    facts[n + 1] = value;
    return n + 2;
}

/* -1: out of memory. */
static int32_t put_page(const struct look *look, const struct site *site,
                        const struct plumb_blame_options *options, struct plumb_report *report)
{
    const struct plumb_suspect *is = &site->is;
    const char *facts[18];
    size_t n = 0;
    struct buf name = {0}, command = {0};
    buf_printf(&name, "%s, %s", is->call, look->result);
    if (!is->module && !look->beside)
        replay_put(&command, options->target, is);
    n = add_fact(facts, n, "verdict",
                 site->doubtful || site->jumps ? "suspicious" : plumb_word_text(look->word));
    n = add_fact(facts, n, "why", site->doubtful ? is->why : look->why);
    n = add_fact(facts, n, "pattern", look->pattern);
    n = add_fact(facts, n, "arithmetic", look->arithmetic);
    n = add_fact(facts, n, "equals", is->equals);
    n = add_fact(facts, n, "arguments", look->arguments);
    n = add_fact(facts, n, "module", is->parent);
    n = add_fact(facts, n, "held against",
                 look->beside ? "the same result of the other run"
                              : "the call computed again from its inputs, rounded to the type");
    facts[n] = NULL;
    const char *commands[] = {command.data, NULL};
    const int32_t page =
        name.failed || command.failed
            ? -1
            : plumb_report_tensor(
                  report,
                  &(struct plumb_report_tensor){
                      .name = name.data,
                      .row = (int32_t)look->site,
                      .mood = is->word == PLUMB_WORD_FAULT ? PLUMB_MOOD_BAD : PLUMB_MOOD_DOUBT,
                      .dtypes = {look->dtypes[0], look->dtypes[1]},
                      .sides = {look->beside ? "target" : "got",
                                look->beside ? "golden" : "expected"},
                      .facts = facts,
                      .stack = is->stack,
                      .commands = commands,
                      .detail = &look->detail});
    buf_free(&name);
    buf_free(&command);
    return page;
}

/* What has no page is counted. */
static void tell_others(const struct sites *sites, const int32_t *pages,
                        struct plumb_report *report)
{
    size_t flagged = 0, without = 0;
    for (size_t k = 0; k < sites->count; k++) {
        flagged += is_flagged(&sites->list[k]);
        without += is_flagged(&sites->list[k]) && pages[k] < 0;
    }
    struct buf line = {0};
    buf_printf(
        &line,
        "%zu of %zu wrong or suspicious calls have no page of a tensor: %d results at most "
        "have one, the worst; what has no recorded tensor, or one of another shape, has none",
        without, flagged, MOST_LOOKS);
    if (without && line.data)
        plumb_report_note(report, line.data);
    buf_free(&line);
}

enum plumb_code looks_pages(const struct looks *looks, const struct sites *sites,
                            const struct plumb_blame_options *options, struct plumb_report *report,
                            int32_t *pages, struct plumb_error *err)
{
    const struct look **order = malloc((looks->count + 1) * sizeof *order);
    if (!order)
        return plumb_no_memory(err);
    for (size_t k = 0; k < sites->count; k++)
        pages[k] = -1;
    for (size_t k = 0; k < looks->count; k++)
        order[k] = &looks->list[k];
    qsort(order, looks->count, sizeof *order, compare_looks);
    bool fine = true;
    for (size_t k = 0; k < looks->count && fine; k++) {
        const struct site *site = &sites->list[order[k]->site];
        /* What was wrong by itself may turn out to happen in a call inside, or be excused. */
        if (!is_flagged(site))
            continue;
        const int32_t page = put_page(order[k], site, options, report);
        fine = page >= 0;
        if (pages[order[k]->site] < 0)
            pages[order[k]->site] = page;
    }
    tell_others(sites, pages, report);
    free(order);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}
