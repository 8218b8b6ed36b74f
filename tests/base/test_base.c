/* What everything stands on: arenas, buffers, the map, the pool, errors, mapped files. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/output.h"
#include "base/pool.h"
#include "base/spares.h"
#include "plumb/file.h"
#include "random.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

/* -- Arena ------------------------------------------------------------------------------------- */

static void test_arena(void **state)
{
    (void)state;
    enum { N = 3000 };
    static unsigned char *blocks[N];
    static size_t sizes[N];
    struct arena arena = {0};
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) {
        sizes[i] = (size_t)random_below(&seed, 200);
        if (i % 100 == 0)
            sizes[i] = (size_t)random_below(&seed, 200000); /* large ones get their own chunk */
        blocks[i] = arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], i & 0xFF, sizes[i]);
    }
    for (int i = 0; i < N; i++) /* nobody wrote into somebody else's */
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], i & 0xFF);
    arena_free(&arena);
    assert_null(arena.chunks);
    arena_free(&arena);
}

/* An array that grows, among others that must not be moved with it. */
/* An arena with very many small blocks, the first of a wide chunk among them, beside large ones. */
static void test_arena_wide(void **state)
{
    (void)state;
    enum { BLOCKS = 40000, BYTES = 96 };
    struct arena arena = {0};
    unsigned char **blocks = arena_array(&arena, BLOCKS, sizeof *blocks);
    assert_non_null(blocks);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = arena_alloc(&arena, BYTES);
        assert_non_null(blocks[i]);
        for (size_t k = 0; k < BYTES; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], (int)(i % 251 + 1), BYTES);
    }
    /* None of them is a large block, wherever it lies. */
    for (size_t i = 0; i < BLOCKS; i += 7) {
        unsigned char *grown = arena_grow(&arena, blocks[i], BYTES, BYTES + 16, 1);
        assert_true(grown && grown != blocks[i]);
        assert_memory_equal(grown, blocks[i], BYTES);
    }
    const void *used[] = {blocks};
    arena_keep(&arena, used, 1);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_true(blocks[i][0] == i % 251 + 1 && blocks[i][BYTES - 1] == i % 251 + 1);
    arena_free(&arena);
}

static void test_arena_grow(void **state)
{
    (void)state;
    struct arena arena = {0};
    char *before = arena_copy(&arena, "before", 6), *texts[20];
    uint64_t *numbers = NULL;
    size_t capacity = 0, count = 0;
    for (int round = 0; round < 20; round++) {
        const size_t more = capacity ? capacity * 2 : 3;
        uint64_t *grown = arena_grow(&arena, numbers, count, more, sizeof *numbers);
        assert_non_null(grown);
        numbers = grown;
        capacity = more;
        for (; count < capacity; count++)
            numbers[count] = count;
        texts[round] = arena_printf(&arena, "text %d", round);
        assert_non_null(arena_alloc(&arena, 100));
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], i);
    assert_string_equal(before, "before");
    for (int round = 0; round < 20; round++)
        assert_int_equal(strtol(texts[round] + 5, NULL, 10), round);
    assert_true(arena.bytes < 3 * capacity * sizeof *numbers); /* not one of each size */
    assert_null(arena_grow(&arena, numbers, count, SIZE_MAX / 8 + 1, sizeof *numbers));
    arena_free(&arena);
}

/* Blocks large enough for pages of their own: zero, whole, and given back when nobody needs
 * them. */
static void test_arena_huge(void **state)
{
    (void)state;
    enum { N = 4 };
    const size_t sizes[N] = {((size_t)4 << 20) - 64, (size_t)4 << 20, ((size_t)6 << 20) + 1,
                             (size_t)2 << 20};
    struct arena arena = {0};
    unsigned char *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k += 512)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], i + 1, sizes[i]);
    }
    const size_t before = arena.bytes;
    const void *used[] = {blocks[2] + sizes[2] - 1, blocks[3]};
    arena_keep(&arena, used, 2);
    assert_true(arena.bytes <= before - sizes[0] - sizes[1]);
    for (int i = 2; i < N; i++) {
        assert_int_equal(blocks[i][0], i + 1);
        assert_int_equal(blocks[i][sizes[i] - 1], i + 1);
    }
    arena_free(&arena);
    assert_null(arena.chunks);
}

/* Blocks that were given back are used again, zeroed where that was promised, and never take more
 * than was in use at once. */
static void test_arena_spares(void **state)
{
    (void)state;
    struct spares spares = SPARES((size_t)32 << 20);
    struct arena arena = {.spares = &spares};
    const size_t size = (size_t)9 << 20;
    for (int round = 0; round < 4; round++) {
        unsigned char *block = arena_alloc(&arena, size);
        assert_non_null(block);
        for (size_t k = 0; k < size; k += 512)
            assert_int_equal(block[k], 0);
        memset(block, 0xFF, size);
        unsigned char *room = arena_room(&arena, size, 1);
        assert_non_null(room);
        memset(room, 0xFF, size);
        arena_free(&arena);
        assert_null(arena.chunks);
        assert_true(spares.used == 0 && spares.waiting <= spares.peak);
        assert_true(spares.waiting <= spares.limit);
#ifndef __SANITIZE_ADDRESS__
        assert_int_equal(spares.n, 2);
#endif
    }
    const size_t peak = spares.peak;
    assert_non_null(arena_alloc(&arena, peak / 4 * 3)); /* fits none that waits */
    assert_true(spares.used + spares.waiting <= (spares.used > peak ? spares.used : peak));
    assert_non_null(arena_alloc(&arena, (size_t)40 << 20)); /* more than may wait */
    arena_free(&arena);
    assert_true(spares.used == 0 && spares.waiting <= spares.limit);
    for (unsigned k = 0; k < spares.n; k++)
        munmap(spares.of[k].at, spares.of[k].length);
}

static void test_arena_limits(void **state)
{
    (void)state;
    struct arena arena = {0};
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8));
    assert_null(arena_array(&arena, SIZE_MAX / 8 + 1, 8));
    assert_null(arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(arena_copy(&arena, "", SIZE_MAX));
    assert_non_null(arena_array(&arena, 0, 8));
    assert_non_null(arena_array(&arena, 8, 0));
    assert_non_null(arena_alloc(&arena, 0));
    assert_string_equal(arena_copy(&arena, "abcdef", 3), "abc");
    assert_string_equal(arena_copy(&arena, NULL, 0), "");
    assert_string_equal(arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
    char *text = arena_printf(&arena, "%0100000d", 5); /* longer than a chunk */
    assert_int_equal(strlen(text), 100000);
    assert_int_equal(text[99999], '5');
    arena_free(&arena);
}

/* -- Buffer ------------------------------------------------------------------------------------ */

static void test_buf(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_append(&buf, NULL, 0);
    assert_string_equal(buf.data, "");
    buf_text(&buf, "ab");
    buf_repeat(&buf, 'c', 3);
    buf_append(&buf, "\0d", 2);
    buf_printf(&buf, "%d", 42);
    assert_int_equal(buf.size, 9);
    assert_memory_equal(buf.data, "abccc\0d42", 10);
    buf_repeat(&buf, 'x', 100000);
    buf_printf(&buf, "%050000d", 1);
    assert_int_equal(buf.size, 150009);
    assert_true(buf.data[100008] == 'x' && buf.data[100009] == '0' && buf.data[150008] == '1' &&
                buf.data[150009] == '\0');
    assert_false(buf.failed);
    buf_free(&buf);
    assert_true(!buf.data && !buf.size && !buf.capacity);
}

/* Failure sticks, and leaves what was there. */
static void test_buf_failed(void **state)
{
    (void)state;
    struct buf buf = {0};
    buf_text(&buf, "kept");
    buf_repeat(&buf, 'x', SIZE_MAX / 2);
    assert_true(buf.failed);
    buf_text(&buf, "lost");
    buf_printf(&buf, "%d", 1);
    buf_repeat(&buf, 'y', 1);
    assert_true(buf.failed && buf.size == 4);
    assert_string_equal(buf.data, "kept");
    buf_free(&buf);
    assert_false(buf.failed);
}

/* -- Map --------------------------------------------------------------------------------------- */

static void test_map(void **state)
{
    (void)state;
    enum { N = 50000 };
    struct arena arena = {0};
    struct map map = {0};
    bool added;
    assert_null(map_get(&map, "nothing", 7));
    for (int i = 0; i < N; i++) {
        const char *key = arena_printf(&arena, "layers.%d.weight", i);
        uint64_t *value = map_put(&map, key, strlen(key), &added);
        assert_true(value && added && *value == 0);
        *value = (uint64_t)i + 1;
    }
    assert_int_equal(map.count, N);
    for (int i = 0; i < N; i++) {
        char key[64]; /* at another address than the one that was put in */
        size_t length = (size_t)snprintf(key, sizeof key, "layers.%d.weight", i);
        uint64_t *value = map_get(&map, key, length);
        assert_true(value && *value == (uint64_t)i + 1);
        assert_ptr_equal(map_put(&map, key, length, &added), value);
        assert_false(added);
    }
    assert_int_equal(map.count, N);
    assert_null(map_get(&map, "layers.50000.weight", 19));
    assert_null(map_get(&map, "layers.1.weight", 14)); /* a prefix is another key */
    map_free(&map);
    assert_null(map_get(&map, "layers.1.weight", 15));
    arena_free(&arena);
}

/* Keys whose hashes fall on the same slot of every table that holds them. */
static void test_map_collisions(void **state)
{
    (void)state;
    enum { WANTED = 200, SLOTS = 512 };
    struct arena arena = {0};
    struct map probe = {0}, map = {0};
    const char *keys[WANTED];
    int found = 0;
    for (int i = 0; found < WANTED; i++) {
        const char *key = arena_printf(&arena, "%d", i);
        assert_non_null(map_put(&probe, key, strlen(key), NULL));
        for (size_t slot = 0; slot < probe.capacity; slot++)
            if (probe.slots[slot].key == key && probe.slots[slot].hash % SLOTS == SLOTS - 1)
                keys[found++] = key; /* the last slot: searching has to go round the end */
        map_free(&probe);
    }
    for (int i = 0; i < WANTED; i++)
        *map_put(&map, keys[i], strlen(keys[i]), NULL) = (uint64_t)i;
    assert_int_equal(map.capacity, SLOTS);
    for (int i = 0; i < WANTED; i++)
        assert_true(*map_get(&map, keys[i], strlen(keys[i])) == (uint64_t)i);
    assert_int_equal(map.count, WANTED);
    assert_null(map_get(&map, "x", 1));
    map_free(&map);
    arena_free(&arena);
}

/* Keys are bytes: empty ones, and ones with a NUL inside. */
static void test_map_bytes(void **state)
{
    (void)state;
    struct map map = {0};
    *map_put(&map, "", 0, NULL) = 1;
    *map_put(&map, "a\0b", 3, NULL) = 2;
    *map_put(&map, "a\0c", 3, NULL) = 3;
    *map_put(&map, "a", 1, NULL) = 4;
    assert_int_equal(map.count, 4);
    assert_true(*map_get(&map, "", 0) == 1 && *map_get(&map, "a\0b", 3) == 2 &&
                *map_get(&map, "a\0c", 3) == 3 && *map_get(&map, "a", 1) == 4);
    map_free(&map);
}

/* -- Pool -------------------------------------------------------------------------------------- */

enum { POOL_MOST = 5000 };

struct tally {
    atomic_uint done[POOL_MOST];
    atomic_uint highest_thread;
};

static void tick(void *context, size_t i, unsigned thread)
{
    struct tally *tally = context;
    atomic_fetch_add(&tally->done[i], 1);
    unsigned seen = atomic_load(&tally->highest_thread);
    while (thread > seen && !atomic_compare_exchange_weak(&tally->highest_thread, &seen, thread))
        ;
}

static void test_pool(void **state)
{
    (void)state;
    static const unsigned threads[] = {0, 1, 2, 3, 16, 300, 100000};
    static const size_t counts[] = {0, 1, 2, 15, POOL_MOST};
    static struct tally tally;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            memset(&tally, 0, sizeof tally);
            pool_run(threads[t], counts[c], tick, &tally);
            for (size_t i = 0; i < POOL_MOST; i++)
                assert_int_equal(tally.done[i], i < counts[c]);
            unsigned most = threads[t] ? threads[t] : 1;
            assert_true(tally.highest_thread < most &&
                        (tally.highest_thread == 0 || tally.highest_thread < counts[c]));
        }
    assert_true(pool_default_threads() >= 1);
}

/* -- Errors ------------------------------------------------------------------------------------ */

static void test_errors(void **state)
{
    (void)state;
    struct plumb_error err;
    char text[1024];
    assert_int_equal(plumb_fail(NULL, PLUMB_E_IO, "nobody listens"), PLUMB_E_IO);
    plumb_error_in_file(NULL, "x");

    assert_int_equal(plumb_fail(&err, PLUMB_E_FORMAT, "size %d", 7), PLUMB_E_FORMAT);
    assert_true(err.code == PLUMB_E_FORMAT && err.offset == PLUMB_NO_OFFSET);
    assert_string_equal(plumb_error_text(&err, text, sizeof text), "size 7");
    plumb_error_in_file(&err, "a.npy");
    assert_string_equal(plumb_error_text(&err, text, sizeof text), "a.npy: size 7");
    plumb_error_in_file(&err, "b.npz"); /* the deeper layer knew better */
    assert_string_equal(plumb_error_text(&err, text, sizeof text), "a.npy: size 7");

    assert_int_equal(plumb_fail_at(&err, PLUMB_E_ARG, 123, "bad\nline\tend\r"), PLUMB_E_ARG);
    assert_string_equal(plumb_error_text(&err, text, sizeof text), "at byte 123: bad line end ");
    plumb_error_in_file(&err, "a.npy");
    assert_string_equal(plumb_error_text(&err, text, sizeof text),
                        "a.npy: at byte 123: bad line end ");
    for (size_t size = 1; size < 40; size++) {
        memset(text, '#', sizeof text);
        plumb_error_text(&err, text, size);
        assert_true(strlen(text) < size && text[size] == '#');
    }

    /* A long message is cut at its end, a long path at its beginning. */
    char path[1000];
    memset(path, 'p', sizeof path);
    memcpy(path + sizeof path - 7, "/x.npy", 7);
    plumb_fail(&err, PLUMB_E_IO, "%0600d", 1);
    plumb_error_in_file(&err, path);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(strlen(err.file), sizeof err.file - 1);
    assert_int_equal(strncmp(err.file, "...p", 4), 0);
    assert_string_equal(err.file + strlen(err.file) - 6, "/x.npy");
}

/* -- Mapped files ------------------------------------------------------------------------------ */

static void test_file(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    unsigned char bytes[10000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    char path[1100];
    snprintf(path, sizeof path, "%s", scratch_write(&scratch, "f", bytes, sizeof bytes));

    struct plumb_file file;
    struct plumb_error err;
    static const uint64_t parts[][2] = {{0, UINT64_MAX}, {0, 10000}, {1, 9999}, {5000, UINT64_MAX},
                                        {4096, 1},       {9999, 1},  {4095, 2}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t from = parts[i][0], size = parts[i][1];
        assert_int_equal(plumb_file_map(&file, path, from, size, &err), PLUMB_OK);
        assert_int_equal(file.size, size == UINT64_MAX ? 10000 - from : size);
        assert_int_equal(file.file_size, 10000);
        assert_memory_equal(file.data, bytes + from, file.size);
        plumb_file_unmap(&file);
        assert_null(file.data);
    }
    assert_int_equal(plumb_file_map(&file, path, 10000, UINT64_MAX, &err), PLUMB_OK);
    assert_true(!file.data && file.size == 0);
    plumb_file_unmap(&file);

    static const uint64_t wrong[][2] = {{0, 10001},      {10001, 0},          {9999, 2},
                                        {UINT64_MAX, 1}, {1, UINT64_MAX - 1}, {10001, UINT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(plumb_file_map(&file, path, wrong[i][0], wrong[i][1], &err),
                         PLUMB_E_FORMAT);
        assert_true(!file.data && !file.map);
    }
    assert_int_equal(plumb_file_map(&file, scratch.folder, 0, UINT64_MAX, &err), PLUMB_E_IO);
    assert_int_equal(plumb_file_map(&file, scratch_path(&scratch, "none"), 0, 1, &err), PLUMB_E_IO);
    assert_non_null(strstr(err.file, "none"));
    const char *fifo = scratch_path(&scratch, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0); /* nobody ever writes: must not wait */
    assert_int_equal(plumb_file_map(&file, fifo, 0, UINT64_MAX, &err), PLUMB_E_IO);
    scratch_remove(&scratch);
}

static uint64_t sum_of(const struct plumb_file *file)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < file->size; i++)
        sum += ((const volatile uint8_t *)file->data)[i];
    return sum;
}

struct shrink {
    struct plumb_file file;
    uint64_t sum;
    bool hit;
};

static void *read_guarded(void *context)
{
    struct shrink *job = context;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &job->file);
    job->sum = sum_of(&job->file);
    job->hit = plumb_file_guard_leave(&guard);
    return NULL;
}

/* A file that is cut short behind our back: what is gone reads as zeros, and the guard says so. */
static void test_guard(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_make(&scratch);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 8 * page;
    char *ones = malloc(size);
    assert_non_null(ones);
    memset(ones, 1, size);
    char path[1100];
    snprintf(path, sizeof path, "%s", scratch_write(&scratch, "f", ones, size));
    free(ones);

    struct shrink whole, other;
    assert_int_equal(plumb_file_map(&whole.file, path, 0, UINT64_MAX, NULL), PLUMB_OK);
    assert_int_equal(plumb_file_map(&other.file, path, 100, UINT64_MAX, NULL), PLUMB_OK);
    read_guarded(&whole);
    assert_true(!whole.hit && whole.sum == size);

    assert_int_equal(truncate(path, (off_t)(3 * page)), 0);
    /* Nested: the fault belongs to the file that it is in. */
    struct plumb_file_guard outer, inner;
    plumb_file_guard_enter(&outer, &whole.file);
    plumb_file_guard_enter(&inner, &other.file);
    assert_int_equal(sum_of(&whole.file), 3 * page);
    assert_false(plumb_file_guard_leave(&inner));
    assert_true(plumb_file_guard_leave(&outer));

    /* Another thread has guards of its own. */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_guarded, &other), 0);
    pthread_join(thread, NULL);
    assert_true(other.hit && other.sum == 3 * page - 100);
    plumb_file_unmap(&whole.file);
    plumb_file_unmap(&other.file);
    scratch_remove(&scratch);
}

static size_t count_files(const char *folder)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

/* Whole or not at all, and nothing beside it. */
static void test_output_whole(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_error err = {0};
    struct plumb_file file;
    scratch_make(&scratch);
    const char *path = scratch_path(&scratch, "whole");
    assert_int_equal(output_whole(path, "first", 5, true, &err), PLUMB_OK);
    assert_int_equal(output_whole(path, "second", 6, false, &err), PLUMB_OK);
    assert_int_equal(plumb_file_map(&file, path, 0, UINT64_MAX, &err), PLUMB_OK);
    assert_int_equal(file.size, 6);
    assert_memory_equal(file.data, "second", 6);
    plumb_file_unmap(&file);
    path = scratch_path(&scratch, "whole/file");
    assert_int_equal(output_whole(path, "x", 1, false, &err), PLUMB_E_IO);
    assert_string_equal(err.file, path);
    assert_int_equal(count_files(scratch.folder), 1);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),        cmocka_unit_test(test_arena_huge),
        cmocka_unit_test(test_arena_spares), cmocka_unit_test(test_arena_limits),
        cmocka_unit_test(test_arena_wide),   cmocka_unit_test(test_arena_grow),
        cmocka_unit_test(test_buf),          cmocka_unit_test(test_buf_failed),
        cmocka_unit_test(test_map),          cmocka_unit_test(test_map_collisions),
        cmocka_unit_test(test_map_bytes),    cmocka_unit_test(test_pool),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_file),
        cmocka_unit_test(test_guard),        cmocka_unit_test(test_output_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
