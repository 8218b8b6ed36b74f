/* The noise of right arithmetic: in closed form as by many perturbed runs, forward and backward;
 * and opinions that do not depend on how many threads ask for them. */
#include "plumb/expected.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { M = 12, K = 30, N = 10 };

static float a[M * K], b[N * K], bias[N], grad[M * N], product[M * N];

static float number(uint32_t k)
{
    k *= 2654435761u;
    k ^= k >> 15;
    k *= 2246822519u;
    return (float)(int32_t)(k ^ k >> 13) * 0x1p-31F;
}

static int fill(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < M * K; k++)
        a[k] = number(k + 1);
    for (uint32_t k = 0; k < N * K; k++)
        b[k] = number(k + 10001);
    for (uint32_t k = 0; k < N; k++)
        bias[k] = number(k + 20001);
    for (uint32_t k = 0; k < M * N; k++)
        grad[k] = number(k + 30001);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[j * K + k];
            product[i * N + j] = sum + bias[j];
        }
    return 0;
}

static struct plumb_tensor tensor(const void *data, enum plumb_dtype dtype, int64_t rows,
                                  int64_t columns)
{
    struct plumb_tensor t;
    const int64_t shape[] = {rows, columns};
    assert_int_equal(plumb_tensor_init(&t, dtype, rows ? 2 : 1, rows ? shape : &shape[1], NULL), 0);
    t.data = data;
    return t;
}

/* linear(a, b, bias) with a gradient for all three. */
struct layer {
    struct plumb_tensor x, weight, bias, grad;
    const struct plumb_tensor *grads[1];
    struct plumb_arg args[3];
    struct plumb_call call;
};

static void make_layer(struct layer *l)
{
    l->x = tensor(a, PLUMB_F32, M, K);
    l->weight = tensor(b, PLUMB_F32, N, K);
    l->bias = tensor(bias, PLUMB_F32, 0, N);
    l->grad = tensor(grad, PLUMB_F32, M, N);
    const struct plumb_tensor *given[] = {&l->x, &l->weight, &l->bias};
    for (int k = 0; k < 3; k++)
        l->args[k] =
            (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .requires_grad = true, .tensor = given[k]};
    l->grads[0] = &l->grad;
    l->call = (struct plumb_call){
        .name = "linear", .args = l->args, .n_args = 3, .grads = l->grads, .n_grads = 1};
}

/* Mean squares over all elements of a result: k = 0 the output, then the gradients. */
static const struct plumb_tensor *result_of(const struct plumb_result *r, size_t k)
{
    return k ? r->grads[k - 1].tensor : r->outputs[0].tensor;
}

static double mean_square(const struct plumb_tensor *t, const struct plumb_tensor *minus)
{
    double sum = 0;
    for (uint64_t k = 0; k < t->count; k++) {
        double x, y = 0;
        plumb_tensor_to_f64(t, k, 1, &x);
        if (minus)
            plumb_tensor_to_f64(minus, k, 1, &y);
        sum += (x - y) * (x - y);
    }
    return sum / (double)t->count;
}

/* Root mean square changes of the output, and of the gradients, by the form over those by runs. */
static void compare_ways(size_t n_args, double *ratios)
{
    enum { RUNS = 400 };
    struct layer l;
    struct plumb_result plain = {0}, closed = {0};
    struct plumb_noise noise = {.squares = true, .store = PLUMB_DTYPE_COUNT};
    double perturbed[4] = {0};
    make_layer(&l);
    l.call.n_args = n_args;
    assert_int_equal(plumb_op_run(&l.call, PLUMB_RAISED, &plain, NULL), 0);
    l.call.noise = &noise;
    assert_int_equal(plumb_op_run(&l.call, PLUMB_RAISED, &closed, NULL), 0);
    assert_int_equal(closed.terms, K);
    noise = (struct plumb_noise){.relative = 0x1p-24, .store = PLUMB_DTYPE_COUNT};
    for (noise.seed = 1; noise.seed <= RUNS; noise.seed++) {
        struct plumb_result run = {0};
        assert_int_equal(plumb_op_run(&l.call, PLUMB_RAISED, &run, NULL), 0);
        for (size_t k = 0; k <= n_args; k++)
            perturbed[k] += mean_square(result_of(&run, k), result_of(&plain, k)) * 0x1p48 / RUNS;
        plumb_result_destroy(&run);
    }
    for (size_t k = 0; k <= n_args; k++)
        ratios[k] = sqrt(mean_square(result_of(&closed, k), NULL) / perturbed[k]);
    plumb_result_destroy(&plain);
    plumb_result_destroy(&closed);
}

static void test_closed_form(void **state)
{
    (void)state;
    double ratios[4];
    compare_ways(2, ratios);
    for (int k = 0; k < 3; k++)
        assert_true(ratios[k] > 0.96 && ratios[k] < 1.04);
    /* Runs disturb the product as a whole before the bias is added, and its gradient: 1/3 more,
     * which the number of terms covers. The bias itself is added once. */
    compare_ways(3, ratios);
    assert_true(ratios[0] > 0.75 && ratios[0] < 1.04);
    for (int k = 1; k < 3; k++)
        assert_true(ratios[k] > 0.78 && ratios[k] < 0.85);
    assert_true(ratios[3] > 0.9 && ratios[3] < 1.1);
}

/* What has no such form says so, and leaves nothing behind. */
static void test_no_form(void **state)
{
    (void)state;
    struct plumb_tensor x = tensor(a, PLUMB_F32, M, K);
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &x},
                                     {.kind = PLUMB_ARG_INT, .integer = 1}};
    const struct plumb_noise noise = {.squares = true, .store = PLUMB_DTYPE_COUNT};
    const struct plumb_call call = {.name = "softmax", .args = args, .n_args = 2, .noise = &noise};
    struct plumb_result result = {0};
    struct plumb_error err;
    assert_false(plumb_op_find(NULL, "softmax")->closed);
    assert_int_equal(plumb_op_run(&call, PLUMB_RAISED, &result, &err), PLUMB_E_UNSUPPORTED);
    plumb_result_destroy(&result);
}

/* ---- Threads --------------------------------------------------------------------------------- */

struct asked {
    pthread_t thread;
    struct plumb_opinion opinions[2];
};

static void *ask(void *context)
{
    struct asked *asked = context;
    struct layer l;
    struct plumb_expected *e = NULL;
    struct plumb_error err;
    make_layer(&l);
    const struct plumb_tensor got = tensor(product, PLUMB_F32, M, N);
    const struct plumb_tensor wrong = tensor(a, PLUMB_F32, M, K);
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &got},
                                     {.kind = PLUMB_ARG_TENSOR, .tensor = &wrong}};
    memset(asked->opinions, 0, sizeof asked->opinions);
    if (!plumb_expected_new(&l.call, NULL, NULL, &e, &err)) {
        plumb_expected_judge(e, PLUMB_PART_OUTPUT, 0, &args[0], &asked->opinions[0], &err);
        plumb_expected_judge(e, PLUMB_PART_GRADIENT, 0, &args[1], &asked->opinions[1], &err);
    }
    plumb_expected_free(e);
    return NULL;
}

static void test_threads(void **state)
{
    enum { THREADS = 6 };
    (void)state;
    static struct asked alone, asked[THREADS];
    ask(&alone);
    assert_int_equal(alone.opinions[0].word, PLUMB_WORD_ROUNDING);
    assert_int_equal(alone.opinions[1].word, PLUMB_WORD_FAULT);
    for (int k = 0; k < THREADS; k++)
        assert_int_equal(pthread_create(&asked[k].thread, NULL, ask, &asked[k]), 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(asked[k].thread, NULL);
    for (int k = 0; k < THREADS; k++)
        for (int i = 0; i < 2; i++) {
            const struct plumb_opinion *x = &alone.opinions[i], *y = &asked[k].opinions[i];
            assert_int_equal(x->word, y->word);
            assert_memory_equal(&x->worst, &y->worst, sizeof x->worst);
            assert_string_equal(x->why, y->why);
        }
}

/* ---- Decisions in C -------------------------------------------------------------------------- */

static void test_tie(void **state)
{
    (void)state;
    static const float x[] = {1, 3, 3, 2};
    static const int64_t last = 2, wrong = 3;
    struct plumb_tensor input = tensor(x, PLUMB_F32, 0, 4), index;
    assert_int_equal(plumb_tensor_init(&index, PLUMB_I64, 0, NULL, NULL), 0);
    const struct plumb_arg args[] = {{.kind = PLUMB_ARG_TENSOR, .tensor = &input}};
    const struct plumb_call call = {.name = "argmax", .args = args, .n_args = 1};
    const struct plumb_arg got = {.kind = PLUMB_ARG_TENSOR, .tensor = &index};
    struct plumb_expected *e;
    struct plumb_opinion opinion;
    struct plumb_error err;
    for (int k = 0; k < 2; k++) { /* told as a whole, and by itself */
        assert_int_equal(plumb_expected_new(&call, NULL, NULL, &e, &err), 0);
        index.data = &last;
        if (k)
            assert_int_equal(plumb_expected_given(e, &got, 1, NULL, 0, &err), 0);
        assert_int_equal(plumb_expected_judge(e, PLUMB_PART_OUTPUT, 0, &got, &opinion, &err), 0);
        assert_int_equal(opinion.word, PLUMB_WORD_TIE);
        assert_non_null(strstr(opinion.why, "as good"));
        plumb_expected_free(e);
    }
    assert_int_equal(plumb_expected_new(&call, NULL, NULL, &e, &err), 0);
    index.data = &wrong;
    assert_int_equal(plumb_expected_judge(e, PLUMB_PART_OUTPUT, 0, &got, &opinion, &err), 0);
    assert_int_equal(opinion.word, PLUMB_WORD_FAULT);
    plumb_expected_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_no_form),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_tie),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
