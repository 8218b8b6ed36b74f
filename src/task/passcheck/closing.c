/* What is to be said of a whole check: counts, and the lines below the table. */
#include "base/buf.h"
#include "task/passcheck/rows.h"

enum plumb_severity passcheck_row_severity(const struct plumb_passcheck_rows *rows,
                                           const struct passcheck_row *row)
{
    enum plumb_severity severity = PLUMB_NORMAL;
    if (row->why && row->word == PLUMB_WORD_FAULT)
        severity = PLUMB_FAILED;
    else if (row->why && row->word == PLUMB_WORD_CHEAPER && !row->allowed)
        severity = PLUMB_SUSPICIOUS;
    if (rows->verdict == PLUMB_BY_EXPECTED)
        return severity;
    return row->severity > severity ? row->severity : severity;
}

/* Later iterations start from other parameters: their first node would be misleading. */
static void note_node(struct plumb_passcheck *check, const struct passcheck_row *row)
{
    if (row->kind == PLUMB_PASSCHECK_NODE && row->iteration == check->first_iteration &&
        !check->first_node)
        check->first_node = row->name;
}

static void count_rows(struct plumb_passcheck *check)
{
    const struct plumb_passcheck_rows *rows = check->at;
    const bool expected = rows->verdict == PLUMB_BY_EXPECTED;
    check->compared = rows->n;
    check->first_iteration = -1;
    for (size_t k = 0; k < rows->n; k++) {
        const struct passcheck_row *row = &rows->row[k];
        if (row->why && row->iteration == 0)
            check->words[row->word]++;
        else if (row->why)
            check->later++;
        check->failed += row->severity == PLUMB_FAILED;
        if (passcheck_row_severity(rows, row) != PLUMB_FAILED)
            continue;
        if (check->first_iteration < 0)
            check->first_iteration = row->iteration;
        note_node(check, row);
    }
    size_t judged = 0;
    for (unsigned w = 0; w < PLUMB_WORDS; w++)
        judged += w == PLUMB_WORD_NOT_JUDGED ? 0 : check->words[w];
    check->bad = (!expected && check->failed) ||
                 (rows->verdict && (check->words[PLUMB_WORD_FAULT] || !judged));
}

static void say_rules(const struct plumb_passcheck *check,
                      const struct plumb_passcheck_options *options, struct buf *text)
{
    const struct passcheck_row *first = NULL;
    const unsigned n = options->iterations;
    for (size_t k = 0; k < check->at->n && !first; k++)
        if (check->at->row[k].severity == PLUMB_FAILED)
            first = &check->at->row[k];
    if (first)
        buf_printf(text,
                   "%s: %zu of %zu comparisons failed in %u iteration%s; first: %s %s "
                   "in iteration %u: %s\n",
                   same_word(check->failed), check->failed, check->compared, n, n == 1 ? "" : "s",
                   passcheck_kind_name(first->kind), first->name, first->iteration, first->reason);
    else
        buf_printf(text, "%s: %zu comparison%s in %u iteration%s, all within %g\n",
                   same_word(check->failed), check->compared, check->compared == 1 ? "" : "s", n,
                   n == 1 ? "" : "s", options->precision);
}

static const struct passcheck_row *first_with(const struct plumb_passcheck *check,
                                              enum plumb_word word)
{
    for (size_t k = 0; k < check->at->n; k++)
        if (check->at->row[k].why && check->at->row[k].iteration == 0 &&
            check->at->row[k].word == word)
            return &check->at->row[k];
    return NULL;
}

static void say_first(const struct plumb_passcheck *check, enum plumb_word word, const char *lead,
                      struct buf *text)
{
    const struct passcheck_row *row = first_with(check, word);
    if (row)
        buf_printf(text, "%s: %s %s: %s\n", lead, passcheck_kind_name(row->kind), row->name,
                   row->why);
}

/* "NO FAULT: 12 results judged: 4 same, 8 rounding; 2 not judged". */
static void say_opinions(const struct plumb_passcheck *check, struct buf *text)
{
    const size_t *words = check->words;
    size_t judged = 0;
    for (unsigned w = 0; w < PLUMB_WORDS; w++)
        judged += w == PLUMB_WORD_NOT_JUDGED ? 0 : words[w];
    buf_printf(text, "%s: %zu result%s judged",
               words[PLUMB_WORD_FAULT] ? "FAULT"
               : judged                ? "NO FAULT"
                                       : "NOT JUDGED",
               judged, judged == 1 ? "" : "s");
    const char *between = ": ";
    for (unsigned w = 0; w < PLUMB_WORDS; w++)
        if (words[w] && w != PLUMB_WORD_NOT_JUDGED) {
            buf_printf(text, "%s%zu %s", between, words[w], plumb_word_text((enum plumb_word)w));
            between = ", ";
        }
    if (words[PLUMB_WORD_NOT_JUDGED])
        buf_printf(text, "; %zu not judged", words[PLUMB_WORD_NOT_JUDGED]);
    if (check->later)
        buf_printf(text, "; %zu of later iterations not judged", check->later);
    buf_printf(text, "\n");
    say_first(check, PLUMB_WORD_FAULT, "first fault", text);
    say_first(check, PLUMB_WORD_CHEAPER, "first with cheaper arithmetic", text);
    say_first(check, PLUMB_WORD_NOT_JUDGED, "first not judged", text);
}

enum plumb_code passcheck_close(struct plumb_passcheck *check,
                                const struct plumb_passcheck_options *options, const char *notes,
                                struct plumb_error *err)
{
    struct buf text = {0};
    count_rows(check);
    if (options->verdict != PLUMB_BY_EXPECTED)
        say_rules(check, options, &text);
    if (options->verdict != PLUMB_BY_RULES)
        say_opinions(check, &text);
    if (check->first_node)
        buf_printf(&text, "first node that %s: %s\n",
                   options->verdict == PLUMB_BY_EXPECTED ? "is a fault" : "differs",
                   check->first_node);
    buf_printf(&text, "%s", notes);
    check->closing = text.failed ? NULL : arena_copy(&check->at->arena, text.data, text.size);
    buf_free(&text);
    return check->closing ? PLUMB_OK : plumb_no_memory(err);
}
