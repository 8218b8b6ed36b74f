/* How many elements have other bits: plain C, which compilers turn into the vectors of each
 * level. */
#ifndef METRIC_KERNEL_BITS_H
#define METRIC_KERNEL_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The counter is as wide as the elements where a block's number fits, so that it needs no more
 * vectors than they do. */
#define COUNT_DIFFERING(type, counter)                                                             \
    {                                                                                              \
        counter differ = 0;                                                                        \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x, y;                                                                             \
            memcpy(&x, a + i * sizeof x, sizeof x);                                                \
            memcpy(&y, b + i * sizeof y, sizeof y);                                                \
            differ = (counter)(differ + (x != y));                                                 \
        }                                                                                          \
        return differ;                                                                             \
    }

static uint64_t differing(const void *t, const void *g, size_t n, unsigned bits)
{
    const unsigned char *a = t, *b = g;
    uint64_t count = 0;
    switch (bits) {
    case 4:
        for (size_t i = 0; i < n; i++) {
            const unsigned x = a[i / 2] ^ b[i / 2];
            count += (i % 2 ? x >> 4 : x & 15u) != 0;
        }
        return count;
    case 8:
        COUNT_DIFFERING(uint8_t, uint16_t)
    case 16:
        COUNT_DIFFERING(uint16_t, uint16_t)
    case 32:
        COUNT_DIFFERING(uint32_t, uint32_t)
    case 64:
        COUNT_DIFFERING(uint64_t, uint64_t)
    default:
        for (size_t i = 0; i < n; i++)
            count += memcmp(a + i * bits / 8, b + i * bits / 8, bits / 8) != 0;
        return count;
    }
}

#endif
