/* Tables of results whose rows say in words what became of them. */
#define _GNU_SOURCE
#include "report/page.h"

#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>
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
            return !strstr(title, "Requires_grad") && strncmp(title, "GPU ", 4) != 0;
    return false;
}

/* The outcome of a row whose other columns of words are about single metrics of it. */
static bool sums_up(const char *title)
{
    return strcasecmp(title, "Status") == 0 || strcasecmp(title, "Comparison result") == 0 ||
           strcmp(title, "\u6bd4\u5bf9\u7ed3\u679c") == 0;
}

static bool is_opinion(const char *title)
{
    return strcasecmp(title, "Verdict") == 0;
}

/* Which columns decide: 1 for each that does. */
static void choose_columns(const struct plumb_table *table, enum plumb_deciding by, bool *decides)
{
    const size_t count = plumb_table_columns(table);
    bool summed = false;
    for (size_t k = 0; k < count; k++)
        summed |= sums_up(plumb_table_column(table, k)->title);
    for (size_t k = 0; k < count; k++) {
        const char *title = plumb_table_column(table, k)->title;
        decides[k] = is_opinion(title) ? by != PLUMB_BY_RULES
                     : summed          ? by != PLUMB_BY_EXPECTED && sums_up(title)
                                       : by != PLUMB_BY_EXPECTED && tells(title);
    }
}

/* The worst word of a row; PLUMB_MOOD_UNSEEN: none of its cells tells. */
static enum plumb_mood look_at_row(const struct plumb_table *table, size_t row, const bool *decides)
{
    enum plumb_mood mood = PLUMB_MOODS, own;
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (decides[k] && cell->type == PLUMB_CELL_TEXT && find_word(cell->as.text, &own))
            mood = mood < own ? mood : own;
    }
    return mood == PLUMB_MOODS ? PLUMB_MOOD_UNSEEN : mood;
}

bool plumb_report_moods(const struct plumb_table *table, enum plumb_deciding by,
                        unsigned char *moods)
{
    bool *decides = calloc(plumb_table_columns(table) + 1, sizeof *decides);
    if (!decides)
        return false;
    choose_columns(table, by, decides);
    for (size_t row = 0; row < plumb_table_rows(table); row++)
        moods[row] = (unsigned char)look_at_row(table, row, decides);
    free(decides);
    return true;
}

const char *plumb_report_reason(const struct plumb_table *table, size_t row, enum plumb_deciding by,
                                char *text, size_t size)
{
    static const struct {
        const char *title;
        bool opinion;
    } reasons[] = {{"Why", true}, {"Message", false}, {"Err_message", false}, {"Reason", false}};
    size_t used = 0;
    *text = '\0';
    for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++)
        for (size_t k = 0; k < plumb_table_columns(table) && used < size - 1; k++) {
            const struct plumb_cell *cell = plumb_table_cell(table, row, k);
            const bool decides =
                reasons[r].opinion ? by != PLUMB_BY_RULES : by != PLUMB_BY_EXPECTED;
            if (!decides || cell->type != PLUMB_CELL_TEXT || !*cell->as.text ||
                strcasecmp(plumb_table_column(table, k)->title, reasons[r].title) != 0)
                continue;
            const int more =
                snprintf(text + used, size - used, "%s%s", used ? "\n" : "", cell->as.text);
            used += more > 0 ? (size_t)more : 0;
        }
    return text;
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
    struct buf sentence = {0}, counts = {0}, sure = {0};
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
    /* Why nobody judged a row says nothing of how sure the others are. */
    const char *why = sum->why && sum->mood <= PLUMB_MOOD_DOUBT ? sum->why : "";
    buf_printf(&sure, "%s%s%s", why, *why ? "\n" : "", counts.data ? counts.data : "");
    plumb_report_answer(
        report, &(struct plumb_report_answer){.mood = judged ? sum->mood : PLUMB_MOOD_UNSEEN,
                                              .sentence = sentence.data ? sentence.data : "",
                                              .where = sum->where ? sum->where : "",
                                              .row = sum->row,
                                              .sure = sure.data ? sure.data : ""});
    report->counts.size = 0;
    for (int mood = 0; mood < PLUMB_MOODS; mood++)
        if (sum->of[mood])
            plumb_report_count(report, names[mood], sum->of[mood], (enum plumb_mood)mood);
    buf_free(&sentence);
    buf_free(&counts);
    buf_free(&sure);
}

void plumb_report_result(struct plumb_report *report, const char *name,
                         const struct plumb_table *table)
{
    struct result_sum *sum = &report->results;
    const size_t rows = plumb_table_rows(table);
    const bool first = !report->tables.size;
    char why[2048];
    unsigned char *moods = malloc(rows + 1);
    if (!moods || !plumb_report_moods(table, PLUMB_BY_BOTH, moods)) {
        free(moods);
        report->tables.failed = true;
        return;
    }
    if (!sum->rows) {
        sum->mood = PLUMB_MOOD_GOOD;
        sum->row = -1;
    }
    for (size_t row = 0; row < rows; row++) {
        const enum plumb_mood mood = (enum plumb_mood)moods[row];
        sum->of[mood]++;
        sum->rows++;
        if (mood < sum->mood) {
            free(sum->where);
            free(sum->why);
            sum->where = strdup(name_of(table, row));
            sum->why = strdup(plumb_report_reason(table, row, PLUMB_BY_BOTH, why, sizeof why));
            sum->mood = mood;
            sum->row = first ? (int64_t)row : -1;
        }
    }
    plumb_report_table(report, name, table, moods, NULL);
    tell_sum(report);
    free(moods);
}
