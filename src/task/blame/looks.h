/* Results that are wrong, looked at closely while both sides are there: the pages of a report. */
#ifndef BLAME_LOOKS_H
#define BLAME_LOOKS_H

#include "plumb/detail.h"
#include "task/blame/parts.h"

/* A look takes up to 0.3 MB, and a run may have thousands of calls of cheaper arithmetic. */
enum { MOST_LOOKS = 200 };

struct look {
    size_t site;          /* number of its call */
    bool beside;          /* held against the other run, not against what was computed */
    enum plumb_word word; /* of this result */
    double worst;
    const char *result, *why, *pattern, *arithmetic, *arguments; /* "" where there is none */
    const char *dtypes[2];
    struct plumb_detail detail;
    struct arena arena; /* of the texts */
};

/* The worst ones; threads share them. */
struct looks {
    struct look *list; /* in no order */
    size_t count;
    pthread_mutex_t lock;
};

/* Whether something in there is worth a look. */
bool looks_wanted(const struct local_verdict *verdict);

/* Looks at all results of a direction of a call that are wrong. */
void looks_take(struct looks *looks, size_t site, const struct local_verdict *verdict,
                struct plumb_expected *expected, const struct known_call *known);

/* Keeps a look, which is the caller's no more, or lets it go. */
void looks_keep(struct looks *looks, struct look *look);

/* Whether a look would be kept now. */
bool looks_has_room(struct looks *looks, enum plumb_word word, double worst);

/* Looks at the outputs of calls that were judged by their jump, beside the other run's. What cannot
 * be read has no look. */
enum plumb_code looks_beside(struct looks *looks, const struct sites *sites,
                             const struct plumb_run *target, const struct plumb_run *golden,
                             struct plumb_error *err);

void looks_free(struct looks *looks);

/* Tells a report; pages gets the number of its page for each site, -1: none. */
enum plumb_code looks_pages(const struct looks *looks, const struct sites *sites,
                            const struct plumb_blame_options *options, struct plumb_report *report,
                            int32_t *pages, struct plumb_error *err);

#endif
