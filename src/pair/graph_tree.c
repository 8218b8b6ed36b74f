/* Listing a folder tree by its names, without being led out of it. */
#define _GNU_SOURCE
#include "pair/graph_tree.h"

#include "format/condensed.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LEVELS = 64 };

struct reader {
    struct arena *arena;
    const char *top; /* real path */
    bool failed;     /* out of memory */
};

static int by_folder_name(const void *a, const void *b)
{
    return strcmp(((const struct tree *)a)->name, ((const struct tree *)b)->name);
}

static int by_file_name(const void *a, const void *b)
{
    return strcmp(((const struct tree_file *)a)->name, ((const struct tree_file *)b)->name);
}

static bool lies_inside(const struct reader *reader, const char *path)
{
    char *real = realpath(path, NULL);
    size_t length = strlen(reader->top);
    bool inside = real && strncmp(real, reader->top, length) == 0 &&
                  (real[length] == '/' || strcmp(reader->top, "/") == 0);
    free(real);
    return inside;
}

/* Room for one more in an array of the arena. */
static void *grow(struct arena *arena, void *array, size_t count, size_t size)
{
    if (count && (count & (count - 1)))
        return array;
    void *larger = arena_array(arena, count ? count * 2 : 1, size);
    if (larger && count)
        memcpy(larger, array, count * size);
    return larger;
}

static void add_entry(struct reader *reader, struct tree *tree, const char *name)
{
    struct stat st;
    const char *path = arena_printf(reader->arena, "%s/%s", tree->path, name);
    if (!path) {
        reader->failed = true;
        return;
    }
    const char *own_name = path + strlen(tree->path) + 1;
    const char *problem = NULL;
    if (lstat(path, &st) != 0)
        return; /* gone since it was listed */
    if (S_ISLNK(st.st_mode)) {
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return;
        if (!lies_inside(reader, path))
            problem = "the link leads nowhere, or out of the dump";
    }
    if (!problem && !S_ISREG(st.st_mode))
        problem = "not a regular file";
    /* What was condensed goes by its old name; where the original is still there, that counts. */
    char original[PATH_MAX];
    struct stat other;
    if (S_ISREG(st.st_mode) && condensed_original(path, original, sizeof original)) {
        const char *old_name = original + strlen(tree->path) + 1;
        if (lstat(original, &other) == 0)
            return;
        own_name = arena_copy(reader->arena, old_name, strlen(old_name));
        reader->failed = !own_name;
        if (!own_name)
            return;
    }
    if (S_ISDIR(st.st_mode)) {
        tree->folders =
            grow(reader->arena, tree->folders, tree->folder_count, sizeof *tree->folders);
        if (tree->folders)
            tree->folders[tree->folder_count++] = (struct tree){.path = path, .name = own_name};
        reader->failed = !tree->folders;
    } else {
        tree->files = grow(reader->arena, tree->files, tree->file_count, sizeof *tree->files);
        if (tree->files)
            tree->files[tree->file_count++] = (struct tree_file){path, own_name, problem};
        reader->failed = !tree->files;
    }
}

static void fill(struct reader *reader, struct tree *tree, unsigned levels)
{
    DIR *dir = opendir(tree->path);
    if (!dir) {
        tree->problem = arena_printf(reader->arena, "cannot list it: %s", strerror(errno));
        reader->failed = !tree->problem;
        return;
    }
    for (struct dirent *entry; !reader->failed && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            add_entry(reader, tree, entry->d_name);
    closedir(dir);
    if (tree->folder_count)
        qsort(tree->folders, tree->folder_count, sizeof *tree->folders, by_folder_name);
    if (tree->file_count)
        qsort(tree->files, tree->file_count, sizeof *tree->files, by_file_name);
    for (size_t i = 0; i < tree->folder_count && !reader->failed; i++) {
        if (levels)
            fill(reader, &tree->folders[i], levels - 1);
        else
            tree->folders[i].problem = "nested too deeply";
    }
}

enum plumb_code tree_read_some(struct tree *tree, const char *path, unsigned levels,
                               struct arena *arena, struct plumb_error *err)
{
    struct reader reader = {.arena = arena};
    char *real = realpath(path, NULL);
    *tree = (struct tree){0};
    if (!real) {
        plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
        plumb_error_in_file(err, path);
        return PLUMB_E_IO;
    }
    tree->path = reader.top = arena_copy(arena, real, strlen(real));
    free(real);
    if (tree->path) {
        const char *slash = strrchr(tree->path, '/');
        tree->name = slash ? slash + 1 : tree->path;
        fill(&reader, tree, levels);
    }
    if (!tree->path || reader.failed)
        return plumb_no_memory(err);
    if (tree->problem) {
        plumb_fail(err, PLUMB_E_IO, "%s", tree->problem);
        plumb_error_in_file(err, path);
        return PLUMB_E_IO;
    }
    return PLUMB_OK;
}

enum plumb_code tree_read(struct tree *tree, const char *path, struct arena *arena,
                          struct plumb_error *err)
{
    return tree_read_some(tree, path, MAX_LEVELS, arena, err);
}
