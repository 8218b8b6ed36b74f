/* A progress bar on stderr, for people only: nothing when stderr is no terminal, nothing in the
 * first second, and nothing left at the end. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *unit; /* "rows"; NULL: bytes */
    bool enabled, shown;
    int64_t started, drawn; /* milliseconds */
};

void progress_init(struct progress *progress, const char *unit);

/* Its time begins now. */
void progress_restart(struct progress *progress);

/* A plumb_progress_fn: context is the struct progress. */
void progress_update(void *context, uint64_t done, uint64_t total);

/* Erases the bar. */
void progress_end(struct progress *progress);

#endif
