/* Files that stay mapped: one mapping for all who ask, and no zeros that somebody takes for
 * data. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/held.h"
#include "scratch.h"

#include <fcntl.h>
#include <sys/stat.h>

static struct scratch scratch;

static char *write_ones(const char *name, size_t size)
{
    char *ones = malloc(size);
    assert_non_null(ones);
    memset(ones, 1, size);
    char *path = strdup(scratch_write(&scratch, name, ones, size));
    assert_non_null(path);
    free(ones);
    return path;
}

static struct plumb_file map(struct holder *holder, const char *path)
{
    struct plumb_file file;
    assert_int_equal(holder_map(holder, path, &file, NULL), PLUMB_OK);
    return file;
}

static void one_mapping_for_all(void **state)
{
    (void)state;
    struct holder *holder = holder_new();
    char *path = write_ones("f", 10000);
    struct plumb_file a = map(holder, path), b = map(holder, path);
    assert_ptr_equal(a.map, b.map);
    assert_int_equal(a.size, 10000);
    plumb_file_unmap(&a);
    assert_int_equal(b.data[9999], 1);
    holder_free(holder); /* b keeps what it has */
    assert_int_equal(b.data[9999], 1);
    plumb_file_unmap(&b);
    assert_null(b.held);
    free(path);
}

/* What is at the path now is what counts. */
static void another_file_is_mapped_anew(void **state)
{
    (void)state;
    struct holder *holder = holder_new();
    char *path = write_ones("g", 5000), *other = write_ones("h", 6000);
    struct plumb_file a = map(holder, path);
    assert_int_equal(rename(other, path), 0);
    struct plumb_file b = map(holder, path);
    assert_int_equal(b.size, 6000);
    assert_ptr_not_equal(a.held, b.held);
    assert_int_equal(a.data[4999], 1); /* the old one is still there for who has it */

    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    struct plumb_file c = map(holder, path);
    assert_int_equal(c.mtime_ns, INT64_C(1000) * 1000000000);
    unlink(path);
    struct plumb_file none;
    struct plumb_error err;
    assert_int_equal(holder_map(holder, path, &none, &err), PLUMB_E_IO);
    plumb_file_unmap(&a);
    plumb_file_unmap(&b);
    plumb_file_unmap(&c);
    plumb_file_unmap(&none);
    holder_free(holder);
    free(path);
    free(other);
}

/* The zeros that stand for lost pages are seen by all who share them, so all are told. */
static void zeros_are_told_to_all(void **state)
{
    (void)state;
    struct holder *holder = holder_new();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *path = write_ones("i", 8 * page);
    struct plumb_file a = map(holder, path), b = map(holder, path);
    struct plumb_file_guard first, second;
    assert_int_equal(truncate(path, (off_t)(3 * page)), 0);
    plumb_file_guard_enter(&second, &b);
    plumb_file_guard_enter(&first, &a);
    assert_int_equal(((const volatile uint8_t *)a.data)[5 * page], 0);
    assert_true(plumb_file_guard_leave(&first));
    assert_int_equal(((const volatile uint8_t *)b.data)[5 * page + 1], 0); /* and no signal */
    assert_true(plumb_file_guard_leave(&second));

    /* Made as long as it was: the zeros must not be handed out again. */
    assert_int_equal(truncate(path, (off_t)(8 * page)), 0);
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = a.mtime_ns / 1000000000, .tv_nsec = a.mtime_ns % 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    struct plumb_file c = map(holder, path);
    assert_ptr_not_equal(c.held, a.held);
    plumb_file_guard_enter(&first, &c);
    assert_int_equal(c.data[0], 1);
    assert_false(plumb_file_guard_leave(&first));
    plumb_file_unmap(&a);
    plumb_file_unmap(&b);
    plumb_file_unmap(&c);
    holder_free(holder);
    free(path);
}

/* However many files there are, only some stay. */
static void the_number_is_bounded(void **state)
{
    (void)state;
    enum { FILES = 200 };
    struct holder *holder = holder_new();
    char *paths[FILES];
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "many%d", i);
        paths[i] = write_ones(name, 4096);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FILES; i++) {
            struct plumb_file file = map(holder, paths[i]);
            assert_int_equal(file.data[4095], 1);
            plumb_file_unmap(&file);
        }
    size_t mapped = 0;
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        mapped += strstr(line, "/many") != NULL;
    fclose(maps);
    assert_in_range(mapped, 1, 64);
    holder_free(holder);
    for (int i = 0; i < FILES; i++)
        free(paths[i]);
}

static int setup(void **state)
{
    (void)state;
    scratch_make(&scratch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_mapping_for_all),
        cmocka_unit_test(another_file_is_mapped_anew),
        cmocka_unit_test(zeros_are_told_to_all),
        cmocka_unit_test(the_number_is_bounded),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
