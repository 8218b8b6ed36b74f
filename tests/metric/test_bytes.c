/* Types of one byte go through the kernels of bfloat16, and nobody can see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/bytes.h"
#include "metric/state.h"
#include "random.h"
#include "reference.h"

#include <math.h>

/* Every code means the same number in both types. */
static void test_words(void **state)
{
    (void)state;
    unsigned types = 0;
    for (int dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++) {
        const struct byte_words *words = bytes_words((enum plumb_dtype)dtype);
        if (plumb_dtype_info((enum plumb_dtype)dtype)->bits != 8) {
            assert_null(words);
            continue;
        }
        types++;
        for (unsigned code = 0; code < 256; code++) {
            const uint8_t byte = (uint8_t)code;
            double expected, value;
            plumb_to_f64((enum plumb_dtype)dtype, &byte, 0, 1, false, &expected);
            plumb_to_f64(PLUMB_BF16, &words->word[code], 0, 1, false, &value);
            assert_true(isnan(expected) ? isnan(value) : memcmp(&expected, &value, 8) == 0);
        }
    }
    assert_int_equal(types, 9);
}

static void test_levels(void **state)
{
    (void)state;
    const struct byte_words *words = bytes_words(PLUMB_F8_E4M3FN);
    uint8_t bytes[1025];
    uint16_t expected[1025], out[1026];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)random_below(&seed, 256);
    kernel_widen_c(words, bytes, sizeof bytes, expected);
    for (unsigned mask = 0; mask < 4; mask++)
        for (size_t n = 0; n <= sizeof bytes; n += n < 130 ? 1 : 179) {
            const struct kernels kernels = kernels_select(mask);
            out[n] = 777;
            kernels.widen(words, bytes, n, out);
            assert_memory_equal(out, expected, n * sizeof *out);
            assert_int_equal(out[n], 777);
        }
}

static void measure(const struct pair *pair, const struct plumb_metric_spec *spec, bool general,
                    struct plumb_metrics *out)
{
    const struct plumb_tensor *target = &pair->target.tensor, *golden = &pair->golden.tensor;
    struct plumb_metric_state *state =
        plumb_metric_new(spec, target->dtype, golden->dtype, target->count);
    assert_non_null(state);
    assert_true(state->direct == KERNEL_BF16);
    if (general)
        state->direct = -1;
    plumb_metric_update(state, target, golden, 0, target->count);
    plumb_metric_finish(state, out);
    plumb_metric_free(state);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const unsigned groups[] = {PLUMB_G_ERROR, PLUMB_G_ERROR | PLUMB_G_RELATIVE,
                                      PLUMB_G_ERROR | PLUMB_G_RELATIVE | PLUMB_G_KL, PLUMB_G_ALL};
    uint64_t seed = 4;
    for (int dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (unsigned k = 0; bytes_words((enum plumb_dtype)dtype) && k < 16; k++) {
            struct plumb_metric_spec spec;
            struct plumb_metrics direct, general;
            struct pair pair;
            plumb_metric_spec_init(&spec);
            spec.groups = groups[k % 4];
            pair_make(&pair, (enum plumb_dtype)dtype, (enum plumb_dtype)dtype, 4000 + k,
                      k & 4 ? STRIDED : DENSE, k & 8 ? 2 : 0, &seed);
            measure(&pair, &spec, false, &direct);
            measure(&pair, &spec, true, &general);
            reference_same(&direct, &general);
            pair_free(&pair);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
