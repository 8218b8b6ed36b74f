/* Pages read back for drawings: what was told comes back, and damage is an error. */
#include "plumb/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A page with three calls and one tensor, 4 x 6 floats of which [1, 2] and [3, 5] differ. */
static char *make_page(size_t *size)
{
    float target[24], golden[24];
    for (int k = 0; k < 24; k++)
        golden[k] = target[k] = (float)k;
    target[8] = INFINITY;
    target[23] += 0.5F;
    const int64_t shape[] = {4, 6};
    struct plumb_tensor sides[2];
    for (int side = 0; side < 2; side++) {
        assert_int_equal(plumb_tensor_init(&sides[side], PLUMB_F32, 2, shape, NULL), PLUMB_OK);
        sides[side].data = side ? golden : target;
    }
    struct plumb_detail detail;
    assert_int_equal(plumb_detail_measure(&detail, &sides[0], &sides[1], NULL), PLUMB_OK);
    const struct plumb_report_call calls[] = {{.name = "a<b",
                                               .module = "top.0",
                                               .rank = 3,
                                               .step = 7,
                                               .total = 1e-7,
                                               .local = NAN,
                                               .limit = NAN,
                                               .band = 1e-6,
                                               .mood = PLUMB_MOOD_GOOD,
                                               .word = "same",
                                               .row = 0},
                                              {.name = "\xce\xb1",
                                               .module = "",
                                               .back = true,
                                               .rank = -1,
                                               .step = -1,
                                               .total = INFINITY,
                                               .local = 5,
                                               .limit = 4,
                                               .band = NAN,
                                               .mood = PLUMB_MOOD_BAD,
                                               .word = "fault",
                                               .row = 1},
                                              {.name = "c",
                                               .module = "top.0",
                                               .rank = 3,
                                               .step = 8,
                                               .total = NAN,
                                               .local = NAN,
                                               .limit = NAN,
                                               .band = NAN,
                                               .mood = PLUMB_MOOD_UNSEEN,
                                               .word = "not judged",
                                               .row = 2}};
    struct plumb_report *report = plumb_report_new("compare", "Two \"runs\"");
    assert_non_null(report);
    plumb_report_answer(report, &(struct plumb_report_answer){.mood = PLUMB_MOOD_BAD,
                                                              .sentence = "1 of 2 fails.",
                                                              .where = "c",
                                                              .row = 1,
                                                              .sure = ""});
    plumb_report_network(report, calls, 3);
    plumb_report_tensor(report, &(struct plumb_report_tensor){.name = "x",
                                                              .dtypes = {"float32", "float32"},
                                                              .detail = &detail});
    char *page = plumb_report_html(report, size);
    plumb_report_free(report);
    plumb_detail_free(&detail);
    assert_non_null(page);
    return page;
}

static void test_comes_back(void **state)
{
    (void)state;
    size_t size;
    char *page = make_page(&size);
    struct plumb_pictured seen;
    struct plumb_error err = {0};
    assert_int_equal(plumb_pictured_parse(&seen, page, size, &err), PLUMB_OK);
    assert_string_equal(seen.title, "Two \"runs\"");
    assert_string_equal(seen.sentence, "1 of 2 fails.");
    assert_int_equal(seen.n_calls, 3);
    assert_string_equal(seen.calls[0].name, "a<b");
    assert_string_equal(seen.calls[0].module, "top.0");
    assert_true(seen.calls[0].total == 1e-7 && seen.calls[0].band == 1e-6);
    assert_int_equal(seen.calls[0].rank, 3);
    assert_int_equal(seen.calls[0].step, 7);
    assert_string_equal(seen.calls[1].name, "\xce\xb1");
    assert_true(isinf(seen.calls[1].total) && seen.calls[1].local == 5 && seen.calls[1].back);
    assert_int_equal(seen.calls[1].mood, PLUMB_MOOD_BAD);
    assert_int_equal(seen.calls[2].mood, PLUMB_MOOD_UNSEEN);
    assert_true(isnan(seen.calls[2].total));
    assert_string_equal(seen.calls[1].word, "fault");
    assert_int_equal(seen.n_tensors, 1);
    const struct plumb_detail *detail = &seen.tensors[0].detail;
    assert_string_equal(seen.tensors[0].name, "x");
    assert_int_equal(detail->rank, 2);
    assert_true(detail->shape[0] == 4 && detail->shape[1] == 6);
    assert_int_equal(detail->n_worst, 1);
    assert_int_equal(detail->worst[0].index, 8);
    assert_true(isinf(detail->worst[0].target) && detail->worst[0].golden == 8);
    const struct plumb_error_map *map = &detail->maps[0];
    assert_true(map->size[0] == 4 && map->size[1] == 6);
    for (int k = 0; k < 24; k++)
        assert_true(k == 8 ? isinf(map->largest[k]) : map->largest[k] == (k == 23 ? 0.5 : 0));
    plumb_pictured_free(&seen);
    free(page);
}

/* Cut anywhere, or one byte changed: an error that says so, or a page that can be drawn. */
static void test_damaged(void **state)
{
    (void)state;
    size_t size, refused = 0;
    char *page = make_page(&size);
    char *block = strstr(page, "id=\"plumb-data\">");
    assert_non_null(block);
    const size_t begin = (size_t)(block - page), end = (size_t)(strchr(block + 20, '<') - page);
    for (size_t at = begin; at <= end; at++) {
        struct plumb_pictured seen;
        struct plumb_error err = {0};
        assert_int_equal(plumb_pictured_parse(&seen, page, at, &err), PLUMB_E_FORMAT);
        assert_true(err.message[0]);
        plumb_pictured_free(&seen);
        const char was = page[at];
        page[at] = was == 'A' ? 'B' : 'A';
        err = (struct plumb_error){0};
        const enum plumb_code code = plumb_pictured_parse(&seen, page, size, &err);
        assert_true(!code || err.message[0]);
        refused += code != PLUMB_OK;
        free(code ? NULL : plumb_plot_network(seen.title, seen.sentence, seen.calls, seen.n_calls));
        plumb_pictured_free(&seen);
        page[at] = was;
    }
    assert_true(refused > (end - begin) / 2);
    free(page);
}

static void test_no_page(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "<html>",
                                        "id=\"plumb-data\">",
                                        "id=\"plumb-data\"><",
                                        "id=\"plumb-data\">A<",
                                        "id=\"plumb-data\">====<",
                                        "id=\"plumb-data\">AAAA<",
                                        "id=\"plumb-data\">AwA=<"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        struct plumb_pictured seen;
        struct plumb_error err = {0};
        assert_int_equal(plumb_pictured_parse(&seen, texts[k], strlen(texts[k]), &err),
                         PLUMB_E_FORMAT);
        assert_true(err.message[0]);
        plumb_pictured_free(&seen);
    }
    struct plumb_pictured seen;
    struct plumb_error err = {0};
    assert_int_not_equal(plumb_pictured_read(&seen, "/no/such/page.html", &err), PLUMB_OK);
    plumb_pictured_free(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_comes_back),
                                       cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_no_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
