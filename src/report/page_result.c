/* Tables of results whose rows say in words what became of them. */
#define _GNU_SOURCE
#include "report/page.h"

#include "base/map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    enum plumb_mood mood;
} words[] = {
    {"fail", PLUMB_MOOD_BAD},
    {"failed", PLUMB_MOOD_BAD},
    {"error", PLUMB_MOOD_BAD},
    {"fault", PLUMB_MOOD_BAD},
    {"no", PLUMB_MOOD_BAD},
    {"different", PLUMB_MOOD_BAD},
    {"warning", PLUMB_MOOD_DOUBT},
    {"suspicious", PLUMB_MOOD_DOUBT},
    {"cheaper arithmetic", PLUMB_MOOD_DOUBT},
    {"skip", PLUMB_MOOD_UNSEEN},
    {"skipped", PLUMB_MOOD_UNSEEN},
    {"not judged", PLUMB_MOOD_UNSEEN},
    {"unmatched", PLUMB_MOOD_UNSEEN},
    {"pass", PLUMB_MOOD_GOOD},
    {"passed", PLUMB_MOOD_GOOD},
    {"yes", PLUMB_MOOD_GOOD},
    {"equal", PLUMB_MOOD_GOOD},
    {"same", PLUMB_MOOD_GOOD},
    {"rounding", PLUMB_MOOD_GOOD},
    {"tie", PLUMB_MOOD_GOOD},
    {"inherited", PLUMB_MOOD_GOOD},
};

static bool find_word(const char *text, enum plumb_mood *mood)
{
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcasecmp(text, words[k].word) == 0) {
            *mood = words[k].mood;
            return true;
        }
    return false;
}

/* Columns that are about the row as a whole; others hold texts that may be such words by chance. */
static bool tells(const char *title)
{
    static const char *const parts[] = {"Result",  "Status",  "Success", "Reached",
                                        "Verdict", "is_pass", "Judg",    "Consistent"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (strcasestr(title, parts[k]))
            return strstr(title, "Requires_grad") == NULL;
    return false;
}

/* The worst word of a row. False: none of its cells tells. */
static bool look_at_row(const struct plumb_table *table, size_t row, enum plumb_mood *mood)
{
    bool found = false;
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        enum plumb_mood own;
        if (cell->type != PLUMB_CELL_TEXT || !tells(plumb_table_column(table, k)->title) ||
            !find_word(cell->as.text, &own))
            continue;
        *mood = found && *mood < own ? *mood : own;
        found = true;
    }
    return found;
}

/* The first text of a row: what it is about. */
static const char *name_of(const struct plumb_table *table, size_t row)
{
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (cell->type == PLUMB_CELL_TEXT && !tells(plumb_table_column(table, k)->title))
            return cell->as.text;
    }
    return "";
}

static void tell_sum(struct plumb_report *report)
{
    static const char *const names[PLUMB_MOODS] = {"bad", "doubtful", "not judged", "good"};
    const struct result_sum *sum = &report->results;
    struct buf sentence = {0}, counts = {0};
    const uint64_t judged = sum->rows - sum->of[PLUMB_MOOD_UNSEEN];
    if (!judged)
        buf_text(&sentence, "None of the rows could be judged.");
    else if (sum->of[PLUMB_MOOD_BAD])
        buf_printf(&sentence, "%" PRIu64 " of %" PRIu64 " judged rows %s bad.",
                   sum->of[PLUMB_MOOD_BAD], judged, sum->of[PLUMB_MOOD_BAD] == 1 ? "is" : "are");
    else
        buf_printf(&sentence, "None of the %" PRIu64 " judged rows is bad.", judged);
    for (int mood = 0; mood < PLUMB_MOODS; mood++)
        if (sum->of[mood])
            buf_printf(&counts, "%s%" PRIu64 " %s", counts.size ? ", " : "", sum->of[mood],
                       names[mood]);
    plumb_report_answer(
        report, &(struct plumb_report_answer){.mood = judged ? sum->mood : PLUMB_MOOD_UNSEEN,
                                              .sentence = sentence.data ? sentence.data : "",
                                              .where = sum->where ? sum->where : "",
                                              .row = sum->row,
                                              .sure = counts.data ? counts.data : ""});
    report->counts.size = 0;
    for (int mood = 0; mood < PLUMB_MOODS; mood++)
        if (sum->of[mood])
            plumb_report_count(report, names[mood], sum->of[mood], (enum plumb_mood)mood);
    buf_free(&sentence);
    buf_free(&counts);
}

void plumb_report_result(struct plumb_report *report, const char *name,
                         const struct plumb_table *table)
{
    struct result_sum *sum = &report->results;
    const size_t rows = plumb_table_rows(table);
    const bool first = !report->tables.size;
    unsigned char *moods = malloc(rows + 1);
    if (!moods) {
        report->tables.failed = true;
        return;
    }
    if (!sum->rows) {
        sum->mood = PLUMB_MOOD_GOOD;
        sum->row = -1;
    }
    for (size_t row = 0; row < rows; row++) {
        enum plumb_mood mood = PLUMB_MOOD_UNSEEN;
        look_at_row(table, row, &mood);
        moods[row] = (unsigned char)mood;
        sum->of[mood]++;
        sum->rows++;
        if (mood < sum->mood) {
            free(sum->where);
            sum->where = strdup(name_of(table, row));
            sum->mood = mood;
            sum->row = first ? (int64_t)row : -1;
        }
    }
    plumb_report_table(report, name, table, moods, NULL);
    tell_sum(report);
    free(moods);
}
