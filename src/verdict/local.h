/* One call of a dump, computed again from what went in, and what came out held against it. */
#ifndef VERDICT_LOCAL_H
#define VERDICT_LOCAL_H

#include "plumb/expected.h"
#include "verdict/repeat.h"

/* Told of a call that was judged: its reference, what it gave, and what decided. */
typedef enum plumb_code local_watch(void *context, struct plumb_expected *expected,
                                    const struct plumb_result *reference,
                                    const struct plumb_result *given, struct plumb_error *err);

struct local_options {
    const struct case_file *file;
    const struct repeats *repeats; /* of the same program; NULL: none */
    int64_t step, rank;            /* of the file: where repeats have the call */
    const char *arithmetic;
    uint64_t seed, memory; /* bytes that a call may take */
    local_watch *watch;    /* or NULL; what it returns becomes an error of local_judge */
    void *watch_context;
};

/* What is to be said of one result; and of one direction of a call: the worst of its results. */
struct local_verdict {
    bool seen; /* there was something to look at */
    enum plumb_word word;
    bool unsteady;
    double worst, limit;      /* of struct plumb_opinion, like what follows */
    const char *result, *why; /* "output 0" */
    const char *arithmetic, *pattern;
    const char *place; /* of the worst element: "[0, 3]"; "" where there is none */
    double got, expected, differing;
    size_t recorded;            /* which of the recorded results it is; SIZE_MAX: none */
    struct local_verdict *next; /* the results of the direction, last one first */
};

/* Judges call i by its recorded inputs, outputs and gradients: forward, then backward. Texts
 * live in the arena. PLUMB_E_NOMEM: it needs more than it may take. Whatever else goes wrong is
 * a verdict of its own. */
enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[2], struct plumb_error *err);

#endif
