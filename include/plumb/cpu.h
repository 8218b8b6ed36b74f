/* Which SIMD levels may be used. */
#ifndef PLUMB_CPU_H
#define PLUMB_CPU_H

#ifdef __cplusplus
extern "C" {
#endif

/* SIMD levels. The mask has a bit for each level above plain C; 0 leaves plain C only. It may be
 * set at any time between calls, for the whole process (tests, --cpu-mask, PLUMB_CPU_MASK). */
void plumb_cpu_mask(unsigned mask);
/* What the next call will use: "c", "avx2", "avx512" or "neon". */
const char *plumb_cpu_level(void);

#ifdef __cplusplus
}
#endif
#endif
