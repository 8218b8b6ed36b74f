/* Results of whole graphs against runs with errors. */
#include "random.h"
#include "verdict/whole.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 512, ROW = 32, RUNS = 6 };

/* A result of float32, its reference, and runs that are off by `size` relative to it. */
struct made {
    float before[N], after[N];
    double y[N], formula[N], run[RUNS][N];
    struct plumb_tensor tensors[2];
    struct plumb_arg args[2];
    struct whole_item item;
};

static double off(uint64_t *seed, double size)
{
    return 1 + size * random_unit(seed);
}

static void make(struct made *m, double size, uint64_t seed)
{
    const int64_t shape[2] = {N / ROW, ROW};
    *m = (struct made){.item = {.narrowest = PLUMB_F32}};
    for (int i = 0; i < N; i++) {
        m->y[i] = m->formula[i] = 4 * random_unit(&seed);
        m->before[i] = (float)(m->y[i] * off(&seed, size));
        m->after[i] = (float)(m->y[i] * off(&seed, size));
        for (int r = 0; r < RUNS; r++)
            m->run[r][i] = m->y[i] * off(&seed, size);
    }
    for (int k = 0; k < 2; k++) {
        plumb_tensor_init(&m->tensors[k], PLUMB_F32, 2, shape, NULL);
        m->tensors[k].data = k ? m->after : m->before;
        m->args[k] = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = &m->tensors[k]};
    }
    m->item.before = &m->args[0];
    m->item.after = &m->args[1];
    m->item.y = m->y;
    m->item.formula = m->formula;
    for (int r = 0; r < RUNS; r++)
        m->item.noise.run[m->item.noise.n++] = m->run[r];
}

static struct plumb_opinion judge(const struct made *m)
{
    struct plumb_opinion opinion;
    assert_int_equal(whole_judge(&m->item, &opinion, NULL), PLUMB_OK);
    return opinion;
}

static void test_noise_of_its_size_is_rounding(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct made m;
        make(&m, 1e-4, seed);
        assert_int_equal(judge(&m).word, PLUMB_WORD_ROUNDING);
    }
}

static void test_same(void **state)
{
    (void)state;
    struct made m;
    make(&m, 1e-4, 1);
    memcpy(m.after, m.before, sizeof m.after);
    assert_int_equal(judge(&m).word, PLUMB_WORD_SAME);
}

static void test_formula_is_judged_in_float64(void **state)
{
    (void)state;
    struct made m;
    make(&m, 1e-4, 2);
    memcpy(m.after, m.before, sizeof m.after); /* as stored nothing can be seen */
    double fine[RUNS][N];
    for (int r = 0; r < RUNS; r++) {
        for (int i = 0; i < N; i++)
            fine[r][i] = m.y[i] + (m.run[r][i] - m.y[i]) * 1e-3;
        m.item.fine.run[m.item.fine.n++] = fine[r];
    }
    for (int i = 0; i < N; i++)
        m.formula[i] *= 1.00001;
    const struct plumb_opinion o = judge(&m);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_non_null(strstr(o.why, "another formula"));
    assert_non_null(strstr(o.pattern, "scaled by 1.00001"));
    m.item.formula = NULL; /* not known: what is stored decides */
    assert_int_equal(judge(&m).word, PLUMB_WORD_SAME);
}

static void test_one_element(void **state)
{
    (void)state;
    struct made m;
    make(&m, 1e-6, 3);
    m.after[77] += 1e-3f;
    const struct plumb_opinion o = judge(&m);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    assert_int_equal(o.at, 77);
    assert_true(o.worst > o.limit);
}

static void test_scale_below_the_noise_of_an_element(void **state)
{
    (void)state;
    struct made m;
    make(&m, 1e-5, 4);
    for (int i = 0; i < N; i++)
        m.after[i] = (float)((double)m.after[i] * 1.00002);
    assert_int_equal(judge(&m).word, PLUMB_WORD_FAULT);
}

static void test_more_rounding_is_cheaper(void **state)
{
    (void)state;
    struct made m, coarse;
    make(&m, 1e-7, 5);
    make(&coarse, 1e-3, 6);
    double runs[RUNS][N];
    for (int r = 0; r < RUNS; r++) {
        for (int i = 0; i < N; i++)
            runs[r][i] = m.y[i] * coarse.run[r][i] / coarse.y[i];
        m.item.changed.run[m.item.changed.n++] = runs[r];
    }
    for (int i = 0; i < N; i++)
        m.after[i] = (float)(m.y[i] * (double)coarse.after[i] / coarse.y[i]);
    m.item.narrowest = PLUMB_BF16;
    struct plumb_opinion o = judge(&m);
    assert_int_equal(o.word, PLUMB_WORD_CHEAPER);
    assert_string_equal(o.arithmetic, "results on the way rounded to bfloat16");
    assert_false(o.allowed);
    m.item.arithmetic = "tf32,bf16-store";
    assert_true(judge(&m).allowed);
    m.item.changed.n = 0;
    assert_int_equal(judge(&m).word, PLUMB_WORD_FAULT);
}

/* The words of bfloat16 numbers that these round to. */
static void store(const float *from, double scale, uint16_t *to)
{
    for (int i = 0; i < N; i++) {
        const float x = (float)plumb_round_to(PLUMB_BF16, (double)from[i] * scale);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        to[i] = (uint16_t)(bits >> 16);
    }
}

/* 1 % is less than the noise of any element here, and far more than all of them together show. */
static void test_scale_of_narrow_results(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct made m;
        uint16_t before[N], after[N];
        make(&m, 0.02, seed);
        store(m.before, 1, before);
        for (int k = 0; k < 2; k++)
            plumb_tensor_init(&m.tensors[k], PLUMB_BF16, 2, (const int64_t[]){N / ROW, ROW}, NULL);
        m.tensors[0].data = before;
        m.tensors[1].data = after;
        m.item.formula = NULL;
        store(m.after, 1, after);
        assert_int_equal(judge(&m).word, PLUMB_WORD_ROUNDING);
        store(m.after, 1.02, after);
        const struct plumb_opinion o = judge(&m);
        assert_int_equal(o.word, PLUMB_WORD_FAULT);
        assert_non_null(strstr(o.pattern, "everything is scaled by 1.0"));
        for (int r = 0; r < RUNS; r++) /* a number in common that rounding moves is none */
            for (int i = 0; i < N; i++)
                m.run[r][i] *= r % 2 ? 0.99 : 1.01;
        assert_int_equal(judge(&m).word, PLUMB_WORD_ROUNDING);
    }
}

static void test_float64_rounded_on_the_way(void **state)
{
    (void)state;
    struct made m;
    double stored[2][N], runs[RUNS][N];
    make(&m, 1e-15, 9);
    for (int k = 0; k < 2; k++) {
        plumb_tensor_init(&m.tensors[k], PLUMB_F64, 2, (const int64_t[]){N / ROW, ROW}, NULL);
        m.tensors[k].data = stored[k];
    }
    uint64_t seed = 10;
    for (int i = 0; i < N; i++) {
        stored[0][i] = m.y[i] * off(&seed, 1e-15);
        stored[1][i] = m.y[i] * off(&seed, 1e-7);
        for (int r = 0; r < RUNS; r++)
            runs[r][i] = m.y[i] * off(&seed, 1e-7);
    }
    for (int r = 0; r < RUNS; r++)
        m.item.changed.run[m.item.changed.n++] = runs[r];
    const struct plumb_opinion o = judge(&m);
    assert_int_equal(o.word, PLUMB_WORD_CHEAPER);
    assert_string_equal(o.arithmetic, "results on the way rounded to float32");
}

static void test_special_values(void **state)
{
    (void)state;
    struct made m;
    make(&m, 1e-6, 7);
    m.after[5] = NAN;
    assert_int_equal(judge(&m).word, PLUMB_WORD_FAULT);
    m.before[5] = NAN; /* the graph before overflows there too */
    assert_int_equal(judge(&m).word, PLUMB_WORD_ROUNDING);
    m.y[9] = m.formula[9] = INFINITY;
    assert_int_equal(judge(&m).word, PLUMB_WORD_FAULT);
    m.after[9] = m.before[9] = INFINITY;
    assert_int_equal(judge(&m).word, PLUMB_WORD_ROUNDING);
}

static void test_shape_and_what_is_missing(void **state)
{
    (void)state;
    struct made m;
    make(&m, 1e-6, 8);
    m.tensors[1].shape[0]--;
    m.tensors[1].count -= ROW;
    assert_string_equal(judge(&m).pattern, "another shape");
    m.item.after = NULL;
    assert_string_equal(judge(&m).why, "only before");
    make(&m, 1e-6, 8);
    m.item.y = NULL;
    assert_int_equal(judge(&m).word, PLUMB_WORD_NOT_JUDGED);
    for (int k = 0; k < 2; k++)
        plumb_tensor_init(&m.tensors[k], PLUMB_F32, 2, (const int64_t[]){0, ROW}, NULL);
    assert_int_equal(judge(&m).word, PLUMB_WORD_SAME);
}

static void test_decisions(void **state)
{
    (void)state;
    int64_t before[8] = {0, 1, 2, 3, 4, 5, 6, 7}, after[8];
    double y[8], turned[8];
    const int64_t shape[1] = {8};
    struct plumb_tensor tensors[2];
    struct plumb_arg args[2];
    for (int k = 0; k < 2; k++) {
        plumb_tensor_init(&tensors[k], PLUMB_I64, 1, shape, NULL);
        tensors[k].data = k ? (void *)after : (void *)before;
        args[k] = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = &tensors[k]};
    }
    for (int i = 0; i < 8; i++)
        turned[i] = y[i] = (double)(after[i] = before[i]);
    turned[3] = 9;
    const struct whole_item item = {
        .before = &args[0], .after = &args[1], .y = y, .noise = {.run = {turned, y}, .n = 2}};
    struct plumb_opinion o;
    whole_judge(&item, &o, NULL);
    assert_int_equal(o.word, PLUMB_WORD_SAME);
    after[3] = 9;
    whole_judge(&item, &o, NULL);
    assert_int_equal(o.word, PLUMB_WORD_TIE);
    for (int i = 4; i < 8; i++)
        after[i] = 20;
    whole_judge(&item, &o, NULL);
    assert_int_equal(o.word, PLUMB_WORD_FAULT);
    memcpy(before, after, sizeof before); /* overflow decides before and after alike */
    whole_judge(&item, &o, NULL);
    assert_int_equal(o.word, PLUMB_WORD_SAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noise_of_its_size_is_rounding),
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_formula_is_judged_in_float64),
        cmocka_unit_test(test_one_element),
        cmocka_unit_test(test_scale_below_the_noise_of_an_element),
        cmocka_unit_test(test_more_rounding_is_cheaper),
        cmocka_unit_test(test_scale_of_narrow_results),
        cmocka_unit_test(test_float64_rounded_on_the_way),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_shape_and_what_is_missing),
        cmocka_unit_test(test_decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
