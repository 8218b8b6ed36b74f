/* compare with several processes, a table for each rank: what a process does for a rank, and how
 * process 0 writes what came of it. */
#define _GNU_SOURCE
#include "cli/compare_parts.h"
#include "cli/compare_units.h"
#include "cli/notes.h"
#include "cli/progress.h"
#include "cli/result.h"
#include "plumb/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct unit_context {
    const struct compare_options *options;
    const struct sides *sides;
    struct found *found;
    struct progress progress;
    size_t count;
};

/* What one process compares while others wait for nothing: more is shared tensor by tensor. */
#define UNIT_BYTES (UINT64_C(8) << 30)

static bool is_large(struct plumb_run *const runs[2])
{
    uint64_t total = 0, bytes;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < plumb_run_count(runs[side]); i++) {
            const struct plumb_record *record = plumb_run_record(runs[side], i);
            if (!record->error && !record->absent &&
                plumb_dtype_bytes(record->dtype, record->count, &bytes))
                total = total > UINT64_MAX - bytes ? UINT64_MAX : total + bytes;
        }
    return total > UNIT_BYTES;
}

/* The table as the bytes of its file, which is written and read back. */
static enum plumb_code save_bytes(const struct plumb_table *table,
                                  const struct compare_options *options, struct arena *arena,
                                  struct unit_result *out, struct plumb_error *err)
{
    const char *base = getenv("TMPDIR");
    char *path = arena_printf(arena, "%s/plumb-rank-XXXXXX%s", base && *base ? base : "/tmp",
                              options->xlsx ? ".xlsx" : ".csv");
    const int fd = path ? mkstemps(path, options->xlsx ? 5 : 4) : -1;
    if (fd < 0)
        return path ? plumb_fail(err, PLUMB_E_IO, "cannot write to %s: %s", path, strerror(errno))
                    : plumb_no_memory(err);
    close(fd);
    struct plumb_file file = {0};
    enum plumb_code code = cli_save(table, path, &options->view, err);
    if (!code)
        code = plumb_file_map(&file, path, 0, UINT64_MAX, err);
    if (!code) {
        out->table = arena_copy(arena, (const char *)file.data, (size_t)file.size);
        out->table_size = (size_t)file.size;
        code = out->table ? PLUMB_OK : plumb_no_memory(err);
        plumb_file_unmap(&file);
    }
    unlink(path);
    return code;
}

static enum plumb_code fill_unit(struct unit_result *out, const struct compare_options *options,
                                 const struct plumb_comparison *is, struct arena *arena,
                                 struct plumb_error *err)
{
    out->unreadable = is->unreadable;
    out->bad = is->bad;
    if (is->verdict != PLUMB_BY_EXPECTED)
        out->broken = is->failed + is->unmatched + is->unreadable;
    for (int word = 0; word < PLUMB_WORDS; word++)
        out->judged += word == PLUMB_WORD_NOT_JUDGED ? 0 : is->words[word];
    out->mapping = is->mapping ? arena_copy(arena, is->mapping, strlen(is->mapping)) : NULL;
    out->closing = is->closing ? arena_copy(arena, is->closing, strlen(is->closing)) : NULL;
    if ((is->mapping && !out->mapping) || (is->closing && !out->closing))
        return plumb_no_memory(err);
    if (options->only >= 0)
        plumb_table_keep_severity(is->table,
                                  options->only == ONLY_FAIL ? PLUMB_FAILED : PLUMB_SUSPICIOUS);
    enum plumb_code code = cli_arrange(is->table, &options->view, err);
    out->rows = plumb_table_rows(is->table);
    return code ? code : save_bytes(is->table, options, arena, out, err);
}

static enum plumb_code compare_unit(void *context, const struct unit *which,
                                    struct unit_result *out, struct arena *arena,
                                    struct plumb_error *err)
{
    const struct unit_context *unit = context;
    struct sides sides = *unit->sides;
    struct plumb_run *runs[2] = {NULL, NULL};
    struct plumb_comparison comparison = {0};
    sides.unit = which;
    enum plumb_code code = compare_open(runs, &sides, &which->rank, err);
    for (int i = 0; i < 2 && !code; i++)
        cli_say_warnings(runs[i]);
    if (!code)
        code = compare_check_dumps(unit->options, err);
    out->none = !code && !plumb_run_count(runs[0]) && !plumb_run_count(runs[1]);
    out->large = !code && !which->whole && is_large(runs);
    if (!code && !out->none && !out->large) {
        code = compare_two(&comparison, unit->options, &sides, runs, &which->rank, unit->found,
                           NULL, err);
        if (!code)
            code = fill_unit(out, unit->options, &comparison, arena, err);
        plumb_comparison_free(&comparison);
    }
    plumb_run_free(runs[1]);
    plumb_run_free(runs[0]);
    return code;
}

static enum plumb_code deliver_unit(void *context, int64_t rank, const struct unit_result *result,
                                    struct plumb_error *err)
{
    const struct unit_context *unit = context;
    const struct compare_options *options = unit->options;
    char stem[64], *path = NULL;
    if (result->missing) {
        cli_message("%s", result->missing);
        crew_keep_journal(cli_crew);
        unit->found->bad++;
        unit->found->broken++;
        return PLUMB_OK;
    }
    const struct result_name name = {options->output, compare_stem(&rank, stem, sizeof stem),
                                     options->xlsx ? ".xlsx" : ".csv", false};
    enum plumb_code code = result_write(&path, &name, result->table, result->table_size, err);
    if (!code && !options->quiet)
        cli_say_rows(result->rows, path);
    if (!code)
        code =
            result_mapping(result->mapping, options->output, options->quiet ? NULL : stdout, err);
    if (!options->quiet)
        notes_close(result->closing, stdout);
    unit->found->bad += result->bad;
    unit->found->broken += result->broken;
    unit->found->judged += result->judged;
    free(path);
    return code;
}

static enum plumb_code finish_large(void *context, int64_t rank, struct plumb_error *err)
{
    const struct unit_context *unit = context;
    return compare_opened(unit->options, unit->sides, &rank, unit->found, err);
}

static void count_unit(void *context, size_t done)
{
    struct unit_context *unit = context;
    progress_update(&unit->progress, done, unit->count);
}

static struct units units_of(struct unit_context *unit, const struct seen *seen)
{
    progress_init(&unit->progress, "ranks");
    unit->progress.enabled = unit->progress.enabled && !unit->options->quiet;
    unit->count = seen ? seen->count : 0;
    return (struct units){.seen = seen,
                          .context = unit,
                          .compare = compare_unit,
                          .deliver = deliver_unit,
                          .progress = count_unit};
}

enum plumb_code compare_ranks(const struct compare_options *options, const struct sides *sides,
                              const struct seen *seen, struct found *found, struct plumb_error *err)
{
    struct unit_context unit = {.options = options, .sides = sides, .found = found};
    const struct units units = units_of(&unit, seen);
    const enum plumb_code code = units_run(cli_crew, &units, finish_large, err);
    progress_end(&unit.progress);
    return code;
}

int compare_help(const struct compare_options *options, const struct sides *sides)
{
    struct found found = {0};
    struct unit_context unit = {.options = options, .sides = sides, .found = &found};
    const struct units units = units_of(&unit, NULL);
    const struct crew_handler own = units_handler(&units);
    struct plumb_error err;
    return crew_help(cli_helping, &own, &err) ? CLI_UNUSABLE : CLI_OK;
}
