/* The first element that is not close. */
#include "plumb/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

static void tensor_of(struct plumb_tensor *tensor, enum plumb_dtype dtype, int64_t count,
                      void *data)
{
    assert_int_equal(plumb_tensor_init(tensor, dtype, 1, &count, NULL), PLUMB_OK);
    tensor->data = data;
}

static void test_apart(void **state)
{
    (void)state;
    enum { COUNT = 2 * PLUMB_METRIC_BLOCK + 3 };
    static double target[COUNT], golden[COUNT];
    struct plumb_tolerance tolerance = {.rtol = 0.5, .atol = 0.25};
    struct plumb_tensor t, g;
    for (size_t i = 0; i < COUNT; i++)
        target[i] = golden[i] = 1;
    tensor_of(&t, PLUMB_F64, COUNT, target);
    tensor_of(&g, PLUMB_F64, COUNT, golden);
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), COUNT);
    target[COUNT - 1] = 1.75;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), COUNT);
    target[COUNT - 1] = 1.76;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), COUNT - 1);
    target[7] = golden[7] = INFINITY;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), COUNT - 1);
    target[5] = golden[5] = NAN;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), 5);
    tolerance.equal_nan = true;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), COUNT - 1);
    target[6] = -INFINITY;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), 6);

    /* An element of two parts counts once. */
    target[6] = target[COUNT - 1] = 1;
    tensor_of(&t, PLUMB_C128, COUNT / 2 - 1, target + 3);
    tensor_of(&g, PLUMB_C128, COUNT / 2 - 1, golden + 3);
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), COUNT / 2 - 1);
    target[10] = 9;
    assert_int_equal(plumb_first_apart(&t, &g, &tolerance), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
