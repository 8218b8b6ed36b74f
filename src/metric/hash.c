/* MurmurHash3 (x64, 128 bits; Austin Appleby, public domain) of pieces. */
#include "metric/hash.h"

#include "metric/kernel.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t word_at(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* One block of 16 bytes. */
static inline void mix(uint64_t h[2], const unsigned char *bytes)
{
    h[0] ^= rotate(word_at(bytes) * HASH_C1, 31) * HASH_C2;
    h[0] = (rotate(h[0], 27) + h[1]) * 5 + HASH_ADD1;
    h[1] ^= rotate(word_at(bytes + 8) * HASH_C2, 33) * HASH_C1;
    h[1] = (rotate(h[1], 31) + h[0]) * 5 + HASH_ADD2;
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 33) * HASH_SCRAMBLE1;
    x = (x ^ x >> 33) * HASH_SCRAMBLE2;
    return x ^ x >> 33;
}

static struct hash finish(const uint64_t h[2], uint64_t size)
{
    uint64_t a = h[0] ^ size, b = h[1] ^ size;
    a += b;
    b += a;
    a = scramble(a);
    b = scramble(b);
    a += b;
    return (struct hash){{a, b + a}};
}

/* Bytes that are no whole block: those that are missing would be zeros, which change nothing. */
static void mix_tail(uint64_t h[2], const unsigned char *bytes, size_t size)
{
    unsigned char tail[16] = {0};
    memcpy(tail, bytes, size);
    h[0] ^= rotate(word_at(tail) * HASH_C1, 31) * HASH_C2;
    h[1] ^= rotate(word_at(tail + 8) * HASH_C2, 33) * HASH_C1;
}

struct hash hash_murmur3(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *bytes = data;
    uint64_t h[2] = {seed, seed};
    size_t i = 0;
    for (; i + 16 <= size; i += 16)
        mix(h, bytes + i);
    if (i < size)
        mix_tail(h, bytes + i, size - i);
    return finish(h, size);
}

/* Four whole pieces side by side: each alone would wait for its own multiplications. */
static void add_four(struct hash *hash, const unsigned char *bytes, uint64_t piece)
{
    uint64_t a[2] = {piece, piece}, b[2] = {piece + 1, piece + 1};
    uint64_t c[2] = {piece + 2, piece + 2}, d[2] = {piece + 3, piece + 3};
    for (size_t i = 0; i < HASH_PIECE; i += 16) {
        mix(a, bytes + i);
        mix(b, bytes + HASH_PIECE + i);
        mix(c, bytes + 2 * HASH_PIECE + i);
        mix(d, bytes + 3 * HASH_PIECE + i);
    }
    const struct hash all[] = {finish(a, HASH_PIECE), finish(b, HASH_PIECE), finish(c, HASH_PIECE),
                               finish(d, HASH_PIECE)};
    for (size_t k = 0; k < 4; k++)
        hash_merge(hash, &all[k]);
}

uint32_t hash_eight_c(const void *data, uint64_t piece, struct hash *hash, uint32_t crc)
{
    add_four(hash, data, piece);
    add_four(hash, (const unsigned char *)data + 4 * HASH_PIECE, piece + 4);
    return libdeflate_crc32(crc, data, (size_t)HASH_SIDE * HASH_PIECE);
}

void hash_add(struct hash *hash, const struct kernels *kernels, const void *data, size_t size,
              uint64_t piece, uint32_t *crc)
{
    const size_t side = (size_t)HASH_SIDE * HASH_PIECE;
    const unsigned char *bytes = data;
    for (; size >= side; bytes += side, size -= side, piece += HASH_SIDE)
        *crc = kernels->hash_eight(bytes, piece, hash, *crc);
    *crc = kernels->crc32(*crc, bytes, size);
    for (; size >= 4 * HASH_PIECE; bytes += 4 * HASH_PIECE, size -= 4 * HASH_PIECE, piece += 4)
        add_four(hash, bytes, piece);
    for (; size; piece++) {
        size_t n = size < HASH_PIECE ? size : HASH_PIECE;
        struct hash one = hash_murmur3(bytes, n, piece);
        hash_merge(hash, &one);
        bytes += n;
        size -= n;
    }
}

void hash_merge(struct hash *hash, const struct hash *other)
{
    hash->word[0] += other->word[0];
    hash->word[1] += other->word[1];
}

void hash_text(const struct hash *hash, char text[HASH_BYTES])
{
    snprintf(text, HASH_BYTES, "%016" PRIx64 "%016" PRIx64, hash->word[0], hash->word[1]);
}
