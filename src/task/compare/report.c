/* A comparison as a report: the answer, what was found how often, and the table. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "task/compare/pages.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    enum plumb_mood mood;
} troubles[] = {
    [PLUMB_TROUBLE_FAULT] = {"fault", PLUMB_MOOD_BAD},
    [PLUMB_TROUBLE_NONFINITE] = {"NaN or infinity on one side", PLUMB_MOOD_BAD},
    [PLUMB_TROUBLE_LIMIT] = {"beyond a limit", PLUMB_MOOD_BAD},
    [PLUMB_TROUBLE_SHAPE] = {"shapes differ", PLUMB_MOOD_BAD},
    [PLUMB_TROUBLE_TYPE] = {"types of different kinds", PLUMB_MOOD_BAD},
    [PLUMB_TROUBLE_UNREADABLE] = {"unreadable", PLUMB_MOOD_UNSEEN},
    [PLUMB_TROUBLE_INCOMPARABLE] = {"nothing to compare by", PLUMB_MOOD_UNSEEN},
    [PLUMB_TROUBLE_ONLY_TARGET] = {"only in the target", PLUMB_MOOD_UNSEEN},
    [PLUMB_TROUBLE_ONLY_GOLDEN] = {"only in the golden run", PLUMB_MOOD_UNSEEN},
    [PLUMB_TROUBLE_UNJUDGED] = {"not judged", PLUMB_MOOD_UNSEEN},
    [PLUMB_TROUBLE_CHEAPER] = {"cheaper arithmetic", PLUMB_MOOD_DOUBT},
    [PLUMB_TROUBLE_SUSPICIOUS] = {"suspicious", PLUMB_MOOD_DOUBT},
    [PLUMB_TROUBLE_NO_OPINION] = {"without a second opinion", PLUMB_MOOD_UNSEEN},
    [PLUMB_TROUBLE_ALONE] = {"needs no counterpart", PLUMB_MOOD_GOOD},
    [PLUMB_TROUBLE_NONE] = {"passed", PLUMB_MOOD_GOOD},
};

enum plumb_mood compare_mood(enum plumb_trouble trouble)
{
    return troubles[trouble].mood;
}

const char *compare_mood_word(enum plumb_trouble trouble)
{
    return troubles[trouble].word;
}

/* The worst kind of trouble that there is. */
static enum plumb_trouble worst_of(const struct plumb_comparison *is)
{
    enum plumb_trouble worst = PLUMB_TROUBLE_NONE;
    for (int mood = PLUMB_MOOD_BAD; mood < PLUMB_MOOD_GOOD && worst == PLUMB_TROUBLE_NONE; mood++)
        for (int kind = PLUMB_TROUBLES; kind--;)
            if (is->troubles[kind].count && (int)troubles[kind].mood == mood)
                worst = (enum plumb_trouble)kind;
    return worst;
}

/* Rows that fail: what has no counterpart or cannot be read is not among them. */
static size_t count_failed(const struct plumb_comparison *is)
{
    size_t failed = 0;
    for (int kind = 0; kind < PLUMB_TROUBLES; kind++)
        failed += troubles[kind].mood == PLUMB_MOOD_BAD ? is->troubles[kind].count : 0;
    return failed;
}

/* "3 of 120 tensors fail". Nothing is said of what was not looked at. */
static void put_sentence(struct buf *out, const struct plumb_comparison *is,
                         enum plumb_trouble worst)
{
    const size_t rows = plumb_table_rows(is->table), failed = count_failed(is);
    const bool one = is->compared == 1;
    if (!is->compared) {
        buf_text(out, "Nothing could be compared.");
        return;
    }
    if (worst == PLUMB_TROUBLE_FAULT)
        buf_printf(out, "%zu result%s wrong by %s own call", is->troubles[worst].count,
                   is->troubles[worst].count == 1 ? " is" : "s are",
                   is->troubles[worst].count == 1 ? "its" : "their");
    else if (failed)
        buf_printf(out, "%zu of %zu tensors fail%s", failed, rows, failed == 1 ? "s" : "");
    else if (is->compared == rows)
        buf_printf(out, one ? "The %zu tensor agrees" : "All %zu tensors agree", rows);
    else
        buf_printf(out, "The %zu tensor%s that could be compared agree%s, of %zu", is->compared,
                   one ? "" : "s", one ? "s" : "", rows);
    buf_text(out, ".");
}

/* "name (reason)" as a name, and the reason as a line. */
static void put_place(struct buf *name, struct buf *reason, const struct plumb_trouble_rows *rows)
{
    const char *text = rows && rows->text ? rows->text : "";
    const size_t size = strlen(text);
    const char *cut = strstr(text, " (");
    if (!cut || text[size - 1] != ')') {
        buf_text(name, text);
        return;
    }
    buf_append(name, text, (size_t)(cut - text));
    buf_append(reason, cut + 2, size - (size_t)(cut - text) - 3);
    buf_text(reason, "\n");
}

static void tell_answer(struct plumb_report *report, const struct plumb_comparison *is)
{
    const enum plumb_trouble worst = worst_of(is);
    const struct plumb_trouble_rows *rows = worst < PLUMB_TROUBLES ? &is->troubles[worst] : NULL;
    struct buf sentence = {0}, where = {0}, sure = {0};
    put_sentence(&sentence, is, worst);
    put_place(&where, &sure, rows);
    buf_text(&sure, is->counts ? is->counts : "");
    const bool whole = is->compared == plumb_table_rows(is->table);
    plumb_report_answer(report, &(struct plumb_report_answer){
                                    .mood = !is->compared ? PLUMB_MOOD_UNSEEN
                                            : rows && troubles[worst].mood != PLUMB_MOOD_GOOD
                                                ? troubles[worst].mood
                                            : whole ? PLUMB_MOOD_GOOD
                                                    : PLUMB_MOOD_UNSEEN,
                                    .sentence = sentence.data ? sentence.data : "",
                                    .where = where.data ? where.data : "",
                                    .row = rows ? (int64_t)rows->first : -1,
                                    .sure = sure.data ? sure.data : ""});
    buf_free(&sentence);
    buf_free(&where);
    buf_free(&sure);
}

/* A note for each line. */
static void tell_notes(struct plumb_report *report, const char *text)
{
    for (const char *end; text && *text; text = end + (*end != '\0')) {
        end = strchrnul(text, '\n');
        char *line = strndup(text, (size_t)(end - text));
        if (line && *line)
            plumb_report_note(report, line);
        free(line);
    }
}

void plumb_comparison_report(struct plumb_report *report, const struct plumb_comparison *is)
{
    const size_t rows = plumb_table_rows(is->table);
    unsigned char *moods = is->outcomes ? malloc(rows + 1) : NULL;
    size_t counts[PLUMB_TROUBLES + 1] = {0};
    for (size_t i = 0; i < rows && is->outcomes; i++) {
        counts[is->outcomes[i].trouble]++;
        if (moods)
            moods[i] = (unsigned char)compare_mood(is->outcomes[i].trouble);
    }
    tell_answer(report, is);
    for (int kind = 0; kind <= PLUMB_TROUBLES; kind++)
        if (counts[kind])
            plumb_report_count(report, troubles[kind].word, counts[kind], troubles[kind].mood);
    tell_notes(report, is->advice);
    plumb_report_table(report, "comparison", is->table, moods, is->pages);
    free(moods);
}
