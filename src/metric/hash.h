/* The 128-bit hash of a tensor's bytes: MurmurHash3 of pieces, added up, so that parts of a tensor
 * can be hashed in any order. docs/FORMATS.md defines it. Equal hashes mean equal bytes, but for
 * somebody who makes others on purpose. */
#ifndef METRIC_HASH_H
#define METRIC_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_PIECE = 4096, HASH_BYTES = 33 }; /* bytes of a piece; room for the hash as text */

/* Whole pieces that kernels hash side by side. */
enum { HASH_SIDE = 8 };

/* The constants of MurmurHash3. */
#define HASH_C1 UINT64_C(0x87c37b91114253d5)
#define HASH_C2 UINT64_C(0x4cf5ad432745937f)
#define HASH_SCRAMBLE1 UINT64_C(0xff51afd7ed558ccd)
#define HASH_SCRAMBLE2 UINT64_C(0xc4ceb9fe1a85ec53)
enum { HASH_ADD1 = 0x52dce729, HASH_ADD2 = 0x38495ab5 };

struct hash {
    uint64_t word[2];
};

struct kernels;

/* MurmurHash3_x64_128, with a seed of 64 bits. */
struct hash hash_murmur3(const void *data, size_t size, uint64_t seed);

/* Adds the bytes that begin with piece number `piece`; all zero is the hash of nothing. Only the
 * last piece of all may be short. Hashes of parts are merged by hash_merge. The same bytes are
 * added to a CRC-32, since both together take little longer than the hash. */
void hash_add(struct hash *hash, const struct kernels *kernels, const void *data, size_t size,
              uint64_t piece, uint32_t *crc);
void hash_merge(struct hash *hash, const struct hash *other);

/* Adds HASH_SIDE whole pieces in plain C: what the kernel of that name does. */
uint32_t hash_eight_c(const void *data, uint64_t piece, struct hash *hash, uint32_t crc);

/* 32 hex digits, and NUL. */
void hash_text(const struct hash *hash, char text[HASH_BYTES]);

#endif
