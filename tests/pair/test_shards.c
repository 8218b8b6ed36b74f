/* Layouts of parts: put together, found by values, refused; with planted ones of every kind. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair/shards_dims.h"
#include "pair/shards_infer.h"
#include "shards_planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts the parts together. False when they do not fit. Free the data. */
static bool join(struct plumb_tensor *whole, const struct shards_layout *layout,
                 const struct planted *planted)
{
    struct arena arena = {0};
    struct shards_plan plan;
    const enum plumb_dtype dtype = shards_dtype(layout, planted->whole.dtype);
    uint64_t bytes;
    const bool fits = !shards_plan(&plan, &arena, layout, planted->parts, NULL);
    if (fits) {
        assert_int_equal(plumb_tensor_init(whole, dtype, plan.ndim, plan.shape, NULL), PLUMB_OK);
        whole->count = plan.count;
        plumb_dtype_bytes(dtype, plan.count, &bytes);
        char *data = calloc(bytes + 1, 1);
        for (unsigned p = 0; p < planted->count; p++)
            if (shards_first(layout, layout->slot[p], layout->term[p]) == p)
                assert_int_equal(shards_put(&plan, layout, p, planted->parts[p], data, NULL),
                                 PLUMB_OK);
        whole->data = data;
    }
    arena_free(&arena);
    return fits;
}

/* How far what is put together is from the whole; -1 when it does not fit. */
static double joined(const struct shards_layout *layout, const struct planted *planted)
{
    struct plumb_tensor whole;
    if (!join(&whole, layout, planted))
        return -1;
    const double distance =
        whole.count == planted->whole.count ? shards_apart(&whole, &planted->whole) : -1;
    free((void *)whole.data);
    return distance;
}

struct score {
    unsigned right, wrong, open;
};

static void try_one(struct score *score, const struct planted *planted, double limit,
                    const char *what)
{
    struct arena arena = {0};
    struct shards_found found;
    assert_int_equal(
        shards_infer(&found, &arena, &planted->whole, planted->parts, planted->count, NULL),
        PLUMB_OK);
    const double distance =
        found.basis == SHARDS_BY_VALUES ? joined(found.layout, planted) : INFINITY;
    const bool right = distance >= 0 && distance <= limit;
    score->right += right;
    score->wrong += !right;
    score->open += found.open;
    if (!right || found.open) {
        static const int64_t ranks[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        char text[SHARDS_TEXT] = "none", shape[100];
        if (found.layout)
            shards_text(found.layout, ranks, text, sizeof text);
        printf("%s, %u parts of %s: %s, distance %g, residual %g%s\n", what, planted->count,
               plumb_shape_text(&planted->whole, shape, sizeof shape), text, distance,
               found.residual, found.open ? ", open" : "");
    }
    arena_free(&arena);
}

/* Every kind, types, sizes, orders: what was planted is found. */
static void test_planted(void **state)
{
    static const enum plumb_dtype types[] = {PLUMB_F32, PLUMB_BF16, PLUMB_I32,
                                             PLUMB_F64, PLUMB_I64,  PLUMB_F16};
    static const unsigned counts[] = {2, 3, 4, 8};
    struct score score = {0};
    (void)state;
    for (int kind = 0; kind < PLANTED_KINDS; kind++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                for (int shuffled = 0; shuffled < 2; shuffled++) {
                    const unsigned count = counts[c];
                    const bool whole = plumb_dtype_info(types[t])->kind != PLUMB_KIND_FLOAT;
                    const bool sum = kind == PLANTED_SUM || kind == PLANTED_MEAN;
                    if ((kind == PLANTED_GRID || kind == PLANTED_MIXED) && count % 2)
                        continue;
                    if (kind == PLANTED_MIXED && count == 2)
                        continue;
                    if (whole && kind == PLANTED_MEAN)
                        continue;
                    if (shuffled && kind == PLANTED_FLAT)
                        continue; /* rows of numbers are taken in the order of the ranks */
                    struct planted planted;
                    planted_make(&planted, (enum planted_kind)kind, types[t], count,
                                 7 * (uint64_t)kind + 31 * t + 101 * c, shuffled, 0);
                    try_one(&score, &planted, sum ? 0.2 : 0, planted_name((enum planted_kind)kind));
                    planted_free(&planted);
                }
    printf("planted layouts: %u found, %u not, %u ambiguous\n", score.right, score.wrong,
           score.open);
    assert_true(score.right >= 400);
    assert_int_equal(score.wrong, 0);
    assert_int_equal(score.open, 0);
}

/* Rounding on top, and a part that is wrong: the layout is found all the same. */
static void test_disturbed(void **state)
{
    static const enum planted_kind kinds[] = {PLANTED_CONCAT, PLANTED_ZIGZAG, PLANTED_FUSED2,
                                              PLANTED_FUSED3, PLANTED_HEADS,  PLANTED_GRID,
                                              PLANTED_MIXED,  PLANTED_REPLICA};
    struct score noisy = {0}, faulty = {0};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (unsigned seed = 1; seed < 10; seed++) {
            struct planted planted;
            planted_make(&planted, kinds[k], PLUMB_F32, 4, seed * 13 + 1, seed % 2, 0.03);
            if (planted.whole.count >= 16) /* of fewer, three per cent is no agreement */
                try_one(&noisy, &planted, 0.04, planted_name(kinds[k]));
            planted_free(&planted);
            planted_make(&planted, kinds[k], PLUMB_F32, 4, seed * 17 + 2, seed % 2, 1e-4);
            float *bad = planted.data[1 + seed % 4];
            for (uint64_t i = 0; i < planted.part[seed % 4].count; i++)
                bad[i] = bad[i] * -3 + 1;
            try_one(&faulty, &planted, 2, planted_name(kinds[k]));
            planted_free(&planted);
        }
    printf("with noise: %u found, %u not; with a wrong part: %u found, %u not\n", noisy.right,
           noisy.wrong, faulty.right, faulty.wrong);
    assert_int_equal(noisy.wrong, 0);
    assert_int_equal(faulty.wrong, 0);
}

/* Parts of something else are not accepted. */
static void test_unrelated(void **state)
{
    unsigned accepted = 0, tried = 0;
    (void)state;
    for (int kind = 0; kind < PLANTED_KINDS; kind++)
        for (uint64_t seed = 0; seed < 8; seed++) {
            struct planted planted;
            struct arena arena = {0};
            struct shards_found found;
            planted_make(&planted, (enum planted_kind)kind, PLUMB_F32, 4, seed * 5 + 3, false, 0);
            float *whole = planted.data[0];
            uint64_t state_of = seed + 99;
            if (planted.whole.count > 1) {
                for (uint64_t i = 0; i < planted.whole.count; i++)
                    whole[i] = (float)planted_random(&state_of);
                assert_int_equal(
                    shards_infer(&found, &arena, &planted.whole, planted.parts, 4, NULL), PLUMB_OK);
                accepted += found.basis == SHARDS_BY_VALUES;
                tried++;
            }
            arena_free(&arena);
            planted_free(&planted);
        }
    printf("unrelated parts: %u of %u accepted\n", accepted, tried);
    assert_int_equal(accepted, 0);
}

/* Both sides in parts, each in its own way. */
static void test_both_sides(void **state)
{
    static const struct {
        enum planted_kind kind;
        unsigned count;
    } ways[] = {{PLANTED_CONCAT, 2}, {PLANTED_CONCAT, 4}, {PLANTED_ZIGZAG, 2},
                {PLANTED_ZIGZAG, 4}, {PLANTED_FUSED2, 2}, {PLANTED_FUSED3, 4},
                {PLANTED_MIXED, 4},  {PLANTED_REPLICA, 3}};
    enum { WAYS = sizeof ways / sizeof *ways };
    unsigned right = 0, wrong = 0;
    (void)state;
    for (int a = 0; a < WAYS; a++)
        for (int b = 0; b < WAYS; b++) {
            struct planted base, sides[2];
            struct arena arena = {0};
            struct shards_found found[2];
            bool same;
            planted_make(&base, PLANTED_CONCAT, PLUMB_F32, 4, (uint64_t)(a * 2), false, 0);
            planted_again(&sides[0], &base, ways[a].kind, ways[a].count, 5);
            planted_again(&sides[1], &base, ways[b].kind, ways[b].count, 6);
            const struct shards_side given[2] = {
                {.parts = sides[0].parts, .count = sides[0].count},
                {.parts = sides[1].parts, .count = sides[1].count}};
            assert_int_equal(shards_infer_sides(found, &same, &arena, given, NULL), PLUMB_OK);
            /* Whatever they are taken for, the same numbers must stand in the same places. */
            struct plumb_tensor wholes[2];
            bool good = found[0].layout && found[1].layout &&
                        join(&wholes[0], found[0].layout, &sides[0]) &&
                        join(&wholes[1], found[1].layout, &sides[1]);
            if (good) {
                good =
                    wholes[0].count == wholes[1].count && shards_apart(&wholes[0], &wholes[1]) == 0;
                free((void *)wholes[0].data);
                free((void *)wholes[1].data);
            }
            right += good;
            wrong += !good;
            if (!good)
                printf("%s in %u against %s in %u\n", planted_name(ways[a].kind), ways[a].count,
                       planted_name(ways[b].kind), ways[b].count);
            arena_free(&arena);
            planted_free(&sides[0]);
            planted_free(&sides[1]);
            planted_free(&base);
        }
    printf("both sides in parts: %u right, %u wrong\n", right, wrong);
    assert_int_equal(wrong, 0);
}

/* What the data do not determine is said to be open. */
static void test_ambiguous(void **state)
{
    static const float zeros[64];
    struct arena arena = {0};
    struct shards_found found;
    struct plumb_tensor whole, part;
    const int64_t all[] = {8, 8}, rows[] = {2, 8};
    const struct plumb_tensor *parts[] = {&part, &part, &part, &part};
    (void)state;
    plumb_tensor_init(&whole, PLUMB_F32, 2, all, NULL);
    plumb_tensor_init(&part, PLUMB_F32, 2, rows, NULL);
    whole.data = part.data = zeros;
    assert_int_equal(shards_infer(&found, &arena, &whole, parts, 4, NULL), PLUMB_OK);
    assert_int_equal(found.basis, SHARDS_BY_VALUES);
    assert_true(found.open);
    assert_int_equal(found.layout->split[0].axis, 0);

    /* All zeros in the shape of the whole: a copy, or a sum. */
    plumb_tensor_init(&part, PLUMB_F32, 2, all, NULL);
    part.data = zeros;
    assert_int_equal(shards_infer(&found, &arena, &whole, parts, 4, NULL), PLUMB_OK);
    assert_true(found.open);
    assert_non_null(found.rival);
    assert_int_equal(found.rival->reduce, SHARDS_SUM);

    /* No way to get there. */
    const int64_t odd[] = {3, 5};
    plumb_tensor_init(&part, PLUMB_F32, 2, odd, NULL);
    part.data = zeros;
    assert_int_equal(shards_infer(&found, &arena, &whole, parts, 4, NULL), PLUMB_OK);
    assert_int_equal(found.basis, SHARDS_UNKNOWN);
    arena_free(&arena);
}

/* Few elements do not decide: a large tensor of zeros but for a few numbers. */
static void test_sparse(void **state)
{
    enum { ROWS = 4096, COLUMNS = 64 };
    struct arena arena = {0};
    struct shards_found found;
    struct plumb_tensor whole, part[4];
    const struct plumb_tensor *parts[4];
    const int64_t all[] = {ROWS, COLUMNS}, rows[] = {ROWS / 4, COLUMNS};
    float *data = calloc(ROWS * COLUMNS, sizeof *data);
    (void)state;
    for (int p = 0; p < 4; p++)
        data[(p * ROWS / 4 + 17 * p) * COLUMNS + p] = (float)(p + 1);
    plumb_tensor_init(&whole, PLUMB_F32, 2, all, NULL);
    whole.data = data;
    for (int p = 0; p < 4; p++) {
        plumb_tensor_init(&part[p], PLUMB_F32, 2, rows, NULL);
        part[p].data = data + (3 - p) * ROWS / 4 * COLUMNS; /* the other way round */
        parts[p] = &part[p];
    }
    assert_int_equal(shards_infer(&found, &arena, &whole, parts, 4, NULL), PLUMB_OK);
    assert_int_equal(found.basis, SHARDS_BY_VALUES);
    assert_false(found.open);
    for (unsigned p = 0; p < 4; p++)
        assert_int_equal(found.layout->slot[p], 3 - p);
    free(data);
    arena_free(&arena);
}

/* Layouts that shapes refuse, with a reason. */
static void test_refused(void **state)
{
    static const float numbers[64];
    struct arena arena = {0};
    struct shards_plan plan;
    struct plumb_error err;
    struct plumb_tensor part[2];
    const struct plumb_tensor *parts[] = {&part[0], &part[1]};
    const int64_t shapes[][2] = {{3, 4}, {3, 5}};
    struct shards_layout *layout = shards_replica(&arena, 2);
    (void)state;
    for (int p = 0; p < 2; p++) {
        plumb_tensor_init(&part[p], PLUMB_F32, 2, shapes[p], NULL);
        part[p].data = numbers;
    }
    assert_int_equal(shards_plan(&plan, &arena, layout, parts, &err), PLUMB_E_ARG);
    assert_non_null(strstr(err.message, "[3, 5]"));
    layout->splits = 1;
    layout->split[0] = (struct shards_split){.axis = 2, .count = 2};
    layout->slot[1] = 1;
    assert_int_equal(shards_plan(&plan, &arena, layout, parts, &err), PLUMB_E_ARG);
    layout->split[0].axis = 0;
    assert_int_equal(shards_plan(&plan, &arena, layout, parts, &err), PLUMB_E_ARG);
    layout->split[0].axis = 1;
    assert_int_equal(shards_plan(&plan, &arena, layout, parts, &err), PLUMB_OK);
    assert_int_equal(plan.shape[1], 9);
    layout->split[0].how = SHARDS_ZIGZAG;
    assert_int_equal(shards_plan(&plan, &arena, layout, parts, &err), PLUMB_E_ARG);
    layout->split[0].how = SHARDS_CONCAT;
    layout->split[0].count = 3;
    assert_int_equal(shards_plan(&plan, &arena, layout, parts, &err), PLUMB_E_ARG);
    assert_non_null(strstr(err.message, "no rank has part 3 of 3"));
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted),   cmocka_unit_test(test_disturbed),
        cmocka_unit_test(test_unrelated), cmocka_unit_test(test_both_sides),
        cmocka_unit_test(test_ambiguous), cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
