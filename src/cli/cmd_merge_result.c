/* merge_result: the results of several ranks side by side, a sheet for each column. */
#define _GNU_SOURCE
#include "base/folder.h"
#include "cli/cli.h"
#include "cli/notes.h"
#include "cli/profiles.h"
#include "cli/progress.h"
#include "cli/result.h"
#include "plumb/merge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct merge_result_options {
    struct cli_common common;
    const char *input, *output, *config;
    bool csv;
    int rules, columns;
};

#define NAME "multi_ranks_compare_merge"

/* ".Max_diff.csv" */
static char *sheet_ending(const char *name)
{
    char *ending = NULL;
    if (asprintf(&ending, ".%s.csv", name) < 0)
        return NULL;
    for (char *c = ending + 1; *c && strcmp(c, ".csv") != 0; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *c))
            *c = '_';
    return ending;
}

/* DIR/multi_ranks_compare_merge_TIME.SHEET.csv, the time being that of the first sheet. */
static enum plumb_code save_csv(const struct plumb_merge *merged, const char *folder,
                                struct plumb_error *err)
{
    char *stem = NULL;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < merged->count && !code; i++) {
        char *ending = sheet_ending(merged->sheets[i].name), *path = NULL;
        if (!ending)
            code = plumb_no_memory(err);
        if (!code && i == 0) {
            const struct result_name name = {folder, NAME, ending, false};
            code = result_save(&path, &name, merged->sheets[i].table, &(struct cli_view){0}, err);
            stem = code ? NULL : strndup(path, strlen(path) - strlen(ending));
        } else if (!code) {
            if (!stem || asprintf(&path, "%s%s", stem, ending) < 0) {
                path = NULL;
                code = plumb_no_memory(err);
            } else {
                code = plumb_table_save(merged->sheets[i].table, path, PLUMB_TABLE_CSV, NULL, err);
            }
        }
        if (!code)
            cli_say_written(merged->sheets[i].table, path);
        free(path);
        free(ending);
    }
    free(stem);
    return code;
}

static enum plumb_code save_workbook(const struct plumb_merge *merged, const char *path,
                                     struct plumb_error *err)
{
    struct waiting *waiting = waiting_begin("writing the sheets");
    const enum plumb_code code = plumb_workbook_save(merged->sheets, merged->count, path, err);
    waiting_end(waiting);
    return code;
}

static enum plumb_code save_xlsx(const struct plumb_merge *merged, const char *folder,
                                 struct plumb_error *err)
{
    const struct result_name name = {folder, NAME, ".xlsx", false};
    char *hidden = NULL, *path = NULL;
    enum plumb_code code = result_hidden(&hidden, &name, err);
    if (!code)
        code = save_workbook(merged, hidden, err);
    if (!code) {
        code = result_claim(&path, &name, hidden, err);
        if (code)
            unlink(hidden);
    }
    if (!code)
        printf("%zu sheet%s of %zu ranks written to %s\n", merged->count,
               merged->count == 1 ? "" : "s", merged->ranks, path);
    free(path);
    free(hidden);
    return code;
}

static void merge_update(void *context, uint64_t done, uint64_t total)
{
    progress_update_parts(context, "rows", done, total);
}

static int run_merge_result(const void *context)
{
    const struct merge_result_options *options = context;
    struct plumb_merge merged = {0};
    struct plumb_error err;
    if (!options->input || !options->output)
        return cli_usage(&cmd_merge_result, "%s is missing", options->input ? "-o DIR" : "-i DIR");
    struct progress progress;
    struct plumb_merge_options how = {
        .config = options->config, .progress = merge_update, .progress_context = &progress};
    progress_init(&progress, "files");
    enum plumb_code code = plumb_merge_results(&merged, options->input, &how, &err);
    progress_end(&progress);
    if (!code) {
        notes_say(merged.notes);
        code = folder_make(options->output, &err);
    }
    if (!code)
        code = options->csv ? save_csv(&merged, options->output, &err)
                            : save_xlsx(&merged, options->output, &err);
    bool bad = merged.unreadable;
    if (code)
        cli_report(&err);
    plumb_merge_free(&merged);
    return code ? CLI_UNUSABLE : bad ? CLI_BAD : CLI_OK;
}

#define FIELD(member) .offset = offsetof(struct merge_result_options, member)

static const struct args_option arguments[] = {
    {.names = {"-i", "--input_dir"},
     .kind = ARGS_PATH,
     FIELD(input),
     .metavar = "DIR",
     .help = "folder with results of single ranks"},
    {.names = {"-o", "--output_dir"},
     .kind = ARGS_PATH,
     FIELD(output),
     .metavar = "DIR",
     .help = "folder for " NAME "_TIME.xlsx"},
    {.names = {"-config", "--config-path"},
     .kind = ARGS_PATH,
     FIELD(config),
     .metavar = "FILE",
     .help = "YAML: lists api and compare_index (default: all)"},
    {.names = {"--csv"},
     .kind = ARGS_FLAG,
     FIELD(csv),
     .help = "write one .csv file per sheet instead"},
    {.names = {"--rules"},
     .kind = ARGS_CHOICE,
     FIELD(rules),
     .choices = PROFILE_NAMES,
     .help = "accepted for scripts; changes nothing"},
    {.names = {"--columns"},
     .kind = ARGS_CHOICE,
     FIELD(columns),
     .choices = PROFILE_OTHER,
     .help = "accepted for scripts; changes nothing"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb merge_result -i results -o merged -config merge.yaml", "chosen APIs and columns"},
    {"plumb merge_result -i results -o merged --csv", "everything, one .csv file per column"},
    {NULL, NULL},
};

const struct args_command cmd_merge_result = {
    .name = "merge_result",
    .summary = "put the results of several ranks side by side",
    .usage = "-i DIR -o DIR [-config FILE] [options]",
    .about =
        "Reads compare_result_rankN_TIME.xlsx and .csv, the newest of each rank, and writes a "
        "workbook with one sheet for each column of numbers: NPU Name, rank0, rank1, ... A name "
        "that a rank does not have is an empty cell. Cells N/A, unsupported and Nan become the "
        "largest value of either side.\n\n"
        "The configuration is YAML: a list api of names, each matched with the dot behind it "
        "anywhere in NPU Name, and a list compare_index of columns.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when all ranks were merged\n"
             "1 when some results could not be read\n"
             "2 when there is nothing to merge, or the command line is unusable",
    .size = sizeof(struct merge_result_options),
    .run = run_merge_result,
};
