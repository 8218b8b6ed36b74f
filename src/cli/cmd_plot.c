/* plumb plot: the error along the network, or of one tensor, as a drawing. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/number.h"
#include "base/output.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "plumb/compare.h"
#include "plumb/plot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plot_options {
    struct cli_common common;
    const char *target, *golden, *out, *tensor, *axes, *title;
    int verdict;
};

/* ---- The network ----------------------------------------------------------------------------- */

static enum plumb_code draw_network(const struct plot_options *options,
                                    struct plumb_run *const runs[2], char **svg,
                                    struct plumb_error *err)
{
    struct plumb_comparison comparison = {0};
    struct progress progress;
    struct plumb_report *report = plumb_report_new("plot", "");
    const struct plumb_compare_options how = {
        .verdict = (enum plumb_deciding)options->verdict,
        .seed = 1234,
        .threads = cli_threads(&options->common),
        .progress = progress_update,
        .progress_context = &progress,
        .report = report,
    };
    if (!report)
        return plumb_no_memory(err);
    progress_init(&progress, NULL);
    enum plumb_code code = plumb_compare(&comparison, runs[0], runs[1], &how, err);
    progress_end(&progress);
    size_t count;
    const struct plumb_report_call *calls = plumb_report_calls(report, &count);
    if (!code && !comparison.compared)
        code = plumb_fail(err, PLUMB_E_ARG, "there is nothing that both runs have");
    if (!code) {
        struct buf below = {0};
        const char *counts = comparison.counts ? comparison.counts : "";
        buf_printf(&below, "%s beside %s. %.*s", options->target, options->golden,
                   (int)strcspn(counts, "\n"), counts);
        *svg = plumb_plot_network(options->title ? options->title : "Error along the network",
                                  below.data ? below.data : "", calls, count);
        buf_free(&below);
        code = *svg ? PLUMB_OK : plumb_no_memory(err);
    }
    plumb_comparison_free(&comparison);
    plumb_report_free(report);
    return code;
}

/* ---- A tensor -------------------------------------------------------------------------------- */

static enum plumb_code find_record(const struct plumb_run *run, const char *name, const char *path,
                                   size_t *found, struct plumb_error *err)
{
    for (size_t k = 0; k < plumb_run_count(run); k++)
        if (strcmp(plumb_run_record(run, k)->name, name) == 0) {
            *found = k;
            return PLUMB_OK;
        }
    return plumb_fail(err, PLUMB_E_ARG, "%s has no tensor '%s'; plumb info lists them", path, name);
}

/* "0,1", and nothing else. */
static bool two_numbers(const char *text, long *first, long *second)
{
    char *end, *last;
    *first = strtol(text, &end, 10);
    if (end == text || *end++ != ',')
        return false;
    *second = strtol(end, &last, 10);
    return last != end && !*last;
}

/* The map over the axes that were asked for, or the first. */
static const struct plumb_error_map *choose_map(const struct plumb_detail *detail, const char *axes,
                                                struct plumb_error *err)
{
    long down, across;
    if (!axes)
        return detail->n_maps ? &detail->maps[0] : NULL;
    if (!two_numbers(axes, &down, &across)) {
        plumb_fail(err, PLUMB_E_ARG, "--axes takes two numbers such as 0,1, not '%s'", axes);
        return NULL;
    }
    for (size_t k = 0; k < detail->n_maps; k++)
        if (detail->maps[k].axes[0] == down && detail->maps[k].axes[1] == across)
            return &detail->maps[k];
    plumb_fail(err, PLUMB_E_ARG, "there is no map over axes %ld and %ld of a tensor of rank %u",
               down, across, detail->rank);
    return NULL;
}

/* "largest error 0.5 at [1, 2]: 3 in place of 2.5". */
static void put_worst(struct buf *out, const struct plumb_detail *detail)
{
    char number[NUMBER_BYTES];
    int64_t place[PLUMB_MAX_RANK + 1];
    if (!detail->n_worst) {
        buf_text(out, "no error");
        return;
    }
    const struct plumb_worst_element *worst = &detail->worst[0];
    plumb_detail_place(detail, worst->index, place);
    buf_printf(out, "largest error %s at [", number_brief(worst->error, 4, number));
    for (unsigned k = 0; k < detail->rank; k++)
        buf_printf(out, "%s%" PRId64, k ? ", " : "", place[k]);
    buf_printf(out, "]: %s", number_brief(worst->target, 6, number));
    buf_printf(out, " in place of %s", number_brief(worst->golden, 6, number));
}

static enum plumb_code draw_detail(const struct plot_options *options,
                                   const struct plumb_detail *detail, char **svg,
                                   struct plumb_error *err)
{
    struct buf below = {0};
    plumb_fail(err, PLUMB_E_ARG, "there is nothing to draw of a tensor without elements");
    const struct plumb_error_map *map = choose_map(detail, options->axes, err);
    if (!map)
        return PLUMB_E_ARG;
    put_worst(&below, detail);
    *svg = plumb_plot_errors(options->title ? options->title : options->tensor,
                             below.data ? below.data : "", map);
    buf_free(&below);
    return *svg ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code draw_tensor(const struct plot_options *options,
                                   struct plumb_run *const runs[2], char **svg,
                                   struct plumb_error *err)
{
    const char *const paths[] = {options->target, options->golden};
    struct plumb_payload payload[2] = {0};
    struct plumb_file_guard guard[2];
    struct plumb_detail detail = {0};
    enum plumb_code code = PLUMB_OK;
    for (int side = 0; side < 2 && !code; side++) {
        size_t record = 0;
        code = find_record(runs[side], options->tensor, paths[side], &record, err);
        if (!code)
            code = plumb_run_load(runs[side], record, &payload[side], err);
    }
    if (!code) {
        plumb_file_guard_enter(&guard[0], &payload[0].file);
        plumb_file_guard_enter(&guard[1], &payload[1].file);
        code = plumb_detail_measure(&detail, &payload[0].tensor, &payload[1].tensor, err);
        if (plumb_file_guard_leave(&guard[1]) | plumb_file_guard_leave(&guard[0]) && !code)
            code = plumb_fail(err, PLUMB_E_IO, "a file was cut short while it was read");
        if (!code)
            code = draw_detail(options, &detail, svg, err);
        plumb_detail_free(&detail);
    }
    plumb_payload_release(&payload[0]);
    plumb_payload_release(&payload[1]);
    return code;
}

/* ---- A page ---------------------------------------------------------------------------------- */

static enum plumb_code draw_page(const struct plot_options *options, char **svg,
                                 struct plumb_error *err)
{
    struct plumb_pictured page;
    struct buf below = {0};
    enum plumb_code code = plumb_pictured_read(&page, options->target, err);
    const struct plumb_detail *detail = NULL;
    for (size_t k = 0; k < page.n_tensors && options->tensor && !detail; k++)
        detail =
            strcmp(page.tensors[k].name, options->tensor) == 0 ? &page.tensors[k].detail : NULL;
    if (!code && options->tensor && !detail)
        code =
            plumb_fail(err, PLUMB_E_ARG,
                       "the page has no tensor '%s'; of those that it has (%zu) the first is '%s'",
                       options->tensor, page.n_tensors, page.n_tensors ? page.tensors[0].name : "");
    else if (!code && !options->tensor && !page.n_calls)
        code = plumb_fail(err, PLUMB_E_ARG,
                          "the page has no calls to draw; those of compare and blame have");
    else if (!code && detail)
        code = draw_detail(options, detail, svg, err);
    else if (!code) {
        buf_printf(&below, "%s: %s", page.title, page.sentence);
        *svg = plumb_plot_network(options->title ? options->title : "Error along the network",
                                  below.data ? below.data : "", page.calls, page.n_calls);
        code = *svg ? PLUMB_OK : plumb_no_memory(err);
    }
    buf_free(&below);
    plumb_pictured_free(&page);
    return code;
}

static enum plumb_code draw_runs(const struct plot_options *options, char **svg,
                                 struct plumb_error *err)
{
    struct plumb_run *runs[2] = {NULL, NULL};
    enum plumb_code code = plumb_run_open(&runs[0], options->target, err);
    if (!code)
        code = plumb_run_open(&runs[1], options->golden, err);
    for (int side = 0; side < 2 && !code; side++)
        cli_say_warnings(runs[side]);
    if (!code)
        code = options->tensor ? draw_tensor(options, runs, svg, err)
                               : draw_network(options, runs, svg, err);
    plumb_run_free(runs[1]);
    plumb_run_free(runs[0]);
    return code;
}

static int run_plot(const void *context)
{
    const struct plot_options *options = context;
    const char *out = options->out ? options->out : "plot.svg";
    struct plumb_error err = {0};
    char *svg = NULL;
    if (options->axes && !options->tensor)
        return cli_usage(&cmd_plot, "--axes needs --tensor");
    if (options->verdict > 0 && options->tensor)
        return cli_usage(&cmd_plot, "--verdict has no effect on --tensor");
    if (!options->golden && !cli_ends_with(options->target, ".html"))
        return cli_usage(&cmd_plot,
                         "GOLDEN is missing; of one file only a page that --report wrote "
                         "(.html) can be drawn");
    if (!options->golden && options->verdict > 0)
        return cli_usage(&cmd_plot, "--verdict has no effect on a page, which has its verdicts");
    if (!cli_ends_with(out, ".svg"))
        return cli_usage(&cmd_plot, "drawings are .svg files, not '%s'", out);
    if (options->verdict > 0) {
        setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
        cli_keep_memory();
    }
    enum plumb_code code =
        options->golden ? draw_runs(options, &svg, &err) : draw_page(options, &svg, &err);
    if (!code)
        code = output_whole(out, svg, strlen(svg), false, &err);
    if (code)
        cli_report(&err);
    else
        fprintf(stderr, "drawing: %s\n", out);
    free(svg);
    return code ? CLI_UNUSABLE : CLI_OK;
}

#define FIELD(member) .offset = offsetof(struct plot_options, member)

static const struct args_option arguments[] = {
    {.names = {"TARGET"},
     .kind = ARGS_PATH,
     FIELD(target),
     .help = "the run to look at; or, without GOLDEN, a page that --report wrote (.html)"},
    {.names = {"GOLDEN"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(golden),
     .help = "the run that is right"},
    {.names = {"-o", "--output"},
     .kind = ARGS_PATH,
     FIELD(out),
     .metavar = "FILE",
     .help = "the drawing to write, FILE.svg (default: plot.svg)"},
    {.names = {"--tensor"},
     .kind = ARGS_TEXT,
     FIELD(tensor),
     .metavar = "NAME",
     .help =
         "the errors of this tensor over two of its axes; both runs, or the page, must have one of "
         "that name, and of several the first is taken"},
    {.names = {"--axes"},
     .kind = ARGS_TEXT,
     FIELD(axes),
     .metavar = "I,J",
     .help = "which axes, down and across (default: the last two)"},
    {.names = {"--verdict"},
     .kind = ARGS_CHOICE,
     FIELD(verdict),
     .choices = "rules|expected|both",
     .initial = "rules",
     .help = "what marks a call as bad, as in compare"},
    {.names = {"--title"},
     .kind = ARGS_TEXT,
     FIELD(title),
     .metavar = "TEXT",
     .help = "the line over the drawing"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {
    {"Arguments", arguments}, {"Common options", cli_common_options}, {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb plot dump_npu dump_gpu -o network.svg", "how the error grows from call to call"},
    {"plumb plot a.safetensors b.safetensors --tensor fc.weight -o fc.svg",
     "where in a tensor the errors are"},
    {"plumb plot report.html -o network.svg", "what a report has, without its runs"},
    {NULL, NULL},
};

const struct args_command cmd_plot = {
    .name = "plot",
    .summary = "the error along a network, or of a tensor, as an SVG file",
    .usage = "TARGET GOLDEN [-o FILE.svg] [options]\nREPORT.html [-o FILE.svg] [options]",
    .about =
        "Draws the relative distance of each call's results from the golden run, in the order "
        "of execution and on a logarithmic scale. What rounding explains is shaded; calls that "
        "are bad or in doubt are marked, the first bad ones with their names. The drawing "
        "reads on white and on dark pages and in print.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when the drawing was written, whatever it shows\n2 when the input or the command "
             "line is unusable",
    .size = sizeof(struct plot_options),
    .run = run_plot,
};
