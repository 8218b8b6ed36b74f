/* jprof: unit tests made of recorded operators. */
#include "cli/cli.h"
#include "plumb/unittest.h"

#include <stdlib.h>

enum factory { FACTORY_LOAD, FACTORY_RANDOM };

struct jprof_options {
    struct cli_common common;
    const char *dump, *blacklist, *folder;
    bool cpu_init;
    int factory, verdict;
};

static void say_result(const struct plumb_unittest_result *result)
{
    printf("%zu test%s of %zu operator%s written to %s\n", result->tests,
           result->tests == 1 ? "" : "s", result->operators, result->operators == 1 ? "" : "s",
           result->folder);
    if (result->blacklisted)
        printf("%zu call%s left out: on the blacklist\n", result->blacklisted,
               result->blacklisted == 1 ? "" : "s");
    if (result->unusable)
        printf("%zu call%s left out: recorded without operator or arguments, or a backward\n",
               result->unusable, result->unusable == 1 ? "" : "s");
    printf("run them: pytest --detail_compare_path=./xpu.csv %s --seed 42\n", result->folder);
}

static int run_jprof(const void *context)
{
    const struct jprof_options *options = context;
    const char *dump = options->dump, *blacklist = options->blacklist;
    /* `jprof --blacklist dump.json`: the list is the built-in one. */
    if (!dump && blacklist && cli_ends_with(blacklist, ".json")) {
        dump = blacklist;
        blacklist = "";
    }
    if (!dump)
        return cli_usage(&cmd_jprof, "DUMP is missing");
    struct plumb_unittest_result result;
    struct plumb_error err;
    enum plumb_code code =
        plumb_unittest_write(&result, dump,
                             &(struct plumb_unittest_options){
                                 .cpu_init = options->cpu_init,
                                 .random = options->factory == FACTORY_RANDOM,
                                 .blacklist = blacklist != NULL,
                                 .blacklist_file = blacklist && *blacklist ? blacklist : NULL,
                                 .folder = options->folder,
                                 .verdict = (enum plumb_deciding)options->verdict,
                             },
                             &err);
    if (code)
        cli_report(&err);
    else
        say_result(&result);
    plumb_unittest_free(&result);
    return code ? CLI_UNUSABLE : CLI_OK;
}

#define FIELD(member) .offset = offsetof(struct jprof_options, member)

static const struct args_option arguments[] = {
    {.names = {"DUMP"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(dump),
     .help = "dump.json of plumb.begin_dump"},
    {.names = {"--cpu_init"},
     .kind = ARGS_FLAG,
     FIELD(cpu_init),
     .help = "make inputs on the CPU, then move them"},
    {.names = {"--blacklist"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(blacklist),
     .metavar = "FILE",
     .help = "leave out random operators, or those of FILE"},
    {.names = {"--factory"},
     .kind = ARGS_CHOICE,
     FIELD(factory),
     .choices = "load|random",
     .initial = "load",
     .help = "inputs: recorded tensors where they were kept, or random ones"},
    {.names = {"--verdict"},
     .kind = ARGS_CHOICE,
     FIELD(verdict),
     .choices = "rules|expected|both",
     .initial = "rules",
     .help = "what decides in the tests, unless pytest is told: tolerances, or what right "
             "arithmetic shows, or both; the last two need plumb's Python package there"},
    {.names = {"-o", "--output"},
     .kind = ARGS_PATH,
     FIELD(folder),
     .metavar = "FOLDER",
     .help = "for the tests (default: pytests beside DUMP)"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb jprof --cpu_init --blacklist --factory=load dump.json", "the usual way"},
    {"plumb jprof --blacklist slow.txt dump.json", "without the operators of a list"},
    {"plumb jprof --verdict expected dump.json", "tests that tell rounding from faults"},
    {"plumb jprof -o tests theirs/proc_1/dump.json", "of somebody else's dump"},
    {NULL, NULL},
};

const struct args_command cmd_jprof = {
    .name = "jprof",
    .summary = "write unit tests for recorded operators",
    .usage =
        "[--cpu_init] [--blacklist [FILE]] [--factory load|random] [--verdict WHAT] [-o FOLDER] "
        "DUMP",
    .about =
        "Reads a dump.json that plumb.begin_dump and end_dump wrote, or one of level L1 such as "
        "that of a "
        "capsule (forward calls of functions that plumb computes itself, and that are not random), "
        "and writes a folder pytests "
        "beside it, or the one of -o: one pytest module per operator, one test per recorded "
        "call, and conftest.py. The tests need PyTorch and pytest, nothing else, so the folder "
        "(and dump, for recorded "
        "tensors) can be copied to any machine:\n\n"
        "pytest --detail_compare_path=./xpu.csv proc_123/pytests --seed 42 [--device DEVICE]\n\n"
        "Each test runs the operator on the device (default: the best one present) and on the "
        "CPU, and writes one row: type, shape and range of the result, whether it passed, the "
        "largest error, and how many elements have an error above 1e-1, 1e-2, ... 1e-7. Where the "
        "device is the CPU itself, the reference is computed in float64 and rounded. A test "
        "passes when every element is within the usual tolerance of its type (float32 1.3e-6, "
        "float16 1e-3, bfloat16 1.6e-2, float64 1e-7, relative to the element or to the root mean "
        "square of the result, whichever is larger); integers must be equal. Inputs that were not "
        "kept are random numbers within the recorded range, which depend on the seed, the test "
        "and the argument only. plumb summary_diff_check compares the files of two devices.\n\n"
        "With --verdict expected or both, here or for pytest, the tests also ask plumb.judge, "
        "which tells rounding from faults (docs/VERDICTS.md), and the file has columns Verdict and "
        "Why. They need plumb's Python package then. With expected a test fails when its verdict "
        "is a fault, and is skipped when it was not judged; is_pass stays that of the "
        "tolerances.\n\n"
        "A file of --blacklist has one name per line: aten.add.Tensor, aten.add or add, perhaps "
        "with "
        "a star at its end. Without a file, operators are left out that are random, that return "
        "memory as they find it, or whose result depends on the order of threads.\n\n"
        "pytest runs whatever Python it finds, so a folder that holds anything but what jprof and "
        "pytest left there before is refused, and so is a link named pytests: with somebody else's "
        "dump, name a folder of your own with -o.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when the tests were written\n2 when the input or the command line is unusable",
    .size = sizeof(struct jprof_options),
    .run = run_jprof,
};
