/* What the files that compute exchanges again share. */
#ifndef BLAME_EXCHANGED_PARTS_H
#define BLAME_EXCHANGED_PARTS_H

#include "task/blame/exchanged.h"

/* What the terms of an element come to. */
struct terms {
    long double sum, absolute, squares;
    double least, most;
    bool nan, plus, minus; /* what is not finite among them */
};

void terms_add(struct terms *t, enum exchanged_op op, double x, bool first);
double terms_expected(const struct terms *t, enum exchanged_op op, size_t n);

/* By how much an element of n terms is off, in units of which EXCHANGED_LIMIT are allowed; NaN:
 * nothing can be said. */
double terms_excess(const struct terms *t, enum exchanged_op op, size_t n, double got,
                    enum plumb_dtype dtype);

/* A payload that is open. */
struct opened {
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    size_t record; /* number + 1; 0: nothing is open */
};

/* False: *why says why, a text in the arena. Closing tells whether the file was there all the
 * time. One thread opens and closes, the last opened first. */
bool opened_load(struct opened *o, const struct plumb_run *run, size_t record, struct arena *arena,
                 const char **why);
bool opened_close(struct opened *o);

/* What a wrong sum looks like, a text in the arena; "": nothing simple. own: the rank that got
 * it. */
const char *exchanged_guess(const struct exchanged *x, const struct exchanged_part *part,
                            int64_t own, const struct plumb_run *run, struct arena *arena);

#endif
