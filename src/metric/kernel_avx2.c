/* The kernels for AVX2. */
#include "metric/hash.h"
#include "metric/vec_avx2.h"
#include "plumb/metric.h"

#include <libdeflate.h>
#include <math.h>

enum { TOGETHER = 1 };
#define REST_APART
#define LEVEL "avx2"
#define crc32_of libdeflate_crc32
#define hash_of_eight hash_eight_c
#define ALL_LOOPS(X)                                                                               \
    X(PART_ERROR | PART_RANGE)                                                                     \
    X(PART_CLOSE | PART_ABSOLUTE | PART_SMALL)                                                     \
    X(PART_SORT)                                                                                   \
    X(PART_RATIO | PART_ULP)

#include "metric/bins_avx2.h"
#include "metric/kernel_tally.h"

#include "metric/kernel_pair.h"

#include "metric/relative_avx2.h"

#include "metric/kernel_all.h"

#include "metric/sketch_avx2.h"

#include "metric/kernel_table.h"

void kernels_avx2(struct kernels *table)
{
    *table = level;
}
