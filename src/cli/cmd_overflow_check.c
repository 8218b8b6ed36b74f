/* overflow_check: the first operator of a step that makes NaN or infinity. */
#define _GNU_SOURCE
#include "base/folder.h"
#include "cli/cli.h"
#include "cli/notes.h"
#include "cli/profiles.h"
#include "cli/progress.h"
#include "plumb/ranks.h"

#include <stdlib.h>

struct overflow_options {
    struct cli_view view;
    const char *word, *input, *output;
    int rules;
};

static void say_where(const struct plumb_analysis *analysis, FILE *out)
{
    static const char *const phases[] = {
        [PLUMB_PHASE_BEFORE_COMMUNICATION] = "before any rank communicates",
        [PLUMB_PHASE_COMMUNICATION] = "between the first and the last communication",
        [PLUMB_PHASE_AFTER_COMMUNICATION] = "after the last communication",
    };
    const bool one = analysis->found == 1;
    const char *does = analysis->given ? one ? "is given the first NaN" : "are given the first NaN"
                       : one           ? "makes the first NaN or infinity"
                                       : "make the first NaN or infinity";
    fprintf(out, "%zu node%s of %zu rank%s %s, %s\n", analysis->found, one ? "" : "s",
            analysis->ranks, analysis->ranks == 1 ? "" : "s", does, phases[analysis->phase]);
    if (analysis->travelled)
        fputs(analysis->travelled, out);
}

static enum plumb_code deliver(const struct plumb_analysis *analysis,
                               const struct overflow_options *options, struct plumb_error *err)
{
    FILE *people = cli_is_machine_format(options->view.format) ? stderr : stdout;
    char *path = NULL;
    notes_say(analysis->notes);
    if (!analysis->found && !analysis->nodes) {
        fputs("there is nothing to look at: no node has a recorded Max or Min\n", people);
        return PLUMB_OK;
    }
    if (!analysis->found) {
        fprintf(
            people,
            "none of %zu node%s of %zu rank%s makes a NaN or an infinity%s; nothing is written\n",
            analysis->nodes, analysis->nodes == 1 ? "" : "s", analysis->ranks,
            analysis->ranks == 1 ? "" : "s",
            analysis->incomplete ? ", but not all could be read" : "");
        return PLUMB_OK;
    }
    const char *folder = options->output ? options->output : ".";
    enum plumb_code code = folder_make(folder, err);
    if (!code)
        code = cli_arrange(analysis->table, &options->view, err);
    if (!code)
        code = plumb_analysis_save(analysis, folder, "anomaly_analyze", &path, err);
    if (!code)
        code = cli_show(analysis->table, &options->view, err);
    if (!code) {
        say_where(analysis, people);
        fprintf(people, "inputs, outputs, modules and stack are in %s\n", path);
    }
    free(path);
    return code;
}

static int run_overflow_check(const void *context)
{
    const struct overflow_options *options = context;
    const char *input = options->input ? options->input : options->word;
    struct plumb_analysis analysis;
    struct plumb_error err;
    if (!input)
        return cli_usage(&cmd_overflow_check, "-i STEP is missing");
    if (options->input && options->word)
        return cli_usage(&cmd_overflow_check, "unexpected argument '%s'", options->word);
    struct progress progress;
    struct plumb_analyze_options how = {.rules = profile_chosen(options->rules),
                                        .crew = cli_crew,
                                        .progress = progress_update,
                                        .progress_context = &progress};
    progress_init(&progress, "ranks");
    cli_say_strays(input);
    enum plumb_code code = plumb_overflow_check(&analysis, input, &how, &err);
    progress_end(&progress);
    if (code) {
        cli_report(&err);
        return CLI_UNUSABLE;
    }
    int status = analysis.found ? CLI_BAD : analysis.incomplete ? CLI_UNUSABLE : CLI_OK;
    code = deliver(&analysis, options, &err);
    if (code) {
        cli_report(&err);
        status = CLI_UNUSABLE;
    }
    plumb_analysis_free(&analysis);
    return status;
}

#define FIELD(name) .offset = offsetof(struct overflow_options, name)

static const struct args_option overflow_arguments[] = {
    {.names = {"STEP"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(word),
     .help = "folder with rank folders, or a dump.json"},
    {.names = {"-i", "--input_path"},
     .kind = ARGS_PATH,
     FIELD(input),
     .metavar = "STEP",
     .help = "STEP as an option"},
    {.names = {"-o", "--output_path"},
     .kind = ARGS_PATH,
     FIELD(output),
     .metavar = "DIR",
     .help = "folder for anomaly_analyze_TIME.json"},
    {.names = {"--rules"},
     .kind = ARGS_CHOICE,
     FIELD(rules),
     .choices = PROFILE_NAMES,
     .initial = "documented",
     .help = PROFILE_OTHER ": search as " PROFILE_OTHER_TOOL " does, quirks included"},
    {.names = {NULL}},
};

static const struct args_set overflow_sets[] = {{"Arguments", overflow_arguments},
                                                {"Output", cli_view_options},
                                                {"Common options", cli_common_options},
                                                {NULL, NULL}};

static const struct args_example overflow_examples[] = {
    {"plumb overflow_check -i dump/step0 -o out", "all ranks of a step"},
    {"plumb overflow_check dump/step0/rank0/dump.json", "one rank alone"},
    {"plumb overflow_check -i dump/step0 --rules " PROFILE_OTHER, "as " PROFILE_OTHER " searches"},
    {NULL, NULL},
};

const struct args_command cmd_overflow_check = {
    .name = "overflow_check",
    .summary = "name the first operator that makes NaN or infinity",
    .usage = "-i STEP [-o DIR] [options]\nSTEP [-o DIR] [options]",
    .about =
        "Reads the dump.json of every rank of a step and looks for operators that get ordinary "
        "numbers and make NaN or infinity: first those before any communication, then along the "
        "operators that exchange tensors between ranks, then those after the last of them. Shows "
        "the first, and writes its inputs, outputs, modules and stack to a file.\n\n"
        "The recorded Max and Min decide, in lists inside lists too; --rules " PROFILE_OTHER
        " looks at direct arguments only. Torch.empty and Torch.fill are never blamed.",
    .sets = overflow_sets,
    .examples = overflow_examples,
    .exits = "0 when no operator makes a NaN or infinity\n"
             "1 when one was found\n"
             "2 when the input or the command line is unusable, or when nothing was found but not "
             "everything could be read, or there was nothing to look at",
    .size = sizeof(struct overflow_options),
    .run = run_overflow_check,
};
