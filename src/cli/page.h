/* --report FILE: a page for people, beside what a command prints. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

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

/* Writes it, says so unless quiet, and frees it. code: what became of the work so far; where that
 * failed, nothing is written. Returns the first failure. */
enum plumb_code page_end(struct plumb_report *report, const char *path, bool quiet,
                         enum plumb_code code, struct plumb_error *err);

#endif
