/* Decisions among equals: which of several equal elements sort, topk, argmax and their like
 * choose is nobody's fault. */
#ifndef VERDICT_TIES_H
#define VERDICT_TIES_H

#include "base/arena.h"
#include "plumb/op.h"

/* Where the device's index and the reference's lead to equal elements of the input, the
 * reference takes the device's, and its gradient goes there. *settled says how many they were.
 * Left as they are: indices that repeat where each may come once, and those of a stable sort.
 * unique and topk without order are put into the device's; the gradient of max pooling, maxima and
 * medians may go to any of the equals (ties_window.h). Tensors that it makes live in the
 * arena. PLUMB_E_NOMEM. */
enum plumb_code ties_settle(const struct plumb_call *call, const struct plumb_result *device,
                            struct plumb_result *bench, struct arena *arena, uint64_t *settled);

#endif
