/* --report FILE: a page for people, beside what a command prints. */
#define _GNU_SOURCE
#include "cli/page.h"

#include "base/shell.h"
#include "plumb/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

char *const *cli_words;

static struct timespec started;

void page_command(struct buf *out, const char *more)
{
    buf_text(out, "plumb");
    for (size_t k = 1; cli_words[k]; k++) {
        buf_text(out, " ");
        shell_word(out, cli_words[k]);
    }
    buf_text(out, more);
}

static void tell_command(struct plumb_report *report)
{
    struct buf line = {0};
    page_command(&line, "");
    if (line.data)
        plumb_report_reproduce(report, line.data);
    buf_free(&line);
}

struct plumb_report *page_begin(const char *command, const char *title, struct plumb_error *err)
{
    struct plumb_report *report = plumb_report_new(command, title);
    struct utsname machine;
    char *folder = getcwd(NULL, 0);
    if (report) {
        clock_gettime(CLOCK_MONOTONIC, &started);
        tell_command(report);
        plumb_report_fact(report, "plumb", PLUMB_VERSION);
        if (uname(&machine) == 0) {
            char text[512];
            snprintf(text, sizeof text, "%s, %s %s, %s", machine.nodename, machine.sysname,
                     machine.machine, plumb_cpu_level());
            plumb_report_fact(report, "machine", text);
        }
        if (folder)
            plumb_report_fact(report, "folder", folder);
    } else {
        plumb_no_memory(err);
    }
    free(folder);
    return report;
}

enum plumb_mood page_mood(enum plumb_word word)
{
    return word == PLUMB_WORD_FAULT        ? PLUMB_MOOD_BAD
           : word == PLUMB_WORD_CHEAPER    ? PLUMB_MOOD_DOUBT
           : word == PLUMB_WORD_NOT_JUDGED ? PLUMB_MOOD_UNSEEN
                                           : PLUMB_MOOD_GOOD;
}

/* The column Name, or the first text. */
static const char *name_of(const struct plumb_table *table, size_t row)
{
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (cell->type == PLUMB_CELL_TEXT && !strcmp(plumb_table_column(table, k)->title, "Name"))
            return cell->as.text;
    }
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (cell->type == PLUMB_CELL_TEXT)
            return cell->as.text;
    }
    return "";
}

static void note_unseen(struct page_found *found, const char *name)
{
    enum { NAMED = 5 };
    const size_t used = strlen(found->names);
    if (found->unseen++ < NAMED)
        snprintf(found->names + used, sizeof found->names - used, "%s%.80s", used ? ", " : "",
                 name);
    else if (found->unseen == NAMED + 1)
        snprintf(found->names + used, sizeof found->names - used, ", ...");
}

enum plumb_code page_table(struct plumb_report *report, const char *name,
                           const struct plumb_table *table, enum plumb_deciding by,
                           struct page_found *found, struct plumb_error *err)
{
    const size_t rows = plumb_table_rows(table);
    unsigned char *moods = malloc(rows + 1);
    *found = (struct page_found){.mood = PLUMB_MOOD_GOOD, .row = -1};
    if (!moods || !plumb_report_moods(table, by, moods)) {
        free(moods);
        return plumb_no_memory(err);
    }
    for (size_t row = 0; row < rows; row++) {
        if (moods[row] == PLUMB_MOOD_UNSEEN)
            note_unseen(found, name_of(table, row));
        if (moods[row] >= (unsigned)found->mood)
            continue;
        found->mood = (enum plumb_mood)moods[row];
        if (found->mood <= PLUMB_MOOD_DOUBT) {
            found->row = (int64_t)row;
            snprintf(found->where, sizeof found->where, "%s", name_of(table, row));
            plumb_report_reason(table, row, by, found->why, sizeof found->why);
        }
    }
    plumb_report_table(report, name, table, moods, NULL);
    free(moods);
    return PLUMB_OK;
}

enum plumb_code page_file(struct plumb_report *report, const char *name, const char *path,
                          enum plumb_deciding by, struct page_found *found, struct plumb_error *err)
{
    struct plumb_table *table;
    enum plumb_code code = plumb_table_read(&table, path, err);
    if (code)
        return code;
    code = page_table(report, name, table, by, found, err);
    plumb_table_free(table);
    return code;
}

void page_answer(struct plumb_report *report, bool bad, bool seen, const char *sentence,
                 const struct page_found *found)
{
    page_answer_counts(report, bad, seen, sentence, found, "");
}

void page_answer_counts(struct plumb_report *report, bool bad, bool seen, const char *sentence,
                        const struct page_found *found, const char *counts)
{
    struct buf sure = {0};
    buf_printf(&sure, "%s%s%s", found->why, *found->why && *counts ? "\n" : "", counts);
    plumb_report_answer(report, &(struct plumb_report_answer){
                                    .mood = bad                               ? PLUMB_MOOD_BAD
                                            : !seen                           ? PLUMB_MOOD_UNSEEN
                                            : found->mood <= PLUMB_MOOD_DOUBT ? PLUMB_MOOD_DOUBT
                                                                              : PLUMB_MOOD_GOOD,
                                    .sentence = sentence,
                                    .where = found->where,
                                    .row = found->row,
                                    .sure = sure.data ? sure.data : ""});
    buf_free(&sure);
}

void page_unseen(struct plumb_report *report, const char *what, const struct page_found *found)
{
    char text[700];
    if (!found->unseen)
        return;
    snprintf(text, sizeof text, "%zu %s: %s", found->unseen, what, found->names);
    plumb_report_note(report, text);
}

enum plumb_code page_end(struct plumb_report *report, const char *path, bool quiet,
                         enum plumb_code code, struct plumb_error *err)
{
    if (!report)
        return code;
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "%.1f s",
             (double)(now.tv_sec - started.tv_sec) +
                 1e-9 * (double)(now.tv_nsec - started.tv_nsec));
    plumb_report_fact(report, "time", text);
    if (!code)
        code = plumb_report_save(report, path, err);
    if (!code && !quiet)
        fprintf(stderr, "report: %s\n", path);
    plumb_report_free(report);
    return code;
}
