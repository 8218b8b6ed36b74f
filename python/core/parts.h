/* Walks through a tensor's memory in parts, on as many threads as help. */
#ifndef CORE_PARTS_H
#define CORE_PARTS_H

#include "plumb/metric.h"

#include <stdint.h>

/* Below THREADED_BYTES a second thread costs more than it saves. */
enum { THREADED_BYTES = 1 << 20, PART = 128 * PLUMB_METRIC_BLOCK, MAX_THREADS = 4 };

/* What part number i with this CRC-32 adds to the mark of a tensor: parts may come in any order and
 * on any thread, so marks are sums. */
static inline uint64_t part_mark(uint32_t crc, uint64_t i)
{
    return (crc + UINT64_C(1)) * (2 * i + UINT64_C(0x9e3779b97f4a7c15));
}

#endif
