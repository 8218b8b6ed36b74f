/* The kernels for AVX-512 that processors have since Ice Lake and Zen 4. */
#include "metric/vec_avx512.h"
#include "plumb/metric.h"

#include <math.h>

#define LEVEL "avx512"
#define ALL_LOOPS(X) X(ALL_PARTS)
#define NEAR_KERNEL "metric/near_avx512.h"

#include "metric/bins_avx512.h"
#include "metric/bytes_avx512.h"
#include "metric/crc_avx512.h"
#include "metric/floats_x86.h"
#include "metric/singles_avx512.h"

#include "metric/kernel_tally.h"

#include "metric/kernel_pair.h"

#include "metric/relative_avx512.h"

#include "metric/kernel_short.h"

#include "metric/kernel_all.h"

#include "metric/hash_avx512.h"
#include "metric/ranges_avx512.h"
#include "metric/sketch_avx512.h"

#include "metric/kernel_table.h"

void kernels_avx512(struct kernels *table)
{
    *table = level;
}
