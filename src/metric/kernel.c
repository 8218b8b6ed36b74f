/* Choosing kernels by what the processor can do. */
#include "metric/kernel.h"

#include "base/cpu.h"

struct kernels kernels_select(unsigned mask)
{
    struct kernels table = kernels_c;
#if defined(__x86_64__)
    if (cpu_has_avx2(mask))
        kernels_avx2(&table);
    if (cpu_has_avx512(mask))
        kernels_avx512(&table);
#elif defined(__aarch64__)
    if (cpu_has_neon(mask))
        kernels_neon(&table);
#else
    (void)mask;
#endif
    return table;
}

struct kernels kernels_current(void)
{
    return kernels_select(cpu_mask());
}
