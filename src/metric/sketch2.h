/* Sums and signs of version 2, which condensed files of forms 3 and 4 have: to compare values with
 * those. All else is as in later versions. */
#ifndef METRIC_SKETCH2_H
#define METRIC_SKETCH2_H

#include "plumb/sketch.h"

#include <stdbool.h>
#include <stddef.h>

/* Adds numbers [first, first+n) of a tensor to 256 sums, and sets fold to the sums of them all
 * whose sums have the same number modulo 4. */
void sketch2_add(const double *x, size_t n, uint64_t first, double *sums,
                 double fold[PLUMB_SKETCH_FOLD]);

/* The sum of one number; true when it is subtracted. */
bool sketch2_place(uint64_t index, size_t *sum);

#endif
