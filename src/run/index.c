/* What the index of a checkpoint says, held against the files. */
#define _GNU_SOURCE
#include "run/index.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mapped.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static void *grown(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    const size_t more = *room ? *room * 2 : 64;
    void *bigger = more > SIZE_MAX / size ? NULL : realloc(array, more * size);
    if (bigger)
        *room = more;
    return bigger;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);
    return length > tail && memcmp(text + length - tail, ending, tail) == 0;
}

static void free_index(struct index *index)
{
    if (!index)
        return;
    free(index->wanted);
    free((void *)index->files);
    map_free(&index->by_name);
    map_free(&index->by_path);
    free(index);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The file of that name, new or known; NULL when out of memory. */
static const struct named *name_file(struct index *index, struct arena *arena, struct json *json)
{
    size_t length;
    const char *said = json_copy(json, arena, &length);
    const char *path =
        said ? arena_printf(arena, "%.*s%s", (int)index->folder, index->path, said) : NULL;
    uint64_t *number = path ? map_put(&index->by_path, path, strlen(path), NULL) : NULL;
    if (!number)
        return NULL;
    if (*number)
        return index->files[*number - 1];
    struct named **files =
        grown((void *)index->files, index->file_count, &index->file_room, sizeof *files);
    struct named *file = arena_alloc(arena, sizeof *file);
    if (!files || !file)
        return NULL;
    index->files = files;
    *file = (struct named){.path = path, .said = said};
    index->safetensors = index->safetensors || ends_with(path, ".safetensors");
    index->files[index->file_count++] = file;
    *number = index->file_count;
    return file;
}

/* One "name": "file". False, with json->error or without when out of memory. */
static bool read_tensor(struct index *index, struct arena *arena, struct json *json)
{
    struct wanted tensor = {0};
    bool added;
    tensor.name = json_copy(json, arena, &tensor.length);
    if (!tensor.name)
        return false;
    const enum json_event event = json_next(json);
    if (event == JSON_STRING && !(tensor.file = name_file(index, arena, json)))
        return false;
    if (event != JSON_STRING && !json_skip(json, event))
        return false;
    uint64_t *number = map_put(&index->by_name, tensor.name, tensor.length, &added);
    if (!number)
        return false;
    if (!added) {
        index_note(&index->twice, tensor.name, NULL);
        index->wanted[*number - 1].file = tensor.file;
        return true;
    }
    struct wanted *list = grown(index->wanted, index->count, &index->room, sizeof *list);
    if (!list)
        return false;
    index->wanted = list;
    index->wanted[index->count++] = tensor;
    *number = index->count;
    return true;
}

static bool read_weight_map(struct index *index, struct arena *arena, struct json *json)
{
    enum json_event event;
    while ((event = json_next(json)) == JSON_KEY)
        if (!read_tensor(index, arena, json))
            return false;
    return event == JSON_OBJECT_END;
}

/* *is_one: there is a weight_map. */
static enum plumb_code read_json(struct index *index, struct arena *arena, const void *bytes,
                                 size_t size, bool *is_one, struct plumb_error *err)
{
    struct json json;
    bool good = true;
    json_init(&json, bytes, size);
    enum json_event event = json_next(&json);
    if (event == JSON_OBJECT)
        while (good && json_next(&json) == JSON_KEY) {
            if (!json_is(&json, "weight_map"))
                good = json_skip(&json, JSON_KEY);
            else if ((event = json_next(&json)) == JSON_OBJECT)
                *is_one = good = read_weight_map(index, arena, &json);
            else
                good = json_skip(&json, event);
        }
    else
        good = json_skip(&json, event);
    if (good && !json.error)
        json_next(&json); /* nothing may follow */
    if (json.error)
        return json_fail(&json, 0, err);
    if (*is_one && !index->count)
        return plumb_fail(err, PLUMB_E_FORMAT, "it names no tensor");
    return good ? PLUMB_OK : plumb_no_memory(err);
}

/* Reads one; *out stays NULL when it is no index. err is set when it cannot be read. */
static enum plumb_code read_index(struct index **out, struct plumb_run *run, const char *path,
                                  struct plumb_error *err)
{
    struct mapped in;
    bool is_one = false;
    struct index *index = calloc(1, sizeof *index);
    const char *full = arena_printf(&run->arena, "%s/%s", run->path, path);
    if (!index || !full) {
        free(index);
        return plumb_no_memory(err);
    }
    const char *slash = strrchr(path, '/');
    index->path = path;
    index->folder = slash ? (size_t)(slash + 1 - path) : 0;
    enum plumb_code code = mapped_open(&in, full, err);
    if (!code)
        code = mapped_close(
            &in, read_json(index, &run->arena, in.file.data, in.file.size, &is_one, err), err);
    if (code || !is_one)
        free_index(index);
    else
        *out = index;
    return code;
}

/* ---- Which of them counts -------------------------------------------------------------------- */

static bool is_below(const struct index *index, const char *path)
{
    return strncmp(path, index->path, index->folder) == 0;
}

static bool is_better(const struct index *a, const struct index *b, const char *only)
{
    const bool chosen = only && strcmp(b->path, only) == 0;
    return !chosen && ((only && strcmp(a->path, only) == 0) || (a->safetensors && !b->safetensors));
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum plumb_code index_warn(struct plumb_run *run, const char *path, const char *before,
                           const char *name, const char *after)
{
    struct buf text = {0};
    buf_printf(&text, "%s/", run->path);
    utf8_put_clean(&text, path);
    buf_printf(&text, ": %s", before);
    utf8_put_clean(&text, name);
    buf_text(&text, after);
    const char *line = text.failed ? NULL : arena_copy(&run->arena, text.data, text.size);
    buf_free(&text);
    return line ? dumps_warn(run, line) : PLUMB_E_NOMEM;
}

/* Takes over index. */
static enum plumb_code add_index(struct indexes *indexes, struct plumb_run *run,
                                 struct index *index, const char *only)
{
    struct index *loser = NULL;
    size_t i = 0;
    while (i < indexes->count && !is_below(indexes->list[i], index->path))
        i++;
    if (i == indexes->count) {
        indexes->list[indexes->count++] = index;
        return PLUMB_OK;
    }
    struct index *known = indexes->list[i];
    const bool beside = known->folder == index->folder;
    loser = beside && is_better(index, known, only) ? known : index;
    indexes->list[i] = loser == known ? index : known;
    enum plumb_code code =
        beside ? index_warn(run, loser->path, "not used, since this folder has ",
                            last_part(indexes->list[i]->path), "; give this index to open it")
               : index_warn(run, loser->path, "not used, since a folder above has ",
                            last_part(indexes->list[i]->path), "; give this folder to open it");
    free_index(loser);
    return code;
}

/* Folders above come before those below, whatever the order of the walk. */
static int by_depth(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    size_t depth[2] = {0, 0};
    for (const char *p = x; *p; p++)
        depth[0] += *p == '/';
    for (const char *p = y; *p; p++)
        depth[1] += *p == '/';
    return depth[0] != depth[1] ? (depth[0] < depth[1] ? -1 : 1) : walk_compare(x, y);
}

enum plumb_code indexes_read(struct indexes *indexes, struct plumb_run *run,
                             const struct walk *walk, const char *only)
{
    const char **paths = arena_array(&run->arena, walk->count + 1, sizeof *paths);
    size_t count = 0;
    if (!paths)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < walk->count; i++)
        if (!walk->entries[i].error && ends_with(walk->entries[i].path, INDEX_ENDING))
            paths[count++] = walk->entries[i].path;
    qsort((void *)paths, count, sizeof *paths, by_depth);
    indexes->list = calloc(count + 1, sizeof(*indexes->list));
    if (!indexes->list)
        return PLUMB_E_NOMEM;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < count && !code; i++) {
        struct plumb_error why;
        struct index *index = NULL;
        code = read_index(&index, run, paths[i], &why);
        if (code && code != PLUMB_E_NOMEM)
            code = index_warn(run, paths[i], "this index is not used: ", why.message, "");
        else if (!code && index)
            code = add_index(indexes, run, index, only);
    }
    return code;
}

void indexes_free(struct indexes *indexes)
{
    for (size_t i = 0; i < indexes->count; i++)
        free_index(indexes->list[i]);
    free((void *)indexes->list);
}

struct index *indexes_of(const struct indexes *indexes, const char *path)
{
    for (size_t i = 0; i < indexes->count; i++)
        if (is_below(indexes->list[i], path))
            return indexes->list[i];
    return NULL;
}
