/* What a run of a graph came to, as float64 numbers by kind and name. */
#ifndef PASSCHECK_HARVEST_H
#define PASSCHECK_HARVEST_H

#include "task/passcheck/side.h"

struct harvest_item {
    const double *values; /* complex numbers are not there */
    uint64_t n;
};

struct harvest {
    struct arena arena;
    struct map names; /* to the index of the item */
    struct harvest_item *items;
    size_t n, room;
    uint64_t bytes, max_bytes; /* nodes beyond are left out; */
    size_t left_out;           /* and counted */
};

/* What is run and kept. */
struct harvest_plan {
    unsigned kinds;
    size_t output;                             /* whose sum the gradients are of; SIZE_MAX: none */
    const bool *chosen;                        /* outputs that are weighted at random; NULL: none */
    uint64_t seed;                             /* of the weights */
    double rate;                               /* of the step */
    const struct plumb_passcheck_graph *other; /* only its nodes are kept */
    const struct passcheck_side *start; /* whose parameters the step starts from: without errors */
};

/* Runs the side forward and back, and keeps what the plan names. To be freed also after a
 * failure. */
enum plumb_code harvest_run(struct passcheck_side *side, const struct harvest_plan *plan,
                            struct harvest *out, struct plumb_error *err);
void harvest_free(struct harvest *harvest);

/* NULL: there is none. */
const struct harvest_item *harvest_find(const struct harvest *harvest,
                                        enum plumb_passcheck_kind kind, const char *name);

#endif
