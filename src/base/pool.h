/* A small thread pool: run a function over 0..count-1, in any order, on several threads.
 *
 * pthreads rather than OpenMP, because an OpenMP region hangs in a forked child. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

/* Calls work(context, i, thread) for each i below count. Indices are handed out in ascending order;
 * thread is below the number of threads in use. Returns when all are done. Uses the calling thread
 * too; when further threads cannot be created, the work is done with those there are. */
void pool_run(unsigned threads, size_t count,
              void (*work)(void *context, size_t i, unsigned thread), void *context);

/* Processors this process may use, at least 1. */
unsigned pool_default_threads(void);

#endif
