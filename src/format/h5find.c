#define _GNU_SOURCE
#include "format/h5proc.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From the folder of the program or the library: the build tree's places, then an installed tree's.
 * The module for Python lies two folders deeper in the build tree, and pip puts programs beside
 * lib/pythonX.Y/site-packages. */
static const char *const places[] = {
    "plumb-h5",
    "../plumb-h5",
    "../../plumb-h5",
    "../libexec/plumb/plumb-h5",
    "../../libexec/plumb/plumb-h5",
    "../../../../libexec/plumb/plumb-h5",
    "../../../../bin/plumb-h5",
};

static bool runnable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool find_near(const char *neighbour, char *path, size_t size)
{
    const char *slash = strrchr(neighbour, '/');
    if (!slash)
        return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int length =
            snprintf(path, size, "%.*s/%s", (int)(slash - neighbour), neighbour, places[i]);
        if (length > 0 && (size_t)length < size && runnable(path))
            return true;
    }
    return false;
}

enum plumb_code h5proc_find(char *path, size_t size, struct plumb_error *err)
{
    const char *told = secure_getenv("PLUMB_H5");
    if (told && *told) {
        int length = snprintf(path, size, "%s", told);
        if (length > 0 && (size_t)length < size && runnable(path))
            return PLUMB_OK;
        return plumb_fail(err, PLUMB_E_IO,
                          "reading HDF5 needs the program plumb-h5, but PLUMB_H5=%s cannot be run",
                          told);
    }

    char program[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        if (find_near(program, path, size))
            return PLUMB_OK;
    }
    static const char inside; /* any address of this library will do */
    Dl_info library = {0};
    if (dladdr(&inside, &library) && library.dli_fname && find_near(library.dli_fname, path, size))
        return PLUMB_OK;
    int written = snprintf(path, size, "%s/plumb-h5", PLUMB_LIBEXECDIR);
    if (written > 0 && (size_t)written < size && runnable(path))
        return PLUMB_OK;
    return plumb_fail(
        err, PLUMB_E_IO,
        "reading HDF5 needs the program plumb-h5, which is neither near %s nor in %s; "
        "set PLUMB_H5 to its path",
        program[0] ? program : "this program", PLUMB_LIBEXECDIR);
}
