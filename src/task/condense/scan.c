/* Listing the files that may be condensed, and sweeping up after a plumb that was killed. */
#define _GNU_SOURCE
#include "task/condense/scan.h"

#include "format/condensed.h"
#include "run/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 };

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && memcmp(text + length - tail, ending, tail) == 0;
}

/* Written already, or not written yet. */
static bool is_passed_over(const char *name)
{
    static const char *const endings[] = {
        CONDENSED_ENDING, "_min_max.npy", "_min_max.npz", ".tmp", ".temp", ".part", ".swp", "~",
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(name, endings[i]))
            return true;
    return false;
}

/* ".NAME.condensed.json.PID-N.tmp" of a process that is no more. */
static bool is_leftover(const char *name)
{
    const char *at = strstr(name, CONDENSED_ENDING ".");
    if (name[0] != '.' || !at || !ends_with(name, ".tmp"))
        return false;
    char *end;
    long process = strtol(at + strlen(CONDENSED_ENDING "."), &end, 10);
    return *end == '-' && process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/* Room for one more element; false when out of memory. */
static bool grow(struct arena *arena, void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t more = *capacity ? *capacity * 2 : 64;
    void *room = arena_array(arena, more, size);
    if (!room)
        return false;
    if (count)
        memcpy(room, *items, count * size);
    *items = room;
    *capacity = more;
    return true;
}

static bool add_folder(struct scan *scan, const char *path, int error)
{
    void *items = scan->folders;
    if (!path || !grow(&scan->arena, &items, scan->folder_count, &scan->folder_capacity,
                       sizeof *scan->folders))
        return false;
    scan->folders = items;
    scan->folders[scan->folder_count++] = (struct scan_folder){.path = path, .error = error};
    return true;
}

static bool add_file(struct scan *scan, const char *path, const struct stat *st)
{
    void *items = scan->files;
    if (!path ||
        !grow(&scan->arena, &items, scan->file_count, &scan->file_capacity, sizeof *scan->files))
        return false;
    scan->files = items;
    scan->files[scan->file_count++] = (struct scan_file){.path = path,
                                                         .device = st->st_dev,
                                                         .inode = st->st_ino,
                                                         .size = (uint64_t)st->st_size,
                                                         .changed = st->st_mtim};
    return true;
}

struct place {
    const char *path;
    int fd;
    unsigned depth;
    bool sweep;
};

static bool scan_into(struct scan *scan, const struct place *place);

static bool visit(struct scan *scan, const struct place *place, int folder, const char *name)
{
    struct stat st;
    if (name[0] == '.') {
        if (place->sweep && is_leftover(name))
            unlinkat(folder, name, 0);
        return true;
    }
    if (is_passed_over(name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
        return true;
    const char *path = *place->path ? arena_printf(&scan->arena, "%s/%s", place->path, name)
                                    : arena_copy(&scan->arena, name, strlen(name));
    if (!path)
        return false;
    if (S_ISREG(st.st_mode))
        return add_file(scan, path, &st);
    if (place->depth + 1 == MAX_DEPTH)
        return add_folder(scan, path, ELOOP);
    struct place inner = {.path = path, .depth = place->depth + 1, .sweep = place->sweep};
    inner.fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner.fd < 0)
        return errno == ENOENT || add_folder(scan, path, errno);
    return scan_into(scan, &inner);
}

/* Takes over place->fd. */
static bool scan_into(struct scan *scan, const struct place *place)
{
    DIR *dir = fdopendir(place->fd);
    if (!dir) {
        close(place->fd);
        return false;
    }
    bool ok = add_folder(scan, place->path, 0);
    for (struct dirent *entry; ok && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ok = visit(scan, place, dirfd(dir), entry->d_name);
    closedir(dir);
    return ok;
}

static int by_path(const void *a, const void *b)
{
    const struct scan_file *left = a, *right = b;
    return walk_compare(left->path, right->path);
}

enum plumb_code scan_folder(struct scan *scan, const char *folder, bool sweep,
                            struct plumb_error *err)
{
    *scan = (struct scan){0};
    struct place top = {.path = "", .sweep = sweep};
    top.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top.fd < 0) {
        plumb_fail(err, PLUMB_E_IO, "cannot read this folder: %s", strerror(errno));
        plumb_error_in_file(err, folder);
        return PLUMB_E_IO;
    }
    if (!scan_into(scan, &top))
        return plumb_no_memory(err);
    if (scan->file_count)
        qsort(scan->files, scan->file_count, sizeof *scan->files, by_path);
    return PLUMB_OK;
}

void scan_free(struct scan *scan)
{
    arena_free(&scan->arena);
    *scan = (struct scan){0};
}
