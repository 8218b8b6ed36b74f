/* acc_check and multi_acc_check: one job, the second with -n. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/terminal.h"
#include "plumb/check.h"
#include "report/utf8.h"

#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct check_options {
    struct cli_common common;
    const char *dump, *dump_option, *folder, *csv_path, *config;
    bool save_error_data, jit, filter, quiet;
    struct args_list devices;
    int rules, rng, inputs;
    int64_t seed, splits;
};

/* ---- Progress -------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The first time the run stops after the APIs at hand; the second time at once. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

struct watcher {
    bool terminal, quiet, shown;
    double started, told; /* seconds */
    uint64_t failed;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void clear_bar(struct watcher *watcher)
{
    if (watcher->shown)
        fputs("\r\033[K", stderr);
    watcher->shown = false;
}

/* As much of a name as fits into that many columns and bytes, with nothing that a terminal would
 * obey: names come from files that strangers wrote. */
static const char *fit(const char *name, size_t columns, char *out, size_t size)
{
    size_t used = 0, at = 0;
    while (*name) {
        const struct utf8_char c = utf8_next(name);
        const int width = utf8_width(c);
        const size_t bytes = width < 0 ? 1 : c.size;
        used += width < 0 ? 1 : (size_t)width;
        if (used > columns || at + bytes >= size)
            break;
        memcpy(out + at, width < 0 ? "?" : name, bytes);
        at += bytes;
        name += c.size;
    }
    out[at] = '\0';
    return out;
}

/* A bar on a terminal, drawn at most ten times a second; elsewhere a line every ten seconds. */
static void show_progress(struct watcher *watcher, const struct plumb_check_progress *p)
{
    const double time = now(), elapsed = time - watcher->started;
    if (time - watcher->told < (watcher->terminal ? 0.1 : 10.0))
        return;
    watcher->told = time;
    const double rate = elapsed > 0 ? (double)p->done / elapsed : 0;
    const double left = rate > 0 ? (double)(p->total - p->done) / rate : 0;
    if (!watcher->terminal) {
        fprintf(stderr, "%llu of %llu APIs checked, %.0f a second, %.0f s left\n",
                (unsigned long long)p->done, (unsigned long long)p->total, rate, left);
        return;
    }
    static const char full[] = "####################";
    const int filled = p->total ? (int)(20 * p->done / p->total) : 20;
    char bar[256], line[1024];
    snprintf(bar, sizeof bar, "[%.*s%*s] %llu of %llu APIs, %.0f/s, %.0f s left  ", filled, full,
             20 - filled, "", (unsigned long long)p->done, (unsigned long long)p->total, rate,
             left);
    const unsigned width = terminal_width(STDERR_FILENO);
    const size_t columns = width ? width - 1 : 79, used = strlen(bar);
    fprintf(stderr, "\r%.*s", (int)(used < columns ? used : columns), bar);
    if (used < columns)
        fputs(fit(p->name, columns - used, line, sizeof line), stderr);
    fputs("\033[K", stderr);
    fflush(stderr);
    watcher->shown = true;
}

enum { FAILURES_SHOWN = 20 };

static bool is_failure(const char *status)
{
    return strcmp(status, "error") == 0 || strcmp(status, "warning") == 0;
}

static bool on_progress(void *context, const struct plumb_check_progress *p)
{
    struct watcher *watcher = context;
    if (watcher->quiet)
        return !interrupted;
    if (is_failure(p->forward) || is_failure(p->backward)) {
        clear_bar(watcher);
        char name[1024];
        if (watcher->failed++ < FAILURES_SHOWN)
            printf("%-40s forward %s%s%s\n", fit(p->name, 200, name, sizeof name), p->forward,
                   *p->backward == ' ' ? "" : ", backward ",
                   *p->backward == ' ' ? "" : p->backward);
        else if (watcher->failed == FAILURES_SHOWN + 1)
            puts("... further ones are in the result file");
        fflush(stdout);
    }
    show_progress(watcher, p);
    return !interrupted;
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool same_device(const struct args_list *names, size_t k)
{
    for (size_t j = 0; j < k; j++)
        if (strcmp(names->items[j], names->items[k]) == 0)
            return true;
    return false;
}

static enum plumb_code open_devices(const struct args_list *names, struct plumb_device **devices,
                                    size_t *n, struct plumb_error *err)
{
    static const char *const only[] = {"cpu"};
    const size_t count = names->count ? names->count : 1;
    for (*n = 0; *n < count; ++*n) {
        const char *name = names->count ? names->items[*n] : only[0];
        if (names->count && same_device(names, *n))
            return plumb_fail(err, PLUMB_E_ARG, "device '%s' is given twice", name);
        enum plumb_code code = plumb_device_open(name, &devices[*n], err);
        if (code)
            return code;
        if (strcmp(name, "cpu") != 0)
            cli_message("device %s: the built-in cpu takes its place; there is no other device yet",
                        name);
    }
    return PLUMB_OK;
}

static void print_summary(const struct plumb_check_summary *s, bool quiet)
{
    const unsigned long long pass = s->apis[PLUMB_CHECK_PASS],
                             warning = s->apis[PLUMB_CHECK_WARNING],
                             error = s->apis[PLUMB_CHECK_ERROR], skip = s->apis[PLUMB_CHECK_SKIP];
    if (!quiet) {
        printf("%llu APIs: %llu pass, %llu warning, %llu error, %llu skipped",
               pass + warning + error + skip, pass, warning, error, skip);
        if (s->resumed)
            printf("; %llu were finished before", (unsigned long long)s->resumed);
        if (s->repeated)
            printf("; %llu repeat others and were left out", (unsigned long long)s->repeated);
        putchar('\n');
        if (pass + warning + error + skip + s->resumed + s->repeated == 0)
            cli_message("the dump records no calls; was it made with level L1 or mix?");
    }
    printf("%s\n%s\n", s->result, s->details);
    if (*s->error_data)
        printf("%s\n", s->error_data);
}

/* Tensors come and go by the thousand, and a page from the system costs more than most
 * operators. So memory that was used once stays with the process, and comes in large pages: a
 * range is asked for and given back before anything is in it, which only settles how the system
 * will back it. */
static void keep_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    const size_t size = (size_t)INT_MAX / 16 * 15; /* more would be trimmed */
    const size_t step = (size_t)sysconf(_SC_PAGESIZE);
    void *range = aligned_alloc(step, size / step * step);
    if (range)
        madvise(range, size / step * step, MADV_HUGEPAGE); /* no harm where it is refused */
    free(range);
}

static int check(const struct args_command *command, const struct check_options *options)
{
    const char *dump = options->dump_option ? options->dump_option : options->dump;
    if (!dump)
        return cli_usage(command, "-api_info FILE is missing");
    if (options->dump_option && options->dump)
        return cli_usage(command, "the dump is given twice: %s and %s", options->dump,
                         options->dump_option);
    if (options->rng == 1 && options->inputs > 0)
        return cli_usage(command, "--rng msprobe makes uniform values only");
    struct plumb_device *devices[64];
    struct plumb_error err = {0};
    struct plumb_check_summary summary = {0};
    size_t n_devices = 0;
    if (options->devices.count > sizeof devices / sizeof *devices)
        return cli_usage(command, "%zu devices are too many", options->devices.count);
    enum plumb_code code = open_devices(&options->devices, devices, &n_devices, &err);
    struct watcher watcher = {.terminal = isatty(STDERR_FILENO) == 1,
                              .quiet = options->quiet,
                              .started = now(),
                              .told = now()};
    const struct plumb_check_options request = {
        .dump = dump,
        .folder = options->folder,
        .resume = options->csv_path,
        .config = options->config,
        .rules = options->rules == 1 ? PLUMB_CHECK_MSPROBE : PLUMB_CHECK_DOCUMENTED,
        .inputs = (enum plumb_check_inputs)(options->inputs < 0 ? 0 : options->inputs),
        .msprobe_rng = options->rng == 1,
        .seed = options->seed == ARGS_UNSET ? 1234 : (uint64_t)options->seed,
        .filter = options->filter,
        .save_error_data = options->save_error_data,
        .devices = devices,
        .n_devices = n_devices,
        .threads = options->splits > 0 ? (unsigned)options->splits : cli_threads(&options->common),
        .progress = on_progress,
        .context = &watcher,
    };
    if (!code) {
        setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
        keep_memory();
        catch_signals();
        code = plumb_check_run(&request, &summary, &err);
    }
    clear_bar(&watcher);
    for (size_t k = 0; k < n_devices; k++)
        plumb_device_close(devices[k]);
    if (*summary.result)
        print_summary(&summary, options->quiet);
    if (code)
        cli_report(&err);
    if ((code || summary.stopped) && *summary.result)
        cli_message("not finished; to go on, repeat the command with -csv_path %s", summary.result);
    if (code || summary.stopped)
        return CLI_UNUSABLE;
    return summary.apis[PLUMB_CHECK_ERROR] ? CLI_BAD : CLI_OK;
}

static int run_acc_check(const void *context)
{
    return check(&cmd_acc_check, context);
}

static int run_multi_acc_check(const void *context)
{
    return check(&cmd_multi_acc_check, context);
}

/* ---- The command line ------------------------------------------------------------------------ */

#define FIELD(member) .offset = offsetof(struct check_options, member)

static const struct args_option arguments[] = {
    {.names = {"DUMP"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(dump),
     .help = "dump.json; the same as -api_info"},
    {.names = {"-api_info", "--api_info_file"},
     .kind = ARGS_PATH,
     FIELD(dump_option),
     .metavar = "FILE",
     .help = "dump.json of the model"},
    {.names = {"-o", "--out_path"},
     .kind = ARGS_PATH,
     FIELD(folder),
     .metavar = "DIR",
     .help = "folder for the results (default: the current one)"},
    {.names = {"-d", "--device"},
     .kind = ARGS_TEXT,
     .arity = ARGS_MANY,
     FIELD(devices),
     .metavar = "DEVICE",
     .help = "what to check: cpu (default), or a number, which means the same"},
    {.names = {"-csv_path", "--result_csv_path"},
     .kind = ARGS_PATH,
     FIELD(csv_path),
     .metavar = "FILE",
     .help = "go on with this accuracy_checking_result_TIME.csv"},
    {.names = {"-f", "--filter_api"},
     .kind = ARGS_FLAG,
     FIELD(filter),
     .help = "leave out calls that repeat an earlier one in all but values"},
    {.names = {"-config", "--config_path"},
     .kind = ARGS_PATH,
     FIELD(config),
     .metavar = "FILE",
     .help = "config.json or config.yaml: white_list, black_list, error_data_path, precision"},
    {.names = {"-save_error_data"},
     .kind = ARGS_FLAG,
     FIELD(save_error_data),
     .help = "keep inputs and outputs of what does not pass in ut_error_dataTIME"},
    {.names = {"-j", "--jit_compile"},
     .kind = ARGS_FLAG,
     FIELD(jit),
     .help = "passed on to devices that compile"},
    {.names = {"--inputs"},
     .kind = ARGS_CHOICE,
     FIELD(inputs),
     .choices = "uniform|normal|adversarial",
     .help = "how values are made where the dump has none"},
    {.names = {"--seed"},
     .kind = ARGS_INT,
     FIELD(seed),
     .metavar = "N",
     .min = 0,
     .max = 9007199254740992.0,
     .help = "of the values (default: 1234)"},
    {.names = {"--rules"},
     .kind = ARGS_CHOICE,
     FIELD(rules),
     .choices = "documented|msprobe",
     .help = "whose verdicts, columns and files"},
    {.names = {"--rng"},
     .kind = ARGS_CHOICE,
     FIELD(rng),
     .choices = "counter|msprobe",
     .help = "msprobe: the origin's values, on one thread"},
    {.names = {"--quiet"},
     .kind = ARGS_FLAG,
     FIELD(quiet),
     .help = "print the names of the result files only"},
    {.names = {NULL}},
};

static const struct args_option splits[] = {
    {.names = {"-n", "--num_splits"},
     .kind = ARGS_INT,
     FIELD(splits),
     .metavar = "N",
     .min = 1,
     .max = 64,
     .initial = "8",
     .help = "threads; the rows are the same for any number"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_set multi_sets[] = {{"Arguments", arguments},
                                             {"Threads", splits},
                                             {"Common options", cli_common_options},
                                             {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb acc_check -api_info dump/step0/rank0/dump.json -o results", "check every operator"},
    {"plumb acc_check dump.json -f -save_error_data", "each kind of call once; keep what fails"},
    {"plumb acc_check dump.json -csv_path results/accuracy_checking_result_20260101120000.csv",
     "go on after a kill"},
    {NULL, NULL},
};

#define ABOUT                                                                                      \
    "Runs every operator that a dump.json records, forward and backward, on a device and on "      \
    "plumb's float64 reference, and judges each output. Inputs come from the dump's payload "      \
    "files when it has them; otherwise they are made from the recorded ranges, the same ones "     \
    "whatever ran before, so that a run can be split, filtered and resumed.\n\n"                   \
    "Writes accuracy_checking_result_TIME.csv, a row an API, and "                                 \
    "accuracy_checking_details_TIME.csv, a row an output. api_precision_compare judges the "       \
    "details of one device by those of another."

#define EXITS                                                                                      \
    "0 when no API is an error (warnings and skips included)\n"                                    \
    "1 when some API is\n"                                                                         \
    "2 when the check could not be done or finished"

const struct args_command cmd_acc_check = {
    .name = "acc_check",
    .summary = "check every operator of a model against a float64 reference",
    .usage = "-api_info FILE [options]",
    .about = ABOUT,
    .sets = sets,
    .examples = examples,
    .exits = EXITS,
    .size = sizeof(struct check_options),
    .run = run_acc_check,
};

static const struct args_example multi_examples[] = {
    {"plumb multi_acc_check -api_info dump.json -n 32", "the same on 32 threads"},
    {NULL, NULL},
};

const struct args_command cmd_multi_acc_check = {
    .name = "multi_acc_check",
    .summary = "acc_check on a given number of threads",
    .usage = "-api_info FILE [-n N] [options]",
    .about = ABOUT,
    .sets = multi_sets,
    .examples = multi_examples,
    .exits = EXITS,
    .size = sizeof(struct check_options),
    .run = run_multi_acc_check,
};
