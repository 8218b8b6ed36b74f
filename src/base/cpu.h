/* What the processor can do, and how much of it may be used (plumb_cpu_mask). Thread-safe. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

/* AVX2, FMA and half-precision conversions are there and bit 0 of the mask is set. */
bool cpu_has_avx2(unsigned mask);

/* All of that, AVX-512F, BW, DQ, VL, VBMI and BITALG, GFNI and VPCLMULQDQ, which came together, and
 * bit 1 as well. */
bool cpu_has_avx512(unsigned mask);

/* The processor is a 64-bit ARM, all of which have NEON, and bit 0 of the mask is set. */
bool cpu_has_neon(unsigned mask);

/* The mask in force: every level, until plumb_cpu_mask says otherwise. */
unsigned cpu_mask(void);

#endif
