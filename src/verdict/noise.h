/* By how much a right kernel may be off, element by element. */
#ifndef VERDICT_NOISE_H
#define VERDICT_NOISE_H

#include "base/arena.h"
#include "plumb/op.h"

struct noise {
    size_t n;
    double **of;      /* of[k] for output k, or NULL */
    double *units;    /* a rounding of that output's arithmetic */
    uint64_t *counts; /* elements */
};

/* Of the outputs of a call; in the arena. false when out of memory; an operator that plumb lacks
 * has none. */
bool noise_run(const struct plumb_call *call, const struct plumb_arg *outputs, size_t n,
               struct arena *arena, struct noise *out);

#endif
