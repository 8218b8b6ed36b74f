/* A pair of tensors looked at closely, against the same said naively. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/detail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct plumb_tensor tensor[2];
    float *data[2];
};

static struct pair make(unsigned rank, const int64_t *shape)
{
    struct pair p;
    for (int side = 0; side < 2; side++) {
        assert_int_equal(plumb_tensor_init(&p.tensor[side], PLUMB_F32, rank, shape, NULL), 0);
        p.data[side] = calloc(p.tensor[side].count + 1, sizeof **p.data);
        p.tensor[side].data = p.data[side];
    }
    srand(7);
    for (uint64_t i = 0; i < p.tensor[0].count; i++) {
        p.data[1][i] = (float)rand() / (float)RAND_MAX - 0.5f;
        p.data[0][i] = p.data[1][i] * (rand() % 3 ? 1 : 1 + 1e-3f * (float)(rand() % 100));
    }
    return p;
}

static void release(struct pair *p, struct plumb_detail *d)
{
    plumb_detail_free(d);
    free(p->data[0]);
    free(p->data[1]);
}

static void measure(struct plumb_detail *d, struct pair *p)
{
    struct plumb_error err = {0};
    if (plumb_detail_measure(d, &p->tensor[0], &p->tensor[1], &err))
        fail_msg("%s", err.message);
}

static double error_at(const struct pair *p, uint64_t i)
{
    return fabs((double)p->data[0][i] - (double)p->data[1][i]);
}

/* The largest error of all elements that fall into a cell. */
static double largest_in(const struct plumb_detail *d, const struct pair *p, const int *axes,
                         const unsigned *size, const unsigned *cell, size_t n)
{
    double largest = 0;
    for (uint64_t i = 0; i < p->tensor[0].count; i++) {
        int64_t at[PLUMB_MAX_RANK + 1];
        bool inside = true;
        plumb_detail_place(d, i, at);
        for (size_t k = 0; k < n; k++)
            inside &= axes[k] < 0 || at[axes[k]] * size[k] / d->shape[axes[k]] == cell[k];
        if (inside)
            largest = fmax(largest, error_at(p, i));
    }
    return largest;
}

static void check_map(const struct plumb_detail *d, const struct pair *p,
                      const struct plumb_error_map *map)
{
    for (unsigned r = 0; r < map->size[0]; r += 1 + map->size[0] / 7)
        for (unsigned c = 0; c < map->size[1]; c += 1 + map->size[1] / 7) {
            const unsigned cell[2] = {r, c};
            assert_true(map->largest[r * map->size[1] + c] ==
                        largest_in(d, p, map->axes, map->size, cell, 2));
        }
}

static void check_worst(const struct plumb_detail *d, const struct pair *p)
{
    size_t wrong = 0;
    for (uint64_t i = 0; i < p->tensor[0].count; i++)
        wrong += error_at(p, i) > 0;
    assert_int_equal(d->n_worst, wrong < PLUMB_DETAIL_WORST ? wrong : PLUMB_DETAIL_WORST);
    for (size_t k = 0; k < d->n_worst; k++) {
        size_t worse = 0; /* or as bad, and before it */
        for (uint64_t i = 0; i < p->tensor[0].count; i++)
            worse += error_at(p, i) > d->worst[k].error ||
                     (error_at(p, i) == d->worst[k].error && i < d->worst[k].index);
        assert_int_equal(worse, k);
        assert_true(d->worst[k].error == error_at(p, d->worst[k].index));
        assert_true(d->worst[k].ulps >= 1);
    }
}

static void check_window(const struct plumb_detail *d, const struct pair *p)
{
    const struct plumb_error_window *w = &d->window;
    int64_t at[PLUMB_MAX_RANK + 1];
    bool has_worst = false;
    plumb_detail_place(d, d->worst[0].index, at);
    for (unsigned r = 0; r < w->size[0]; r++)
        for (unsigned c = 0; c < w->size[1]; c++) {
            if (w->axes[0] >= 0)
                at[w->axes[0]] = w->origin[0] + r;
            if (w->axes[1] >= 0)
                at[w->axes[1]] = w->origin[1] + c;
            uint64_t index = 0;
            for (unsigned k = 0; k < d->rank; k++)
                index = index * (uint64_t)d->shape[k] + (uint64_t)at[k];
            assert_true(w->target[r * w->size[1] + c] == (double)p->data[0][index]);
            assert_true(w->golden[r * w->size[1] + c] == (double)p->data[1][index]);
            has_worst |= index == d->worst[0].index;
        }
    assert_true(has_worst);
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        unsigned rank;
        int64_t shape[5];
        size_t maps;
    } cases[] = {{0, {0}, 1},
                 {1, {7}, 1},
                 {1, {5000}, 1},
                 {2, {3, 4}, 1},
                 {2, {300, 70}, 1},
                 {2, {2000, 1}, 1},
                 {3, {5, 200, 3}, 3},
                 {4, {2, 3, 65, 66}, 6},
                 {5, {2, 3, 4, 5, 6}, 6}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct pair p = make(cases[k].rank, cases[k].shape);
        struct plumb_detail d;
        p.data[0][0] = p.data[1][0] + 1; /* one that is there whatever chance says */
        measure(&d, &p);
        assert_int_equal(d.n_maps, cases[k].maps);
        for (size_t m = 0; m < d.n_maps; m++)
            check_map(&d, &p, &d.maps[m]);
        for (size_t m = 0; m < d.n_profiles; m++)
            for (unsigned c = 0; c < d.profiles[m].size; c += 1 + d.profiles[m].size / 9)
                assert_true(d.profiles[m].largest[c] ==
                            largest_in(&d, &p, &d.profiles[m].axis, &d.profiles[m].size, &c, 1));
        check_worst(&d, &p);
        check_window(&d, &p);
        uint64_t counted[2] = {0};
        for (int side = 0; side < 2; side++)
            for (int bin = 0; bin < PLUMB_DETAIL_BINS; bin++)
                counted[side] += d.values[side][bin];
        assert_int_equal(counted[0], p.tensor[0].count);
        assert_int_equal(counted[1], p.tensor[0].count);
        release(&p, &d);
    }
}

/* The mean of a profile leaves out what is not finite; two NaNs are equal. */
static void test_special(void **state)
{
    (void)state;
    struct pair p = make(2, (const int64_t[]){2, 3});
    struct plumb_detail d;
    const float target[] = {NAN, 1, INFINITY, 2, INFINITY, 5},
                golden[] = {NAN, NAN, INFINITY, 2, 1, 3};
    memcpy(p.data[0], target, sizeof target);
    memcpy(p.data[1], golden, sizeof golden);
    measure(&d, &p);
    assert_int_equal(d.n_worst, 3);
    assert_int_equal(d.worst[0].index, 1); /* as bad as the other one, and before it */
    assert_int_equal(d.worst[1].index, 4);
    assert_true(d.worst[2].error == 2);
    assert_true(isinf(d.maps[0].largest[1]) && isinf(d.maps[0].largest[4]));
    assert_true(d.maps[0].largest[0] == 0 && d.maps[0].largest[2] == 0);
    assert_int_equal(d.profiles[1].axis, 0);
    assert_true(d.profiles[1].mean[0] == 0 && d.profiles[1].mean[1] == 1);
    assert_true(d.low == 1 && d.high == 5);
    release(&p, &d);
}

/* What is all the same, or empty, has no worst element and no window. */
/* Ranges that float64 cannot hold, or whose reciprocal it cannot. */
static void test_wide_and_narrow_ranges(void **state)
{
    (void)state;
    static const double ends[] = {1.5e308, 1e-318};
    for (size_t k = 0; k < 2; k++) {
        const double x[4] = {-ends[k], -ends[k] / 2, ends[k] / 2, ends[k]};
        struct plumb_tensor tensor;
        struct plumb_detail d;
        assert_int_equal(plumb_tensor_init(&tensor, PLUMB_F64, 1, (const int64_t[]){4}, NULL),
                         PLUMB_OK);
        tensor.data = x;
        assert_int_equal(plumb_detail_measure(&d, &tensor, &tensor, NULL), PLUMB_OK);
        assert_int_equal(d.values[0][0], 1);
        assert_int_equal(d.values[0][PLUMB_DETAIL_BINS / 4], 1);
        assert_int_equal(d.values[0][PLUMB_DETAIL_BINS * 3 / 4], 1);
        assert_int_equal(d.values[0][PLUMB_DETAIL_BINS - 1], 1);
        plumb_detail_free(&d);
    }
}

static void test_nothing(void **state)
{
    (void)state;
    const int64_t shapes[][2] = {{4, 5}, {0, 5}};
    for (int k = 0; k < 2; k++) {
        struct pair p = make(2, shapes[k]);
        struct plumb_detail d;
        memcpy(p.data[0], p.data[1], p.tensor[0].count * sizeof **p.data);
        measure(&d, &p);
        assert_int_equal(d.n_worst, 0);
        assert_null(d.window.target);
        release(&p, &d);
    }
}

/* Complex numbers have an axis of two; another shape is refused, ones do not count. */
static void test_forms(void **state)
{
    (void)state;
    struct plumb_tensor a, b;
    struct plumb_detail d;
    const float x[] = {1, 2, 3, 4}, y[] = {1, 2, 3, 5};
    assert_int_equal(plumb_tensor_init(&a, PLUMB_C64, 1, (const int64_t[]){2}, NULL), 0);
    b = a;
    a.data = x;
    b.data = y;
    assert_int_equal(plumb_detail_measure(&d, &a, &b, NULL), 0);
    assert_int_equal(d.rank, 2);
    assert_int_equal(d.worst[0].index, 3);
    plumb_detail_free(&d);
    assert_int_equal(plumb_tensor_init(&a, PLUMB_F32, 2, (const int64_t[]){1, 4}, NULL), 0);
    assert_int_equal(plumb_tensor_init(&b, PLUMB_F32, 1, (const int64_t[]){4}, NULL), 0);
    a.data = x;
    b.data = y;
    assert_int_equal(plumb_detail_measure(&d, &a, &b, NULL), 0);
    assert_int_equal(d.worst[0].index, 3);
    plumb_detail_free(&d);
    b.shape[0] = 3;
    b.count = 3;
    assert_int_equal(plumb_detail_measure(&d, &a, &b, NULL), PLUMB_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_special),
        cmocka_unit_test(test_wide_and_narrow_ranges), cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
