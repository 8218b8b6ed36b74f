/* numeric_check: a graph before and after a compiler pass, run and compared. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/opinion_options.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "plumb/passcheck.h"

#include <string.h>

struct numeric_options {
    struct cli_view view;
    const char *before, *after;
    int64_t iterations, seed;
    double precision;
    bool no_optimizer, follow, all, quiet;
    const char *compare, *device, *output, *arithmetic, *report;
    int verdict;
};

/* "output,gradient" as bits; 0 after a message. */
static unsigned parse_kinds(const char *text)
{
    static const struct {
        const char *word;
        enum plumb_passcheck_kind kind;
    } words[] = {{"parameter", PLUMB_PASSCHECK_PARAMETER},
                 {"output", PLUMB_PASSCHECK_OUTPUT},
                 {"gradient", PLUMB_PASSCHECK_GRADIENT},
                 {"step", PLUMB_PASSCHECK_STEP}};
    const size_t n = sizeof words / sizeof *words;
    unsigned kinds = 0;
    for (const char *s = text;; s++) {
        const size_t length = strcspn(s, ",");
        size_t k = 0;
        while (k < n && (strlen(words[k].word) != length || memcmp(words[k].word, s, length) != 0))
            k++;
        if (k == n) {
            cli_usage(&cmd_numeric_check,
                      "--compare takes parameter, output, gradient and step, not '%.*s'",
                      (int)length, s);
            return 0;
        }
        kinds |= words[k].kind;
        s += length;
        if (*s != ',')
            return kinds;
    }
}

static enum plumb_code open_device(const char *name, struct plumb_device **out,
                                   struct plumb_error *err)
{
    *out = NULL;
    return strcmp(name, "reference") == 0 ? PLUMB_OK : plumb_device_open(name, out, err);
}

/* The first iteration that shows a difference says most; of equal ones the last. */
static enum plumb_code show(const struct plumb_passcheck *check,
                            const struct numeric_options *options, struct plumb_error *err)
{
    const int64_t one = check->first_iteration >= 0 ? check->first_iteration
                        : options->verdict > 0      ? 0
                                                    : options->iterations - 1;
    struct plumb_table *table =
        plumb_passcheck_table(check, options->all ? -1 : one, options->view.wide);
    if (!table)
        return plumb_no_memory(err);
    enum plumb_code code = cli_arrange(table, &options->view, err);
    if (!code)
        code = cli_show(table, &options->view, err);
    if (!code)
        fputs(check->closing, cli_is_machine_format(options->view.format) ? stderr : stdout);
    plumb_table_free(table);
    return code;
}

static enum plumb_code save(const struct plumb_passcheck *check,
                            const struct numeric_options *options, struct plumb_error *err)
{
    struct plumb_table *table = plumb_passcheck_table(check, -1, true);
    if (!table)
        return plumb_no_memory(err);
    enum plumb_code code = cli_save(table, options->output, &options->view, err);
    if (!code && !options->quiet)
        fprintf(cli_is_machine_format(options->view.format) ? stderr : stdout,
                "%zu rows written to %s\n", plumb_table_rows(table), options->output);
    plumb_table_free(table);
    return code;
}

/* "2 of 14 comparisons fail"; of what was not judged nothing is said. */
static void put_sentence(char *text, size_t size, const struct plumb_passcheck *check,
                         enum plumb_deciding verdict)
{
    size_t judged = 0, used = 0;
    const size_t faults = check->words[PLUMB_WORD_FAULT];
    for (int word = 0; word < PLUMB_WORDS; word++)
        judged += word == PLUMB_WORD_NOT_JUDGED ? 0 : check->words[word];
    *text = '\0';
    if (verdict != PLUMB_BY_EXPECTED)
        used = (size_t)snprintf(text, size, "%zu of %zu comparisons %s.%s", check->failed,
                                check->compared, check->failed == 1 ? "fails" : "fail",
                                verdict == PLUMB_BY_RULES ? "" : " ");
    if (verdict != PLUMB_BY_RULES && judged)
        snprintf(text + used, size - used, "%zu of %zu judged tensors %s wrong.", faults, judged,
                 faults == 1 ? "is" : "are");
    else if (verdict != PLUMB_BY_RULES)
        snprintf(text + used, size - used, "No tensor could be judged.");
}

static void tell_counts(struct plumb_report *report, const struct plumb_passcheck *check,
                        enum plumb_deciding verdict)
{
    if (verdict != PLUMB_BY_EXPECTED) {
        plumb_report_count(report, "failed", check->failed, PLUMB_MOOD_BAD);
        plumb_report_count(report, "passed", check->compared - check->failed, PLUMB_MOOD_GOOD);
    }
    for (int word = 0; word < PLUMB_WORDS; word++)
        if (check->words[word])
            plumb_report_count(report, plumb_word_text((enum plumb_word)word), check->words[word],
                               page_mood((enum plumb_word)word));
}

static enum plumb_code write_page(const struct plumb_passcheck *check,
                                  const struct numeric_options *options,
                                  struct plumb_report *report, struct plumb_error *err)
{
    const enum plumb_deciding verdict =
        options->verdict > 0 ? (enum plumb_deciding)options->verdict : PLUMB_BY_RULES;
    char sentence[256];
    struct page_found found = {0};
    struct plumb_table *table = plumb_passcheck_table(check, -1, true);
    enum plumb_code code =
        table ? page_table(report, "tensors", table, verdict, &found, err) : plumb_no_memory(err);
    plumb_table_free(table);
    put_sentence(sentence, sizeof sentence, check, verdict);
    plumb_report_answer(report, &(struct plumb_report_answer){
                                    .mood = check->bad                       ? PLUMB_MOOD_BAD
                                            : found.mood <= PLUMB_MOOD_DOUBT ? PLUMB_MOOD_DOUBT
                                                                             : PLUMB_MOOD_GOOD,
                                    .sentence = sentence,
                                    .where = check->first_node && verdict == PLUMB_BY_RULES
                                                 ? check->first_node
                                                 : found.where,
                                    .row = found.row,
                                    .sure = ""});
    tell_counts(report, check, verdict);
    page_unseen(report, "not judged", &found);
    plumb_report_fact(report, "before", options->before);
    plumb_report_fact(report, "after", options->after);
    plumb_report_fact(report, "device", options->device);
    return page_end(report, options->report, options->quiet, code, err);
}

static int run_numeric_check(const void *context)
{
    const struct numeric_options *options = context;
    struct plumb_passcheck_options how;
    struct plumb_passcheck check = {0};
    struct plumb_passcheck_graph *before = NULL, *after = NULL;
    struct plumb_report *report = NULL;
    struct plumb_error err = {0};
    struct progress progress;
    plumb_passcheck_options_init(&how);
    how.progress = progress_update;
    how.progress_context = &progress;
    how.iterations = (unsigned)options->iterations;
    how.precision = options->precision;
    how.seed = (uint64_t)options->seed;
    how.kinds = parse_kinds(options->compare);
    if (!how.kinds)
        return CLI_UNUSABLE;
    how.verdict = options->verdict > 0 ? (enum plumb_deciding)options->verdict : PLUMB_BY_RULES;
    how.arithmetic = options->arithmetic;
    if (how.arithmetic && how.verdict == PLUMB_BY_RULES)
        return cli_usage(&cmd_numeric_check, "--arithmetic needs --verdict expected or both");
    if (options->no_optimizer)
        how.kinds &= ~(unsigned)PLUMB_PASSCHECK_STEP;
    if (options->follow)
        how.kinds |= PLUMB_PASSCHECK_NODE;

    enum plumb_code code = options->output ? cli_check_ending(options->output, &err) : PLUMB_OK;
    if (!code && options->report) {
        report = page_begin("numeric_check", "A graph before and after a pass", &err);
        code = report ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    if (!code)
        code = open_device(options->device, &how.device, &err);
    if (!code)
        code = plumb_passcheck_graph_open(&before, options->before, &err);
    if (!code)
        code = plumb_passcheck_graph_open(&after, options->after, &err);
    progress_init(&progress, "iterations");
    progress.enabled = progress.enabled && !options->quiet;
    if (!code)
        code = plumb_passcheck_run(before, after, &how, &check, &err);
    progress_end(&progress);
    if (!code && !options->quiet)
        code = show(&check, options, &err);
    if (!code && options->output)
        code = save(&check, options, &err);
    if (code)
        plumb_report_free(report);
    else if (report)
        code = write_page(&check, options, report, &err);
    if (code)
        cli_report(&err);
    const bool different = check.bad;
    plumb_passcheck_destroy(&check);
    plumb_passcheck_graph_free(after);
    plumb_passcheck_graph_free(before);
    plumb_device_close(how.device);
    return code ? CLI_UNUSABLE : different ? CLI_BAD : CLI_OK;
}

#define FIELD(member) .offset = offsetof(struct numeric_options, member)

static const struct args_option arguments[] = {
    {.names = {"BEFORE"},
     .kind = ARGS_PATH,
     FIELD(before),
     .help = "the graph before the transformation, a JSON file"},
    {.names = {"AFTER"}, .kind = ARGS_PATH, FIELD(after), .help = "the graph after it"},
    {.names = {"--iterations", "--num_iterations"},
     .kind = ARGS_INT,
     FIELD(iterations),
     .metavar = "N",
     .min = 1,
     .max = 1000000,
     .initial = "10",
     .help = "how often to run both"},
    {.names = {"--precision"},
     .kind = ARGS_REAL,
     FIELD(precision),
     .metavar = "X",
     .min = 0,
     .max = 1e30,
     .initial = "1e-4",
     .help = "rtol and atol of the comparison"},
    {.names = {"--no-optimizer"},
     .kind = ARGS_FLAG,
     FIELD(no_optimizer),
     .help = "no step of SGD between iterations"},
    {.names = {"--compare"},
     .kind = ARGS_TEXT,
     FIELD(compare),
     .metavar = "LIST",
     .initial = "parameter,output,gradient,step",
     .help = "what to compare, separated by commas"},
    {.names = {"--follow"},
     .kind = ARGS_FLAG,
     FIELD(follow),
     .help = "compare nodes of the same name too; name the first that differs"},
    {.names = {"--verdict"},
     .kind = ARGS_CHOICE,
     FIELD(verdict),
     .choices = "rules|expected|both",
     .help = "what decides: the comparison with --precision (default), or how the results compare "
             "with what right arithmetic shows, judged in one iteration, or both; with the last "
             "two the tables have columns Verdict and Why"},
    CLI_ARITHMETIC_OPTION(FIELD(arithmetic)),
    {.names = {"--device"},
     .kind = ARGS_TEXT,
     FIELD(device),
     .metavar = "NAME",
     .initial = "cpu",
     .help = "cpu (in the types of the graph), reference (float64), or torch:..."},
    {.names = {"--seed"},
     .kind = ARGS_INT,
     FIELD(seed),
     .metavar = "N",
     .min = 0,
     .max = 9007199254740992.0,
     .initial = "1337",
     .help = "seed of generated tensors and random operators"},
    {.names = {"--all"},
     .kind = ARGS_FLAG,
     FIELD(all),
     .help = "print every iteration, not only the first that differs, or the last"},
    {.names = {"-o", "--output"},
     .kind = ARGS_PATH,
     FIELD(output),
     .metavar = "FILE",
     .help = "all rows with every metric: .csv .json .md .xlsx .txt"},
    PAGE_OPTION(FIELD(report)),
    {.names = {"--quiet"},
     .kind = ARGS_FLAG,
     FIELD(quiet),
     .help = "print nothing but what is wrong"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {{"Arguments", arguments},
                                       {"The table", cli_view_options},
                                       {"Common options", cli_common_options},
                                       {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb numeric_check before.json after.json", "did the pass change the numbers?"},
    {"plumb numeric_check before.json after.json --follow", "and at which node first?"},
    {"plumb numeric_check before.json after.json --device reference --precision 1e-9",
     "is it right except for rounding?"},
    {"plumb numeric_check before.json after.json --verdict expected --follow",
     "the same in the types of the graph, with the reason and the faulty node"},
    {NULL, NULL},
};

const struct args_command cmd_numeric_check = {
    .name = "numeric_check",
    .summary = "check that a graph transformation kept the numbers",
    .usage = "BEFORE AFTER [options]",
    .about =
        "Runs a graph as it was before and after a compiler pass, forward and backward, with a "
        "step of SGD after each iteration, and compares parameters, outputs, gradients and the "
        "parameters after the step, name by name. Equal is allclose with rtol and atol of "
        "--precision; two NaNs are equal.\n\n"
        "Graphs are JSON files of plumb's operators; PyTorch is not needed to run them. "
        "plumb.export_graph() of the Python package writes them from torch.fx graphs. A weight "
        "that only one side has is a difference; a pass that folds weights is checked with "
        "--compare output.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when everything is equal, or with --verdict expected no result is a fault\n"
             "1 when something differs, or with --verdict expected or both something is a fault or "
             "nothing could be judged\n"
             "2 when a graph or the command line is unusable",
    .size = sizeof(struct numeric_options),
    .run = run_numeric_check,
};
