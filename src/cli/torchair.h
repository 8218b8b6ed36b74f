/* plumb compare --mode torchair: GE dumps. */
#ifndef CLI_TORCHAIR_H
#define CLI_TORCHAIR_H

#include "cli/cli.h"
#include "plumb/torchair.h"

struct torchair_request {
    const struct cli_view *view;
    const char *target, *golden;
    const char *result; /* a file, or NULL */
    const char *folder; /* for files that get their name from the time, or NULL */
    const char *page;   /* a report, or NULL */
    bool to_file, xlsx, quiet;
    bool digest; /* instead of a long table, on a terminal */
    bool all;    /* columns, on a terminal that has no room for them */
    int only;    /* the least severity that is shown; -1: all */
    struct plumb_torchair_options options;
};

/* Compares, writes or prints the tables, and returns the exit code. */
int torchair_run(const struct torchair_request *request);

#endif
