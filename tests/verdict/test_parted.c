/* Whether a run has parted from an earlier one at a tensor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/kept.h"
#include "verdict/parted.h"

#include <math.h>
#include <string.h>

enum { COUNT = 4096 };

/* One side: a tensor of COUNT numbers and what is kept of it. */
struct side {
    struct plumb_sketch sketch;
    struct plumb_kept kept;
    char hash[HASH_BYTES];
    struct parted_side side;
};

static const int64_t shape[] = {64, 64};

static void take(struct side *out, enum plumb_dtype dtype, const double *x)
{
    static unsigned char bytes[COUNT * 8];
    const struct kernels kernels = kernels_current();
    struct plumb_tensor tensor;
    struct kept_state state;
    struct plumb_stats stats;
    plumb_from_f64(dtype, x, COUNT, bytes);
    assert_int_equal(plumb_tensor_init(&tensor, dtype, 2, shape, NULL), PLUMB_OK);
    tensor.data = bytes;
    assert_true(kept_begin(&state, &tensor, KEPT_HASH | KEPT_SKETCH));
    kept_tensor(&state, &kernels, &tensor, 0, COUNT);
    assert_true(sketch_finish(state.sketch, &out->sketch));
    stats_finish_finite(&state.stats, &stats);
    hash_text(&state.hash, out->hash);
    out->kept = (struct plumb_kept){
        .nan = state.stats.nan, .dtype = dtype, .hash = out->hash, .sketch = &out->sketch};
    out->side = (struct parted_side){dtype, 2, shape, &out->kept, stats.norm};
    kept_end(&state);
}

static void expect(const struct side *t, const struct side *g, double limit, enum parted wanted,
                   const char *word)
{
    char why[400];
    assert_int_equal(parted_judge(&t->side, &g->side, limit, why, sizeof why), wanted);
    if (!strstr(why, word))
        fail_msg("'%s' says nothing of '%s'", why, word);
}

static void test_limits(void **state)
{
    (void)state;
    assert_true(parted_limit(PLUMB_F64) == 1e-8 && parted_limit(PLUMB_C128) == 1e-8);
    assert_true(parted_limit(PLUMB_F32) == 1e-4 && parted_limit(PLUMB_C64) == 1e-4);
    assert_true(parted_limit(PLUMB_F16) == 0x1p-8 && parted_limit(PLUMB_BF16) == 0x1p-5);
    assert_true(parted_limit(PLUMB_F8_E4M3FN) == 0.5);
    assert_true(parted_limit(PLUMB_I64) == 0 && parted_limit(PLUMB_BOOL) == 0);
}

static void test_floats(void **state)
{
    (void)state;
    static double x[COUNT], y[COUNT];
    static struct side a, b;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = sin((double)i);
    take(&a, PLUMB_F32, x);
    expect(&a, &a, -1, PARTED_EQUAL, "the same bytes");
    for (size_t i = 0; i < COUNT; i++)
        y[i] = x[i] * (1 + 1e-5);
    take(&b, PLUMB_F32, y);
    expect(&b, &a, -1, PARTED_NEAR, "relative distance 0.00");
    expect(&b, &a, 1e-6, PARTED_APART, "standard error");
    expect(&b, &a, 0, PARTED_APART, "relative distance");
    memcpy(y, x, sizeof x);
    for (size_t i = 64 * 8; i < 64 * 12; i++)
        y[i] = 0;
    take(&b, PLUMB_F32, y);
    expect(&b, &a, -1, PARTED_APART, "axis 0: 8-11 (1 of 16 blocks)");
    b.kept.nan = 1;
    expect(&b, &a, -1, PARTED_APART, "1 NaN and 0 infinite values, but 0 and 0 there");
    b.kept.nan = 0;
    a.side.norm = NAN; /* the distance is then relative to an estimate */
    expect(&b, &a, -1, PARTED_APART, "relative distance");
    memset(y, 0, sizeof y);
    take(&a, PLUMB_F32, y);
    expect(&b, &a, -1, PARTED_APART, "relative distance inf%");
}

static void test_integers(void **state)
{
    (void)state;
    static double x[COUNT];
    static struct side a, b, c;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (double)(i * 77 % 1000);
    take(&a, PLUMB_I64, x);
    x[5]++;
    take(&b, PLUMB_I64, x);
    take(&c, PLUMB_I32, x);
    expect(&b, &a, -1, PARTED_APART, "axis 0: 0-3");
    expect(&b, &a, 0.5, PARTED_NEAR, "relative distance");
    expect(&c, &b, -1, PARTED_APART, "int32, but int64 there");
}

static void test_little_was_kept(void **state)
{
    (void)state;
    static double x[COUNT] = {1};
    static struct side a, b;
    static const int64_t other[] = {32, 128};
    take(&a, PLUMB_F32, x);
    x[0] = 2;
    take(&b, PLUMB_F32, x);
    a.sketch.version = 2;
    expect(&b, &a, -1, PARTED_APART, "version 2 there, which cannot be compared with 4");
    a.kept.sketch = NULL;
    expect(&b, &a, -1, PARTED_APART, "no sketch"); /* the hash tells that they differ */
    a.kept.hash = NULL;
    expect(&b, &a, -1, PARTED_UNKNOWN, "no sketch");
    a.side.shape = other;
    expect(&b, &a, -1, PARTED_APART, "shape [64, 64], but [32, 128] there");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_little_was_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
