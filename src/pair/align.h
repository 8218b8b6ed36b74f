/* The longest common subsequence of two lists of numbers. */
#ifndef PAIR_ALIGN_H
#define PAIR_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* partner[i] becomes the place in b of a[i], or SIZE_MAX; places ascend. Where the lists have very
 * little in common it may be shorter than the longest, so that the work stays bounded. False
 * when out of memory. */
bool match_align(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count,
                 size_t *partner);

#endif
