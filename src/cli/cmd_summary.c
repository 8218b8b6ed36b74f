/* summary: range, mean and deviation of every tensor of a run. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/notes.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "plumb/compare.h"

#include <stdlib.h>

struct summary_options {
    struct cli_view view;
    const char *path, *out;
};

struct counts {
    size_t tensors, unreadable;
};

static enum plumb_code sum_up(struct plumb_table **table, struct counts *counts,
                              const struct plumb_run *run, const struct summary_options *options,
                              struct progress *progress, struct plumb_error *err)
{
    size_t unreadable = 0;
    const enum plumb_code code = plumb_summary(table, &unreadable, run,
                                               &(struct plumb_summary_options){
                                                   .wide = options->view.wide,
                                                   .threads = cli_threads(&options->view.common),
                                                   .crew = cli_crew,
                                                   .progress = progress ? progress_update : NULL,
                                                   .progress_context = progress,
                                                   .first = counts->tensors,
                                               },
                                               err);
    counts->tensors += plumb_run_count(run);
    counts->unreadable += unreadable;
    return code;
}

/* Rows of several steps are in the order of steps, not of ranks. */
static bool has_other_steps(const struct plumb_run *run, int64_t *step, bool first)
{
    const size_t count = plumb_run_count(run);
    if (first && count)
        *step = plumb_run_record(run, 0)->step;
    for (size_t i = 0; i < count; i++)
        if (plumb_run_record(run, i)->step != *step)
            return true;
    return false;
}

struct by_rank {
    struct rows rows;
    struct buf warnings;
    int64_t step;
    struct counts counts;
};

static enum plumb_code add_rank(struct by_rank *sum, const struct summary_options *options,
                                int64_t rank, bool *fits, struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_table *table = NULL;
    const char *text;
    enum plumb_code code = plumb_run_open_rank(&run, options->path, rank, err);
    *fits = !code && !has_other_steps(run, &sum->step, !sum->counts.tensors);
    if (*fits)
        code = sum_up(&table, &sum->counts, run, options, NULL, err);
    if (*fits && !code)
        code = rows_add(&sum->rows, table, err);
    for (size_t i = 0; *fits && (text = plumb_run_warning(run, i)); i++)
        buf_printf(&sum->warnings, "warning: %s\n", text);
    plumb_table_free(table);
    plumb_run_free(run);
    return code;
}

/* A dump of several ranks, one after the other, with the memory of one. *done stays false when all
 * of it has to be there at once, or something is wrong, which is then said of all of it. */
static enum plumb_code sum_by_rank(struct counts *counts, bool *done,
                                   const struct summary_options *options, struct plumb_error *err)
{
    struct by_rank sum = {0};
    struct plumb_ranks ranks = {0};
    struct progress progress;
    bool fits = rows_begin(&sum.rows, options->out, false, &options->view);
    *done = false;
    enum plumb_code code = fits ? plumb_run_ranks(&ranks, options->path, err) : PLUMB_OK;
    fits = fits && !code && ranks.count > 1;
    progress_init(&progress, "ranks");
    for (size_t i = 0; i < ranks.count && fits; i++) {
        progress_update(&progress, i, ranks.count);
        code = add_rank(&sum, options, ranks.list[i], &fits, err);
        fits = fits && !code;
    }
    progress_end(&progress);
    *done = fits && sum.counts.tensors;
    const size_t rows = sum.rows.parts.rows;
    if (*done)
        notes_say(sum.warnings.data);
    const enum plumb_code ended = rows_end(&sum.rows, *done, err);
    if (code && (!rows || !options->out))
        code = PLUMB_OK;
    code = code ? code : ended;
    if (*done && !code && options->out)
        cli_say_rows(rows, options->out);
    if (*done)
        *counts = sum.counts;
    buf_free(&sum.warnings);
    free(ranks.list);
    return code;
}

static enum plumb_code sum_whole(struct counts *counts, const struct summary_options *options,
                                 struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_table *table = NULL;
    struct progress progress;
    enum plumb_code code = plumb_run_open(&run, options->path, err);
    if (code)
        return code;
    cli_say_warnings(run);
    progress_init(&progress, NULL);
    code = sum_up(&table, counts, run, options, &progress, err);
    progress_end(&progress);
    if (!code)
        code = cli_arrange(table, &options->view, err);
    if (!code && options->out) {
        code = cli_save(table, options->out, &options->view, err);
        if (!code)
            cli_say_written(table, options->out);
    } else if (!code) {
        code = cli_show(table, &options->view, err);
    }
    plumb_table_free(table);
    plumb_run_free(run);
    return code;
}

static int run_summary(const void *context)
{
    const struct summary_options *options = context;
    struct counts counts = {0};
    struct plumb_error err;
    bool done = false;
    cli_keep_blocks();
    enum plumb_code code = options->out ? cli_check_ending(options->out, &err) : PLUMB_OK;
    if (!code)
        code = cli_check_hosts(&options->path, 1, &err);
    if (!code)
        code = sum_by_rank(&counts, &done, options, &err);
    if (!code && !done)
        code = sum_whole(&counts, options, &err);
    if (!code && counts.unreadable)
        cli_message("%zu of %zu tensors could not be read%s", counts.unreadable, counts.tensors,
                    options->view.wide ? "" : "; --wide says why");
    if (code)
        cli_report(&err);
    return code ? CLI_UNUSABLE : counts.unreadable ? CLI_BAD : CLI_OK;
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
