/* Statistics along steps: collected, and what stands out in them. */
#ifndef COMPARE_STEPS_H
#define COMPARE_STEPS_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/steps.h"

enum series { SERIES_NORM, SERIES_MAX, SERIES_MIN, SERIES_MEAN, SERIES_NAN, SERIES_INF, SERIES };

/* Of one run: names x steps numbers for each series, tensor by tensor; NaN: not there. Whether a
 * tensor was there at all, `seen` says. */
struct history {
    double *values[SERIES];
    unsigned char *seen;
};

struct jump {
    size_t tensor, at; /* which of the steps */
    const char *what;  /* "norm", "range", "NaN", "infinity" */
    bool earlier;      /* held against the earlier run */
    double value, usual, limit;
    size_t lasts; /* steps in a row */
    enum plumb_mood mood;
};

struct steps {
    struct arena arena;
    int64_t *steps; /* ascending */
    size_t n_steps;
    struct map places; /* of names */
    const char **names;
    size_t n_names;
    struct history now, before; /* before: of the earlier run */
    bool has_before;
    size_t without; /* tensors without recorded statistics */
    struct jump *jumps;
    size_t n_jumps, room;
};

/* Reads both. To be released in any case. */
enum plumb_code steps_collect(struct steps *s, const struct plumb_run *run,
                              const struct plumb_run *earlier, struct plumb_error *err);
void steps_release(struct steps *s);

/* Finds all jumps, in the order of steps, then of tensors. False when out of memory. */
bool steps_find_jumps(struct steps *s);

#endif
