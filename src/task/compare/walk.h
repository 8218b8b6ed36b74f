/* Going through the payloads of many records, or pairs of records, on several threads.
 *
 * Large tensors are cut into parts that run side by side; a payload is mapped when its first part
 * starts and let go when its last part ends, so what is in memory is what is being looked at. */
#ifndef COMPARE_WALK_H
#define COMPARE_WALK_H

#include "plumb/compare.h"

struct walk_side {
    const struct plumb_run *run;
    size_t record;
};

struct walk_item {
    struct walk_side side[2];
    unsigned sides; /* 1 or 2; 0: skip it */
};

struct walk {
    const struct walk_item *items;
    size_t count;
    unsigned threads; /* 0: as many as there are processors */
    plumb_progress_fn *progress;
    void *progress_context;
    void *context;

    /* Called once an item's payloads are there, before its parts. Refusing (with err) ends the
     * item. NULL: none is refused. */
    enum plumb_code (*accept)(void *context, size_t item, const struct plumb_payload *payloads,
                              struct plumb_error *err);

    /* Makes the state of elements [first, first+count); NULL when out of memory. */
    void *(*part)(void *context, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count);
    void (*merge)(void *state, const void *other);
    void (*release)(void *state);

    /* Called once for each item that is not skipped: with its state, or with the error that ended
     * it. */
    void (*finish)(void *context, size_t item, const struct plumb_payload *payloads, void *state,
                   const struct plumb_error *err);
};

/* PLUMB_E_NOMEM when the bookkeeping itself cannot be had. */
enum plumb_code walk_run(const struct walk *walk, struct plumb_error *err);

#endif
