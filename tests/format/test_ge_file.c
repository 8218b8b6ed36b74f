#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/ge_debug.h"
#include "format/ge_file.h"
#include "scratch.h"

#include "format/ge_make.h"
#include "msprobe/graph.h"

#include <math.h>

static struct scratch scratch;
static const struct ge_reading documented = {0};

static int set_up(void **state)
{
    (void)state;
    scratch_make(&scratch);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

/* Writes one tensor as a file and reads it back as float64. Returns how many there are. */
static size_t round_trip(const struct made_tensor *made, const struct ge_reading *reading,
                         double *out, size_t room, enum plumb_code *code)
{
    struct buf bytes = make_ge(made, 1);
    const char *path = scratch_write(&scratch, "one", bytes.data, bytes.size);
    struct arena arena = {0};
    struct ge_file ge;
    struct plumb_error err;
    struct plumb_payload payload;
    size_t count = 0;
    assert_int_equal(ge_open(&ge, path, &arena, &err), PLUMB_OK);
    assert_string_equal(ge.version, "2.0");
    assert_string_equal(ge.op_name, "MyOp");
    assert_int_equal(ge.input_count + ge.output_count, 1);
    const struct ge_tensor *tensor = made->output ? ge.outputs : ge.inputs;
    *code = ge_load(&ge, tensor, reading, &payload, &err);
    if (!*code) {
        count = (size_t)payload.tensor.count;
        assert_true(count * plumb_dtype_parts(payload.tensor.dtype) <= room);
        plumb_tensor_to_f64(&payload.tensor, 0, count, out);
        plumb_payload_release(&payload);
    } else {
        assert_true(err.message[0]);
        assert_true(strstr(err.file, "one") != NULL);
    }
    arena_free(&arena);
    buf_free(&bytes);
    return count;
}

static void each_type(void **state)
{
    (void)state;
    static const struct {
        unsigned type;
        uint64_t count, size;
        uint8_t bytes[16];
        double values[8];
        const char *shown, *origin_shown;
    } cases[] = {
        {0, 9, 4, {1, 255, 3, 128}, {1, -1, 3, -128}, "int8", "int8"},
        {1, 1, 4, {0, 0, 0xC0, 0x3F}, {1.5}, "float32", "float32"},
        {2, 2, 4, {0, 0x3C, 0, 0xC0}, {1, -2}, "float16", "float16"},
        {3, 2, 2, {1, 255}, {1, -1}, "int8", "int8"},
        {4, 2, 2, {1, 255}, {1, 255}, "uint8", "uint8"},
        {5, 1, 2, {0, 0x80}, {-32768}, "int16", "int16"},
        {6, 1, 2, {0, 0x80}, {32768}, "uint16", "int32"},
        {7, 1, 4, {255, 255, 255, 255}, {-1}, "int32", "int32"},
        {8, 1, 8, {2}, {2}, "int64", "int64"},
        {9, 1, 4, {255, 255, 255, 255}, {4294967295.0}, "uint32", "int64"},
        {10, 1, 8, {0, 0, 0, 0, 0, 0, 0, 0x80}, {9223372036854775808.0}, "uint64", "uint64"},
        {11, 2, 2, {0, 1}, {0, 1}, "bool", "bool"},
        {12, 1, 8, {0, 0, 0, 0, 0, 0, 0xF0, 0x3F}, {1}, "float64", "float64"},
        {16, 1, 8, {0, 0, 0x80, 0x3F, 0, 0, 0, 0x40}, {1, 2}, "complex64", "complex64"},
        {19, 1, 2, {255, 255}, {-1}, "int16", "int16"},
        {23, 1, 8, {7}, {7}, "int64", "int64"},
        {27, 2, 4, {0x80, 0x3F, 0, 0xC0}, {1, -2}, "bfloat16", "float32"},
        {28, 3, 2, {0xF1, 0x08}, {1, -1, -8}, "int4", "int4"},
        {29, 8, 1, {0xA1}, {1, 0, 1, 0, 0, 0, 0, 1}, "uint8", "uint8"},
        {29, 3, 1, {0x60}, {0, 1, 1}, "uint8", "uint8"},
        {30, 4, 1, {0xE4}, {0, 1, -2, -1}, "int8", "int8"},
        {31, 4, 1, {0xE4}, {0, 1, 2, 3}, "uint8", "uint8"},
        {32, 1, 4, {0, 0x3C, 0, 0xC0}, {1, -2}, "complex64", "complex64"},
        {33, 3, 3, {0x08, 0x20, 0xEF}, {1, 4, -INFINITY}, "hifloat8", "float64"},
        {34, 2, 2, {0x3C, 0xFC}, {1, -INFINITY}, "float8_e5m2", "float64"},
        {35, 2, 2, {0x38, 0x7E}, {1, 448}, "float8_e4m3fn", "float64"},
        {36, 2, 2, {127, 128}, {1, 2}, "float8_e8m0fnu", "float8_e8m0fnu"},
        {39, 2, 1, {0xF2}, {1, -6}, "float4_e2m1", "float4_e2m1"},
        {40, 4, 2, {0xF1, 0x48}, {0.25, -1.75, -0.0, 1}, "float32", "float32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made_tensor made = {.output = i % 2,
                                   .type = cases[i].type,
                                   .format = 2,
                                   .rank = 1,
                                   .shape = {cases[i].count},
                                   .data = cases[i].bytes,
                                   .size = cases[i].size};
        double values[16];
        enum plumb_code code;
        size_t count = round_trip(&made, &documented, values, 16, &code);
        assert_int_equal(code, PLUMB_OK);
        assert_int_equal(count, cases[i].type == 0 ? cases[i].size : cases[i].count);
        for (size_t k = 0; k < count; k++)
            assert_true(values[k] == cases[i].values[k]);
        struct ge_tensor tensor = {.type = (int32_t)cases[i].type};
        assert_string_equal(ge_dtype_shown(&tensor, &documented), cases[i].shown);
        assert_string_equal(ge_dtype_shown(&tensor, &msprobe_ge_reading), cases[i].origin_shown);
    }
}

static void types_without_values(void **state)
{
    (void)state;
    static const unsigned types[] = {13, 24, 25, 26, 37, 38, 41, 42, 200};
    double values[8];
    enum plumb_code code;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct made_tensor made = {
            .type = types[i], .rank = 1, .shape = {2}, .data = "abcd", .size = 4};
        round_trip(&made, &documented, values, 8, &code);
        assert_int_equal(code, PLUMB_E_UNSUPPORTED);
    }
}

static void padding_and_lies(void **state)
{
    (void)state;
    static const float data[32] = {1, 2, 3, 4, 5, 6};
    double values[40];
    enum plumb_code code;
    /* Devices pad; only what the shape needs is read. */
    struct made_tensor made = {
        .type = 1, .format = 2, .rank = 2, .shape = {2, 3}, .data = data, .size = 128};
    assert_int_equal(round_trip(&made, &documented, values, 40, &code), 6);
    assert_true(values[5] == 6);
    made.size = 20; /* a float short */
    round_trip(&made, &documented, values, 40, &code);
    assert_int_equal(code, PLUMB_E_FORMAT);
    made.size = 24;
    made.shape[0] = UINT64_MAX / 2;
    round_trip(&made, &documented, values, 40, &code);
    assert_int_equal(code, PLUMB_E_FORMAT);
    made.shape[0] = 0;
    assert_int_equal(round_trip(&made, &documented, values, 40, &code), 0);
    assert_int_equal(code, PLUMB_OK);
    uint64_t none[] = {0, 4};
    struct ge_tensor empty = {.type = 1, .shape = {2, none}};
    assert_string_equal(ge_dtype_shown(&empty, &msprobe_ge_reading), "float64");
    assert_string_equal(ge_dtype_shown(&empty, &documented), "float32");
}

static struct buf two_tensors(void)
{
    static const float first[3] = {1, 2, 3};
    static const uint16_t second[2] = {0x3C00, 0x4000};
    struct made_tensor made[] = {
        {.output = true, .type = 2, .rank = 1, .shape = {2}, .data = second, .size = 4},
        {.type = 1, .rank = 1, .shape = {3}, .data = first, .size = 12},
    };
    return make_ge(made, 2);
}

/* Whatever is cut off: no crash, an error, or tensors that say what they lack. */
static void cut_at_every_byte(void **state)
{
    (void)state;
    struct buf bytes = two_tensors();
    for (size_t size = 0; size <= bytes.size; size++) {
        struct plumb_file file = {
            .data = (const uint8_t *)bytes.data, .size = size, .file_size = size};
        struct arena arena = {0};
        struct ge_file ge;
        struct plumb_error err;
        enum plumb_code code = ge_parse(&ge, &file, "cut", &arena, &err);
        if (size < bytes.size - 16) {
            assert_int_equal(code, PLUMB_E_FORMAT);
        } else {
            assert_int_equal(code, PLUMB_OK);
            assert_int_equal(ge.inputs[0].offset, bytes.size - 16); /* inputs come first */
            assert_int_equal(ge.inputs[0].error != NULL, size < bytes.size - 4);
            assert_int_equal(ge.outputs[0].error != NULL, size < bytes.size);
        }
        arena_free(&arena);
    }
    buf_free(&bytes);
}

static void unpacked_shapes(void **state)
{
    (void)state;
    struct buf header = {0}, message = {0}, shape = {0}, file = {0};
    make_number(&shape, 1, 2);
    make_number(&shape, 1, 3);
    make_number(&message, 1, 3);
    make_bytes(&message, 3, shape.data, shape.size);
    make_number(&message, 5, 6);
    make_bytes(&header, 1, "2.0", 3);
    make_bytes(&header, 4, message.data, message.size);
    make_le64(&file, header.size);
    buf_append(&file, header.data, header.size);
    buf_append(&file, "123456", 6);
    struct plumb_file mapped = {
        .data = (const uint8_t *)file.data, .size = file.size, .file_size = file.size};
    struct arena arena = {0};
    struct ge_file ge;
    assert_int_equal(ge_parse(&ge, &mapped, "x", &arena, NULL), PLUMB_OK);
    assert_int_equal(ge.inputs[0].shape.rank, 2);
    assert_int_equal(ge.inputs[0].shape.dim[1], 3);
    assert_null(ge.inputs[0].error);
    assert_true(ge_probe(mapped.data, (size_t)mapped.size, mapped.size));
    assert_false(ge_probe((const uint8_t *)"\x93NUMPY\x01\0v\0{'descr'", 18, 200));
    arena_free(&arena);
    buf_free(&header);
    buf_free(&message);
    buf_free(&shape);
    buf_free(&file);
}

static struct buf make_nano(void)
{
    struct buf shape = {0}, input = {0}, output = {0}, header = {0}, file = {0};
    make_le32(&shape, 0);
    make_le32(&shape, 16);
    make_le64(&shape, 1);
    make_le64(&shape, 2);
    make_le32(&input, 1); /* count */
    make_le32(&input, 0); /* float32 */
    make_le32(&input, 2); /* ND */
    make_le32(&input, 0);
    for (uint64_t i = 0; i < 3; i++)
        make_le64(&input, i == 2 ? 8 : 0);
    make_le32(&input, (uint32_t)shape.size);
    buf_append(&input, shape.data, shape.size);
    make_le32(&output, 1);
    make_le32(&output, 3); /* int32 */
    make_le32(&output, 2);
    for (int i = 0; i < 4; i++)
        make_le32(&output, 0);
    for (uint64_t i = 0; i < 3; i++)
        make_le64(&output, i == 2 ? 8 : 0);
    make_le32(&output, (uint32_t)shape.size);
    buf_append(&output, shape.data, shape.size);
    make_le32(&header, 0x5A5A5A5A);
    make_le32(&header, 1);
    make_le32(&header, 4);
    make_le32(&header, (uint32_t)input.size);
    buf_append(&header, input.data, input.size);
    make_le32(&header, 5);
    make_le32(&header, (uint32_t)output.size);
    buf_append(&header, output.data, output.size);
    make_le64(&file, header.size);
    buf_append(&file, header.data, header.size);
    buf_append(&file, (const float[]){1.5f, -2}, 8);
    buf_append(&file, (const int32_t[]){7, -8}, 8);
    buf_free(&shape);
    buf_free(&input);
    buf_free(&output);
    buf_free(&header);
    assert_false(file.failed);
    return file;
}

static void nano(void **state)
{
    (void)state;
    struct buf bytes = make_nano();
    struct arena arena = {0};
    struct ge_file ge;
    struct plumb_error err;
    struct plumb_payload payload;
    double values[2];
    const char *path = scratch_write(&scratch, "nano", bytes.data, bytes.size);
    assert_int_equal(ge_open(&ge, path, &arena, &err), PLUMB_OK);
    assert_true(ge.nano);
    assert_int_equal(ge_load(&ge, ge.inputs, &documented, &payload, &err), PLUMB_OK);
    plumb_tensor_to_f64(&payload.tensor, 0, 2, values);
    assert_true(payload.tensor.rank == 2 && values[0] == 1.5 && values[1] == -2);
    plumb_payload_release(&payload);
    assert_int_equal(ge_load(&ge, ge.outputs, &documented, &payload, &err), PLUMB_OK);
    plumb_tensor_to_f64(&payload.tensor, 0, 2, values);
    assert_true(payload.tensor.dtype == PLUMB_I32 && values[0] == 7 && values[1] == -8);
    plumb_payload_release(&payload);
    arena_free(&arena);
    for (size_t size = 0; size < bytes.size; size++) {
        struct plumb_file file = {
            .data = (const uint8_t *)bytes.data, .size = size, .file_size = size};
        if (!ge_parse(&ge, &file, "cut", &arena, &err))
            assert_non_null(ge.outputs[0].error);
        arena_free(&arena);
    }
    buf_free(&bytes);
}

static void overflow_information(void **state)
{
    (void)state;
    struct buf data = {0}, text = {0};
    struct plumb_error err;
    assert_true(ge_debug_is("Opdebug.Node_OpDebug.1.2.1740800000000000"));
    assert_false(ge_debug_is("Add.Add.1.2.1740800000000000"));
    const uint32_t head[] = {0x5A5A5A5A, 2, 1, 2, 0, 64};
    for (int i = 0; i < 6; i++)
        make_le32(&data, head[i]);
    for (uint64_t i = 1; i <= 8; i++)
        make_le64(&data, i);
    assert_int_equal(ge_debug_text(&text, (uint8_t *)data.data, data.size, &err), PLUMB_OK);
    assert_string_equal(text.data, "AI CPU (version 2): model_id 1, stream_id 2, task_id 3, "
                                   "task_type 4, context_id 5, cpu_id 6, thread_id 7, status 8\n");
    assert_int_equal(ge_debug_text(&text, (uint8_t *)data.data, data.size - 8, &err),
                     PLUMB_E_FORMAT);
    buf_free(&data);
    buf_free(&text);

    uint8_t old[2048] = {0};
    old[256 + 4 * 8] = 0xFF; /* pc_start of the AI core */
    old[1024 + 8] = 3;       /* its block */
    assert_int_equal(ge_debug_text(&text, old, sizeof old, &err), PLUMB_OK);
    assert_non_null(strstr(text.data, "AI core: model_id 0, stream_id 0, task_id 0, task_type 0, "
                                      "pc_start 0xff, para_base 0x0\n"));
    assert_non_null(strstr(text.data, "AI core: kernel_code 0x0, block_idx 3, status 0\n"));
    assert_int_equal(ge_debug_text(&text, old, 2047, &err), PLUMB_E_FORMAT);
    buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type),
        cmocka_unit_test(types_without_values),
        cmocka_unit_test(padding_and_lies),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(unpacked_shapes),
        cmocka_unit_test(nano),
        cmocka_unit_test(overflow_information),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
