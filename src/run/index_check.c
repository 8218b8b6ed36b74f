/* What the files have of what an index says. */
#define _GNU_SOURCE
#include "run/index.h"

#include <stdio.h>
#include <string.h>

void index_note(struct oddity *oddity, const char *what, const char *where)
{
    if (!oddity->count++) {
        oddity->what = what;
        oddity->where = where;
    }
}

size_t index_folder(const struct index *index)
{
    return index->folder ? index->folder - 1 : 0;
}

static struct named *find_file(const struct index *index, const char *path)
{
    const uint64_t *number = map_get(&index->by_path, path, strlen(path));
    return number ? index->files[*number - 1] : NULL;
}

bool index_names_file(struct index *index, const char *path)
{
    struct named *file = find_file(index, path);
    if (file)
        file->seen = true;
    return file != NULL;
}

void index_keep(struct index *index, struct plumb_run *run, struct source *source)
{
    const struct named *file = find_file(index, source->relative);
    struct plumb_record *records = run->listing.records + source->first;
    size_t kept = 0;
    for (size_t i = 0; i < source->count; i++) {
        const uint64_t *number = map_get(&index->by_name, records[i].name, strlen(records[i].name));
        struct wanted *tensor = number ? &index->wanted[*number - 1] : NULL;
        if (tensor && tensor->file != file) {
            tensor->elsewhere = source->relative + index->folder;
            continue;
        }
        if (tensor)
            tensor->found = true;
        else
            index_note(&index->unknown, records[i].name, source->relative + index->folder);
        records[kept++] = records[i];
    }
    source->count = kept;
    run->listing.count = source->first + kept;
}

enum plumb_code index_lose(struct index *index, struct plumb_run *run, const char *path,
                           const struct plumb_error *why)
{
    struct plumb_error *error = arena_alloc(&run->arena, sizeof *error);
    if (!error)
        return PLUMB_E_NOMEM;
    *error = *why;
    find_file(index, path)->error = error;
    return PLUMB_OK;
}

/* Does a path lead out of its folder? */
static bool leads_out(const char *path)
{
    if (*path == '/')
        return true;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (!part[2] || part[2] == '/'))
            return true;
    }
    return false;
}

/* Why a tensor is not there. */
static void explain(struct plumb_error *err, const struct wanted *tensor)
{
    const struct named *file = tensor->file;
    if (!file)
        plumb_fail(err, PLUMB_E_FORMAT, "the index does not say in which file it is");
    else if (file->error)
        *err = *file->error;
    else if (leads_out(file->said))
        plumb_fail(err, PLUMB_E_FORMAT,
                   "the index says that it is in %.150s, which leads out of this folder",
                   file->said);
    else if (!file->seen)
        plumb_fail(err, PLUMB_E_IO,
                   "the index says that it is in %.150s, and that file is not in this folder",
                   file->said);
    else if (tensor->elsewhere)
        plumb_fail(err, PLUMB_E_FORMAT,
                   "the index says that it is in %.150s, which does not have it; %.150s has a "
                   "tensor of this name",
                   file->said, tensor->elsewhere);
    else
        plumb_fail(err, PLUMB_E_FORMAT,
                   "the index says that it is in %.150s, which does not have it", file->said);
}

/* "3 tensors ..., the first NAME in FILE". */
static enum plumb_code warn_of(struct plumb_run *run, const struct index *index,
                               const struct oddity *oddity, const char *one, const char *many,
                               const char *after)
{
    if (!oddity->count)
        return PLUMB_OK;
    char number[24] = "";
    if (oddity->count > 1)
        snprintf(number, sizeof number, "%zu ", oddity->count);
    const char *before = arena_printf(&run->arena, "%s%s%s", number, oddity->count > 1 ? many : one,
                                      oddity->count > 1 ? ", the first " : " ");
    const char *which = oddity->where
                            ? arena_printf(&run->arena, "%s in %s", oddity->what, oddity->where)
                            : oddity->what;
    return before && which ? index_warn(run, index->path, before, which, after) : PLUMB_E_NOMEM;
}

static enum plumb_code warn_of_all(struct index *index, struct plumb_run *run)
{
    enum plumb_code code = warn_of(run, index, &index->twice,
                                   "a tensor that it names twice:", "tensors that it names twice",
                                   "; the last counts");
    if (!code)
        code = warn_of(run, index, &index->copies,
                       "a tensor that another file has too:", "tensors that other files have too",
                       "; left out there, since the index names another file");
    if (!code)
        code = warn_of(run, index, &index->unknown,
                       "a tensor that it does not name:", "tensors that it does not name",
                       "; compared all the same");
    if (!code)
        code = warn_of(run, index, &index->strangers, "a file of tensors that it does not name:",
                       "files of tensors that it does not name",
                       "; left out, give a file alone to see what is in it");
    return code;
}

enum plumb_code index_finish(struct index *index, struct plumb_run *run, struct source *source)
{
    *source = (struct source){.relative = index->path, .index = index, .first = run->listing.count};
    for (size_t i = 0; i < index->count; i++) {
        const struct wanted *tensor = &index->wanted[i];
        struct plumb_error why = {0};
        if (tensor->found) {
            if (tensor->elsewhere)
                index_note(&index->copies, tensor->name, tensor->elsewhere);
            continue;
        }
        explain(&why, tensor);
        run->listing.path =
            arena_printf(&run->arena, "%s/%s", run->path,
                         tensor->file && tensor->file->seen ? tensor->file->path : index->path);
        struct plumb_record *record = listing_add(&run->listing, tensor->name, tensor->length);
        if (!run->listing.path || !record || listing_fail(&run->listing, record, &why))
            return PLUMB_E_NOMEM;
        source->count++;
    }
    return warn_of_all(index, run);
}
