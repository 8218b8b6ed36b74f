/* Sums in the order in which numpy 1.24 adds a contiguous array up, one value at a time: what
 * identical last digits under --rules msprobe need. */
#ifndef MSPROBE_NUMPY_SUM_H
#define MSPROBE_NUMPY_SUM_H

#include "plumb/dtype.h"

enum { NUMPY_BLOCK = 8192 };

struct numpy_sum {
    enum plumb_dtype type; /* float64, float32 or float16; the last is added up in float32 */
    double total;
    uint64_t count;
    size_t waiting;
    double block[NUMPY_BLOCK];
};

void numpy_sum_init(struct numpy_sum *sum, enum plumb_dtype type);
void numpy_sum_add(struct numpy_sum *sum, double value);
double numpy_sum_mean(struct numpy_sum *sum); /* rounded to the type; NaN of nothing */

#endif
