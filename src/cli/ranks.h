/* The ranks of dumps. */
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include "plumb/run.h"

/* The ranks of two runs, ascending, each once (malloc). None when a run is no dump. */
enum plumb_code ranks_list(int64_t **ranks, size_t *count, struct plumb_run *const runs[2],
                           struct plumb_error *err);

#endif
