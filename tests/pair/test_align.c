/* Alignment of calls: against the textbook's table, and on calls with rows. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pair/align.h"
#include "pair/parts.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 60 };

static size_t longest(const uint32_t *a, size_t n, const uint32_t *b, size_t m)
{
    static size_t table[MOST + 1][MOST + 1];
    for (size_t i = 0; i <= n; i++)
        for (size_t k = 0; k <= m; k++)
            if (!i || !k)
                table[i][k] = 0;
            else if (a[i - 1] == b[k - 1])
                table[i][k] = table[i - 1][k - 1] + 1;
            else
                table[i][k] = table[i - 1][k] > table[i][k - 1] ? table[i - 1][k] : table[i][k - 1];
    return table[n][m];
}

static size_t check(const uint32_t *a, size_t n, const uint32_t *b, size_t m, size_t *partner)
{
    assert_true(match_align(a, n, b, m, partner));
    size_t pairs = 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        if (partner[i] == SIZE_MAX)
            continue;
        assert_true(partner[i] < m && partner[i] >= next);
        assert_int_equal(a[i], b[partner[i]]);
        next = partner[i] + 1;
        pairs++;
    }
    return pairs;
}

static void test_longest(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        uint32_t a[MOST], b[MOST];
        size_t partner[MOST], n = random_bits(&seed) % MOST, m = random_bits(&seed) % MOST;
        uint32_t letters = 1 + (uint32_t)(random_bits(&seed) % 8);
        for (size_t i = 0; i < n; i++)
            a[i] = (uint32_t)(random_bits(&seed) % letters);
        for (size_t i = 0; i < m; i++)
            b[i] = (uint32_t)(random_bits(&seed) % letters);
        assert_int_equal(check(a, n, b, m, partner), longest(a, n, b, m));
    }
}

/* Lists with nothing, or very little, in common: bounded work, and still a common subsequence. */
static void test_strangers(void **state)
{
    (void)state;
    enum { N = 50000 };
    uint32_t *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b);
    size_t *partner = malloc(N * sizeof *partner);
    uint64_t seed = 3;
    for (uint32_t i = 0; i < N; i++) {
        a[i] = i;
        b[i] = N + i;
    }
    assert_int_equal(check(a, N, b, N, partner), 0);
    for (uint32_t i = 0; i < N; i++) {
        a[i] = (uint32_t)(random_bits(&seed) % 100);
        b[i] = (uint32_t)(random_bits(&seed) % 100);
    }
    assert_true(check(a, N, b, N, partner) > 100);
    for (uint32_t i = 0; i < N; i++)
        b[i] = a[i];
    assert_int_equal(check(a, N, b, N, partner), N);
    assert_int_equal(check(a, N, b + 1, N - 1, partner), N - 1);
    free(a);
    free(b);
    free(partner);
}

/* Rows: "api|row", the target's and the golden run's. */
static size_t match_rows(const char *const *rows[2], const size_t counts[2],
                         enum plumb_pair_mode mode, struct plumb_matching *out)
{
    static struct plumb_record records[2][16];
    static struct plumb_recorded recorded[2][16];
    static char names[2][16][128], apis[2][16][128];
    const struct plumb_record *list[2][16];
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < counts[side]; i++) {
            size_t length = strcspn(rows[side][i], "|");
            snprintf(apis[side][i], 128, "%.*s", (int)length, rows[side][i]);
            snprintf(names[side][i], 128, "%.60s.%.60s", apis[side][i], rows[side][i] + length + 1);
            bool same = i && !strcmp(apis[side][i - 1], apis[side][i]);
            recorded[side][i] = (struct plumb_recorded){
                .api = same ? recorded[side][i - 1].api : apis[side][i], .tensor = true};
            records[side][i] = (struct plumb_record){.name = names[side][i],
                                                     .key = names[side][i],
                                                     .step = -1,
                                                     .rank = -1,
                                                     .recorded = &recorded[side][i]};
            list[side][i] = &records[side][i];
        }
    struct plumb_pair_options options = {.mode = mode};
    assert_int_equal(match_records(out, list[0], counts[0], list[1], counts[1], &options, NULL),
                     PLUMB_OK);
    return out->matched;
}

static void test_calls(void **state)
{
    (void)state;
    const char *const target[] = {"Torch.add.0.forward|input.0",  "Torch.add.0.forward|output.0",
                                  "Torch.mul.0.forward|output.0", "Torch.add.1.forward|input.0",
                                  "Torch.add.1.forward|output.0", "Cell.a.B.forward.3|output.0"};
    const char *const golden[] = {"Torch.mul.4.forward|output.0", "Torch.add.0.forward|input.0",
                                  "Torch.add.0.forward|output.0", "Module.a.B.forward.0|output.0",
                                  "Torch.gone.0.forward|input.0"};
    const char *const *rows[2] = {target, golden};
    const size_t counts[2] = {6, 5};
    struct plumb_matching matching;
    assert_int_equal(match_rows(rows, counts, PLUMB_PAIR_FUZZY, &matching), 6 - 2);
    const size_t pairs[][2] = {{2, 0}, {3, 1}, {4, 2}, {5, 3}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(matching.pairs[i].target, pairs[i][0]);
        assert_int_equal(matching.pairs[i].golden, pairs[i][1]);
        assert_int_equal(matching.pairs[i].how, PLUMB_BY_LIKENESS);
    }
    plumb_matching_free(&matching);
    /* Without being asked, dumps pair by equal names only. */
    assert_int_equal(match_rows(rows, counts, PLUMB_PAIR_AUTO, &matching), 2);
    plumb_matching_free(&matching);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
