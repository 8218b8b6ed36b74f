/* Values as bytes: what is read is what was written, and damage is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pack.h"

#include <math.h>
#include <string.h>

struct things {
    uint64_t u64;
    int64_t i64;
    uint32_t u32;
    size_t size;
    bool flag;
    unsigned small;
    double real;
    const char *text, *none;
    struct plumb_error err;
};

static void pack_things(struct pack *pack, struct things *is, struct arena *arena)
{
    pack_u64(pack, &is->u64);
    pack_i64(pack, &is->i64);
    pack_u32(pack, &is->u32);
    pack_size(pack, &is->size);
    pack_bool(pack, &is->flag);
    pack_below(pack, &is->small, 10);
    pack_real(pack, &is->real);
    pack_text(pack, &is->text, arena);
    pack_text(pack, &is->none, arena);
    pack_error(pack, &is->err);
}

static struct buf written(void)
{
    struct buf bytes = {0};
    struct pack pack = pack_writer(&bytes);
    struct things is = {.u64 = UINT64_MAX,
                        .i64 = INT64_MIN,
                        .u32 = UINT32_MAX,
                        .size = 300,
                        .flag = true,
                        .small = 9,
                        .real = -0.0,
                        .text = "a text"};
    plumb_fail_at(&is.err, PLUMB_E_FORMAT, 17, "no good");
    plumb_error_in_file(&is.err, "file.npy");
    pack_things(&pack, &is, NULL);
    assert_true(pack_good(&pack));
    return bytes;
}

static void test_round_trip(void **state)
{
    struct buf bytes = written();
    struct arena arena = {0};
    struct pack pack = pack_reader(bytes.data, bytes.size);
    struct things is = {0};
    (void)state;
    pack_things(&pack, &is, &arena);
    assert_true(pack_good(&pack));
    assert_true(is.u64 == UINT64_MAX && is.i64 == INT64_MIN && is.u32 == UINT32_MAX);
    assert_true(is.size == 300 && is.flag && is.small == 9 && is.real == 0 && signbit(is.real));
    assert_string_equal(is.text, "a text");
    assert_null(is.none);
    assert_int_equal(is.err.code, PLUMB_E_FORMAT);
    assert_int_equal(is.err.offset, 17);
    assert_string_equal(is.err.message, "no good");
    assert_string_equal(is.err.file, "file.npy");
    for (int64_t i = -70000; i < 70000; i += 7) {
        struct buf one = {0};
        int64_t back = 1, value = i;
        struct pack out = pack_writer(&one);
        pack_i64(&out, &value);
        struct pack in = pack_reader(one.data, one.size);
        pack_i64(&in, &back);
        assert_true(pack_good(&in) && back == i);
        buf_free(&one);
    }
    arena_free(&arena);
    buf_free(&bytes);
}

/* Every shorter message, and one that goes on, is bad. */
static void test_cut(void **state)
{
    struct buf bytes = written();
    (void)state;
    for (size_t size = 0; size <= bytes.size + 1; size++) {
        struct arena arena = {0};
        struct things is = {0};
        char copy[512] = {0};
        memcpy(copy, bytes.data, size < bytes.size ? size : bytes.size);
        struct pack pack = pack_reader(copy, size);
        pack_things(&pack, &is, &arena);
        assert_int_equal(pack_good(&pack), size == bytes.size);
        arena_free(&arena);
    }
    buf_free(&bytes);
}

/* Whatever is changed: nothing outside is read, and no promise is believed. */
static void test_changed(void **state)
{
    struct buf bytes = written();
    (void)state;
    for (size_t at = 0; at < bytes.size; at++)
        for (int change = 1; change < 256; change += 2) {
            struct arena arena = {0};
            struct things is = {0};
            char copy[512];
            memcpy(copy, bytes.data, bytes.size);
            copy[at] = (char)(copy[at] ^ change);
            struct pack pack = pack_reader(copy, bytes.size);
            pack_things(&pack, &is, &arena);
            assert_true(is.small < 10);
            arena_free(&arena);
        }
    buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
