/* Tensor views: what is refused, and what walking over strides gives, against plain index loops. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/tensor.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

#define POWER(n) (INT64_C(1) << (n))

static enum plumb_code init(struct plumb_tensor *tensor, enum plumb_dtype dtype, unsigned rank,
                            const int64_t *shape)
{
    struct plumb_error err = {.message = "unset"};
    enum plumb_code code = plumb_tensor_init(tensor, dtype, rank, shape, &err);
    assert_int_equal(plumb_tensor_init(tensor, dtype, rank, shape, NULL), code);
    if (code) {
        assert_int_equal(err.code, code);
        assert_string_not_equal(err.message, "unset");
    }
    return code;
}

#define SHAPE(...)                                                                                 \
    sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[])                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void test_init(void **state)
{
    (void)state;
    struct plumb_tensor tensor;
    memset(&tensor, 0xAA, sizeof tensor);
    assert_int_equal(init(&tensor, PLUMB_F32, SHAPE(2, 3, 4)), PLUMB_OK);
    assert_true(tensor.count == 24 && tensor.rank == 3 && tensor.dense && !tensor.swap);
    assert_true(tensor.stride[0] == 12 && tensor.stride[1] == 4 && tensor.stride[2] == 1);
    assert_true(tensor.dtype == PLUMB_F32 && !tensor.data && plumb_tensor_bytes(&tensor) == 96);

    assert_int_equal(init(&tensor, PLUMB_I4, SHAPE(3, 3)), PLUMB_OK);
    assert_true(plumb_tensor_bytes(&tensor) == 5);
    assert_int_equal(init(&tensor, PLUMB_F64, 0, NULL), PLUMB_OK);
    assert_true(tensor.count == 1 && tensor.dense && plumb_tensor_bytes(&tensor) == 8);
    assert_int_equal(init(&tensor, PLUMB_F64, SHAPE(3, 0, 5)), PLUMB_OK);
    assert_true(tensor.count == 0 && plumb_tensor_bytes(&tensor) == 0);
}

static void test_init_limits(void **state)
{
    (void)state;
    struct plumb_tensor tensor;
    int64_t many[PLUMB_MAX_RANK + 1];
    for (int i = 0; i <= PLUMB_MAX_RANK; i++)
        many[i] = 1;
    assert_int_equal(init(&tensor, PLUMB_U8, PLUMB_MAX_RANK, many), PLUMB_OK);
    assert_int_equal(init(&tensor, PLUMB_U8, PLUMB_MAX_RANK + 1, many), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, UINT32_MAX, many), PLUMB_E_FORMAT);

    /* 63 bits of bytes. */
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(POWER(60))), PLUMB_OK);
    assert_true(tensor.count == UINT64_C(1) << 60);
    assert_int_equal(init(&tensor, PLUMB_F32, SHAPE(POWER(60))), PLUMB_OK);
    assert_true(plumb_tensor_bytes(&tensor) == UINT64_C(1) << 62);
    assert_int_equal(init(&tensor, PLUMB_F64, SHAPE(POWER(60))), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_C128, SHAPE(POWER(60))), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_F64, SHAPE(POWER(60) - 1)), PLUMB_OK);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(INT64_MAX)), PLUMB_OK);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(POWER(32), POWER(31))), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(POWER(32), POWER(32))), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(POWER(32), POWER(32), POWER(32))),
                     PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_I4, SHAPE(INT64_MAX)), PLUMB_OK);

    /* A zero does not excuse the rest, wherever it stands. */
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(0, POWER(32), POWER(32))), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(POWER(32), POWER(32), 0)), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(POWER(32), 0, POWER(32))), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_F32, SHAPE(0, POWER(60))), PLUMB_OK);
    assert_true(tensor.count == 0);

    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(-1)), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(2, -3)), PLUMB_E_FORMAT);
    assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(0, INT64_MIN)), PLUMB_E_FORMAT);
}

static enum plumb_code stride(struct plumb_tensor *tensor, uint64_t offset, uint64_t available,
                              unsigned rank, const int64_t *strides)
{
    struct plumb_error err = {.message = "unset"};
    assert_int_equal(rank, tensor->rank);
    enum plumb_code code = plumb_tensor_set_strides(tensor, strides, offset, available, &err);
    if (code)
        assert_string_not_equal(err.message, "unset");
    return code;
}

static void test_strides(void **state)
{
    (void)state;
    struct plumb_tensor tensor;
    const int64_t shape[] = {2, 3};

#define TRY(dtype, offset, available, ...)                                                         \
    (init(&tensor, dtype, 2, shape), stride(&tensor, offset, available, SHAPE(__VA_ARGS__)))
    assert_int_equal(TRY(PLUMB_F32, 0, 6, 3, 1), PLUMB_OK);
    assert_true(tensor.dense);
    assert_int_equal(TRY(PLUMB_F32, 0, 6, 1, 2), PLUMB_OK); /* transposed */
    assert_true(!tensor.dense && tensor.stride[0] == 1 && tensor.stride[1] == 2);
    assert_int_equal(stride(&tensor, 0, 6, SHAPE(1, 2)), PLUMB_OK); /* said twice */
    assert_false(tensor.dense);
    assert_int_equal(stride(&tensor, 0, 6, SHAPE(3, 1)), PLUMB_OK);
    assert_true(tensor.dense);

    assert_int_equal(TRY(PLUMB_F32, 0, 1, 0, 0), PLUMB_OK); /* one element, six times */
    assert_false(tensor.dense);
    assert_int_equal(TRY(PLUMB_F32, 0, 0, 0, 0), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 5, 5, 0, 0), PLUMB_E_FORMAT);

    assert_int_equal(TRY(PLUMB_F32, 0, 5, 3, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 4, 10, 3, 1), PLUMB_OK);
    assert_int_equal(TRY(PLUMB_F32, 5, 10, 3, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 5, 6, -3, -1), PLUMB_OK); /* backwards from the end */
    assert_int_equal(TRY(PLUMB_F32, 4, 6, -3, -1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 3, 6, -3, 1), PLUMB_OK);
    assert_int_equal(TRY(PLUMB_F32, 2, 6, -3, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 4, 6, -3, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, UINT64_MAX, 6, 3, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, UINT64_MAX - 2, UINT64_MAX, 3, 1), PLUMB_E_FORMAT);

    assert_int_equal(TRY(PLUMB_F32, 0, 6, INT64_MAX, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 0, 6, 1, INT64_MAX), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 0, 6, INT64_MIN, 1), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, 0, 6, 1, INT64_MIN), PLUMB_E_FORMAT);
    assert_int_equal(TRY(PLUMB_F32, UINT64_MAX / 2, UINT64_MAX, INT64_MIN, INT64_MAX / 2),
                     PLUMB_E_FORMAT);

    assert_int_equal(TRY(PLUMB_I4, 0, 6, 3, 1), PLUMB_OK);
    assert_int_equal(TRY(PLUMB_I4, 0, 6, 1, 2), PLUMB_E_UNSUPPORTED);
#undef TRY

    /* More elements than 63 bits can count, two to a byte. */
    assert_int_equal(init(&tensor, PLUMB_I4, SHAPE(2, INT64_MAX)), PLUMB_OK);
    assert_int_equal(stride(&tensor, 0, UINT64_MAX, SHAPE(INT64_MAX, 1)), PLUMB_E_FORMAT);

    /* Without elements there is nothing to leave the storage with. */
    assert_int_equal(init(&tensor, PLUMB_F32, SHAPE(0, 3)), PLUMB_OK);
    assert_int_equal(stride(&tensor, 7, 0, SHAPE(INT64_MAX, INT64_MIN)), PLUMB_OK);
    assert_true(tensor.dense);
    assert_int_equal(init(&tensor, PLUMB_F32, 0, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_set_strides(&tensor, NULL, 3, 4, NULL), PLUMB_OK);
    assert_int_equal(plumb_tensor_set_strides(&tensor, NULL, 4, 4, NULL), PLUMB_E_FORMAT);
}

/* The stride of a dimension of size 1 is never used, whatever it is. */
static void test_stride_of_one(void **state)
{
    (void)state;
    struct plumb_tensor tensor;
    const uint8_t bytes[] = {0, 1, 2, 3, 4, 5};
    uint8_t out[6];
    const int64_t odd[] = {INT64_MAX, INT64_MIN, -1, 0, 12345};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(1, 2, 1, 3)), PLUMB_OK);
        assert_int_equal(stride(&tensor, 0, 6, SHAPE(odd[i], 3, odd[i], 1)), PLUMB_OK);
        assert_true(tensor.dense);

        assert_int_equal(init(&tensor, PLUMB_U8, SHAPE(2, 3, 1, 1)), PLUMB_OK);
        assert_int_equal(stride(&tensor, 0, 6, SHAPE(1, 2, odd[i], odd[i])), PLUMB_OK);
        assert_false(tensor.dense);
        tensor.data = bytes;
        plumb_tensor_gather(&tensor, 0, 6, out);
        assert_memory_equal(out, ((const uint8_t[]){0, 2, 4, 1, 3, 5}), 6);
        plumb_tensor_gather(&tensor, 3, 3, out);
        assert_memory_equal(out, ((const uint8_t[]){1, 3, 5}), 3);
    }
}

/* Where element `number` in C order lies. */
static int64_t place_of(const struct plumb_tensor *tensor, uint64_t number)
{
    int64_t place = 0;
    for (unsigned i = tensor->rank; i-- > 0;) {
        place += (int64_t)(number % (uint64_t)tensor->shape[i]) * tensor->stride[i];
        number /= (uint64_t)tensor->shape[i];
    }
    return place;
}

/* A random view into a storage, and the element it starts at. */
static uint64_t random_view(struct plumb_tensor *tensor, enum plumb_dtype dtype, uint64_t *seed,
                            uint64_t available)
{
    for (;;) {
        unsigned rank = 1 + (unsigned)random_below(seed, 5);
        int64_t shape[5], strides[5];
        for (unsigned i = 0; i < rank; i++) {
            shape[i] = 1 + (int64_t)random_below(seed, 9);
            strides[i] = (int64_t)random_below(seed, 41) - 20;
            if (random_below(seed, 4) == 0)
                strides[i] = (int64_t)random_below(seed, 3) - 1;
        }
        uint64_t start = random_below(seed, available);
        assert_int_equal(plumb_tensor_init(tensor, dtype, rank, shape, NULL), PLUMB_OK);
        if (plumb_tensor_set_strides(tensor, strides, start, available, NULL) == PLUMB_OK)
            return start;
    }
}

static void test_walk(void **state)
{
    (void)state;
    static const enum plumb_dtype types[] = {PLUMB_U8,  PLUMB_F16, PLUMB_I32,
                                             PLUMB_F64, PLUMB_C64, PLUMB_C128};
    enum { AVAILABLE = 600, MOST = 9 * 9 * 9 * 9 * 9 };
    static unsigned char storage[AVAILABLE * 16 + 1], out[MOST * 16 + 1];
    static double values[MOST * 2 + 1];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof storage; i++)
        storage[i] = (unsigned char)random_bits(&seed);
    for (int round = 0; round < 1500; round++) {
        enum plumb_dtype dtype = types[random_below(&seed, sizeof types / sizeof *types)];
        size_t size = plumb_dtype_info(dtype)->bits / 8;
        unsigned parts = plumb_dtype_parts(dtype);
        struct plumb_tensor tensor;
        uint64_t start = random_view(&tensor, dtype, &seed, AVAILABLE);
        tensor.data = storage + 1 + start * size;
        tensor.swap = random_below(&seed, 2);

        uint64_t first = random_below(&seed, tensor.count);
        size_t count = (size_t)random_below(&seed, tensor.count - first + 1);
        if (round % 3 == 0) {
            first = 0;
            count = (size_t)tensor.count;
        }
        memset(out, 0x55, count * size + 1);
        plumb_tensor_gather(&tensor, first, count, out);
        values[count * parts] = 12345;
        plumb_tensor_to_f64(&tensor, first, count, values);
        for (size_t i = 0; i < count; i++) {
            const unsigned char *element =
                (const unsigned char *)tensor.data + place_of(&tensor, first + i) * (int64_t)size;
            assert_memory_equal(out + i * size, element, size);
            double wanted[2];
            plumb_to_f64(dtype, element, 0, parts, tensor.swap, wanted);
            assert_memory_equal(values + i * parts, wanted, parts * sizeof *wanted);
        }
        assert_int_equal(out[count * size], 0x55);
        assert_true(values[count * parts] == 12345);
    }
}

static void test_packed(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x10, 0x32, 0x54, 0x76};
    uint8_t out[4] = {0};
    double values[8];
    struct plumb_tensor tensor;
    assert_int_equal(init(&tensor, PLUMB_I4, SHAPE(7)), PLUMB_OK);
    tensor.data = bytes;
    plumb_tensor_to_f64(&tensor, 1, 6, values);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == i + 1);
    plumb_tensor_gather(&tensor, 2, 5, out);
    assert_memory_equal(out, ((const uint8_t[]){0x32, 0x54, 0x76, 0}), 4);
    plumb_tensor_gather(&tensor, 6, 0, NULL);
}

static void test_equivalent(void **state)
{
    (void)state;
    struct plumb_tensor a, b;
#define EQUIVALENT(left, right)                                                                    \
    (init(&a, PLUMB_F32, left), init(&b, PLUMB_F64, right), plumb_shape_equivalent(&a, &b))
#define LIST(...) SHAPE(__VA_ARGS__)
    assert_true(EQUIVALENT(LIST(2, 3), LIST(2, 3)));
    assert_true(EQUIVALENT(LIST(1, 2, 1, 3, 1), LIST(2, 3)));
    assert_true(EQUIVALENT(LIST(2, 3), LIST(1, 1, 2, 3)));
    assert_true(EQUIVALENT(LIST(1, 1), LIST(1)));
    assert_false(EQUIVALENT(LIST(2, 3), LIST(3, 2)));
    assert_false(EQUIVALENT(LIST(6), LIST(2, 3)));
    assert_false(EQUIVALENT(LIST(2, 3), LIST(2)));
    assert_false(EQUIVALENT(LIST(2), LIST(2, 3, 1)));
    assert_false(EQUIVALENT(LIST(0), LIST(1)));
    assert_true(EQUIVALENT(LIST(1, 0), LIST(0)));
    assert_false(EQUIVALENT(LIST(0, 2), LIST(0, 3)));
    init(&a, PLUMB_F32, 0, NULL);
    init(&b, PLUMB_F32, SHAPE(1, 1));
    assert_true(plumb_shape_equivalent(&a, &b) && plumb_shape_equivalent(&b, &a));
    init(&b, PLUMB_F32, SHAPE(2));
    assert_false(plumb_shape_equivalent(&a, &b) || plumb_shape_equivalent(&b, &a));
}

/* The last number of a complex element counts, what lies before `first` does not. */
static void test_is_zero(void **state)
{
    (void)state;
    static float numbers[2 * 1300];
    struct plumb_tensor tensor;
    const int64_t shape[] = {1300};
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_C64, 1, shape, NULL), PLUMB_OK);
    tensor.data = numbers;
    assert_true(plumb_tensor_is_zero(&tensor, 0));
    numbers[2 * 700 + 1] = 1e-45f;
    assert_false(plumb_tensor_is_zero(&tensor, 0));
    assert_false(plumb_tensor_is_zero(&tensor, 700));
    assert_true(plumb_tensor_is_zero(&tensor, 701));
    assert_true(plumb_tensor_is_zero(&tensor, 1300));
}

static void test_shape_text(void **state)
{
    (void)state;
    struct plumb_tensor tensor;
    char text[32];
    init(&tensor, PLUMB_F32, SHAPE(2, 3, 0));
    assert_string_equal(plumb_shape_text(&tensor, text, sizeof text), "[2, 3, 0]");
    init(&tensor, PLUMB_F32, 0, NULL);
    assert_string_equal(plumb_shape_text(&tensor, text, sizeof text), "[]");
    init(&tensor, PLUMB_F32, SHAPE(123456, 7, 8));
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, '#', sizeof text);
        plumb_shape_text(&tensor, text, size);
        assert_true(strlen(text) < size && (size == sizeof text || text[size] == '#'));
        assert_int_equal(strncmp("[123456, 7, 8]", text, strlen(text)), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init),       cmocka_unit_test(test_init_limits),
        cmocka_unit_test(test_strides),    cmocka_unit_test(test_stride_of_one),
        cmocka_unit_test(test_walk),       cmocka_unit_test(test_packed),
        cmocka_unit_test(test_equivalent), cmocka_unit_test(test_shape_text),
        cmocka_unit_test(test_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
