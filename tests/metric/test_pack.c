/* States that travelled give the same bits as those that stayed; damaged ones do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/pack.h"
#include "random.h"
#include "reference.h"

#include <stdlib.h>

/* The state of a stretch, by way of bytes. */
static struct plumb_metric_state *travelled(const struct plumb_metric_spec *spec,
                                            const struct pair *pair, uint64_t first, uint64_t count)
{
    const struct plumb_tensor *t = &pair->target.tensor, *g = &pair->golden.tensor;
    struct plumb_metric_spec read_spec = {0};
    struct buf bytes = {0};
    struct pack out = pack_writer(&bytes);
    struct plumb_metric_spec sent = *spec;
    struct plumb_metric_state *state = plumb_metric_new(spec, t->dtype, g->dtype, t->count);
    plumb_metric_update(state, t, g, first, count);
    metric_pack_spec(&out, &sent);
    metric_pack_state(&out, state);
    plumb_metric_free(state);
    assert_true(pack_good(&out));
    struct pack in = pack_reader(bytes.data, bytes.size);
    metric_pack_spec(&in, &read_spec);
    state = plumb_metric_new(&read_spec, t->dtype, g->dtype, t->count);
    metric_pack_state(&in, state);
    assert_true(pack_good(&in));
    buf_free(&bytes);
    return state;
}

static void check(const struct pair *pair, const struct plumb_metric_spec *spec, uint64_t *seed)
{
    struct plumb_metrics whole, parts;
    const uint64_t count = pair->target.tensor.count;
    struct plumb_metric_state *sum = NULL;
    for (uint64_t first = 0; !first || first < count;) {
        const uint64_t length = PLUMB_METRIC_BLOCK * (1 + random_below(seed, 4));
        struct plumb_metric_state *state = travelled(spec, pair, first, length);
        if (sum)
            plumb_metric_merge(sum, state);
        if (sum)
            plumb_metric_free(state);
        sum = sum ? sum : state;
        first += length;
    }
    plumb_metric_finish(sum, &parts);
    plumb_metric_free(sum);
    assert_int_equal(
        plumb_metric_pair(spec, &pair->target.tensor, &pair->golden.tensor, &whole, NULL),
        PLUMB_OK);
    reference_same(&whole, &parts);
}

static void test_metrics(void **state)
{
    (void)state;
    uint64_t seed = 5;
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    for (unsigned dtype = 0; dtype < PLUMB_DTYPE_COUNT; dtype++)
        for (int rule = PLUMB_REL_PLAIN; rule <= PLUMB_REL_PRECHECK; rule++) {
            struct pair pair;
            const enum plumb_dtype golden =
                rule % 2 ? (enum plumb_dtype)random_below(&seed, PLUMB_DTYPE_COUNT)
                         : (enum plumb_dtype)dtype;
            pair_make(&pair, (enum plumb_dtype)dtype, golden, random_below(&seed, 12000), DENSE,
                      rule == 0 ? 0 : 4, &seed);
            spec.relative = (enum plumb_relative_rule)rule;
            spec.groups = PLUMB_G_ALL | PLUMB_G_PRECHECK;
            check(&pair, &spec, &seed);
            spec.groups = PLUMB_G_ERROR;
            check(&pair, &spec, &seed);
            pair_free(&pair);
        }
}

static void test_wild(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double t[N], g[N];
    uint64_t seed = 6;
    for (int round = 0; round < 10; round++) {
        struct pair pair;
        struct plumb_metric_spec spec;
        for (int i = 0; i < N; i++) {
            g[i] = random_finite(&seed);
            t[i] = random_below(&seed, 2000) ? random_finite(&seed) : NAN;
        }
        plumb_metric_spec_init(&spec);
        spec.groups = PLUMB_G_ALL;
        pair_from(&pair, PLUMB_F64, t, g, N);
        check(&pair, &spec, &seed);
        pair_free(&pair);
    }
}

/* What plumb condense keeps, with its hash and the sketches of all versions. */
static void test_kept(void **state)
{
    (void)state;
    enum { N = 150000, WANTED = KEPT_HASH | KEPT_SKETCH | KEPT_SKETCH1 | KEPT_SKETCH2 | KEPT_XOR };
    static double x[N];
    uint64_t seed = 7;
    struct plumb_tensor tensor;
    const int64_t shape[] = {N / 500, 500};
    struct kernels kernels = kernels_current();
    for (int i = 0; i < N; i++)
        x[i] = random_below(&seed, 500) ? random_finite(&seed) : NAN;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F64, 2, shape, NULL), PLUMB_OK);
    tensor.data = x;
    struct kept_state whole, sum;
    assert_true(kept_begin(&whole, &tensor, WANTED) && kept_begin(&sum, &tensor, WANTED));
    kept_tensor(&whole, &kernels, &tensor, 0, N);
    for (uint64_t first = 0; first < N; first += KEPT_CUT) {
        struct kept_state part, back;
        struct buf bytes = {0};
        struct pack out = pack_writer(&bytes);
        assert_true(kept_begin(&part, &tensor, WANTED) && kept_begin(&back, &tensor, WANTED));
        kept_tensor(&part, &kernels, &tensor, first, KEPT_CUT);
        metric_pack_kept(&out, &part);
        struct pack in = pack_reader(bytes.data, bytes.size);
        metric_pack_kept(&in, &back);
        assert_true(pack_good(&in));
        kept_merge(&sum, &back);
        kept_end(&part);
        kept_end(&back);
        buf_free(&bytes);
    }
    struct plumb_stats a, b;
    static struct plumb_sketch first, second;
    stats_finish(&whole.stats, &a);
    stats_finish(&sum.stats, &b);
    assert_memory_equal(&a.mean, &b.mean, sizeof a.mean);
    assert_memory_equal(&a.norm, &b.norm, sizeof a.norm);
    assert_true(sketch_finish(whole.sketch, &first) && sketch_finish(sum.sketch, &second));
    assert_memory_equal(&first, &second, sizeof first);
    assert_true(sketch_finish(whole.sketch2, &first) && sketch_finish(sum.sketch2, &second));
    assert_memory_equal(&first, &second, sizeof first);
    sketch1_finish(whole.sketch1, &first);
    sketch1_finish(sum.sketch1, &second);
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(whole.crc, sum.crc);
    assert_int_equal(whole.words, sum.words);
    assert_memory_equal(&whole.hash, &sum.hash, sizeof sum.hash);
    kept_end(&whole);
    kept_end(&sum);
}

/* Bytes that were changed or cut: the state may be another, but nothing breaks. */
static void test_damaged(void **state)
{
    (void)state;
    uint64_t seed = 8;
    struct plumb_metric_spec spec;
    struct pair pair;
    struct buf bytes = {0};
    struct pack out = pack_writer(&bytes);
    plumb_metric_spec_init(&spec);
    spec.groups = PLUMB_G_ALL | PLUMB_G_PRECHECK;
    pair_make(&pair, PLUMB_F32, PLUMB_F32, 3000, DENSE, 4, &seed);
    struct plumb_metric_state *from = plumb_metric_new(&spec, PLUMB_F32, PLUMB_F32, 3000);
    plumb_metric_update(from, &pair.target.tensor, &pair.golden.tensor, 0, 3000);
    metric_pack_state(&out, from);
    for (int round = 0; round < 20000; round++) {
        struct plumb_metric_state *to = plumb_metric_new(&spec, PLUMB_F32, PLUMB_F32, 3000);
        struct plumb_metrics metrics;
        char *copy = malloc(bytes.size);
        size_t size = round % 4 ? bytes.size : (size_t)random_below(&seed, bytes.size);
        memcpy(copy, bytes.data, bytes.size);
        for (int k = 0; k < 1 + round % 3; k++)
            copy[random_below(&seed, bytes.size)] = (char)random_bits(&seed);
        struct pack in = pack_reader(copy, size);
        metric_pack_state(&in, to);
        if (size < bytes.size)
            assert_false(pack_good(&in));
        plumb_metric_merge(to, from);
        plumb_metric_finish(to, &metrics);
        plumb_metric_free(to);
        free(copy);
    }
    plumb_metric_free(from);
    buf_free(&bytes);
    pair_free(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_wild),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
