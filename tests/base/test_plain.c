/* Numbers in text, in a program that has chosen a comma for the point. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/plain.h"
#include "comma.h"
#include "plumb/error.h"
#include "plumb/verdict.h"

#include <math.h>

static struct scratch scratch;

static int begin(void **state)
{
    (void)state;
    scratch_make(&scratch);
    comma_begin(&scratch);
    return 0;
}

static int end(void **state)
{
    (void)state;
    comma_end();
    scratch_remove(&scratch);
    return 0;
}

static void printed_with_a_point(void **state)
{
    (void)state;
    char text[NUMBER_BYTES];
    assert_int_equal(plain_print(text, sizeof text, "%.3g, %.1f", 1.5, -2.25), 9);
    assert_string_equal(text, "1.5, -2.2");
    assert_int_equal(plain_print(text, 4, "%.6g", 3.14159), 7); /* cut, as snprintf does */
    assert_string_equal(text, "3.1");
    assert_string_equal(number_brief(0.125, 3, text), "0.125");
    assert_string_equal(number_brief(NAN, 3, text), "NaN");
}

static void read_with_a_point(void **state)
{
    (void)state;
    char *rest;
    uint64_t bytes;
    assert_true(plain_number("1.5,25", &rest) == 1.5);
    assert_string_equal(rest, ",25");
    assert_true(memory_parse("1.5K", &bytes));
    assert_int_equal(bytes, 1536);
}

static void buffers_arenas_errors(void **state)
{
    (void)state;
    struct buf buf = {0};
    struct arena arena = {0};
    struct plumb_error err;
    buf_printf(&buf, "%g", 0.5);
    assert_string_equal(buf.data, "0.5");
    assert_string_equal(arena_printf(&arena, "%.2f", 0.5), "0.50");
    plumb_fail(&err, PLUMB_E_ARG, "%g is too much", 2.5);
    assert_string_equal(err.message, "2.5 is too much");
    buf_free(&buf);
    arena_free(&arena);
}

/* The limits of a standard are text with a point. */
static void standards(void **state)
{
    (void)state;
    struct plumb_standard *standard;
    struct plumb_error err;
    assert_int_equal(plumb_standard_load(&standard, "allclose", &err), 0);
    assert_int_equal(plumb_standard_override(standard, "rtol=0.25", &err), 0);
    plumb_standard_free(standard);
}

/* The host program goes on with what it has chosen. */
static void given_back(void **state)
{
    (void)state;
    char text[8];
    plain_print(text, sizeof text, "%g", 1.5);
    snprintf(text, sizeof text, "%g", 1.5);
    assert_string_equal(text, "1,5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printed_with_a_point),
        cmocka_unit_test(read_with_a_point),
        cmocka_unit_test(buffers_arenas_errors),
        cmocka_unit_test(standards),
        cmocka_unit_test(given_back),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
