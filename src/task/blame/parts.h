/* What the files of this room share. */
#ifndef BLAME_PARTS_H
#define BLAME_PARTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "plumb/blame.h"
#include "plumb/pair.h"
#include "verdict/calls.h"
#include "verdict/repeat.h"

#include <pthread.h>

/* ---- How far it is --------------------------------------------------------------------------- */

/* Calls that are done; tensors where there are none. Beside calls tensors are not counted: they
 * take a hundredth of the time. Threads share it. */
struct meter {
    plumb_progress_fn *tell; /* or NULL */
    void *context;
    pthread_mutex_t lock;
    uint64_t done, total;
};

void meter_add(struct meter *meter, uint64_t n);

/* ---- The calls of a run ---------------------------------------------------------------------- */

/* A call in one direction, with its records. */
struct site {
    struct plumb_suspect is; /* what is to be said of it */
    bool judged_locally;
    bool cut;        /* its entry in dump.json ends early: nothing can be said of it */
    bool module;     /* and is a module, with calls inside that may be judged too */
    bool doubtful;   /* its results are not explained, but what is known of it is not enough to
                        call that a fault */
    bool jumps;      /* suspicious by its jump */
    bool holds;      /* what is wrong with it happens in a call inside */
    size_t n_inside; /* calls inside it, and how many of those are judged as right */
    size_t right_inside;
    size_t unknown_inside;      /* and how many could not be looked at, and are not suspicious */
    bool interpreted;           /* a compiled region whose graph was recorded node by node */
    double graph_out;           /* how far its nodes are from the other run; NaN: not known */
    double of_call;             /* the worst of both directions of the call */
    size_t n_out;               /* outputs whose distance is known */
    double floor;               /* distance that the type's rounding makes by itself */
    double saved;               /* the largest distance of what else went into it: what the forward
                                   call was given, or other ranks put in; 0: nothing is known */
    double between_in, between; /* largest distance of inputs and outputs between repeats of the
                                   program; NaN: not known */
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

/* The site of a record; NULL: it belongs to no call. */
struct site *sites_of(const struct sites *sites, const struct plumb_record *record);

/* Makes the sites of all records of a run. */
enum plumb_code sites_list(struct sites *sites, const struct plumb_run *run,
                           struct plumb_error *err);
void sites_free(struct sites *sites);

/* ---- Against another run --------------------------------------------------------------------- */

/* Fills the distances of all sites, and the sources; counts into blame what could not be had. Texts
 * in the arena. */
enum plumb_code distances_fill(struct sites *sites, const struct plumb_run *target,
                               const struct plumb_run *golden, unsigned threads,
                               struct meter *meter, struct arena *arena, struct plumb_blame *blame,
                               struct plumb_error *err);

/* Lists into blame what no recorded call explains; apart: how far each pair is, NaN: not known. */
enum plumb_code sources_find(const struct plumb_run *target, const struct plumb_run *golden,
                             const struct plumb_matching *matching, const double *apart,
                             struct arena *arena, struct plumb_blame *blame,
                             struct plumb_error *err);

/* The same from a repeat of the program: the largest of all repeats counts. */
enum plumb_code distances_between(struct sites *sites, const struct plumb_run *target,
                                  const struct plumb_run *repeat, unsigned threads,
                                  struct meter *meter, struct plumb_error *err);

/* ---- The answer ------------------------------------------------------------------------------ */

/* What each site is: by its local verdict, else by its jump. Texts in the arena. */
enum plumb_code answer_decide(struct sites *sites, bool golden, struct arena *arena,
                              struct plumb_error *err);

/* Says of faults which other tensor of the run they are equal to. */
enum plumb_code stale_find(struct sites *sites, const struct plumb_run *run, struct arena *arena,
                           struct plumb_error *err);

/* From sites to what blame says; texts in the arena, which blame comes to own. */
enum plumb_code answer_list(struct sites *sites, struct arena *arena, struct plumb_blame *blame,
                            struct plumb_error *err);

/* A paragraph for people: words wrapped, all lines but the first indented, a newline behind it. */
void text_put(struct buf *out, const char *text, unsigned width, unsigned indent);

/* ", output 0, step 3, in Module.block.1.forward.0", as far as that is known. */
void text_place(struct buf *out, const struct plumb_suspect *is);

/* What is to be said of several ranks; nothing where there is one. */
void across_put_text(struct buf *out, const struct plumb_blame *blame, unsigned width);
void across_put_json(struct buf *out, const struct plumb_blame *blame);

/* The suspicious calls of cheaper arithmetic, by kind. */
void cheaper_put(struct buf *out, const struct plumb_suspect *list, size_t n, const char *target,
                 unsigned width);

/* The line of the program that led to a call: the first one that is not PyTorch's own; NULL: there
 * is none. */
const char *source_line(const char *const *stack);

/* The command that takes a call out of its dump and judges it alone, as a shell takes it. */
void replay_put(struct buf *out, const char *target, const struct plumb_suspect *is);

#endif
