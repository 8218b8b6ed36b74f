/* Choices among equals within windows: of max pooling, and of maxima and medians over dimensions.
 */
#ifndef VERDICT_TIES_WINDOW_H
#define VERDICT_TIES_WINDOW_H

#include "base/arena.h"
#include "plumb/op.h"

/* Where equal elements of a window could each have been chosen, the reference takes what the device
 * chose: the indices of max pooling; and the gradient, which may go to any of them, and be shared,
 * as long as all of it arrives. Adds to *settled. PLUMB_E_NOMEM. */
enum plumb_code ties_settle_windows(const struct plumb_call *call,
                                    const struct plumb_result *device, struct plumb_result *bench,
                                    struct arena *arena, uint64_t *settled);

#endif
