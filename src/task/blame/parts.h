/* What the files of this room share. */
#ifndef BLAME_PARTS_H
#define BLAME_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/blame.h"
#include "plumb/pair.h"
#include "verdict/calls.h"

/* ---- The calls of a run ---------------------------------------------------------------------- */

/* A call in one direction, with its records. */
struct site {
    struct plumb_suspect is; /* what is to be said of it */
    bool judged_locally;
    bool jumps;      /* suspicious by its jump */
    bool holds;      /* what is wrong with it happens in a call inside */
    size_t n_inside; /* calls inside it, and how many of those are judged as right */
    size_t right_inside;
    double of_call; /* the worst of both directions of the call */
    size_t n_out;   /* outputs whose distance is known */
    double floor;   /* distance that the type's rounding makes by itself */
};

struct sites {
    struct site *list; /* in the order of the run */
    size_t count, capacity;
    struct map index; /* "call/step/rank" to number + 1 */
    struct arena arena;
};

/* The site of a call, made when it is new; NULL when out of memory. */
struct site *sites_get(struct sites *sites, const char *call, size_t length, int64_t step,
                       int64_t rank);

/* The same, NULL when there is none. */
struct site *sites_find(const struct sites *sites, const char *call, size_t length, int64_t step,
                        int64_t rank);

/* Makes the sites of all records of a run. */
enum plumb_code sites_list(struct sites *sites, const struct plumb_run *run,
                           struct plumb_error *err);
void sites_free(struct sites *sites);

/* ---- Against another run --------------------------------------------------------------------- */

/* Fills the distances of all sites; counts into blame what could not be had. */
enum plumb_code distances_fill(struct sites *sites, const struct plumb_run *target,
                               const struct plumb_run *golden,
                               const struct plumb_blame_options *options, struct plumb_blame *blame,
                               struct plumb_error *err);

/* ---- The answer ------------------------------------------------------------------------------ */

/* From sites to what blame says; texts in the arena, which blame comes to own. */
enum plumb_code answer_make(struct sites *sites, bool golden, struct arena *arena,
                            struct plumb_blame *blame, struct plumb_error *err);

#endif
