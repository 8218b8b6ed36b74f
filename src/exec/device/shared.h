/* Memory shared with a worker: a file without a name, which is gone with the last process that has
 * it. It only grows, so that no mapping of it can lose its end, but gives memory back. */
#ifndef DEVICE_SHARED_H
#define DEVICE_SHARED_H

#include "plumb/error.h"

struct shared {
    int fd;
    unsigned char *base; /* the mapping, or NULL */
    uint64_t mapped;     /* bytes */
    uint64_t backed;     /* bytes from the start that have memory */
};

enum plumb_code shared_init(struct shared *shared, struct plumb_error *err);

/* Makes size bytes usable. */
enum plumb_code shared_reach(struct shared *shared, uint64_t size, struct plumb_error *err);

/* Maps what the other side has made of it; more than limit bytes are refused. */
enum plumb_code shared_map(struct shared *shared, uint64_t limit, struct plumb_error *err);

/* Gives back all but the first `kept` bytes, a multiple of a page. What was in the rest is lost. */
void shared_trim(struct shared *shared, uint64_t kept);

void shared_destroy(struct shared *shared);

#endif
