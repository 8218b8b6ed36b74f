/* The files of a folder tree, in natural order. */
#define _GNU_SOURCE
#include "run/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares the digit runs at *a and *b by value and moves both behind them. */
static int compare_numbers(const char **a, const char **b)
{
    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    int first = 0;
    for (; is_digit(**a) && is_digit(**b); ++*a, ++*b)
        if (!first && **a != **b)
            first = **a < **b ? -1 : 1;
    if (is_digit(**a) != is_digit(**b))
        return is_digit(**a) ? 1 : -1;
    return first;
}

int walk_compare(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        if (is_digit(*p) && is_digit(*q)) {
            int order = compare_numbers(&p, &q);
            if (order)
                return order;
            continue;
        }
        if (*p != *q) {
            if (*p == '/' || *q == '/')
                return *p == '/' ? -1 : 1;
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        }
        p++;
        q++;
    }
    if (*p || *q)
        return *p ? 1 : -1;
    return strcmp(a, b); /* 01 and 1 */
}

static int by_path(const void *a, const void *b)
{
    const struct walk_entry *left = a, *right = b;
    return walk_compare(left->path, right->path);
}

static struct walk_entry *add_entry(struct walk *walk, const char *path)
{
    if (walk->count == walk->capacity) {
        size_t capacity = walk->capacity ? walk->capacity * 2 : 64;
        struct walk_entry *entries = arena_array(walk->arena, capacity, sizeof *entries);
        if (!entries)
            return NULL;
        if (walk->count)
            memcpy(entries, walk->entries, walk->count * sizeof *entries);
        walk->entries = entries;
        walk->capacity = capacity;
    }
    struct walk_entry *entry = &walk->entries[walk->count++];
    *entry = (struct walk_entry){.path = path};
    return entry;
}

/* What should be read and cannot be is an entry of its own, so that it is not forgotten. */
static enum plumb_code add_failure(struct walk *walk, const char *path, const char *what,
                                   const char *why)
{
    struct plumb_error *error = arena_alloc(walk->arena, sizeof *error);
    struct walk_entry *entry = error ? add_entry(walk, path) : NULL;
    if (!entry)
        return PLUMB_E_NOMEM;
    plumb_fail(error, PLUMB_E_IO, "%s: %s", what, why);
    entry->error = error;
    return PLUMB_OK;
}

static enum plumb_code add_folder_failure(struct walk *walk, const char *path, const char *why)
{
    return add_failure(walk, path, "cannot read this folder", why);
}

struct folder {
    const char *path;  /* relative; "" for the top */
    const char *top;   /* real path of the top */
    const char *blobs; /* real path of where the links of a snapshot lead, or NULL */
    int fd;
    unsigned depth;
};

static bool is_inside(const char *real, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(real, folder, length) == 0 && (real[length] == '/' || strcmp(folder, "/") == 0);
}

/* Hugging Face's cache keeps the files of "snapshots/REVISION" in "blobs", beside snapshots: the
 * one place outside of the folder that links are followed to. *blobs stays NULL elsewhere. */
static enum plumb_code find_blobs(struct walk *walk, const char *top, const char **blobs)
{
    static const char word[] = "/snapshots";
    const size_t length = sizeof word - 1;
    const char *revision = strrchr(top, '/');
    if (!revision || (size_t)(revision - top) <= length ||
        memcmp(revision - length, word, length) != 0)
        return PLUMB_OK;
    *blobs = arena_printf(walk->arena, "%.*s/blobs", (int)(revision - length - top), top);
    return *blobs ? PLUMB_OK : PLUMB_E_NOMEM;
}

/* Does the link lead to a regular file inside the top folder? */
static enum plumb_code check_link(struct walk *walk, const struct folder *folder, const char *name,
                                  const char *path, bool *inside)
{
    struct stat st;
    *inside = false;
    if (fstatat(folder->fd, name, &st, 0) != 0 || !S_ISREG(st.st_mode))
        return PLUMB_OK;
    const char *full = arena_printf(walk->arena, "%s/%s", folder->top, path);
    char *real = full ? realpath(full, NULL) : NULL;
    if (!real)
        return full && errno != ENOMEM ? PLUMB_OK : PLUMB_E_NOMEM;
    *inside = is_inside(real, folder->top) || (folder->blobs && is_inside(real, folder->blobs));
    free(real);
    return PLUMB_OK;
}

static enum plumb_code walk_into(struct walk *walk, struct folder *folder);

static enum plumb_code visit_folder(struct walk *walk, const struct folder *parent,
                                    const char *name, const char *path)
{
    if (parent->depth + 1 == MAX_DEPTH)
        return add_folder_failure(walk, path, "folders are nested too deeply");
    struct folder folder = {
        .path = path, .top = parent->top, .blobs = parent->blobs, .depth = parent->depth + 1};
    folder.fd = openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder.fd < 0)
        return add_folder_failure(walk, path, strerror(errno));
    return walk_into(walk, &folder);
}

static enum plumb_code visit(struct walk *walk, const struct folder *folder, const char *name)
{
    struct stat st;
    if (fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return PLUMB_OK; /* gone since readdir saw it */
    const char *path = *folder->path ? arena_printf(walk->arena, "%s/%s", folder->path, name)
                                     : arena_copy(walk->arena, name, strlen(name));
    if (!path)
        return PLUMB_E_NOMEM;
    if (S_ISDIR(st.st_mode))
        return visit_folder(walk, folder, name, path);
    bool wanted = S_ISREG(st.st_mode);
    if (S_ISLNK(st.st_mode)) {
        enum plumb_code code = check_link(walk, folder, name, path, &wanted);
        if (code)
            return code;
    }
    if (wanted)
        return add_entry(walk, path) ? PLUMB_OK : PLUMB_E_NOMEM;
    if (walk->is_expected(path))
        return add_failure(walk, path, "cannot read it",
                           S_ISLNK(st.st_mode) ? "the link leads nowhere, or out of this folder"
                                               : "not a regular file");
    *(S_ISLNK(st.st_mode) ? &walk->links_outside : &walk->special) += 1;
    return PLUMB_OK;
}

/* Takes over folder->fd. */
static enum plumb_code walk_into(struct walk *walk, struct folder *folder)
{
    DIR *dir = fdopendir(folder->fd);
    if (!dir) {
        close(folder->fd);
        return PLUMB_E_NOMEM;
    }
    enum plumb_code code = PLUMB_OK;
    for (struct dirent *entry; !code && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            code = visit(walk, folder, entry->d_name);
    closedir(dir);
    return code;
}

enum plumb_code walk_folder(struct walk *walk, const char *folder, struct plumb_error *err)
{
    struct folder top = {.path = ""};
    char *real = realpath(folder, NULL);
    top.fd = real ? open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (top.fd < 0) {
        enum plumb_code code = errno == ENOMEM ? PLUMB_E_NOMEM : PLUMB_E_IO;
        plumb_fail(err, code, "cannot read this folder: %s", strerror(errno));
        plumb_error_in_file(err, folder);
        free(real);
        return code;
    }
    top.top = real;
    enum plumb_code code = find_blobs(walk, real, &top.blobs);
    if (code)
        close(top.fd);
    else
        code = walk_into(walk, &top);
    free(real);
    if (code)
        return plumb_fail(err, code, "out of memory");
    if (walk->count)
        qsort(walk->entries, walk->count, sizeof *walk->entries, by_path);
    return PLUMB_OK;
}
