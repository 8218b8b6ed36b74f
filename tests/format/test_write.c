#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/run.h"
#include "plumb/write.h"
#include "scratch.h"

#include <signal.h>
#include <sys/resource.h>

static void view(struct plumb_tensor *tensor, enum plumb_dtype dtype, unsigned rank,
                 const int64_t *shape, const void *data)
{
    assert_int_equal(plumb_tensor_init(tensor, dtype, rank, shape, NULL), PLUMB_OK);
    tensor->data = data;
}

/* The bytes of a file, which the caller frees. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *stream = fopen(path, "rb");
    uint8_t *bytes = malloc(65536);
    assert_non_null(stream);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 65536, stream);
    fclose(stream);
    return bytes;
}

/* Opens path and compares record `index` with want: type, shape and bytes in C order. */
static void check_record(const char *path, size_t index, const char *name,
                         const struct plumb_tensor *want)
{
    struct plumb_run *run;
    struct plumb_payload payload;
    struct plumb_error err;
    assert_int_equal(plumb_run_open(&run, path, &err), PLUMB_OK);
    assert_string_equal(plumb_run_record(run, index)->name, name);
    assert_int_equal(plumb_run_load(run, index, &payload, &err), PLUMB_OK);
    const struct plumb_tensor *got = &payload.tensor;
    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(got->rank, want->rank);
    assert_memory_equal(got->shape, want->shape, want->rank * sizeof *want->shape);
    double left[64], right[64];
    assert_true(want->count <= 32);
    plumb_tensor_to_f64(got, 0, (size_t)want->count, left);
    plumb_tensor_to_f64(want, 0, (size_t)want->count, right);
    assert_memory_equal(left, right, want->count * plumb_dtype_parts(want->dtype) * sizeof *left);
    plumb_payload_release(&payload);
    plumb_run_free(run);
}

static void npy_is_as_numpy_writes_it(void **state)
{
    (void)state;
    static const float values[] = {1, 2, 3};
    const int64_t shape[] = {3};
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_error err;
    scratch_make(&scratch);
    view(&tensor, PLUMB_F32, 1, shape, values);
    const char *path = scratch_path(&scratch, "x.npy");
    assert_int_equal(plumb_npy_write(path, &tensor, &err), PLUMB_OK);

    size_t size;
    uint8_t *bytes = read_file(path, &size);
    assert_int_equal(size, 128 + 12);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    assert_memory_equal(bytes + 10, dict, sizeof dict - 1);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, values, sizeof values);
    free(bytes);
    assert_int_equal(scratch_count(&scratch), 1);
    scratch_remove(&scratch);
}

static void npy_round_trips(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {
        PLUMB_BOOL, PLUMB_U8,  PLUMB_U16, PLUMB_U32, PLUMB_U64, PLUMB_I8,  PLUMB_I16,
        PLUMB_I32,  PLUMB_I64, PLUMB_F16, PLUMB_F32, PLUMB_F64, PLUMB_C64, PLUMB_C128,
    };
    uint8_t data[16 * 6];
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_error err;
    const int64_t shape[] = {2, 1, 3}, none[] = {0, 4};
    scratch_make(&scratch);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i % 2);
    const char *path = scratch_path(&scratch, "x.npy");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        view(&tensor, types[i], 3, shape, data);
        assert_int_equal(plumb_npy_write(path, &tensor, &err), PLUMB_OK);
        check_record(path, 0, "x", &tensor);
    }
    view(&tensor, PLUMB_F32, 0, NULL, data);
    assert_int_equal(plumb_npy_write(path, &tensor, &err), PLUMB_OK);
    check_record(path, 0, "x", &tensor);
    view(&tensor, PLUMB_F32, 2, none, data);
    assert_int_equal(plumb_npy_write(path, &tensor, &err), PLUMB_OK);
    check_record(path, 0, "x", &tensor);
    scratch_remove(&scratch);
}

static void strides_and_byte_order_are_straightened(void **state)
{
    (void)state;
    static const uint16_t values[] = {0x0100, 0x0200, 0x0300, 0x0400, 0x0500, 0x0600};
    const int64_t shape[] = {3, 2}, stride[] = {1, 3};
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_error err;
    scratch_make(&scratch);
    view(&tensor, PLUMB_U16, 2, shape, NULL);
    assert_int_equal(plumb_tensor_set_strides(&tensor, stride, 0, 6, &err), PLUMB_OK);
    tensor.data = values;
    tensor.swap = true;
    const char *path = scratch_path(&scratch, "x.npy");
    assert_int_equal(plumb_npy_write(path, &tensor, &err), PLUMB_OK);

    size_t size;
    uint8_t *bytes = read_file(path, &size);
    static const uint16_t want[] = {1, 4, 2, 5, 3, 6};
    assert_int_equal(size, 128 + sizeof want);
    assert_memory_equal(bytes + 128, want, sizeof want);
    free(bytes);
    scratch_remove(&scratch);
}

/* More than one piece of the gathering buffer: a transposed 300 x 301 of int32. */
static void large_strided_tensors_go_in_pieces(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 301 };
    const int64_t shape[] = {COLUMNS, ROWS}, stride[] = {1, COLUMNS};
    int32_t *values = malloc(sizeof *values * ROWS * COLUMNS);
    double *read = malloc(sizeof *read * ROWS * COLUMNS);
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_error err;
    struct plumb_run *run;
    struct plumb_payload payload;
    assert_non_null(values);
    assert_non_null(read);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = i;
    scratch_make(&scratch);
    view(&tensor, PLUMB_I32, 2, shape, NULL);
    assert_int_equal(plumb_tensor_set_strides(&tensor, stride, 0, ROWS * COLUMNS, &err), PLUMB_OK);
    tensor.data = values;
    const char *path = scratch_path(&scratch, "x.npy");
    assert_int_equal(plumb_npy_write(path, &tensor, &err), PLUMB_OK);
    assert_int_equal(plumb_run_open(&run, path, &err), PLUMB_OK);
    assert_int_equal(plumb_run_load(run, 0, &payload, &err), PLUMB_OK);
    plumb_tensor_to_f64(&payload.tensor, 0, ROWS * COLUMNS, read);
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < ROWS; j++)
            assert_true(read[i * ROWS + j] == j * COLUMNS + i);
    plumb_payload_release(&payload);
    plumb_run_free(run);
    scratch_remove(&scratch);
    free(read);
    free(values);
}

static void npy_refuses_what_numpy_lacks(void **state)
{
    (void)state;
    static const uint8_t data[4];
    const int64_t shape[] = {2};
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_error err;
    scratch_make(&scratch);
    view(&tensor, PLUMB_BF16, 1, shape, data);
    assert_int_equal(plumb_npy_write(scratch_path(&scratch, "x.npy"), &tensor, &err),
                     PLUMB_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "bfloat16"));
    assert_int_equal(scratch_count(&scratch), 0);
    scratch_remove(&scratch);
}

/* A disk that is full, played by a limit on the size of files. */
static void write_errors_leave_nothing_behind(void **state)
{
    (void)state;
    static const uint8_t data[8192];
    const int64_t shape[] = {sizeof data};
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_error err;
    struct plumb_writer *writer;
    struct rlimit before, tight;
    scratch_make(&scratch);
    view(&tensor, PLUMB_U8, 1, shape, data);

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    enum plumb_code npy = plumb_npy_write(scratch_path(&scratch, "x.npy"), &tensor, &err);
    enum plumb_code open =
        plumb_writer_open(&writer, scratch_path(&scratch, "x.safetensors"), NULL, &err);
    enum plumb_code add = plumb_writer_add(writer, "x", -1, &tensor, &err);
    enum plumb_code close = plumb_writer_close(writer, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

    assert_int_equal(npy, PLUMB_E_IO);
    assert_int_equal(open, PLUMB_OK);
    assert_int_equal(add, PLUMB_E_IO);
    assert_int_equal(close, PLUMB_E_IO);
    assert_int_equal(scratch_count(&scratch), 0);

    assert_int_equal(plumb_npy_write(scratch_path(&scratch, "no/x.npy"), &tensor, &err),
                     PLUMB_E_IO);
    assert_string_equal(err.file, scratch.path);
    scratch_remove(&scratch);
}

static void safetensors_round_trips(void **state)
{
    (void)state;
    static const uint16_t bf16[] = {0x3f80, 0xc000, 0x4040};
    static const float f32[] = {1, 2, 3, 4};
    static const uint8_t nibbles[] = {0x21, 0x43};
    const int64_t three[] = {3}, square[] = {2, 2}, stride[] = {1, 2}, none[] = {0};
    struct scratch scratch;
    struct plumb_tensor a, b, c, d, e;
    struct plumb_error err;
    struct plumb_writer *writer;
    scratch_make(&scratch);
    view(&a, PLUMB_BF16, 1, three, bf16);
    view(&b, PLUMB_F32, 2, square, NULL);
    assert_int_equal(plumb_tensor_set_strides(&b, stride, 0, 4, &err), PLUMB_OK);
    b.data = f32;
    view(&c, PLUMB_F4_E2M1, 1, three, nibbles);
    view(&d, PLUMB_I64, 1, none, "");
    view(&e, PLUMB_F32, 0, NULL, f32 + 2);

    const char *path = scratch_path(&scratch, "m.safetensors");
    assert_int_equal(plumb_writer_open(&writer, path, NULL, &err), PLUMB_OK);
    assert_int_equal(plumb_writer_add(writer, "w \"quoted\"\\\n", -1, &a, &err), PLUMB_OK);
    assert_int_equal(plumb_writer_add(writer, "b", -1, &b, &err), PLUMB_OK);
    assert_int_equal(plumb_writer_add(writer, "c", -1, &c, &err), PLUMB_OK);
    assert_int_equal(plumb_writer_add(writer, "d", -1, &d, &err), PLUMB_OK);

    /* What cannot be held is refused and does no harm. */
    struct plumb_tensor wrong;
    view(&wrong, PLUMB_C128, 1, none, "");
    assert_int_equal(plumb_writer_add(writer, "wrong", -1, &wrong, &err), PLUMB_E_UNSUPPORTED);
    assert_int_equal(plumb_writer_add(writer, "b", -1, &b, &err), PLUMB_E_ARG);
    assert_int_equal(plumb_writer_add(writer, "__metadata__", -1, &b, &err), PLUMB_E_ARG);
    assert_int_equal(plumb_writer_add(writer, "", -1, &b, &err), PLUMB_E_ARG);
    assert_int_equal(plumb_writer_add(writer, "s", 1, &b, &err), PLUMB_E_UNSUPPORTED);

    assert_int_equal(plumb_writer_add(writer, "e", -1, &e, &err), PLUMB_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(plumb_writer_close(writer, &err), PLUMB_OK);
    assert_int_equal(scratch_count(&scratch), 1);

    size_t size;
    uint8_t *bytes = read_file(path, &size);
    assert_int_equal(bytes[0] % 8, 0);
    assert_int_equal(bytes[8], '{');
    free(bytes);
    check_record(path, 0, "w \"quoted\"\\\n", &a);
    check_record(path, 1, "b", &b);
    check_record(path, 2, "c", &c);
    check_record(path, 3, "d", &d);
    check_record(path, 4, "e", &e);
    scratch_remove(&scratch);
}

static void an_empty_container_is_a_container(void **state)
{
    (void)state;
    struct scratch scratch;
    struct plumb_writer *writer;
    struct plumb_run *run;
    struct plumb_error err;
    scratch_make(&scratch);
    const char *path = scratch_path(&scratch, "m.safetensors");
    assert_int_equal(plumb_writer_open(&writer, path, NULL, &err), PLUMB_OK);
    assert_int_equal(plumb_writer_close(writer, &err), PLUMB_OK);
    assert_int_equal(plumb_run_open(&run, path, &err), PLUMB_OK);
    assert_int_equal(plumb_run_count(run), 0);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

static void an_aborted_file_never_appears(void **state)
{
    (void)state;
    static const float values[] = {1};
    struct scratch scratch;
    struct plumb_tensor tensor;
    struct plumb_writer *writer;
    struct plumb_error err;
    scratch_make(&scratch);
    view(&tensor, PLUMB_F32, 0, NULL, values);
    assert_int_equal(
        plumb_writer_open(&writer, scratch_path(&scratch, "m.safetensors"), NULL, &err), PLUMB_OK);
    assert_int_equal(plumb_writer_add(writer, "x", -1, &tensor, &err), PLUMB_OK);
    plumb_writer_abort(writer);
    assert_int_equal(scratch_count(&scratch), 0);
    plumb_writer_abort(NULL);
    scratch_remove(&scratch);
}

static void the_ending_decides(void **state)
{
    (void)state;
    struct plumb_writer *writer;
    struct plumb_error err;
    assert_int_equal(plumb_writer_open(&writer, "x.npz", NULL, &err), PLUMB_E_ARG);
    assert_non_null(strstr(err.message, ".safetensors"));
    assert_int_equal(plumb_writer_open(&writer, "safetensors", NULL, &err), PLUMB_E_ARG);
    assert_string_equal(err.file, "safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_is_as_numpy_writes_it),
        cmocka_unit_test(npy_round_trips),
        cmocka_unit_test(strides_and_byte_order_are_straightened),
        cmocka_unit_test(large_strided_tensors_go_in_pieces),
        cmocka_unit_test(npy_refuses_what_numpy_lacks),
        cmocka_unit_test(write_errors_leave_nothing_behind),
        cmocka_unit_test(safetensors_round_trips),
        cmocka_unit_test(an_empty_container_is_a_container),
        cmocka_unit_test(an_aborted_file_never_appears),
        cmocka_unit_test(the_ending_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
