/* What the files of this room share. */
#ifndef BLAME_PARTS_H
#define BLAME_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "dump/call.h"
#include "plumb/blame.h"
#include "plumb/pair.h"

/* ---- One call of a dump, computed again ------------------------------------------------------ */

struct local_options {
    const struct case_file *file;
    const char *arithmetic;
    uint64_t seed, memory; /* bytes that a call may take */
};

/* Of a module, gradients of its parameters are a matter of their own. */
enum { LOCAL_FORWARD, LOCAL_BACKWARD, LOCAL_PARAMETERS, LOCAL_DIRECTIONS };

/* The worst that is to be said of one direction of a call. */
struct local_verdict {
    bool seen;     /* there was something to look at */
    bool doubtful; /* not judged, and what was tried does not explain its results */
    enum plumb_word word;
    double worst;
    const char *result, *why; /* "output 0" */
};

/* The worse of both stays; texts are copied. */
enum plumb_code verdict_keep(struct local_verdict *out, const struct local_verdict *verdict,
                             struct arena *arena, struct plumb_error *err);

/* It is not judged. */
enum plumb_code verdict_none(struct local_verdict *out, const char *why, struct arena *arena,
                             struct plumb_error *err);

/* The message, after the name of a payload file without its folder. */
const char *verdict_reason(struct arena *arena, const struct plumb_error *why);

/* Whose gradient it is, for a tensor of a call. */
struct known_gradient {
    const char *name; /* "weight" */
    bool parameter;
};

/* A call with its arguments, and what it gave. */
struct known_call {
    struct plumb_call call;
    struct plumb_result given;
    bool has_backward;
    const char *no_backward;                /* why that is not judged, or NULL */
    const struct known_gradient *gradients; /* one for each tensor; NULL: they have numbers */
    bool only_recorded; /* results that are missing are not judged; else they are wrong */
};

/* Runs the reference and judges outputs, then gradients. Texts live in the arena. */
enum plumb_code known_judge(const struct local_options *options, struct known_call *known,
                            struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                            struct plumb_error *err);

/* Judges call i of a dump.json by its recorded inputs, outputs and gradients: forward, then
 * backward. Texts live in the arena. PLUMB_E_NOMEM: it needs more than it may take. Whatever else
 * goes wrong is a verdict of its own. */
enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[LOCAL_DIRECTIONS], struct plumb_error *err);

/* ---- The calls of a run ---------------------------------------------------------------------- */

/* A call in one direction, with its records. */
struct site {
    struct plumb_suspect is; /* what is to be said of it */
    bool judged_locally;
    bool module;     /* and is a module, with calls inside that may be judged too */
    bool doubtful;   /* its results are not explained, but what is known of it is not enough to
                        call that a fault */
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

/* The site of a record; NULL: it belongs to no call. */
struct site *sites_of(const struct sites *sites, const struct plumb_record *record);

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
