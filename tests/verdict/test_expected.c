/* What right arithmetic shows, judged in C: words, places, and results that are no tensors. */
#include "plumb/expected.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { M = 24, K = 40, N = 20 };

static float a[M * K], b[K * N], product[M * N];

/* A number in [-1, 1), the same everywhere. */
static float number(uint32_t k)
{
    k *= 2654435761u;
    k ^= k >> 15;
    k *= 2246822519u;
    return (float)(int32_t)(k ^ k >> 13) * 0x1p-31F;
}

static struct plumb_tensor matrix(const void *data, enum plumb_dtype dtype, int64_t rows,
                                  int64_t columns)
{
    struct plumb_tensor t;
    assert_int_equal(plumb_tensor_init(&t, dtype, 2, (const int64_t[]){rows, columns}, NULL), 0);
    t.data = data;
    return t;
}

static int fill(void **state)
{
    (void)state;
    for (int k = 0; k < M * K; k++)
        a[k] = number((uint32_t)k + 1);
    for (int k = 0; k < K * N; k++)
        b[k] = number((uint32_t)k + 10001);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            product[i * N + j] = 0;
            for (int k = 0; k < K; k++) /* one term after the other, in float32 */
                product[i * N + j] += a[i * K + k] * b[k * N + j];
        }
    return 0;
}

static struct plumb_opinion judge(const char *name, const float *got, const char *arithmetic)
{
    static struct plumb_tensor x, y;
    struct plumb_tensor result = matrix(got, PLUMB_F32, M, N);
    x = matrix(a, PLUMB_F32, M, K);
    y = matrix(b, PLUMB_F32, K, N);
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &x},
                                     {.kind = PLUMB_ARG_TENSOR, .tensor = &y}};
    const struct plumb_call call = {.name = name, .args = args, .n_args = 2};
    const struct plumb_expected_options options = {.arithmetic = arithmetic};
    const struct plumb_arg arg = {.kind = PLUMB_ARG_TENSOR, .tensor = &result};
    struct plumb_expected *e;
    struct plumb_opinion opinion;
    struct plumb_error err;
    assert_int_equal(plumb_expected_new(&call, NULL, &options, &e, &err), 0);
    assert_int_equal(
        plumb_expected_judge(e, PLUMB_PART_OUTPUT, 0, got ? &arg : NULL, &opinion, &err), 0);
    plumb_expected_free(e);
    return opinion;
}

static void test_right_is_rounding(void **state)
{
    (void)state;
    const struct plumb_opinion o = judge("mm", product, NULL);
    assert_int_equal(o.word, PLUMB_WORD_ROUNDING);
    assert_true(o.worst < o.limit);
    assert_true(o.differing > 0 && o.differing < 1);
    assert_int_equal(o.pattern[0], '\0');
}

static void test_scaled(void **state)
{
    (void)state;
    float got[M * N];
    for (int k = 0; k < M * N; k++)
        got[k] = product[k] * 1.0005F;
    const struct plumb_opinion o = judge("mm", got, NULL);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_non_null(strstr(o.pattern, "scaled by 1.0005"));
    assert_non_null(strstr(o.why, "scaled by 1.0005"));
}

static void test_one_element(void **state)
{
    (void)state;
    float got[M * N];
    memcpy(got, product, sizeof got);
    got[3 * N + 7] += 0.01F;
    const struct plumb_opinion o = judge("mm", got, NULL);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_int_equal(o.at, 3 * N + 7);
    assert_non_null(strstr(o.why, "[3, 7]"));
}

static void test_not_a_number(void **state)
{
    (void)state;
    float got[M * N];
    memcpy(got, product, sizeof got);
    got[5] = NAN;
    const struct plumb_opinion o = judge("mm", got, NULL);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_int_equal(o.at, 5);
    assert_non_null(strstr(o.pattern, "NaN"));
}

/* Every result rounded to bfloat16: an arithmetic with a name, which may be allowed. */
static void test_rounded_result(void **state)
{
    (void)state;
    float got[M * N];
    for (int k = 0; k < M * N; k++)
        got[k] = (float)plumb_round_to(PLUMB_BF16, (double)product[k]);
    struct plumb_opinion o = judge("mm", got, NULL);
    assert_int_equal(o.word, PLUMB_WORD_CHEAPER);
    assert_non_null(strstr(o.arithmetic, "bfloat16"));
    assert_false(o.allowed);
    o = judge("mm", got, "tf32,bf16-result");
    assert_true(o.allowed);
}

static void test_missing(void **state)
{
    (void)state;
    assert_int_equal(judge("mm", NULL, NULL).word, PLUMB_WORD_FAULT);
}

static void test_refused(void **state)
{
    (void)state;
    struct plumb_expected *e;
    struct plumb_error err;
    const struct plumb_call call = {.name = "no_such_operator"};
    assert_int_equal(plumb_expected_new(&call, NULL, NULL, &e, &err), PLUMB_E_UNSUPPORTED);
    assert_null(e);
    assert_int_equal(plumb_arithmetic_check("tf32,flush", &err), PLUMB_OK);
    assert_int_equal(plumb_arithmetic_check("tf32,", &err), PLUMB_OK);
    assert_int_equal(plumb_arithmetic_check("tf3", &err), PLUMB_E_ARG);
    assert_non_null(strstr(err.message, "tf3"));
    assert_string_equal(plumb_word_text(PLUMB_WORD_NOT_JUDGED), "not judged");
}

/* Errors on purpose: of their size, the same for the same seed, others for another. */
static void test_noise(void **state)
{
    (void)state;
    struct plumb_tensor x = matrix(a, PLUMB_F32, M, K), y = matrix(b, PLUMB_F32, K, N);
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &x},
                                     {.kind = PLUMB_ARG_TENSOR, .tensor = &y}};
    struct plumb_noise noise = {.relative = 0x1p-24, .seed = 1, .store = PLUMB_DTYPE_COUNT};
    struct plumb_call call = {.name = "mm", .args = args, .n_args = 2};
    struct plumb_result runs[4] = {{0}};
    double first[4][M * N];
    for (int r = 0; r < 4; r++) {
        call.noise = r ? &noise : NULL;
        noise.seed = r == 3 ? 2 : 1;
        assert_int_equal(plumb_op_run(&call, PLUMB_RAISED, &runs[r], NULL), 0);
        assert_int_equal(runs[r].terms, K);
        plumb_tensor_to_f64(runs[r].outputs[0].tensor, 0, M * N, first[r]);
    }
    assert_memory_equal(first[1], first[2], sizeof first[1]);
    double change = 0, other = 0;
    for (int k = 0; k < M * N; k++) {
        change = fmax(change, fabs(first[1][k] - first[0][k]));
        other = fmax(other, fabs(first[3][k] - first[1][k]));
    }
    assert_true(change > 0x1p-28 && change < 0x1p-19);
    assert_true(other > 0);
    for (int r = 0; r < 4; r++)
        plumb_result_destroy(&runs[r]);
}

/* What the matrix product gives when its sums are off by so much, in another way for each seed. */
static void off_by(float *out, float size, uint32_t seed)
{
    for (int k = 0; k < M * N; k++)
        out[k] = product[k] + size * number((uint32_t)k + 7000 * seed);
}

static struct plumb_opinion judge_repeated(const float *got, const float *const *repeats, size_t n)
{
    const struct plumb_tensor x = matrix(a, PLUMB_F32, M, K), y = matrix(b, PLUMB_F32, K, N),
                              result = matrix(got, PLUMB_F32, M, N);
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &x},
                                     {.kind = PLUMB_ARG_TENSOR, .tensor = &y}};
    const struct plumb_call call = {.name = "mm", .args = args, .n_args = 2};
    const struct plumb_arg arg = {.kind = PLUMB_ARG_TENSOR, .tensor = &result};
    struct plumb_expected *e;
    struct plumb_opinion opinion;
    struct plumb_error err;
    assert_int_equal(plumb_expected_new(&call, NULL, NULL, &e, &err), 0);
    const struct plumb_tensor *reference = plumb_expected_reference(e)->outputs[0].tensor;
    for (size_t k = 0; k < n; k++) {
        const struct plumb_tensor repeat = matrix(repeats[k], PLUMB_F32, M, N),
                                  narrow = matrix(repeats[k], PLUMB_F32, M, N - 1);
        assert_int_equal(plumb_expected_repeat(e, PLUMB_PART_OUTPUT, 0, reference, &repeat, &err),
                         0);
        assert_int_equal(plumb_expected_repeat(e, PLUMB_PART_OUTPUT, 0, reference, &narrow, &err),
                         PLUMB_E_ARG);
        assert_int_equal(plumb_expected_repeat(e, PLUMB_PART_OUTPUT, 1, reference, &repeat, &err),
                         PLUMB_E_ARG);
    }
    assert_int_equal(plumb_expected_judge(e, PLUMB_PART_OUTPUT, 0, &arg, &opinion, &err), 0);
    plumb_expected_free(e);
    return opinion;
}

/* Noise of the program's own is rounding, and nothing else is. */
static void test_repeats(void **state)
{
    (void)state;
    static float one[M * N], two[M * N], three[M * N];
    const float *const others[] = {two, three}, *const same[] = {one, one};
    off_by(one, 1e-3F, 1);
    off_by(two, 1e-3F, 2);
    off_by(three, 1e-3F, 3);
    assert_int_equal(judge_repeated(one, NULL, 0).word, PLUMB_WORD_FAULT);
    struct plumb_opinion o = judge_repeated(one, others, 2);
    assert_int_equal(o.word, PLUMB_WORD_ROUNDING);
    assert_true(o.unsteady);
    o = judge_repeated(one, same, 2); /* no spread, whatever the error is */
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_non_null(strstr(o.why, "the same in the repeats"));
    one[77] += 1; /* one element that the repeats do not have */
    o = judge_repeated(one, others, 2);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_int_equal(o.at, 77);
    assert_non_null(strstr(o.why, "not reproducible"));
    off_by(one, 3.0F, 1); /* more than any sum may be off by */
    off_by(two, 3.0F, 2);
    assert_int_equal(judge_repeated(one, others, 1).word, PLUMB_WORD_FAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_is_rounding), cmocka_unit_test(test_scaled),
        cmocka_unit_test(test_one_element),       cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_rounded_result),    cmocka_unit_test(test_missing),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_noise),
        cmocka_unit_test(test_repeats),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
