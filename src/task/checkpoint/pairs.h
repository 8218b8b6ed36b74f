/* Pairs of weights, and what comparing them gave. */
#ifndef CHECKPOINT_PAIRS_H
#define CHECKPOINT_PAIRS_H

#include "plumb/checkpoint.h"
#include "task/checkpoint/checkpoint.h"

enum pair_state {
    PAIR_COMPARED,
    PAIR_SHAPES,     /* the shapes differ */
    PAIR_UNREADABLE, /* error says why */
    PAIR_ALONE,      /* only one side has it */
};

struct pair {
    const struct checkpoint_weight *side[2]; /* one of them NULL when alone */
    enum pair_state state;
    double l2, cosine, distance; /* distance: l2 as a share of the second's norm */
    bool has_cosine;             /* false when one side is all zero and the other is not */
    bool integers;               /* both sides are */
    bool kinds;                  /* only one side is of integers */
    const char *copies;          /* the part whose copy of the weight differs, or NULL */
    struct plumb_error error;
};

struct pairs {
    struct checkpoint ckpt[2];
    struct pair *list; /* in the order of the first checkpoint, then those of the second alone */
    size_t count;
};

/* Finds out which weight belongs to which. */
enum plumb_code pairs_match(struct pairs *pairs, struct plumb_error *err);

/* Compares the values of all pairs, on several threads. */
enum plumb_code pairs_compare(struct pairs *pairs, const struct plumb_checkpoint_options *options,
                              struct plumb_error *err);

const char *pair_name(const struct pair *pair);

/* {name: {"l2": ..., "cos": ..., "numel": ..., "shape": [...]}}; NULL when out of memory. */
char *pairs_json(const struct pairs *pairs);

#endif
