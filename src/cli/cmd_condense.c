/* condense: the tensors of a dump replaced by their statistics, once or until a signal. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/progress.h"
#include "plumb/condense.h"

#include <math.h>
#include <signal.h>
#include <string.h>

struct condense_options {
    struct cli_common common;
    const char *folder, *keep;
    bool watch, dry_run;
    double until_idle, settle;
};

struct view {
    struct progress progress;
    bool dry_run, broken; /* broken: stdout takes nothing more */
};

static volatile sig_atomic_t told_to_end;

static void on_signal(int number)
{
    (void)number;
    told_to_end = 1;
}

/* Ends after the files at hand, however often it is asked to. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static bool must_end(void *context)
{
    const struct view *view = context;
    return told_to_end || view->broken;
}

static const char *size_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct view *view = context;
    progress_update(&view->progress, done, total);
}

static void show_event(void *context, const struct plumb_condense_event *event)
{
    struct view *view = context;
    char text[1024];
    progress_end(&view->progress);
    if (event->outcome != PLUMB_CONDENSE_DONE) {
        cli_message("%s%s", event->outcome == PLUMB_CONDENSE_FAILED ? "left alone: " : "",
                    plumb_error_text(event->error, text, sizeof text));
    } else if (view->dry_run) {
        printf("%s: %zu tensor%s, %llu bytes would become %llu\n", event->path, event->tensors,
               event->tensors == 1 ? "" : "s", (unsigned long long)event->before,
               (unsigned long long)event->after);
        view->broken = !cli_print("");
    }
}

static void say_what_happened(const struct plumb_condensed *done, bool dry_run)
{
    char before[32], after[32];
    if (!done->files)
        puts(dry_run ? "nothing would be condensed" : "nothing was condensed");
    else
        printf("%zu file%s with %zu tensor%s %scondensed: %s %s %s\n", done->files,
               done->files == 1 ? "" : "s", done->tensors, done->tensors == 1 ? "" : "s",
               dry_run ? "would be " : "", size_text(done->before, before),
               dry_run ? "would become" : "became", size_text(done->after, after));
    if (done->small)
        printf("%zu file%s left alone: condensed %s would not be smaller\n", done->small,
               done->small == 1 ? " was" : "s were", done->small == 1 ? "it" : "they");
    if (done->waiting)
        printf("%zu file%s left alone: still open for writing, or changed just now\n",
               done->waiting, done->waiting == 1 ? " was" : "s were");
}

static int run_condense(const void *context)
{
    const struct condense_options *options = context;
    struct view view = {.dry_run = options->dry_run};
    bool watch = options->watch || !isnan(options->until_idle);
    struct plumb_condense_options how = {
        .watch = watch,
        .until_idle = isnan(options->until_idle) ? 0 : options->until_idle,
        .settle = isnan(options->settle) ? 0 : options->settle,
        .dry_run = options->dry_run,
        .threads = cli_threads(&options->common),
        .crew = cli_crew,
        .event = show_event,
        .progress = show_progress,
        .stop = must_end,
        .context = &view,
    };
    struct plumb_condensed done;
    struct plumb_error err;
    if (options->keep && plumb_keep_parse(&how.keep, options->keep, &err))
        return cli_usage(&cmd_condense, "%s", err.message);
    if (watch && options->dry_run)
        return cli_usage(&cmd_condense, "--dry-run and --watch exclude each other");

    catch_signals();
    progress_init(&view.progress, NULL);
    enum plumb_code code = plumb_condense(&done, options->folder, &how, &err);
    progress_end(&view.progress);
    if (code)
        cli_report(&err);
    if (!code || done.files)
        say_what_happened(&done, options->dry_run);
    if (done.failed)
        cli_message("%zu could not be condensed", done.failed);
    if (code)
        return CLI_UNUSABLE;
    return done.failed || (done.stopped && !watch) ? CLI_BAD : CLI_OK;
}

static const struct args_option condense_arguments[] = {
    {.names = {"DIR"},
     .kind = ARGS_PATH,
     .offset = offsetof(struct condense_options, folder),
     .help = "a folder of tensor files, with its subfolders"},
    {.names = {"--keep"},
     .kind = ARGS_TEXT,
     .offset = offsetof(struct condense_options, keep),
     .metavar = "LIST",
     .help = "what to keep of a tensor: minmax, mean, norm, crc32, hash, sketch, separated by "
             "commas; all by default"},
    {.names = {"--watch"},
     .kind = ARGS_FLAG,
     .offset = offsetof(struct condense_options, watch),
     .help = "continue while the dump is being written, until SIGTERM or SIGINT"},
    {.names = {"--until-idle"},
     .kind = ARGS_REAL,
     .offset = offsetof(struct condense_options, until_idle),
     .metavar = "SECONDS",
     .min = 0.001,
     .max = 1e9,
     .help = "watch, and end when nothing has changed for this time"},
    {.names = {"--settle"},
     .kind = ARGS_REAL,
     .offset = offsetof(struct condense_options, settle),
     .metavar = "SECONDS",
     .min = 0.001,
     .max = 1e9,
     .help = "leave files alone that changed within this time (default: 1)"},
    {.names = {"--dry-run"},
     .kind = ARGS_FLAG,
     .offset = offsetof(struct condense_options, dry_run),
     .help = "change nothing; list what would be condensed, and to how many bytes"},
    {.names = {NULL}},
};

static const struct args_set condense_sets[] = {
    {"Arguments", condense_arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example condense_examples[] = {
    {"plumb condense dump --dry-run", "how much would it save?"},
    {"plumb condense dump", "statistics and checksums in place of tensors"},
    {"plumb condense dump --until-idle 60 &", "while a run that dumps is still at work"},
    {NULL, NULL},
};

const struct args_command cmd_condense = {
    .name = "condense",
    .summary = "replace the tensors of a dump by their statistics",
    .usage = "DIR [options]",
    .about =
        "Replaces every tensor file below a folder by a small file NAME.condensed.json with type, "
        "shape, range, mean, deviation, norm, CRC-32, a hash of 128 bits and a sketch, from which "
        "the distance of two tensors is estimated, and where they differ. A condensed dump is "
        "compared like any other. Files "
        "that would not become smaller keep their values.\n\n"
        "It may run while the dump is still being written: a file is taken only when nobody has it "
        "open for writing and it has not changed for a while, and it is removed only when its "
        "condensed form is safely on the disk. A file that cannot be read as a whole is left "
        "alone, and so is everything that holds no tensors. THE VALUES CANNOT BE RECOVERED.",
    .sets = condense_sets,
    .examples = condense_examples,
    .exits = "0 when everything that was complete is condensed\n"
             "1 when some files could not be\n"
             "2 when the folder or the command line is unusable",
    .size = sizeof(struct condense_options),
    .run = run_condense,
};
