/* plumb api_precision_compare. */
#include "base/folder.h"
#include "cli/cli.h"
#include "cli/precision_page.h"
#include "cli/profiles.h"
#include "plumb/precision.h"

#include <inttypes.h>
#include <string.h>

struct precision_options {
    struct cli_common common;
    const char *npu, *gpu, *output;
    const char *rules, *report;
    bool quiet;
    int verdict;
};

static void say_left_out(size_t count, const char *where, const char *first)
{
    if (count)
        cli_message("%zu row%s only in the %s file, left out: %s%s", count,
                    count == 1 ? " is" : "s are", where, first, count > 1 ? ", ..." : "");
}

static void say_words(const struct plumb_precision_result *result)
{
    const char *gap = "";
    printf("second opinion: ");
    for (int word = 0; word < PLUMB_WORDS; word++)
        if (result->words[word]) {
            printf("%s%" PRIu64 " %s", gap, result->words[word],
                   plumb_word_text((enum plumb_word)word));
            gap = ", ";
        }
    if (result->shared)
        printf("; the trusted device has %" PRIu64 " of the faults, too", result->shared);
    putchar('\n');
}

static void say_counts(const struct plumb_precision_result *result, bool words)
{
    printf("%zu output%s compared; %zu API%s: %zu pass, %zu warning, %zu error, %zu SKIP\n",
           result->outputs, result->outputs == 1 ? "" : "s", result->apis,
           result->apis == 1 ? "" : "s", result->pass, result->warning, result->error,
           result->skip);
    if (words)
        say_words(result);
    printf("details: %s\nresult: %s\n", result->details_path, result->result_path);
}

static uint64_t count_judged(const struct plumb_precision_result *result)
{
    uint64_t judged = 0;
    for (int word = 0; word < PLUMB_WORDS; word++)
        judged += word == PLUMB_WORD_NOT_JUDGED ? 0 : result->words[word];
    return judged;
}

/* What second opinions change about the exit code of the rules. */
static int decide(const struct precision_options *options,
                  const struct plumb_precision_result *result)
{
    const bool error = result->error > 0;
    if (options->verdict == PLUMB_BY_RULES)
        return error ? CLI_BAD : CLI_OK;
    if (strcmp(result->judges[0], result->judges[1]) != 0)
        cli_message("warning: the second opinions of the two files were not made alike: \"%s\" and "
                    "\"%s\"",
                    result->judges[0], result->judges[1]);
    if (!count_judged(result)) {
        cli_message("no output could be judged by its second opinion; the details say why");
        return CLI_UNUSABLE;
    }
    return result->words[PLUMB_WORD_FAULT] || (error && options->verdict == PLUMB_BY_BOTH) ? CLI_BAD
                                                                                           : CLI_OK;
}

static int run_precision(const void *context)
{
    const struct precision_options *options = context;
    struct plumb_precision_result result = {0};
    struct plumb_report *report = NULL;
    struct plumb_error err;
    if (!options->npu || !options->gpu)
        return cli_usage(&cmd_api_precision_compare, "%s is missing",
                         options->npu ? "-gpu FILE" : "-npu FILE");
    const struct plumb_precision_options request = {
        .npu = options->npu,
        .gpu = options->gpu,
        .folder = options->output,
        .rules = options->rules,
        .verdict = (enum plumb_deciding)options->verdict,
    };
    enum plumb_code code = folder_make(options->output, &err);
    if (!code && options->report) {
        report = page_begin("api_precision_compare", "Pre-checks of two devices", &err);
        code = report ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    if (!code)
        code = plumb_precision_compare(&result, &request, &err);
    if (code)
        cli_report(&err);
    say_left_out(result.only_npu, "NPU", result.first_only_npu);
    say_left_out(result.only_gpu, "GPU", result.first_only_gpu);
    if (result.details_path && !options->quiet)
        say_counts(&result, options->verdict != PLUMB_BY_RULES);
    int exit = code ? CLI_UNUSABLE : decide(options, &result);
    if (code) {
        plumb_report_free(report);
    } else if (report) {
        code = precision_page_tell(report, &request, &result, exit, &err);
        code = page_end(report, options->report, options->quiet, code, &err);
        if (code) {
            cli_report(&err);
            exit = CLI_UNUSABLE;
        }
    }
    plumb_precision_free(&result);
    return exit;
}

#define FIELD(member) .offset = offsetof(struct precision_options, member)

static const struct args_option arguments[] = {
    {.names = {"-npu", "--npu_csv_path"},
     .kind = ARGS_PATH,
     FIELD(npu),
     .metavar = "FILE",
     .help = "accuracy_checking_details_TIME.csv of the device under test"},
    {.names = {"-gpu", "--gpu_csv_path"},
     .kind = ARGS_PATH,
     FIELD(gpu),
     .metavar = "FILE",
     .help = "the same of the device that is trusted"},
    {.names = {"-o", "--out_path"},
     .kind = ARGS_PATH,
     FIELD(output),
     .metavar = "DIR",
     .initial = ".",
     .help = "folder for the two files"},
    {.names = {"--rules"},
     .kind = ARGS_PATH,
     FIELD(rules),
     .choices = PROFILE_NAMES,
     .metavar = PROFILE_NAMES "|FILE",
     .initial = "documented",
     .help = "standards, levels and CSV dialect; FILE: rules of your own, which start from those "
             "that 'plumb standard' prints"},
    {.names = {"--verdict"},
     .kind = ARGS_CHOICE,
     FIELD(verdict),
     .choices = "rules|expected|both",
     .initial = "rules",
     .help = "what decides: the rules, the second opinion of acc_check --verdict, which both files "
             "then need, or either; the files then have columns Verdict and Why"},
    PAGE_OPTION(FIELD(report)),
    {.names = {"--quiet"},
     .kind = ARGS_FLAG,
     FIELD(quiet),
     .help = "print nothing but what is wrong"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb api_precision_compare -npu npu/accuracy_checking_details_20260101000006.csv "
     "-gpu gpu/accuracy_checking_details_20260101000007.csv -o out",
     "is the NPU as precise as the GPU?"},
    {NULL, NULL},
};

const struct args_command cmd_api_precision_compare = {
    .name = "api_precision_compare",
    .summary = "judge the pre-check of one device by that of another",
    .usage = "-npu FILE -gpu FILE [-o DIR] [options]",
    .about =
        "Reads the details files that acc_check wrote on two devices, joins their rows by name, "
        "and judges each output by the standard of its API: the ratio of the errors (benchmark), "
        "binary consistency, absolute threshold, ULP error or the dual-1000 metric. Writes "
        "api_precision_compare_details_TIME.csv, one row per output, and "
        "api_precision_compare_result_TIME.csv, one row per API. Existing files are never "
        "touched.\n\n"
        "Either file may have English or Chinese headers. Where the cells of an API's own standard "
        "are missing, the benchmark standard decides and the row says so; a row without metrics "
        "stays what acc_check said. With --rules " PROFILE_OTHER
        " the files are those of " PROFILE_OTHER_TOOL ".",
    .sets = sets,
    .examples = examples,
    .exits = "0 when no API is in error (warnings and skipped ones included); with --verdict "
             "expected when no output of the device under test is a fault\n"
             "1 when some API is in error; with --verdict expected or both when an output is a "
             "fault\n"
             "2 when a file or the command line is unusable, or no output has a second opinion "
             "that should have one",
    .size = sizeof(struct precision_options),
    .run = run_precision,
};
