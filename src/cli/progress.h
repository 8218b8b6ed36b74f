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
    uint64_t total;         /* that was said last */
};

/* Bars are shown though stderr is no terminal: under mpirun it never is one. */
extern bool progress_always;

void progress_init(struct progress *progress, const char *unit);

/* Its time begins now. */
void progress_restart(struct progress *progress);

/* A plumb_progress_fn: context is the struct progress. */
void progress_update(void *context, uint64_t done, uint64_t total);

/* The same for work in two parts: when the total changes, `then` is what is counted, and the time
 * of the second part begins. */
void progress_update_parts(struct progress *progress, const char *then, uint64_t done,
                           uint64_t total);

struct waiting;

/* Shows what is being done and for how long, each second, until it is ended: for work that cannot
 * say how far it is. NULL, which is fine, where nobody looks. */
struct waiting *waiting_begin(const char *what);
void waiting_end(struct waiting *waiting);

/* Erases the bar. */
void progress_end(struct progress *progress);

#endif
