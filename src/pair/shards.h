/* Tensors that several ranks hold in parts: how the parts lie in the whole, and how that is found.
 *
 * A layout says of every part which slot of the whole it fills, and which term of a sum it is.
 * Parts with the same slot and term are replicas. Nothing here reads files: parts are tensors.
 * Everything lives in the arena that is handed in; functions are pure and thread-safe on different
 * arenas. */
#ifndef PAIR_SHARDS_H
#define PAIR_SHARDS_H

#include "base/arena.h"
#include "plumb/tensor.h"

enum {
    SHARDS_SPLITS = 4,   /* that a tensor is cut by */
    SHARDS_SEGMENTS = 8, /* matrices that are fused into one */
    SHARDS_TEXT = 512,
};

enum shards_how {
    SHARDS_CONCAT, /* one slice behind the other */
    SHARDS_ZIGZAG, /* slice i of n has chunks i and 2n-1-i of 2n */
    SHARDS_FUSED,  /* each slice has its share of every segment: q k v, gate up */
};

/* One way in which an axis is cut. */
struct shards_split {
    unsigned axis;
    enum shards_how how;
    unsigned count;                   /* of slices */
    unsigned segments;                /* of FUSED; of ZIGZAG: each is in zigzag order; 0: one */
    uint32_t weight[SHARDS_SEGMENTS]; /* their sizes, as a ratio; all 0: they are equal */
};

enum shards_reduce { SHARDS_ONE, SHARDS_SUM, SHARDS_MEAN };

struct shards_layout {
    struct shards_split split[SHARDS_SPLITS]; /* the outermost first */
    unsigned splits;
    bool flat;        /* parts are rows of numbers, one behind the other */
    uint64_t total;   /* elements of a flat whole, without the padding behind them; 0: all */
    uint64_t padding; /* that many zeros */
    enum shards_reduce reduce;
    unsigned terms; /* of each sum; 1 for SHARDS_ONE */
    /* Parts are this many times too large: gradients of a loss that each rank took the mean of over
     * its own share. 0 or 1: they are not. */
    unsigned divisor;
    unsigned parts;
    unsigned *slot; /* by part: split[0] is the most significant digit */
    unsigned *term; /* by part */
};

/* Slots of the whole. */
unsigned shards_slots(const struct shards_layout *layout);

/* What every part is multiplied with. */
double shards_scale(const struct shards_layout *layout);

/* A layout without splits, all parts replicas. NULL when out of memory. */
struct shards_layout *shards_replica(struct arena *arena, unsigned parts);

/* The first part of a slot and term; layout->parts: there is none. */
unsigned shards_first(const struct shards_layout *layout, unsigned slot, unsigned term);

/* The only replica of a part; layout->parts: it has none, or several. */
unsigned shards_twin(const struct shards_layout *layout, unsigned part);

/* "concat axis 1 over ranks 0,1,2,3"; replicas are "0|2", sums "0+1". Cut to size; returns text. */
const char *shards_text(const struct shards_layout *layout, const int64_t *ranks, char *text,
                        size_t size);

/* ---- Where parts lie ------------------------------------------------------------------------- */

/* Places [from, from+length) of an axis of a part are [to, to+length) of the whole. */
struct shards_span {
    int64_t from, to, length;
};

struct shards_spans {
    struct shards_span *list;
    size_t count;
};

struct shards_plan {
    unsigned ndim;
    int64_t *shape; /* of the whole; flat ones have a single axis */
    uint64_t count;
    unsigned parts;
    struct shards_spans *spans; /* by part and axis */
};

/* Works out where the parts lie, from their shapes. PLUMB_E_ARG when these do not fit the
 * layout. */
enum plumb_code shards_plan(struct shards_plan *plan, struct arena *arena,
                            const struct shards_layout *layout,
                            const struct plumb_tensor *const *parts, struct plumb_error *err);

/* The element of the whole that element `index` of a part is. UINT64_MAX: padding. */
uint64_t shards_element(const struct shards_plan *plan, unsigned part,
                        const struct plumb_tensor *shape, uint64_t index);

/* A box that a part fills without gaps: visited in C order of the part. */
struct shards_box {
    uint64_t from, to; /* elements of part and whole, in C order */
    size_t count;      /* that follow each other in both */
};

/* Calls visit for all boxes of a part. */
void shards_boxes(const struct shards_plan *plan, unsigned part, const struct plumb_tensor *shape,
                  void (*visit)(void *context, const struct shards_box *box), void *context);

/* ---- Putting together ------------------------------------------------------------------------ */

/* The type that a whole has: that of its parts, or one that holds their sum. */
enum plumb_dtype shards_dtype(const struct shards_layout *layout, enum plumb_dtype part);

/* Copies, or adds, the elements of one part into the whole (plan->count elements of shards_dtype,
 * zeroed before the first part). Replicas are the caller's to leave out. Call it under the guard of
 * the part's file. PLUMB_E_UNSUPPORTED for types of four bits, PLUMB_E_NOMEM. */
enum plumb_code shards_put(const struct shards_plan *plan, const struct shards_layout *layout,
                           unsigned part, const struct plumb_tensor *tensor, void *whole,
                           struct plumb_error *err);

#endif
