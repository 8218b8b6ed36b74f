/* plumb report: tables that commands wrote, as one page. */
#include "cli/page.h"
#include "plumb/steps.h"

#include <stdlib.h>
#include <string.h>

struct report_options {
    struct cli_common common;
    struct args_list results;
    const char *out, *title;
    bool steps;
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A run along its steps, beside an earlier one. */
static int report_steps(const struct report_options *options)
{
    const struct args_list *paths = &options->results;
    const char *out = options->out ? options->out : "report.html";
    struct plumb_run *runs[2] = {NULL, NULL};
    struct plumb_error err = {0};
    if (paths->count > 2)
        return cli_usage(&cmd_report, "--steps takes a run, and at most one earlier one");
    struct plumb_report *report =
        page_begin("report", options->title ? options->title : "Statistics along the steps", &err);
    enum plumb_code code = report ? PLUMB_OK : PLUMB_E_NOMEM;
    for (size_t k = 0; k < paths->count && !code; k++) {
        plumb_report_fact(report, k ? "earlier run" : "run", paths->items[k]);
        code = plumb_run_open(&runs[k], paths->items[k], &err);
        if (!code)
            cli_say_warnings(runs[k]);
    }
    if (!code)
        code = plumb_steps_report(report, runs[0], runs[1], &err);
    code = page_end(report, out, false, code, &err);
    if (code)
        cli_report(&err);
    plumb_run_free(runs[1]);
    plumb_run_free(runs[0]);
    return code ? CLI_UNUSABLE : CLI_OK;
}

static int run_report(const void *context)
{
    const struct report_options *options = context;
    if (options->steps)
        return report_steps(options);
    struct plumb_error err = {0};
    const char *out = options->out ? options->out : "report.html";
    struct plumb_report *report =
        page_begin("report", options->title ? options->title : "Results", &err);
    enum plumb_code code = report ? PLUMB_OK : PLUMB_E_NOMEM;
    size_t read = 0;
    for (size_t k = 0; k < options->results.count && report; k++) {
        const char *path = options->results.items[k];
        struct plumb_table *table;
        struct plumb_error why = {0};
        if (plumb_table_read(&table, path, &why)) {
            char text[800];
            cli_report(&why);
            plumb_report_note(report, plumb_error_text(&why, text, sizeof text));
            continue;
        }
        plumb_report_fact(report, "result", path);
        plumb_report_result(report, file_name(path), table);
        plumb_table_free(table);
        read++;
    }
    if (!code && !read)
        code = plumb_fail(&err, PLUMB_E_ARG, "none of the results could be read");
    code = page_end(report, out, false, code, &err);
    if (code)
        cli_report(&err);
    return code || read < options->results.count ? CLI_UNUSABLE : CLI_OK;
}

#define FIELD(member) .offset = offsetof(struct report_options, member)

static const struct args_option arguments[] = {
    {.names = {"RESULT"},
     .kind = ARGS_PATH,
     .arity = ARGS_MANY,
     FIELD(results),
     .help = "a table that a command wrote as .csv: of compare, acc_check, api_precision_compare, "
             "jprof's tests, ...; with --steps a run, and maybe an earlier one"},
    {.names = {"--steps"},
     .kind = ARGS_FLAG,
     FIELD(steps),
     .help = "statistics of one training run along its steps: RUN [EARLIER], folders of step0, "
             "step1, ... that a capture wrote; what is not finite, and what jumps against its last "
             "steps or the earlier run"},
    {.names = {"-o", "--output"},
     .kind = ARGS_PATH,
     FIELD(out),
     .metavar = "FILE",
     .help = "the page to write (default: report.html)"},
    {.names = {"--title"},
     .kind = ARGS_TEXT,
     FIELD(title),
     .metavar = "TEXT",
     .help = "what it is called (default: Results)"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb report npu/accuracy_checking_result.csv gpu/accuracy_checking_result.csv -o both.html",
     "two devices, side by side"},
    {"plumb report --steps dump dump_last_week -o steps.html",
     "where a training run leaves its way"},
    {NULL, NULL},
};

const struct args_command cmd_report = {
    .name = "report",
    .summary = "results as a page for a browser",
    .usage = "RESULT... [-o FILE]\n--steps RUN [EARLIER] [-o FILE]",
    .about = "Writes one .html file that needs nothing else: it can be sent, and opens without a "
             "network. compare and blame write a richer one themselves (--report FILE), with the "
             "error along the network and the worst tensors.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when the page was written\n2 when a result could not be read; the page shows the "
             "others",
    .size = sizeof(struct report_options),
    .run = run_report,
};
