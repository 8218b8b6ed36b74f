/* Drawings: what they show of a network and of a tensor, and names that strangers chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plumb/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static struct plumb_report_call call(const char *name, double total, enum plumb_mood mood)
{
    return (struct plumb_report_call){.name = name,
                                      .module = "",
                                      .rank = -1,
                                      .step = -1,
                                      .total = total,
                                      .local = NAN,
                                      .limit = NAN,
                                      .band = 1e-6,
                                      .mood = mood,
                                      .word = "fault",
                                      .row = -1};
}

static void test_network(void **state)
{
    (void)state;
    struct plumb_report_call calls[] = {
        call("a", 1e-7, PLUMB_MOOD_GOOD), call("b<&>", 1e-2, PLUMB_MOOD_BAD),
        call("c", INFINITY, PLUMB_MOOD_DOUBT), call("d", 0, PLUMB_MOOD_GOOD),
        call("e", NAN, PLUMB_MOOD_UNSEEN)};
    char *svg = plumb_plot_network("T\x1b<", "below", calls, 5);
    assert_non_null(strstr(svg, "<title>T\xef\xbf\xbd&#60;</title>"));
    assert_non_null(strstr(svg, "b&#60;&#38;&#62;: fault"));
    assert_non_null(strstr(svg, ">1e-7<"));
    assert_int_equal(count_of(svg, "class=\"bad\""), 2);   /* one is in the legend */
    assert_int_equal(count_of(svg, "class=\"doubt\""), 2); /* so is one of these */
    assert_int_equal(count_of(svg, "class=\"band\" d="), 1);
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "inf"));
    free(svg);
    calls[3].rank = calls[4].rank = 1;
    calls[4].total = 1;
    svg = plumb_plot_network("T", "", calls, 5);
    assert_int_equal(count_of(svg, "class=\"curve\" d="), 3);
    free(svg);
    svg = plumb_plot_network("T", "", calls, 0);
    assert_non_null(strstr(svg, "</svg>"));
    free(svg);
}

static void test_errors(void **state)
{
    (void)state;
    double largest[] = {0, 1, 1, 0.25, INFINITY, 1e-30};
    const struct plumb_error_map map = {
        .axes = {0, 1}, .extent = {20, 300}, .size = {2, 3}, .largest = largest};
    char *svg = plumb_plot_errors("name", "worst", &map);
    assert_non_null(strstr(svg, "axis 0, 0 to 19"));
    assert_non_null(strstr(svg, "axis 1, 0 to 299"));
    assert_int_equal(count_of(svg, "class=\"cross\""), 4); /* two lines, and those of the legend */
    assert_int_equal(count_of(svg, "class=\"h8\""),
                     4); /* two cells are one, the infinite one, legend */
    assert_int_equal(count_of(svg, "class=\"h1\""), 2);
    free(svg);
    for (int k = 0; k < 6; k++)
        largest[k] = 0;
    svg = plumb_plot_errors("name", "no error", &map);
    assert_int_equal(count_of(svg, "class=\"h0\""), 3); /* a row each, and the legend */
    free(svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
