/* plumb config_check: the weights of two checkpoints. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/profiles.h"
#include "cli/progress.h"
#include "plumb/checkpoint.h"

#include <string.h>
#include <unistd.h>

struct config_check_options {
    struct cli_view view;
    struct args_list checkpoints;
    const char *output;
    bool force, quiet;
    int only, rules, columns;
    double min_cos, max_distance;
};

/* A result file is JSON unless its ending asks for a table. */
static bool is_table(const char *path)
{
    enum plumb_table_format format;
    return plumb_table_format_of(path, &format) && format != PLUMB_TABLE_JSON;
}

static enum plumb_code check_output(const struct config_check_options *options,
                                    struct plumb_error *err)
{
    if (!options->output || options->force || access(options->output, F_OK))
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_ARG, "%s is already there; --force replaces it",
                      options->output);
}

static enum plumb_code save(const struct plumb_checkpoint_comparison *comparison,
                            const struct config_check_options *options, struct plumb_error *err)
{
    if (is_table(options->output))
        return cli_save(comparison->table, options->output, &options->view, err);
    return plumb_checkpoint_save(comparison, options->output, err);
}

static enum plumb_code show(struct plumb_checkpoint_comparison *comparison,
                            const struct config_check_options *options, struct plumb_error *err)
{
    if (options->quiet)
        return PLUMB_OK;
    if (options->only >= 0)
        plumb_table_keep_severity(comparison->table, PLUMB_FAILED);
    enum plumb_code code = cli_arrange(comparison->table, &options->view, err);
    if (!code)
        code = cli_show(comparison->table, &options->view, err);
    if (code)
        return code;
    FILE *people = cli_is_machine_format(options->view.format) ? stderr : stdout;
    fputs(comparison->closing, people);
    if (options->output)
        fprintf(people, "written to %s\n", options->output);
    return PLUMB_OK;
}

static int run_config_check(const void *context)
{
    const struct config_check_options *options = context;
    struct plumb_checkpoint_comparison comparison = {0};
    struct plumb_checkpoint_options how;
    struct progress progress;
    struct plumb_error err;
    if (options->checkpoints.count != 2)
        return cli_usage(&cmd_config_check, "which checkpoints? give -c CKPT1 CKPT2");
    plumb_checkpoint_options_init(&how);
    how.rules = profile_chosen(options->rules);
    how.min_cosine = options->min_cos;
    how.max_distance = options->max_distance;
    how.threads = cli_threads(&options->view.common);
    how.progress = progress_update;
    how.progress_context = &progress;

    enum plumb_code code = check_output(options, &err);
    if (!code) {
        progress_init(&progress, NULL);
        code = plumb_checkpoint_compare(&comparison, options->checkpoints.items[0],
                                        options->checkpoints.items[1], &how, &err);
        progress_end(&progress);
    }
    if (!code && options->output)
        code = save(&comparison, options, &err);
    bool bad = comparison.failed || comparison.alone || comparison.unreadable;
    if (!code)
        code = show(&comparison, options, &err);
    if (code)
        cli_report(&err);
    plumb_checkpoint_free(&comparison);
    return code ? CLI_UNUSABLE : bad ? CLI_BAD : CLI_OK;
}

#define FIELD(member) .offset = offsetof(struct config_check_options, member)

static const struct args_option arguments[] = {
    {.names = {"-c", "--compare"},
     .kind = ARGS_PATH,
     .arity = ARGS_TWO,
     FIELD(checkpoints),
     .metavar = "CKPT1 CKPT2",
     .help = "checkpoints: folders or files"},
    {.names = {"-o", "--output"},
     .kind = ARGS_PATH,
     FIELD(output),
     .metavar = "FILE",
     .help = "file for the result, JSON; or .csv .xlsx .md"},
    {.names = {"--force"},
     .kind = ARGS_FLAG,
     FIELD(force),
     .help = "replace a result file that exists"},
    {.names = {NULL}},
};

static const struct args_option verdict_options[] = {
    {.names = {"--min_cos"},
     .kind = ARGS_REAL,
     FIELD(min_cos),
     .metavar = "C",
     .help = "smallest cosine that passes (default: 0.99)"},
    {.names = {"--max_distance"},
     .kind = ARGS_REAL,
     FIELD(max_distance),
     .metavar = "D",
     .help = "largest |a-b|/|b| that passes (default: 0.01)"},
    {.names = {"--rules"},
     .kind = ARGS_CHOICE,
     FIELD(rules),
     .choices = PROFILE_NAMES,
     .initial = "documented",
     .help = PROFILE_OTHER ": join and number parts as " PROFILE_OTHER_TOOL " does"},
    {.names = {"--columns"},
     .kind = ARGS_CHOICE,
     FIELD(columns),
     .choices = PROFILE_OTHER,
     .help = "accepted for scripts; changes nothing"},
    {.names = {NULL}},
};

static const struct args_option table_options[] = {
    {.names = {"--only"},
     .kind = ARGS_CHOICE,
     FIELD(only),
     .choices = "fail",
     .help = "only rows that fail"},
    {.names = {"--quiet"},
     .kind = ARGS_FLAG,
     FIELD(quiet),
     .help = "print nothing; only set the exit code"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments},     {"Verdict", verdict_options},           {"Table", table_options},
    {"Output", cli_view_options}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb config_check -c checkpoint_tp2_pp2 checkpoint_tp1 -o out.json",
     "Megatron, other sizes"},
    {"plumb config_check -c ckpt/iter_0000010 ckpt/iter_0000020", "two iterations"},
    {"plumb config_check -c model.pt model-sharded/ --only fail", "a file and its shards"},
    {NULL, NULL},
};

const struct args_command cmd_config_check = {
    .name = "config_check",
    .summary = "compare the weights of two checkpoints",
    .usage = "-c CKPT1 CKPT2 [-o FILE] [options]",
    .about =
        "Compares two checkpoints weight by weight: distance, cosine, shape. Megatron checkpoints "
        "may have other tensor, pipeline and expert parallel sizes: their parts are joined, and "
        "layers and experts numbered through. Any other files are compared by name.\n\n"
        "A weight passes when its cosine is not below --min_cos and |a-b| is not above "
        "--max_distance times |b|. Names that only one side has are listed and fail.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when every weight passes\n"
             "1 when one fails, has no partner, or cannot be read\n"
             "2 when the input or the command line is unusable",
    .size = sizeof(struct config_check_options),
    .run = run_config_check,
};
