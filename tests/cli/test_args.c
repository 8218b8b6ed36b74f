#include "cli/args.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h> /* needs some of the above */

struct sample {
    bool help, force, quiet;
    const char *target, *output, *mapping, *source, *extra, *sort;
    int64_t limit, mask;
    double atol;
    int match;
    struct args_list pair, many, set;
};

#define FIELD(name) .offset = offsetof(struct sample, name)

static const struct args_option options[] = {
    {.names = {"SOURCE"}, .kind = ARGS_PATH, FIELD(source), .help = "h"},
    {.names = {"EXTRA"}, .kind = ARGS_PATH, .arity = ARGS_MAYBE, FIELD(extra), .help = "h"},
    {.names = {"-tp", "--target_path"},
     .kind = ARGS_PATH,
     FIELD(target),
     .metavar = "PATH",
     .help = "h"},
    {.names = {"-o", "--output_path"},
     .kind = ARGS_PATH,
     FIELD(output),
     .metavar = "DIR",
     .help = "h"},
    {.names = {"-cm", "--cell_mapping"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(mapping),
     .metavar = "FILE",
     .help = "h"},
    {.names = {"-c"},
     .kind = ARGS_PATH,
     .arity = ARGS_TWO,
     FIELD(pair),
     .metavar = "A B",
     .help = "h"},
    {.names = {"--many"},
     .kind = ARGS_TEXT,
     .arity = ARGS_MANY,
     FIELD(many),
     .metavar = "X",
     .help = "h"},
    {.names = {"--set"},
     .kind = ARGS_TEXT,
     .arity = ARGS_EACH,
     FIELD(set),
     .metavar = "N=V",
     .help = "h"},
    {.names = {"--sort"},
     .kind = ARGS_TEXT,
     FIELD(sort),
     .metavar = "COL",
     .help = "h",
     .dash_value = true},
    {.names = {"--limit"},
     .kind = ARGS_INT,
     FIELD(limit),
     .metavar = "N",
     .min = 0,
     .max = 100,
     .help = "h"},
    {.names = {"--cpu-mask"}, .kind = ARGS_BITS, FIELD(mask), .metavar = "M", .help = "h"},
    {.names = {"--atol"}, .kind = ARGS_REAL, FIELD(atol), .metavar = "A", .help = "h"},
    {.names = {"--match"},
     .kind = ARGS_CHOICE,
     FIELD(match),
     .choices = "auto|exact|order",
     .initial = "exact",
     .help = "h"},
    {.names = {"-f", "--force"}, .kind = ARGS_FLAG, FIELD(force), .help = "h"},
    {.names = {"-q", "--quiet"}, .kind = ARGS_FLAG, FIELD(quiet), .help = "h"},
    {.names = {"-h", "--help"}, .kind = ARGS_HELP, FIELD(help), .help = "h"},
    {.names = {NULL}},
};
static const struct args_set sets[] = {{"Options", options}, {NULL, NULL}};
static const struct args_command command = {
    .name = "sample", .sets = sets, .size = sizeof(struct sample)};

static struct arena arena;
static struct plumb_error err;

static enum plumb_code parse(struct sample *result, const char *const *words)
{
    char *argv[32];
    int argc = 0;
    while (words[argc]) {
        argv[argc] = (char *)(uintptr_t)words[argc];
        argc++;
    }
    memset(result, 0, sizeof *result);
    memset(&err, 0, sizeof err);
    return args_parse(&command, argc, argv, result, &arena, &err);
}

#define PARSE(...) parse(&s, (const char *const[]){__VA_ARGS__, NULL})
#define ACCEPT(...) assert_int_equal(PARSE(__VA_ARGS__), PLUMB_OK)
#define REFUSE(text, ...)                                                                          \
    do {                                                                                           \
        assert_int_equal(PARSE(__VA_ARGS__), PLUMB_E_ARG);                                         \
        assert_string_equal(err.message, text);                                                    \
    } while (0)

static struct sample s;

static void test_defaults(void **state)
{
    (void)state;
    ACCEPT("in");
    assert_string_equal(s.source, "in");
    assert_null(s.extra);
    assert_null(s.target);
    assert_null(s.mapping);
    assert_int_equal(s.limit, ARGS_UNSET);
    assert_true(isnan(s.atol));
    assert_int_equal(s.match, 1);
    assert_false(s.force);
    assert_int_equal(s.set.count, 0);
}

static void test_ways_to_give_a_value(void **state)
{
    (void)state;
    ACCEPT("in", "-tp", "x");
    assert_string_equal(s.target, "x");
    ACCEPT("in", "-tp=x");
    assert_string_equal(s.target, "x");
    ACCEPT("in", "--target_path", "x");
    assert_string_equal(s.target, "x");
    ACCEPT("in", "--target_path=x=y");
    assert_string_equal(s.target, "x=y");
    ACCEPT("in", "--target-path=");
    assert_string_equal(s.target, "");
    ACCEPT("in", "--targ", "x");
    assert_string_equal(s.target, "x");
    ACCEPT("in", "-t", "x");
    assert_string_equal(s.target, "x");
    ACCEPT("in", "-ofolder");
    assert_string_equal(s.output, "folder");
    ACCEPT("in", "-o", "-");
    assert_string_equal(s.output, "-");
    ACCEPT("in", "--cpu_mask", "0x1F");
    assert_int_equal(s.mask, 31);
}

static void test_numbers(void **state)
{
    (void)state;
    ACCEPT("in", "--atol", "-1");
    assert_true(s.atol == -1);
    ACCEPT("in", "--atol", "-.5e-3");
    assert_true(s.atol == -.5e-3);
    ACCEPT("in", "--atol=inf");
    assert_true(isinf(s.atol));
    ACCEPT("--limit", "007", "-3");
    assert_int_equal(s.limit, 7);
    assert_string_equal(s.source, "-3");
    REFUSE("--limit: 101 is more than 100", "in", "--limit", "101");
    REFUSE("--limit: -1 is less than 0", "in", "--limit", "-1");
    REFUSE("--limit: 'ten' is not a whole number", "in", "--limit", "ten");
    REFUSE("--limit: '1.5' is not a whole number", "in", "--limit", "1.5");
    REFUSE("--limit: '99999999999999999999' is not a whole number", "in", "--limit",
           "99999999999999999999");
    REFUSE("--limit: '' is not a whole number", "in", "--limit=");
    REFUSE("--atol: '1e' is not a number", "in", "--atol", "1e");
    REFUSE("--atol: 'nan' is not a number", "in", "--atol", "nan");
}

static void test_choices(void **state)
{
    (void)state;
    ACCEPT("in", "--match", "auto");
    assert_int_equal(s.match, 0);
    ACCEPT("in", "--match", "order");
    assert_int_equal(s.match, 2);
    REFUSE("--match: 'ord' is none of auto|exact|order", "in", "--match", "ord");
    REFUSE("--match: 'auto|exact' is none of auto|exact|order", "in", "--match", "auto|exact");
    REFUSE("--match needs a value (auto|exact|order)", "in", "--match");
}

static void test_positionals_anywhere(void **state)
{
    (void)state;
    ACCEPT("-f", "in", "--limit", "3", "more");
    assert_true(s.force);
    assert_string_equal(s.source, "in");
    assert_string_equal(s.extra, "more");
    ACCEPT("--", "-f", "--help");
    assert_false(s.force);
    assert_string_equal(s.source, "-f");
    assert_string_equal(s.extra, "--help");
    REFUSE("unexpected argument 'c'", "a", "b", "c");
    REFUSE("SOURCE is missing", "-f");
}

static void test_optional_value(void **state)
{
    (void)state;
    ACCEPT("in", "-cm");
    assert_string_equal(s.mapping, "");
    ACCEPT("in", "-cm", "map.yaml");
    assert_string_equal(s.mapping, "map.yaml");
    ACCEPT("in", "-cm", "-f");
    assert_string_equal(s.mapping, "");
    assert_true(s.force);
}

static void test_lists(void **state)
{
    (void)state;
    ACCEPT("in", "-c", "a", "b");
    assert_int_equal(s.pair.count, 2);
    assert_string_equal(s.pair.items[1], "b");
    ACCEPT("-c", "a", "b", "in", "-c", "d", "e");
    assert_int_equal(s.pair.count, 2);
    assert_string_equal(s.pair.items[0], "d");
    assert_string_equal(s.source, "in");
    REFUSE("-c needs two values (A B)", "in", "-c", "a");
    REFUSE("-c needs two values (A B)", "in", "-c", "a", "-f");
    ACCEPT("in", "--many", "a", "b", "c", "-f");
    assert_int_equal(s.many.count, 3);
    REFUSE("--many needs at least one value (X)", "in", "--many", "-f");
    ACCEPT("in", "--set", "a=1", "--set=b=2", "-f", "--set", "c=3");
    assert_int_equal(s.set.count, 3);
    assert_string_equal(s.set.items[0], "a=1");
    assert_string_equal(s.set.items[1], "b=2");
    assert_string_equal(s.set.items[2], "c=3");
}

static void test_last_wins(void **state)
{
    (void)state;
    ACCEPT("in", "--limit", "3", "--limit", "4");
    assert_int_equal(s.limit, 4);
    ACCEPT("in", "-o", "a", "--output_path", "b");
    assert_string_equal(s.output, "b");
}

static void test_flags(void **state)
{
    (void)state;
    ACCEPT("in", "-fq");
    assert_true(s.force && s.quiet);
    ACCEPT("in", "-qfoDIR");
    assert_true(s.force && s.quiet);
    assert_string_equal(s.output, "DIR");
    REFUSE("--force takes no value", "in", "--force=yes");
    REFUSE("-f takes no value", "in", "-f=yes");
}

static void test_help_ends_parsing(void **state)
{
    (void)state;
    ACCEPT("--help", "--no-such-option");
    assert_true(s.help);
    ACCEPT("-h");
    assert_true(s.help);
}

static void test_dash_values(void **state)
{
    (void)state;
    ACCEPT("in", "--sort", "-force");
    assert_string_equal(s.sort, "-force");
    ACCEPT("in", "--sort=-x");
    assert_string_equal(s.sort, "-x");
    REFUSE("-tp needs a value (PATH)", "in", "-tp", "-f");
    REFUSE("--sort needs a value (COL)", "in", "--sort");
    REFUSE("--sort needs a value (COL)", "in", "--sort", "--");
}

static void test_wrong_names(void **state)
{
    (void)state;
    REFUSE("unknown option --taget_path, did you mean --target_path?", "in", "--taget_path=x");
    REFUSE("unknown option --frobnicate", "in", "--frobnicate");
    REFUSE("unknown option -x", "in", "-x");
    REFUSE("unknown option -tq, did you mean -tp?", "in", "-tq");
    REFUSE("--ma could be any of --many, --match", "in", "--ma", "x");
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const names[] = {"compare", "convert", "info", NULL};
    assert_string_equal(args_nearest("comapre", names), "compare");
    assert_string_equal(args_nearest("conver", names), "convert");
    assert_string_equal(args_nearest("inof", names), "info");
    assert_null(args_nearest("summary", names));
    assert_null(args_nearest("x", names));
    assert_null(args_nearest("", names));
}

static void test_help_text(void **state)
{
    (void)state;
    static const struct args_command small = {
        .name = "small", .usage = "A\n-b B", .about = "one two three four", .sets = sets};
    struct buf out = {0};
    args_help(&out, "prog", &small, NULL, 60);
    assert_false(out.failed);
    assert_non_null(strstr(out.data, "Usage: prog small A\n       prog small -b B\n"));
    assert_non_null(strstr(out.data, "  -cm, --cell_mapping [FILE]  h\n"));
    assert_non_null(strstr(out.data, "  --many X...                 h\n"));
    assert_non_null(strstr(out.data, "h (default: exact)\n"));
    for (const char *line = out.data; *line;) {
        size_t length = strcspn(line, "\n");
        assert_true(length <= 60);
        line += length + (line[length] == '\n');
    }
    buf_free(&out);
}

static int free_arena(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_ways_to_give_a_value),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_positionals_anywhere),
        cmocka_unit_test(test_optional_value),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_last_wins),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_help_ends_parsing),
        cmocka_unit_test(test_dash_values),
        cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_help_text),
    };
    return cmocka_run_group_tests(tests, NULL, free_arena);
}
