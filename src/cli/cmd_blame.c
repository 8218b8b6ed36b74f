/* blame and capsule: who is wrong, and that call alone. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/output.h"
#include "cli/baseline.h"
#include "cli/cli.h"
#include "cli/opinion_options.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "plumb/blame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct blame_options {
    struct cli_common common;
    const char *target, *golden, *arithmetic, *memory, *out, *report, *baseline, *write_baseline;
    const char *weights;
    struct args_list repeats;
    int64_t seed;
    int format;
};

/* Prints the answer, or writes it to its file. */
static enum plumb_code show(const struct blame_options *options, const struct plumb_blame *blame,
                            const struct plumb_blame_options *request, bool *printed,
                            struct plumb_error *err)
{
    const unsigned width = terminal_width(STDOUT_FILENO);
    char *text = options->format == 2   ? plumb_blame_junit(blame, cli_seconds())
                 : options->format == 1 ? plumb_blame_json(blame, request)
                                        : plumb_blame_text(blame, request, width ? width : 100);
    if (!text)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    if (options->out)
        code = output_whole(options->out, text, strlen(text), false, err);
    else
        *printed = cli_print(text);
    free(text);
    return code;
}

/* A NaN that ranks have. */
static bool has_nan(const struct plumb_blame *blame)
{
    return blame->n_not_finite && blame->not_finite[0].nan;
}

/* A fault, an odd rank or a NaN, or with a baseline what is new or worse; nothing when all of it
 * is to be accepted. */
static bool is_bad(const struct plumb_blame *blame, const struct cli_baseline *baseline)
{
    const struct plumb_baseline_diff *diff = blame->baseline;
    if (baseline->write_path && !diff)
        return false;
    return diff ? diff->count[PLUMB_STANDING_NEW] + diff->count[PLUMB_STANDING_WORSE] > 0
                : blame->n_faults || blame->n_odd || has_nan(blame);
}

static enum plumb_code write_report(const struct blame_options *options,
                                    const struct plumb_blame *blame,
                                    const struct plumb_blame_options *request,
                                    struct plumb_error *err)
{
    struct plumb_report *report = page_begin("blame", "Which calls are wrong", err);
    if (!report)
        return PLUMB_E_NOMEM;
    plumb_report_fact(report, "target", options->target);
    if (options->golden)
        plumb_report_fact(report, "golden", options->golden);
    return page_end(report, options->report, false, plumb_blame_report(report, blame, request, err),
                    err);
}

static int run_blame(const void *context)
{
    const struct blame_options *options = context;
    struct plumb_error err = {0};
    uint64_t memory = 0;
    if (options->memory && !memory_parse(options->memory, &memory))
        return cli_usage(&cmd_blame, "--memory takes a size such as 512M or 16G, not '%s'",
                         options->memory);
    if (options->format == 2 && options->write_baseline)
        return cli_usage(&cmd_blame, "--format junit does not go with --write-baseline, which "
                                     "accepts what is found");
    struct progress progress;
    progress_init(&progress, "calls");
    struct plumb_blame_options request = {
        .target = options->target,
        .golden = options->golden,
        .repeats = options->repeats.items,
        .n_repeats = options->repeats.count,
        .weights = options->weights,
        .arithmetic = options->arithmetic,
        .seed = options->seed == ARGS_UNSET ? 1234 : (uint64_t)options->seed,
        .threads = cli_threads(&options->common),
        .crew = cli_crew,
        .memory = memory,
        .pages = options->report != NULL,
        .progress = progress_update,
        .progress_context = &progress,
    };
    const struct plumb_baseline_options judged = {.seed = request.seed,
                                                  .arithmetic = request.arithmetic};
    struct cli_baseline baseline = {.read_path = options->baseline,
                                    .write_path = options->write_baseline};
    struct plumb_blame *blame = NULL;
    bool printed = true;
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
    cli_keep_memory();
    enum plumb_code code = cli_baseline_begin(&baseline, &judged, &err);
    if (!code)
        code = cli_check_hosts((const char *const[]){options->target, options->golden},
                               options->golden ? 2 : 1, &err);
    request.accepted = baseline.accepted;
    request.found = baseline.found;
    if (!code) {
        cli_say_strays(options->target);
        cli_say_strays(options->golden);
        code = plumb_blame_run(&request, &blame, &err);
    }
    progress_end(&progress);
    const bool judges = !code && blame->calls > blame->words[PLUMB_WORD_NOT_JUDGED];
    if (!code && options->report)
        code = write_report(options, blame, &request, &err);
    if (!code)
        code = show(options, blame, &request, &printed, &err);
    if (judges && !code)
        code = cli_baseline_write(&baseline, &err);
    const int status = code || !(judges || blame->n_odd || has_nan(blame)) || !printed
                           ? CLI_UNUSABLE
                       : is_bad(blame, &baseline) ? CLI_BAD
                                                  : CLI_OK;
    if (code)
        cli_report(&err);
    plumb_blame_free(blame);
    cli_baseline_free(&baseline);
    return status;
}

#define FIELD(member) .offset = offsetof(struct blame_options, member)

static const struct args_option arguments[] = {
    {.names = {"TARGET"},
     .kind = ARGS_PATH,
     FIELD(target),
     .help = "the run to look at: a dump.json or the folder of a dump, a capture of modules (.h5), "
             "a GE or FX dump"},
    {.names = {"GOLDEN"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(golden),
     .help = "another run of the same program, which shows where differences grow and lets "
             "what plumb cannot compute be judged"},
    {.names = {"--weights"},
     .kind = ARGS_PATH,
     FIELD(weights),
     .metavar = "FILE",
     .help = "the model's parameters by their names (.safetensors, .pt, ...), for modules whose "
             "own were not recorded; must be those that the run had"},
    {.names = {"--repeat"},
     .kind = ARGS_PATH,
     .arity = ARGS_MANY,
     FIELD(repeats),
     .metavar = "DIR",
     .help = "dumps of the same program on the same machine: what differs between them and TARGET "
             "is its own noise"},
    {.names = {"--format"},
     .kind = ARGS_CHOICE,
     FIELD(format),
     .choices = "text|json|junit",
     .help = "for people (default), for programs, or for systems that run tests: a case for each "
             "call, which fails when it is a fault, and for each odd rank; with --baseline for "
             "what is new or worse"},
    PAGE_OPTION(FIELD(report)),
    {.names = {"-o"},
     .kind = ARGS_PATH,
     FIELD(out),
     .metavar = "FILE",
     .help = "write there instead of to the terminal"},
    CLI_ARITHMETIC_OPTION(FIELD(arithmetic)),
    CLI_PERTURBATION_SEED_OPTION(FIELD(seed)),
    CLI_BASELINE_OPTION(FIELD(baseline)),
    CLI_WRITE_BASELINE_OPTION(FIELD(write_baseline)),
    CLI_CALL_MEMORY_OPTION(FIELD(memory)),
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb blame dump", "which recorded calls are wrong, whatever they should have led to"},
    {"plumb blame dump_npu dump_gpu", "the same, and where the two runs part"},
    {"plumb blame dump --repeat dump_again dump_once_more", "a program that is not deterministic"},
    {"plumb blame dump --baseline known.json", "fail only for what is new or worse"},
    {"plumb blame capture.h5 --weights model.safetensors", "modules, with the model's parameters"},
    {"plumb blame dump --format json -o blame.json", "for a program"},
    {NULL, NULL},
};

const struct args_command cmd_blame = {
    .name = "blame",
    .summary = "name the calls of a run that are wrong, apart from those that pass it on",
    .usage = "TARGET [GOLDEN] [options]",
    .about =
        "Computes every recorded call again from its recorded inputs, in higher precision, and "
        "says which results right arithmetic cannot have given; what is merely inherited from "
        "wrong inputs is told apart. Modules of known classes are such calls too. With a second "
        "run, what plumb cannot compute is judged by how much further its outputs are from that "
        "run than its inputs.",
    .sets = sets,
    .examples = examples,
    .exits =
        "0 when no judged call is a fault\n1 when one is; with --baseline when something is new or "
        "worse\n2 when the run is unusable, or nothing "
        "of it could be judged",
    .size = sizeof(struct blame_options),
    .run = run_blame,
};

/* ---- capsule --------------------------------------------------------------------------------- */

struct capsule_options {
    struct cli_common common;
    const char *target, *call, *folder;
};

static int run_capsule(const void *context)
{
    const struct capsule_options *options = context;
    struct plumb_error err = {0};
    const char *folder = options->folder ? options->folder : "capsule";
    char *said;
    if (plumb_capsule_write(options->target, options->call, folder, &said, &err)) {
        cli_report(&err);
        return CLI_UNUSABLE;
    }
    printf("%s/dump.json\n", folder);
    fputs(said ? said : "", stderr);
    free(said);
    return CLI_OK;
}

static const struct args_option capsule_arguments[] = {
    {.names = {"TARGET"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct capsule_options, target),
     .help = "a dump with tensors: its dump.json, or its folder"},
    {.names = {"CALL"},
     .kind = ARGS_TEXT,
     .offset = offsetof(struct capsule_options, call),
     .help = "the name of the call, such as Functional.layer_norm.3"},
    {.names = {"-o"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct capsule_options, folder),
     .metavar = "DIR",
     .help = "the folder to make (default: capsule)"},
    {.names = {NULL}},
};

static const struct args_set capsule_sets[] = {
    {"Arguments", capsule_arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example capsule_examples[] = {
    {"plumb capsule dump Functional.layer_norm.3 -o norm", "take one call out of a dump"},
    {"plumb acc_check norm/dump.json -d torch:cuda:0 --verdict both", "run it elsewhere"},
    {"plumb acc_check norm/dump.json -d recorded", "judge what it gave then"},
    {NULL, NULL},
};

const struct args_command cmd_capsule = {
    .name = "capsule",
    .summary = "take one call out of a dump, with all that is needed to run it again",
    .usage = "TARGET CALL [-o DIR]",
    .about =
        "Writes a folder with a dump.json of one call, the tensors that went in and came out, "
        "where it was called from, and what plumb says of it. Every command that takes a dump "
        "takes it: acc_check runs it on any device, jprof makes a pytest of one of begin_dump.",
    .sets = capsule_sets,
    .examples = capsule_examples,
    .exits = "0 when the folder was written\n2 when there is no such call, or the folder is there "
             "already",
    .size = sizeof(struct capsule_options),
    .run = run_capsule,
};
