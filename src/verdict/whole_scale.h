#ifndef VERDICT_WHOLE_SCALE_H
#define VERDICT_WHOLE_SCALE_H

#include "verdict/expected_parts.h"
#include "verdict/whole.h"

/* How far each run is from what it should be. */
struct moves {
    double *by[WHOLE_MAX_RUNS];
    unsigned n;
};

/* A scale of everything that is too small for single elements of a 16-bit type to show, and far
 * larger than what the graph before or any run of either graph with errors has: no arithmetic
 * explains it. Nothing is found in wider types, which system_find looks at, nor with fewer than 3
 * runs. */
struct system_part whole_scale(const struct sample *s, const double *before,
                               const struct moves *noise, const struct moves *changed);

#endif
