/* A file, or a folder tree of files: what they are, and what their records are called. */
#define _GNU_SOURCE
#include "run/folder.h"
#include "format/condensed.h"
#include "run/index.h"
#include "run/run.h"
#include "run/walk.h"

#include <string.h>
#include <sys/stat.h>

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
    int64_t rank =
        source->like == &format_hdf5 ? folder_rank(source->relative ? source->relative : path) : -1;
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
        listing_add(&run->listing, source->relative, folder_stem(source->relative));
    if (!record)
        return PLUMB_E_NOMEM;
    record->rank = folder_rank(source->relative);
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

/* Lists a file of a folder as the next source; *why is what is wrong with it, or has code 0. */
static enum plumb_code list_entry(struct plumb_run *run, struct source *source,
                                  const struct walk_entry *entry, const char *path,
                                  struct plumb_error *why)
{
    *source = (struct source){.relative = entry->path, .first = run->listing.count};
    *why = (struct plumb_error){0};
    if (entry->error)
        *why = *entry->error;
    else
        why->code = list_file(run, source, path, why);
    return why->code == PLUMB_E_NOMEM ? PLUMB_E_NOMEM : PLUMB_OK;
}

/* A file that plumb does not read, and that does not have to be one. */
static bool is_other(const struct source *source, const char *path, const struct plumb_error *why)
{
    return why->code == PLUMB_E_FORMAT && !source->format && !format_is_promised(path);
}

/* The name that an entry has, or had before it was condensed. */
static const char *own_name(struct plumb_run *run, const struct walk_entry *entry)
{
    char original[4096];
    if (!condensed_original(entry->path, original, sizeof original))
        return entry->path;
    return arena_copy(&run->arena, original, strlen(original));
}

static enum plumb_code add_indexed(struct plumb_run *run, const struct walk_entry *entry,
                                   const char *path, struct index *index)
{
    struct source *source = &run->sources[run->source_count];
    struct plumb_error why;
    const char *name = own_name(run, entry);
    if (!name || list_entry(run, source, entry, path, &why))
        return PLUMB_E_NOMEM;
    source->index = index;
    source->relative = name;
    if (!index_names_file(index, name)) {
        run->listing.count = source->first;
        if (is_other(source, path, &why))
            run->ignored++;
        else
            index_note(&index->strangers,
                       name + (index_folder(index) ? index_folder(index) + 1 : 0), NULL);
        return PLUMB_OK;
    }
    if (why.code) {
        run->listing.count = source->first;
        return index_lose(index, run, name, &why);
    }
    index_keep(index, run, source);
    run->source_count += source->count > 0;
    return PLUMB_OK;
}

static enum plumb_code add_entry(struct plumb_run *run, const struct walk_entry *entry,
                                 struct index *index, struct plumb_error *err)
{
    struct source *source = &run->sources[run->source_count];
    const char *path = arena_printf(&run->arena, "%s/%s", run->path, entry->path);
    struct plumb_error why;
    if (!path)
        return plumb_no_memory(err);
    if (!entry->error && is_superseded(path))
        return PLUMB_OK;
    if (index && strcmp(index->path, entry->path) == 0)
        return PLUMB_OK;
    if (index)
        return add_indexed(run, entry, path, index) ? plumb_no_memory(err) : PLUMB_OK;
    enum plumb_code code = list_entry(run, source, entry, path, &why);
    if (!code && !entry->error && is_other(source, path, &why)) {
        run->ignored++;
        return PLUMB_OK;
    }
    if (!code && why.code)
        code = add_failed(run, source, path, &why);
    else if (!code)
        set_ranks(run, source, path);
    if (code)
        return plumb_no_memory(err);
    run->source_count += source->count > 0;
    return PLUMB_OK;
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

/* All files of the walk, those that an index governs as it says. */
static enum plumb_code add_entries(struct plumb_run *run, const struct walk *walk,
                                   const struct indexes *indexes, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    run->sources = arena_array(&run->arena, walk->count + indexes->count, sizeof *run->sources);
    if (!run->sources)
        return plumb_no_memory(err);
    for (size_t i = 0; i < walk->count && !code; i++)
        code = add_entry(run, &walk->entries[i], indexes_of(indexes, walk->entries[i].path), err);
    for (size_t i = 0; i < indexes->count && !code; i++) {
        struct source *source = &run->sources[run->source_count];
        if (index_finish(indexes->list[i], run, source))
            code = plumb_no_memory(err);
        run->source_count += source->count > 0;
    }
    if (!code && !run->listing.count)
        code = fail_nothing(run, walk, err);
    if (!code && folder_name_records(run))
        code = plumb_no_memory(err);
    for (size_t i = 0; i < run->source_count; i++)
        run->sources[i].index = NULL;
    return code;
}

static enum plumb_code fail_no_index(const struct plumb_run *run, const char *name,
                                     struct plumb_error *err)
{
    /* Why it cannot be read is in the only warning that names it. */
    for (size_t i = 0; i < run->warning_count; i++) {
        const char *after = run->warnings[i] + strlen(run->path) + 1;
        if (strncmp(after, name, strlen(name)) == 0 && after[strlen(name)] == ':')
            return plumb_fail(err, PLUMB_E_FORMAT, "%s", run->warnings[i]);
    }
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "%s/%s: no index of a checkpoint: it has no weight_map, which says in which "
                      "file each tensor is",
                      run->path, name);
}

enum plumb_code folder_open(struct plumb_run *run, const char *only, struct plumb_error *err)
{
    struct walk walk = {.is_expected = format_is_promised, .arena = &run->arena};
    struct indexes indexes = {0};
    run->kind = "folder";
    enum plumb_code code = walk_folder(&walk, run->path, err);
    if (code)
        return code;
    run->ignored = walk.special + walk.links_outside;
    code = indexes_read(&indexes, run, &walk, only) ? plumb_no_memory(err) : PLUMB_OK;
    if (!code)
        code = add_entries(run, &walk, &indexes, err);
    if (!code && only && (!indexes.count || strcmp(indexes.list[0]->path, only) != 0))
        code = fail_no_index(run, only, err);
    if (indexes.count && !index_folder(indexes.list[0]))
        run->kind = "index";
    indexes_free(&indexes);
    return code;
}

enum plumb_code folder_open_index(struct plumb_run *run, struct plumb_error *err)
{
    const char *path = run->path, *slash = strrchr(path, '/');
    run->path = !slash          ? "."
                : slash == path ? "/"
                                : arena_copy(&run->arena, path, (size_t)(slash - path));
    return run->path ? folder_open(run, folder_base_name(path), err) : plumb_no_memory(err);
}
