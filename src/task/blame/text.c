/* The answer for people, on one screen. */
#include "task/blame/parts.h"

#include "base/buf.h"
#include "base/number.h"
#include "base/plain.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lines ----------------------------------------------------------------------------------- */

void text_put(struct buf *out, const char *text, unsigned width, unsigned indent)
{
    struct buf clean = {0};
    utf8_put_clean(&clean, text);
    size_t column = 0;
    for (const char *at = clean.data ? clean.data : ""; *at;) {
        const size_t length = strcspn(at, " ");
        char word[512];
        snprintf(word, sizeof word, "%.*s", (int)(length < 511 ? length : 511), at);
        const size_t columns = utf8_text_width(word);
        if (column && column + 1 + columns > width) {
            buf_text(out, "\n");
            buf_repeat(out, ' ', indent);
            column = indent;
        } else if (column) {
            buf_text(out, " ");
            column++;
        }
        buf_append(out, at, length);
        column += columns;
        at += length;
        at += strspn(at, " ");
    }
    buf_text(out, "\n");
    buf_free(&clean);
}

/* The same with a format. */
static void put_line(struct buf *out, unsigned width, unsigned indent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void put_line(struct buf *out, unsigned width, unsigned indent, const char *format, ...)
{
    struct arena arena = {0};
    char *text = NULL;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int size = plain_vprint(NULL, 0, format, arguments);
    va_end(arguments);
    if (size >= 0 && (text = arena_alloc(&arena, (size_t)size + 1)))
        plain_vprint(text, (size_t)size + 1, format, again);
    va_end(again);
    if (text)
        text_put(out, text, width, indent);
    else
        out->failed = true;
    arena_free(&arena);
}

void text_place(struct buf *out, const struct plumb_suspect *is)
{
    if (*is->result)
        buf_printf(out, ", %s", is->result);
    if (is->step >= 0)
        buf_printf(out, ", step %" PRId64, is->step);
    if (is->rank >= 0)
        buf_printf(out, ", rank %" PRId64, is->rank);
    if (is->parent)
        buf_printf(out, ", in %s", is->parent);
}

/* ---- People ---------------------------------------------------------------------------------- */

enum { SHOWN_FAULTS = 8, SHOWN_SUSPICIOUS = 5, SHOWN_UNSTEADY = 5, SHOWN_TALLIES = 4 };

/* Captures put the source behind a line break. */
static void put_source(struct buf *out, const char *line, unsigned width)
{
    struct buf text = {0};
    if (!line)
        return;
    for (const char *at = line; *at; at++)
        buf_append(&text, *at == '\n' ? " " : at, 1);
    buf_text(out, "   ");
    text_put(out, text.data ? text.data : "", width - 3, 3);
    out->failed |= text.failed;
    buf_free(&text);
}

static bool is_accepted(const struct plumb_suspect *is)
{
    return is->standing == PLUMB_STANDING_ACCEPTED;
}

static void put_suspect_text(struct buf *out, size_t number, const struct plumb_suspect *is,
                             const char *target, unsigned width)
{
    struct buf head = {0};
    buf_printf(&head, "%zu. %s", number, is->call);
    text_place(&head, is);
    if (is->standing == PLUMB_STANDING_WORSE)
        buf_text(&head, " (worse than in the baseline)");
    text_put(out, head.data ? head.data : "", width, 3);
    buf_free(&head);
    buf_text(out, "   ");
    text_put(out, is->why, width - 3, 3);
    put_source(out, source_line(is->stack), width);
    if (target && !is->by_jump && !is->module) {
        buf_text(out, "   ");
        replay_put(out, target, is);
        buf_text(out, "\n");
    }
}

/* Those that are not accepted; the others are counted. */
static void put_suspects(struct buf *out, const char *title, const struct plumb_suspect *list,
                         size_t n, size_t most, const char *target, unsigned width)
{
    size_t shown = 0, accepted = 0;
    for (size_t k = 0; k < n; k++)
        accepted += is_accepted(&list[k]);
    if (!n)
        return;
    buf_printf(out, "%zu %s%s", n, title, n == 1 ? "" : "s");
    if (accepted)
        buf_printf(out, ", %zu accepted", accepted);
    buf_text(out, accepted == n ? "\n" : ":\n");
    for (size_t k = 0; k < n && shown < most; k++)
        if (!is_accepted(&list[k]))
            put_suspect_text(out, ++shown, &list[k], target, width);
    if (n - accepted > shown)
        put_line(out, width, 0, "... and %zu more, which --format json lists",
                 n - accepted - shown);
}

/* Calls that jump are listed one by one; cheaper arithmetic is mostly that of a kernel, by kind. */
static void put_suspicious(struct buf *out, const struct plumb_blame *blame, const char *target,
                           unsigned width)
{
    struct plumb_suspect *jumps = calloc(blame->n_suspicious + 1, sizeof *jumps);
    size_t n = 0;
    for (size_t k = 0; jumps && k < blame->n_suspicious; k++)
        if (blame->suspicious[k].word != PLUMB_WORD_CHEAPER)
            jumps[n++] = blame->suspicious[k];
    if (jumps)
        put_suspects(out, "suspicious call", jumps, n, SHOWN_SUSPICIOUS, target, width);
    out->failed |= !jumps;
    free(jumps);
    cheaper_put(out, blame->suspicious, blame->n_suspicious, target, width);
}

static void put_tallies(struct buf *out, const char *title, const char *rest_title,
                        const struct plumb_tally *list, size_t n, unsigned width)
{
    struct buf line = {0};
    uint64_t rest = 0;
    if (!n)
        return;
    buf_text(&line, title);
    for (size_t k = 0; k < n; k++)
        if (k < SHOWN_TALLIES)
            buf_printf(&line, "%s %" PRIu64 ": %s", k ? ";" : "", list[k].count, list[k].what);
        else
            rest += list[k].count;
    if (rest)
        buf_printf(&line, "; %" PRIu64 " %s %zu others", rest, rest_title, n - SHOWN_TALLIES);
    text_put(out, line.data ? line.data : "", width, 2);
    buf_free(&line);
}

static void put_amplifiers(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    if (!blame->n_amplifiers)
        return;
    put_line(out, width, 0, "Where the difference grew most, in calls that are right:");
    for (size_t k = 0; k < blame->n_amplifiers; k++) {
        const struct plumb_suspect *is = &blame->amplifiers[k];
        char in[NUMBER_BYTES], after[NUMBER_BYTES];
        buf_text(out, "  ");
        put_line(out, width - 2, 4, "%s: from %s %% to %s %%", is->call,
                 number_brief(100 * (isnan(is->in) ? 0 : is->in), 3, in),
                 number_brief(100 * is->out, 3, after));
    }
}

static void put_unsteady(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    const size_t n = blame->n_unsteady;
    if (!n)
        return;
    put_line(out, width, 0,
             "%zu result%s would be worse than rounding, and %s between repeats of the program as "
             "much:",
             n, n == 1 ? "" : "s", n == 1 ? "differs" : "differ");
    for (size_t k = 0; k < n && k < SHOWN_UNSTEADY; k++) {
        const struct plumb_suspect *is = &blame->unsteady[k];
        struct buf line = {0};
        buf_text(&line, is->call);
        text_place(&line, is);
        buf_printf(&line, ": %s", is->why);
        buf_text(out, "  ");
        text_put(out, line.data ? line.data : "", width - 2, 4);
        buf_free(&line);
    }
    if (n > SHOWN_UNSTEADY)
        put_line(out, width, 0, "... and %zu more, which --format json lists", n - SHOWN_UNSTEADY);
}

static void put_closing(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    const struct plumb_suspect *largest = &blame->largest;
    const uint64_t judged = blame->calls - blame->words[PLUMB_WORD_NOT_JUDGED];
    const char *most = blame->words[PLUMB_WORD_CHEAPER] ? "cheaper arithmetic" : "rounding";
    char apart[NUMBER_BYTES], times[NUMBER_BYTES];
    if (blame->n_faults)
        return;
    if (!judged) {
        put_line(out, width, 0, "Nothing could be judged.");
        return;
    }
    if (!largest->call || !(largest->out > 0)) {
        put_line(out, width, 0, "No call that was judged does worse than %s.", most);
        return;
    }
    struct buf line = {0};
    const struct plumb_source *parting = &blame->parting;
    if (parting->call && largest->out > 2 * blame->rounding) {
        put_line(
            out, width, 0,
            "No call that was judged does worse than %s, but the two runs do not do the same: "
            "they part at %s of %s%s%s, which is %s. Each is right by what it was given: look at "
            "masks, padding, and what is not recorded.",
            most, parting->place, parting->call, parting->parent ? ", in " : "",
            parting->parent ? parting->parent : "", parting->why);
        return;
    }
    buf_printf(&line,
               "No call that was judged does worse than %s; the largest difference from the other "
               "run, %s %% at %s, is ",
               most, number_brief(100 * largest->out, 3, apart), largest->call);
    if (blame->rounding > 0 && largest->out > 2 * blame->rounding)
        buf_printf(&line, "%s amplified %sx on the way there", most,
                   number_brief(largest->out / blame->rounding, 2, times));
    else
        buf_printf(&line, "no more than the type's rounding");
    if (blame->since && largest->out > 2 * blame->rounding)
        buf_printf(&line, " from %s", blame->since);
    buf_text(&line, ".");
    text_put(out, line.data ? line.data : "", width, 0);
    buf_free(&line);
}

static void put_counts_text(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    const uint64_t not_judged = blame->words[PLUMB_WORD_NOT_JUDGED];
    struct buf line = {0};
    buf_printf(&line, "%" PRIu64 " call%s (forward and backward apart): %" PRIu64 " judged",
               blame->calls, blame->calls == 1 ? "" : "s", blame->calls - not_judged);
    if (blame->by_jump)
        buf_printf(&line, ", %" PRIu64 " of them only by their distance from the other run",
                   blame->by_jump);
    buf_printf(&line, "; %" PRIu64 " not judged", not_judged);
    text_put(out, line.data ? line.data : "", width, 2);
    buf_free(&line);
    put_tallies(out, "not judged:", "for", blame->reasons, blame->n_reasons, width);
    if (blame->unmatched || blame->unreadable)
        put_line(out, width, 2,
                 "%" PRIu64 " tensors have no partner in the other run, %" PRIu64
                 " pairs could not be compared",
                 blame->unmatched, blame->unreadable);
    if (blame->covered)
        put_line(out, width, 2,
                 "%" PRIu64 " tensors are inside of what the other run does in other steps",
                 blame->covered);
}

static void put_baseline(struct buf *out, const struct plumb_blame *blame)
{
    char *text = blame->baseline ? plumb_baseline_diff_text(blame->baseline, SHOWN_FAULTS) : NULL;
    if (text)
        buf_text(out, text);
    out->failed |= blame->baseline && !text;
    free(text);
}

static void put_sources(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    if (!blame->n_sources)
        return;
    put_line(out, width, 0,
             "%zu difference%s that no recorded call makes, in the order of the run:",
             blame->n_sources, blame->n_sources == 1 ? "" : "s");
    for (size_t k = 0; k < blame->n_sources && k < SHOWN_FAULTS; k++) {
        const struct plumb_source *source = &blame->sources[k];
        const char *line = source_line(source->stack);
        char rank[32] = "";
        if (blame->ranks)
            snprintf(rank, sizeof rank, ", rank %" PRId64, source->rank);
        put_line(out, width, 3, "%zu. %s of %s%s%s%s: %s", k + 1, source->place, source->call, rank,
                 source->parent ? ", in " : "", source->parent ? source->parent : "", source->why);
        if (line)
            put_source(out, line, width);
    }
    if (blame->n_sources > SHOWN_FAULTS)
        put_line(out, width, 0, "... and %zu more", blame->n_sources - SHOWN_FAULTS);
}

char *plumb_blame_text(const struct plumb_blame *blame, const struct plumb_blame_options *options,
                       unsigned width)
{
    struct buf out = {0};
    width = width < 20 ? 20 : width;
    const char *target = blame->calls > 2 ? options->target : NULL; /* one call is alone already */
    put_counts_text(&out, blame, width);
    across_put_text(&out, blame, width);
    put_suspects(&out, "fault", blame->faults, blame->n_faults, SHOWN_FAULTS, target, width);
    put_sources(&out, blame, width);
    put_closing(&out, blame, width);
    put_suspicious(&out, blame, target, width);
    put_unsteady(&out, blame, width);
    put_amplifiers(&out, blame, width);
    if (blame->n_inherited == 1 && strcmp(blame->inherited->what, "no module") == 0)
        put_line(&out, width, 0, "Calls that only passed on what came in: %" PRIu64 ".",
                 blame->inherited->count);
    else
        put_tallies(&out, "Calls that only passed on what came in, by module:", "in",
                    blame->inherited, blame->n_inherited, width);
    put_baseline(&out, blame);
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
