/* The answer for people, on one screen, and for programs. */
#include "task/blame/parts.h"

#include "base/buf.h"
#include "base/json_put.h"
#include "base/number.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lines ----------------------------------------------------------------------------------- */

/* A paragraph, words wrapped, all lines but the first indented. */
static void put_wrapped(struct buf *out, const char *text, unsigned width, unsigned indent)
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
    const int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size >= 0 && (text = arena_alloc(&arena, (size_t)size + 1)))
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    if (text)
        put_wrapped(out, text, width, indent);
    else
        out->failed = true;
    arena_free(&arena);
}

/* As a shell takes it for one word. */
static void put_quoted(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=,+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        buf_text(out, word);
        return;
    }
    buf_text(out, "'");
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            buf_text(out, "'\\''");
        else
            buf_append(out, c, 1);
    buf_text(out, "'");
}

static void put_place(struct buf *out, const struct plumb_suspect *is)
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

/* The call without its direction: what a capsule is made of. */
static size_t bare_length(const char *call)
{
    static const char *const endings[] = {".forward", ".backward"};
    const size_t length = strlen(call);
    for (int k = 0; k < 2; k++) {
        const size_t tail = strlen(endings[k]);
        if (length > tail && strcmp(call + length - tail, endings[k]) == 0)
            return length - tail;
    }
    return length;
}

static void put_replay(struct buf *out, const char *target, const struct plumb_suspect *is)
{
    struct arena arena = {0};
    const char *call = arena_copy(&arena, is->call, bare_length(is->call));
    buf_text(out, "   plumb capsule ");
    put_quoted(out, target);
    buf_text(out, " ");
    put_quoted(out, call ? call : is->call);
    buf_text(out, " -o capsule\n");
    arena_free(&arena);
}

/* ---- People ---------------------------------------------------------------------------------- */

enum { SHOWN_FAULTS = 8, SHOWN_SUSPICIOUS = 5, SHOWN_TALLIES = 4 };

static void put_suspects(struct buf *out, const char *title, const struct plumb_suspect *list,
                         size_t n, size_t shown, const char *target, unsigned width)
{
    if (!n)
        return;
    put_line(out, width, 0, "%zu %s%s:", n, title, n == 1 ? "" : "s");
    for (size_t k = 0; k < n && k < shown; k++) {
        struct buf head = {0};
        buf_printf(&head, "%zu. %s", k + 1, list[k].call);
        put_place(&head, &list[k]);
        put_wrapped(out, head.data ? head.data : "", width, 3);
        buf_free(&head);
        buf_text(out, "   ");
        put_wrapped(out, list[k].why, width - 3, 3);
        if (list[k].stack && list[k].stack[0]) {
            buf_text(out, "   ");
            put_wrapped(out, list[k].stack[0], width - 3, 3);
        }
        if (!list[k].by_jump && !list[k].module)
            put_replay(out, target, &list[k]);
    }
    if (n > shown)
        put_line(out, width, 0, "... and %zu more, which --format json lists", n - shown);
}

static void put_tallies(struct buf *out, const char *title, const struct plumb_tally *list,
                        size_t n, unsigned width)
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
        buf_printf(&line, "; %" PRIu64 " for %zu other reasons", rest, n - SHOWN_TALLIES);
    put_wrapped(out, line.data ? line.data : "", width, 2);
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
        put_line(out, width, 2, "  %s: from %s %% to %s %%", is->call,
                 number_brief(100 * (isnan(is->in) ? 0 : is->in), 3, in),
                 number_brief(100 * is->out, 3, after));
    }
}

static void put_closing(struct buf *out, const struct plumb_blame *blame, unsigned width)
{
    const struct plumb_suspect *largest = &blame->largest;
    const uint64_t judged = blame->calls - blame->words[PLUMB_WORD_NOT_JUDGED];
    char apart[NUMBER_BYTES];
    if (blame->n_faults)
        return;
    if (!judged) {
        put_line(out, width, 0, "Nothing could be judged.");
        return;
    }
    if (!largest->call || !(largest->out > 0))
        put_line(out, width, 0, "No call that was judged does worse than %s.",
                 blame->words[PLUMB_WORD_CHEAPER] ? "cheaper arithmetic" : "rounding");
    else
        put_line(out, width, 0,
                 "No call that was judged does worse than %s; the largest difference from the "
                 "other run, %s %% at %s, is what such errors grow to on the way there.",
                 blame->words[PLUMB_WORD_CHEAPER] ? "cheaper arithmetic" : "rounding",
                 number_brief(100 * largest->out, 3, apart), largest->call);
}

char *plumb_blame_text(const struct plumb_blame *blame, const struct plumb_blame_options *options,
                       unsigned width)
{
    struct buf out = {0};
    const uint64_t not_judged = blame->words[PLUMB_WORD_NOT_JUDGED];
    put_line(&out, width, 2,
             "%" PRIu64 " calls (forward and backward apart): %" PRIu64 " judged, of these %" PRIu64
             " only by their distance from the other run; %" PRIu64 " not judged",
             blame->calls, blame->calls - not_judged, blame->by_jump, not_judged);
    put_tallies(&out, "  not judged:", blame->reasons, blame->n_reasons, width);
    if (blame->unmatched || blame->unreadable)
        put_line(&out, width, 2,
                 "  %" PRIu64 " tensors have no partner in the other run, %" PRIu64
                 " pairs could not be compared",
                 blame->unmatched, blame->unreadable);
    put_suspects(&out, "fault", blame->faults, blame->n_faults, SHOWN_FAULTS, options->target,
                 width);
    put_suspects(&out, "suspicious call", blame->suspicious, blame->n_suspicious, SHOWN_SUSPICIOUS,
                 options->target, width);
    put_amplifiers(&out, blame, width);
    put_tallies(&out, "Only passed on what came in, by module:", blame->inherited,
                blame->n_inherited, width);
    put_closing(&out, blame, width);
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}

/* ---- Programs -------------------------------------------------------------------------------- */

static void put_number(struct buf *out, const char *name, double value)
{
    char text[NUMBER_BYTES];
    number_exact(value, false, text);
    buf_printf(out, ", \"%s\": %s", name, isfinite(value) ? text : "null");
}

static void put_string(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, ", \"%s\": ", name);
    if (text)
        json_put_string(out, text);
    else
        buf_text(out, "null");
}

static void put_suspect(struct buf *out, const struct plumb_suspect *is)
{
    buf_text(out, "{\"call\": ");
    json_put_string(out, is->call);
    put_string(out, "result", is->result);
    buf_printf(out, ", \"step\": %" PRId64 ", \"rank\": %" PRId64, is->step, is->rank);
    put_string(out, "verdict", plumb_word_text(is->word));
    buf_printf(out, ", \"by_jump\": %s", is->by_jump ? "true" : "false");
    put_number(out, "worst", is->worst);
    put_string(out, "why", is->why);
    put_string(out, "parent", is->parent);
    put_number(out, "inputs_apart", is->in);
    put_number(out, "outputs_apart", is->out);
    buf_text(out, ", \"stack\": [");
    for (size_t k = 0; is->stack && is->stack[k]; k++) {
        buf_text(out, k ? ", " : "");
        json_put_string(out, is->stack[k]);
    }
    buf_text(out, "]}");
}

static void put_list(struct buf *out, const char *name, const struct plumb_suspect *list, size_t n)
{
    buf_printf(out, ",\n  \"%s\": [", name);
    for (size_t k = 0; k < n; k++) {
        buf_text(out, k ? ",\n    " : "\n    ");
        put_suspect(out, &list[k]);
    }
    buf_text(out, n ? "\n  ]" : "]");
}

static void put_counts(struct buf *out, const char *name, const struct plumb_tally *list, size_t n)
{
    buf_printf(out, ",\n  \"%s\": [", name);
    for (size_t k = 0; k < n; k++) {
        buf_printf(out, "%s{\"count\": %" PRIu64, k ? ",\n    " : "\n    ", list[k].count);
        put_string(out, "what", list[k].what);
        buf_text(out, "}");
    }
    buf_text(out, n ? "\n  ]" : "]");
}

char *plumb_blame_json(const struct plumb_blame *blame, const struct plumb_blame_options *options)
{
    struct buf out = {0};
    buf_printf(&out, "{\n  \"version\": %d, \"seed\": %" PRIu64, PLUMB_EXPECTED_VERSION,
               options->seed);
    put_string(&out, "arithmetic", options->arithmetic);
    put_string(&out, "target", options->target);
    put_string(&out, "golden", options->golden);
    buf_printf(&out,
               ",\n  \"calls\": %" PRIu64 ", \"by_jump\": %" PRIu64 ", \"unmatched\": %" PRIu64
               ", \"unreadable\": %" PRIu64 ",\n  \"verdicts\": {",
               blame->calls, blame->by_jump, blame->unmatched, blame->unreadable);
    for (int k = 0; k < PLUMB_WORDS; k++)
        buf_printf(&out, "%s\"%s\": %" PRIu64, k ? ", " : "", plumb_word_text((enum plumb_word)k),
                   blame->words[k]);
    buf_text(&out, "}");
    put_counts(&out, "not_judged", blame->reasons, blame->n_reasons);
    put_list(&out, "faults", blame->faults, blame->n_faults);
    put_list(&out, "suspicious", blame->suspicious, blame->n_suspicious);
    put_list(&out, "amplifiers", blame->amplifiers, blame->n_amplifiers);
    put_counts(&out, "inherited", blame->inherited, blame->n_inherited);
    buf_text(&out, ",\n  \"largest\": ");
    if (blame->largest.call)
        put_suspect(&out, &blame->largest);
    else
        buf_text(&out, "null");
    buf_text(&out, "\n}\n");
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
