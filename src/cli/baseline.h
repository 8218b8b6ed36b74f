/* --baseline and --write-baseline: what is accepted, what is found, and what of it fails. */
#ifndef CLI_BASELINE_H
#define CLI_BASELINE_H

#include "plumb/baseline.h"

#include <stdbool.h>

struct cli_baseline {
    const char *read_path, *write_path; /* NULL: not asked for */
    struct plumb_baseline *accepted;    /* of --baseline, or NULL */
    struct plumb_baseline *found;       /* for the task to fill; NULL: neither was asked for */
};

/* Reads what is accepted, and makes room for what will be found. The paths are set by the caller.
 * To be freed in any case. */
enum plumb_code cli_baseline_begin(struct cli_baseline *baseline,
                                   const struct plumb_baseline_options *options,
                                   struct plumb_error *err);

/* Prints how what was found compares; *bad counts what is new or worse. */
enum plumb_code cli_baseline_compare(const struct cli_baseline *baseline, uint64_t *bad,
                                     struct plumb_error *err);

/* Writes what was found, where that was asked for, and says so on stderr. */
enum plumb_code cli_baseline_write(const struct cli_baseline *baseline, struct plumb_error *err);

void cli_baseline_free(struct cli_baseline *baseline);

#endif
