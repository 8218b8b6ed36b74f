/* The Mersenne Twister of Matsumoto and Nishimura (1998), seeded as their init_genrand does. */
#include "exec/values/values.h"

enum { N = 624, M = 397 };

void mt19937_init(struct mt19937 *mt, uint32_t seed)
{
    mt->state[0] = seed;
    for (uint32_t i = 1; i < N; i++) {
        uint32_t before = mt->state[i - 1];
        mt->state[i] = 1812433253u * (before ^ before >> 30) + i;
    }
    mt->next = N;
}

/* The bits of two neighbours, times the matrix of the recurrence. */
static uint32_t twist(uint32_t high, uint32_t low)
{
    uint32_t joined = (high & 0x80000000u) | (low & 0x7FFFFFFFu);
    return joined >> 1 ^ (low & 1 ? 0x9908B0DFu : 0);
}

static void renew(uint32_t *s)
{
    for (unsigned i = 0; i < N - M; i++)
        s[i] = s[i + M] ^ twist(s[i], s[i + 1]);
    for (unsigned i = N - M; i < N - 1; i++)
        s[i] = s[i + M - N] ^ twist(s[i], s[i + 1]);
    s[N - 1] = s[M - 1] ^ twist(s[N - 1], s[0]);
}

uint32_t mt19937_next(struct mt19937 *mt)
{
    if (mt->next >= N) {
        renew(mt->state);
        mt->next = 0;
    }
    uint32_t y = mt->state[mt->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680u;
    y ^= y << 15 & 0xEFC60000u;
    return y ^ y >> 18;
}
