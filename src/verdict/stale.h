/* Whether a tensor is another one again: a buffer that was not written, or an input handed back. */
#ifndef VERDICT_STALE_H
#define VERDICT_STALE_H

#include "plumb/tensor.h"

/* True when all numbers of got are those of other, up to one unit in the last place of the coarser
 * of the two types, and numbers from other places would not do: tensors of one number, of few
 * different ones, or of fewer than about five elements never are. The shapes may differ, the number
 * of elements not. Takes no memory. Thread-safe. */
bool pattern_is_stale(const struct plumb_tensor *got, const struct plumb_tensor *other);

/* The same with an error beside that unit, relative to the mean magnitude: tensors that were
 * computed in another way. */
bool stale_within(const struct plumb_tensor *got, const struct plumb_tensor *other,
                  double relative);

/* How often numbers that have nothing to do with each other fit as well: the logarithm of the
 * chance that n all do, when hits of tries did. */
double chance_log(uint64_t n, uint64_t hits, uint64_t tries);

#endif
