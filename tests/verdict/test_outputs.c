/* Rule by rule: when two lists of outputs agree. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/outputs.h"

#include <math.h>
#include <string.h>

static struct plumb_arg make(struct plumb_tensor *tensor, enum plumb_dtype dtype, int64_t n,
                             const void *data)
{
    assert_int_equal(plumb_tensor_init(tensor, dtype, 1, &n, NULL), PLUMB_OK);
    tensor->data = data;
    return (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = tensor};
}

static struct plumb_outputs_verdict compare_args(const struct plumb_arg *a, size_t n,
                                                 const struct plumb_arg *b, size_t m, bool raised)
{
    struct plumb_outputs_verdict verdict;
    struct plumb_error err = {0};
    assert_int_equal(plumb_outputs_compare(a, n, b, m, raised, 1e-4, 1e-5, &verdict, &err),
                     PLUMB_OK);
    return verdict;
}

static struct plumb_outputs_verdict compare(enum plumb_dtype dtype, const void *a, const void *b,
                                            int64_t n)
{
    struct plumb_tensor tensors[2];
    const struct plumb_arg x = make(&tensors[0], dtype, n, a), y = make(&tensors[1], dtype, n, b);
    return compare_args(&x, 1, &y, 1, false);
}

static void tolerance_is_of_the_reference(void **state)
{
    (void)state;
    const float reference[] = {100, 0, -2}, inside[] = {100.009f, 9e-6f, -2.0002f};
    struct plumb_outputs_verdict v = compare(PLUMB_F32, inside, reference, 3);
    assert_int_equal(v.fault, PLUMB_FAULT_NONE);
    assert_true(fabs(v.max_abs - 0.009) < 1e-5);
    assert_true(fabs(v.max_rel - 9e6) < 10); /* 9e-6 / 1e-12 */
    const float outside[] = {100, 1.1e-5f, -2};
    v = compare(PLUMB_F32, outside, reference, 3);
    assert_int_equal(v.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_string_equal(plumb_fault_name(v.fault), "not_close");
    /* |b| is that of the reference: 100 is less than 1e-4 of 1e6, not of 999900. */
    const double a[] = {1e6}, b[] = {999900};
    assert_int_equal(compare(PLUMB_F64, a, b, 1).fault, PLUMB_FAULT_NOT_CLOSE);
    assert_int_equal(compare(PLUMB_F64, b, a, 1).fault, PLUMB_FAULT_NONE);
    /* What is just at the limit is close. */
    struct plumb_tensor tensors[2];
    const double at[] = {1.75}, unit[] = {1};
    const struct plumb_arg x = make(&tensors[0], PLUMB_F64, 1, at);
    const struct plumb_arg y = make(&tensors[1], PLUMB_F64, 1, unit);
    assert_int_equal(plumb_outputs_compare(&x, 1, &y, 1, false, 0.5, 0.25, &v, NULL), PLUMB_OK);
    assert_int_equal(v.fault, PLUMB_FAULT_NONE);
    const double c[] = {1.0001001}, one[] = {1};
    assert_int_equal(compare(PLUMB_F64, c, one, 1).fault, PLUMB_FAULT_NONE);
    const double d[] = {1.00012};
    assert_int_equal(compare(PLUMB_F64, d, one, 1).fault, PLUMB_FAULT_NOT_CLOSE);
}

static void equal_special_values_are_equal(void **state)
{
    (void)state;
    const float a[] = {NAN, INFINITY, -INFINITY, 1}, b[] = {-NAN, INFINITY, -INFINITY, 1};
    const struct plumb_outputs_verdict v = compare(PLUMB_F32, a, b, 4);
    assert_int_equal(v.fault, PLUMB_FAULT_NONE);
    assert_true(v.max_abs == 0 && v.max_rel == 0);
}

static void special_values_on_one_side(void **state)
{
    (void)state;
    static const struct {
        float a, b;
    } pairs[] = {{NAN, 1},        {1, NAN},         {INFINITY, 1},        {1, INFINITY},
                 {NAN, INFINITY}, {-INFINITY, NAN}, {INFINITY, -INFINITY}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        const float a[] = {1, pairs[k].a, NAN}, b[] = {1, pairs[k].b, 0};
        const struct plumb_outputs_verdict v = compare(PLUMB_F32, a, b, 3);
        assert_int_equal(v.fault, PLUMB_FAULT_SPECIAL);
        assert_int_equal(v.index, 1); /* the first of the two */
        assert_memory_equal(&(float){(float)v.actual}, &pairs[k].a, sizeof(float));
        assert_memory_equal(&(float){(float)v.expected}, &pairs[k].b, sizeof(float));
    }
}

static void special_values_beat_plain_errors(void **state)
{
    (void)state;
    const float a[] = {5, NAN}, b[] = {1, 1};
    const struct plumb_outputs_verdict v = compare(PLUMB_F32, a, b, 2);
    assert_int_equal(v.fault, PLUMB_FAULT_SPECIAL);
    assert_string_equal(v.message, "nan instead of 1.0 at [1]");
    assert_true(v.max_abs == 4);
}

/* Beyond the blocks that numbers are looked at in. */
static void long_tensors_to_the_end(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float a[N], b[N];
    static int64_t i[N], j[N];
    a[N - 1] = 1;
    i[N - 1] = 1;
    assert_int_equal(compare(PLUMB_F32, a, b, N).fault, PLUMB_FAULT_NOT_CLOSE);
    assert_int_equal(compare(PLUMB_I64, i, j, N).fault, PLUMB_FAULT_NOT_CLOSE);
    a[N - 1] = NAN;
    struct plumb_outputs_verdict v = compare(PLUMB_F32, a, b, N);
    assert_int_equal(v.index, N - 1);
    assert_string_equal(v.message, "nan instead of 0.0 at [4999]");
    v = compare(PLUMB_C64, a, b, N / 2);
    assert_int_equal(v.index, N - 1);
    assert_string_equal(v.message, "nan instead of 0.0 at [2499] (imaginary part)");
}

static void shapes_must_be_equal(void **state)
{
    (void)state;
    struct plumb_tensor a, b;
    const float data[6] = {0};
    plumb_tensor_init(&a, PLUMB_F32, 2, (int64_t[]){2, 3}, NULL);
    plumb_tensor_init(&b, PLUMB_F32, 2, (int64_t[]){3, 2}, NULL);
    a.data = b.data = data;
    const struct plumb_arg x = {.kind = PLUMB_ARG_TENSOR, .tensor = &a};
    const struct plumb_arg y = {.kind = PLUMB_ARG_TENSOR, .tensor = &b};
    struct plumb_outputs_verdict v = compare_args(&x, 1, &y, 1, false);
    assert_int_equal(v.fault, PLUMB_FAULT_SHAPE);
    assert_string_equal(v.message, "(2, 3) instead of (3, 2)");
    plumb_tensor_init(&b, PLUMB_F32, 3, (int64_t[]){2, 3, 1}, NULL);
    b.data = data;
    v = compare_args(&x, 1, &y, 1, false);
    assert_int_equal(v.fault, PLUMB_FAULT_SHAPE);
}

static void types_must_be_equal(void **state)
{
    (void)state;
    struct plumb_tensor tensors[2];
    const float f[] = {1};
    const double d[] = {1};
    const int64_t i[] = {1};
    const struct plumb_arg x = make(&tensors[0], PLUMB_F32, 1, f);
    struct plumb_arg y = make(&tensors[1], PLUMB_F64, 1, d);
    struct plumb_outputs_verdict v = compare_args(&x, 1, &y, 1, false);
    assert_int_equal(v.fault, PLUMB_FAULT_DTYPE);
    assert_string_equal(v.message, "torch.float32 instead of torch.float64");
    assert_int_equal(compare_args(&x, 1, &y, 1, true).fault, PLUMB_FAULT_NONE);
    y = make(&tensors[1], PLUMB_I64, 1, i);
    assert_int_equal(compare_args(&x, 1, &y, 1, true).fault, PLUMB_FAULT_DTYPE);
}

static void integers_are_compared_exactly(void **state)
{
    (void)state;
    const int64_t b[] = {(1 << 24) + 1, (INT64_C(1) << 53) + 1, INT64_MIN, -1};
    assert_int_equal(compare(PLUMB_I64, b, b, 4).fault, PLUMB_FAULT_NONE);
    for (int k = 0; k < 4; k++) {
        int64_t a[4];
        memcpy(a, b, sizeof a);
        a[k] += 1;
        const struct plumb_outputs_verdict v = compare(PLUMB_I64, a, b, 4);
        assert_int_equal(v.fault, PLUMB_FAULT_NOT_CLOSE);
        assert_true(v.max_abs == 1);
    }
    const int64_t low[] = {INT64_MIN}, high[] = {INT64_MAX};
    assert_true(compare(PLUMB_I64, low, high, 1).max_abs == 0x1p64);
    const int8_t c[] = {-128}, d[] = {127};
    assert_true(compare(PLUMB_I8, c, d, 1).max_abs == 255);
    const uint8_t e[] = {0}, f[] = {255};
    assert_true(compare(PLUMB_U8, e, f, 1).max_abs == 255);
    const int32_t g[] = {20000}, h[] = {20001};
    assert_int_equal(compare(PLUMB_I32, g, h, 1).fault, PLUMB_FAULT_NOT_CLOSE);
}

static void bools(void **state)
{
    (void)state;
    const uint8_t a[] = {0, 1, 1}, b[] = {0, 1, 2}, c[] = {1, 1, 1};
    assert_int_equal(compare(PLUMB_BOOL, a, b, 3).fault, PLUMB_FAULT_NONE); /* any but 0 is true */
    assert_int_equal(compare(PLUMB_BOOL, a, c, 3).fault, PLUMB_FAULT_NOT_CLOSE);
}

static void complex_parts_count(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4}, b[] = {1, 2, 3, 4.1f}, c[] = {1, NAN, 3, 4};
    assert_int_equal(compare(PLUMB_C64, a, a, 2).fault, PLUMB_FAULT_NONE);
    assert_int_equal(compare(PLUMB_C64, b, a, 2).fault, PLUMB_FAULT_NOT_CLOSE);
    const struct plumb_outputs_verdict v = compare(PLUMB_C64, c, a, 2);
    assert_int_equal(v.fault, PLUMB_FAULT_SPECIAL);
    assert_string_equal(v.message, "nan instead of 2.0 at [0] (imaginary part)");
}

static void a_type_that_overflows(void **state)
{
    (void)state;
    struct plumb_tensor tensors[2];
    const uint16_t inf[] = {0x7c00}, largest[] = {0x7bff};
    const double far[] = {70000}, near[] = {65500}, edge[] = {65519};
    struct plumb_arg x = make(&tensors[0], PLUMB_F16, 1, inf);
    struct plumb_arg y = make(&tensors[1], PLUMB_F64, 1, far);
    const struct plumb_outputs_verdict v = compare_args(&x, 1, &y, 1, true);
    assert_int_equal(v.fault, PLUMB_FAULT_NONE);
    assert_true(!isinf(v.max_ulp)); /* it is no error */
    y = make(&tensors[1], PLUMB_F64, 1, near);
    assert_int_equal(compare_args(&x, 1, &y, 1, true).fault, PLUMB_FAULT_SPECIAL);
    x = make(&tensors[0], PLUMB_F16, 1, largest);
    assert_int_equal(compare_args(&x, 1, &y, 1, true).fault, PLUMB_FAULT_NONE);
    y = make(&tensors[1], PLUMB_F64, 1, edge); /* where rounding is about to give infinity */
    assert_int_not_equal(compare_args(&x, 1, &y, 1, true).fault, PLUMB_FAULT_SPECIAL);
}

static void tuples(void **state)
{
    (void)state;
    struct plumb_tensor tensors[4];
    const float one[] = {1}, two[] = {2};
    struct plumb_arg a[] = {make(&tensors[0], PLUMB_F32, 1, one),
                            make(&tensors[1], PLUMB_F32, 1, two)};
    struct plumb_arg b[] = {make(&tensors[2], PLUMB_F32, 1, one),
                            make(&tensors[3], PLUMB_F32, 1, one)};
    struct plumb_outputs_verdict v = compare_args(a, 2, b, 2, false);
    assert_int_equal(v.fault, PLUMB_FAULT_NOT_CLOSE);
    assert_int_equal(v.output, 1);
    v = compare_args(a, 1, b, 2, false);
    assert_int_equal(v.fault, PLUMB_FAULT_COUNT);
    assert_string_equal(v.message, "1 outputs instead of 2");
    v = compare_args(a, 2, b, 1, false);
    assert_int_equal(v.fault, PLUMB_FAULT_COUNT);
    assert_string_equal(v.message, "2 outputs instead of 1");
    a[1] = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    v = compare_args(a, 2, b, 2, false);
    assert_int_equal(v.fault, PLUMB_FAULT_MISSING);
    assert_int_equal(v.output, 1);
    assert_string_equal(v.message, "None instead of (1,):torch.float32");
    b[1] = a[1];
    assert_int_equal(compare_args(a, 2, b, 2, false).fault, PLUMB_FAULT_NONE);
    /* A list of tensors is the tensors. */
    const struct plumb_arg list = {.kind = PLUMB_ARG_LIST, .items = b, .n_items = 2};
    assert_int_equal(compare_args(a, 2, &list, 1, false).fault, PLUMB_FAULT_NONE);
    const struct plumb_arg t = {.kind = PLUMB_ARG_BOOL, .integer = 1};
    const struct plumb_arg f = {.kind = PLUMB_ARG_BOOL, .integer = 0};
    assert_int_equal(compare_args(&t, 1, &f, 1, false).fault, PLUMB_FAULT_NOT_CLOSE);
}

/* Of several that fail the first is told; of those that pass, the largest error. */
static void several_outputs(void **state)
{
    (void)state;
    struct plumb_tensor tensors[6];
    const float one[] = {1}, two[] = {2}, three[] = {3}, near[] = {1.00005f};
    struct plumb_arg a[] = {make(&tensors[0], PLUMB_F32, 1, one),
                            make(&tensors[1], PLUMB_F32, 1, two),
                            make(&tensors[2], PLUMB_F32, 1, three)};
    const struct plumb_arg b[] = {make(&tensors[3], PLUMB_F32, 1, one),
                                  make(&tensors[4], PLUMB_F32, 1, one),
                                  make(&tensors[5], PLUMB_F32, 1, one)};
    struct plumb_outputs_verdict v = compare_args(a, 3, b, 3, false);
    assert_int_equal(v.output, 1);
    assert_true(v.max_abs == 1);
    tensors[1].data = near;
    tensors[2].data = one;
    v = compare_args(a, 3, b, 3, false);
    assert_int_equal(v.fault, PLUMB_FAULT_NONE);
    assert_true(v.max_abs > 4e-5 && v.max_rel > 4e-5 && v.max_ulp > 100);
}

static void bytes_in_the_other_order(void **state)
{
    (void)state;
    struct plumb_tensor tensors[2];
    const unsigned char swapped[] = {0, 0, 1, 2}, plain[] = {2, 1, 0, 0};
    const struct plumb_arg x = make(&tensors[0], PLUMB_I32, 1, swapped);
    const struct plumb_arg y = make(&tensors[1], PLUMB_I32, 1, plain);
    tensors[0].swap = true;
    assert_int_equal(compare_args(&x, 1, &y, 1, false).fault, PLUMB_FAULT_NONE);
    tensors[1].swap = true;
    assert_int_equal(compare_args(&x, 1, &y, 1, false).fault, PLUMB_FAULT_NOT_CLOSE);
}

static void empty_tensors_agree(void **state)
{
    (void)state;
    assert_int_equal(compare(PLUMB_F32, NULL, NULL, 0).fault, PLUMB_FAULT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tolerance_is_of_the_reference),
        cmocka_unit_test(equal_special_values_are_equal),
        cmocka_unit_test(special_values_on_one_side),
        cmocka_unit_test(special_values_beat_plain_errors),
        cmocka_unit_test(long_tensors_to_the_end),
        cmocka_unit_test(shapes_must_be_equal),
        cmocka_unit_test(types_must_be_equal),
        cmocka_unit_test(integers_are_compared_exactly),
        cmocka_unit_test(bools),
        cmocka_unit_test(complex_parts_count),
        cmocka_unit_test(a_type_that_overflows),
        cmocka_unit_test(tuples),
        cmocka_unit_test(several_outputs),
        cmocka_unit_test(bytes_in_the_other_order),
        cmocka_unit_test(empty_tensors_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
