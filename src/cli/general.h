/* plumb compare of two dump trees under the rules of a profile. */
#ifndef CLI_GENERAL_H
#define CLI_GENERAL_H

#include "cli/cli.h"
#include "plumb/general.h"

struct general_request {
    const struct cli_view *view;
    const char *target, *golden;
    const char *result; /* a file, or NULL */
    const char *folder; /* for files that get their name from the time, or NULL */
    const char *page;   /* a report, or NULL */
    bool to_file, xlsx, quiet;
    struct plumb_general_options options;
};

/* Compares all places, writes or prints the tables, and returns the exit code. */
int general_run(const struct plumb_general_places *places, const struct general_request *request);

#endif
