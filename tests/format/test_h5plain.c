/* HDF5 files that are listed without libhdf5: what is said of them is what libhdf5 finds. */
#define _GNU_SOURCE
#include "format/h5plain.h"
#include "format/h5proc.h"
#include "h5_open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

struct content {
    uint8_t *bytes;
    size_t size;
};

static struct content read_all(const char *path)
{
    struct content content = {.bytes = NULL};
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    content.size = (size_t)ftell(file);
    rewind(file);
    content.bytes = malloc(content.size);
    assert_non_null(content.bytes);
    assert_int_equal(fread(content.bytes, 1, content.size, file), content.size);
    fclose(file);
    return content;
}

/* Whether it is plain; what is said then is what the helper says. */
static bool check_same(const char *name)
{
    char path[4096];
    h5_fixture(name, path, sizeof path);
    struct content content = read_all(path);
    struct buf said = {0};
    const bool plain = h5plain_list(&said, content.bytes, content.size);
    const char *const arguments[] = {"list", path, NULL};
    struct h5proc proc;
    void *reply;
    size_t size;
    assert_int_equal(h5proc_start(&proc, arguments, false, 60, NULL), PLUMB_OK);
    assert_int_equal(h5proc_collect(&proc, 4096, 1 << 20, &reply, &size, NULL), PLUMB_OK);
    assert_int_equal(h5proc_finish(&proc, NULL), PLUMB_OK);
    if (plain) {
        assert_int_equal(said.size, size);
        assert_memory_equal(said.data, reply, size);
    }
    free(reply);
    buf_free(&said);
    free(content.bytes);
    return plain;
}

static void plain_files_are_listed_as_by_libhdf5(void **state)
{
    (void)state;
    static const char *const names[] = {"plain_names.h5", "plain_order.h5", "module.h5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(check_same(names[i]));
}

static void others_are_left_to_libhdf5(void **state)
{
    (void)state;
    static const char *const names[] = {"huge.h5", "layouts.h5", "layouts_latest.h5", "nested.h5",
                                        "tiny.h5", "types.h5",   "unsupported.h5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(check_same(names[i]));
}

/* No byte beyond its end is read, and nothing that was cut off is missed. */
static void a_file_that_is_cut_is_not_plain(void **state)
{
    (void)state;
    char path[4096];
    struct content content = read_all(h5_fixture("plain_order.h5", path, sizeof path));
    for (size_t size = 0; size < content.size; size++) {
        struct buf said = {0};
        uint8_t *cut = malloc(size ? size : 1);
        assert_non_null(cut);
        memcpy(cut, content.bytes, size);
        assert_false(h5plain_list(&said, cut, size));
        buf_free(&said);
        free(cut);
    }
    free(content.bytes);
}

/* Checksums cover all of such headers. */
static void damage_of_a_header_is_seen(void **state)
{
    (void)state;
    char path[4096];
    struct content content = read_all(h5_fixture("plain_order.h5", path, sizeof path));
    for (size_t at = 0; at < content.size; at++) {
        struct buf said = {0};
        content.bytes[at] ^= 0x55;
        const bool plain = h5plain_list(&said, content.bytes, content.size);
        if (at >= 96 && at < 96 + 200)
            assert_false(plain);
        content.bytes[at] ^= 0x55;
        buf_free(&said);
    }
    free(content.bytes);
}

/* A group that is in itself, whose header says that nothing else links to it. */
static void circles_end(void **state)
{
    (void)state;
    char path[4096];
    struct content content = read_all(h5_fixture("plain_names.h5", path, sizeof path));
    uint8_t *node = memmem(content.bytes, content.size, "SNOD", 4);
    struct buf said = {0};
    assert_non_null(node);
    for (int i = 0; i < node[6]; i++)
        memcpy(node + 8 + 40 * i + 8, content.bytes + 64, 8);
    assert_false(h5plain_list(&said, content.bytes, content.size));
    buf_free(&said);
    free(content.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_files_are_listed_as_by_libhdf5),
        cmocka_unit_test(others_are_left_to_libhdf5),
        cmocka_unit_test(a_file_that_is_cut_is_not_plain),
        cmocka_unit_test(damage_of_a_header_is_seen),
        cmocka_unit_test(circles_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
