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

enum plumb_mood plumb_trouble_mood(enum plumb_trouble trouble)
{
    return troubles[trouble].mood;
}

const char *compare_mood_word(enum plumb_trouble trouble)
{
    return troubles[trouble].word;
}

/* What several tables came to together. */
struct total {
    const struct plumb_comparison *const *parts;
    const char *const *names;
    size_t count, rows, compared, bad;
    size_t idle; /* tables of which nothing could be compared */
    struct plumb_trouble_rows troubles[PLUMB_TROUBLES];
    size_t part[PLUMB_TROUBLES]; /* which table has the first */
};

static void add_up(struct total *total)
{
    for (size_t k = 0; k < total->count; k++) {
        const struct plumb_comparison *is = total->parts[k];
        total->rows += plumb_table_rows(is->table);
        total->compared += is->compared;
        total->bad += is->bad;
        total->idle += !is->compared;
        for (int kind = 0; kind < PLUMB_TROUBLES; kind++) {
            struct plumb_trouble_rows *sum = &total->troubles[kind];
            const size_t count = sum->count + is->troubles[kind].count;
            if (!sum->count && is->troubles[kind].count) {
                *sum = is->troubles[kind];
                total->part[kind] = k;
            }
            sum->count = count;
        }
    }
}

/* The worst kind of trouble that there is. */
static enum plumb_trouble worst_of(const struct total *total)
{
    enum plumb_trouble worst = PLUMB_TROUBLE_NONE;
    for (int mood = PLUMB_MOOD_BAD; mood < PLUMB_MOOD_GOOD && worst == PLUMB_TROUBLE_NONE; mood++)
        for (int kind = PLUMB_TROUBLES; kind--;)
            if (total->troubles[kind].count && (int)troubles[kind].mood == mood)
                worst = (enum plumb_trouble)kind;
    return worst;
}

/* Rows that fail: what has no counterpart or cannot be read is not among them. */
static size_t count_failed(const struct total *total)
{
    size_t failed = 0;
    for (int kind = 0; kind < PLUMB_TROUBLES; kind++)
        failed += troubles[kind].mood == PLUMB_MOOD_BAD ? total->troubles[kind].count : 0;
    return failed;
}

/* Where nothing fails: what agrees, and what of it is odd all the same. */
static void put_agreement(struct buf *out, const struct total *total)
{
    const size_t unjudged = total->troubles[PLUMB_TROUBLE_UNJUDGED].count;
    const size_t odd = total->troubles[PLUMB_TROUBLE_SUSPICIOUS].count;
    const size_t agree = total->compared > unjudged ? total->compared - unjudged : 0;
    if (!agree)
        buf_text(out, "Nothing could be judged");
    else if (agree < total->rows)
        buf_printf(out, "The %zu tensors that could be judged agree, of %zu", agree, total->rows);
    else if (agree == 1)
        buf_text(out, "The only tensor agrees");
    else
        buf_printf(out, "All %zu tensors agree", agree);
    if (odd && total->rows == 1)
        buf_text(out, ", and is suspicious");
    else if (odd)
        buf_printf(out, "; %zu %s suspicious", odd, odd == 1 ? "is" : "are");
}

/* "3 of 120 tensors fail". Nothing is said of what was not looked at. */
static void put_sentence(struct buf *out, const struct total *total, enum plumb_trouble worst)
{
    const size_t failed = count_failed(total);
    if (!total->compared && !failed) {
        buf_text(out, "Nothing could be compared.");
        return;
    }
    if (worst == PLUMB_TROUBLE_FAULT)
        buf_printf(out, "%zu result%s wrong by %s own call", total->troubles[worst].count,
                   total->troubles[worst].count == 1 ? " is" : "s are",
                   total->troubles[worst].count == 1 ? "its" : "their");
    else if (failed && total->rows == 1)
        buf_text(out, "The only tensor fails");
    else if (failed)
        buf_printf(out, "%zu of %zu tensors fail%s", failed, total->rows, failed == 1 ? "s" : "");
    else if (total->bad)
        buf_printf(out, "%zu of %zu tensors could not be compared", total->bad, total->rows);
    else
        put_agreement(out, total);
    if (total->idle)
        buf_printf(out, "; in %zu of %zu tables nothing could be compared", total->idle,
                   total->count);
    buf_text(out, ".");
}

/* "name (reason)" as a name, and the reason as a line. */
static void put_place(struct buf *name, struct buf *reason, const char *text)
{
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

/* What was found where, and the counts of the closing lines. */
static void put_evidence(struct buf *where, struct buf *sure, const struct total *total,
                         enum plumb_trouble worst)
{
    const bool many = total->count > 1;
    if (worst < PLUMB_TROUBLES) {
        const char *text = total->troubles[worst].text;
        if (many)
            buf_printf(where, "%s: ", total->names[total->part[worst]]);
        put_place(where, sure, text ? text : "");
    }
    for (size_t k = 0; k < total->count; k++)
        buf_printf(sure, "%s%s%s%s", k ? "\n" : "", many ? total->names[k] : "", many ? ": " : "",
                   total->parts[k]->counts ? total->parts[k]->counts : "");
}

static void tell_answer(struct plumb_report *report, const struct total *total)
{
    const enum plumb_trouble worst = worst_of(total);
    const bool trouble = worst < PLUMB_TROUBLES;
    struct buf sentence = {0}, where = {0}, sure = {0};
    put_sentence(&sentence, total, worst);
    put_evidence(&where, &sure, total, worst);
    const bool whole = total->compared == total->rows;
    plumb_report_answer(
        report,
        &(struct plumb_report_answer){
            .mood = !total->compared && !count_failed(total)             ? PLUMB_MOOD_UNSEEN
                    : total->bad                                         ? PLUMB_MOOD_BAD
                    : trouble && troubles[worst].mood != PLUMB_MOOD_GOOD ? troubles[worst].mood
                    : whole                                              ? PLUMB_MOOD_GOOD
                                                                         : PLUMB_MOOD_UNSEEN,
            .sentence = sentence.data ? sentence.data : "",
            .where = where.data ? where.data : "",
            .row = trouble && !total->part[worst] ? (int64_t)total->troubles[worst].first : -1,
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

/* Rows by what keeps them from passing; where nobody noted that, by what was counted. */
static void count_rows(const struct plumb_comparison *is, size_t counts[PLUMB_TROUBLES + 1],
                       unsigned char *moods)
{
    const size_t rows = plumb_table_rows(is->table);
    for (size_t i = 0; i < rows && is->outcomes; i++) {
        counts[is->outcomes[i].trouble]++;
        moods[i] = (unsigned char)plumb_trouble_mood(is->outcomes[i].trouble);
    }
    if (is->outcomes)
        return;
    for (size_t i = 0; i < rows; i++) {
        const enum plumb_severity severity = plumb_table_severity(is->table, i);
        moods[i] = severity == PLUMB_FAILED       ? PLUMB_MOOD_BAD
                   : severity == PLUMB_SUSPICIOUS ? PLUMB_MOOD_DOUBT
                                                  : PLUMB_MOOD_GOOD;
    }
    counts[PLUMB_TROUBLE_LIMIT] += is->failed;
    counts[PLUMB_TROUBLE_UNREADABLE] += is->unreadable;
    counts[PLUMB_TROUBLE_ONLY_TARGET] += is->unmatched;
    counts[PLUMB_TROUBLE_UNJUDGED] += is->unjudged;
    counts[PLUMB_TROUBLE_SUSPICIOUS] += is->suspicious;
    counts[PLUMB_TROUBLE_NONE] += is->passed - is->suspicious;
}

void plumb_comparisons_report(struct plumb_report *report,
                              const struct plumb_comparison *const *parts, const char *const *names,
                              size_t count)
{
    size_t counts[PLUMB_TROUBLES + 1] = {0};
    struct total total = {.parts = parts, .names = names, .count = count};
    add_up(&total);
    tell_answer(report, &total);
    for (size_t k = 0; k < count; k++) {
        unsigned char *moods = malloc(plumb_table_rows(parts[k]->table) + 1);
        if (moods)
            count_rows(parts[k], counts, moods);
        tell_notes(report, parts[k]->advice);
        plumb_report_table(report, names[k], parts[k]->full ? parts[k]->full : parts[k]->table,
                           moods, parts[k]->pages);
        free(moods);
    }
    for (int kind = 0; kind <= PLUMB_TROUBLES; kind++)
        if (counts[kind])
            plumb_report_count(report, troubles[kind].word, counts[kind], troubles[kind].mood);
}

void plumb_comparison_report(struct plumb_report *report, const struct plumb_comparison *is)
{
    plumb_comparisons_report(report, &is, (const char *const[]){"comparison"}, 1);
}
