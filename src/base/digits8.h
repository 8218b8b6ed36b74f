/* Eight decimal digits at once: a word of eight bytes as they lie in memory. */
#ifndef BASE_DIGITS8_H
#define BASE_DIGITS8_H

#include <stdbool.h>
#include <stdint.h>

/* Are all of them digits? A digit has 3 in its upper half, and still has it when 6 is added. */
static inline bool digits8_are(uint64_t word)
{
    const uint64_t upper = 0xf0f0f0f0f0f0f0f0u, threes = 0x3030303030303030u;
    return (word & upper) == threes && ((word + 0x0606060606060606u) & upper) == threes;
}

/* Their value: pairs, then fours, then all. */
static inline uint32_t digits8_value(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    word = (word & 0x0f0f0f0f0f0f0f0fu) * (1 + (10 << 8)) >> 8;
    word = (word & 0x00ff00ff00ff00ffu) * (1 + (100 << 16)) >> 16;
    return (uint32_t)((word & 0x0000ffff0000ffffu) * (1 + (UINT64_C(10000) << 32)) >> 32);
}

#endif
