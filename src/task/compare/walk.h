/* Going through the payloads of many records, or pairs of records, on several threads.
 *
 * Large tensors are cut into parts that run side by side; a payload is mapped when its first part
 * starts and let go when its last part ends, so what is in memory is what is being looked at. */
#ifndef COMPARE_WALK_H
#define COMPARE_WALK_H

#include "base/pack.h"
#include "crew/crew.h"
#include "plumb/compare.h"

struct walk_side {
    const struct plumb_run *run;
    size_t record;
};

struct walk_item {
    struct walk_side side[2];
    unsigned sides; /* 1 or 2; 0: skip it */
};

/* What is found out about payloads. Knows nothing of the walk, so that other processes can do it
 * too: what they need of `shared` travels. */
struct walk_kind {
    const char *name;
    size_t shared_size;

    /* Makes the state of elements [first, first+count); NULL when out of memory. */
    void *(*part)(const void *shared, const struct plumb_payload *payloads, uint64_t first,
                  uint64_t count);
    void (*merge)(void *state, const void *other);
    void (*release)(void *state);

    /* Both directions (base/pack.h). Reading a state: into one of no elements. */
    void (*pack_shared)(struct pack *pack, void *shared);
    void *(*empty)(const void *shared, const struct plumb_tensor tensors[2]);
    void (*pack_state)(struct pack *pack, void *state);
    /* Whether such payloads may be put into part(); NULL: all. */
    bool (*fits)(const struct plumb_tensor tensors[2]);
};

extern const struct walk_kind walk_pairs, walk_kept, walk_summary;

struct walk {
    const struct walk_kind *kind;
    const void *shared; /* what the kind's functions get */
    const struct walk_item *items;
    size_t count;
    unsigned threads;        /* 0: as many as there are processors */
    struct plumb_crew *crew; /* processes that share the work; NULL: this one alone */
    plumb_progress_fn *progress;
    void *progress_context;
    void *context;

    /* Called once an item's payloads are there, before its parts; only their types and shapes may
     * be looked at. Refusing (with err) ends the item. NULL: none is refused. */
    enum plumb_code (*accept)(void *context, size_t item, const struct plumb_payload *payloads,
                              struct plumb_error *err);

    /* Called once for each item that is not skipped: with its state, or with the error that ended
     * it; of the payloads, only types and shapes may be looked at. */
    void (*finish)(void *context, size_t item, const struct plumb_payload *payloads, void *state,
                   const struct plumb_error *err);
};

/* PLUMB_E_NOMEM when the bookkeeping itself cannot be had. */
enum plumb_code walk_run(const struct walk *walk, struct plumb_error *err);

/* The bytes of an item's payloads. */
uint64_t walk_bytes(const struct walk_item *item);

/* walk_run with a crew (spread.c). */
enum plumb_code walk_spread(const struct walk *walk, struct plumb_error *err);

#endif
