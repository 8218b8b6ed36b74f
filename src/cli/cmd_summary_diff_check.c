/* plumb summary_diff_check: the unit tests of two devices side by side. */
#include "base/utf8.h"
#include "cli/cli.h"
#include "plumb/unittest.h"

#include <string.h>

struct diff_check_options {
    struct cli_view view;
    const char *first, *second, *out;
    double allowance;
    int verdict;
};

/* What people look at first: everything up to the two largest errors, and opinions. */
enum { NARROW_COLUMNS = 9, MAX_COLUMNS = 32 };

static bool is_opinion(const struct plumb_column *column)
{
    return cli_ends_with(column->title, "_Verdict") || cli_ends_with(column->title, "_Why");
}

static struct plumb_table *cut_columns(const struct plumb_table *table)
{
    struct plumb_column columns[MAX_COLUMNS];
    size_t from[MAX_COLUMNS], n = 0;
    for (size_t i = 0; i < plumb_table_columns(table) && n < MAX_COLUMNS; i++)
        if (i < NARROW_COLUMNS || is_opinion(plumb_table_column(table, i))) {
            columns[n] = *plumb_table_column(table, i);
            from[n++] = i;
        }
    struct plumb_table *out = plumb_table_new(columns, n);
    bool fine = out != NULL;
    for (size_t row = 0; fine && row < plumb_table_rows(table); row++) {
        fine = plumb_table_add_row(out, plumb_table_severity(table, row));
        for (size_t i = 0; fine && i < n; i++) {
            const struct plumb_cell *cell = plumb_table_cell(table, row, from[i]);
            if (cell->type == PLUMB_CELL_TEXT)
                fine = plumb_table_text(out, i, cell->as.text);
            else if (cell->type == PLUMB_CELL_REAL)
                plumb_table_real(out, i, cell->as.real);
            else if (cell->type == PLUMB_CELL_INT)
                plumb_table_int(out, i, cell->as.integer);
        }
    }
    if (fine)
        return out;
    plumb_table_free(out);
    return NULL;
}

static enum plumb_code show(const struct plumb_table *table, const struct cli_view *view,
                            struct plumb_error *err)
{
    if (view->wide || view->format != PLUMB_TABLE_BOX)
        return cli_show(table, view, err);
    struct plumb_table *narrow = cut_columns(table);
    enum plumb_code code = narrow ? cli_show(narrow, view, err) : plumb_no_memory(err);
    plumb_table_free(narrow);
    return code;
}

static void say_result(const struct plumb_unittest_diff *diff, FILE *out)
{
    size_t joined = diff->passed + diff->failed + diff->skipped + diff->other_inputs;
    fprintf(out, "%zu test%s of both files: %zu pass, %zu fail", joined, joined == 1 ? "" : "s",
            diff->passed, diff->failed);
    if (diff->skipped)
        fprintf(out, ", %zu skipped", diff->skipped);
    if (diff->other_inputs)
        fprintf(out, ", %zu not judged: they ran on different inputs", diff->other_inputs);
    for (size_t side = 0; side < 2; side++) {
        size_t count = side ? diff->second_only : diff->first_only;
        if (count)
            fprintf(out, "; %zu only in %s", count, diff->names[side]);
    }
    fputs("\n", out);
    if (diff->judged[0])
        fprintf(out, "by what right arithmetic shows, %s has %zu fault%s, and %zu not judged\n",
                diff->names[0], diff->faults, diff->faults == 1 ? "" : "s", diff->unjudged);
    for (size_t side = 0; side < 2; side++)
        if (diff->broken[side])
            fprintf(out,
                    "%zu of those that fail failed their own test on %s, or have errors that "
                    "are not finite\n",
                    diff->broken[side], diff->names[side]);
    if (diff->other_inputs)
        fputs(
            "The same inputs come from tests made with jprof --cpu_init, or kept tensors, and one "
            "--seed\n",
            out);
    const bool *without = diff->without_inputs;
    if (without[0] && without[1])
        fputs("Neither file says which inputs its tests had: joined by name alone\n", out);
    else if (without[0] || without[1])
        fprintf(out, "%s does not say which inputs its tests had: joined by name alone\n",
                diff->names[without[0] ? 0 : 1]);
}

/* "00004-aten, aten.add.Tensor", before the rows are sorted and cut; "" when none failed. */
static void find_first(const struct plumb_unittest_diff *diff, char *text, size_t size)
{
    *text = '\0';
    for (size_t row = 0; row < plumb_table_rows(diff->table) && !*text; row++)
        if (plumb_table_severity(diff->table, row) == PLUMB_FAILED)
            snprintf(text, size, "%s, %s", plumb_table_cell(diff->table, row, 0)->as.text,
                     plumb_table_cell(diff->table, row, 1)->as.text);
    utf8_clean(text);
}

static int run_diff_check(const void *context)
{
    const struct diff_check_options *options = context;
    struct plumb_unittest_diff diff = {0};
    struct plumb_error err;
    FILE *people = cli_is_machine_format(options->view.format) ? stderr : stdout;
    int status = CLI_UNUSABLE;
    char first[256] = "";
    enum plumb_code code = options->out ? cli_check_ending(options->out, &err) : PLUMB_OK;
    if (!code)
        code = plumb_unittest_compare(&diff, options->first, options->second,
                                      options->allowance / 100, &err);
    if (!code && options->verdict != PLUMB_BY_RULES && !diff.judged[0])
        code = plumb_fail(&err, PLUMB_E_ARG,
                          "%s has no column Verdict; pytest --verdict=expected writes it",
                          options->first);
    if (!code)
        find_first(&diff, first, sizeof first);
    if (!code)
        code = cli_arrange(diff.table, &options->view, &err);
    if (!code && options->out)
        code = cli_save(diff.table, options->out, &options->view, &err);
    if (!code)
        code = show(diff.table, &options->view, &err);
    if (code) {
        cli_report(&err);
        goto out;
    }
    say_result(&diff, people);
    if (*first)
        fprintf(people, "first to fail: %s\n", first);
    if (options->out)
        fprintf(people, "%zu rows written to %s\n", plumb_table_rows(diff.table), options->out);
    bool good = !diff.other_inputs && !diff.first_only && !diff.second_only;
    if (options->verdict != PLUMB_BY_EXPECTED)
        good = good && !diff.failed;
    if (options->verdict != PLUMB_BY_RULES)
        good = good && !diff.faults;
    status = good ? CLI_OK : CLI_BAD;
out:
    plumb_unittest_diff_free(&diff);
    return status;
}

#define FIELD(member) .offset = offsetof(struct diff_check_options, member)

static const struct args_option arguments[] = {
    {.names = {"FIRST"},
     .kind = ARGS_PATH,
     FIELD(first),
     .help = "CSV file of the device in question: xpu.csv"},
    {.names = {"SECOND"},
     .kind = ARGS_PATH,
     FIELD(second),
     .help = "CSV file of the device that is trusted: gpu.csv"},
    {.names = {"RESULT"},
     .kind = ARGS_PATH,
     .arity = ARGS_MAYBE,
     FIELD(out),
     .help = "file to write to: .csv .xlsx .json .md .txt"},
    {.names = {"--allowance"},
     .kind = ARGS_REAL,
     FIELD(allowance),
     .metavar = "PERCENT",
     .initial = "0.1",
     .min = 0,
     .max = 100,
     .help = "how many more elements FIRST may have above a power of ten"},
    {.names = {"--verdict"},
     .kind = ARGS_CHOICE,
     FIELD(verdict),
     .choices = "rules|expected|both",
     .initial = "rules",
     .help = "what decides: these counts, or the column Verdict of FIRST, or both"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {{"Arguments", arguments},
                                       {"Output", cli_view_options},
                                       {"Common options", cli_common_options},
                                       {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb summary_diff_check ./xpu.csv ./gpu.csv ./result.csv",
     "two devices, operator by operator"},
    {"plumb summary_diff_check xpu.csv gpu.csv --allowance 0 --wide",
     "not one element more; all counts"},
    {NULL, NULL},
};

const struct args_command cmd_summary_diff_check = {
    .name = "summary_diff_check",
    .summary = "compare the unit test results of two devices",
    .usage = "FIRST SECOND [RESULT] [options]",
    .about =
        "Joins two files that the tests of plumb jprof wrote on two devices (pytest "
        "--detail_compare_path) by the name of the test. Beside the largest error on each device "
        "stands, for 1e-1 to 1e-7, how many elements have an error above it. A test passes when "
        "above no power of ten the first device has more elements than the second, except for the "
        "allowance, a share of all elements of the result. Powers below the error that the type "
        "has by itself do not count: 1e-6 of the output's range for float32, 1e-3 for float16, "
        "1e-2 for bfloat16. A test fails when it failed on its own device, when its error is not "
        "finite, and when operator, type or shape are not the same. Tests that ran on different "
        "inputs "
        "on the two devices are not judged.\n\n"
        "The columns are named after the files when those have two different plain words as names "
        "(xpu.csv and gpu.csv: xpu_max, gpu_max), else xpu and gpu. Tests of only one file come "
        "last. Where tests were asked for a verdict (pytest --verdict=expected), verdicts and "
        "reasons are "
        "the "
        "last columns. The counts are in the result file, and on the screen with --wide.",
    .sets = sets,
    .examples = examples,
    .exits =
        "0 when every test passes\n1 when one fails, ran on different inputs, or is in one file "
        "only\n2 when a file or "
        "the command line is unusable",
    .size = sizeof(struct diff_check_options),
    .run = run_diff_check,
};
