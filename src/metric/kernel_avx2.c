/* The kernels for AVX2. */
#include "metric/hash.h"
#include "metric/vec_avx2.h"
#include "plumb/metric.h"

#include <libdeflate.h>
#include <math.h>

#define widen_bytes kernel_widen_c
#define LEVEL "avx2"
#define crc32_of libdeflate_crc32
#define hash_of_eight hash_eight_c
#define ALL_LOOPS(X) X(ALL_PARTS)

#include "metric/bins_avx2.h"
#include "metric/crc_avx2.h"
#include "metric/kernel_tally.h"
#include "metric/singles_avx2.h"

#include "metric/kernel_pair.h"

#include "metric/relative_avx2.h"

#include "metric/kernel_short.h"

#include "metric/kernel_all.h"

#include "metric/kernel_ranges.h"
#include "metric/sketch_avx2.h"

#include "metric/kernel_table.h"

void kernels_avx2(struct kernels *table)
{
    *table = level;
    if (__builtin_cpu_supports("vpclmulqdq"))
        table->crc32 = crc32_wide;
}
