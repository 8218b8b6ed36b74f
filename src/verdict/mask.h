/* Which elements an operator dropped at random, as its results show, and whether that may be
 * chance.
 *
 * Which ones a device drops is its own affair; how many, and that they lie anywhere, is not. */
#ifndef VERDICT_MASK_H
#define VERDICT_MASK_H

#include "base/arena.h"
#include "plumb/op.h"

/* Unknown: kept and dropped would be the same; in doubt: almost the same. */
enum mask_choice { MASK_UNKNOWN, MASK_KEPT, MASK_DROPPED, MASK_IN_DOUBT = 4 };

struct mask {
    uint8_t *choices; /* of the elements of the first result */
    uint64_t n;
    uint64_t known, dropped;
    uint64_t each;   /* elements that share a draw: one, or those of a channel */
    uint64_t traces; /* dropped elements that are not what is left of one, where that is zero */
};

/* Draws that keep, or drop, everything. */
extern const struct plumb_draws mask_keep_all, mask_drop_all;

/* Finds the mask of `got` between what the call gives when everything is kept, and when everything
 * is dropped; kept must have a first result. False when memory runs out. */
bool mask_find(struct mask *mask, const char *api, const struct plumb_result *got,
               const struct plumb_result *kept, const struct plumb_result *dropped,
               struct arena *arena);

/* Elements of x that share a draw of that operator. */
uint64_t mask_elements_a_draw(const char *api, const struct plumb_tensor *x);

/* Channels of which only a part was dropped. */
uint64_t mask_torn(const struct mask *mask);

/* The share that was dropped, of those that are known. */
double mask_share(const struct mask *mask);

/* The same mask as draws: as often as it is run, a call makes the same choices. */
struct mask_replay {
    const struct mask *mask;
    uint64_t next;
};
uint32_t mask_next(void *replay);

/* What no chance of one in 10^9 explains when each draw drops with probability p: too many, too
 * few, too many in a row, column or block, or choices that repeat. Empty when there is nothing to
 * say. row: elements in a row of the result. False when memory runs out. */
bool mask_suspicion(const struct mask *mask, double p, uint64_t row, char *text, size_t size);

#endif
