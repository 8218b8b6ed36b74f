/* One call of a dump, computed again from what went in, and what came out held against it. */
#ifndef VERDICT_LOCAL_H
#define VERDICT_LOCAL_H

#include "base/arena.h"
#include "dump/call.h"
#include "plumb/expected.h"

struct local_options {
    const struct case_file *file;
    const char *arithmetic;
    uint64_t seed, memory; /* bytes that a call may take */
};

/* What is to be said of one result; or the worst that is to be said of one direction of a call. */
struct local_verdict {
    bool seen; /* there was something to look at */
    enum plumb_word word;
    double worst;
    const char *result, *why;         /* "output 0" */
    const char *arithmetic, *pattern; /* of struct plumb_opinion; "": none */
    size_t recorded;                  /* which of the recorded results it is; SIZE_MAX: none */
    const struct local_verdict *next; /* of a direction: all results, or why there are none */
};

/* Judges call i by its recorded inputs, outputs and gradients: forward, then backward. Texts
 * live in the arena. PLUMB_E_NOMEM: it needs more than it may take. Whatever else goes wrong is
 * a verdict of its own. */
enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[2], struct plumb_error *err);

#endif
