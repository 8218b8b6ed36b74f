/* Large blocks of memory by whole pages, and a store of those that were given back, to be used
 * again: the system clears every page that it hands out, which takes longer than most operators
 * take to fill it. */
#ifndef BASE_SPARES_H
#define BASE_SPARES_H

#include <pthread.h>
#include <stddef.h>

enum { SPARES_MOST = 32 };

struct spare {
    void *at;
    size_t length;
};

/* Any number of threads may use one store. All of the blocks, in use or not, never take more than
 * those in use have taken at some time: the store makes room before it asks for more. What waits in
 * it the system may take back whenever it is short of memory. */
struct spares {
    pthread_mutex_t lock;
    size_t limit; /* bytes that may wait */
    size_t used, peak;
    size_t waiting; /* bytes */
    unsigned n;
    struct spare of[SPARES_MOST]; /* the oldest first */
};

#define SPARES(bytes)                                                                              \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .limit = (bytes)                                        \
    }

/* At least `size` bytes that begin at a large page, all zero unless *dirty is set; *length: how
 * many. From `s` if that has a block that fits; NULL: there is no store. Returns NULL when there is
 * no memory. */
void *spares_take(struct spares *s, size_t size, size_t *length, _Bool *dirty);

/* Gives a block back: to the store it came from, or to the system. */
void spares_give(struct spares *s, void *block, size_t length);

/* A block of that length has been moved into another one, and is no more. */
void spares_shrunk(struct spares *s, size_t length);

#endif
