/* Where the parts of the PyTorch device are: the script of its workers, and a Python. */
#define _GNU_SOURCE
#include "exec/device/find.h"

#include "base/part.h"
#include "base/paths.h"

#include <stdlib.h>
#include <unistd.h>

/* The build tree's, the Python package's, and an installed tree's places. */
static const char *const places[] = {
    "python/plumb/_worker/worker.py",
    "_worker/worker.py",
    "../_worker/worker.py",
    "../share/plumb/worker.py",
    "../../share/plumb/worker.py",
    "../lib/python3*/site-packages/plumb/_worker/worker.py",
    NULL,
};

enum plumb_code find_worker(char *path, size_t size, struct plumb_error *err)
{
    static const struct part worker = {.needed = "running PyTorch needs the script worker.py",
                                       .variable = "PLUMB_WORKER",
                                       .places = places,
                                       .installed = PLUMB_DATADIR "/worker.py",
                                       .access = R_OK};
    return part_find(&worker, path, size, err);
}

const char *find_python(size_t k)
{
    static const char *const usual[] = {"python3", "/usr/bin/python3"};
    const char *told = secure_getenv("PLUMB_PYTHON");
    if (told && *told)
        return k == 0 ? told : NULL;
    return k < sizeof usual / sizeof *usual ? usual[k] : NULL;
}
