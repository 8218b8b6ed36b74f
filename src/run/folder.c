/* A file, or a folder tree of files: what they are, and what their records are called. */
#define _GNU_SOURCE
#include "format/condensed.h"
#include "run/run.h"
#include "run/walk.h"

#include <string.h>
#include <sys/stat.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The length of path without its ending. */
static size_t stem_length(const char *path)
{
    const char *name = base_name(path);
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - path) : strlen(path);
}

/* The global rank in "globalrank-3_localrank-1.h5", or -1. */
static int64_t rank_of_name(const char *path)
{
    static const char *const parts[] = {"globalrank-", "_localrank-"};
    const char *p = base_name(path);
    int64_t ranks[2];
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(parts[i]);
        if (strncmp(p, parts[i], length) != 0)
            return -1;
        p += length;
        const char *digits = p;
        ranks[i] = 0;
        while (*p >= '0' && *p <= '9' && p - digits < 18)
            ranks[i] = ranks[i] * 10 + (*p++ - '0');
        if (p == digits)
            return -1;
    }
    return strcmp(p, ".h5") == 0 ? ranks[0] : -1;
}

/* A file that was condensed gives its records the names that the original would give them. */
static enum plumb_code be_like_the_original(struct plumb_run *run, struct source *source,
                                            struct plumb_error *err)
{
    const struct plumb_record *record = &run->listing.records[source->first];
    const char *relative = source->relative;
    if (!record->absent)
        return PLUMB_OK;
    source->format = &format_condensed;
    const struct condensed_note *note = record->detail;
    source->like = note ? format_named(note->format) : NULL;
    if (!source->like)
        source->like = &format_condensed;
    char original[4096];
    if (!relative || !condensed_original(relative, original, sizeof original))
        return PLUMB_OK;
    source->relative = arena_copy(&run->arena, original, strlen(original));
    return source->relative ? PLUMB_OK : plumb_no_memory(err);
}

/* Lists one file; source->format stays NULL when its content is unknown. */
static enum plumb_code list_file(struct plumb_run *run, struct source *source, const char *path,
                                 struct plumb_error *err)
{
    struct format_file found;
    source->first = run->listing.count;
    enum plumb_code code = format_list_file(&run->listing, path, &found, err);
    source->format = source->like = found.format;
    source->size = found.size;
    source->mtime_ns = found.mtime_ns;
    source->count = run->listing.count - source->first;
    return !code && source->count ? be_like_the_original(run, source, err) : code;
}

/* Files that do not say their rank inside may say it in their name. */
static void set_ranks(struct plumb_run *run, const struct source *source, const char *path)
{
    int64_t rank = source->like == &format_hdf5
                       ? rank_of_name(source->relative ? source->relative : path)
                       : -1;
    for (size_t i = 0; i < source->count; i++) {
        struct plumb_record *record = &run->listing.records[source->first + i];
        if (record->rank < 0)
            record->rank = rank;
    }
}

enum plumb_code folder_open_file(struct plumb_run *run, struct plumb_error *err)
{
    run->sources = arena_alloc(&run->arena, sizeof *run->sources);
    if (!run->sources)
        return plumb_no_memory(err);
    enum plumb_code code = list_file(run, run->sources, run->path, err);
    if (code)
        return code;
    run->source_count = 1;
    run->kind = run->sources->format->name;
    set_ranks(run, run->sources, run->path);
    return PLUMB_OK;
}

/* One record in place of the tensors that a file should have held. */
static enum plumb_code add_failed(struct plumb_run *run, struct source *source, const char *path,
                                  const struct plumb_error *error)
{
    run->listing.path = path;
    source->format = source->like = NULL;
    source->first = run->listing.count;
    source->count = 1;
    struct plumb_record *record =
        listing_add(&run->listing, source->relative, stem_length(source->relative));
    if (!record)
        return PLUMB_E_NOMEM;
    record->rank = rank_of_name(source->relative);
    return listing_fail(&run->listing, record, error);
}

/* Whoever was condensing it was killed before the original was removed: the original counts. */
static bool is_superseded(const char *path)
{
    struct stat st;
    char original[4096];
    if (!condensed_original(path, original, sizeof original))
        return false;
    return stat(original, &st) == 0;
}

static enum plumb_code add_entry(struct plumb_run *run, const struct walk_entry *entry,
                                 struct plumb_error *err)
{
    struct source *source = &run->sources[run->source_count];
    *source = (struct source){.relative = entry->path};
    const char *path = arena_printf(&run->arena, "%s/%s", run->path, entry->path);
    if (!path)
        return plumb_no_memory(err);

    struct plumb_error why;
    enum plumb_code code = PLUMB_OK;
    if (!entry->error && is_superseded(path))
        return PLUMB_OK;
    if (entry->error) {
        code = add_failed(run, source, path, entry->error);
    } else if ((code = list_file(run, source, path, &why))) {
        if (code == PLUMB_E_FORMAT && !source->format && !format_is_promised(path)) {
            run->ignored++;
            return PLUMB_OK;
        }
        if (code != PLUMB_E_NOMEM)
            code = add_failed(run, source, path, &why);
    } else {
        set_ranks(run, source, path);
    }
    if (code)
        return plumb_no_memory(err);
    run->source_count += source->count > 0;
    return PLUMB_OK;
}

static bool is_container(const struct source *source)
{
    return source->like && !source->like->unnamed;
}

static bool is_rank_dump(const struct source *source)
{
    return source->like == &format_hdf5 && rank_of_name(source->relative) >= 0;
}

/* Do all module dumps of ranks lie in the same folder? */
static bool ranks_share_folder(const struct plumb_run *run)
{
    const struct source *seen = NULL;
    for (size_t i = 0; i < run->source_count; i++) {
        const struct source *source = &run->sources[i];
        if (!is_rank_dump(source))
            continue;
        size_t length = (size_t)(base_name(source->relative) - source->relative);
        if (seen && ((size_t)(base_name(seen->relative) - seen->relative) != length ||
                     memcmp(seen->relative, source->relative, length) != 0))
            return false;
        seen = source;
    }
    return true;
}

/* Is this the only tensor of its file, and called like it? */
static bool is_namesake(const struct plumb_run *run, const struct source *source)
{
    const char *name = base_name(source->relative);
    size_t length = stem_length(name);
    const char *inner = run->listing.records[source->first].name;
    return source->count == 1 && strlen(inner) == length && memcmp(inner, name, length) == 0;
}

/* Puts the first length bytes of the relative path and a dot before the names of a file. */
static enum plumb_code prefix_names(struct plumb_run *run, const struct source *source,
                                    size_t length)
{
    for (size_t i = 0; length && i < source->count; i++) {
        struct plumb_record *record = &run->listing.records[source->first + i];
        record->name =
            arena_printf(&run->arena, "%.*s.%s", (int)length, source->relative, record->name);
        if (!record->name)
            return PLUMB_E_NOMEM;
    }
    return PLUMB_OK;
}

/* Gives records names that are unique in the folder, and no longer than that takes. */
static enum plumb_code name_records(struct plumb_run *run)
{
    size_t containers = 0;
    for (size_t i = 0; i < run->source_count; i++)
        containers += is_container(&run->sources[i]);
    bool one_folder = ranks_share_folder(run);

    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < run->source_count && !code; i++) {
        const struct source *source = &run->sources[i];
        const char *relative = source->relative;
        if ((source->like && source->like->unnamed) ||
            (containers > 1 && is_namesake(run, source))) {
            const char *name = arena_copy(&run->arena, relative, stem_length(relative));
            run->listing.records[source->first].name = name;
            code = name ? PLUMB_OK : PLUMB_E_NOMEM;
        } else if (is_rank_dump(source)) {
            size_t folder = (size_t)(base_name(relative) - relative);
            code = prefix_names(run, source, one_folder || !folder ? 0 : folder - 1);
        } else if (is_container(source) && (containers > 1 || source->like == &format_condensed)) {
            code = prefix_names(run, source, stem_length(relative));
        }
    }
    return code;
}

static enum plumb_code fail_nothing(const struct plumb_run *run, const struct walk *walk,
                                    struct plumb_error *err)
{
    char endings[FORMAT_ENDINGS_BYTES];
    plumb_format_endings(endings, sizeof endings);
    if (walk->count)
        plumb_fail(err, PLUMB_E_FORMAT,
                   "no tensors in this folder: none of its %zu files (the first is %s) is one that"
                   " plumb reads; it reads %s files",
                   walk->count, walk->entries[0].path, endings);
    else if (walk->links_outside)
        plumb_fail(err, PLUMB_E_FORMAT,
                   "nothing but links that lead out of this folder, which plumb does not follow;"
                   " give the folder they lead to");
    else
        plumb_fail(err, PLUMB_E_FORMAT, "the folder is empty; plumb reads folders of %s files",
                   endings);
    plumb_error_in_file(err, run->path);
    return PLUMB_E_FORMAT;
}

enum plumb_code folder_open(struct plumb_run *run, struct plumb_error *err)
{
    struct walk walk = {.is_expected = format_is_promised, .arena = &run->arena};
    run->kind = "folder";
    enum plumb_code code = walk_folder(&walk, run->path, err);
    if (code)
        return code;
    run->ignored = walk.special + walk.links_outside;
    run->sources = arena_array(&run->arena, walk.count, sizeof *run->sources);
    if (!run->sources)
        return plumb_no_memory(err);
    for (size_t i = 0; i < walk.count; i++) {
        code = add_entry(run, &walk.entries[i], err);
        if (code)
            return code;
    }
    if (!run->listing.count)
        return fail_nothing(run, &walk, err);
    return name_records(run) ? plumb_no_memory(err) : PLUMB_OK;
}
