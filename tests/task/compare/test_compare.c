/* Whole comparisons: what options ask for, and files that change under our hands. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/compare.h"
#include "plumb/write.h"
#include "random.h"
#include "scratch.h"

static void put_npy(struct scratch *scratch, const char *name, const float *values, int64_t count)
{
    struct plumb_tensor tensor;
    assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F32, 1, &count, NULL), PLUMB_OK);
    tensor.data = values;
    assert_int_equal(plumb_npy_write(scratch_path(scratch, name), &tensor, NULL), PLUMB_OK);
}

static struct plumb_run *open_run(struct scratch *scratch, const char *name)
{
    struct plumb_run *run;
    struct plumb_error err;
    if (plumb_run_open(&run, scratch_path(scratch, name), &err))
        fail_msg("%s", err.message);
    return run;
}

/* Equal numbers of another kind are not the same tensor; of another width they are. */
static void test_kinds(void **state)
{
    (void)state;
    const struct {
        enum plumb_dtype dtype;
        const void *data;
        bool same;
    } golden[] = {{PLUMB_F32, (const float[]){1, 2, 3, 4}, true},
                  {PLUMB_F64, (const double[]){1, 2, 3, 4}, true},
                  {PLUMB_I32, (const int32_t[]){1, 2, 3, 4}, false},
                  {PLUMB_U8, (const uint8_t[]){1, 2, 3, 4}, false}};
    const float values[4] = {1, 2, 3, 4};
    struct scratch scratch;
    scratch_make(&scratch);
    put_npy(&scratch, "x.npy", values, 4);
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        struct plumb_tensor tensor;
        struct plumb_comparison comparison;
        struct plumb_compare_options options = {0};
        plumb_tensor_init(&tensor, golden[i].dtype, 1, (const int64_t[]){4}, NULL);
        tensor.data = golden[i].data;
        assert_int_equal(plumb_npy_write(scratch_path(&scratch, "y.npy"), &tensor, NULL), PLUMB_OK);
        struct plumb_run *target = open_run(&scratch, "x.npy"),
                         *other = open_run(&scratch, "y.npy");
        assert_int_equal(plumb_compare(&comparison, target, other, &options, NULL), PLUMB_OK);
        assert_int_equal(comparison.passed, golden[i].same);
        assert_int_equal(comparison.unreadable, !golden[i].same);
        plumb_comparison_free(&comparison);
        plumb_run_free(target);
        plumb_run_free(other);
    }
    scratch_remove(&scratch);
}

/* "all" said many times is all once. */
static void test_metrics_repeated(void **state)
{
    (void)state;
    const float values[4] = {1, 2, 3, 4};
    struct scratch scratch;
    scratch_make(&scratch);
    put_npy(&scratch, "x.npy", values, 4);
    struct plumb_run *run = open_run(&scratch, "x.npy");
    static const char *const lists[] = {"all", "all,all", "rmse,all,rmse,all,cosine",
                                        "all,all,all,all,all,all,all,all,all,all,all,all,all,all"};
    size_t columns = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct plumb_comparison comparison;
        struct plumb_compare_options options = {.metrics = lists[i], .wide = true};
        assert_int_equal(plumb_compare(&comparison, run, run, &options, NULL), PLUMB_OK);
        if (!columns)
            columns = plumb_table_columns(comparison.table);
        assert_int_equal(plumb_table_columns(comparison.table), columns);
        plumb_comparison_free(&comparison);
    }
    struct plumb_comparison comparison;
    struct plumb_compare_options options = {.metrics = "rmse,nonsense"};
    struct plumb_error err;
    assert_int_equal(plumb_compare(&comparison, run, run, &options, &err), PLUMB_E_ARG);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_true(!comparison.table && !comparison.closing);
    plumb_run_free(run);
    scratch_remove(&scratch);
}

/* The same table to the last bit for any number of threads: all digits, as CSV. */
static char *as_csv(const struct plumb_table *table, size_t *size)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, size);
    assert_non_null(stream);
    assert_int_equal(plumb_table_print(table, PLUMB_TABLE_CSV, NULL, stream, NULL), PLUMB_OK);
    fclose(stream);
    return text;
}

static void test_threads(void **state)
{
    (void)state;
    enum { N = 3000000 }; /* three parts */
    float *t = malloc(N * sizeof *t), *g = malloc(N * sizeof *g);
    assert_true(t && g);
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) {
        g[i] = (float)random_unit(&seed);
        t[i] = g[i] * (float)(1 + 1e-4 * random_unit(&seed));
    }
    struct scratch scratch;
    scratch_make(&scratch);
    put_npy(&scratch, "t.npy", t, N);
    put_npy(&scratch, "g.npy", g, N);
    struct plumb_run *target = open_run(&scratch, "t.npy"), *golden = open_run(&scratch, "g.npy");
    char *first = NULL;
    size_t first_size = 0;
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct plumb_comparison comparison;
        struct plumb_compare_options options = {.metrics = "all", .threads = threads};
        assert_int_equal(plumb_compare(&comparison, target, golden, &options, NULL), PLUMB_OK);
        assert_int_equal(comparison.compared, 1);
        size_t size;
        char *text = as_csv(comparison.table, &size);
        if (!first) {
            first = text;
            first_size = size;
        } else {
            assert_int_equal(size, first_size);
            assert_memory_equal(text, first, size);
            free(text);
        }
        plumb_comparison_free(&comparison);
    }
    free(first);
    free(t);
    free(g);
    plumb_run_free(target);
    plumb_run_free(golden);
    scratch_remove(&scratch);
}

/* A file that shrinks once its run is open: that row's error, and nobody's crash. */
static void test_shrunk(void **state)
{
    (void)state;
    enum { N = 100000 };
    float *values = calloc(N, sizeof *values);
    assert_non_null(values);
    struct scratch scratch;
    scratch_make(&scratch);
    put_npy(&scratch, "t.npy", values, N);
    put_npy(&scratch, "g.npy", values, N);
    free(values);
    struct plumb_run *target = open_run(&scratch, "t.npy"), *golden = open_run(&scratch, "g.npy");
    assert_int_equal(truncate(scratch_path(&scratch, "t.npy"), 4096), 0);
    struct plumb_comparison comparison;
    struct plumb_compare_options options = {.metrics = "all"};
    assert_int_equal(plumb_compare(&comparison, target, golden, &options, NULL), PLUMB_OK);
    assert_true(comparison.compared == 0 && comparison.passed == 0 && comparison.unreadable == 1);
    assert_int_equal(plumb_table_severity(comparison.table, 0), PLUMB_FAILED);
    plumb_comparison_free(&comparison);
    plumb_run_free(target);
    plumb_run_free(golden);
    scratch_remove(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_metrics_repeated),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_shrunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
