/* What second opinions add to the closing lines. */
#include "task/compare/compare.h"

#include "base/map.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_REASONS = 3 };

enum plumb_trouble compare_opinion_trouble(const struct comparison *comparison, size_t pair)
{
    const struct opinion *opinion = comparison->opinions ? &comparison->opinions[pair] : NULL;
    if (!opinion || opinion->kind != OPINION_GIVEN)
        return PLUMB_TROUBLE_NONE;
    return opinion->word == PLUMB_WORD_FAULT        ? PLUMB_TROUBLE_FAULT
           : opinion->word == PLUMB_WORD_CHEAPER    ? PLUMB_TROUBLE_CHEAPER
           : opinion->word == PLUMB_WORD_NOT_JUDGED ? PLUMB_TROUBLE_NO_OPINION
                                                    : PLUMB_TROUBLE_NONE;
}

void compare_put_opinion(struct buf *text, const char *what, const struct comparison *comparison,
                         size_t pair, bool brief)
{
    if (pair == PLUMB_NO_RECORD)
        return;
    const char *why = comparison->opinions[pair].why;
    struct buf gist = {0};
    buf_append(&gist, why, brief ? strcspn(why, ";") : strlen(why));
    buf_text(text, what);
    utf8_put_clean(text, compare_name(comparison, pair));
    buf_text(text, " (");
    if (gist.data)
        utf8_put_clean(text, gist.data);
    buf_text(text, ")");
    text->failed = text->failed || gist.failed;
    buf_free(&gist);
}

/* ---- Why some were not judged ---------------------------------------------------------------- */

struct reason {
    const char *why;
    uint64_t count;
    size_t first; /* row */
};

struct reasons {
    struct reason *list;
    size_t count;
    struct map index; /* to number + 1 */
};

/* The most frequent first, then the first. */
static int compare_reasons(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static bool list_reasons(struct reasons *reasons, const struct comparison *comparison, uint64_t n)
{
    reasons->list = calloc(n + 1, sizeof *reasons->list);
    for (size_t i = 0; reasons->list && i < comparison->matching.count; i++) {
        if (compare_opinion_trouble(comparison, i) != PLUMB_TROUBLE_NO_OPINION)
            continue;
        const char *why = comparison->opinions[i].why;
        uint64_t *place = map_put(&reasons->index, why, strlen(why), NULL);
        if (!place)
            return false;
        if (!*place) {
            reasons->list[reasons->count] = (struct reason){.why = why, .first = i};
            *place = ++reasons->count;
        }
        reasons->list[*place - 1].count++;
    }
    return reasons->list != NULL;
}

static enum plumb_code put_reasons(struct buf *text, const struct comparison *comparison,
                                   uint64_t n, struct plumb_error *err)
{
    struct reasons reasons = {0};
    const bool listed = list_reasons(&reasons, comparison, n);
    if (listed)
        qsort(reasons.list, reasons.count, sizeof *reasons.list, compare_reasons);
    for (size_t k = 0; listed && k < reasons.count && k < MOST_REASONS; k++) {
        buf_printf(text, "%s%" PRIu64 ": ", k ? "; " : " (", reasons.list[k].count);
        utf8_put_clean(text, reasons.list[k].why);
    }
    if (reasons.count > MOST_REASONS)
        buf_printf(text, "; and %zu more reasons", reasons.count - MOST_REASONS);
    buf_text(text, reasons.count ? ")" : "");
    free(reasons.list);
    map_free(&reasons.index);
    return listed ? PLUMB_OK : plumb_no_memory(err);
}

/* ---- The line -------------------------------------------------------------------------------- */

static void count_words(struct plumb_comparison *out, const struct comparison *comparison,
                        size_t *inputs)
{
    for (size_t i = 0; i < comparison->matching.count; i++) {
        const struct opinion *opinion = &comparison->opinions[i];
        *inputs += opinion->kind == OPINION_NONE;
        if (opinion->kind != OPINION_GIVEN)
            continue;
        out->words[opinion->word]++;
        if (opinion->word == PLUMB_WORD_FAULT &&
            (out->first_fault_row == PLUMB_NO_RECORD ||
             comparison->matching.pairs[i].target <
                 comparison->matching.pairs[out->first_fault_row].target))
            out->first_fault_row = i; /* rows without a partner stand at the end, calls do not */
    }
}

enum plumb_code compare_opinion_lines(struct plumb_comparison *out, struct closing_parts *parts,
                                      const struct comparison *comparison, struct plumb_error *err)
{
    static const enum plumb_word order[] = {
        PLUMB_WORD_FAULT, PLUMB_WORD_CHEAPER,  PLUMB_WORD_INHERITED,
        PLUMB_WORD_TIE,   PLUMB_WORD_ROUNDING, PLUMB_WORD_SAME,
    };
    struct buf *text = &parts->words;
    uint64_t judged = 0;
    size_t inputs = 0;
    out->first_fault_row = PLUMB_NO_RECORD;
    if (!comparison->opinions)
        return PLUMB_OK;
    count_words(out, comparison, &inputs);
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        judged += out->words[order[k]];
    buf_printf(text, "Second opinion: %" PRIu64 " result%s judged", judged, judged == 1 ? "" : "s");
    const char *gap = ": ";
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        if (out->words[order[k]]) {
            buf_printf(text, "%s%" PRIu64 " %s", gap, out->words[order[k]],
                       plumb_word_text(order[k]));
            gap = ", ";
        }
    const uint64_t unjudged = out->words[PLUMB_WORD_NOT_JUDGED];
    buf_printf(text, "; %" PRIu64 " not judged", unjudged);
    const enum plumb_code code = put_reasons(text, comparison, unjudged, err);
    if (inputs)
        buf_printf(text, "; %zu rows are inputs or None", inputs);
    compare_put_opinion(&parts->fault, "; first fault: ", comparison, out->first_fault_row, false);
    buf_text(&parts->fault, "\n");
    return code;
}
