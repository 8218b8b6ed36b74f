/* The kernels for 64-bit ARM, whose processors all have NEON. */
#include "metric/hash.h"
#include "metric/vec_neon.h"
#include "plumb/metric.h"

#include <libdeflate.h>
#include <math.h>

#define relative_kernel quotient_kernel
#define widen_bytes kernel_widen_c
#define LEVEL "neon"
#define crc32_of libdeflate_crc32
#define hash_of_eight hash_eight_c
#define ALL_LOOPS(X)                                                                               \
    X(PART_ERROR)                                                                                  \
    X(PART_RANGE)                                                                                  \
    X(PART_CLOSE | PART_ABSOLUTE)                                                                  \
    X(PART_SMALL | PART_SORT)                                                                      \
    X(PART_RATIO | PART_ULP)

#include "metric/bins_neon.h"
#include "metric/kernel_tally.h"
#include "metric/singles_neon.h"

#include "metric/kernel_pair.h"

#include "metric/kernel_short.h"

#include "metric/kernel_all.h"

#include "metric/kernel_ranges.h"

/* Two lanes gain little. */
static void sketch(const double *x, size_t n, uint64_t first, double *sums, double (*fold)[4])
{
    kernels_c.sketch(x, n, first, sums, fold);
}

#include "metric/kernel_table.h"

void kernels_neon(struct kernels *table)
{
    *table = level;
}
