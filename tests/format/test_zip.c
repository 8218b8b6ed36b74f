#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "format/zip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* A small archive whose every field can be made to lie. */
struct member {
    const char *name, *data;
    uint16_t method, flags;
    uint64_t name_length;       /* 0: that of name */
    uint32_t size, packed, crc; /* what the directory says; 0: the truth */
    uint32_t shift;             /* added to the offset of the header */
    const char *local_name;     /* NULL: the same */
};

struct spec {
    struct member members[4];
    size_t count;
    uint16_t promised; /* members more than there are */
    uint16_t disk;
    size_t comment;
    uint32_t directory_shift;
};

static void put(struct buf *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8) {
        unsigned char byte = (unsigned char)value;
        buf_append(out, &byte, 1);
    }
}

static void put_fields(struct buf *out, const struct member *m)
{
    uint32_t length = (uint32_t)strlen(m->data);
    put(out, m->flags, 2);
    put(out, m->method, 2);
    put(out, 0, 4);
    put(out, m->crc ? m->crc : libdeflate_crc32(0, m->data, length), 4);
    put(out, m->packed ? m->packed : length, 4);
    put(out, m->size ? m->size : length, 4);
}

static void build(struct buf *out, const struct spec *spec)
{
    *out = (struct buf){0};
    uint64_t at[4];
    for (size_t i = 0; i < spec->count; i++) {
        const struct member *m = &spec->members[i];
        const char *name = m->local_name ? m->local_name : m->name;
        uint64_t length = m->name_length && !m->local_name ? m->name_length : strlen(name);
        at[i] = out->size;
        put(out, 0x04034b50, 4);
        put(out, 20, 2);
        put_fields(out, m);
        put(out, length, 2);
        put(out, 3, 2);
        buf_append(out, name, length);
        buf_append(out, "pad", 3);
        buf_text(out, m->data);
    }
    uint64_t directory = out->size;
    for (size_t i = 0; i < spec->count; i++) {
        const struct member *m = &spec->members[i];
        uint64_t length = m->name_length ? m->name_length : strlen(m->name);
        put(out, 0x02014b50, 4);
        put(out, 20, 2);
        put(out, 20, 2);
        put_fields(out, m);
        put(out, length, 2);
        put(out, 0, 8); /* extra field, comment, disk, attributes */
        put(out, 0, 4);
        put(out, at[i] + m->shift, 4);
        buf_append(out, m->name, length);
    }
    uint64_t size = out->size - directory;
    put(out, 0x06054b50, 4);
    put(out, spec->disk, 2);
    put(out, 0, 2);
    put(out, spec->count + spec->promised, 2);
    put(out, spec->count + spec->promised, 2);
    put(out, size, 4);
    put(out, directory + spec->directory_shift, 4);
    put(out, spec->comment, 2);
    buf_repeat(out, 'c', spec->comment);
    assert_false(out->failed);
}

static struct plumb_file file_of(const struct buf *bytes)
{
    return (struct plumb_file){.data = (const uint8_t *)bytes->data, .size = bytes->size};
}

static void refuse(const struct spec *spec, enum plumb_code code, const char *text)
{
    struct buf bytes;
    build(&bytes, spec);
    struct plumb_file file = file_of(&bytes);
    struct arena arena = {0};
    struct zip zip;
    struct plumb_error err = {0};
    assert_int_equal(zip_open(&zip, &arena, &file, &err), code);
    if (!strstr(err.message, text))
        fail_msg("'%s' does not say '%s'", err.message, text);
    assert_true(err.offset <= file.size);
    arena_free(&arena);
    buf_free(&bytes);
}

static void members_are_found(void **state)
{
    (void)state;
    for (size_t comment = 0; comment <= 65535; comment += 65535) {
        struct spec spec = {.members = {{.name = "a/x", .data = "hello"},
                                        {.name = "b:..c/.d", .data = ""},
                                        {.name = "a/", .data = ""}},
                            .count = 3,
                            .comment = comment};
        struct buf bytes;
        build(&bytes, &spec);
        struct plumb_file file = file_of(&bytes);
        struct arena arena = {0};
        struct zip zip;
        struct plumb_error err;
        assert_int_equal(zip_open(&zip, &arena, &file, &err), PLUMB_OK);
        assert_int_equal(zip.count, 3);
        const struct zip_entry *entry = zip_find(&zip, "a/x", 3);
        assert_ptr_equal(entry, &zip.entries[0]);
        assert_int_equal(entry->offset, 30 + 3 + 3);
        assert_int_equal(entry->size, 5);
        char data[5];
        assert_int_equal(zip_inflate(entry, &file, data, &err), PLUMB_OK);
        assert_memory_equal(data, "hello", 5);
        assert_null(zip_find(&zip, "a/y", 3));
        zip_close(&zip);
        arena_free(&arena);
        buf_free(&bytes);
    }
}

static void names_that_leave_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"..", "../x", "a/../x", "a/..", "/etc/passwd", "a\\b", "C:/x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct spec spec = {.members = {{.name = bad[i], .data = "data"}}, .count = 1};
        refuse(&spec, PLUMB_E_FORMAT, "member name");
    }
    struct spec nul = {.members = {{.name = "a\0b", .data = "data", .name_length = 3}}, .count = 1};
    refuse(&nul, PLUMB_E_FORMAT, "member name");
    struct spec twice = {.members = {{.name = "a", .data = "data"}, {.name = "a", .data = "data"}},
                         .count = 2};
    refuse(&twice, PLUMB_E_FORMAT, "two members called 'a'");
    struct spec other = {.members = {{.name = "a", .data = "data", .local_name = "b"}}, .count = 1};
    refuse(&other, PLUMB_E_FORMAT, "another name");
}

static void members_that_overlap_are_refused(void **state)
{
    (void)state;
    /* The first one's data ends inside the header of the second. */
    struct spec inside = {.members = {{.name = "a", .data = "0123", .size = 5, .packed = 5},
                                      {.name = "b", .data = "x"}},
                          .count = 2};
    refuse(&inside, PLUMB_E_FORMAT, "'a' and 'b' overlap");
    struct spec directory = {.members = {{.name = "a", .data = "0123", .size = 5, .packed = 5}},
                             .count = 1};
    refuse(&directory, PLUMB_E_FORMAT, "runs into the directory");
    struct spec outside = {.members = {{.name = "a", .data = "0123", .shift = 1000}}, .count = 1};
    refuse(&outside, PLUMB_E_FORMAT, "outside the archive's data");
    struct spec nowhere = {.members = {{.name = "a", .data = "0123", .shift = 1}}, .count = 1};
    refuse(&nowhere, PLUMB_E_FORMAT, "no header of member 'a'");
}

static void directories_that_lie_are_refused(void **state)
{
    (void)state;
    struct spec more = {.members = {{.name = "a", .data = "x"}}, .count = 1, .promised = 1};
    refuse(&more, PLUMB_E_FORMAT, "2 members are promised");
    struct spec fewer = {
        .members = {{.name = "a", .data = "x"}}, .count = 1, .promised = (uint16_t)-1};
    refuse(&fewer, PLUMB_E_FORMAT, "goes on after the 0 members");
    struct spec disk = {.members = {{.name = "a", .data = "x"}}, .count = 1, .disk = 1};
    refuse(&disk, PLUMB_E_UNSUPPORTED, "several disks");
    struct spec far = {.members = {{.name = "a", .data = "x"}}, .count = 1, .directory_shift = 1};
    refuse(&far, PLUMB_E_FORMAT, "does not fit");
    struct spec secret = {.members = {{.name = "a", .data = "x", .flags = 1}}, .count = 1};
    refuse(&secret, PLUMB_E_UNSUPPORTED, "encrypted");
}

/* Opens an archive of one member and tries to unpack it. */
static void unpack_fails(struct member member, enum plumb_code code, const char *text)
{
    struct spec spec = {.members = {{0}}, .count = 1};
    spec.members[0] = member;
    struct buf bytes;
    build(&bytes, &spec);
    struct plumb_file file = file_of(&bytes);
    struct arena arena = {0};
    struct zip zip;
    struct plumb_error err = {0};
    assert_int_equal(zip_open(&zip, &arena, &file, &err), PLUMB_OK);
    char *data = malloc(4096);
    assert_non_null(data);
    assert_int_equal(zip_inflate(&zip.entries[0], &file, data, &err), code);
    if (!strstr(err.message, text))
        fail_msg("'%s' does not say '%s'", err.message, text);
    free(data);
    zip_close(&zip);
    arena_free(&arena);
    buf_free(&bytes);
}

static void members_that_lie_are_refused_when_used(void **state)
{
    (void)state;
    unpack_fails((struct member){.name = "a", .data = "x", .method = 12}, PLUMB_E_UNSUPPORTED,
                 "method 12");
    unpack_fails((struct member){.name = "a", .data = "x", .size = 2}, PLUMB_E_FORMAT,
                 "promises 2 bytes");
    unpack_fails((struct member){.name = "a", .data = "x", .crc = 5}, PLUMB_E_FORMAT, "CRC-32");
    unpack_fails((struct member){.name = "a", .data = "x", .method = 8, .size = 4000},
                 PLUMB_E_FORMAT, "cannot hold");
    unpack_fails((struct member){.name = "a", .data = "noise", .method = 8, .size = 4000},
                 PLUMB_E_FORMAT, "damaged");
}

/* The beginning of a member can be had without room for the rest of it. */
static void heads_are_unpacked(void **state)
{
    (void)state;
    enum { SIZE = 100000, ROOM = 1000 };
    char *plain = malloc(SIZE), *packed = malloc(SIZE);
    assert_non_null(plain);
    assert_non_null(packed);
    for (int i = 0; i < SIZE; i++)
        plain[i] = (char)((unsigned)i * (unsigned)i >> 3);
    struct libdeflate_compressor *deflater = libdeflate_alloc_compressor(6);
    size_t length = libdeflate_deflate_compress(deflater, plain, SIZE, packed, SIZE);
    libdeflate_free_compressor(deflater);
    assert_true(length > 0);
    struct plumb_file file = {.data = (const uint8_t *)packed, .size = length};
    struct zip_entry entry = {
        .name = "a", .method = ZIP_DEFLATED, .packed = length, .size = SIZE, .offset = 0};
    char head[ROOM];
    size_t got = 0;
    struct plumb_error err;
    assert_int_equal(zip_inflate_head(&entry, &file, head, ROOM, &got, &err), PLUMB_OK);
    assert_true(got >= ROOM / 2 && got <= ROOM);
    assert_memory_equal(head, plain, got);
    free(plain);
    free(packed);
}

static void first_names(void **state)
{
    (void)state;
    struct spec spec = {.members = {{.name = "d/", .data = ""},
                                    {.name = "d/e/", .data = ""},
                                    {.name = "d/f", .data = "x"}},
                        .count = 3};
    struct buf bytes;
    build(&bytes, &spec);
    size_t length = 0;
    const char *name = zip_first_name((const uint8_t *)bytes.data, bytes.size, &length);
    assert_non_null(name);
    assert_int_equal(length, 3);
    assert_memory_equal(name, "d/f", 3);
    for (size_t n = 0; n < 2 * 30 + 2 + 4 + 2 * 3 + 30 + 3; n++)
        assert_null(zip_first_name((const uint8_t *)bytes.data, n, &length));
    buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(names_that_leave_are_refused),
        cmocka_unit_test(members_that_overlap_are_refused),
        cmocka_unit_test(directories_that_lie_are_refused),
        cmocka_unit_test(members_that_lie_are_refused_when_used),
        cmocka_unit_test(heads_are_unpacked),
        cmocka_unit_test(first_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
