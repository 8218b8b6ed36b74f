/* A call with what it gave: computed again in higher precision, and its results held against that.
 */
#ifndef VERDICT_KNOWN_H
#define VERDICT_KNOWN_H

#include "plumb/expected.h"
#include "verdict/repeat.h"

struct known_call;

/* Told of a call that was judged: its reference, what it was and gave, and what decided. */
typedef enum plumb_code local_watch(void *context, struct plumb_expected *expected,
                                    const struct plumb_result *reference,
                                    const struct known_call *known, struct plumb_error *err);

struct local_options {
    const struct case_file *file;  /* of local_judge alone, like what follows */
    const struct repeats *repeats; /* of the same program; NULL: none */
    int64_t step, rank;            /* of the file: where repeats have the call */
    const char *arithmetic;
    uint64_t seed, memory; /* bytes that a call may take */
    local_watch *watch;    /* or NULL; what it returns becomes an error */
    void *watch_context;
};

/* Of a module, gradients of its parameters are a matter of their own. */
enum { LOCAL_FORWARD, LOCAL_BACKWARD, LOCAL_PARAMETERS, LOCAL_DIRECTIONS };

/* What is to be said of one result; and of one direction of a call: the worst of its results. */
struct local_verdict {
    bool seen;     /* there was something to look at */
    bool doubtful; /* not judged, and what was tried does not explain its results */
    enum plumb_word word;
    bool unsteady;
    double worst, limit;      /* of struct plumb_opinion, like what follows */
    const char *result, *why; /* "output 0" */
    const char *arithmetic, *pattern;
    const char *place; /* of the worst element: "[0, 3]"; "" where there is none */
    double got, expected, differing;
    enum plumb_expected_part part; /* which result of the call it is: with this number; */
    size_t number;                 /* SIZE_MAX: none */
    size_t recorded;               /* which of the recorded results it is; SIZE_MAX: none */
    struct local_verdict *next;    /* the results of the direction, last one first */
};

/* The worse of both stays, and all are in its list; texts are copied. */
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

/* Shows what repeats of the program gave to a verdict; *shown: there was something. PLUMB_E_NOMEM.
 */
typedef enum plumb_code known_show(void *context, struct plumb_expected *expected, bool *shown,
                                   struct plumb_error *err);

/* A call with its arguments, and what it gave. */
struct known_call {
    struct plumb_call call;
    struct plumb_result given;
    bool has_backward;
    const char *no_backward;                /* why that is not judged, or NULL */
    const struct known_gradient *gradients; /* one for each tensor; NULL: they have numbers */
    size_t n_grads_recorded;                /* entries of the backward's output */
    bool only_recorded; /* results that are missing are not judged; else they are wrong */
    uint64_t taken;     /* bytes of its tensors */
    known_show *show;   /* asked when something is worse than rounding; NULL: no repeats */
    void *show_context;
    bool watch_failed; /* set when an error is that of the watch */
};

/* The reference of a call, without its gradients where these cannot be computed. */
enum plumb_code known_reference(const struct local_options *options, struct known_call *known,
                                struct arena *arena, struct plumb_result *out,
                                struct plumb_error *err);

/* Runs the reference and judges outputs, then gradients. Texts live in the arena. PLUMB_E_NOMEM: it
 * needs more than it may take. */
enum plumb_code known_judge(const struct local_options *options, struct known_call *known,
                            struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                            struct plumb_error *err);

#endif
