#define _GNU_SOURCE
#include "h5_open.h"
#include "plumb/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

static char folder[] = "/tmp/plumb-test-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out.h5", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when a temporary file was left behind */
}

static struct plumb_tensor make(enum plumb_dtype dtype, unsigned rank, const int64_t *shape,
                                const void *data)
{
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor.data = data;
    return tensor;
}

static void add(struct plumb_writer *writer, const char *name, int64_t step,
                const struct plumb_tensor *tensor)
{
    struct plumb_error err = {0};
    if (plumb_writer_add(writer, name, step, tensor, &err))
        fail_msg("%s: %s", name, err.message);
}

static struct plumb_writer *start(int64_t global_rank, int64_t local_rank)
{
    struct plumb_writer_options options = {.global_rank = global_rank, .local_rank = local_rank};
    struct plumb_writer *writer;
    struct plumb_error err = {0};
    if (plumb_writer_open(&writer, path, &options, &err))
        fail_msg("%s", err.message);
    return writer;
}

static void finish(struct plumb_writer *writer)
{
    struct plumb_error err = {0};
    if (plumb_writer_close(writer, &err))
        fail_msg("%s", err.message);
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 37 + 11);
}

/* Every type comes back with the same bits, in the order of writing. */
static void round_trip_of_all_types(void **state)
{
    (void)state;
    const int64_t shape[] = {2, 3};
    uint8_t bits[6 * 16];
    for (size_t i = 0; i < sizeof bits; i++)
        bits[i] = pattern(i);
    for (size_t i = 0; i < 6; i++)
        bits[i] &= 1; /* for bool, which comes first */

    struct plumb_writer *writer = start(5, 2);
    for (unsigned swap = 0; swap < 2; swap++)
        for (unsigned i = 0; i < PLUMB_DTYPE_COUNT; i++) {
            if (plumb_dtype_info((enum plumb_dtype)i)->bits < 8)
                continue;
            struct plumb_tensor tensor = make((enum plumb_dtype)i, 2, shape, bits);
            tensor.swap = swap;
            add(writer, plumb_dtype_info((enum plumb_dtype)i)->name, 7 - swap, &tensor);
        }
    finish(writer);

    struct h5_open open;
    assert_int_equal(h5_open_path(&open, path, NULL), PLUMB_OK);
    size_t at = 0;
    for (unsigned swap = 0; swap < 2; swap++)
        for (unsigned i = 0; i < PLUMB_DTYPE_COUNT; i++) {
            if (plumb_dtype_info((enum plumb_dtype)i)->bits < 8)
                continue;
            const struct plumb_record *record = &open.listing.records[at++];
            struct plumb_payload payload;
            assert_string_equal(record->name, plumb_dtype_info((enum plumb_dtype)i)->name);
            assert_int_equal(record->step, 7 - swap);
            assert_int_equal(record->rank, 5);
            assert_int_equal(record->dtype, i);
            assert_null(record->detail);
            assert_int_equal(h5_load(&open, record, &payload, NULL), PLUMB_OK);
            assert_int_equal(payload.tensor.swap,
                             swap && plumb_dtype_info((enum plumb_dtype)i)->bits > 8);
            assert_memory_equal(payload.tensor.data, bits, plumb_tensor_bytes(&payload.tensor));
            plumb_payload_release(&payload);
        }
    assert_int_equal(open.listing.count, at);
    h5_open_close(&open);
}

static size_t count_of_records(void)
{
    struct h5_open open;
    assert_int_equal(h5_open_path(&open, path, NULL), PLUMB_OK);
    const size_t count = open.listing.count;
    h5_open_close(&open);
    return count;
}

static void sync_or_fail(struct plumb_writer *writer)
{
    struct plumb_error err = {0};
    if (plumb_writer_sync(writer, &err))
        fail_msg("%s", err.message);
}

/* Before the first sync nothing is there; after it all that came whole, whatever happens. */
static void synced_files_are_whole(void **state)
{
    (void)state;
    const int64_t shape[] = {1000};
    static float values[1000];
    const struct plumb_tensor tensor = make(PLUMB_F32, 1, shape, values);
    unlink(path);
    struct plumb_writer *writer = start(0, 0);
    add(writer, "first", 1, &tensor);
    assert_int_not_equal(access(path, F_OK), 0);
    sync_or_fail(writer);
    assert_int_equal(count_of_records(), 1);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "more.%d", i);
        add(writer, name, i / 5, &tensor);
        if (i == 9) {
            sync_or_fail(writer);
            assert_int_equal(count_of_records(), 11);
        }
    }
    plumb_writer_abort(writer);
    assert_int_equal(count_of_records(), 21);

    writer = start(0, 0);
    sync_or_fail(writer);
    assert_int_equal(count_of_records(), 0);
    add(writer, "only", -1, &tensor);
    add(writer, "a/b/nested", 3, &tensor);
    add(writer, "a/b/other", 3, &tensor);
    add(writer, "next", 4, &tensor);
    add(writer, "a/again", 3, &tensor);
    finish(writer);
    assert_int_equal(count_of_records(), 5);
}

static void round_trip_of_shapes(void **state)
{
    (void)state;
    enum { ROWS = 3, COLUMNS = 700000 }; /* rows of 5.6 MB: the helper must cut them */
    const int64_t big[] = {ROWS, COLUMNS}, turned[] = {COLUMNS, ROWS}, none[] = {4, 0, 2};
    const int64_t stride[] = {1, COLUMNS};
    double *data = malloc((size_t)ROWS * COLUMNS * sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++)
        data[i] = (double)i;
    struct plumb_tensor plain = make(PLUMB_F64, 2, big, NULL);
    struct plumb_tensor transposed = make(PLUMB_F64, 2, turned, NULL);
    assert_int_equal(
        plumb_tensor_set_strides(&transposed, stride, 0, (uint64_t)ROWS * COLUMNS, NULL), 0);
    plain.data = transposed.data = data;
    struct plumb_tensor scalar = make(PLUMB_F64, 0, NULL, data + 9);
    struct plumb_tensor empty = make(PLUMB_F64, 3, none, data);

    struct plumb_writer *writer = start(-1, -1);
    add(writer, "block.0/weight", -1, &plain);
    add(writer, "block.0/transposed", -1, &transposed);
    add(writer, "scalar", -1, &scalar);
    add(writer, "block.0/empty", -1, &empty);
    finish(writer);

    struct h5_open open;
    struct plumb_payload payload;
    assert_int_equal(h5_open_path(&open, path, NULL), PLUMB_OK);
    assert_int_equal(open.listing.count, 4);
    assert_int_equal(open.listing.records[0].rank, -1);
    assert_int_equal(h5_load(&open, h5_find(&open, "block.0/weight"), &payload, NULL), PLUMB_OK);
    assert_memory_equal(payload.tensor.data, data, (size_t)ROWS * COLUMNS * sizeof *data);
    plumb_payload_release(&payload);
    assert_int_equal(h5_load(&open, h5_find(&open, "block.0/transposed"), &payload, NULL), 0);
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i += 1001) {
        double value;
        plumb_tensor_to_f64(&payload.tensor, i, 1, &value);
        assert_true(value == (double)(i % ROWS * COLUMNS + i / ROWS));
    }
    plumb_payload_release(&payload);
    assert_int_equal(h5_load(&open, h5_find(&open, "scalar"), &payload, NULL), PLUMB_OK);
    assert_int_equal(payload.tensor.rank, 0);
    assert_memory_equal(payload.tensor.data, data + 9, sizeof *data);
    plumb_payload_release(&payload);
    assert_int_equal(h5_find(&open, "block.0/empty")->shape[2], 2);
    h5_open_close(&open);
    free(data);
}

/* The helper's refusal reaches the caller with the next call at the latest. */
static void refuses_bad_names_and_types(void **state)
{
    (void)state;
    static const char *const bad[] = {"taken", "taken/below", "a//b", "/a", "a/", "a/./b"};
    const int64_t shape[] = {2};
    const float data[] = {1, 2};
    struct plumb_tensor tensor = make(PLUMB_F32, 1, shape, data);
    unlink(path);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct plumb_writer *writer = start(0, 0);
        struct plumb_error err = {0};
        add(writer, "taken", -1, &tensor);
        enum plumb_code code = plumb_writer_add(writer, bad[i], -1, &tensor, &err);
        if (code)
            plumb_writer_abort(writer);
        else
            code = plumb_writer_close(writer, &err);
        assert_int_equal(code, PLUMB_E_ARG);
        assert_non_null(strstr(err.message, bad[i]));
    }
    struct plumb_writer *writer = start(0, 0);
    struct plumb_tensor packed = make(PLUMB_I4, 1, shape, data);
    assert_int_equal(plumb_writer_add(writer, "x", 0, &packed, NULL), PLUMB_E_UNSUPPORTED);
    plumb_writer_abort(writer);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* h5py sees what the format promises. */
static void h5py_reads_it(void **state)
{
    (void)state;
    round_trip_of_all_types(NULL);
    const char *data = getenv("PLUMB_TEST_DATA");
    char command[4096];
    snprintf(command, sizeof command, "/usr/bin/python3 '%s/check_hdf5.py' '%s'",
             data ? data : "tests/data", path);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip_of_all_types), cmocka_unit_test(synced_files_are_whole),
        cmocka_unit_test(round_trip_of_shapes),    cmocka_unit_test(refuses_bad_names_and_types),
        cmocka_unit_test(h5py_reads_it),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
