/* Opening a run: what kind it is, and its records for everybody. */
#define _GNU_SOURCE
#include "plumb/run.h"

#include "format/condensed.h"
#include "run/index.h"
#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && memcmp(text + length - tail, ending, tail) == 0;
}

static enum plumb_code open_any(struct plumb_run *run, bool folder, struct plumb_error *err)
{
    bool found = false;
    if (!folder && ends_with(run->path, INDEX_ENDING))
        return folder_open_index(run, err);
    enum plumb_code code =
        ends_with(run->path, CONDENSED_ENDING) ? PLUMB_OK : dumps_open(run, &found, err);
    if (!code && !found && folder)
        code = distcp_open(run, &found, err);
    if (!code && !found)
        code = folder ? folder_open(run, NULL, err) : folder_open_file(run, err);
    return code;
}

static enum plumb_code open_run(struct plumb_run **out, const char *path, const int64_t *rank,
                                const struct run_part *part, struct plumb_error *err)
{
    enum plumb_code code;
    struct stat st;
    struct plumb_run *run = calloc(1, sizeof *run);
    if (!run)
        return plumb_no_memory(err);
    run->listing.arena = &run->arena;
    run->only = rank;
    run->others = part && part->others;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    run->path = arena_copy(&run->arena, path, length);
    if (!run->path) {
        code = plumb_no_memory(err);
    } else if (part && part->none) {
        run->kind = "dump";
        code = PLUMB_OK;
    } else if (stat(path, &st) != 0) {
        code = plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
        plumb_error_in_file(err, path);
    } else {
        code = open_any(run, S_ISDIR(st.st_mode), err);
    }
    if (!code && (promise_keep(run) || spans_list(run) || !(run->holder = holder_new())))
        code = plumb_no_memory(err);
    run->only = NULL;
    if (code) {
        plumb_run_free(run);
        return code;
    }
    *out = run;
    return PLUMB_OK;
}

enum plumb_code plumb_run_open(struct plumb_run **run, const char *path, struct plumb_error *err)
{
    return open_run(run, path, NULL, NULL, err);
}

enum plumb_code plumb_run_open_rank(struct plumb_run **run, const char *path, int64_t rank,
                                    struct plumb_error *err)
{
    return open_run(run, path, &rank, NULL, err);
}

enum plumb_code run_open_part(struct plumb_run **run, const char *path, int64_t rank,
                              const struct run_part *part, struct plumb_error *err)
{
    return open_run(run, path, &rank, part, err);
}

static bool add_rank(void *context, int64_t rank, const char *json)
{
    struct plumb_ranks *ranks = context;
    size_t at = ranks->count;
    (void)json;
    while (at && ranks->list[at - 1] > rank)
        at--;
    if (at && ranks->list[at - 1] == rank)
        return true;
    int64_t *grown = realloc(ranks->list, (ranks->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    ranks->list = grown;
    memmove(grown + at + 1, grown + at, (ranks->count - at) * sizeof *grown);
    grown[at] = rank;
    ranks->count++;
    return true;
}

enum plumb_code plumb_run_ranks(struct plumb_ranks *ranks, const char *path,
                                struct plumb_error *err)
{
    return dumps_look(path, false, add_rank, ranks, err);
}

void plumb_run_free(struct plumb_run *run)
{
    if (!run)
        return;
    dumps_free(run);
    holder_free(run->holder);
    arena_free(&run->arena);
    free(run);
}

const char *run_level(const struct plumb_run *run)
{
    return run->tree_count ? run->trees[0].level : run->level;
}

size_t plumb_run_count(const struct plumb_run *run)
{
    return run->listing.count;
}

const struct plumb_record *plumb_run_record(const struct plumb_run *run, size_t index)
{
    return index < run->listing.count ? &run->listing.records[index] : NULL;
}

const char *plumb_run_path(const struct plumb_run *run)
{
    return run->path;
}

const char *plumb_run_kind(const struct plumb_run *run)
{
    return run->kind;
}

size_t plumb_run_ignored(const struct plumb_run *run)
{
    return run->ignored;
}

const char *plumb_run_warning(const struct plumb_run *run, size_t index)
{
    return index < run->warning_count ? run->warnings[index] : NULL;
}

static const struct source *source_of(const struct plumb_run *run, size_t index)
{
    size_t low = 0, high = run->source_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (run->sources[middle].first <= index)
            low = middle;
        else
            high = middle;
    }
    return &run->sources[low];
}

enum plumb_code plumb_run_load(const struct plumb_run *run, size_t index,
                               struct plumb_payload *payload, struct plumb_error *err)
{
    if (index >= run->listing.count)
        return plumb_fail(err, PLUMB_E_ARG, "there is no tensor %zu among %zu", index,
                          run->listing.count);
    if (run->load)
        return run->load(&run->listing.records[index], payload, err);
    /* No source: of a dump whose only rank cannot be read. */
    if (run->tree_count || !run->source_count)
        return dumps_load(&run->listing.records[index], payload, err);
    const struct source *source = source_of(run, index);
    return format_load(source->format, &run->listing.records[index], source->size, source->mtime_ns,
                       source->count > 1 ? run->holder : NULL, payload, err);
}
