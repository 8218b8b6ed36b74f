/* The parts of a Megatron checkpoint, opened. */
#ifndef CHECKPOINT_PARTS_H
#define CHECKPOINT_PARTS_H

#include "task/checkpoint/checkpoint.h"

struct sizes {
    size_t tp, pp, ep; /* tensor, pipeline, expert parallel; at least 1 each */
    int64_t experts;   /* in all; 0 when the checkpoint does not say */
    bool gated;        /* linear_fc1 is two matrices, one above the other */
};

struct part {
    const struct plumb_run *run; /* NULL when it could not be opened */
    const char *where;           /* "mp_rank_00_001" */
    size_t tp, pp, ep;
    const char **names; /* a record each; NULL for what is no weight */
    size_t *chunks;
};

struct parts {
    struct sizes sizes;
    struct part *list; /* ep * pp * tp of them, tp runs fastest */
    size_t count;
};

/* Opens all parts. One that is missing or unreadable is a fault of the checkpoint; none at all is
 * an error. */
enum plumb_code parts_open(struct parts *parts, struct checkpoint *ckpt, const char *folder,
                           struct plumb_error *err);

#endif
