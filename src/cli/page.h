/* --report FILE: a page for people, beside what a command prints. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "base/buf.h"
#include "cli/cli.h"
#include "plumb/report.h"

#define PAGE_OPTION(field)                                                                         \
    {                                                                                              \
        .names = {"--report"}, .kind = ARGS_PATH, field, .metavar = "FILE",                        \
        .help = "write a page that shows the result in a browser, in one .html file"               \
    }

/* The words that the program was started with, ended by NULL. */
extern char *const *cli_words;

/* A report that knows how it came about. NULL with err set when out of memory. */
struct plumb_report *page_begin(const char *command, const char *title, struct plumb_error *err);

/* What stands out in a table. */
struct page_found {
    enum plumb_mood mood; /* the worst of its rows */
    int64_t row;          /* the first that is bad or in doubt; -1: none */
    char where[512];      /* what that is about */
    char why[2048];       /* and what it says of itself */
    size_t unseen;        /* rows that were not judged */
    char names[512];      /* the first of them */
};

/* Tells a table with the words of its rows, and what stands out in it. */
enum plumb_code page_table(struct plumb_report *report, const char *name,
                           const struct plumb_table *table, enum plumb_deciding by,
                           struct page_found *found, struct plumb_error *err);

/* The same for a table that the command has written as .csv. */
enum plumb_code page_file(struct plumb_report *report, const char *name, const char *path,
                          enum plumb_deciding by, struct page_found *found,
                          struct plumb_error *err);

enum plumb_mood page_mood(enum plumb_word word);

/* The answer of a command: bad when it says so, unseen when nothing was judged, else what stands
 * out in its main table. */
void page_answer(struct plumb_report *report, bool bad, bool seen, const char *sentence,
                 const struct page_found *found);

/* The same, with the counts of the closing line behind what the row says. */
void page_answer_counts(struct plumb_report *report, bool bad, bool seen, const char *sentence,
                        const struct page_found *found, const char *counts);

/* The command that the program was started with, and more words. */
void page_command(struct buf *out, const char *more);

/* Notes how many rows were not judged, what that means, and which they are. */
void page_unseen(struct plumb_report *report, const char *what, const struct page_found *found);

/* Writes it, says so unless quiet, and frees it. code: what became of the work so far; where that
 * failed, nothing is written. Returns the first failure. */
enum plumb_code page_end(struct plumb_report *report, const char *path, bool quiet,
                         enum plumb_code code, struct plumb_error *err);

#endif
