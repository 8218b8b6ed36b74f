/* compare: which options do not go together, and which would be listened to by nobody. */
#define _GNU_SOURCE
#include "cli/compare_parts.h"
#include "cli/profiles.h"

#include <math.h>
#include <stdlib.h>

const char *const compare_verdict_words[] = {"rules", "expected", "both"};

/* Behind plumb's own columns come those of a profile. */
const struct plumb_profile *compare_columns(const struct compare_options *options)
{
    return profile_chosen(options->columns - PLUMB_COLUMNS_TORCHAIR);
}

/* What only the comparison of one step under the rules of a profile can do. */
enum plumb_code compare_check_dumps(const struct compare_options *options, struct plumb_error *err)
{
    if (profile_chosen(options->rules))
        return plumb_fail(err, PLUMB_E_ARG,
                          "--rules " PROFILE_OTHER
                          " compares one step at a time; name two step folders");
    if (compare_columns(options))
        return plumb_fail(err, PLUMB_E_ARG,
                          "--columns " PROFILE_OTHER " goes with --rules " PROFILE_OTHER
                          " on dump.json trees");
    return PLUMB_OK;
}

/* Options that would be listened to by nobody, which must not look as if they had been. */
struct idle_option {
    bool given;
    const char *name;
};

static int refuse_idle(const struct idle_option *list, size_t count, const char *where)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].given)
            return cli_usage(&cmd_compare, "%s has no effect %s", list[i].name, where);
    return CLI_OK;
}

int compare_refuse_profile(const struct compare_options *options)
{
    const struct idle_option idle[] = {
        {compare_wants_shards(options), "--shards"},
        {options->match != PLUMB_PAIR_AUTO, "--match"},
        {options->map, "--map"},
        {options->standard, "--standard"},
        {options->set.count > 0, "--set"},
        {options->metrics, "--metrics"},
        {!isnan(options->rtol), "--rtol"},
        {!isnan(options->atol), "--atol"},
        {!isnan(options->gt), "--gt"},
        {!isnan(options->max_err), "--max_err"},
        {options->equal_nan >= 0, "--equal_nan"},
    };
    return refuse_idle(idle, sizeof idle / sizeof *idle,
                       "on dump.json trees under --rules " PROFILE_OTHER);
}

int compare_refuse_graphs(const struct compare_options *options)
{
    const struct idle_option idle[] = {
        {compare_wants_shards(options), "--shards"},
        {options->match != PLUMB_PAIR_AUTO, "--match"},
        {options->fuzzy, "-fm"},
        {options->map, "--map"},
        {options->data_map, "-dm"},
        {options->cell_map, "-cm"},
    };
    const struct idle_option opinions[] = {{options->verdict != PLUMB_BY_RULES, "--verdict"}};
    const int status = refuse_idle(opinions, sizeof opinions / sizeof *opinions,
                                   "on graph dumps, which hold no calls that could be judged");
    return status ? status
                  : refuse_idle(idle, sizeof idle / sizeof *idle,
                                "on graph dumps, which pair by the graph");
}

/* Second opinions need recorded calls, a table with room for them, and to be asked for. */
int compare_check_verdict(const struct compare_options *options)
{
    const bool rules = options->verdict == PLUMB_BY_RULES;
    const struct idle_option needs[] = {{options->arithmetic, "--arithmetic"},
                                        {options->seed != ARGS_UNSET, "--seed"},
                                        {options->memory, "--memory"},
                                        {options->baseline, "--baseline"},
                                        {options->write_baseline, "--write-baseline"}};
    for (size_t i = 0; i < sizeof needs / sizeof *needs && rules; i++)
        if (needs[i].given)
            return cli_usage(&cmd_compare, "%s needs --verdict expected or both", needs[i].name);
    if (rules)
        return CLI_OK;
    if (compare_wants_shards(options))
        return cli_usage(&cmd_compare,
                         "--verdict %s computes calls of single ranks again, which "
                         "--shards puts together",
                         compare_verdict_words[options->verdict]);
    if (profile_chosen(options->rules) || compare_columns(options))
        return cli_usage(&cmd_compare, "--verdict %s has no place in the tables of " PROFILE_OTHER,
                         compare_verdict_words[options->verdict]);
    if (options->columns == PLUMB_COLUMNS_XRAY)
        return cli_usage(&cmd_compare, "--verdict %s has no place in the xray columns",
                         compare_verdict_words[options->verdict]);
    if (options->diff_analyze)
        return cli_usage(&cmd_compare, "--verdict has no effect on -da");
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
    cli_keep_memory();
    return CLI_OK;
}

/* A suite has a case for every row, and fails by what the table says. */
int compare_check_junit(const struct compare_options *options)
{
    const struct idle_option idle[] = {
        {options->only >= 0, "--only"},
        {options->view.sort, "--sort"},
        {options->view.limit != ARGS_UNSET, "--limit"},
        {options->baseline, "--baseline"},
        {options->write_baseline, "--write-baseline"},
    };
    return options->view.format == CLI_JUNIT
               ? refuse_idle(idle, sizeof idle / sizeof *idle, "on --format junit")
               : CLI_OK;
}
