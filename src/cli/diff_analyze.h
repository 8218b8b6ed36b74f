/* plumb compare -da. */
#ifndef CLI_DIFF_ANALYZE_H
#define CLI_DIFF_ANALYZE_H

#include "plumb/ranks.h"

struct diff_request {
    const char *target, *golden;
    const char *folder;                /* for the files; NULL: the current one */
    const struct plumb_profile *rules; /* NULL: plumb's own */
    bool quiet;
    struct plumb_general_options pairing;
};

/* Compares, writes the files, says what was found, and returns the exit code. */
int diff_analyze_run(const struct diff_request *request);

#endif
