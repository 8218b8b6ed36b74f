/* Words for a shell: whatever is in them, it takes them for one. */
#define _GNU_SOURCE
#include "base/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_words(void **state)
{
    (void)state;
    static const char *const words[][2] = {{"plain-1.2/x:y=z,+@%", "plain-1.2/x:y=z,+@%"},
                                           {"", "''"},
                                           {"a b", "'a b'"},
                                           {"it's", "'it'\\''s'"},
                                           {"$(x)", "'$(x)'"},
                                           {"a\nb", "'a\nb'"},
                                           {"~", "'~'"},
                                           {"-rf", "-rf"}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        struct buf out = {0};
        shell_word(&out, words[k][0]);
        assert_string_equal(out.data, words[k][1]);
        buf_free(&out);
    }
}

static void test_capsule(void **state)
{
    (void)state;
    struct buf out = {0};
    shell_capsule(&out, "my dump", "Torch.add.0.forward", strlen("Torch.add.0"));
    assert_string_equal(out.data, "plumb capsule 'my dump' Torch.add.0 -o ./Torch.add.0 && "
                                  "plumb blame ./Torch.add.0");
    buf_free(&out);
}

/* The shell of this system says what it was given. */
static void test_shell(void **state)
{
    (void)state;
    const char hostile[] = "'; echo no; '\\\"`id`$HOME*?[a]!#&|<>(){}";
    struct buf out = {0};
    char line[256] = "";
    buf_text(&out, "printf %s ");
    shell_word(&out, hostile);
    FILE *pipe = popen(out.data, "r");
    assert_non_null(pipe);
    const size_t got = fread(line, 1, sizeof line - 1, pipe);
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(got, strlen(hostile));
    assert_string_equal(line, hostile);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_capsule),
                                       cmocka_unit_test(test_shell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
