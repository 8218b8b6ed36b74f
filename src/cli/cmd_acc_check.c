/* acc_check and multi_acc_check: one job, the second with -n. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "base/utf8.h"
#include "cli/baseline.h"
#include "cli/check_options.h"
#include "cli/check_page.h"
#include "cli/cli.h"
#include "cli/junit.h"
#include "cli/opinion_options.h"
#include "cli/profiles.h"
#include "cli/terminal.h"
#include "plumb/precheck.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
    FILE *out;            /* for people; stderr where stdout is for programs */
    double started, told; /* seconds */
    uint64_t failed;
    enum plumb_deciding verdict; /* what decides */
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
    for (struct utf8_shown c; *name; name += c.taken) {
        c = utf8_show(name);
        used += c.columns;
        if (used > columns || at + c.size >= size)
            break;
        memcpy(out + at, c.bytes, c.size);
        at += c.size;
    }
    out[at] = '\0';
    return out;
}

/* A bar on a terminal, drawn at most ten times a second; elsewhere a line every ten seconds. */
static void show_progress(struct watcher *watcher, const struct plumb_precheck_progress *p)
{
    const double time = now(), elapsed = time - watcher->started;
    if (time - watcher->told < (watcher->terminal ? 0.1 : 10.0))
        return;
    watcher->told = time;
    const double rate = elapsed > 0 ? (double)p->done / elapsed : 0;
    const double left = rate > 0 ? (double)(p->total - p->done) / rate : 0;
    if (!watcher->terminal) {
        fprintf(stderr, "%llu of %llu APIs checked, %.0f per second, %.0f s left\n",
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

/* What the documented rules say, where they decide. */
static bool fails_rules(const struct watcher *watcher, const struct plumb_precheck_progress *p)
{
    return watcher->verdict != PLUMB_BY_EXPECTED &&
           (is_failure(p->forward) || is_failure(p->backward));
}

/* What the second opinion says, where there is one. */
static bool is_suspect(const struct plumb_precheck_progress *p)
{
    return p->verdict && (p->word == PLUMB_WORD_FAULT || p->word == PLUMB_WORD_CHEAPER);
}

static void show_failure(const struct watcher *watcher, const struct plumb_precheck_progress *p)
{
    char text[1024];
    fprintf(watcher->out, "%-40s ", fit(p->name, 200, text, sizeof text));
    if (fails_rules(watcher, p))
        fprintf(watcher->out, "forward %s%s%s\n", p->forward,
                *p->backward == ' ' ? "" : ", backward ", *p->backward == ' ' ? "" : p->backward);
    if (is_suspect(p))
        fprintf(watcher->out, "%s%s: %s\n", fails_rules(watcher, p) ? "    " : "", p->verdict,
                fit(p->why, 700, text, sizeof text));
}

static bool on_progress(void *context, const struct plumb_precheck_progress *p)
{
    struct watcher *watcher = context;
    if (watcher->quiet)
        return !interrupted;
    if (fails_rules(watcher, p) || is_suspect(p)) {
        clear_bar(watcher);
        if (watcher->failed++ < FAILURES_SHOWN)
            show_failure(watcher, p);
        else if (watcher->failed == FAILURES_SHOWN + 1)
            fputs("... further ones are in the result file\n", watcher->out);
        fflush(watcher->out);
    }
    show_progress(watcher, p);
    return !interrupted;
}

static void on_note(void *context, const char *text)
{
    (void)context;
    cli_message("%s", text);
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool is_number(const char *name)
{
    return *name && name[strspn(name, "0123456789")] == '\0';
}

/* Device k among those before it: none may be there twice, under whatever name. */
static enum plumb_code check_device(const struct args_list *names, size_t k,
                                    struct plumb_error *err)
{
    const char *name = names->items[k];
    if (is_number(name) && name[0] == '0' && name[1])
        return plumb_fail(err, PLUMB_E_ARG, "'%s' is no device number: write it without the zeros",
                          name);
    for (size_t j = 0; j < k; j++) {
        const char *other = names->items[j];
        if (strcmp(other, name) == 0)
            return plumb_fail(err, PLUMB_E_ARG, "device '%s' is given twice", name);
        if ((strcmp(other, "cpu") == 0 && is_number(name)) ||
            (strcmp(name, "cpu") == 0 && is_number(other)))
            return plumb_fail(err, PLUMB_E_ARG,
                              "devices '%s' and '%s' are the same: a number stands for cpu here",
                              other, name);
    }
    return PLUMB_OK;
}

static enum plumb_code open_devices(const struct args_list *names,
                                    const struct plumb_device_options *how,
                                    struct plumb_device **devices, size_t *n,
                                    struct plumb_error *err)
{
    static const char *const only[] = {"cpu"};
    const size_t count = names->count ? names->count : 1;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < names->count && !code; k++)
        code = check_device(names, k, err);
    for (*n = 0; *n < count && !code; ++*n) {
        const char *name = names->count ? names->items[*n] : only[0];
        if ((code = plumb_device_open_with(name, how, &devices[*n], err)))
            break;
        if (is_number(name))
            cli_message(
                "device %s: the built-in cpu takes its place; for a device of PyTorch write "
                "torch:cuda:%s or torch:npu:%s",
                name, name, name);
    }
    return code;
}

/* PyTorch for what plumb lacks. */
struct fallback {
    struct plumb_device *reference; /* which never gets the user's modules */
    struct plumb_device *stand_in;  /* for the built-in device, with them; NULL: there are none */
    bool shared;                    /* the reference is one of the devices */
};

/* Devices that are there already, or are started when it comes to that. */
static enum plumb_code open_fallback(const struct plumb_device_options *how,
                                     struct plumb_device *const *devices, size_t n,
                                     struct fallback *out, struct plumb_error *err)
{
    struct plumb_device_options lazy = *how;
    lazy.lazy = true;
    if (how->n_imports) {
        enum plumb_code code = plumb_device_open_with("torch:cpu", &lazy, &out->stand_in, err);
        lazy.n_imports = 0;
        return code ? code : plumb_device_open_with("torch:cpu", &lazy, &out->reference, err);
    }
    for (size_t k = 0; k < n; k++)
        if (strcmp(devices[k]->name, "torch:cpu") == 0) {
            out->reference = devices[k];
            out->shared = true;
            return PLUMB_OK;
        }
    return plumb_device_open_with("torch:cpu", &lazy, &out->reference, err);
}

static void close_fallback(const struct fallback *fallback)
{
    if (!fallback->shared)
        plumb_device_close(fallback->reference);
    plumb_device_close(fallback->stand_in);
}

static void print_words(const struct plumb_precheck_summary *s, FILE *out)
{
    fputs("second opinion:", out);
    const char *before = " ";
    for (int k = 0; k < PLUMB_WORDS; k++)
        if (s->words[k] || k == PLUMB_WORD_FAULT) {
            fprintf(out, "%s%llu %s", before, (unsigned long long)s->words[k],
                    plumb_word_text((enum plumb_word)k));
            before = ", ";
        }
    putc('\n', out);
    uint64_t all = 0;
    for (int k = 0; k < PLUMB_WORDS; k++)
        all += s->words[k];
    if (all && all == s->words[PLUMB_WORD_NOT_JUDGED])
        cli_message("no result was judged; the table says why");
}

static void print_summary(const struct plumb_precheck_summary *s, enum plumb_deciding verdict,
                          bool quiet, FILE *out)
{
    const unsigned long long pass = s->apis[PLUMB_PRECHECK_PASS],
                             warning = s->apis[PLUMB_PRECHECK_WARNING],
                             error = s->apis[PLUMB_PRECHECK_ERROR],
                             skip = s->apis[PLUMB_PRECHECK_SKIP];
    if (!quiet) {
        fprintf(out, "%llu APIs: %llu pass, %llu warning, %llu error, %llu skipped",
                pass + warning + error + skip, pass, warning, error, skip);
        if (s->no_backward)
            fprintf(out, "; the backward of %llu could not be checked",
                    (unsigned long long)s->no_backward);
        if (s->resumed)
            fprintf(out, "; %llu were finished before", (unsigned long long)s->resumed);
        if (s->repeated)
            fprintf(out, "; %llu repeat others and were left out", (unsigned long long)s->repeated);
        putc('\n', out);
        if (verdict != PLUMB_BY_RULES)
            print_words(s, out);
        if (pass + warning + error + skip + s->resumed + s->repeated == 0)
            cli_message("the dump records no calls; was it made with level L1 or mix?");
    }
    fprintf(out, "%s\n%s\n", s->result, s->details);
    if (*s->error_data)
        fprintf(out, "%s\n", s->error_data);
}

static bool is_recorded(const struct args_list *devices)
{
    bool recorded = false;
    for (size_t k = 0; k < devices->count; k++)
        recorded |= strcmp(devices->items[k], "recorded") == 0;
    return recorded;
}

/* 0, or the exit code of a wrong command line. */
static int choose_verdict(const struct args_command *command, const struct check_options *options,
                          enum plumb_deciding *out)
{
    const bool recorded = is_recorded(&options->devices);
    if (recorded && options->devices.count > 1)
        return cli_usage(command, "-d recorded is what the dump holds, and goes with no other "
                                  "device");
    *out = options->verdict >= 0 ? (enum plumb_deciding)options->verdict
           : recorded            ? PLUMB_BY_EXPECTED
                                 : PLUMB_BY_RULES;
    if (options->arithmetic && *out == PLUMB_BY_RULES)
        return cli_usage(command, "--arithmetic needs --verdict expected or both");
    const char *baseline = options->baseline         ? "--baseline"
                           : options->write_baseline ? "--write-baseline"
                                                     : NULL;
    if (baseline && *out == PLUMB_BY_RULES)
        return cli_usage(command, "%s needs --verdict expected or both", baseline);
    if (baseline && options->format > 0)
        return cli_usage(command, "%s does not go with --format junit", baseline);
    if (baseline && options->csv_path)
        return cli_usage(command,
                         "%s does not go with -csv_path: the tables of what was finished before do "
                         "not have all that a baseline needs",
                         baseline);
    return 0;
}

/* Whether the second opinion fails the run: a fault, or with a baseline what is new or worse. */
static enum plumb_code conclude(const struct cli_baseline *baseline,
                                const struct plumb_precheck_summary *summary, bool *bad,
                                uint64_t *changed, struct plumb_error *err)
{
    *changed = 0;
    *bad = summary->words[PLUMB_WORD_FAULT] > 0 && !baseline->write_path;
    if (!baseline->found)
        return PLUMB_OK;
    enum plumb_code code =
        baseline->accepted ? cli_baseline_compare(baseline, changed, err) : PLUMB_OK;
    if (baseline->accepted)
        *bad = *changed > 0;
    return code ? code : cli_baseline_write(baseline, err);
}

static enum plumb_code write_page(struct plumb_report *report, const struct check_options *options,
                                  const struct check_page *page, enum plumb_code code,
                                  struct plumb_error *err)
{
    if (report && !code)
        code = check_page_tell(report, page, err);
    return page_end(report, options->report, options->quiet, code, err);
}

/* The APIs of the result file as test cases. */
static enum plumb_code print_junit(const struct plumb_precheck_summary *summary,
                                   enum plumb_deciding verdict, struct plumb_error *err)
{
    struct plumb_table *table;
    enum plumb_code code = plumb_table_read(&table, summary->result, err);
    if (!code) {
        code = junit_words("plumb.acc_check", table, verdict, err);
        plumb_table_free(table);
    }
    return code;
}

static enum plumb_code begin_page(struct plumb_report **report, const char *dump,
                                  const struct args_list *devices, struct plumb_error *err)
{
    *report = page_begin("acc_check", "Pre-check of recorded calls", err);
    if (!*report)
        return PLUMB_E_NOMEM;
    plumb_report_fact(*report, "dump", dump);
    for (size_t k = 0; k < devices->count; k++)
        plumb_report_fact(*report, "device", devices->items[k]);
    if (!devices->count)
        plumb_report_fact(*report, "device", "cpu");
    return PLUMB_OK;
}

static int check(const struct args_command *command, const struct check_options *options)
{
    const char *dump = options->dump_option ? options->dump_option : options->dump;
    if (!dump)
        return cli_usage(command, "-api_info FILE is missing");
    if (options->dump_option && options->dump)
        return cli_usage(command, "the dump is given twice: %s and %s", options->dump,
                         options->dump_option);
    uint64_t memory = 0;
    if (options->memory && !memory_parse(options->memory, &memory))
        return cli_usage(command, "--memory takes a size such as 512M or 16G, not '%s'",
                         options->memory);
    if (options->rng == 1 && options->inputs > 0)
        return cli_usage(command, "--rng " PROFILE_OTHER " makes uniform values only");
    enum plumb_deciding verdict = PLUMB_BY_RULES;
    const int usage = choose_verdict(command, options, &verdict);
    if (usage)
        return usage;
    struct plumb_device *devices[64];
    struct plumb_error err = {0};
    struct plumb_precheck_summary summary = {0};
    size_t n_devices = 0;
    if (options->devices.count > sizeof devices / sizeof *devices)
        return cli_usage(command, "%zu devices are too many", options->devices.count);
    const struct plumb_device_options how = {
        .timeout = isnan(options->timeout) ? 0 : options->timeout,
        .threads = options->torch_threads > 0 ? (unsigned)options->torch_threads : 0,
        .imports = options->imports.items,
        .n_imports = options->imports.count,
        .jit = options->jit,
    };
    struct fallback fallback = {0};
    const uint64_t seed = options->seed == ARGS_UNSET ? 1234 : (uint64_t)options->seed;
    const struct plumb_baseline_options judged = {.seed = seed, .arithmetic = options->arithmetic};
    struct cli_baseline baseline = {.read_path = options->baseline,
                                    .write_path = options->write_baseline};
    struct plumb_report *report = NULL;
    enum plumb_code code = cli_baseline_begin(&baseline, &judged, &err);
    if (!code && options->report)
        code = begin_page(&report, dump, &options->devices, &err);
    if (!code)
        code = open_devices(&options->devices, &how, devices, &n_devices, &err);
    if (!code && !options->no_torch)
        code = open_fallback(&how, devices, n_devices, &fallback, &err);
    struct watcher watcher = {.terminal = isatty(STDERR_FILENO) == 1,
                              .quiet = options->quiet,
                              .out = options->format > 0 ? stderr : stdout,
                              .verdict = verdict,
                              .started = now(),
                              .told = now()};
    const struct plumb_precheck_options request = {
        .dump = dump,
        .folder = options->folder,
        .resume = options->csv_path,
        .config = options->config,
        .rules = options->rules,
        .verdict = verdict,
        .arithmetic = options->arithmetic,
        .inputs = (enum plumb_precheck_inputs)(options->inputs < 0 ? 0 : options->inputs),
        .rng = options->rng == 1 ? PROFILE_OTHER : NULL,
        .seed = seed,
        .found = baseline.found,
        .filter = options->filter,
        .save_error_data = options->save_error_data,
        .devices = devices,
        .n_devices = n_devices,
        .fallback = fallback.reference,
        .stand_in = fallback.stand_in,
        .threads = options->splits > 0 ? (unsigned)options->splits : cli_threads(&options->common),
        .crew = cli_crew,
        .helping = cli_helping,
        .memory = memory,
        .progress = on_progress,
        .note = on_note,
        .context = &watcher,
    };
    if (!code) {
        setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
        cli_keep_memory();
        catch_signals();
        code = plumb_precheck_run(&request, &summary, &err);
    }
    clear_bar(&watcher);
    for (size_t k = 0; k < n_devices; k++)
        plumb_device_close(devices[k]);
    close_fallback(&fallback);
    if (cli_helping) { /* process 0 says what was found */
        cli_baseline_free(&baseline);
        plumb_report_free(report);
        if (code)
            cli_report(&err);
        return code ? CLI_UNUSABLE : CLI_OK;
    }
    bool objected = false;
    uint64_t changed = 0;
    const bool unfinished = code || summary.stopped;
    if (*summary.result)
        print_summary(&summary, verdict, options->quiet, watcher.out);
    if (!unfinished)
        code = conclude(&baseline, &summary, &objected, &changed, &err);
    const bool errors = verdict != PLUMB_BY_EXPECTED && summary.apis[PLUMB_PRECHECK_ERROR];
    const struct check_page page = {.summary = &summary,
                                    .verdict = verdict,
                                    .failed = errors || objected,
                                    .dump = dump,
                                    .recorded = is_recorded(&options->devices),
                                    .baseline = baseline.accepted != NULL,
                                    .changed = changed};
    if (unfinished)
        plumb_report_free(report); /* half of an answer would look like one */
    else
        code = write_page(report, options, &page, code, &err);
    if (!unfinished && !code && options->format > 0)
        code = print_junit(&summary, verdict, &err);
    cli_baseline_free(&baseline);
    if (code)
        cli_report(&err);
    if (unfinished && *summary.result)
        cli_message("not finished; to continue, repeat the command with -csv_path %s",
                    summary.result);
    if (code || summary.stopped)
        return CLI_UNUSABLE;
    return errors || objected ? CLI_BAD : CLI_OK;
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

static const struct args_example examples[] = {
    {"plumb acc_check -api_info dump/step0/rank0/dump.json -o results", "check every operator"},
    {"plumb acc_check dump.json -d torch:cuda:0 --import my_ops", "check a device of PyTorch"},
    {"plumb acc_check dump.json -d recorded", "judge what a device did when the dump was made"},
    {"plumb acc_check dump.json -f -save_error_data", "each kind of call once; keep what fails"},
    {"plumb acc_check dump.json -csv_path results/accuracy_checking_result_20260101120000.csv",
     "continue after a kill"},
    {NULL, NULL},
};

#define ABOUT                                                                                      \
    "Runs every operator that a dump.json records, forward and backward, on a device and on "      \
    "plumb's float64 reference, and judges each output. Inputs come from the dump's payload "      \
    "files when it has them; otherwise they are made from the recorded ranges, the same ones "     \
    "whatever ran before, so that a run can be split, filtered and resumed.\n\n"                   \
    "Writes accuracy_checking_result_TIME.csv, one row per API, and "                              \
    "accuracy_checking_details_TIME.csv, one row per output. api_precision_compare judges the "    \
    "details of one device by those of another."

#define EXITS                                                                                      \
    "0 when no API is an error, or with --verdict expected a fault (warnings and skips "           \
    "included)\n"                                                                                  \
    "1 when an API is an error, or with --verdict expected or both a fault; with --baseline "      \
    "what is new or worse in place of faults\n"                                                    \
    "2 when the check could not be done or finished"

const struct args_command cmd_acc_check = {
    .name = "acc_check",
    .summary = "check every operator of a model against a float64 reference",
    .usage = "-api_info FILE [options]",
    .about = ABOUT,
    .sets = check_sets,
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
    .sets = multi_check_sets,
    .examples = multi_examples,
    .exits = EXITS,
    .size = sizeof(struct check_options),
    .run = run_multi_acc_check,
};
