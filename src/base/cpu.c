/* What the processor can do, and the mask that says how much of it is used. */
#include "base/cpu.h"

#include "plumb/cpu.h"

#include <limits.h>
#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>

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

bool cpu_has_avx2(unsigned mask)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return (mask & 1) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           has_f16c();
#else
    (void)mask;
    return false;
#endif
}

bool cpu_has_avx512(unsigned mask)
{
#if defined(__x86_64__)
    return (mask & 2) && cpu_has_avx2(mask) && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("gfni") &&
           __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
#else
    (void)mask;
    return false;
#endif
}

bool cpu_has_neon(unsigned mask)
{
#if defined(__aarch64__)
    return mask & 1;
#else
    (void)mask;
    return false;
#endif
}

static atomic_uint mask_in_force = UINT_MAX;

void plumb_cpu_mask(unsigned mask)
{
    atomic_store(&mask_in_force, mask);
}

unsigned cpu_mask(void)
{
    return atomic_load(&mask_in_force);
}

const char *plumb_cpu_level(void)
{
    const unsigned mask = cpu_mask();
    return cpu_has_avx512(mask) ? "avx512"
           : cpu_has_avx2(mask) ? "avx2"
           : cpu_has_neon(mask) ? "neon"
                                : "c";
}
