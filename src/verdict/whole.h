/* A result of a whole graph after a change, against what right arithmetic shows for the graph
 * before it. The caller has run both in float64, and the one before with errors made on purpose. */
#ifndef VERDICT_WHOLE_H
#define VERDICT_WHOLE_H

#include "plumb/expected.h"

enum { WHOLE_MAX_RUNS = 8 };

/* The same result of several runs with errors: as many numbers each as the result has. */
struct whole_runs {
    const double *run[WHOLE_MAX_RUNS];
    unsigned n;
};

struct whole_item {
    const struct plumb_arg *before, *after; /* as stored; NULL: that side has none */
    const double *y;                        /* before, in float64; complex numbers by parts */
    const double *formula;                  /* after, in float64; NULL: not known */
    struct whole_runs noise;                /* before, with errors of the size of its types */
    struct whole_runs fine;      /* the same, as if 16-bit types were float32; none: as noise */
    struct whole_runs constants; /* after, with errors in the constants that are new there */
    struct whole_runs changed;   /* after, with errors of the size of its types */
    enum plumb_dtype narrowest;  /* of what the graph after stores; PLUMB_DTYPE_COUNT: not known */
    const char *arithmetic;      /* what is allowed, or NULL */
    const char *called;          /* the side before, in sentences; NULL: "the graph before" */
};

/* Same, rounding, tie, cheaper arithmetic, fault or not judged. The formula is judged first, by the
 * two float64 runs, then the result as stored. Fails only when memory runs out. */
enum plumb_code whole_judge(const struct whole_item *item, struct plumb_opinion *opinion,
                            struct plumb_error *err);

/* The same for n whole numbers: got and before, as stored. A decision that errors turn too is a
 * tie. */
void whole_decide(const struct whole_item *item, const double *got, const double *before,
                  uint64_t n, struct plumb_opinion *opinion);

#endif
