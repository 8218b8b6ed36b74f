/* The 128-bit hash: known values of MurmurHash3, and that parts add up. The CRC-32 of the same
 * bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/hash.h"
#include "metric/kernel.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

static struct kernels kernels;

/* With a CRC-32 on the way, which must be right, too. */
static void add(struct hash *hash, const void *data, size_t size, uint64_t piece)
{
    uint32_t crc = 0x12345678;
    hash_add(hash, &kernels, data, size, piece, &crc);
    assert_int_equal(crc, kernels_c.crc32(0x12345678, data, size));
}

static void check(const void *data, size_t size, const char *wanted)
{
    struct hash hash = {0};
    char text[HASH_BYTES];
    add(&hash, data, size, 0);
    hash_text(&hash, text);
    assert_string_equal(text, wanted);
}

static void test_known(void **state)
{
    (void)state;
    check("", 0, "00000000000000000000000000000000");
    check("The quick brown fox jumps over the lazy dog", 43, "e34bbc7bbc071b6c7a433ca9c49a9347");
    check("The quick brown fox jumps over the lazy cog", 43, "658ca970ff85269a43fee3eaa68e5c3e");
    unsigned char bytes[3 * HASH_PIECE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i % 251);
    check(bytes, sizeof bytes, "82541988163dfebcdc27247f33990ab0");
    check(bytes, 5000, "b2142d8a99974385632bc2451f99b5e8");
}

static void test_parts(void **state)
{
    (void)state;
    enum { SIZE = 9 * HASH_PIECE + 123 };
    static unsigned char bytes[SIZE];
    uint64_t seed = 1;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)random_below(&seed, 256);
    struct hash whole = {0}, parts = {0}, other = {0};
    add(&whole, bytes, SIZE, 0);
    add(&other, bytes + 4 * HASH_PIECE, SIZE - 4 * HASH_PIECE, 4);
    add(&parts, bytes, 4 * HASH_PIECE, 0);
    hash_merge(&parts, &other);
    assert_memory_equal(&whole, &parts, sizeof whole);
    for (size_t i = 0; i < SIZE; i += 97) { /* every bit counts, and so does its place */
        struct hash changed = {0};
        bytes[i] ^= 1;
        add(&changed, bytes, SIZE, 0);
        assert_true(changed.word[0] != whole.word[0] && changed.word[1] != whole.word[1]);
        bytes[i] ^= 1;
    }
    struct hash moved = {0};
    add(&moved, bytes + HASH_PIECE, HASH_PIECE, 0);
    add(&moved, bytes, HASH_PIECE, 1);
    struct hash straight = {0};
    add(&straight, bytes, 2 * HASH_PIECE, 0);
    assert_true(moved.word[0] != straight.word[0]);
}

/* The kernel of every level gives what plain C does, from any piece on. */
static void test_levels(void **state)
{
    (void)state;
    enum { SIZE = HASH_SIDE * HASH_PIECE };
    static unsigned char bytes[SIZE + 8];
    uint64_t seed = 2;
    for (int round = 0; round < 50; round++) {
        const uint64_t piece = random_bits(&seed) >> (round % 64);
        struct hash wanted = {{round ? random_bits(&seed) : 0, 1}}, got = wanted;
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)random_below(&seed, 256);
        const unsigned char *start = bytes + round % 8;
        for (uint64_t k = 0; k < HASH_SIDE; k++) {
            const struct hash one = hash_murmur3(start + k * HASH_PIECE, HASH_PIECE, piece + k);
            hash_merge(&wanted, &one);
        }
        const uint32_t crc = (uint32_t)random_bits(&seed);
        assert_int_equal(kernels.hash_eight(start, piece, &got, crc),
                         kernels_c.crc32(crc, start, SIZE));
        assert_memory_equal(&wanted, &got, sizeof got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_levels)};
    int failed = 0;
    kernels = kernels_c;
    failed += cmocka_run_group_tests_name("c", tests, NULL, NULL);
    kernels = kernels_current();
    return failed + cmocka_run_group_tests_name(kernels.name, tests, NULL, NULL);
}
