/* plumb api_precision_compare. */
#include "base/folder.h"
#include "cli/cli.h"
#include "cli/profiles.h"
#include "plumb/precision.h"

struct precision_options {
    struct cli_common common;
    const char *npu, *gpu, *output;
    const char *rules;
    bool quiet;
};

static void say_left_out(size_t count, const char *where, const char *first)
{
    if (count)
        cli_message("%zu row%s only in the %s file, left out: %s%s", count,
                    count == 1 ? " is" : "s are", where, first, count > 1 ? ", ..." : "");
}

static void say_counts(const struct plumb_precision_result *result)
{
    printf("%zu output%s compared; %zu API%s: %zu pass, %zu warning, %zu error, %zu SKIP\n",
           result->outputs, result->outputs == 1 ? "" : "s", result->apis,
           result->apis == 1 ? "" : "s", result->pass, result->warning, result->error,
           result->skip);
    printf("details: %s\nresult: %s\n", result->details_path, result->result_path);
}

static int run_precision(const void *context)
{
    const struct precision_options *options = context;
    struct plumb_precision_result result = {0};
    struct plumb_error err;
    if (!options->npu || !options->gpu)
        return cli_usage(&cmd_api_precision_compare, "%s is missing",
                         options->npu ? "-gpu FILE" : "-npu FILE");
    enum plumb_code code = folder_make(options->output, &err);
    if (!code)
        code = plumb_precision_compare(&result,
                                       &(struct plumb_precision_options){
                                           .npu = options->npu,
                                           .gpu = options->gpu,
                                           .folder = options->output,
                                           .rules = options->rules,
                                       },
                                       &err);
    if (code)
        cli_report(&err);
    say_left_out(result.only_npu, "NPU", result.first_only_npu);
    say_left_out(result.only_gpu, "GPU", result.first_only_gpu);
    if (result.details_path && !options->quiet)
        say_counts(&result);
    int exit = code ? CLI_UNUSABLE : result.error ? CLI_BAD : CLI_OK;
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
    .exits = "0 when no API is in error (warnings and skipped ones included)\n"
             "1 when some API is\n"
             "2 when a file or the command line is unusable",
    .size = sizeof(struct precision_options),
    .run = run_precision,
};
