/* Finding the newest result of each rank and graph by the names of files. */
#define _GNU_SOURCE
#include "task/ranks/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STAMP = 14, MAX_DIGITS = 9 };

/* Reads digits and moves behind them; false when there are none, or too many. */
static bool read_number(const char **at, int64_t *value)
{
    size_t digits = strspn(*at, "0123456789");
    if (!digits || digits > MAX_DIGITS)
        return false;
    *value = strtol(*at, NULL, 10);
    *at += digits;
    return true;
}

static bool skip(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

bool rank_parse(const char *name, struct rank_file *file)
{
    int64_t other, number;
    *file = (struct rank_file){.name = name, .graph = -1};
    if (!skip(&name, "compare_result_"))
        return false;
    if (skip(&name, "graph") && (!read_number(&name, &file->graph) || !skip(&name, "_")))
        return false;
    if (!skip(&name, "rank") || !read_number(&name, &file->rank))
        return false;
    if (skip(&name, "-rank") && (!read_number(&name, &other) || other != file->rank))
        return false;
    if (!skip(&name, "_") || strspn(name, "0123456789") != STAMP)
        return false;
    memcpy(file->stamp, name, STAMP);
    name += STAMP;
    if (skip(&name, "_part_")) {
        if (!read_number(&name, &number))
            return false;
        file->part = (unsigned)number;
    } else if (skip(&name, "_")) {
        if (!read_number(&name, &number))
            return false;
        file->version = (unsigned)number;
    }
    file->xlsx = strcmp(name, ".xlsx") == 0;
    return file->xlsx || strcmp(name, ".csv") == 0;
}

/* Newer results first: by time, by version, workbooks before text. */
static int compare_results(const struct rank_file *a, const struct rank_file *b)
{
    int order = strcmp(b->stamp, a->stamp);
    if (!order)
        order = (a->version < b->version) - (a->version > b->version);
    return order ? order : (int)b->xlsx - (int)a->xlsx;
}

static int by_rank(const void *left, const void *right)
{
    const struct rank_file *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->graph != b->graph)
        return a->graph < b->graph ? -1 : 1;
    int order = compare_results(a, b);
    return order ? order : (a->part > b->part) - (a->part < b->part);
}

static enum plumb_code add(struct rank_files *files, const char *name, struct arena *arena)
{
    struct rank_file file;
    if (!rank_parse(name, &file))
        return PLUMB_OK;
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? files->capacity * 2 : 16;
        struct rank_file *list = arena_array(arena, capacity, sizeof *list);
        if (!list)
            return PLUMB_E_NOMEM;
        if (files->count)
            memcpy(list, files->list, files->count * sizeof *list);
        files->list = list;
        files->capacity = capacity;
    }
    file.name = arena_copy(arena, name, strlen(name));
    files->list[files->count++] = file;
    return file.name ? PLUMB_OK : PLUMB_E_NOMEM;
}

/* Keeps the newest result of each rank and graph. */
static void choose(struct rank_files *files)
{
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        const struct rank_file *file = &files->list[i];
        const struct rank_file *last = kept ? &files->list[kept - 1] : NULL;
        bool same = last && last->rank == file->rank;
        if (same && last->graph == file->graph && compare_results(last, file) != 0) {
            files->older++;
            continue;
        }
        files->ranks += !same;
        files->list[kept++] = *file;
    }
    files->count = kept;
}

enum plumb_code rank_find(struct rank_files *files, const char *folder, struct arena *arena,
                          struct plumb_error *err)
{
    *files = (struct rank_files){0};
    DIR *dir = opendir(folder);
    if (!dir) {
        plumb_fail(err, PLUMB_E_IO, "cannot read this folder: %s", strerror(errno));
        plumb_error_in_file(err, folder);
        return PLUMB_E_IO;
    }
    enum plumb_code code = PLUMB_OK;
    for (const struct dirent *entry; !code && (entry = readdir(dir));)
        code = add(files, entry->d_name, arena);
    closedir(dir);
    if (code)
        return plumb_fail(err, code, "out of memory");
    if (files->count)
        qsort(files->list, files->count, sizeof *files->list, by_rank);
    choose(files);
    return PLUMB_OK;
}
