/* Finding the parts of plumb that lie outside the program and the library. */
#define _GNU_SOURCE
#include "base/part.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool usable(const struct part *part, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && access(path, part->access) == 0;
}

static bool take(const struct part *part, const char *found, char *path, size_t size)
{
    const size_t length = strlen(found);
    if (length >= size || !usable(part, found))
        return false;
    memcpy(path, found, length + 1);
    return true;
}

/* The folder is a name of somebody's choice: what glob() would take for a pattern is escaped. */
static bool pattern_for(const char *neighbour, const char *place, char *pattern, size_t size)
{
    const char *slash = strrchr(neighbour, '/');
    size_t n = 0;
    for (const char *s = neighbour; slash && s < slash && n + 2 < size; s++) {
        if (strchr("\\*?[", *s))
            pattern[n++] = '\\';
        pattern[n++] = *s;
    }
    const int more = slash ? snprintf(pattern + n, size - n, "/%s", place) : -1;
    return more > 0 && (size_t)more < size - n;
}

static bool find_near(const struct part *part, const char *neighbour, char *path, size_t size)
{
    bool found = false;
    for (const char *const *place = part->places; !found && *place; place++) {
        char pattern[PATH_MAX];
        glob_t names = {0};
        if (pattern_for(neighbour, *place, pattern, sizeof pattern) &&
            glob(pattern, 0, NULL, &names) == 0)
            for (size_t k = 0; !found && k < names.gl_pathc; k++)
                found = take(part, names.gl_pathv[k], path, size);
        globfree(&names);
    }
    return found;
}

enum plumb_code part_find(const struct part *part, char *path, size_t size, struct plumb_error *err)
{
    const char *told = secure_getenv(part->variable);
    if (told && *told)
        return take(part, told, path, size)
                   ? PLUMB_OK
                   : plumb_fail(err, PLUMB_E_IO, "%s, but %s=%.200s cannot be used", part->needed,
                                part->variable, told);
    static const char inside; /* any address of this library will do */
    Dl_info library = {0};
    /* Code that is part of the program itself is said to lie at whatever its caller called it. */
    if (dladdr(&inside, &library) && library.dli_fname &&
        strcmp(library.dli_fname, program_invocation_name) != 0 &&
        find_near(part, library.dli_fname, path, size))
        return PLUMB_OK;
    char program[PATH_MAX] = "";
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    if (find_near(part, program, path, size))
        return PLUMB_OK;
    if (take(part, part->installed, path, size))
        return PLUMB_OK;
    return plumb_fail(
        err, PLUMB_E_IO, "%s, which is neither near %.150s nor at %.150s; set %s to its path",
        part->needed, program[0] ? program : "this program", part->installed, part->variable);
}

const void *part_open(const struct part_library *library, struct plumb_error *err)
{
    char path[PATH_MAX];
    if (part_find(&library->part, path, sizeof path, err))
        return NULL;
    void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *const *found = opened ? dlsym(opened, library->symbol) : NULL;
    if (!found)
        plumb_fail(err, PLUMB_E_IO, "%s cannot be opened: %.300s", library->what, dlerror());
    else if (strcmp(*found, PLUMB_VERSION) != 0)
        plumb_fail(err, PLUMB_E_IO, "%.200s is of plumb %.20s, and this is plumb %s", path, *found,
                   PLUMB_VERSION);
    else
        return found;
    return NULL;
}
