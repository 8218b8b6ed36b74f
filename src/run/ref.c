/* Records by the file that holds them. */
#define _GNU_SOURCE
#include "run/ref.h"

#include "run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = 16 };

/* A file that was listed: its records, for as long as somebody loads one of them. */
struct listed {
    char *path;
    struct arena arena;
    struct listing listing;
    struct format_file found;
    enum plumb_code code; /* why it could not be listed */
    struct plumb_error err;
    uint64_t used;
    unsigned users;
};

struct run_files {
    const struct crew_places *places;
    pthread_mutex_t lock;
    struct listed *files[FILES];
    uint64_t clock;
};

static const struct source *source_of(const struct plumb_run *run, size_t index)
{
    for (size_t low = 0, high = run->source_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const struct source *source = &run->sources[middle];
        if (index < source->first)
            high = middle;
        else if (index - source->first >= source->count)
            low = middle + 1;
        else
            return source;
    }
    return NULL;
}

bool run_ref_of(const struct plumb_run *run, size_t index, struct run_ref *ref)
{
    const struct plumb_record *record = plumb_run_record(run, index);
    if (!record || record->error || record->absent || !record->path || run->load)
        return false;
    *ref = (struct run_ref){.path = record->path, .count = record->count};
    if (run->tree_count) {
        ref->dump = true;
        ref->shape = record->recorded ? record->recorded->shape : NULL;
        return record->recorded;
    }
    const struct source *source = source_of(run, index);
    if (!source || !source->format)
        return false;
    ref->index = index - source->first;
    ref->size = source->size;
    ref->mtime_ns = source->mtime_ns;
    return true;
}

void run_ref_pack(struct pack *pack, struct run_ref *ref, struct arena *arena)
{
    pack_text(pack, &ref->path, arena);
    pack_bool(pack, &ref->dump);
    pack_size(pack, &ref->index);
    pack_u64(pack, &ref->count);
    pack_text(pack, &ref->shape, arena);
    pack_u64(pack, &ref->size);
    pack_i64(pack, &ref->mtime_ns);
    pack_check(pack, ref->path);
}

uint64_t run_ref_stamp(const struct run_ref *ref, const struct crew_places *places)
{
    struct arena arena = {0};
    struct stat st;
    const char *path = crew_places_here(places, ref->path, &arena);
    const bool seen = path && stat(path, &st) == 0;
    arena_free(&arena);
    if (!seen)
        return 0;
    const uint64_t time = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
    const uint64_t mixed = (time ^ (uint64_t)st.st_size << 32) * UINT64_C(0x9E3779B97F4A7C15);
    return mixed ? mixed : 1;
}

struct run_files *run_files_new(const struct crew_places *places)
{
    struct run_files *files = calloc(1, sizeof *files);
    if (!files)
        return NULL;
    files->places = places;
    pthread_mutex_init(&files->lock, NULL);
    return files;
}

static void listed_free(struct listed *file)
{
    if (!file)
        return;
    arena_free(&file->arena);
    free(file->path);
    free(file);
}

void run_files_free(struct run_files *files)
{
    if (!files)
        return;
    for (size_t i = 0; i < FILES; i++)
        listed_free(files->files[i]);
    pthread_mutex_destroy(&files->lock);
    free(files);
}

static struct listed *list_file(const struct run_files *files, const char *path)
{
    struct listed *file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path))) {
        free(file);
        return NULL;
    }
    file->listing.arena = &file->arena;
    const char *here = crew_places_here(files->places, file->path, &file->arena);
    file->code = here ? format_list_file(&file->listing, here, &file->found, &file->err)
                      : plumb_no_memory(&file->err);
    return file;
}

/* Under the lock, which others wait for: most of them want the same file. NULL: out of memory. */
static struct listed *take(struct run_files *files, const char *path)
{
    size_t oldest = FILES;
    for (size_t i = 0; i < FILES; i++) {
        struct listed *file = files->files[i];
        if (file && strcmp(file->path, path) == 0) {
            file->users++;
            file->used = ++files->clock;
            return file;
        }
        if (!file ||
            (!file->users && (oldest == FILES ||
                              (files->files[oldest] && file->used < files->files[oldest]->used))))
            oldest = i;
    }
    struct listed *file = list_file(files, path);
    if (!file)
        return NULL;
    file->users = 1;
    file->used = ++files->clock;
    if (oldest == FILES || file->code) /* nobody else gets to see it */
        return file;
    listed_free(files->files[oldest]);
    files->files[oldest] = file;
    return file;
}

static void give_back(struct run_files *files, struct listed *file)
{
    bool kept = false;
    for (size_t i = 0; i < FILES; i++)
        kept = kept || files->files[i] == file;
    file->users--;
    if (!kept)
        listed_free(file);
}

static enum plumb_code load_listed(const struct run_files *files, const struct listed *file,
                                   const struct run_ref *ref, struct plumb_payload *payload,
                                   struct plumb_error *err)
{
    if (file->code) {
        *err = file->err;
        return file->code;
    }
    /* A copy on this host's own disk has a time of its own. */
    const bool moved = files->places && files->places->count;
    const int64_t time = moved ? file->found.mtime_ns : ref->mtime_ns;
    if (file->found.size != ref->size || file->found.mtime_ns != time ||
        ref->index >= file->listing.count || file->listing.records[ref->index].count != ref->count)
        return plumb_fail(err, PLUMB_E_IO, "the file changed since it was listed");
    return format_load(file->found.format, &file->listing.records[ref->index], ref->size, time,
                       NULL, payload, err);
}

static enum plumb_code load_dump(const struct run_files *files, const struct run_ref *ref,
                                 struct plumb_payload *payload, struct plumb_error *err)
{
    struct arena arena = {0};
    const struct plumb_recorded recorded = {.tensor = true, .shape = ref->shape};
    const char *here = crew_places_here(files->places, ref->path, &arena);
    const struct plumb_record record = {.path = here, .count = ref->count, .recorded = &recorded};
    enum plumb_code code = here ? dumps_load(&record, payload, err) : plumb_no_memory(err);
    arena_free(&arena);
    return code;
}

enum plumb_code run_files_load(struct run_files *files, const struct run_ref *ref,
                               struct plumb_payload *payload, struct plumb_error *err)
{
    enum plumb_code code;
    *payload = (struct plumb_payload){0};
    if (ref->dump) {
        code = load_dump(files, ref, payload, err);
    } else {
        pthread_mutex_lock(&files->lock);
        struct listed *file = take(files, ref->path);
        pthread_mutex_unlock(&files->lock);
        code = file ? load_listed(files, file, ref, payload, err) : plumb_no_memory(err);
        pthread_mutex_lock(&files->lock);
        if (file)
            give_back(files, file);
        pthread_mutex_unlock(&files->lock);
    }
    if (code) {
        plumb_error_in_file(err, ref->path);
        crew_places_name(files->places, err);
    }
    return code;
}
