/* Statistics of tensors: blocks that are counted side by side, and on every SIMD level, give the
 * bits of blocks that are counted one by one in plain C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/dense.h"
#include "metric/stats.h"
#include "plumb/tensor.h"
#include "random.h"

#include <math.h>
#include <string.h>

enum { BLOCK = PLUMB_METRIC_BLOCK, MOST = 13 * BLOCK + 5 };

static const enum plumb_dtype dtypes[] = {PLUMB_F64,  PLUMB_F32, PLUMB_F16,
                                          PLUMB_BF16, PLUMB_C64, PLUMB_C128};

/* Any bits: with infinities and NaNs among them, as often as `specials` of a thousand. */
static void fill(enum plumb_dtype dtype, unsigned char *data, size_t numbers, unsigned specials,
                 uint64_t *seed)
{
    const size_t width = plumb_dtype_info(dtype)->bits / 8 / plumb_dtype_parts(dtype);
    const uint64_t top = width == 8           ? UINT64_C(0x7FF) << 52
                         : width == 4         ? 0x7F800000
                         : dtype == PLUMB_F16 ? 0x7C00
                                              : 0x7F80;
    const bool wide = random_below(seed, 2);
    for (size_t i = 0; i < numbers; i++) {
        uint64_t bits = random_bits(seed);
        if (!wide) /* about as large as one */
            bits = (bits & ~top) | (top / 2 & top);
        if (random_below(seed, 1000) < specials)
            bits |= top;
        else if ((bits & top) == top)
            bits &= ~top;
        memcpy(data + i * width, &bits, width);
    }
}

static struct plumb_stats of(const struct kernels *kernels, const struct plumb_tensor *tensor)
{
    struct stats_state state = {0};
    struct plumb_stats out;
    stats_tensor(&state, kernels, tensor, 0, UINT64_MAX);
    stats_finish(&state, &out);
    return out;
}

static struct plumb_stats one_by_one(const struct plumb_tensor *tensor)
{
    const unsigned parts = plumb_dtype_parts(tensor->dtype);
    struct stats_state state = {0};
    struct plumb_stats out;
    double x[BLOCK];
    for (uint64_t at = 0; at < tensor->count; at += BLOCK / parts) {
        const uint64_t left = tensor->count - at;
        const size_t n = left < BLOCK / parts ? (size_t)left : BLOCK / parts;
        const char *bytes =
            (const char *)tensor->data + at * (plumb_dtype_info(tensor->dtype)->bits / 8);
        dense_load(&kernels_c, tensor->dtype, bytes, n * parts, x);
        stats_values(&state, &kernels_c, x, n * parts);
    }
    stats_finish(&state, &out);
    return out;
}

static void test_blocks(void **state)
{
    (void)state;
    static unsigned char data[MOST * 16 + 1];
    uint64_t seed = 1;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (unsigned round = 0; round < 60; round++) {
            int64_t count = (int64_t)random_below(&seed, MOST) + 1;
            if (round % 3 == 0)
                count = (int64_t)(1 + random_below(&seed, 13)) * BLOCK;
            const size_t offset = round % 2;
            fill(dtypes[d], data + offset, (size_t)count * plumb_dtype_parts(dtypes[d]),
                 round % 4 == 3 ? 1 : 0, &seed);
            struct plumb_tensor tensor;
            assert_int_equal(plumb_tensor_init(&tensor, dtypes[d], 1, &count, NULL), PLUMB_OK);
            tensor.data = data + offset;
            const struct plumb_stats expected = one_by_one(&tensor);
            for (unsigned mask = 0; mask <= 3; mask++) {
                const struct kernels kernels = kernels_select(mask);
                const struct plumb_stats found = of(&kernels, &tensor);
                assert_memory_equal(&found, &expected, sizeof found);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
