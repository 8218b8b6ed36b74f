/* summary: range, mean and deviation of every tensor of a run. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/progress.h"
#include "plumb/compare.h"

struct summary_options {
    struct cli_view view;
    const char *path, *out;
};

static int run_summary(const void *context)
{
    const struct summary_options *options = context;
    struct plumb_run *run = NULL;
    struct plumb_table *table = NULL;
    struct plumb_error err;
    struct progress progress;
    size_t unreadable = 0;
    enum plumb_code code = options->out ? cli_check_ending(options->out, &err) : PLUMB_OK;
    if (!code)
        code = plumb_run_open(&run, options->path, &err);
    if (code)
        goto out;
    cli_say_warnings(run);
    progress_init(&progress, NULL);
    code = plumb_summary(&table, &unreadable, run,
                         &(struct plumb_summary_options){
                             .wide = options->view.wide,
                             .threads = cli_threads(&options->view.common),
                             .crew = cli_crew,
                             .progress = progress_update,
                             .progress_context = &progress,
                         },
                         &err);
    progress_end(&progress);
    if (!code)
        code = cli_arrange(table, &options->view, &err);
    if (code)
        goto out;
    if (options->out) {
        code = cli_save(table, options->out, &options->view, &err);
        if (!code)
            cli_say_written(table, options->out);
    } else {
        code = cli_show(table, &options->view, &err);
    }
    if (!code && unreadable)
        cli_message("%zu of %zu tensors could not be read%s", unreadable, plumb_run_count(run),
                    options->view.wide ? "" : "; --wide says why");
out:
    if (code)
        cli_report(&err);
    plumb_table_free(table);
    plumb_run_free(run);
    return code ? CLI_UNUSABLE : unreadable ? CLI_BAD : CLI_OK;
}

static const struct args_option summary_arguments[] = {
    {.names = {"PATH"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct summary_options, path),
     .help = "a tensor file, or a folder of such files"},
    {.names = {"OUT"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     .offset = offsetof(struct summary_options, out),
     .help = "file to write to: .txt .csv .json .md .xlsx"},
    {.names = {NULL}},
};

static const struct args_set summary_sets[] = {{"Arguments", summary_arguments},
                                               {"Output", cli_view_options},
                                               {"Common options", cli_common_options},
                                               {NULL, NULL}};

static const struct args_example summary_examples[] = {
    {"plumb summary dump.h5", "the range, mean and deviation of every tensor"},
    {"plumb summary dump.h5 summary.txt", "the same, into a file"},
    {"plumb summary model.pt --sort -Std --limit 5", "the five that spread most"},
    {NULL, NULL},
};

const struct args_command cmd_summary = {
    .name = "summary",
    .summary = "show range, mean and deviation of every tensor",
    .usage = "PATH [OUT] [options]",
    .about =
        "Shows one row per tensor, in the order of capture: step, rank, name, smallest and largest "
        "value, mean, and sample deviation.",
    .sets = summary_sets,
    .examples = summary_examples,
    .exits = "0 when every tensor was read\n1 when some could not be read\n2 when the path is "
             "unusable",
    .size = sizeof(struct summary_options),
    .run = run_summary,
};
