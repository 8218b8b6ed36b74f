/* Filling what was recorded of a tensor. */
#ifndef FORMAT_RECORDED_H
#define FORMAT_RECORDED_H

#include "base/arena.h"
#include "plumb/record.h"

/* What few tensors have, to be filled in: all NULL where it was not there before. NULL when out of
 * memory. */
struct plumb_recorded_rest *recorded_rest(struct plumb_recorded *recorded, struct arena *arena);

/* Sets a statistic; its text is borrowed. A number without one is taken as written. False when out
 * of memory. */
bool recorded_set_statistic(struct plumb_recorded *recorded, enum plumb_statistic which,
                            const struct plumb_value *value, struct arena *arena);

#endif
