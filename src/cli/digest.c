/* Choosing the rows of a digest, and the lines between its tables. */
#include "cli/digest.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "cli/digest_table.h"
#include "cli/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FEW_ROWS = 40, ROWS_AROUND = 3, WORST_ROWS = 10, INDENT = 4, NARROW = 30 };

static const struct {
    const char *what, *option;
} kinds[] = {
    [PLUMB_TROUBLE_FAULT] = {"at fault: the call itself is wrong", "--only fail"},
    [PLUMB_TROUBLE_NONFINITE] = {"with NaN or infinity on one side only", "--only fail"},
    [PLUMB_TROUBLE_LIMIT] = {"beyond the limits", "--only fail"},
    [PLUMB_TROUBLE_SHAPE] = {"of different shapes", "--only fail"},
    [PLUMB_TROUBLE_TYPE] = {"of different types", "--only fail"},
    [PLUMB_TROUBLE_UNREADABLE] = {"unreadable", "--only fail"},
    [PLUMB_TROUBLE_INCOMPARABLE] = {"not comparable", "--only fail"},
    [PLUMB_TROUBLE_ONLY_TARGET] = {"in the target run only", "--only fail"},
    [PLUMB_TROUBLE_ONLY_GOLDEN] = {"in the golden run only", "--only fail"},
    [PLUMB_TROUBLE_UNJUDGED] = {"suspicious and not judged", "--only suspicious"},
    [PLUMB_TROUBLE_CHEAPER] = {"of cheaper arithmetic", "--only suspicious"},
    [PLUMB_TROUBLE_SUSPICIOUS] = {"suspicious", "--only suspicious"},
    [PLUMB_TROUBLE_NO_OPINION] = {"without a second opinion", "--only suspicious"},
    [PLUMB_TROUBLE_ALONE] = {"without a counterpart", "--only suspicious"},
};
_Static_assert(sizeof kinds / sizeof *kinds == PLUMB_TROUBLES, "words for each kind");

bool digest_suits(const struct plumb_comparison *comparison)
{
    return comparison->outcomes && plumb_table_rows(comparison->table) >= FEW_ROWS &&
           isatty(STDOUT_FILENO);
}

/* How much of text goes on a line of so many columns: whole words, or what fits of a long one. */
static size_t line_of(const char *text, size_t width)
{
    size_t at = 0, words = 0, columns = 0;
    while (text[at] && text[at] != '\n') {
        const struct utf8_shown c = utf8_show(text + at);
        if (text[at] == ' ')
            words = at;
        columns += c.columns;
        if (columns > width && at)
            return words ? words : at;
        at += c.taken;
    }
    return at;
}

static void put_safely(struct buf *out, const char *text, size_t bytes)
{
    for (const char *end = text + bytes; text < end;) {
        const struct utf8_shown c = utf8_show(text);
        buf_append(out, c.bytes, c.size);
        text += c.taken;
    }
}

/* Lines for people, folded to the terminal; what does not fit is indented below. */
static void put_folded(struct buf *out, const char *text)
{
    size_t width = terminal_width(STDOUT_FILENO), indent = width < NARROW ? 0 : INDENT;
    bool fresh = true;
    while (*text) {
        size_t margin = fresh ? 0 : indent;
        size_t bytes = line_of(text, width ? width - margin : SIZE_MAX);
        buf_repeat(out, ' ', margin);
        put_safely(out, text, bytes);
        buf_text(out, "\n");
        text += bytes;
        fresh = *text == '\n';
        text += fresh || *text == ' ';
    }
}

static enum plumb_code print_lines(const struct buf *lines, struct plumb_error *err)
{
    struct buf folded = {0};
    if (lines->data)
        put_folded(&folded, lines->data);
    bool failed = lines->failed || folded.failed;
    if (!failed && folded.data)
        fputs(folded.data, stdout);
    buf_free(&folded);
    return failed ? plumb_no_memory(err) : PLUMB_OK;
}

/* A heading, and the rows that it is about. */
static enum plumb_code show_rows(const struct plumb_comparison *comparison, const char *heading,
                                 const size_t *rows, size_t count, bool distances,
                                 const struct cli_view *view, struct plumb_error *err)
{
    const struct digest_look look = {.width = view->wide ? 0 : terminal_width(STDOUT_FILENO),
                                     .distances = distances};
    struct plumb_table *some = digest_table(comparison, rows, count, &look);
    struct buf lines = {0};
    buf_printf(&lines, "\n%s\n", heading);
    enum plumb_code code = some ? print_lines(&lines, err) : plumb_no_memory(err);
    if (!code)
        code = cli_show(some, view, err);
    buf_free(&lines);
    plumb_table_free(some);
    return code;
}

/* The first row with one of these troubles; NULL when there is none. */
static const struct plumb_trouble_rows *find_first(const struct plumb_comparison *comparison,
                                                   enum plumb_trouble from, enum plumb_trouble to)
{
    const struct plumb_trouble_rows *first = NULL;
    for (enum plumb_trouble kind = from; kind < to; kind++) {
        const struct plumb_trouble_rows *rows = &comparison->troubles[kind];
        if (rows->count && (!first || rows->first < first->first))
            first = rows;
    }
    return first;
}

/* The row to begin with, and the words for it; NULL when nothing is odd. */
static const struct plumb_trouble_rows *choose_first(const struct plumb_comparison *comparison,
                                                     const char **what)
{
    const bool expected = comparison->verdict == PLUMB_BY_EXPECTED;
    const struct plumb_trouble_rows *first =
        find_first(comparison, PLUMB_TROUBLE_FAULT, PLUMB_TROUBLE_FAULT + 1);
    *what = "First fault, with the rows around it:";
    if (!first && !expected) {
        first = find_first(comparison, PLUMB_TROUBLE_FAULT + 1, PLUMB_TROUBLE_UNJUDGED);
        *what = "First failure, with the rows around it:";
    }
    if (!first) {
        first = find_first(comparison, PLUMB_TROUBLE_UNJUDGED, PLUMB_TROUBLE_NO_OPINION);
        *what = expected ? "No fault. First suspicious row, with the rows around it:"
                         : "Nothing fails. First suspicious row, with the rows around it:";
    }
    return first;
}

static enum plumb_code show_first(const struct plumb_comparison *comparison,
                                  const struct cli_view *view, struct plumb_error *err)
{
    const char *what;
    const struct plumb_trouble_rows *first = choose_first(comparison, &what);
    if (!first)
        return PLUMB_OK;
    size_t rows[2 * ROWS_AROUND + 1], count = 0, all = plumb_table_rows(comparison->table);
    size_t from = first->first < ROWS_AROUND ? 0 : first->first - ROWS_AROUND;
    for (size_t row = from; row <= first->first + ROWS_AROUND && row < all; row++)
        rows[count++] = row;
    struct buf heading = {0};
    buf_printf(&heading, "%s %s", what, first->text);
    enum plumb_code code = heading.failed
                               ? plumb_no_memory(err)
                               : show_rows(comparison, heading.data, rows, count, false, view, err);
    buf_free(&heading);
    return code;
}

/* What was not judged need not be bad. */
static enum plumb_trouble rank_of(enum plumb_trouble trouble)
{
    return trouble == PLUMB_TROUBLE_NO_OPINION ? PLUMB_TROUBLE_NONE : trouble;
}

/* By the kind of trouble, then by the distance; NaN is the worst there is. */
static bool is_worse(const struct plumb_outcome *a, const struct plumb_outcome *b)
{
    const enum plumb_trouble x = rank_of(a->trouble), y = rank_of(b->trouble);
    if (x != y)
        return x < y;
    return isnan(a->distance) ? !isnan(b->distance) : a->distance > b->distance;
}

/* Of equal ones the first in the table; rows without a difference are left out. */
static size_t find_worst(size_t worst[WORST_ROWS], const struct plumb_comparison *comparison)
{
    const struct plumb_outcome *outcomes = comparison->outcomes;
    size_t count = 0;
    for (size_t row = 0; row < plumb_table_rows(comparison->table); row++) {
        enum plumb_trouble trouble = outcomes[row].trouble;
        bool dull = rank_of(trouble) == PLUMB_TROUBLE_NONE && outcomes[row].distance == 0;
        if (dull || trouble == PLUMB_TROUBLE_ALONE)
            continue;
        size_t place = count;
        while (place && is_worse(&outcomes[row], &outcomes[worst[place - 1]]))
            place--;
        if (place == WORST_ROWS)
            continue;
        count += count < WORST_ROWS;
        memmove(&worst[place + 1], &worst[place], (count - place - 1) * sizeof *worst);
        worst[place] = row;
    }
    return count;
}

static enum plumb_code show_worst(const struct plumb_comparison *comparison,
                                  const struct cli_view *view, struct plumb_error *err)
{
    size_t worst[WORST_ROWS], count = find_worst(worst, comparison);
    if (!count)
        return PLUMB_OK;
    bool troubled = rank_of(comparison->outcomes[worst[0]].trouble) != PLUMB_TROUBLE_NONE;
    char heading[100];
    snprintf(heading, sizeof heading,
             troubled ? "The worst %zu, by kind and relative distance:"
                      : "The %zu with the largest relative distance:",
             count);
    return show_rows(comparison, heading, worst, count, true, view, err);
}

static enum plumb_code show_kinds(const struct plumb_comparison *comparison,
                                  struct plumb_error *err)
{
    struct buf lines = {0};
    buf_text(&lines, "\n");
    for (int kind = 0; kind < PLUMB_TROUBLES; kind++) {
        const struct plumb_trouble_rows *rows = &comparison->troubles[kind];
        if (kind == PLUMB_TROUBLE_FAULT && rows->count) /* the first stands above */
            buf_printf(&lines, "%zu %s (%s)\n", rows->count, kinds[kind].what, kinds[kind].option);
        else if (rows->count)
            buf_printf(&lines, "%zu %s (%s); first: %s\n", rows->count, kinds[kind].what,
                       kinds[kind].option, rows->text);
    }
    buf_text(&lines, comparison->advice);
    buf_printf(&lines, "--all shows all %zu rows and columns; a file has them, too: ",
               plumb_table_rows(comparison->table));
    buf_text(&lines, "plumb compare TARGET GOLDEN result.csv\n");
    enum plumb_code code = print_lines(&lines, err);
    buf_free(&lines);
    return code;
}

enum plumb_code digest_show_table(const struct plumb_comparison *comparison,
                                  const struct cli_view *view, struct plumb_error *err)
{
    const struct digest_look look = {.width = terminal_width(STDOUT_FILENO), .all = true};
    if (!comparison->spare || view->format != PLUMB_TABLE_BOX || view->wide || !look.width ||
        !isatty(STDOUT_FILENO))
        return cli_show(comparison->table, view, err);
    const size_t count = plumb_table_rows(comparison->table);
    size_t *rows = calloc(count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = i;
    struct plumb_table *some = rows ? digest_table(comparison, rows, count, &look) : NULL;
    enum plumb_code code = some ? cli_show(some, view, err) : plumb_no_memory(err);
    const size_t left =
        some ? plumb_table_columns(comparison->table) - plumb_table_columns(some) : 0;
    if (!code && left) {
        struct buf lines = {0};
        buf_printf(&lines, "%zu more column%s with --wide\n", left, left == 1 ? "" : "s");
        code = print_lines(&lines, err);
        buf_free(&lines);
    }
    plumb_table_free(some);
    free(rows);
    return code;
}

enum plumb_code digest_show(const struct plumb_comparison *comparison, const struct cli_view *view,
                            struct plumb_error *err)
{
    struct buf counts = {0};
    buf_text(&counts, comparison->counts);
    enum plumb_code code = print_lines(&counts, err);
    buf_free(&counts);
    if (!code)
        code = show_first(comparison, view, err);
    if (!code)
        code = show_worst(comparison, view, err);
    return code ? code : show_kinds(comparison, err);
}
