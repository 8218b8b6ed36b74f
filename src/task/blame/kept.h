/* A run that is being looked at. */
#ifndef BLAME_KEPT_H
#define BLAME_KEPT_H

#include "run/run.h"
#include "task/blame/looks.h"
#include "task/blame/units.h"

/* What an answer leads into. */
struct kept {
    struct plumb_blame blame;
    const struct plumb_blame_options *options;
    struct plumb_run *target, *golden;
    struct repeats *repeats;
    struct sites sites;
    struct arena arena;
    struct plumb_baseline *found; /* the caller's, or own; NULL: nobody asks */
    struct plumb_baseline *own;
    struct meter meter;
    struct looks looks; /* where pages are asked for */
    unsigned threads;
};

/* What a rank that is not as the others is called in tables and baselines. */
const char *odd_text(const struct plumb_odd *odd);

/* Judges all calls, modules and nodes that can be computed, into their sites. */
enum plumb_code jobs_judge(struct kept *kept, struct plumb_error *err);

/* Takes what is to be said of a site, and tells the baseline. */
enum plumb_code jobs_store(struct kept *kept, struct site *site, const struct local_verdict *v,
                           struct plumb_error *err);

#endif
