/* The 128-bit hash of a tensor's bytes: MurmurHash3 of pieces, added up, so that parts of a tensor
 * can be hashed in any order. docs/FORMATS.md defines it. Equal hashes mean equal bytes, but for
 * somebody who makes others on purpose. */
#ifndef METRIC_HASH_H
#define METRIC_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_PIECE = 4096, HASH_BYTES = 33 }; /* bytes of a piece; room for the hash as text */

struct hash {
    uint64_t word[2];
};

/* MurmurHash3_x64_128, with a seed of 64 bits. */
struct hash hash_murmur3(const void *data, size_t size, uint64_t seed);

/* Adds the bytes that begin with piece number `piece`; all zero is the hash of nothing. Only the
 * last piece of all may be short. Hashes of parts are merged by hash_merge. */
void hash_add(struct hash *hash, const void *data, size_t size, uint64_t piece);
void hash_merge(struct hash *hash, const struct hash *other);

/* 32 hex digits, and NUL. */
void hash_text(const struct hash *hash, char text[HASH_BYTES]);

#endif
