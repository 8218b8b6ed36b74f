/* Sums and signs of version 2. */
#include "metric/sketch2.h"

#include "metric/kernel.h"

#include <string.h>

enum { GROUP = 16 };

/* Numbers of the group that are not there are 0. */
static void add_group(const double x[GROUP], uint64_t group, double *sums, double *fold)
{
    const uint64_t word = kernel_sketch_word(group);
    const size_t start = word & 255;
    double y[GROUP];
    for (size_t l = 0; l < GROUP; l++) {
        y[l] = word >> (8 + l) & 1 ? -x[l] : x[l];
        sums[(start + l) % PLUMB_SKETCH_SUMS] += y[l];
    }
    for (size_t l = 0; l < PLUMB_SKETCH_FOLD; l++)
        fold[(start + l) % PLUMB_SKETCH_FOLD] += (y[l] + y[l + 4]) + (y[l + 8] + y[l + 12]);
}

void sketch2_add(const double *x, size_t n, uint64_t first, double *sums,
                 double fold[PLUMB_SKETCH_FOLD])
{
    memset(fold, 0, PLUMB_SKETCH_FOLD * sizeof *fold);
    while (n) {
        const size_t lane = first % GROUP, m = n < GROUP - lane ? n : GROUP - lane;
        double group[GROUP] = {0};
        memcpy(group + lane, x, m * sizeof *x);
        add_group(group, first / GROUP, sums, fold);
        first += m;
        x += m;
        n -= m;
    }
}

bool sketch2_place(uint64_t index, size_t *sum)
{
    const uint64_t word = kernel_sketch_word(index / GROUP), lane = index % GROUP;
    *sum = (word + lane) % PLUMB_SKETCH_SUMS;
    return word >> (8 + lane) & 1;
}
