/* compare: two dumps of many ranks in one table, with the memory of one rank. */
#define _GNU_SOURCE
#include "cli/compare_parts.h"
#include "cli/notes.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "task/compare/by_rank.h"

#include <stdlib.h>

struct stream {
    const struct compare_options *options;
    const struct sides *sides;
    struct rows rows;
    struct buf warnings[2]; /* lines, of both sides */
    struct progress progress;
    bool done;
};

static bool suits(struct rows *rows, const struct compare_options *options,
                  const struct sides *sides)
{
    struct plumb_error none;
    const bool named = compare_to_file(options, sides) && !sides->result;
    return !named && !compare_check_dumps(options, &none) && !options->report &&
           !compare_wants_shards(options) &&
           rows_begin(rows, sides->result, options->quiet, &options->view);
}

static enum plumb_code take_rows(void *context, struct plumb_table *rows, struct plumb_error *err)
{
    struct stream *stream = context;
    const int only = stream->options->only;
    if (only >= 0)
        plumb_table_keep_severity(rows, only == ONLY_FAIL ? PLUMB_FAILED : PLUMB_SUSPICIOUS);
    return rows_add(&stream->rows, rows, err);
}

static void take_warnings(void *context, const struct plumb_run *run, int side)
{
    struct stream *stream = context;
    const char *text;
    for (size_t i = 0; (text = plumb_run_warning(run, i)); i++)
        buf_printf(&stream->warnings[side], "warning: %s\n", text);
}

static void count_ranks(void *context, uint64_t done, uint64_t total)
{
    struct stream *stream = context;
    progress_update(&stream->progress, done, total);
}

static enum plumb_code compare_all(void *context, struct plumb_comparison *comparison,
                                   struct plumb_compare_options *options, struct plumb_error *err)
{
    struct stream *stream = context;
    const struct by_rank what = {.target = stream->sides->target,
                                 .golden = stream->sides->golden,
                                 .options = options,
                                 .rows = take_rows,
                                 .opened = take_warnings,
                                 .progress = count_ranks,
                                 .context = stream};
    progress_init(&stream->progress, "ranks");
    stream->progress.enabled = stream->progress.enabled && !stream->options->quiet;
    options->progress = NULL;
    const enum plumb_code code = compare_by_rank(comparison, &what, &stream->done, err);
    progress_end(&stream->progress);
    return code;
}

static void say_warnings(const struct stream *stream)
{
    for (int side = 0; side < 2; side++)
        notes_say(stream->warnings[side].data);
}

/* People's lines do not go into a stream that a program reads. */
static void tell(const struct stream *stream, size_t rows, const struct plumb_comparison *is)
{
    const struct compare_options *options = stream->options;
    const char *result = stream->sides->result;
    if (options->quiet)
        return;
    if (result)
        cli_say_rows(rows, result);
    notes_close(is->closing,
                !result && cli_is_machine_format(options->view.format) ? stderr : stdout);
}

enum plumb_code compare_stream(const struct compare_options *options, const struct sides *sides,
                               struct found *found, bool *done, struct plumb_error *err)
{
    struct stream stream = {.options = options, .sides = sides};
    struct plumb_comparison comparison = {0};
    *done = false;
    if (!suits(&stream.rows, options, sides))
        return PLUMB_OK;
    enum plumb_code code =
        compare_with(compare_all, &stream, &comparison, options, sides, NULL, found, NULL, err);
    const size_t rows = stream.rows.parts.rows;
    const bool keep = !code && stream.done;
    if (keep)
        say_warnings(&stream);
    const enum plumb_code ended = rows_end(&stream.rows, keep, err);
    /* It failed at once, or in a temporary file: whoever looks at all says more, or needs none. */
    if (code && (!rows || !sides->result))
        code = PLUMB_OK;
    code = code ? code : ended;
    *done = keep && !code;
    if (*done) {
        tell(&stream, rows, &comparison);
        found->bad += comparison.bad;
        found->broken += comparison.failed + comparison.unmatched + comparison.unreadable;
    }
    plumb_comparison_free(&comparison);
    buf_free(&stream.warnings[0]);
    buf_free(&stream.warnings[1]);
    return code;
}
