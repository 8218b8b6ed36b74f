/* The program: which command is meant, and what holds for all of them. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/page.h"
#include "cli/profiles.h"
#include "plumb/metric.h"

#include <libdeflate.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xlsxwriter.h>

struct root_options {
    bool help, version, verbose;
};

static const struct args_option root_options[] = {
    {.names = {"--version"},
     .kind = ARGS_FLAG,
     .offset = offsetof(struct root_options, version),
     .help = "show the version"},
    {.names = {"--verbose"},
     .kind = ARGS_FLAG,
     .offset = offsetof(struct root_options, verbose),
     .help = "with --version: SIMD level, compiler, libraries"},
    {.names = {"-h", "--help"},
     .kind = ARGS_HELP,
     .offset = offsetof(struct root_options, help),
     .help = "show this help; see also: plumb help COMMAND"},
    {.names = {NULL}},
};

static const struct args_set root_sets[] = {{"Options", root_options}, {NULL, NULL}};

static const struct args_example root_examples[] = {
    {"plumb info dump.h5", "what is in this file?"},
    {"plumb summary dump.h5", "the range, mean and deviation of every tensor"},
    {"plumb compare npu.h5 gpu.h5", "where do two runs stop agreeing?"},
    {"plumb acc_check dump.json", "which operators of a model compute wrongly?"},
    {NULL, NULL},
};

const struct args_command cli_root = {
    .name = "plumb",
    .summary = "tell where two tensor computations stop agreeing",
    .usage = "COMMAND [arguments]\n--version [--verbose]",
    .about = "plumb tells where two tensor computations stop agreeing, how badly, and whose fault "
             "it is. It reads {formats} files, folders of them, and "
             "dumps of " PROFILE_OTHER_TOOL " and TorchAir.",
    .sets = root_sets,
    .examples = root_examples,
    .size = sizeof(struct root_options),
};

const struct args_command *const cli_commands[] = {
    &cmd_compare,
    &cmd_blame,
    &cmd_capsule,
    &cmd_summary,
    &cmd_info,
    &cmd_convert,
    &cmd_acc_check,
    &cmd_multi_acc_check,
    &cmd_api_precision_compare,
    &cmd_ops,
    &cmd_numeric_check,
    &cmd_standard,
    &cmd_config_check,
    &cmd_merge_result,
    &cmd_condense,
    &cmd_overflow_check,
    &cmd_replay,
    &cmd_plot,
    &cmd_report,
    &cmd_jprof,
    &cmd_summary_diff_check,
    &cmd_help,
    &cmd_man,
    &cmd_completion,
    NULL,
};

const struct args_command *cli_find(const char *name)
{
    for (const struct args_command *const *command = cli_commands; *command; command++)
        if (!strcmp((*command)->name, name))
            return *command;
    return NULL;
}

static int print_version(bool verbose)
{
    printf("plumb %s\n", PLUMB_VERSION);
    if (verbose)
        printf("SIMD level: %s\ncompiler: %s\nlibdeflate: %s\nlibxlsxwriter: %s\n",
               plumb_cpu_level(),
#ifdef __clang__
               __VERSION__,
#else
               "GCC " __VERSION__,
#endif
               LIBDEFLATE_VERSION_STRING, LXW_VERSION);
    return CLI_OK;
}

static int run_root(int argc, char **argv)
{
    struct root_options options = {0};
    struct arena arena = {0};
    struct plumb_error err;
    int status;
    if (args_parse(&cli_root, argc, argv, &options, &arena, &err))
        status = cli_usage(&cli_root, "%s", err.message);
    else if (options.version)
        status = print_version(options.verbose);
    else if (options.help)
        status = cli_help(&cli_root);
    else
        status = cli_usage(&cli_root, "which command?");
    arena_free(&arena);
    return status;
}

static int unknown_command(const char *name)
{
    const char *names[32];
    size_t count = 0;
    for (const struct args_command *const *command = cli_commands; *command; command++)
        if ((*command)->summary && count < sizeof names / sizeof *names - 1)
            names[count++] = (*command)->name;
    names[count] = NULL;
    const char *near = args_nearest(name, names);
    return cli_usage(&cli_root, "unknown command '%s'%s%s%s", name, near ? ", did you mean " : "",
                     near ? near : "", near ? "?" : "");
}

static int run_command(const struct args_command *command, int argc, char **argv)
{
    struct arena arena = {0};
    struct plumb_error err;
    int status = CLI_UNUSABLE;
    struct cli_common *options = arena_alloc(&arena, command->size);
    if (!options) {
        cli_message("out of memory");
        goto out;
    }
    if (args_parse(command, argc, argv, options, &arena, &err)) {
        status = cli_usage(command, "%s", err.message);
        goto out;
    }
    if (options->help) {
        status = cli_help(command);
        goto out;
    }
    if (options->cpu_mask != ARGS_UNSET)
        plumb_cpu_mask((unsigned)options->cpu_mask);
    status = command->run(options);
out:
    arena_free(&arena);
    return status;
}

struct plumb_crew *cli_crew;
struct plumb_helping *cli_helping;

static struct timespec began;

double cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec);
}

int cli_main(int argc, char **argv)
{
    /* Writing to a pipe that nobody reads is an error like any other, not our death. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* nor is a file that may not grow further */

    cli_words = argv;
    clock_gettime(CLOCK_MONOTONIC, &began);
    const char *mask = getenv("PLUMB_CPU_MASK");
    if (mask && *mask) {
        char *end;
        unsigned long value = strtoul(mask, &end, 0);
        if (*end)
            cli_message("PLUMB_CPU_MASK: '%s' is not a number, not used", mask);
        else
            plumb_cpu_mask((unsigned)value);
    }

    int status;
    const struct args_command *command = argc > 1 ? cli_find(argv[1]) : NULL;
    if (command)
        status = run_command(command, argc - 2, argv + 2);
    else if (argc > 1 && argv[1][0] != '-')
        status = unknown_command(argv[1]);
    else
        status = run_root(argc - 1, argv + 1);
    if (!cli_print(""))
        status = CLI_UNUSABLE;
    return status;
}
