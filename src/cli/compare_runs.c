/* compare: two runs opened and compared, whole or rank by rank, and their tables shown or
 * written. */
#define _GNU_SOURCE
#include "base/arena.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cli/compare_parts.h"
#include "cli/compare_units.h"
#include "cli/digest.h"
#include "cli/junit.h"
#include "cli/notes.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "cli/result.h"
#include "plumb/shards.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool compare_to_file(const struct compare_options *options, const struct sides *sides)
{
    return sides->result || options->output || options->xlsx || sides->as_options;
}

bool compare_may_digest(const struct compare_options *options)
{
    const struct cli_view *view = &options->view;
    return !options->all && options->only < 0 && !view->sort && view->limit == ARGS_UNSET &&
           view->format == PLUMB_TABLE_BOX;
}

/* Assignments for the standard: the options that are short for one, then --set in order. */
const char **compare_settings(const struct compare_options *options, struct arena *arena,
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

uint64_t compare_seed(const struct compare_options *options)
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

bool compare_wants_shards(const struct compare_options *options)
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

enum plumb_code compare_with(compare_fn *compare, void *context,
                             struct plumb_comparison *comparison,
                             const struct compare_options *options, const struct sides *sides,
                             const int64_t *rank, const struct found *found,
                             struct plumb_report *report, struct plumb_error *err)
{
    struct arena arena = {0};
    struct progress progress, judging;
    size_t count;
    enum plumb_code code;
    const char **list = compare_settings(options, &arena, &count);
    if (!list) {
        code = plumb_no_memory(err);
        goto out;
    }
    struct plumb_compare_options all = {
        .match = matching_of(options, rank),
        .columns =
            compare_columns(options) ? PLUMB_COLUMNS_AUTO : (enum plumb_columns)options->columns,
        .standard = options->standard,
        .settings = list,
        .settings_count = count,
        .metrics = options->metrics,
        .modules = options->view.format == PLUMB_TABLE_JSON || options->view.format == CLI_JUNIT ||
                   (compare_may_digest(options) && !compare_to_file(options, sides) &&
                    isatty(STDOUT_FILENO)),
        .wide = options->view.wide,
        .reasons = compare_to_file(options, sides) || options->view.format != PLUMB_TABLE_BOX,
        .threads = cli_threads(&options->view.common),
        .crew = sides->unit || compare_wants_shards(options) ? NULL : cli_crew,
        .progress = progress_update,
        .progress_context = &progress,
        .verdict = (enum plumb_deciding)options->verdict,
        .arithmetic = options->arithmetic,
        .seed = compare_seed(options),
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
    code = compare(context, comparison, &all, err);
    progress_end(&progress);
    progress_end(&judging);
out:
    arena_free(&arena);
    return code;
}

static enum plumb_code compare_pair(void *context, struct plumb_comparison *comparison,
                                    struct plumb_compare_options *options, struct plumb_error *err)
{
    struct plumb_run *const *runs = context;
    return plumb_compare(comparison, runs[0], runs[1], options, err);
}

enum plumb_code compare_two(struct plumb_comparison *comparison,
                            const struct compare_options *options, const struct sides *sides,
                            struct plumb_run *const runs[2], const int64_t *rank,
                            const struct found *found, struct plumb_report *report,
                            struct plumb_error *err)
{
    return compare_with(compare_pair, (void *)(uintptr_t)runs, comparison, options, sides, rank,
                        found, report, err);
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
    bool to_file = compare_to_file(options, sides);
    bool digest =
        !to_file && !options->quiet && compare_may_digest(options) && digest_suits(comparison);
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
    const struct unit *unit; /* or NULL */
    const int64_t *rank;     /* NULL: all */
    struct plumb_run **runs;
    struct plumb_error err[2];
    enum plumb_code code[2];
};

static void open_one(void *context, size_t i, unsigned thread)
{
    struct opening *opening = context;
    (void)thread;
    opening->code[i] =
        opening->unit   ? run_open_part(&opening->runs[i], opening->path[i], *opening->rank,
                                        &opening->unit->side[i], &opening->err[i])
        : opening->rank ? plumb_run_open_rank(&opening->runs[i], opening->path[i], *opening->rank,
                                              &opening->err[i])
                        : plumb_run_open(&opening->runs[i], opening->path[i], &opening->err[i]);
}

/* Read in less time than it takes to start a thread; but for HDF5 a program is started. */
static bool is_small_file(const char *path)
{
    struct stat st;
    char head[4] = "";
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size >= 64 * 1024)
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool known = fd >= 0 && read(fd, head, sizeof head) == (ssize_t)sizeof head;
    if (fd >= 0)
        close(fd);
    return !known || memcmp(head, "\x89HDF", sizeof head) != 0;
}

/* Both at once: a dump.json of many megabytes takes its time. */
enum plumb_code compare_open(struct plumb_run *runs[2], const struct sides *sides,
                             const int64_t *rank, struct plumb_error *err)
{
    struct opening opening = {
        .path = {sides->target, sides->golden}, .unit = sides->unit, .rank = rank, .runs = runs};
    const bool small = is_small_file(sides->target) && is_small_file(sides->golden);
    pool_run(small ? 1 : 2, 2, open_one, &opening);
    for (int i = 0; i < 2; i++)
        if (opening.code[i]) {
            *err = opening.err[i];
            return opening.code[i];
        }
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
    if (!code && compare_wants_shards(options))
        code = compare_shards(options, sides, runs, found, err);
    else if (!code && !(rank && !plumb_run_count(runs[0]) && !plumb_run_count(runs[1])))
        code = compare_rank(options, sides, runs, rank, found, err);
    plumb_run_free(runs[1]);
    plumb_run_free(runs[0]);
    return code;
}

/* Whether files get their names from plumb: of dumps there is a table for each rank then. */
static bool goes_by_rank(const struct compare_options *options, const struct sides *sides)
{
    return compare_to_file(options, sides) && !sides->result && !options->report &&
           !compare_wants_shards(options);
}

/* The ranks of both sides, where both are dumps. */
static enum plumb_code find_ranks(struct plumb_ranks *ranks, const struct sides *sides,
                                  struct plumb_error *err)
{
    struct plumb_ranks golden = {0};
    enum plumb_code code = plumb_run_ranks(&golden, sides->golden, err);
    if (!code && golden.count)
        code = plumb_run_ranks(ranks, sides->target, err);
    if (!code && ranks->count)
        code = plumb_run_ranks(ranks, sides->golden, err);
    free(golden.list);
    return code;
}

static enum plumb_code compare_here(const struct compare_options *options,
                                    const struct sides *sides, struct found *found,
                                    struct plumb_error *err)
{
    struct plumb_ranks ranks = {0};
    bool done = false;
    enum plumb_code code = goes_by_rank(options, sides)
                               ? find_ranks(&ranks, sides, err)
                               : compare_stream(options, sides, found, &done, err);
    if (code || done) {
        free(ranks.list);
        return code;
    }
    if (ranks.count < 2)
        code = compare_opened(options, sides, NULL, found, err);
    else
        for (size_t i = 0; i < ranks.count && !code; i++)
            code = compare_opened(options, sides, &ranks.list[i], found, err);
    free(ranks.list);
    return code;
}

/* Compares both runs: in one table, or in one for each rank. With several processes the ranks may
 * be on several hosts; a map is for files, and not for listings. */
enum plumb_code compare_runs(const struct compare_options *options, const struct sides *sides,
                             struct found *found, struct plumb_error *err)
{
    const char *const paths[] = {sides->target, sides->golden};
    struct seen seen = {0};
    if (!cli_crew)
        return compare_here(options, sides, found, err);
    enum plumb_code code = seen_look(&seen, cli_crew, paths, 2, err);
    if (!code && goes_by_rank(options, sides) && !found->baseline.found &&
        !crew_places_of(cli_crew)->given && seen.count > 1 && seen_ranks(&seen, 0) &&
        seen_ranks(&seen, 1)) {
        code = compare_ranks(options, sides, &seen, found, err);
    } else {
        if (!code)
            code = seen_here(&seen, err);
        if (!code)
            code = compare_here(options, sides, found, err);
    }
    seen_free(&seen);
    return code;
}
