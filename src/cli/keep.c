/* Memory of commands that load tensors or run operators. */
#define _GNU_SOURCE
#include "cli/cli.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void cli_keep_blocks(void)
{
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most that glibc takes */
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

void cli_keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    const size_t size = (size_t)INT_MAX / 16 * 15; /* more would be trimmed */
    const size_t step = (size_t)sysconf(_SC_PAGESIZE);
    void *range = aligned_alloc(step, size / step * step);
    if (range)
        madvise(range, size / step * step, MADV_HUGEPAGE); /* no harm where it is refused */
    free(range);
}
