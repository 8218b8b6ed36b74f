#define _GNU_SOURCE
#include "device/find.h"

#include "device/paths.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the folder of the program or library: the build tree's, the Python package's, and an
 * installed tree's places. */
static const char *const places[] = {
    "python/plumb/worker.py",
    "worker.py",
    "../share/plumb/worker.py",
    "../../share/plumb/worker.py",
    "../lib/python3*/site-packages/plumb/worker.py",
};

static bool find_near(const char *neighbour, char *path, size_t size)
{
    const char *slash = strrchr(neighbour, '/');
    for (size_t k = 0; slash && k < sizeof places / sizeof *places; k++) {
        char pattern[PATH_MAX];
        const int length = snprintf(pattern, sizeof pattern, "%.*s/%s", (int)(slash - neighbour),
                                    neighbour, places[k]);
        glob_t found = {0};
        if (length > 0 && (size_t)length < sizeof pattern && glob(pattern, 0, NULL, &found) == 0 &&
            strlen(found.gl_pathv[0]) < size) {
            snprintf(path, size, "%s", found.gl_pathv[0]);
            globfree(&found);
            return true;
        }
        globfree(&found);
    }
    return false;
}

enum plumb_code find_worker(char *path, size_t size, struct plumb_error *err)
{
    const char *told = secure_getenv("PLUMB_WORKER");
    if (told && *told) {
        const int length = snprintf(path, size, "%s", told);
        if (length > 0 && (size_t)length < size && access(path, R_OK) == 0)
            return PLUMB_OK;
        return plumb_fail(err, PLUMB_E_IO, "PLUMB_WORKER=%.200s is no file that can be read", told);
    }
    char program[PATH_MAX] = "";
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) {
        program[length] = '\0';
        if (find_near(program, path, size))
            return PLUMB_OK;
    }
    static const char inside; /* any address of this library will do */
    Dl_info library = {0};
    if (dladdr(&inside, &library) && library.dli_fname && find_near(library.dli_fname, path, size))
        return PLUMB_OK;
    const int written = snprintf(path, size, "%s/worker.py", PLUMB_DATADIR);
    if (written > 0 && (size_t)written < size && access(path, R_OK) == 0)
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_IO,
                      "PyTorch is run by worker.py, which is neither near %.150s nor in %s; set "
                      "PLUMB_WORKER to its path",
                      program[0] ? program : "this program", PLUMB_DATADIR);
}

const char *find_python(size_t k)
{
    static const char *const usual[] = {"python3", "/usr/bin/python3"};
    const char *told = secure_getenv("PLUMB_PYTHON");
    if (told && *told)
        return k == 0 ? told : NULL;
    return k < sizeof usual / sizeof *usual ? usual[k] : NULL;
}
