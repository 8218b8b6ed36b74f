/* The threads that compute with the process's tensors. */
#ifndef CORE_TEAM_H
#define CORE_TEAM_H

#include <stddef.h>

/* What is known of one kind of work: zero at first. */
struct team_pace {
    double alone, together; /* seconds that one item took lately */
    unsigned runs;
};

/* pool_run() on one thread or on several, at most `most`: on whichever took less time before. How
 * many there were.
 *
 * Where the process has OpenMP, as with PyTorch, its own threads do it, as they do the operators.
 * Whether they help depends on the machine: threads of OpenMP and of a BLAS with threads of its own
 * wait in loops for the next operator, so that a processor for each of both may be missing. */
unsigned team_run(struct team_pace *pace, unsigned most, size_t count,
                  void (*work)(void *context, size_t i, unsigned thread), void *context);

#endif
