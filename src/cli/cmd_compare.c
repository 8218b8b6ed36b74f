/* compare: which kind of comparison two paths want, and where its tables go. */
#define _GNU_SOURCE
#include "base/folder.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cli/compare_parts.h"
#include "cli/diff_analyze.h"
#include "cli/digest.h"
#include "cli/general.h"
#include "cli/junit.h"
#include "cli/notes.h"
#include "cli/page.h"
#include "cli/profiles.h"
#include "cli/progress.h"
#include "cli/result.h"
#include "cli/torchair.h"
#include "plumb/shards.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const verdict_words[] = {"rules", "expected", "both"};

static int find_sides(struct sides *sides, const struct compare_options *options)
{
    size_t used = 0;
    sides->as_options = options->target && options->golden;
    sides->target = options->target ? options->target : options->words[used++];
    sides->golden = options->golden ? options->golden : options->words[used++];
    sides->result = options->words[used++];
    if (!sides->target || !sides->golden)
        return cli_usage(&cmd_compare, "%s is missing", sides->target ? "GOLDEN" : "TARGET");
    for (; used < sizeof options->words / sizeof *options->words; used++)
        if (options->words[used])
            return cli_usage(&cmd_compare, "unexpected argument '%s'", options->words[used]);
    if (options->xlsx && sides->result && !cli_ends_with(sides->result, ".xlsx"))
        return cli_usage(&cmd_compare, "--xlsx, but the result file is called '%s'", sides->result);
    if (options->output && sides->result)
        return cli_usage(&cmd_compare, "give either RESULT or --output_path, not both");
    return CLI_OK;
}

/* Behind plumb's own columns come those of a profile. */
static const struct plumb_profile *other_columns(const struct compare_options *options)
{
    return profile_chosen(options->columns - PLUMB_COLUMNS_TORCHAIR);
}

static bool goes_to_file(const struct compare_options *options, const struct sides *sides)
{
    return sides->result || options->output || options->xlsx || sides->as_options;
}

/* Who asks for certain rows, or for an order of them, gets the table. */
static bool may_digest(const struct compare_options *options)
{
    const struct cli_view *view = &options->view;
    return !options->all && options->only < 0 && !view->sort && view->limit == ARGS_UNSET &&
           view->format == PLUMB_TABLE_BOX;
}

/* Assignments for the standard: the options that are short for one, then --set in order. */
static const char **settings(const struct compare_options *options, struct arena *arena,
                             size_t *count)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"rtol", options->rtol},
                   {"atol", options->atol},
                   {"gt", options->gt},
                   {"max_abs", options->max_err},
                   {"stat_limit", options->stat_limit}};
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    const char **list = arena_array(arena, NUMBERS + 1 + options->set.count, sizeof *list);
    *count = 0;
    if (!list)
        return NULL;
    for (size_t i = 0; i < NUMBERS; i++) {
        if (isnan(numbers[i].value))
            continue;
        list[*count] = arena_printf(arena, "%s=%.17g", numbers[i].name, numbers[i].value);
        if (!list[(*count)++])
            return NULL;
    }
    if (options->equal_nan >= 0)
        list[(*count)++] = options->equal_nan ? "equal_nan=no" : "equal_nan=yes";
    for (size_t i = 0; i < options->set.count; i++)
        list[(*count)++] = options->set.items[i];
    return list;
}

static uint64_t seed_of(const struct compare_options *options)
{
    return options->seed == ARGS_UNSET ? 1234 : (uint64_t)options->seed;
}

/* Calls are looked at after the bytes, and their time begins then. */
static void judging_update(void *context, uint64_t done, uint64_t total)
{
    struct progress *judging = context;
    if (!judging->started)
        progress_restart(judging);
    progress_update(judging, done, total);
}

static bool wants_shards(const struct compare_options *options)
{
    return options->shards || options->dims.count || options->parallel.count;
}

static struct plumb_pair_options matching_of(const struct compare_options *options,
                                             const int64_t *rank)
{
    struct plumb_pair_options match = {.mode = (enum plumb_pair_mode)options->match,
                                       .map_file = options->map,
                                       .data_map = options->data_map,
                                       .cell_map = options->cell_map,
                                       .api_map = options->api_map,
                                       .layer_map = options->layer_map,
                                       .rank = rank};
    if (options->fuzzy && match.mode == PLUMB_PAIR_AUTO)
        match.mode = PLUMB_PAIR_FUZZY;
    return match;
}

/* rank NULL: all of them. */
enum plumb_code compare_two(struct plumb_comparison *comparison,
                            const struct compare_options *options, const struct sides *sides,
                            struct plumb_run *const runs[2], const int64_t *rank,
                            const struct found *found, struct plumb_report *report,
                            struct plumb_error *err)
{
    struct arena arena = {0};
    struct progress progress, judging;
    size_t count;
    enum plumb_code code;
    const char **list = settings(options, &arena, &count);
    if (!list) {
        code = plumb_no_memory(err);
        goto out;
    }
    struct plumb_compare_options all = {
        .match = matching_of(options, rank),
        .columns =
            other_columns(options) ? PLUMB_COLUMNS_AUTO : (enum plumb_columns)options->columns,
        .standard = options->standard,
        .settings = list,
        .settings_count = count,
        .metrics = options->metrics,
        .modules = options->view.format == PLUMB_TABLE_JSON || options->view.format == CLI_JUNIT ||
                   (may_digest(options) && !goes_to_file(options, sides) && isatty(STDOUT_FILENO)),
        .wide = options->view.wide,
        .reasons = goes_to_file(options, sides) || options->view.format != PLUMB_TABLE_BOX,
        .threads = cli_threads(&options->view.common),
        .crew = sides->unit || wants_shards(options) ? NULL : cli_crew,
        .progress = progress_update,
        .progress_context = &progress,
        .verdict = (enum plumb_deciding)options->verdict,
        .arithmetic = options->arithmetic,
        .seed = seed_of(options),
        .found = found->baseline.found,
        .judging = judging_update,
        .judging_context = &judging,
        .report = report,
    };
    if (options->memory && !memory_parse(options->memory, &all.memory)) {
        code = plumb_fail(err, PLUMB_E_ARG, "--memory takes a size such as 512M or 16G, not '%s'",
                          options->memory);
        goto out;
    }
    progress_init(&progress, NULL);
    progress.enabled = progress.enabled && !options->quiet && !sides->unit;
    judging = (struct progress){.unit = "calls", .enabled = progress.enabled};
    code = plumb_compare(comparison, runs[0], runs[1], &all, err);
    progress_end(&progress);
    progress_end(&judging);
out:
    arena_free(&arena);
    return code;
}

/* A file of a rank has it in its name. */
const char *compare_stem(const int64_t *rank, char *stem, size_t size)
{
    snprintf(stem, size, "compare_result");
    if (rank && *rank >= 0)
        snprintf(stem, size, "compare_result_rank%" PRId64, *rank);
    return stem;
}

static enum plumb_code save(char **path, const struct plumb_table *table,
                            const struct compare_options *options, const int64_t *rank,
                            struct plumb_error *err)
{
    char stem[64];
    const struct result_name name = {options->output, compare_stem(rank, stem, sizeof stem),
                                     options->xlsx ? ".xlsx" : ".csv", false};
    return result_save(path, &name, table, &options->view, err);
}

static enum plumb_code deliver(const struct plumb_comparison *comparison,
                               const struct compare_options *options, const struct sides *sides,
                               const int64_t *rank, struct plumb_error *err)
{
    const struct cli_view *view = &options->view;
    bool to_file = goes_to_file(options, sides);
    bool digest = !to_file && !options->quiet && may_digest(options) && digest_suits(comparison);
    const bool junit = !to_file && !options->quiet && view->format == CLI_JUNIT;
    char *made = NULL;
    enum plumb_code code = junit ? junit_comparison(comparison, err) : PLUMB_OK;
    if (code)
        return code;
    if (options->only >= 0)
        plumb_table_keep_severity(comparison->table,
                                  options->only == ONLY_FAIL ? PLUMB_FAILED : PLUMB_SUSPICIOUS);
    code = cli_arrange(comparison->table, view, err);
    if (code)
        return code;
    if (to_file) {
        struct waiting *waiting = options->quiet ? NULL : waiting_begin("writing the table");
        code = sides->result ? cli_save(comparison->table, sides->result, view, err)
                             : save(&made, comparison->table, options, rank, err);
        waiting_end(waiting);
        if (!code && !options->quiet)
            cli_say_written(comparison->table, made ? made : sides->result);
    } else if (!options->quiet && !junit) {
        code = digest         ? digest_show(comparison, view, err)
               : options->all ? cli_show(comparison->table, view, err)
                              : digest_show_table(comparison, view, err);
    }
    /* People's lines do not go into a stream that a program reads. */
    bool to_stderr = !to_file && cli_is_machine_format(view->format);
    if (!code)
        code = result_mapping(comparison->mapping, options->output,
                              options->quiet ? NULL
                              : to_stderr    ? stderr
                                             : stdout,
                              err);
    if (!options->quiet && !digest) /* what was found counts, wherever the table went */
        notes_close(comparison->closing, to_stderr ? stderr : stdout);
    free(made);
    return code;
}

/* Dump trees under the rules of a profile. */
static int compare_general(const struct compare_options *options, const struct sides *sides,
                           const struct plumb_general_places *places)
{
    struct general_request request = {
        .view = &options->view,
        .target = sides->target,
        .golden = sides->golden,
        .result = sides->result,
        .folder = options->output,
        .page = options->report,
        .to_file = goes_to_file(options, sides),
        .xlsx = options->xlsx,
        .quiet = options->quiet,
        .options = {.fuzzy = options->fuzzy,
                    .cell_map = options->cell_map,
                    .data_map = options->data_map,
                    .layer_map = options->layer_map,
                    .api_map = options->api_map},
    };
    return general_run(places, &request);
}

static enum plumb_code begin_report(struct plumb_report **report, const struct sides *sides,
                                    struct plumb_error *err)
{
    *report = page_begin("compare", "Comparison of two runs", err);
    if (!*report)
        return PLUMB_E_NOMEM;
    plumb_report_fact(*report, "target", sides->target);
    plumb_report_fact(*report, "golden", sides->golden);
    return PLUMB_OK;
}

/* Compares one rank, or all, and shows or writes the table. */
static enum plumb_code compare_rank(const struct compare_options *options,
                                    const struct sides *sides, struct plumb_run *const runs[2],
                                    const int64_t *rank, struct found *found,
                                    struct plumb_error *err)
{
    struct plumb_comparison comparison = {0};
    struct plumb_report *report = NULL;
    enum plumb_code code = options->report ? begin_report(&report, sides, err) : PLUMB_OK;
    if (!code)
        code = compare_two(&comparison, options, sides, runs, rank, found, report, err);
    if (code)
        return page_end(report, options->report, true, code, err);
    if (!comparison.compared && !comparison.unmatched && !comparison.unreadable)
        code = plumb_fail(err, PLUMB_E_ARG, "there is no tensor on either side");
    if (!code && report)
        plumb_comparison_report(report, &comparison);
    code = page_end(report, options->report, options->quiet, code, err);
    if (!code)
        code = deliver(&comparison, options, sides, rank, err);
    found->bad += comparison.bad;
    if (comparison.verdict != PLUMB_BY_EXPECTED)
        found->broken += comparison.failed + comparison.unmatched + comparison.unreadable;
    for (int word = 0; word < PLUMB_WORDS; word++)
        found->judged += word == PLUMB_WORD_NOT_JUDGED ? 0 : comparison.words[word];
    plumb_comparison_free(&comparison);
    return code;
}

struct opening {
    const char *path[2];
    const int64_t *rank; /* NULL: all */
    struct plumb_run **runs;
    struct plumb_error err[2];
    enum plumb_code code[2];
};

static void open_one(void *context, size_t i, unsigned thread)
{
    struct opening *opening = context;
    (void)thread;
    opening->code[i] = opening->rank
                           ? plumb_run_open_rank(&opening->runs[i], opening->path[i],
                                                 *opening->rank, &opening->err[i])
                           : plumb_run_open(&opening->runs[i], opening->path[i], &opening->err[i]);
}

/* Read in less time than it takes to start a thread. */
static bool is_small_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < 64 * 1024;
}

/* Both at once: a dump.json of many megabytes takes its time. */
enum plumb_code compare_open(struct plumb_run *runs[2], const struct sides *sides,
                             const int64_t *rank, struct plumb_error *err)
{
    struct opening opening = {.path = {sides->target, sides->golden}, .rank = rank, .runs = runs};
    const bool small = is_small_file(sides->target) && is_small_file(sides->golden);
    pool_run(small ? 1 : 2, 2, open_one, &opening);
    for (int i = 0; i < 2; i++)
        if (opening.code[i]) {
            *err = opening.err[i];
            return opening.code[i];
        }
    return PLUMB_OK;
}

/* What only the comparison of one step under the rules of a profile can do. */
enum plumb_code compare_check_dumps(const struct compare_options *options, struct plumb_error *err)
{
    if (profile_chosen(options->rules))
        return plumb_fail(err, PLUMB_E_ARG,
                          "--rules " PROFILE_OTHER
                          " compares one step at a time; name two step folders");
    if (other_columns(options))
        return plumb_fail(err, PLUMB_E_ARG,
                          "--columns " PROFILE_OTHER " goes with --rules " PROFILE_OTHER
                          " on dump.json trees");
    return PLUMB_OK;
}

/* Both runs without their ranks. */
static enum plumb_code compare_shards(const struct compare_options *options,
                                      const struct sides *sides, struct plumb_run *const runs[2],
                                      struct found *found, struct plumb_error *err)
{
    struct plumb_run *joined[2] = {NULL, NULL};
    struct progress progress;
    const char *file = options->shards;
    const struct plumb_shards_options how = {
        .dims = options->dims.items,
        .dims_count = options->dims.count,
        .file = file && *file && strcmp(file, "infer") != 0 ? file : NULL,
        .parallel = options->parallel.items,
        .parallel_count = options->parallel.count,
        .match = matching_of(options, NULL),
        .threads = cli_threads(&options->view.common),
        .progress = progress_update,
        .progress_context = &progress,
    };
    progress_init(&progress, "tensors");
    progress.enabled = progress.enabled && !options->quiet;
    enum plumb_code code = plumb_shards_join(joined, runs[0], runs[1], &how, err);
    progress_end(&progress);
    if (!code)
        code = compare_rank(options, sides, joined, NULL, found, err);
    plumb_run_free(joined[1]);
    plumb_run_free(joined[0]);
    return code;
}

/* Opens both runs, of one rank or of all (NULL), and compares them. Of a rank that neither side has
 * a tensor of there is no table. */
enum plumb_code compare_opened(const struct compare_options *options, const struct sides *sides,
                               const int64_t *rank, struct found *found, struct plumb_error *err)
{
    struct plumb_run *runs[2] = {NULL, NULL};
    enum plumb_code code = compare_open(runs, sides, rank, err);
    for (int i = 0; i < 2 && !code; i++)
        cli_say_warnings(runs[i]);
    if (!code && strcmp(plumb_run_kind(runs[0]), "dump") == 0 &&
        strcmp(plumb_run_kind(runs[1]), "dump") == 0)
        code = compare_check_dumps(options, err);
    if (!code && wants_shards(options))
        code = compare_shards(options, sides, runs, found, err);
    else if (!code && !(rank && !plumb_run_count(runs[0]) && !plumb_run_count(runs[1])))
        code = compare_rank(options, sides, runs, rank, found, err);
    plumb_run_free(runs[1]);
    plumb_run_free(runs[0]);
    return code;
}

/* The ranks of both sides, where both are dumps and files get their names from plumb: a table for
 * each then. */
static enum plumb_code find_ranks(struct plumb_ranks *ranks, const struct compare_options *options,
                                  const struct sides *sides, struct plumb_error *err)
{
    if (!goes_to_file(options, sides) || sides->result || options->report || wants_shards(options))
        return PLUMB_OK;
    struct plumb_ranks golden = {0};
    enum plumb_code code = plumb_run_ranks(&golden, sides->golden, err);
    if (!code && golden.count)
        code = plumb_run_ranks(ranks, sides->target, err);
    if (!code && ranks->count)
        code = plumb_run_ranks(ranks, sides->golden, err);
    free(golden.list);
    return code;
}

/* Compares both runs: in one table, or in one for each rank. */
static enum plumb_code compare_runs(const struct compare_options *options,
                                    const struct sides *sides, struct found *found,
                                    struct plumb_error *err)
{
    struct plumb_ranks ranks = {0};
    enum plumb_code code = find_ranks(&ranks, options, sides, err);
    if (!code && ranks.count < 2) {
        code = compare_opened(options, sides, NULL, found, err);
    } else if (!code && cli_crew && !found->baseline.found &&
               !crew_places_of(cli_crew)->given) { /* a map is for files, not for listings */
        code = compare_ranks(options, sides, &ranks, found, err);
    } else {
        for (size_t i = 0; i < ranks.count && !code; i++)
            code = compare_opened(options, sides, &ranks.list[i], found, err);
    }
    free(ranks.list);
    return code;
}

/* The first node that differs, across ranks. */
static int analyze_differences(const struct compare_options *options, const struct sides *sides)
{
    if (sides->result)
        return cli_usage(&cmd_compare,
                         "-da writes files of its own: give a folder with -o, not '%s'",
                         sides->result);
    if (options->report)
        return cli_usage(&cmd_compare, "--report has no effect on -da");
    if (wants_shards(options))
        return cli_usage(&cmd_compare, "--shards has no effect on -da");
    struct diff_request request = {
        .target = sides->target,
        .golden = sides->golden,
        .folder = options->output,
        .rules = profile_chosen(options->rules),
        .quiet = options->quiet,
        .pairing = {.fuzzy = options->fuzzy,
                    .cell_map = options->cell_map,
                    .data_map = options->data_map,
                    .layer_map = options->layer_map,
                    .api_map = options->api_map},
    };
    return diff_analyze_run(&request);
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

static int refuse_for_profile(const struct compare_options *options)
{
    const struct idle_option idle[] = {
        {wants_shards(options), "--shards"},
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

static int refuse_for_graphs(const struct compare_options *options)
{
    const struct idle_option idle[] = {
        {wants_shards(options), "--shards"},
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

/* Dumps of compiled graphs. */
static int compare_torchair(const struct compare_options *options, const struct sides *sides)
{
    static const enum plumb_severity least[] = {
        [ONLY_FAIL] = PLUMB_FAILED, [ONLY_SUSPICIOUS] = PLUMB_SUSPICIOUS};
    struct arena arena = {0};
    struct torchair_request request = {
        .view = &options->view,
        .target = sides->target,
        .golden = sides->golden,
        .result = sides->result,
        .folder = options->output,
        .page = options->report,
        .to_file = goes_to_file(options, sides),
        .xlsx = options->xlsx,
        .quiet = options->quiet,
        .digest = may_digest(options),
        .all = options->all,
        .only = options->only < 0 ? -1 : (int)least[options->only],
        .options = {.rules = profile_chosen(options->rules),
                    .columns = other_columns(options),
                    .standard = options->standard,
                    .metrics = options->metrics,
                    .wide = options->view.wide},
    };
    int status = CLI_UNUSABLE;
    request.options.settings = settings(options, &arena, &request.options.settings_count);
    if (request.options.settings)
        status = torchair_run(&request);
    else
        cli_message("out of memory");
    arena_free(&arena);
    return status;
}

/* Is it for the room of graph dumps? Two FX dumps are plain folders, too, and stay so when options
 * say how to pair them. */
static bool are_graph_dumps(const struct compare_options *options, const struct sides *sides)
{
    if (options->mode == MODE_TORCHAIR || plumb_torchair_recognise(sides->target))
        return true;
    bool paired = options->match != PLUMB_PAIR_AUTO || options->fuzzy || options->map ||
                  options->data_map || options->cell_map;
    return !paired && plumb_torchair_recognise_fx(sides->target) &&
           (plumb_torchair_recognise_fx(sides->golden) || plumb_torchair_recognise(sides->golden));
}

/* Second opinions need recorded calls, a table with room for them, and to be asked for. */
static int check_verdict(const struct compare_options *options)
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
    if (wants_shards(options))
        return cli_usage(&cmd_compare,
                         "--verdict %s computes calls of single ranks again, which "
                         "--shards puts together",
                         verdict_words[options->verdict]);
    if (profile_chosen(options->rules) || other_columns(options))
        return cli_usage(&cmd_compare, "--verdict %s has no place in the tables of " PROFILE_OTHER,
                         verdict_words[options->verdict]);
    if (options->columns == PLUMB_COLUMNS_XRAY)
        return cli_usage(&cmd_compare, "--verdict %s has no place in the xray columns",
                         verdict_words[options->verdict]);
    if (options->diff_analyze)
        return cli_usage(&cmd_compare, "--verdict has no effect on -da");
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* or it starts threads that wait in a loop */
    cli_keep_memory();
    return CLI_OK;
}

/* Counts what is new or worse, and says so where people look. */
static enum plumb_code ask_accepted(const struct cli_baseline *baseline,
                                    const struct compare_options *options, uint64_t *changed,
                                    struct plumb_error *err)
{
    enum { CHANGES_SHOWN = 20 }; /* of a kind */
    struct plumb_baseline_diff *diff = NULL;
    enum plumb_code code = plumb_baseline_compare(baseline->accepted, baseline->found, &diff, err);
    if (code)
        return code;
    *changed = diff->count[PLUMB_STANDING_NEW] + diff->count[PLUMB_STANDING_WORSE];
    char *text = plumb_baseline_diff_text(diff, CHANGES_SHOWN);
    plumb_baseline_diff_free(diff);
    if (text && !options->quiet)
        notes_close(text, cli_is_machine_format(options->view.format) ? stderr : stdout);
    code = text ? PLUMB_OK : plumb_no_memory(err);
    free(text);
    return code;
}

/* With a baseline, what is new or worse fails in place of faults. */
static enum plumb_code ask_baseline(struct found *found, const struct compare_options *options,
                                    struct plumb_error *err)
{
    uint64_t changed = 0;
    if (!found->baseline.found)
        return PLUMB_OK;
    enum plumb_code code = found->baseline.accepted
                               ? ask_accepted(&found->baseline, options, &changed, err)
                               : PLUMB_OK;
    found->bad = found->broken + changed;
    return code ? code : cli_baseline_write(&found->baseline, err);
}

/* Who asked for second opinions and got none must not take that for success. */
static int status_of(const struct compare_options *options, const struct found *found)
{
    if (options->verdict == PLUMB_BY_RULES || found->judged)
        return found->bad ? CLI_BAD : CLI_OK;
    cli_message(
        "no result could be judged: --verdict %s takes dumps of tensors (dump.json, level L1 "
        "or mix), whose calls can be computed again",
        verdict_words[options->verdict]);
    return CLI_UNUSABLE;
}

static enum plumb_code compare_judged(const struct compare_options *options,
                                      const struct sides *sides, struct found *found,
                                      struct plumb_error *err)
{
    const struct plumb_baseline_options judged = {.seed = seed_of(options),
                                                  .arithmetic = options->arithmetic};
    enum plumb_code code = cli_baseline_begin(&found->baseline, &judged, err);
    if (!code)
        code = compare_runs(options, sides, found, err);
    return code || !found->judged ? code : ask_baseline(found, options, err);
}

/* A suite has a case for every row, and fails by what the table says. */
static int check_junit(const struct compare_options *options)
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

static int run_compare(const void *context)
{
    const struct compare_options *options = context;
    struct plumb_error err;
    struct sides sides = {0};
    struct found found = {
        .baseline = {.read_path = options->baseline, .write_path = options->write_baseline}};
    int status = find_sides(&sides, options);
    if (!status)
        status = check_verdict(options);
    if (!status)
        status = check_junit(options);
    if (status)
        return status;
    if (cli_helping)
        return compare_help(options, &sides);
    if (options->diff_analyze)
        return analyze_differences(options, &sides);
    status = CLI_UNUSABLE;
    enum plumb_code code = sides.result ? cli_check_ending(sides.result, &err) : PLUMB_OK;
    if (!code && options->output)
        code = folder_make(options->output, &err);
    if (!code && are_graph_dumps(options, &sides)) {
        int refused = refuse_for_graphs(options);
        return refused ? refused : compare_torchair(options, &sides);
    }
    if (!code && profile_chosen(options->rules)) {
        struct plumb_general_places places;
        code = plumb_general_find(&places, sides.target, sides.golden, &err);
        if (!code) {
            status = refuse_for_profile(options);
            if (!status)
                status = compare_general(options, &sides, &places);
            plumb_general_places_free(&places);
            return status;
        }
        if (code == PLUMB_E_UNSUPPORTED) /* no dump trees: not a matter of these rules */
            code = PLUMB_OK;
    }
    if (!code)
        code = compare_judged(options, &sides, &found, &err);
    if (code)
        cli_report(&err);
    else
        status = status_of(options, &found);
    cli_baseline_free(&found.baseline);
    return status;
}

const struct args_command cmd_compare = {
    .name = "compare",
    .summary = "show where two runs stop agreeing",
    .usage = "TARGET GOLDEN [RESULT] [options]\n-tp TARGET -gp GOLDEN [-o DIR] [options]",
    .about =
        "Pairs the tensors of two runs by name, compares each pair, judges it, and shows one "
        "row per pair. Tensors without a partner are listed at the end. A terminal gets a digest "
        "of 40 rows and more: counts, the first failure, the worst rows, kinds of trouble.",
    .sets = compare_sets,
    .examples = compare_examples,
    .exits =
        "0 when everything passes; with --verdict expected when no judged call is a fault\n"
        "1 when something fails, has no partner, or cannot be read; with --verdict expected or "
        "both when a call is a fault\n"
        "2 when the input or the command line is unusable, or no call could be judged that "
        "should have been",
    .size = sizeof(struct compare_options),
    .run = run_compare,
};
