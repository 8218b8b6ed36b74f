/* How far long work is. */
#ifndef PLUMB_PROGRESS_H
#define PLUMB_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called now and then, from one thread at a time, with what is done and what there is in all. */
typedef void plumb_progress_fn(void *context, uint64_t done, uint64_t total);

#ifdef __cplusplus
}
#endif
#endif
