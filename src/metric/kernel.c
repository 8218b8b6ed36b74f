#include "metric/kernel.h"

#include "plumb/metric.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

/* The instruction is slow in virtual machines, and its answer never changes. 2: not asked yet. */
static bool has_f16c(void)
{
    static atomic_uint known = 2;
    unsigned answer = atomic_load(&known), a, b, c, d;
    if (answer == 2) {
        /* clang's __builtin_cpu_supports does not know this one. */
        answer = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
        atomic_store(&known, answer);
    }
    return answer;
}
#endif

struct kernels kernels_select(unsigned mask)
{
    struct kernels table = kernels_c;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!(mask & 1) || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !has_f16c())
        return table;
    kernels_avx2(&table);
#else
    (void)mask;
#endif
    return table;
}

/* Every level that the processor has, until somebody says otherwise. */
static atomic_uint cpu_mask = UINT32_MAX;

void plumb_cpu_mask(unsigned mask)
{
    atomic_store(&cpu_mask, mask);
}

struct kernels kernels_current(void)
{
    return kernels_select(atomic_load(&cpu_mask));
}

const char *plumb_cpu_level(void)
{
    return kernels_current().name;
}
